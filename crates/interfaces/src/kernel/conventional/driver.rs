//! The driver's half: fills the lists, looks which descriptors came back.

use std::collections::VecDeque;

use nicforge_nic::{DriverCosts, PoolCache, Segment, TxOffload, data_of, mbuf_room};
use nicforge_platform::{Addr, Cpu, Register};
use nicforge_units::CACHE_LINE_BYTES;

use super::layout::{Descriptor, STATUS_OFFSET, Status, command, events, registers};
use crate::kernel::{Between, DriverState, KernelDriver, KernelPlan, Received, Sending, SharedLock, TransmitBusy};
use crate::priv_ring::layout::Ring;

/// Most received packets before the driver announces new buffers to the NIC.
const REFILL_BATCH: u64 = 16;
/// Events of its descriptors that the driver asks for in one round of the transmit list (`ns83820_hard_start_xmit`).
const TX_TELLING: u64 = 4;
/// What interrupts.
const WANTED: u64 = events::RECEIVED | events::TRANSMITTED | events::TRANSMIT_IDLE;

/// The driver.
#[derive(Debug)]
pub struct Driver {
    device: u8,
    costs: DriverCosts,
    rx: Ring<Descriptor>,
    /// The buffer in each entry of the receive list.
    rx_buffers: VecDeque<Addr>,
    /// Next entry that comes back.
    rx_next: u64,
    /// Next entry to give.
    rx_tail: u64,
    /// What the NIC was told last.
    rx_told: u64,
    tx: Ring<Descriptor>,
    /// Position behind the last descriptor of each frame that was given, with its buffer.
    tx_frames: VecDeque<(u64, Addr)>,
    tx_tail: u64,
    /// Descriptors before this position are free again.
    tx_freed: u64,
    /// The first frame from this position on asks for an event.
    tx_tells: u64,
    /// Around the transmit list: there is one for all cores.
    tx_lock: SharedLock,
}

impl Driver {
    pub(super) fn new(plan: &KernelPlan, rx: Ring<Descriptor>, tx: Ring<Descriptor>, tx_lock: SharedLock) -> Driver {
        Driver {
            device: plan.device,
            costs: plan.costs,
            rx,
            rx_buffers: VecDeque::with_capacity(plan.rx_entries),
            rx_next: 0,
            rx_tail: 0,
            rx_told: 0,
            tx,
            tx_frames: VecDeque::new(),
            tx_tail: 0,
            tx_freed: 0,
            tx_tells: 0,
            tx_lock,
        }
    }

    fn write<C: Cpu>(&self, cpu: &mut C, index: u32, value: u64) {
        let device = self.device;
        cpu.mmio_write(Register { device, index }, value);
    }

    fn status<C: Cpu>(cpu: &mut C, ring: &Ring<Descriptor>, position: u64) -> Status {
        Status(cpu.acquire(ring.descriptor(ring.index(position)) + STATUS_OFFSET))
    }

    /// Gives the NIC buffers for all entries that came back.
    fn refill<C: Cpu>(&mut self, cpu: &mut C, pool: &mut PoolCache) {
        while self.rx_tail < self.rx_next + self.rx.entries {
            let Some(mbuf) = pool.take(cpu) else {
                break;
            };
            let status = Status::given(mbuf_room(), false, TxOffload::default()).telling();
            let descriptor = Descriptor::new(data_of(mbuf).0, status);
            let entry = self.rx.index(self.rx_tail);
            cpu.store(self.rx.descriptor(entry), descriptor);
            self.rx_buffers.push_back(mbuf);
            self.rx_tail += 1;
        }
    }

    fn tell<C: Cpu>(&mut self, cpu: &mut C) {
        if self.rx_told != self.rx_tail {
            self.write(cpu, registers::COMMAND, command::RECEIVE);
            self.rx_told = self.rx_tail;
        }
    }

    /// Frees the buffers of frames that were read.
    fn reclaim<C: Cpu>(&mut self, cpu: &mut C, pool: &mut PoolCache) {
        while let Some(&(end, mbuf)) = self.tx_frames.front() {
            if !Driver::status(cpu, &self.tx, end - 1).is_done() {
                break;
            }
            pool.give(cpu, mbuf);
            self.tx_frames.pop_front();
            self.tx_freed = end;
        }
    }

    /// Gives the NIC the descriptors of a frame.
    fn give<C: Cpu>(&mut self, cpu: &mut C, pool: &mut PoolCache, frame: &Sending) -> Result<(), TransmitBusy> {
        let pieces = frame.pieces.iter().filter(|piece| piece.len > 0);
        let count = pieces.clone().count() as u64;
        if self.tx_tail + count - self.tx_freed > self.tx.entries {
            self.reclaim(cpu, pool);
        }
        if self.tx_tail + count - self.tx_freed > self.tx.entries {
            return Err(TransmitBusy);
        }
        cpu.work(self.costs.tx_packet);
        let tells = self.tx_tail >= self.tx_tells;
        if tells {
            self.tx_tells = self.tx_tail + self.tx.entries / TX_TELLING;
        }
        for (number, piece) in (1..).zip(pieces) {
            let given = Status::given(piece.len, number < count, frame.offload);
            let status = if tells && number == count { given.telling() } else { given };
            let entry = self.tx.index(self.tx_tail);
            cpu.store(self.tx.descriptor(entry), Descriptor::new(piece.at.0, status));
            self.tx_tail += 1;
        }
        self.tx_frames.push_back((self.tx_tail, frame.mbuf));
        self.write(cpu, registers::COMMAND, command::TRANSMIT);
        Ok(())
    }

    /// The next received frame, if there is one.
    fn take<C: Cpu>(&mut self, cpu: &mut C) -> Option<Received> {
        if self.rx_next == self.rx_tail {
            return None;
        }
        let status = Driver::status(cpu, &self.rx, self.rx_next);
        if !status.is_done() {
            return None;
        }
        let mbuf = self.rx_buffers.pop_front()?;
        self.rx_next += 1;
        cpu.work(self.costs.rx_packet);
        // The kernel's own description of the packet.
        cpu.store(mbuf, status.0);
        cpu.store(mbuf + CACHE_LINE_BYTES, status.0);
        Some(Received {
            mbuf,
            head: Segment { at: data_of(mbuf), len: status.bytes() },
            deferred: None,
            flags: status.flags(),
        })
    }
}

impl DriverState for Driver {
    fn buffers_held(&self) -> u64 {
        (self.rx_buffers.len() + self.tx_frames.len()) as u64
    }
}

impl<C: Cpu> KernelDriver<C> for Driver {
    fn start(&mut self, cpu: &mut C, pool: &mut PoolCache) {
        self.refill(cpu, pool);
        self.tell(cpu);
        self.write(cpu, registers::MASK, WANTED);
    }

    fn interrupt(&mut self, cpu: &mut C) -> bool {
        let status = cpu.mmio_read(Register { device: self.device, index: registers::STATUS });
        if status & WANTED != 0 {
            self.write(cpu, registers::MASK, 0);
        }
        status & WANTED != 0
    }

    fn poll(&mut self, cpu: &mut C, pool: &mut PoolCache, received: &mut Vec<Received>, budget: usize) -> bool {
        let lock = self.tx_lock;
        lock.hold(cpu, |cpu| self.reclaim(cpu, pool));
        for _ in 0..budget {
            let Some(packet) = self.take(cpu) else {
                // What comes from here on is an event again.
                self.refill(cpu, pool);
                self.tell(cpu);
                cpu.work(self.costs.burst);
                if self.rx_tail == self.rx_next {
                    // Buffers come back from the stack, and no interrupt says so.
                    return true;
                }
                self.write(cpu, registers::MASK, WANTED);
                return false;
            };
            received.push(packet);
            self.refill(cpu, pool);
            if self.rx_tail - self.rx_told >= REFILL_BATCH {
                self.tell(cpu);
            }
        }
        true
    }

    fn transmit(
        &mut self,
        cpu: &mut C,
        pool: &mut PoolCache,
        frame: &Sending,
        _core: usize,
    ) -> Result<(), TransmitBusy> {
        let lock = self.tx_lock;
        lock.hold(cpu, |cpu| self.give(cpu, pool, frame))
    }

    fn between(&self, cpu: &mut C) -> Between {
        let given = self.rx_next..self.rx_tail;
        let done = given.filter(|&at| Driver::status(cpu, &self.rx, at).is_done());
        Between { in_memory: done.count() as u64, ..Between::default() }
    }
}
