//! The device: what its registers do, and the copy engines (integrated NIC, appendix A.1).
//!
//! There is a copy engine per FIFO, but both share the one cache port. A copy has the port from its
//! first byte to its last, so one copy runs at a time; when both sides have one to begin, they take
//! turns.

use nicforge_nic::DropCause;
use nicforge_platform::{Addr, Dma, Vector};
use nicforge_units::{Bytes, Time};

use super::interrupts::Interrupts;
use super::misuse::Misuse;
use super::options::{Options, OptionsError};
use super::receive::{ReceiveEvents, ReceiveSide, Refused};
use super::registers::{config, interrupt};
use super::transmit::{Next, TransmitSide};
use crate::kernel::{Frame, KernelDevice, KernelNic, Port};

mod access;

/// Reception is off.
pub const RX_DISABLED: DropCause = DropCause("rx_disabled");

/// Bits of Config that software sets.
const ENABLES: u64 = config::INT_EN.mask() | config::TX_EN.mask() | config::RX_EN.mask();

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Receive,
    Transmit,
}

/// A copy that runs.
#[derive(Clone, Copy, Debug)]
struct Copy {
    side: Side,
    vnic: u16,
    done_at: Time,
}

/// What a device is built with beside its [`Options`].
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// Receive FIFO.
    pub rx_fifo: Bytes,
    /// Transmit FIFO.
    pub tx_fifo: Bytes,
    /// Delay of interrupts that may be coalesced.
    pub interrupt_delay: Time,
    /// Who is interrupted.
    pub vector: Vector,
}

/// A SINIC, or a V-SINIC.
#[derive(Debug)]
pub struct Nic {
    options: Options,
    around: Surroundings,
    enables: u64,
    receive: ReceiveSide,
    transmit: TransmitSide,
    interrupts: Interrupts,
    port: Port,
    /// The latest time that it has been at.
    now: Time,
    copy: Option<Copy>,
    /// When the cache port is free.
    cache_port_free: Time,
    /// Who had it last.
    last: Side,
    misuses: [u64; Misuse::ALL.len()],
    reset_packets: u64,
    /// Where host memory ends; copies beyond are refused.
    memory_end: Addr,
}

impl Nic {
    /// A device as after power-on: nothing is enabled.
    ///
    /// # Errors
    /// When the options cannot be had together.
    pub fn new(options: &Options, around: &Surroundings, port: Port) -> Result<Nic, OptionsError> {
        options.check(around.rx_fifo, around.tx_fifo)?;
        Ok(Nic {
            enables: 0,
            receive: receive_side(options, around),
            transmit: transmit_side(options, around),
            interrupts: Interrupts::new(options.interrupt_mask, around.interrupt_delay),
            port,
            now: Time::ZERO,
            copy: None,
            cache_port_free: Time::ZERO,
            last: Side::Transmit,
            misuses: [0; Misuse::ALL.len()],
            reset_packets: 0,
            memory_end: Addr(0),
            options: options.clone(),
            around: *around,
        })
    }

    /// How often software did `misuse`.
    pub fn misuses(&self, misuse: Misuse) -> u64 {
        self.misuses[misuse as usize]
    }

    /// Brings the device up to `now`: what happens by itself until then happens in its order.
    fn run_to<D: Dma>(&mut self, dma: &mut D, now: Time) {
        loop {
            let next = self.next_event();
            if next > now {
                break;
            }
            self.now = self.now.max(next);
            self.event(dma);
        }
        self.now = self.now.max(now);
    }

    /// When something happens by itself.
    fn next_event(&self) -> Time {
        let copy = self.copy.map_or(Time::NEVER, |copy| copy.done_at);
        copy.min(self.transmit.next_out()).min(self.interrupts.due())
    }

    /// Does the first of what is due.
    fn event<D: Dma>(&mut self, dma: &mut D) {
        let now = self.now;
        if self.interrupts.due() <= now {
            self.interrupts.sent();
            dma.wait_until(now);
            dma.interrupt(self.around.vector);
        } else if self.transmit.next_out() <= now {
            let low = interrupt::TX_LOW.of(self.transmit.out().into());
            self.interrupts.raise(interrupt::TX_PACKET.mask() | low, now);
        } else if let Some(copy) = self.copy.take() {
            self.complete(copy);
        }
        self.begin_copy(dma);
    }

    fn complete(&mut self, copy: Copy) {
        match copy.side {
            Side::Receive => {
                let events = self.receive.complete(copy.vnic);
                self.raise_receive(events, interrupt::RX_DMA.mask());
            }
            Side::Transmit => {
                if self.transmit.complete(copy.vnic) {
                    self.send();
                }
                self.interrupts.raise(interrupt::TX_DMA.mask(), self.now);
            }
        }
    }

    fn raise_receive(&mut self, events: ReceiveEvents, always: u64) {
        let mut conditions = always;
        if events.rose {
            conditions |= interrupt::RX_HIGH.mask();
        }
        if events.emptied {
            conditions |= interrupt::RX_EMPTY.mask();
        }
        self.interrupts.raise(conditions, self.now);
    }

    fn send(&mut self) {
        if config::TX_EN.is_set(self.enables) {
            self.transmit.send(&mut self.port, self.now);
        }
    }

    /// Begins a copy if there is one and the cache port is free.
    fn begin_copy<D: Dma>(&mut self, dma: &mut D) {
        if self.copy.is_some() {
            return;
        }
        let mut next = self.transmit.next();
        while let Next::Refuse(vnic) = next {
            let low = interrupt::TX_LOW.of(self.transmit.refuse(vnic).into());
            self.interrupts.raise(low, self.now);
            self.complete(Copy { side: Side::Transmit, vnic, done_at: self.now });
            next = self.transmit.next();
        }
        if next == Next::NoRoom && self.transmit.stall() {
            self.interrupts.raise(interrupt::TX_FULL.mask(), self.now);
        }
        let receive = self.receive.has_ready();
        if !receive && !matches!(next, Next::Copy(..)) {
            return;
        }
        dma.wait_until(self.now.max(self.cache_port_free));
        let (side, vnic, done_at) = match next {
            Next::Copy(vnic, from, len) if !receive || self.last == Side::Receive => {
                let into = self.transmit.begin(vnic, len);
                (Side::Transmit, vnic, dma.read_ahead(Addr(from), into))
            }
            _ => {
                let Some((vnic, to, bytes)) = self.receive.begin() else {
                    return;
                };
                dma.write(Addr(to), bytes);
                (Side::Receive, vnic, dma.now())
            }
        };
        self.last = side;
        self.cache_port_free = done_at;
        self.copy = Some(Copy { side, vnic, done_at });
    }
}

fn receive_side(options: &Options, around: &Surroundings) -> ReceiveSide {
    let (size, mark) = (around.rx_fifo.0, options.rx_fifo_mark.0);
    ReceiveSide::new(options.sets(), size, mark)
}

fn transmit_side(options: &Options, around: &Surroundings) -> TransmitSide {
    let (size, mark) = (around.tx_fifo.0, options.tx_fifo_mark.0);
    TransmitSide::new(options.sets(), size, mark)
}

impl KernelDevice for Nic {
    fn set_memory_end(&mut self, end: Addr) {
        self.memory_end = end;
    }

    fn blocks(&self, index: u32) -> Option<Time> {
        self.would_wait(index).then_some(self.options.wait_timeout)
    }

    fn due(&self) -> Time {
        self.next_event()
    }

    fn port(&mut self) -> &mut Port {
        &mut self.port
    }

    fn frames_inside(&self) -> u64 {
        self.receive.packets() + self.transmit.packets()
    }

    fn received_inside(&self) -> u64 {
        self.receive.packets()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let misuses = Misuse::ALL.iter().map(|&misuse| (misuse.name(), self.misuses(misuse)));
        misuses.chain([("tx_oversized", self.transmit.oversized), ("reset_packets", self.reset_packets)]).collect()
    }
}

impl<D: Dma> KernelNic<D> for Nic {
    fn receive(&mut self, dma: &mut D, frame: &mut Frame) -> Result<(), DropCause> {
        self.run_to(dma, dma.now());
        if !config::RX_EN.is_set(self.enables) {
            return Err(RX_DISABLED);
        }
        let events = self.receive.arrive(frame).map_err(|refused| match refused {
            Refused::Full => DropCause::FIFO_FULL,
            Refused::LongerThanFifo => DropCause::LONGER_THAN_FIFO,
            Refused::Length => DropCause::OVERSIZED,
        })?;
        self.raise_receive(events, interrupt::RX_PACKET.mask());
        self.begin_copy(dma);
        Ok(())
    }

    fn write_register(&mut self, dma: &mut D, index: u32, value: u64) {
        self.run_to(dma, dma.now());
        if let Err(misuse) = self.write(dma, index, value) {
            self.misuses[misuse as usize] += 1;
        }
    }

    fn read_register(&mut self, dma: &mut D, index: u32) -> (u64, Time) {
        self.run_to(dma, dma.now());
        self.read(dma, index).unwrap_or_else(|misuse| {
            self.misuses[misuse as usize] += 1;
            (u64::MAX, self.now)
        })
    }

    fn advance(&mut self, dma: &mut D) {
        self.run_to(dma, dma.now());
    }
}
