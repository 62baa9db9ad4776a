//! The driver's half, as Linux's `ns83820.c` (2.6.13) is: an interrupt handler, a tasklet that takes packets off the list
//! and queues them for the stack, and a register write for each packet that is sent.

use std::collections::VecDeque;

use nicforge_nic::{DriverCosts, Segment, TxOffload, data_of, mbuf_room};
use nicforge_platform::{Addr, Cpu, Register};
use nicforge_units::{CACHE_LINE_BYTES, Cycles};

use super::layout::{Descriptor, STATUS_OFFSET, Status, command, events, registers};
use crate::kernel::{
    Between, DriverState, KernelDriver, KernelPlan, Received, Sending, SharedLock, SlabCache, TransmitBusy,
};
use crate::priv_ring::layout::Ring;

/// Events of its descriptors that the driver asks for in one round of the transmit list (`ns83820_hard_start_xmit`).
const TX_TELLING: u64 = 4;

/// The driver.
#[derive(Debug)]
pub struct Driver {
    device: u8,
    costs: DriverCosts,
    /// The core waits so long for a register write.
    write_wait: Cycles,
    /// The interrupt mask that the driver wrote last (`IMR_cache`).
    mask: u64,
    rx: Ring<Descriptor>,
    /// The buffer in each entry of the receive list.
    rx_buffers: VecDeque<Addr>,
    /// Next entry that comes back.
    rx_next: u64,
    /// Next entry to give.
    rx_tail: u64,
    /// The NIC found no buffer and waits for a command.
    rx_idle: bool,
    /// The tasklet is to run.
    scheduled: bool,
    /// Packets that the tasklet took off the list and the stack has not taken yet (`netif_rx`).
    backlog: VecDeque<Received>,
    tx: Ring<Descriptor>,
    /// Position behind the last descriptor of each frame that was given, with its buffer.
    tx_frames: VecDeque<(u64, Addr)>,
    tx_tail: u64,
    /// Descriptors before this position are free again.
    tx_freed: u64,
    /// The first frame from this position on asks for an event.
    tx_tells: u64,
    /// An event said that frames were sent.
    tx_done: bool,
    /// Around the transmit list: there is one for all cores.
    tx_lock: SharedLock,
}

impl Driver {
    pub(super) fn new(plan: &KernelPlan, rx: Ring<Descriptor>, tx: Ring<Descriptor>, tx_lock: SharedLock) -> Driver {
        Driver {
            device: plan.device,
            costs: plan.costs,
            write_wait: plan.write_wait,
            mask: 0,
            rx,
            rx_buffers: VecDeque::with_capacity(plan.rx_entries),
            rx_next: 0,
            rx_tail: 0,
            rx_idle: false,
            scheduled: false,
            backlog: VecDeque::new(),
            tx,
            tx_frames: VecDeque::new(),
            tx_tail: 0,
            tx_freed: 0,
            tx_tells: 0,
            tx_done: false,
            tx_lock,
        }
    }

    /// Writes a register, and waits until the NIC has it: `writel` ends in a memory barrier on Alpha.
    fn write<C: Cpu>(&self, cpu: &mut C, index: u32, value: u64) {
        let device = self.device;
        cpu.mmio_write(Register { device, index }, value);
        cpu.work(self.write_wait);
    }

    fn read<C: Cpu>(&self, cpu: &mut C, index: u32) -> u64 {
        cpu.mmio_read(Register { device: self.device, index })
    }

    fn set_mask<C: Cpu>(&mut self, cpu: &mut C, mask: u64) {
        self.mask = mask;
        self.write(cpu, registers::MASK, mask);
    }

    fn status<C: Cpu>(cpu: &mut C, ring: &Ring<Descriptor>, position: u64) -> Status {
        Status(cpu.acquire(ring.descriptor(ring.index(position)) + STATUS_OFFSET))
    }

    /// Gives the NIC buffers for all entries that came back, and wakes it if it stopped (`ns83820_rx_kick`).
    fn refill<C: Cpu>(&mut self, cpu: &mut C, pool: &mut SlabCache) {
        while self.rx_tail < self.rx_next + self.rx.entries {
            let Some(mbuf) = pool.take(cpu) else {
                break;
            };
            let status = Status::given(mbuf_room(), false, TxOffload::default()).telling();
            let entry = self.rx.index(self.rx_tail);
            cpu.store(self.rx.descriptor(entry), Descriptor::new(data_of(mbuf).0, status));
            self.rx_buffers.push_back(mbuf);
            self.rx_tail += 1;
        }
        if self.rx_idle && self.rx_tail > self.rx_next {
            self.rx_idle = false;
            self.write(cpu, registers::RX_POINTER, self.rx.index(self.rx_next));
            self.write(cpu, registers::COMMAND, command::RECEIVE);
        }
    }

    /// Takes all packets that have come off the list (`rx_irq`).
    fn walk<C: Cpu>(&mut self, cpu: &mut C) {
        while self.rx_next < self.rx_tail {
            let status = Driver::status(cpu, &self.rx, self.rx_next);
            if !status.is_done() {
                return;
            }
            let Some(mbuf) = self.rx_buffers.pop_front() else {
                return;
            };
            self.rx_next += 1;
            cpu.work(self.costs.rx_packet);
            // The kernel's own description of the packet.
            cpu.store(mbuf, status.0);
            cpu.store(mbuf + CACHE_LINE_BYTES, status.0);
            self.backlog.push_back(Received {
                mbuf,
                head: Segment { at: data_of(mbuf), len: status.bytes() },
                deferred: None,
                flags: status.flags(),
            });
        }
    }

    /// The tasklet (`rx_action`).
    fn run_tasklet<C: Cpu>(&mut self, cpu: &mut C, pool: &mut SlabCache) {
        self.scheduled = false;
        self.walk(cpu);
        self.write(cpu, registers::HOLDOFF, 0);
        self.set_mask(cpu, self.mask | events::RECEIVED);
        self.walk(cpu);
        self.refill(cpu, pool);
        cpu.work(self.costs.burst);
    }

    /// Frees the buffers of frames that were read.
    fn reclaim<C: Cpu>(&mut self, cpu: &mut C, pool: &mut SlabCache) {
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
    fn give<C: Cpu>(&mut self, cpu: &mut C, frame: &Sending) -> Result<(), TransmitBusy> {
        let pieces = frame.pieces.iter().filter(|piece| piece.len > 0);
        let count = pieces.clone().count() as u64;
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
}

impl DriverState for Driver {
    fn buffers_held(&self) -> u64 {
        (self.rx_buffers.len() + self.backlog.len() + self.tx_frames.len()) as u64
    }
}

impl<C: Cpu> KernelDriver<C> for Driver {
    fn start(&mut self, cpu: &mut C, pool: &mut SlabCache) {
        self.refill(cpu, pool);
        self.set_mask(cpu, events::ALL);
        self.write(cpu, registers::COMMAND, command::RECEIVE);
    }

    /// The interrupt handler (`ns83820_do_isr`). What it does with buffers is left to the poll that follows.
    fn interrupt(&mut self, cpu: &mut C) -> bool {
        let status = self.read(cpu, registers::STATUS);
        self.rx_idle |= status & events::RECEIVE_IDLE != 0;
        if status & events::RECEIVED != 0 {
            self.scheduled = true;
            self.set_mask(cpu, self.mask & !events::RECEIVED);
        }
        if status & events::TRANSMIT_IDLE != 0 {
            // The NIC may have looked before it was given more.
            let stopped_at = self.read(cpu, registers::TX_POINTER);
            if stopped_at != self.tx.index(self.tx_tail) {
                self.write(cpu, registers::COMMAND, command::TRANSMIT);
            }
        }
        self.tx_done |= status & (events::TRANSMITTED | events::TRANSMIT_IDLE) != 0;
        status != 0
    }

    fn poll(&mut self, cpu: &mut C, pool: &mut SlabCache, received: &mut Vec<Received>, budget: usize) -> bool {
        if std::mem::take(&mut self.tx_done) {
            let lock = self.tx_lock;
            lock.hold(cpu, |cpu| self.reclaim(cpu, pool));
        }
        if self.rx_idle || self.rx_tail == self.rx_next {
            self.refill(cpu, pool);
        }
        // The soft interrupt of the stack goes before that of tasklets.
        if self.backlog.is_empty() && self.scheduled {
            self.run_tasklet(cpu, pool);
        }
        let count = budget.min(self.backlog.len());
        received.extend(self.backlog.drain(..count));
        // Buffers come back from the stack, and no interrupt says so.
        let starved = self.rx_tail == self.rx_next;
        starved || self.scheduled || !self.backlog.is_empty()
    }

    fn transmit(
        &mut self,
        cpu: &mut C,
        _pool: &mut SlabCache,
        frame: &Sending,
        _core: usize,
    ) -> Result<(), TransmitBusy> {
        let lock = self.tx_lock;
        lock.hold(cpu, |cpu| self.give(cpu, frame))
    }

    fn between(&self, cpu: &mut C) -> Between {
        let given = self.rx_next..self.rx_tail;
        let done = given.filter(|&at| Driver::status(cpu, &self.rx, at).is_done());
        Between { in_memory: (done.count() + self.backlog.len()) as u64, ..Between::default() }
    }
}
