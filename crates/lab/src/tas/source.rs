//! Where messages that a host sends come from: its application writes them, or they lie in the page cache.

use nicforge_nic::Segment;
use nicforge_platform::sim::SimCpu;
use nicforge_platform::{Addr, Cpu, Part};

use super::message::Message;
use super::records::options::RecordsBy;

/// Files that follow one another in the page cache.
#[derive(Clone, Copy, Debug)]
pub struct Files {
    /// Where they begin.
    pub at: Addr,
    /// Bytes of all.
    pub len: u64,
    /// Bytes of each.
    pub each: u64,
    /// They are read from a target, and lie in the order of their numbers.
    pub in_turn: bool,
}

/// Where messages come from.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// The application writes them.
    Memory,
    /// They are files.
    PageCache(Files),
}

impl Files {
    /// How many files there is room for.
    pub fn count(&self) -> u64 {
        (self.len / self.each).max(1)
    }

    /// The part of file `number` from `done` on, whose first byte is in memory there.
    pub fn part(&self, number: u64, done: u32) -> Addr {
        // Clients ask for files in no order.
        let mixed = if self.in_turn { number } else { number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 };
        self.at + mixed % self.count() * self.each + u64::from(done)
    }
}

impl Source {
    /// Writes the next bytes of a message. The page cache's stay where they are: the core does not touch them
    /// (sendfile).
    pub fn write(&self, cpu: &mut SimCpu, message: &mut Message, pieces: [Segment; 2]) {
        for piece in pieces.into_iter().filter(|piece| piece.len > 0) {
            match self {
                Source::Memory => message.write(cpu.bytes_mut(piece.at, piece.len as usize)),
                Source::PageCache(_) => message.write(cpu.untouched_mut(piece.at, piece.len as usize)),
            }
        }
    }

    /// Puts a record with a message's bytes into `pieces`. A core that encrypts reads the file's pages and writes
    /// others; one that leaves it to the NIC copies them, unless the NIC may read the page cache itself.
    pub fn write_record(
        &self,
        cpu: &mut SimCpu,
        by: RecordsBy,
        from: MessagePlace,
        record: &[u8],
        pieces: [Segment; 2],
    ) {
        let is_untouched = matches!(self, Source::PageCache(_)) && by == RecordsBy::NicZeroCopy;
        let before = cpu.enter(Part::Copy);
        if let (Source::PageCache(files), false) = (self, is_untouched) {
            cpu.bytes(files.part(from.file, from.done), record.len());
        }
        let mut rest = record;
        for piece in pieces.into_iter().filter(|piece| piece.len > 0) {
            let (here, behind) = rest.split_at(piece.len as usize);
            let room = if is_untouched {
                cpu.untouched_mut(piece.at, here.len())
            } else {
                cpu.bytes_mut(piece.at, here.len())
            };
            room.copy_from_slice(here);
            rest = behind;
        }
        cpu.enter(before);
    }
}

/// A place in a message.
#[derive(Clone, Copy, Debug)]
pub struct MessagePlace {
    /// The message's number.
    pub number: u64,
    /// The file that it is.
    pub file: u64,
    /// Bytes of it before that place.
    pub done: u32,
}
