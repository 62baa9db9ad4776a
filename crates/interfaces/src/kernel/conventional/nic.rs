//! The NIC's half: two state machines with one way to memory between them.

use std::collections::VecDeque;

use nicforge_nic::{DropCause, MacFifo, RxFlags, mbuf_room};
use nicforge_platform::{Addr, Dma, Vector, bytemuck};
use nicforge_units::{Bytes, Time};

use super::interrupts::Interrupts;
use super::layout::{Descriptor, READ_BYTES, STATUS_OFFSET, Status, command, events, registers};
use crate::kernel::{Frame, KernelDevice, KernelNic, KernelPlan, Port};
use crate::priv_ring::layout::Ring;

/// Pieces of one frame, at most; a longer chain is an error of the driver.
const PIECES_MAX: usize = 16;

/// The largest frame: it fits a buffer of the receive list, and there has to be so much room in the
/// transmit FIFO before the next frame is requested.
const FRAME_MAX: Bytes = Bytes(1536);
const _: () = assert!(FRAME_MAX.0 <= mbuf_room() as u64);

/// What a state machine does next (integrated_nic, figure 3.2). Each but the first is one transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Waits for a command.
    Idle,
    /// Reads the next descriptor.
    Look,
    /// Moves data, as soon as there are any, or room for them.
    Move(Descriptor),
    /// Writes the status of what the descriptor named.
    WriteStatus { status: Status, tells: bool },
}

/// A list and how far its state machine has come.
#[derive(Debug)]
struct Machine {
    list: Ring<Descriptor>,
    /// The descriptor that it is at.
    position: u64,
    state: State,
}

impl Machine {
    fn new(list: Ring<Descriptor>) -> Machine {
        Machine { list, position: 0, state: State::Idle }
    }

    fn descriptor(&self) -> Addr {
        self.list.descriptor(self.list.index(self.position))
    }

    /// A command to go on.
    fn kick(&mut self) {
        if self.state == State::Idle {
            self.state = State::Look;
        }
    }

    /// Reads the next descriptor; returns whether it was given.
    fn look<D: Dma>(&mut self, dma: &mut D) -> bool {
        let mut words = [0u64; READ_BYTES / 8];
        dma.read(self.descriptor(), bytemuck::cast_slice_mut(&mut words));
        let [at, status] = words;
        let given = Status(status).is_given();
        self.state = if given { State::Move(Descriptor::new(at, Status(status))) } else { State::Idle };
        given
    }

    /// Writes the status back, waits until it is there, and goes on to the next descriptor.
    fn write_status<D: Dma>(&mut self, dma: &mut D, status: Status) {
        dma.publish(self.descriptor() + STATUS_OFFSET, bytemuck::bytes_of(&status));
        dma.settle();
        self.position += 1;
        self.state = State::Look;
    }
}

/// The NIC.
#[derive(Debug)]
pub struct Nic {
    port: Port,
    rx: Machine,
    rx_fifo: Bytes,
    /// Frames in the FIFO, oldest first.
    held: VecDeque<Frame>,
    /// Their bytes.
    held_bytes: Bytes,
    tx: Machine,
    tx_fifo: MacFifo,
    /// The frame whose pieces are being read, and how many there were.
    gathered: Frame,
    pieces: usize,
    /// When the way to memory is free for the next transfer.
    free: Time,
    /// Transmit goes first, where both directions have a transfer: the other one had the last.
    transmit_first: bool,
    interrupts: Interrupts,
    /// Register accesses and descriptors that mean nothing.
    errors: u64,
}

impl Nic {
    pub(super) fn new(plan: &KernelPlan, rx: Ring<Descriptor>, tx: Ring<Descriptor>) -> Nic {
        Nic {
            port: Port::new(plan.rate, plan.wire_overhead),
            rx: Machine::new(rx),
            rx_fifo: plan.rx_fifo,
            held: VecDeque::new(),
            held_bytes: Bytes(0),
            tx: Machine::new(tx),
            tx_fifo: MacFifo::new(plan.tx_fifo),
            gathered: Frame::default(),
            pieces: 0,
            free: Time::ZERO,
            transmit_first: false,
            interrupts: Interrupts::new(plan.interrupt_delay),
            errors: 0,
        }
    }

    /// The next transfer of the receive list.
    fn receive_step<D: Dma>(&mut self, dma: &mut D) {
        match self.rx.state {
            State::Idle => {}
            State::Look => {
                if !self.rx.look(dma) {
                    self.interrupts.event(dma.now(), events::RECEIVE_IDLE);
                }
            }
            State::Move(descriptor) => self.deliver(dma, descriptor),
            State::WriteStatus { status, tells } => {
                self.rx.write_status(dma, status);
                if tells {
                    self.interrupts.event(dma.now(), events::RECEIVED);
                }
            }
        }
    }

    /// The oldest frame of the FIFO goes to the descriptor's buffer.
    fn deliver<D: Dma>(&mut self, dma: &mut D, descriptor: Descriptor) {
        let Some(frame) = self.held.pop_front() else {
            return;
        };
        let len = (frame.len() as u32).min(descriptor.status.bytes());
        dma.write(Addr(descriptor.at), &frame.bytes()[..len as usize]);
        dma.settle();
        let status = Status::done(len, RxFlags::of(frame.findings().verdict));
        self.rx.state = State::WriteStatus { status, tells: descriptor.status.tells() };
        self.held_bytes = self.held_bytes - Bytes(frame.len() as u64);
        self.port.recycle(frame);
    }

    /// The next transfer of the transmit list.
    fn transmit_step<D: Dma>(&mut self, dma: &mut D) {
        match self.tx.state {
            State::Idle => {}
            State::Look => {
                if !self.tx.look(dma) {
                    self.interrupts.event(dma.now(), events::TRANSMIT_IDLE);
                }
            }
            State::Move(descriptor) => self.gather(dma, descriptor),
            State::WriteStatus { status, tells } => {
                self.tx.write_status(dma, status);
                if tells {
                    self.interrupts.event(dma.now(), events::TRANSMITTED);
                }
            }
        }
    }

    /// Reads a piece of a frame; the last one sends it.
    fn gather<D: Dma>(&mut self, dma: &mut D, descriptor: Descriptor) {
        let given = descriptor.status;
        if self.pieces == 0 {
            self.tx_fifo.accepts(dma.now(), FRAME_MAX);
            self.gathered = self.port.buffer();
        }
        self.pieces += 1;
        let len = given.bytes() as usize;
        // What fits no FIFO is an error of the driver.
        if self.gathered.len() + len <= FRAME_MAX.0 as usize {
            dma.read(Addr(descriptor.at), self.gathered.grow(len));
        } else {
            self.errors += 1;
        }
        self.tx.state =
            State::WriteStatus { status: Status::done(len as u32, RxFlags::default()), tells: given.tells() };
        let more = given.has_more();
        if more && self.pieces < PIECES_MAX {
            return;
        }
        self.errors += u64::from(more);
        self.pieces = 0;
        let mut frame = std::mem::take(&mut self.gathered);
        let offload = given.offload();
        let asked = offload.l3_checksum || offload.l4_checksum;
        self.errors += u64::from(!frame.complete(offload) && asked);
        let len = Bytes(frame.len() as u64);
        let out = self.port.send(dma.now(), frame);
        self.tx_fifo.hold(len, out);
    }

    fn receive_due(&self) -> Time {
        match self.rx.state {
            State::Idle => Time::NEVER,
            State::Move(_) if self.held.is_empty() => Time::NEVER,
            _ => self.free,
        }
    }

    fn transmit_due(&self) -> Time {
        match self.tx.state {
            State::Idle => Time::NEVER,
            State::Move(_) if self.pieces == 0 => self.free.max(self.tx_fifo.room_at(FRAME_MAX)),
            _ => self.free,
        }
    }
}

impl KernelDevice for Nic {
    fn due(&self) -> Time {
        self.receive_due().min(self.transmit_due()).min(self.interrupts.due())
    }

    fn port(&mut self) -> &mut Port {
        &mut self.port
    }

    fn frames_inside(&self) -> u64 {
        // One whose data is in memory and whose status is not.
        let written = matches!(self.rx.state, State::WriteStatus { .. });
        self.held.len() as u64 + u64::from(written)
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
        match index {
            registers::COMMAND => {
                if value & command::RECEIVE != 0 {
                    self.rx.kick();
                }
                if value & command::TRANSMIT != 0 {
                    self.tx.kick();
                }
            }
            registers::MASK => self.interrupts.let_through(value & events::ALL, dma.now()),
            registers::HOLDOFF | registers::RX_POINTER => {}
            _ => self.errors += 1,
        }
    }

    fn read_register(&mut self, dma: &mut D, index: u32) -> (u64, Time) {
        self.interrupts.reach(dma.now());
        let value = match index {
            registers::STATUS => {
                let status = self.interrupts.status();
                self.interrupts.clear();
                status
            }
            registers::TX_POINTER => self.tx.list.index(self.tx.position),
            _ => {
                self.errors += 1;
                0
            }
        };
        (value, dma.now())
    }

    fn advance(&mut self, dma: &mut D) {
        let now = dma.now();
        self.interrupts.reach(now);
        let (receive, transmit) = (self.receive_due() <= now, self.transmit_due() <= now);
        if receive || transmit {
            let transmits = transmit && (self.transmit_first || !receive);
            if transmits {
                self.transmit_step(dma)
            } else {
                self.receive_step(dma)
            }
            self.transmit_first = !transmits;
            self.free = dma.now();
        } else if self.interrupts.due() <= now {
            self.interrupts.raised();
            dma.interrupt(Vector(0));
        }
    }
}
