//! Requests and answers: a stamp of 16 bytes, then bytes that follow from it, so that either end can check each byte.

/// What a message begins with: when its request was sent, and the request's number.
pub const STAMP_BYTES: u32 = 16;

/// A message on its way into or out of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Message {
    /// When its request was sent, in picoseconds.
    pub sent: u64,
    /// The request's number.
    pub number: u64,
    /// The file that it is, where it is one.
    pub file: u64,
    /// Bytes that have passed.
    pub done: u32,
}

impl Message {
    /// The message of request `number`, sent at `sent`.
    pub fn new(sent: u64, number: u64) -> Message {
        Message { sent, number, file: number, done: 0 }
    }

    /// Its bytes from `place` on, which are not in the stamp. Sixteen bits say what each is, so that a processor makes
    /// many of them at a time.
    fn bytes(&self, place: u32) -> impl Iterator<Item = u8> + use<> {
        let seed = self.sent ^ self.number.rotate_left(32);
        let first = (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) as u16).wrapping_add((place as u16).wrapping_mul(131));
        (0u32..).map(move |index| (first.wrapping_add((index as u16).wrapping_mul(131)) >> 7) as u8)
    }

    /// How many of the next `len` bytes are in the stamp.
    fn in_stamp(&self, len: usize) -> usize {
        len.min(STAMP_BYTES.saturating_sub(self.done) as usize)
    }

    fn stamp(&self) -> [u8; STAMP_BYTES as usize] {
        let mut stamp = [0; STAMP_BYTES as usize];
        stamp[..8].copy_from_slice(&self.sent.to_le_bytes());
        stamp[8..].copy_from_slice(&self.number.to_le_bytes());
        stamp
    }

    /// Writes the next bytes, as many as `out` has.
    pub fn write(&mut self, out: &mut [u8]) {
        let (head, rest) = out.split_at_mut(self.in_stamp(out.len()));
        let stamp = self.stamp();
        head.iter_mut().zip(stamp.iter().skip(self.done as usize)).for_each(|(byte, of_stamp)| *byte = *of_stamp);
        self.done += head.len() as u32;
        rest.iter_mut().zip(self.bytes(self.done)).for_each(|(byte, made)| *byte = made);
        self.done += rest.len() as u32;
    }

    /// Takes the next bytes. Returns whether they are what they must be.
    pub fn read(&mut self, bytes: &[u8]) -> bool {
        let (head, rest) = bytes.split_at(self.in_stamp(bytes.len()));
        for (place, &byte) in (self.done..).zip(head) {
            match place {
                0..8 => self.sent |= u64::from(byte) << (8 * place),
                _ => self.number |= u64::from(byte) << (8 * (place - 8)),
            }
        }
        self.done += head.len() as u32;
        let differences = rest.iter().zip(self.bytes(self.done)).fold(0, |all, (byte, made)| all | (byte ^ made));
        self.done += rest.len() as u32;
        differences == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_in_pieces_reads_in_others_and_nothing_else_does() {
        let mut bytes = vec![0; 100];
        let mut written = Message::new(0x1234_5678_9abc, 77);
        for piece in bytes.chunks_mut(7) {
            written.write(piece);
        }
        let mut read = Message::default();
        assert!(bytes.chunks(33).all(|piece| read.read(piece)));
        assert_eq!((read.sent, read.number, read.done), (0x1234_5678_9abc, 77, 100));
        bytes[60] ^= 1;
        assert!(!Message::default().read(&bytes));
    }
}
