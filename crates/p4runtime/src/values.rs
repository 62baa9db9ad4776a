//! Values as the wire has them: big-endian bytes, as few as the value needs (specification, section 8.4).

/// The shortest bytes of a value, at least one.
pub fn to_bytes(words: &[u64]) -> Vec<u8> {
    let bytes: Vec<u8> = words.iter().rev().flat_map(|word| word.to_be_bytes()).collect();
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count().min(bytes.len().saturating_sub(1));
    bytes[zeros..].to_vec()
}

/// All bytes of a value of `width` bits.
pub fn to_width(words: &[u64], width: u32) -> Vec<u8> {
    let short = to_bytes(words);
    let mut bytes = vec![0; (width.div_ceil(8) as usize).saturating_sub(short.len())];
    bytes.extend(short);
    bytes
}

/// Why bytes are no value of a width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ValueError {
    #[error("the value has no bytes")]
    Empty,
    #[error("the value does not fit into {0} bits")]
    TooWide(u32),
}

/// The words of a value of `width` bits; zeros in front do not count.
pub fn from_bytes(bytes: &[u8], width: u32) -> Result<Vec<u64>, ValueError> {
    if bytes.is_empty() {
        return Err(ValueError::Empty);
    }
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let bytes = &bytes[zeros..];
    let bits = bytes.first().map_or(0, |first| bytes.len() as u64 * 8 - u64::from(first.leading_zeros()));
    if bits > u64::from(width) {
        return Err(ValueError::TooWide(width));
    }
    let mut words = vec![0u64; (width as usize).div_ceil(64).max(1)];
    for (at, byte) in bytes.iter().rev().enumerate() {
        words[at / 8] |= u64::from(*byte) << (at % 8 * 8);
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_as_short_as_they_can_be_and_wide_ones_are_refused() {
        assert_eq!(to_bytes(&[0]), [0]);
        assert_eq!(to_bytes(&[0x1_00, 0]), [1, 0]);
        assert_eq!(from_bytes(&[0, 0, 1, 255], 9), Ok(vec![511]));
        assert_eq!(from_bytes(&[2, 0], 9), Err(ValueError::TooWide(9)));
        assert_eq!(from_bytes(&[], 9), Err(ValueError::Empty));
        let wide: Vec<u8> = (1..=16).collect();
        assert_eq!(to_bytes(&from_bytes(&wide, 128).unwrap()), wide);
    }
}
