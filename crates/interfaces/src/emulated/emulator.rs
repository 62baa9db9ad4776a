//! The emulating core's part: it plays the wrapped NIC, on packets of the physical rings.

use nicforge_nic::{
    Arriving, Completion, CompletionReader, DATA_BYTES_MAX, DriverCosts, DropCause, ReceiveHalf,
};
use nicforge_platform::{Cpu, Part};
use nicforge_units::Time;

use super::NicHalf;
use super::layout::Physical;
use super::way::Way;
use crate::AnyNic;

/// Packets taken from a physical ring at a time: a receive burst as applications have it.
const BURST: usize = 32;

/// A physical ring, as the emulating core stands in it.
#[derive(Debug)]
struct Served {
    physical: Physical,
    completions: CompletionReader,
    /// Descriptors written so far.
    tail: u64,
}

/// What the emulating core keeps between its steps.
#[derive(Debug)]
pub struct Emulator {
    rings: Vec<Served>,
    /// Which ring's turn it is.
    next: usize,
    costs: DriverCosts,
}

/// A frame that the device delivered and the emulated NIC could not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Why.
    pub cause: DropCause,
    /// Its RSS hash.
    pub rss_hash: u32,
    /// When it came.
    pub stamp: Time,
}

/// What one step of the emulating core came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Emulated {
    /// Packets that were passed on.
    pub passed: u64,
    /// Frames that were lost on the way.
    pub lost: Vec<Lost>,
    /// Physical rings whose packets wait for the emulated NIC to get descriptors.
    pub waiting: usize,
    /// Register writes to the emulated NIC that meant nothing.
    pub refused: u64,
}

/// What became of the oldest packet of a physical ring.
enum Fate {
    Passed,
    Lost(Lost),
    Waits,
}

impl Emulator {
    /// A core that serves `rings`, which count from their first positions.
    pub fn new(rings: Vec<(Physical, CompletionReader)>, costs: DriverCosts) -> Emulator {
        let served = |(physical, completions): (Physical, _)| Served {
            tail: physical.ring.first,
            physical,
            completions,
        };
        Emulator {
            rings: rings.into_iter().map(served).collect(),
            next: 0,
            costs,
        }
    }

    /// Ring `number` has descriptors up to `tail`.
    pub fn filled_to(&mut self, number: usize, tail: u64) {
        let served = &mut self.rings[number];
        served.tail = served.tail.max(tail);
    }
}

impl NicHalf {
    /// One step of the emulating core: what the wrapped NIC has to do, and a burst from the next
    /// physical ring that has packets.
    pub fn emulate<C: Cpu>(&mut self, cpu: &mut C) -> Emulated {
        let part = cpu.enter(Part::Driver);
        let mut came_to = Emulated::default();
        while let Some((index, value)) = self.bells.pop_first() {
            let known = self.inner.write_register(&mut Way::new(cpu), index, value);
            came_to.refused += u64::from(!known);
        }
        if self.inner.due() <= cpu.now() {
            self.inner.advance(&mut Way::new(cpu));
        }
        for _ in 0..self.emulator.rings.len() {
            let ring = self.emulator.next;
            self.emulator.next = (ring + 1) % self.emulator.rings.len();
            let Emulator { rings, costs, .. } = &mut self.emulator;
            rings[ring].serve(cpu, &mut self.inner, costs, &mut came_to);
            if came_to.passed > 0 {
                break;
            }
        }
        cpu.enter(part);
        came_to
    }

    /// Doorbells of the emulated NIC rang since its core looked.
    pub fn rang(&self) -> bool {
        !self.bells.is_empty()
    }

    /// Physical rings that the emulating core serves.
    pub fn rings(&self) -> usize {
        self.emulator.rings.len()
    }

    /// When the emulating core has something to do even if no packet comes.
    pub fn emulation_due(&self) -> Time {
        self.inner.due()
    }
}

impl Served {
    /// Passes up to a burst of packets to `inner`, and gives the device the buffers that `inner`
    /// would have used.
    fn serve<C: Cpu>(
        &mut self,
        cpu: &mut C,
        inner: &mut AnyNic,
        costs: &DriverCosts,
        came_to: &mut Emulated,
    ) {
        let before = self.tail;
        for _ in 0..BURST {
            let Some(completion) = self.completions.peek(cpu) else {
                break;
            };
            match self.pass_on(cpu, inner, &completion) {
                Fate::Passed => came_to.passed += 1,
                Fate::Lost(lost) => came_to.lost.push(lost),
                Fate::Waits => {
                    came_to.waiting += 1;
                    break;
                }
            }
            cpu.work(costs.rx_packet);
            self.completions.advance();
            self.tail += 1;
        }
        if self.tail != before {
            cpu.work(costs.burst);
            cpu.mmio_write(self.physical.doorbell, self.tail);
        }
    }

    /// Passes one packet on and puts a buffer in its place; but if it has to wait.
    fn pass_on<C: Cpu>(&self, cpu: &mut C, inner: &mut AnyNic, frame: &Completion) -> Fate {
        /// The core never looks at the bytes of a frame, nor has it any.
        static UNSEEN: [u8; DATA_BYTES_MAX as usize] = [0; DATA_BYTES_MAX as usize];
        let note = self.physical.note(frame.entry.into());
        let mbuf = frame.buffer(cpu, note);
        let arriving = Arriving {
            bytes: &UNSEEN[..frame.len as usize],
            head: frame.len as usize,
            headers: frame.len as usize,
            stamp: frame.stamp,
            rss_hash: frame.rss_hash,
            flags: frame.flags,
            segment: frame.segment,
            port: frame.port_id(),
            queue: frame.ring,
        };
        loop {
            if frame.len == 0 {
                // No buffer of ours, and the device has counted the frame: software gave it, and
                // nobody takes it back.
                self.physical.post(cpu, self.tail, mbuf);
                return Fate::Passed;
            }
            let mut way = Way::handing_over(cpu, mbuf);
            let outcome = inner.receive(&mut way, &arriving);
            let instead = way.instead();
            match outcome {
                Ok(()) => {
                    // Every interface writes a frame that it delivers into a buffer of its own.
                    self.physical.post(cpu, self.tail, instead.unwrap_or(mbuf));
                    return Fate::Passed;
                }
                // The descriptor is used up; the packet goes on to the next.
                Err(DropCause::BAD_DESCRIPTOR) => {}
                Err(DropCause::NO_DESCRIPTOR) => return Fate::Waits,
                Err(cause) => {
                    self.physical.post(cpu, self.tail, mbuf);
                    return Fate::Lost(Lost {
                        cause,
                        rss_hash: frame.rss_hash,
                        stamp: frame.stamp,
                    });
                }
            }
        }
    }
}
