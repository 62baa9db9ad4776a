//! The NIC's half: two engines that walk the lists, and the interrupt timer.

use std::collections::VecDeque;

use nicforge_nic::{DropCause, MacFifo, RxFlags, mbuf_room};
use nicforge_platform::{Addr, Dma, Run, Vector, bytemuck};
use nicforge_units::{Bytes, CACHE_LINE_BYTES, Time};

use super::layout::{Descriptor, Status, events, registers};
use crate::kernel::{Frame, KernelDevice, KernelNic, KernelPlan, Port};
use crate::priv_ring::fetch::Fetcher;
use crate::priv_ring::layout::Ring;

/// Pieces of one frame, at most; a longer chain is an error of the driver.
const PIECES_MAX: usize = 16;

/// The largest frame: it fits a buffer of the receive list, and there has to be so much room in the
/// transmit FIFO before the next frame is requested.
const FRAME_MAX: Bytes = Bytes(1536);
const _: () = assert!(FRAME_MAX.0 <= mbuf_room() as u64);

/// The NIC.
#[derive(Debug)]
pub struct Nic {
    port: Port,
    rx_list: Ring<Descriptor>,
    rx: Fetcher<Descriptor>,
    rx_fifo: Bytes,
    /// Frames in the FIFO, oldest first.
    held: VecDeque<Frame>,
    /// Their bytes.
    held_bytes: Bytes,
    /// When the receive engine can take the next frame.
    rx_free: Time,
    tx_list: Ring<Descriptor>,
    tx: Fetcher<Descriptor>,
    tx_fifo: MacFifo,
    tx_free: Time,
    /// Frames whose data is on its way here, and when they can be written back.
    gathering: VecDeque<(Time, Gathered)>,
    /// The frame whose pieces are being fetched.
    pieces: Vec<Descriptor>,
    /// For pieces where host memory cannot be looked at in place.
    scratch: Vec<u8>,
    interrupts: Interrupts,
    /// Register accesses and descriptors that mean nothing.
    errors: u64,
}

/// A frame that was read from host memory.
#[derive(Debug)]
struct Gathered {
    /// The entry of its last descriptor.
    last: u64,
    descriptor: Descriptor,
}

/// Status, mask, and the timer of section 3.3.
#[derive(Debug)]
struct Interrupts {
    status: u64,
    /// Events that the engines have worked ahead for: each counts from its time on. Software that
    /// saw one before what it announces is in memory would look in vain, and clear it.
    ahead: Vec<(Time, u64)>,
    /// The first time of these.
    first_ahead: Time,
    mask: u64,
    delay: Time,
    /// When an interrupt is due, whatever the mask says.
    at: Time,
    /// When one is due that the mask lets through: asked for far more often than it changes.
    due: Time,
}

impl Interrupts {
    fn event(&mut self, time: Time, event: u64) {
        self.ahead.push((time, event));
        self.first_ahead = self.first_ahead.min(time);
        if event & self.mask != 0 {
            self.due = self.due.min(time + self.delay);
        }
    }

    /// What happened up to `now` is in the status.
    #[inline]
    fn reach(&mut self, now: Time) {
        if self.first_ahead <= now {
            self.take_ahead(now);
        }
    }

    fn take_ahead(&mut self, now: Time) {
        self.first_ahead = Time::NEVER;
        let mut number = 0;
        while let Some(&(time, event)) = self.ahead.get(number) {
            if time > now {
                self.first_ahead = self.first_ahead.min(time);
                number += 1;
                continue;
            }
            self.ahead.swap_remove(number);
            self.status |= event;
            self.at = self.at.min(time + self.delay);
        }
        self.settle();
    }

    fn clear(&mut self, bits: u64) {
        self.status &= !bits;
        if self.status == 0 {
            self.at = Time::NEVER;
        }
        self.settle();
    }

    fn let_through(&mut self, events: u64) {
        self.mask = events;
        self.settle();
    }

    /// One is raised: the next event begins a new delay.
    fn raised(&mut self) {
        self.at = Time::NEVER;
        self.settle();
    }

    fn settle(&mut self) {
        let raised = match self.status & self.mask {
            0 => Time::NEVER,
            _ => self.at,
        };
        let passed = |&&(_, event): &&(Time, u64)| event & self.mask != 0;
        let ahead = self.ahead.iter().filter(passed);
        let first = ahead.map(|&(time, _)| time).min();
        self.due = first.map_or(raised, |time| raised.min(time + self.delay));
    }
}

impl Nic {
    pub(super) fn new(plan: &KernelPlan, rx: Ring<Descriptor>, tx: Ring<Descriptor>) -> Nic {
        let line = Bytes(CACHE_LINE_BYTES);
        Nic {
            port: Port::new(plan.rate, plan.wire_overhead),
            rx_list: rx,
            rx: Fetcher::new(rx, line),
            rx_fifo: plan.rx_fifo,
            held: VecDeque::new(),
            held_bytes: Bytes(0),
            rx_free: Time::ZERO,
            tx_list: tx,
            tx: Fetcher::new(tx, line),
            tx_fifo: MacFifo::new(plan.tx_fifo),
            tx_free: Time::ZERO,
            gathering: VecDeque::new(),
            pieces: Vec::new(),
            scratch: Vec::new(),
            interrupts: Interrupts {
                status: 0,
                ahead: Vec::new(),
                first_ahead: Time::NEVER,
                mask: 0,
                delay: plan.interrupt_delay,
                at: Time::NEVER,
                due: Time::NEVER,
            },
            errors: 0,
        }
    }

    /// The oldest frame of the FIFO goes to the next buffer of the list.
    fn deliver<D: Dma>(&mut self, dma: &mut D) {
        let Some((here, descriptor)) = self.rx.peek(dma) else {
            return;
        };
        let Some(frame) = self.held.pop_front() else {
            return;
        };
        dma.wait_until(here);
        let entry = u64::from(self.rx.pop());
        let len = (frame.len() as u32).min(descriptor.status.bytes());
        dma.write(Addr(descriptor.at), &frame.bytes()[..len as usize]);
        let back = Descriptor { at: descriptor.at, status: Status::done(len, RxFlags::of(frame.findings().verdict)) };
        dma.publish(self.rx_list.descriptor(entry), bytemuck::bytes_of(&back));
        self.rx_free = dma.now();
        self.held_bytes = self.held_bytes - Bytes(frame.len() as u64);
        self.interrupts.event(dma.now(), events::RECEIVED);
        self.port.recycle(frame);
    }

    /// Requests the data of the next frame of the transmit list.
    fn gather<D: Dma>(&mut self, dma: &mut D) {
        // A piece at a time until the frame is whole: the driver gives whole frames.
        loop {
            let Some((here, descriptor)) = self.tx.peek(dma) else {
                return;
            };
            dma.wait_until(here);
            let entry = u64::from(self.tx.pop());
            self.pieces.push(descriptor);
            let more = descriptor.status.has_more();
            if !more || self.pieces.len() == PIECES_MAX {
                self.errors += u64::from(more);
                self.send(dma, entry, descriptor);
                return;
            }
        }
    }

    fn send<D: Dma>(&mut self, dma: &mut D, last: u64, descriptor: Descriptor) {
        let mut frame = self.port.buffer();
        let mut here = dma.now();
        for piece in self.pieces.drain(..) {
            let len = piece.status.bytes() as usize;
            let runs = [Run { at: Addr(piece.at), len }, Run::default()];
            let gathered = dma.gather(&[], runs, &mut self.scratch);
            gathered.pieces.iter().for_each(|run| frame.extend(run));
            here = here.max(gathered.here);
        }
        self.tx_free = dma.now();
        let offload = descriptor.status.offload();
        let asked = offload.l3_checksum || offload.l4_checksum;
        self.errors += u64::from(!frame.complete(offload) && asked);
        let len = Bytes(frame.len() as u64);
        let out = self.port.send(here, frame);
        self.tx_fifo.hold(len, out);
        self.gathering.push_back((here, Gathered { last, descriptor }));
    }

    /// Writes the last descriptor of a frame back: software may reuse all of them.
    fn write_back<D: Dma>(&mut self, dma: &mut D, done: &Gathered) {
        let back = Descriptor {
            at: done.descriptor.at,
            status: Status::done(done.descriptor.status.bytes(), RxFlags::default()),
        };
        dma.publish(self.tx_list.descriptor(done.last), bytemuck::bytes_of(&back));
        self.interrupts.event(dma.now(), events::TRANSMITTED);
    }

    fn written_back_due(&self) -> Time {
        let first = self.gathering.front();
        first.map_or(Time::NEVER, |&(here, _)| here)
    }

    fn receive_due(&self) -> Time {
        if self.held.is_empty() || self.rx.available() == 0 { Time::NEVER } else { self.rx_free }
    }

    fn transmit_due(&self) -> Time {
        match self.tx.available() {
            0 => Time::NEVER,
            _ => self.tx_free.max(self.tx_fifo.room_at(FRAME_MAX)),
        }
    }
}

impl KernelDevice for Nic {
    fn due(&self) -> Time {
        self.receive_due().min(self.transmit_due()).min(self.written_back_due()).min(self.interrupts.due)
    }

    fn port(&mut self) -> &mut Port {
        &mut self.port
    }

    fn frames_inside(&self) -> u64 {
        self.held.len() as u64
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("bad_register_or_descriptor", self.errors)]
    }
}

impl<D: Dma> KernelNic<D> for Nic {
    fn receive(&mut self, _dma: &mut D, frame: &mut Frame) -> Result<(), DropCause> {
        let len = Bytes(frame.len() as u64);
        if len > FRAME_MAX {
            return Err(DropCause::OVERSIZED);
        }
        if self.held_bytes + len > self.rx_fifo {
            return Err(DropCause::of_fifo(len, self.rx_fifo));
        }
        self.held_bytes += len;
        let empty = self.port.buffer();
        self.held.push_back(std::mem::replace(frame, empty));
        Ok(())
    }

    fn write_register(&mut self, dma: &mut D, index: u32, value: u64) {
        self.interrupts.reach(dma.now());
        let known = match index {
            registers::STATUS => {
                self.interrupts.clear(value);
                true
            }
            registers::MASK => {
                self.interrupts.let_through(value & events::ALL);
                true
            }
            registers::RX_TAIL => self.rx.doorbell(dma, value),
            registers::TX_TAIL => self.tx.doorbell(dma, value),
            _ => false,
        };
        self.errors += u64::from(!known);
    }

    fn read_register(&mut self, dma: &mut D, index: u32) -> (u64, Time) {
        self.interrupts.reach(dma.now());
        let value = match index {
            registers::STATUS => {
                let status = self.interrupts.status;
                self.interrupts.clear(status);
                status
            }
            registers::MASK => self.interrupts.mask,
            _ => {
                self.errors += 1;
                0
            }
        };
        (value, dma.now())
    }

    fn advance(&mut self, dma: &mut D) {
        // One thing at a time: each moves the cursor, and the engines do not wait for each other.
        let now = dma.now();
        self.interrupts.reach(now);
        if self.written_back_due() <= now {
            if let Some((_, done)) = self.gathering.pop_front() {
                self.write_back(dma, &done);
            }
        } else if self.receive_due() <= now {
            self.deliver(dma);
        } else if self.transmit_due() <= now {
            self.tx_fifo.accepts(now, FRAME_MAX);
            self.gather(dma);
        } else if self.interrupts.due <= now {
            self.interrupts.raised();
            dma.interrupt(Vector(0));
        }
    }
}
