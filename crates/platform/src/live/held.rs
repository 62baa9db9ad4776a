//! Entries that the device has published, held back until its burst ends.
//!
//! A line that two cores work on takes as long to go from one to the other as several packets may take.
//! So it is prefetched when it is published, and written at the end of the burst.

use super::Region;
use super::region::LINE_WORDS;
use crate::Addr;

/// Entries that are held back, at most.
const MAX: usize = 64;

/// Where an entry goes, and its words, those that it has in front.
type Entry = (Addr, [u64; LINE_WORDS]);

/// Writes entries of `WORDS` words.
fn write_all<const WORDS: usize>(region: &Region, entries: &[Entry]) {
    for (to, words) in entries {
        if let Some(words) = words.first_chunk::<WORDS>() {
            region.announce(*to, words);
        }
    }
}

/// The first `count` entries, in order, each of `words` words. There is always room for one more.
#[derive(Debug)]
pub struct Held {
    entries: [Entry; MAX],
    count: usize,
    words: usize,
    write_all: fn(&Region, &[Entry]),
    /// From how many on [`settle`](Self::settle) is to be called, by how many words the last one has: always
    /// where each is to be settled, or where the others have more or fewer.
    settle_at: [usize; LINE_WORDS + 1],
}

impl Held {
    /// None.
    pub fn new() -> Held {
        Held {
            entries: [(Addr(0), [0; LINE_WORDS]); MAX],
            count: 0,
            words: LINE_WORDS,
            write_all: write_all::<LINE_WORDS>,
            settle_at: [0; LINE_WORDS + 1],
        }
    }

    /// Whether [`hold`](Self::hold) is to say of each entry that [`settle`](Self::settle) is to be called.
    pub fn settle_each(&mut self, each: bool) {
        self.settle_at[self.words] = if each { 0 } else { MAX };
    }

    /// Holds an entry for `to` back; says whether [`settle`](Self::settle) is to be called now.
    #[inline(always)]
    pub fn hold<const WORDS: usize>(&mut self, to: Addr, words: [u64; WORDS]) -> bool {
        const { assert!(WORDS > 0 && WORDS <= LINE_WORDS) };
        // The remainder is the number itself, and tells the compiler that there is room.
        let entry = &mut self.entries[self.count % MAX];
        entry.0 = to;
        entry.1[..WORDS].copy_from_slice(&words);
        self.count += 1;
        self.count >= self.settle_at[WORDS]
    }

    /// After the last entry, of `WORDS` words, others of as many have room: what is in the way is written.
    pub fn settle<const WORDS: usize>(&mut self, region: &Region) {
        if self.words != WORDS {
            self.count -= 1;
            let last = self.entries[self.count];
            self.write(region);
            self.settle_at.swap(self.words, WORDS);
            (self.words, self.write_all) = (WORDS, write_all::<WORDS>);
            self.entries[0] = last;
            self.count = 1;
        }
        if self.count == MAX {
            self.write(region);
        }
    }

    /// Writes all, each entry's last word last.
    pub fn write(&mut self, region: &Region) {
        (self.write_all)(region, &self.entries[..self.count]);
        self.count = 0;
    }
}
