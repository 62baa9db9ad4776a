//! One direction of a link: it carries frames, late, and where a scenario wants it, not all of them, not in order, not
//! intact, and some twice. A link with a rate is the output port of a switch: a queue of limited length that drops
//! tails, and marks packets of ECN-capable transports when it is long (RFC 3168; the threshold as DCTCP has it).
//!
//! ```text
//!   send(time) ─► lose? ─► queue: full? mark? ─► rate ─► delay ─► late? twice? spoilt? ─► take()
//! ```

use std::collections::VecDeque;

use nicforge_units::{BitRate, Bytes, Time};
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

use crate::checksum::Accumulator;
use crate::headers::{ETHERNET_HEADER_LEN, EthernetView, Ipv4View, Ipv6View, ethertype};
use crate::rewrite::get16;

/// Both ECN bits: congestion experienced (RFC 3168, section 5).
const CONGESTION_EXPERIENCED: u8 = 0b11;

/// The output port of a switch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bottleneck {
    /// Frames leave at this rate.
    pub rate: BitRate,
    /// Bytes that may wait; a frame that does not fit behind them is dropped.
    pub queue: Bytes,
    /// A packet that finds more bytes than these is marked, if its transport is ECN-capable.
    pub mark_above: Option<Bytes>,
}

/// What a link does to frames.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkPlan {
    /// From a frame's last bit out to its last bit in.
    pub delay: Time,
    /// A rate below that of the port that sends, if there is one.
    pub bottleneck: Option<Bottleneck>,
    /// Share of frames that are lost.
    pub loss: f64,
    /// Share of frames that arrive twice.
    pub duplicates: f64,
    /// Share of frames that others overtake.
    pub reordered: f64,
    /// How much later these arrive.
    pub reordered_by: Time,
    /// Share of frames that arrive with one bit flipped.
    pub corrupted: f64,
}

/// What a link did to frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Frames lost by intent.
    pub lost: u64,
    /// Frames dropped because the queue was full.
    pub overflowed: u64,
    /// Packets marked with congestion experienced.
    pub marked: u64,
    /// Frames carried twice.
    pub doubled: u64,
    /// Frames held back.
    pub reordered: u64,
    /// Frames with a flipped bit.
    pub corrupted: u64,
}

/// What a link carries: bytes that it may change.
pub trait Carried: Clone {
    /// The frame's bytes.
    fn bytes(&self) -> &[u8];

    /// The frame's bytes, to change them; what else is known of them is void.
    fn bytes_mut(&mut self) -> &mut [u8];
}

impl Carried for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }
}

/// A frame on a link.
#[derive(Debug)]
struct OnLink<F> {
    arrives: Time,
    frame: F,
}

/// One direction of a link, with the frames on it.
#[derive(Debug)]
pub struct Link<F> {
    plan: LinkPlan,
    random: Pcg64,
    /// In the order of arrival; of those that arrive together, the first that was sent first.
    frames: VecDeque<OnLink<F>>,
    /// The arrival of the first of them: asked for far more often than it changes.
    due: Time,
    /// The bottleneck is busy until then.
    busy_until: Time,
    /// Buffers of frames that arrived, for the sender's next ones.
    spare: Vec<F>,
    counters: LinkCounters,
}

impl<F: Carried> Link<F> {
    /// An empty link; `seed` decides which frames are lost, doubled, spoilt and held back.
    pub fn new(plan: &LinkPlan, seed: u64) -> Link<F> {
        Link {
            plan: *plan,
            random: Pcg64::seed_from_u64(seed),
            frames: VecDeque::new(),
            due: Time::NEVER,
            busy_until: Time::ZERO,
            spare: Vec::new(),
            counters: LinkCounters::default(),
        }
    }

    /// A frame's last bit leaves its sender at `time`; calls come in the order of their times.
    pub fn send(&mut self, time: Time, mut frame: F) {
        if self.happens(self.plan.loss) {
            self.counters.lost += 1;
            return;
        }
        let Some(leaves) = self.leave_switch(time, &mut frame) else {
            return;
        };
        let mut arrives = leaves + self.plan.delay;
        if self.happens(self.plan.reordered) {
            self.counters.reordered += 1;
            arrives += self.plan.reordered_by;
        }
        if self.happens(self.plan.duplicates) {
            self.counters.doubled += 1;
            self.put(arrives, frame.clone());
        }
        if self.happens(self.plan.corrupted) {
            self.corrupt(&mut frame);
        }
        self.put(arrives, frame);
    }

    /// When the frame leaves the switch; `None` when its queue is full.
    fn leave_switch(&mut self, time: Time, frame: &mut F) -> Option<Time> {
        let Some(Bottleneck { rate, queue, mark_above }) = self.plan.bottleneck else {
            return Some(time);
        };
        let len = Bytes(frame.bytes().len() as u64);
        // The bytes that wait, as the time that they take to leave.
        let waits = self.busy_until.saturating_sub(time);
        let takes = rate.time_for(len);
        if waits + takes > rate.time_for(queue) {
            self.counters.overflowed += 1;
            return None;
        }
        let is_long = mark_above.is_some_and(|threshold| waits > rate.time_for(threshold));
        if is_long && mark_congestion(frame.bytes_mut()) {
            self.counters.marked += 1;
        }
        self.busy_until = self.busy_until.max(time) + takes;
        Some(self.busy_until)
    }

    fn corrupt(&mut self, frame: &mut F) {
        let bytes = frame.bytes_mut();
        if bytes.is_empty() {
            return;
        }
        let bit = self.random.next_u32() as usize % (bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        self.counters.corrupted += 1;
    }

    fn put(&mut self, arrives: Time, frame: F) {
        // Only frames that were held back are overtaken: the place is at the end or near it.
        let later = self.frames.iter().rev().take_while(|other| other.arrives > arrives).count();
        self.frames.insert(self.frames.len() - later, OnLink { arrives, frame });
        self.due = self.due.min(arrives);
    }

    fn happens(&mut self, share: f64) -> bool {
        // Without impairments nothing is drawn.
        share > 0.0 && f64::from(self.random.next_u32()) < share * 2f64.powi(32)
    }

    /// When the next frame arrives.
    pub fn due(&self) -> Time {
        self.due
    }

    /// Frames on the link.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether no frame is on the link.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// The next frame.
    pub fn take(&mut self) -> Option<F> {
        let first = self.frames.pop_front()?;
        self.due = self.frames.front().map_or(Time::NEVER, |next| next.arrives);
        Some(first.frame)
    }

    /// Takes a buffer that the receiving end needs no more.
    pub fn give_back(&mut self, buffer: F) {
        self.spare.push(buffer);
    }

    /// A buffer that the sending end may use again.
    pub fn take_back(&mut self) -> Option<F> {
        self.spare.pop()
    }

    /// What it did to frames.
    pub fn counters(&self) -> LinkCounters {
        self.counters
    }
}

/// Marks an IP packet of an ECN-capable transport with congestion experienced; whether it is one.
fn mark_congestion(frame: &mut [u8]) -> bool {
    let Ok(ethernet) = EthernetView::new(&*frame) else {
        return false;
    };
    let kind = ethernet.ethertype();
    let packet = &mut frame[ETHERNET_HEADER_LEN..];
    match kind {
        ethertype::IPV4 => {
            let Ok(mut header) = Ipv4View::new(packet) else {
                return false;
            };
            let service = header.type_of_service();
            if service & CONGESTION_EXPERIENCED == 0 {
                return false;
            }
            let first_word = |header: &Ipv4View<&mut [u8]>| get16(header.header(), 0);
            let (checksum, before) = (header.checksum(), first_word(&header));
            header.set_type_of_service(service | CONGESTION_EXPERIENCED);
            // Incrementally (RFC 1624), so that a wrong checksum stays wrong.
            let mut sum = Accumulator::new();
            [!checksum, !before, first_word(&header)].into_iter().for_each(|word| sum.add_word(word));
            header.set_checksum(sum.checksum());
            true
        }
        ethertype::IPV6 => {
            let Ok(mut header) = Ipv6View::new(packet) else {
                return false;
            };
            let (class, label) = (header.traffic_class(), header.flow_label());
            if class & CONGESTION_EXPERIENCED == 0 {
                return false;
            }
            header.set_class_and_label(class | CONGESTION_EXPERIENCED, label);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
