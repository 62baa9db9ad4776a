//! The emulating core's part: it plays the wrapped NIC, on packets of the physical rings.

use std::collections::VecDeque;

use nicforge_nic::{
    Arriving, Completion, CompletionReader, DATA_BYTES_MAX, DriverCosts, DropCause, ReceiveHalf,
};
use nicforge_platform::{Cpu, Part};
use nicforge_units::Time;

use super::NicHalf;
use super::layout::Physical;
use super::way::Way;
use crate::AnyNic;
use crate::priv_ring::layout::RxDescriptor;

/// Packets of a step, and buffers that the device is told of by one doorbell: a burst as
/// applications have it.
const BURST: usize = 32;

/// A physical ring, as the emulating core stands in it.
#[derive(Debug)]
struct Served {
    physical: Physical,
    completions: CompletionReader,
    /// Packets that are there to be seen.
    came: usize,
    /// What the core has read of the oldest of them, which found no descriptor of the emulated NIC.
    read: Option<(Completion, CompletionReader)>,
    /// That one waits for a doorbell.
    stuck: bool,
    /// Descriptors written so far, and what the device was told.
    tail: u64,
    rung: u64,
}

/// What the emulating core keeps between its steps.
#[derive(Debug)]
pub struct Emulator {
    rings: Vec<Served>,
    /// The ring of each completion that the device has written and that is not there to be seen yet,
    /// oldest first.
    announced: VecDeque<usize>,
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
    pub passed: usize,
    /// Frames that were lost on the way.
    pub lost: Vec<Lost>,
    /// Physical rings whose packets wait for a doorbell, as the emulated NIC has no descriptor.
    pub stuck: usize,
    /// Whether it moved packets and there are more that need not wait.
    pub more: bool,
    /// Register writes to the emulated NIC that meant nothing.
    pub refused: u64,
}

impl Emulated {
    /// Packets that are off the physical rings.
    pub fn moved(&self) -> usize {
        self.passed + self.lost.len()
    }
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
            came: 0,
            read: None,
            stuck: false,
            tail: physical.ring.first,
            rung: physical.ring.first,
            physical,
            completions,
        };
        Emulator {
            rings: rings.into_iter().map(served).collect(),
            announced: VecDeque::new(),
            next: 0,
            costs,
        }
    }

    /// Ring `number` has descriptors up to `tail`.
    pub fn filled_to(&mut self, number: usize, tail: u64) {
        let served = &mut self.rings[number];
        served.tail = served.tail.max(tail);
        served.rung = served.tail;
    }

    /// The device wrote a completion of ring `number`.
    pub fn announced(&mut self, number: usize) {
        self.announced.push_back(number);
    }

    /// A doorbell of the emulated NIC rang, which may have brought descriptors; nothing else does.
    fn try_again(&mut self) {
        for ring in &mut self.rings {
            ring.stuck = false;
        }
    }

    /// The oldest `count` completions of those that were announced can be seen now.
    fn see(&mut self, count: usize) {
        for ring in self.announced.drain(..count.min(self.announced.len())) {
            self.rings[ring].came += 1;
        }
    }
}

impl NicHalf {
    /// One step of the emulating core: what the wrapped NIC has to do, and a burst of packets from
    /// the physical rings in turn. Since the last step `seen` more of the device's completions have
    /// become visible. The core does not look at a ring without any: its polls hit its own L1, whose
    /// hits are part of `work`.
    pub fn emulate<C: Cpu>(&mut self, cpu: &mut C, seen: usize) -> Emulated {
        let part = cpu.enter(Part::Driver);
        let mut came_to = Emulated::default();
        for (index, value) in self.bells.drain(..) {
            self.emulator.try_again();
            let known = self.inner.write_register(&mut Way::new(cpu), index, value);
            came_to.refused += u64::from(!known);
        }
        if self.inner.due() <= cpu.now() {
            self.inner.advance(&mut Way::new(cpu));
        }
        self.emulator.see(seen);
        let Emulator {
            rings, next, costs, ..
        } = &mut self.emulator;
        for _ in 0..rings.len() {
            let number = *next;
            *next = (number + 1) % rings.len();
            let served = &mut rings[number];
            if served.can_move() {
                served.serve(cpu, &mut self.inner, costs, &mut came_to);
                if came_to.moved() == BURST {
                    break;
                }
            }
        }
        came_to.stuck = rings.iter().filter(|ring| ring.stuck).count();
        came_to.more = came_to.moved() > 0 && rings.iter().any(Served::can_move);
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

    /// Whether the packet of completion `number`, counted from the oldest that cannot be seen yet,
    /// will stand behind one that waits for a doorbell.
    pub fn will_wait(&self, number: usize) -> bool {
        let ring = self.emulator.announced.get(number);
        ring.is_some_and(|&ring| self.emulator.rings[ring].stuck)
    }

    /// When the emulating core has something to do even if no packet comes.
    pub fn emulation_due(&self) -> Time {
        self.inner.due()
    }
}

impl Served {
    /// Whether it has a packet that need not wait.
    fn can_move(&self) -> bool {
        self.came > 0 && !self.stuck
    }

    /// Passes packets on to `inner` until the step has moved a burst, and gives the device the
    /// buffers that `inner` would have used.
    fn serve<C: Cpu>(
        &mut self,
        cpu: &mut C,
        inner: &mut AnyNic,
        costs: &DriverCosts,
        came_to: &mut Emulated,
    ) {
        let before = self.tail;
        while came_to.moved() < BURST
            && let Some((completion, after)) = self.oldest(cpu)
        {
            match self.pass_on(cpu, inner, &completion) {
                Fate::Passed => came_to.passed += 1,
                Fate::Lost(lost) => came_to.lost.push(lost),
                Fate::Waits => {
                    self.read = Some((completion, after));
                    self.stuck = true;
                    break;
                }
            }
            cpu.work(costs.rx_packet);
            self.completions = after;
            self.came -= 1;
            self.tail += 1;
        }
        if self.tail != before {
            cpu.work(costs.burst);
        }
        // Small rings must not run dry for it.
        let batch = (self.physical.ring.entries / 4).clamp(1, BURST as u64);
        if self.tail - self.rung >= batch {
            self.rung = self.tail;
            cpu.mmio_write(self.physical.doorbell, self.tail);
        }
    }

    /// The completion of the oldest packet, and the reader behind it.
    fn oldest<C: Cpu>(&mut self, cpu: &mut C) -> Option<(Completion, CompletionReader)> {
        match self.came {
            0 => None,
            _ if self.read.is_some() => self.read.take(),
            1 => self.completions.peek_last(cpu),
            _ => self.completions.peek(cpu),
        }
    }

    /// Passes one packet on and puts a buffer in its place; but if it has to wait.
    fn pass_on<C: Cpu>(&self, cpu: &mut C, inner: &mut AnyNic, frame: &Completion) -> Fate {
        /// The core never looks at the bytes of a frame, nor has it any.
        static UNSEEN: [u8; DATA_BYTES_MAX as usize] = [0; DATA_BYTES_MAX as usize];
        let ring = &self.physical.ring;
        if frame.len == 0 {
            // No buffer of ours, and the device has counted the frame: software gave it, and
            // nobody takes it back.
            let given: RxDescriptor = cpu.load(ring.descriptor(frame.entry.into()));
            ring.post(cpu, self.tail, given.mbuf);
            return Fate::Passed;
        }
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
            let mut way = Way::handing_over(cpu, frame.mbuf);
            let outcome = inner.receive(&mut way, &arriving);
            let instead = way.instead();
            match outcome {
                Ok(()) => {
                    // Every interface writes a frame that it delivers into a buffer of its own.
                    ring.post(cpu, self.tail, instead.unwrap_or(frame.mbuf));
                    return Fate::Passed;
                }
                // The descriptor is used up; the packet goes on to the next.
                Err(DropCause::BAD_DESCRIPTOR) => {}
                Err(DropCause::NO_DESCRIPTOR) => return Fate::Waits,
                Err(cause) => {
                    ring.post(cpu, self.tail, frame.mbuf);
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
