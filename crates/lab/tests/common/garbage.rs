//! Frames that no sound stack sends: random bytes, sound frames cut off or with lengths that lie, and
//! the malformed captures of ../shared where they are. Used by the tests of two crates.

use std::path::{Path, PathBuf};

use nicforge_wire::capture::CaptureReader;
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

/// Where the length fields of an untagged IPv4 frame without options are: version and header
/// length, total length, UDP's length, TCP's header length.
const LENGTHS: [usize; 6] = [14, 16, 17, 38, 39, 46];
/// EtherTypes that make a parser look further: IPv4, IPv6, ARP, and two of tags.
const TYPES: [[u8; 2]; 5] = [[8, 0], [0x86, 0xdd], [8, 6], [0x81, 0], [0x88, 0xa8]];

/// An endless row of such frames, the same for the same seed.
pub struct Garbage {
    random: Pcg64,
    /// Sound frames, to spoil.
    sound: Vec<Vec<u8>>,
    foreign: Vec<Vec<u8>>,
    next_foreign: usize,
    shortest: usize,
    longest: usize,
}

impl Garbage {
    /// Frames of `shortest` to `longest` bytes.
    pub fn new(seed: u64, shortest: usize, longest: usize) -> Garbage {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let sound = frames(&root.join("scenarios/captures/sample.pcap"));
        Garbage {
            random: Pcg64::seed_from_u64(seed),
            foreign: malformed_captures().iter().flat_map(|path| frames(path)).collect(),
            sound,
            next_foreign: 0,
            shortest,
            longest,
        }
    }

    fn below(&mut self, limit: usize) -> usize {
        self.random.next_u64() as usize % limit
    }

    /// The next frame.
    pub fn frame(&mut self) -> Vec<u8> {
        let number = self.below(self.sound.len());
        let mut frame = self.sound[number].clone();
        match self.below(7) {
            0 => {
                let len = self.below(self.longest + 1);
                frame.resize(len, 0);
                self.random.fill_bytes(&mut frame);
            }
            1 => {
                let kind = self.below(TYPES.len());
                let end = frame.len().min(80);
                self.random.fill_bytes(&mut frame[14..end]);
                frame[12..14].copy_from_slice(&TYPES[kind]);
            }
            2 => {
                let len = self.below(frame.len());
                frame.truncate(len);
            }
            3 | 4 => {
                let at = LENGTHS[self.below(LENGTHS.len())];
                frame[at] = self.random.next_u32() as u8;
            }
            5 => self.cut_version_6(&mut frame),
            _ => match self.foreign.len() {
                0 => {
                    let (at, bit) = (12 + self.below(40), self.below(8));
                    frame[at] ^= 1 << bit;
                }
                count => {
                    frame.clone_from(&self.foreign[self.next_foreign % count]);
                    self.next_foreign += 1;
                }
            },
        }
        let len = frame.len().clamp(self.shortest, self.longest);
        frame.resize(len, 0);
        frame
    }

    /// An IPv6 packet of extension headers, cut off somewhere or with a length of anything.
    fn cut_version_6(&mut self, frame: &mut Vec<u8>) {
        frame.resize(14 + 40 + 8 * 12, 0);
        frame[12..14].copy_from_slice(&[0x86, 0xdd]);
        frame[14..18].copy_from_slice(&[0x60, 0, 0, 0]);
        let payload = self.below(130) as u16;
        frame[18..20].copy_from_slice(&payload.to_be_bytes());
        // Hop-by-hop options, then destination options of 8 bytes each (RFC 8200, section 4).
        frame[20] = 0;
        for header in frame[54..].chunks_exact_mut(8) {
            header.copy_from_slice(&[60, 0, 1, 4, 0, 0, 0, 0]);
        }
        let len = 14 + self.below(frame.len() - 14);
        frame.truncate(len);
    }
}

/// What can be read of a capture.
pub fn frames(path: &Path) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let Ok(mut reader) = CaptureReader::open(path) else {
        return frames;
    };
    while let Ok(Some(record)) = reader.next_record() {
        frames.push(record.bytes.to_vec());
    }
    frames
}

/// The malformed captures of ../shared; none where they are not.
pub fn malformed_captures() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/pcap");
    let folders = ["bad", "chksum"].into_iter();
    let entries = folders.filter_map(|folder| std::fs::read_dir(root.join(folder)).ok());
    let mut captures: Vec<PathBuf> = entries.flatten().flatten().map(|entry| entry.path()).collect();
    captures.sort();
    captures
}

/// Seconds that garbage comes for on each interface: `NICFORGE_GARBAGE_SECONDS`, or `usual`.
pub fn seconds(usual: f64) -> f64 {
    let set = std::env::var("NICFORGE_GARBAGE_SECONDS");
    set.map_or(usual, |text| text.parse().expect("a number of seconds"))
}
