//! SINIC's driver (integrated NIC, sections 6.2.1 and 6.2.2).
//!
//! One buffer is always posted, so that the copy of a packet overlaps with what the stack does
//! with the one before.

use nicforge_nic::{Segment, data_of, mbuf_room};
use nicforge_platform::{Addr, AddressSpace, Cpu};

use super::attention::Attention;
use super::registers::{Tag, interrupt, rx_done};
use super::window::{describe, flags};
use crate::kernel::{
    Advice, Between, DriverState, KernelDriver, KernelPlan, Received, Sending, SlabCache, TransmitBusy,
};

/// What the driver wants to hear of.
const RECEIVED: u64 = interrupt::RX_DMA.mask();

/// The driver.
#[derive(Debug)]
pub struct Driver {
    attention: Attention,
    /// Where the next packet goes.
    posted: Option<Addr>,
    /// Bytes of a packet that one copy brings at most.
    copy: u32,
    per_poll: usize,
    /// The device has more packets: what was posted is being filled.
    more: bool,
    oversized: u64,
}

impl Driver {
    pub(super) fn new(plan: &KernelPlan, space: &mut AddressSpace) -> Driver {
        Driver {
            attention: Attention::new(plan, 1, space),
            posted: None,
            copy: 0,
            per_poll: 1,
            more: false,
            oversized: 0,
        }
    }

    /// Packets that were longer than a buffer, and dropped.
    pub fn oversized(&self) -> u64 {
        self.oversized
    }

    fn post<C: Cpu>(&mut self, cpu: &mut C, mbuf: Addr) {
        self.attention.window.begin_receive(cpu, 0, data_of(mbuf), self.copy);
        self.posted = Some(mbuf);
    }

    /// RxDone, once the copy is complete.
    fn done<C: Cpu>(&mut self, cpu: &mut C) -> Option<u64> {
        let done = if self.more {
            self.attention.window.read(cpu, Tag::RxWait, 0)
        } else {
            // What completes from here on is an event again.
            self.attention.window.write(cpu, Tag::IntrStatus, 0, RECEIVED);
            self.attention.window.read(cpu, Tag::RxDone, 0)
        };
        rx_done::COMPLETE.is_set(done).then_some(done)
    }

    /// Copies the rest of a packet behind what is in its buffer. Returns its length, or `None`
    /// where it does not fit or the device is stuck.
    fn rest<C: Cpu>(&mut self, cpu: &mut C, mbuf: Addr, mut done: u64) -> Option<u32> {
        let mut len = self.copy;
        let mut fits = true;
        while rx_done::MORE.is_set(done) {
            let left = rx_done::COPY_LEN.get(done) as u32;
            // What does not fit is copied over itself, to get it out of the FIFO.
            fits &= len + left <= mbuf_room();
            let at = if fits { len } else { 0 };
            let part = left.min(self.copy);
            self.attention.window.begin_receive(cpu, 0, data_of(mbuf) + u64::from(at), part);
            done = self.attention.window.finish_receive(cpu, 0).ok()?;
            len += part;
        }
        fits.then_some(len)
    }

    fn take<C: Cpu>(&mut self, cpu: &mut C, pool: &mut SlabCache, received: &mut Vec<Received>) -> Taken {
        let Some(fresh) = pool.take(cpu) else {
            return Taken::NoBuffer;
        };
        let Some(mbuf) = self.posted else {
            self.post(cpu, fresh);
            return Taken::Packet;
        };
        let Some(done) = self.done(cpu) else {
            pool.give(cpu, fresh);
            return Taken::Nothing;
        };
        let len = if rx_done::MORE.is_set(done) {
            self.rest(cpu, mbuf, done)
        } else {
            Some(rx_done::COPY_LEN.get(done) as u32)
        };
        self.more = rx_done::PACKETS.get(done) > 0;
        self.post(cpu, fresh);
        cpu.work(self.attention.costs.rx_packet);
        let Some(len) = len else {
            self.oversized += 1;
            pool.give(cpu, mbuf);
            return Taken::Packet;
        };
        describe(cpu, mbuf, done);
        received.push(Received { mbuf, head: Segment { at: data_of(mbuf), len }, deferred: None, flags: flags(done) });
        Taken::Packet
    }
}

/// What a look at the device brought.
enum Taken {
    /// A packet, or at least a change.
    Packet,
    /// Nothing: no packet is complete.
    Nothing,
    /// No look was taken: there is no buffer to post in place of another.
    NoBuffer,
}

impl DriverState for Driver {
    fn advice(&self) -> Advice {
        self.attention.advice()
    }

    fn buffers_held(&self) -> u64 {
        u64::from(self.posted.is_some()) + self.attention.buffers_held()
    }
}

impl<C: Cpu> KernelDriver<C> for Driver {
    fn start(&mut self, cpu: &mut C, pool: &mut SlabCache) {
        let window = self.attention.window;
        self.copy = (window.read(cpu, Tag::RxMaxCopy, 0) as u32).min(mbuf_room());
        self.per_poll = window.read(cpu, Tag::RxMaxIntr, 0).max(1) as usize;
        self.attention.start(cpu);
        if let Some(mbuf) = pool.take(cpu) {
            self.post(cpu, mbuf);
        }
        self.attention.rest(cpu, RECEIVED);
    }

    fn interrupt(&mut self, cpu: &mut C) -> bool {
        self.attention.interrupt(cpu, RECEIVED)
    }

    fn poll(&mut self, cpu: &mut C, pool: &mut SlabCache, received: &mut Vec<Received>, budget: usize) -> bool {
        self.attention.reclaim(cpu, pool);
        for _ in 0..budget.min(self.per_poll) {
            match self.take(cpu, pool, received) {
                Taken::Packet => {}
                // Buffers come back from the stack, and no interrupt says so.
                Taken::NoBuffer => return true,
                Taken::Nothing if self.more => return true,
                Taken::Nothing => {
                    cpu.work(self.attention.costs.burst);
                    return self.attention.rest(cpu, RECEIVED);
                }
            }
        }
        true
    }

    fn transmit(
        &mut self,
        cpu: &mut C,
        pool: &mut SlabCache,
        frame: &Sending,
        core: usize,
    ) -> Result<(), TransmitBusy> {
        self.attention.send(cpu, pool, frame, core, RECEIVED)
    }

    fn between(&self, cpu: &mut C) -> Between {
        let window = self.attention.window;
        let here = self.posted.is_some() && window.has_whole_packet(cpu, 0);
        Between { in_memory: here.into(), deferred: 0, dropped: self.oversized }
    }
}
