//! TCP options: MSS, window scale, SACK, timestamps, Fast Open.
//!
//! Emission keeps the order and padding that common stacks use, so that traces compare.

use crate::seq::{Seq, Span};

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const FAST_OPEN: u8 = 34;

/// Largest shift of a window (RFC 7323 section 2.3).
pub const WINDOW_SCALE_MAX: u8 = 14;
/// SACK blocks that fit beside no other option.
pub const SACK_BLOCKS: usize = 4;

/// The timestamps option (RFC 7323 section 3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// The sender's clock.
    pub value: u32,
    /// The receiver's clock that the sender echoes.
    pub echo: u32,
}

/// Up to four SACK blocks, the most recent first (RFC 2018, RFC 2883).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [Span; SACK_BLOCKS],
    len: u8,
}

impl SackBlocks {
    /// Appends a block; a fifth one is left out.
    pub fn push(&mut self, block: Span) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.len)) {
            *slot = block;
            self.len += 1;
        }
    }

    /// The blocks.
    pub fn as_slice(&self) -> &[Span] {
        &self.blocks[..usize::from(self.len)]
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Keeps the first `most` blocks.
    pub fn truncate(&mut self, most: usize) {
        for block in self.blocks.iter_mut().skip(most) {
            *block = Span::default();
        }
        self.len = self.len.min(most as u8);
    }
}

/// A Fast Open cookie (RFC 7413); length zero asks for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cookie {
    bytes: [u8; 16],
    len: u8,
}

impl Cookie {
    /// From 0 to 16 bytes.
    pub fn new(cookie: &[u8]) -> Option<Cookie> {
        let mut bytes = [0; 16];
        bytes.get_mut(..cookie.len())?.copy_from_slice(cookie);
        Some(Cookie { bytes, len: cookie.len() as u8 })
    }

    /// Its bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// The options of one segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Largest segment that the sender takes, in bytes.
    pub mss: Option<u16>,
    /// Shift of the sender's window.
    pub window_scale: Option<u8>,
    /// The sender understands SACK.
    pub sack_permitted: bool,
    /// Clocks.
    pub timestamps: Option<Timestamps>,
    /// Selective acknowledgments.
    pub sack: SackBlocks,
    /// Fast Open cookie or request.
    pub fast_open: Option<Cookie>,
}

impl Options {
    /// Reads the bytes behind a header. A malformed option ends the walk; an option with a wrong length is left out.
    pub fn parse(mut rest: &[u8]) -> Options {
        let mut options = Options::default();
        while let [kind, ..] = *rest {
            match kind {
                END => break,
                NOP => rest = &rest[1..],
                _ => {
                    let Some(data) = rest.get(1).and_then(|&len| rest.get(2..usize::from(len))) else { break };
                    options.take(kind, data);
                    rest = &rest[2 + data.len()..];
                }
            }
        }
        options
    }

    fn take(&mut self, kind: u8, data: &[u8]) {
        match (kind, data) {
            (MSS, &[high, low]) => self.mss = Some(u16::from_be_bytes([high, low])),
            (WINDOW_SCALE, &[shift]) => self.window_scale = Some(shift.min(WINDOW_SCALE_MAX)),
            (SACK_PERMITTED, []) => self.sack_permitted = true,
            (TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => {
                let (value, echo) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
                self.timestamps = Some(Timestamps { value, echo });
            }
            (SACK, _) if data.len().is_multiple_of(8) => {
                for block in data.chunks_exact(8) {
                    let word = |at: usize| Seq(u32::from_be_bytes([0, 1, 2, 3].map(|byte| block[at + byte])));
                    self.sack.push(Span::new(word(0), word(4)));
                }
            }
            (FAST_OPEN, _) => self.fast_open = Cookie::new(data),
            _ => {}
        }
    }

    /// Bytes of the emitted options, a multiple of four.
    pub fn emitted_len(&self) -> usize {
        if *self == Options::default() {
            return 0;
        }
        self.emit_to(&mut Counter(0))
    }

    /// Writes the options; `out` has [`Options::emitted_len`] bytes.
    pub fn emit(&self, out: &mut [u8]) {
        if !out.is_empty() {
            let mut writer = Writer { out, at: 0 };
            self.emit_to(&mut writer);
        }
    }

    fn emit_to(&self, sink: &mut impl Sink) -> usize {
        if let Some(mss) = self.mss {
            sink.put(&[MSS, 4]);
            sink.put(&mss.to_be_bytes());
        }
        match (self.sack_permitted, self.timestamps.is_some()) {
            (true, true) => sink.put(&[SACK_PERMITTED, 2]),
            (false, true) => sink.put(&[NOP, NOP]),
            (true, false) => sink.put(&[NOP, NOP, SACK_PERMITTED, 2]),
            (false, false) => {}
        }
        if let Some(Timestamps { value, echo }) = self.timestamps {
            sink.put(&[TIMESTAMPS, 10]);
            sink.put(&value.to_be_bytes());
            sink.put(&echo.to_be_bytes());
        }
        if let Some(shift) = self.window_scale {
            sink.put(&[NOP, WINDOW_SCALE, 3, shift]);
        }
        if !self.sack.is_empty() {
            sink.put(&[NOP, NOP, SACK, 2 + 8 * self.sack.len]);
            for block in self.sack.as_slice() {
                sink.put(&block.start.0.to_be_bytes());
                sink.put(&block.end.0.to_be_bytes());
            }
        }
        if let Some(cookie) = &self.fast_open {
            sink.put(&[FAST_OPEN, 2 + cookie.len]);
            sink.put(cookie.as_slice());
        }
        while !sink.at().is_multiple_of(4) {
            sink.put(&[NOP]);
        }
        sink.at()
    }
}

trait Sink {
    fn put(&mut self, bytes: &[u8]);
    fn at(&self) -> usize;
}

struct Counter(usize);

impl Sink for Counter {
    fn put(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }
    fn at(&self) -> usize {
        self.0
    }
}

struct Writer<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl Sink for Writer<'_> {
    fn put(&mut self, bytes: &[u8]) {
        if let Some(place) = self.out.get_mut(self.at..self.at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        self.at += bytes.len();
    }
    fn at(&self) -> usize {
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(options: Options) -> Vec<u8> {
        let mut bytes = vec![0; options.emitted_len()];
        options.emit(&mut bytes);
        assert!(bytes.len().is_multiple_of(4) && bytes.len() <= 40, "{bytes:?}");
        assert_eq!(Options::parse(&bytes), options);
        bytes
    }

    #[test]
    fn what_is_emitted_is_read_back() {
        let clocks = Some(Timestamps { value: 1, echo: 2 });
        let syn = Options { mss: Some(1460), window_scale: Some(8), sack_permitted: true, ..Options::default() };
        assert_eq!(round_trip(syn), [2, 4, 5, 180, 1, 1, 4, 2, 1, 3, 3, 8]);
        assert_eq!(round_trip(Options { timestamps: clocks, ..syn }).len(), 20);
        assert_eq!(round_trip(Options { timestamps: clocks, ..Options::default() })[..4], [1, 1, 8, 10]);
        let mut sack = SackBlocks::default();
        for block in 1..=5u32 {
            sack.push(Span::new(Seq(block * 10), Seq(block * 10 + 5)));
        }
        assert_eq!(sack.as_slice().len(), SACK_BLOCKS);
        round_trip(Options { sack, ..Options::default() });
        sack.truncate(3);
        round_trip(Options { sack, timestamps: clocks, ..Options::default() });
        round_trip(Options { fast_open: Cookie::new(&[7; 8]), ..syn });
        assert_eq!(Options::default().emitted_len(), 0);
    }

    #[test]
    fn garbage_ends_or_is_left_out() {
        assert_eq!(Options::parse(&[2, 4, 5]), Options::default());
        assert_eq!(Options::parse(&[8, 0, 1, 1]), Options::default());
        assert_eq!(Options::parse(&[3, 3, 99]).window_scale, Some(WINDOW_SCALE_MAX));
        assert_eq!(Options::parse(&[2, 3, 9, 3, 3, 7]).window_scale, Some(7));
        assert_eq!(Options::parse(&[2, 3, 9, 0, 3, 3, 7]).window_scale, None);
        assert!(Options::parse(&[5, 9, 1, 2, 3, 4, 5, 6, 7]).sack.is_empty());
    }
}
