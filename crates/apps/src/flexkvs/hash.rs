//! Hashes of keys: "lookup3" where software computes them, CRC-32 where the NIC does.

fn mix(mut a: u32, mut b: u32, mut c: u32) -> [u32; 3] {
    for (one, two, three) in [(4, 6, 8), (16, 19, 4)] {
        a = a.wrapping_sub(c) ^ c.rotate_left(one);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(two);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(three);
        b = b.wrapping_add(a);
    }
    [a, b, c]
}

fn finish(mut a: u32, mut b: u32, mut c: u32) -> u32 {
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

/// The CRC-32 of Ethernet, as P4 programs have it (`HashAlgorithm.crc32`).
pub fn crc32(key: &[u8]) -> u32 {
    let bit = |state: u32, _| if state & 1 == 1 { state >> 1 ^ 0xedb8_8320 } else { state >> 1 };
    !key.iter().fold(u32::MAX, |state, byte| (0..8).fold(state ^ u32::from(*byte), bit))
}

/// Bob Jenkins' hash of `key` that begins with `start` (burtleburtle.net/bob/c/lookup3.c, public domain).
pub fn lookup3(key: &[u8], start: u32) -> u32 {
    let first = 0xdead_beef_u32.wrapping_add(key.len() as u32).wrapping_add(start);
    let mut state = [first; 3];
    let mut rest = key;
    while rest.len() > 12 {
        let (block, behind) = rest.split_at(12);
        let [a, b, c] = add(state, block);
        state = mix(a, b, c);
        rest = behind;
    }
    if rest.is_empty() {
        return state[2];
    }
    let mut last = [0; 12];
    last[..rest.len()].copy_from_slice(rest);
    let [a, b, c] = add(state, &last);
    finish(a, b, c)
}

/// Adds the three words of `block`.
fn add(state: [u32; 3], block: &[u8]) -> [u32; 3] {
    let mut sum = state;
    for (sum, word) in sum.iter_mut().zip(block.as_chunks::<4>().0) {
        *sum = sum.wrapping_add(u32::from_le_bytes(*word));
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc32_has_the_check_value_of_the_catalogue() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    /// The values that its author publishes with it (driver5).
    #[test]
    fn published_values_come_out() {
        assert_eq!(lookup3(b"", 0), 0xdead_beef);
        assert_eq!(lookup3(b"", 0xdead_beef), 0xbd5b_7dde);
        assert_eq!(lookup3(b"Four score and seven years ago", 0), 0x1777_0551);
        assert_eq!(lookup3(b"Four score and seven years ago", 1), 0xcd62_8161);
    }
}
