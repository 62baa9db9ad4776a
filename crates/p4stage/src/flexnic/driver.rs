//! The driver's half.

use nicforge_interfaces::in_place::{Entries, EntryDriver};
use nicforge_interfaces::priv_ring::{Ring, RxDescriptor};
use nicforge_nic::Completion;
use nicforge_platform::{Addr, Cpu, Hint};

use super::layout::{Entry, FULL, decode};

/// A queue's entries, and the ring of empty buffers beside them.
#[derive(Debug)]
pub struct QueueEntries {
    pub(super) entries: Ring<Entry>,
    pub(super) buffers: Ring<RxDescriptor>,
}

/// One core's queue.
pub type Driver = EntryDriver<QueueEntries>;

impl Entries for QueueEntries {
    fn extent(&self) -> (u64, u64) {
        (self.entries.entries, self.entries.first)
    }

    fn post<C: Cpu>(&mut self, cpu: &mut C, position: u64, mbuf: Addr, _room: u32) {
        let index = self.buffers.post(cpu, position, mbuf);
        cpu.store(self.entries.descriptor(index) + FULL, 0u64);
    }

    fn peek<C: Cpu>(&mut self, cpu: &mut C, position: u64) -> Option<Completion> {
        let entry = self.entries.descriptor(self.entries.index(position));
        if cpu.acquire(entry + FULL) == 0 {
            return None;
        }
        // Frames come in bursts: the next entry is fetched while this one is dealt with.
        cpu.hint(Hint::Fetch { at: self.entries.descriptor(self.entries.index(position + 1)), len: 8 });
        Some(decode(cpu.load(entry)))
    }

    fn buffer<C: Cpu>(&mut self, cpu: &mut C, position: u64) -> Addr {
        cpu.load::<RxDescriptor>(self.buffers.descriptor(self.buffers.index(position))).mbuf
    }
}
