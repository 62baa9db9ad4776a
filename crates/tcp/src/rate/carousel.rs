//! A timing wheel of flows (Carousel): each leaves when its rate allows, in the order of slots.

use std::collections::VecDeque;

use nicforge_units::Time;

/// Slots, as the queue manager of the paper has them.
const SLOTS: usize = 512;
/// Length of a slot: 256 cycles of 800 MHz.
const SLOT: Time = Time::from_ns(320);

/// A wheel of `slots` slots, each `width` long. What is due beyond its horizon goes into the last slot.
#[derive(Clone, Debug)]
pub struct Wheel {
    width: Time,
    slots: Vec<VecDeque<u32>>,
    /// Number of the slot, counted from time 0, that is emptied next.
    hand: u64,
    waiting: usize,
}

impl Wheel {
    /// An empty wheel; both arguments are at least 1.
    pub fn new(slots: usize, width: Time) -> Wheel {
        let (slots, width) = (slots.max(1), width.max(Time::from_ps(1)));
        Wheel { width, slots: vec![VecDeque::new(); slots], hand: 0, waiting: 0 }
    }

    /// Puts `flow` into the slot of `at`.
    pub fn put(&mut self, flow: u32, at: Time) {
        let last = self.hand + self.slots.len() as u64 - 1;
        let slot = at.as_ps().div_ceil(self.width.as_ps()).clamp(self.hand, last);
        let count = self.slots.len() as u64;
        self.slots[(slot % count) as usize].push_back(flow);
        self.waiting += 1;
    }

    /// The next flow whose slot has come by `now`.
    pub fn take(&mut self, now: Time) -> Option<u32> {
        let present = now.as_ps() / self.width.as_ps();
        if self.waiting == 0 {
            self.hand = self.hand.max(present);
            return None;
        }
        let count = self.slots.len() as u64;
        loop {
            if self.hand > present {
                return None;
            }
            if let Some(flow) = self.slots[(self.hand % count) as usize].pop_front() {
                self.waiting -= 1;
                return Some(flow);
            }
            // The present slot stays open: what is due now may still come.
            if self.hand == present {
                return None;
            }
            self.hand += 1;
        }
    }

    /// When [`Wheel::take`] has something next.
    pub fn due(&self) -> Time {
        if self.waiting == 0 {
            return Time::NEVER;
        }
        let count = self.slots.len() as u64;
        let ahead = (0..count).find(|ahead| !self.slots[((self.hand + ahead) % count) as usize].is_empty());
        Time::from_ps((self.hand + ahead.unwrap_or(0)) * self.width.as_ps())
    }

    /// Flows on the wheel.
    pub fn len(&self) -> usize {
        self.waiting
    }

    /// Whether no flow is on the wheel.
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Paced {
    /// The flow's next segment may leave then.
    next: Time,
    waits: bool,
}

/// Flows that have something to send, each at its rate.
#[derive(Clone, Debug)]
pub struct Carousel {
    wheel: Wheel,
    flows: Vec<Paced>,
}

impl Carousel {
    /// For flows numbered below `flows`, with the paper's wheel: 512 slots of 320 ns.
    pub fn new(flows: usize) -> Carousel {
        Carousel { wheel: Wheel::new(SLOTS, SLOT), flows: vec![Paced::default(); flows] }
    }

    /// Flows are numbered below `flows` from now on, if that is more than before.
    pub fn grow(&mut self, flows: usize) {
        if flows > self.flows.len() {
            self.flows.resize(flows, Paced::default());
        }
    }

    /// `flow` has something to send. A flow waits once, however often it says so; one without a number here is ignored.
    pub fn offer(&mut self, flow: u32, now: Time) {
        if let Some(paced) = self.flows.get_mut(flow as usize)
            && !std::mem::replace(&mut paced.waits, true)
        {
            self.wheel.put(flow, paced.next.max(now));
        }
    }

    /// A flow that may send one segment now.
    pub fn take(&mut self, now: Time) -> Option<u32> {
        let flow = self.wheel.take(now)?;
        self.flows[flow as usize].waits = false;
        Some(flow)
    }

    /// `flow` sent `bytes` at `now`; at `rate` bytes per second (0: unlimited) the next ones have to wait.
    pub fn sent(&mut self, flow: u32, bytes: u32, rate: u32, now: Time) {
        let Some(paced) = self.flows.get_mut(flow as usize) else { return };
        let gap = (u64::from(bytes) * 1_000_000_000_000).checked_div(u64::from(rate)).unwrap_or(0);
        paced.next = paced.next.max(now) + Time::from_ps(gap);
    }

    /// When [`Carousel::take`] has a flow next.
    pub fn due(&self) -> Time {
        self.wheel.due()
    }
}
