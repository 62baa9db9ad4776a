//! TCP flows that give way when a new flow finds no room: closing ones first, then unanswered ones.

use nicforge_platform::{Addr, AddressSpace, Cpu};

/// Flows in the order in which they came, by the number of their entry, in a ring.
#[derive(Clone, Debug)]
struct Queue {
    ring: Addr,
    room: u32,
    head: u32,
    len: u32,
}

impl Queue {
    fn allocate(space: &mut AddressSpace, room: u32) -> Queue {
        Queue { ring: space.data(u64::from(room) * 4, 64), room, head: 0, len: 0 }
    }

    fn place(&self, number: u32) -> Addr {
        self.ring + (u64::from(self.head) + u64::from(number)) % u64::from(self.room) * 4
    }

    /// A full queue forgets its oldest flow, which then ends by its time-out only.
    fn push<C: Cpu>(&mut self, cpu: &mut C, flow: u32) {
        if self.len == self.room {
            self.pop(cpu);
        }
        cpu.store(self.place(self.len), flow);
        self.len += 1;
    }

    fn pop<C: Cpu>(&mut self, cpu: &mut C) -> Option<u32> {
        let flow = (self.len > 0).then(|| cpu.load(self.place(0)))?;
        self.head = (self.head + 1) % self.room;
        self.len -= 1;
        Some(flow)
    }
}

/// The flows that may give way. An entry may be stale when its turn comes: the caller checks the flow's state.
#[derive(Clone, Debug)]
pub struct Waiting {
    closing: Queue,
    unanswered: Queue,
}

impl Waiting {
    /// Takes address space for `flows` of each kind.
    pub fn allocate(space: &mut AddressSpace, flows: u32) -> Waiting {
        let flows = flows.max(1);
        Waiting { closing: Queue::allocate(space, flows), unanswered: Queue::allocate(space, flows) }
    }

    /// The flow of entry `flow` saw a FIN or RST.
    pub fn closes<C: Cpu>(&mut self, cpu: &mut C, flow: u32) {
        self.closing.push(cpu, flow);
    }

    /// The flow of entry `flow` was opened, and is unanswered yet.
    pub fn opens<C: Cpu>(&mut self, cpu: &mut C, flow: u32) {
        self.unanswered.push(cpu, flow);
    }

    /// Takes the flow that began to close first.
    pub fn next_closing<C: Cpu>(&mut self, cpu: &mut C) -> Option<u32> {
        self.closing.pop(cpu)
    }

    /// Takes the unanswered flow that was opened first.
    pub fn next_unanswered<C: Cpu>(&mut self, cpu: &mut C) -> Option<u32> {
        self.unanswered.pop(cpu)
    }
}
