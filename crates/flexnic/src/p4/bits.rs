//! Bits in bytes, most significant first, as packets carry them.

/// Reads `width` bits (at most 64) from bit `at` on. The caller has checked that they are there.
pub(crate) fn read(bytes: &[u8], at: usize, width: u32) -> u64 {
    let mut value = 0u64;
    let mut left = width as usize;
    let mut at = at;
    while left > 0 {
        let (byte, bit) = (bytes[at / 8], at % 8);
        let take = left.min(8 - bit);
        let part = (byte >> (8 - bit - take)) & mask8(take);
        value = if take == 64 { u64::from(part) } else { (value << take) | u64::from(part) };
        at += take;
        left -= take;
    }
    value
}

/// Writes the low `width` bits (at most 64) of `value` at bit `at`; the bytes must exist.
pub(crate) fn write(bytes: &mut [u8], at: usize, width: u32, value: u64) {
    let mut left = width as usize;
    let mut at = at;
    while left > 0 {
        let bit = at % 8;
        let take = left.min(8 - bit);
        let part = ((value >> (left - take)) as u8) & mask8(take);
        let shift = 8 - bit - take;
        let byte = &mut bytes[at / 8];
        *byte = (*byte & !(mask8(take) << shift)) | (part << shift);
        at += take;
        left -= take;
    }
}

fn mask8(bits: usize) -> u8 {
    if bits >= 8 { 0xff } else { (1u8 << bits) - 1 }
}

/// Reads a value of any width into words, least significant first.
pub(crate) fn read_wide(bytes: &[u8], at: usize, width: u32, to: &mut [u64]) {
    let mut left = width;
    let mut end = at + width as usize;
    for word in to.iter_mut() {
        let take = left.min(64);
        end -= take as usize;
        *word = read(bytes, end, take);
        left -= take;
    }
}

/// Writes a value of any width.
pub(crate) fn write_wide(bytes: &mut [u8], at: usize, width: u32, from: &[u64]) {
    let mut left = width;
    let mut end = at + width as usize;
    for word in from {
        let take = left.min(64);
        end -= take as usize;
        write(bytes, end, take, *word);
        left -= take;
    }
}

/// A sequence of bits under construction.
#[derive(Clone, Debug, Default)]
pub(crate) struct BitString {
    pub bytes: Vec<u8>,
    pub bits: usize,
}

impl BitString {
    /// Appends a value.
    pub fn push(&mut self, width: u32, value: &[u64]) {
        let at = self.bits;
        self.bits += width as usize;
        self.bytes.resize(self.bits.div_ceil(8), 0);
        write_wide(&mut self.bytes, at, width, value);
    }

    /// Appends the bits of `from` from bit `start` on.
    pub fn push_bits(&mut self, from: &[u8], start: usize) {
        if self.bits.is_multiple_of(8) && start.is_multiple_of(8) {
            self.bytes.extend_from_slice(&from[start / 8..]);
            self.bits = self.bytes.len() * 8;
            return;
        }
        let mut at = start;
        while at < from.len() * 8 {
            let take = (from.len() * 8 - at).min(64) as u32;
            self.push(take, &[read(from, at, take)]);
            at += take as usize;
        }
    }
}
