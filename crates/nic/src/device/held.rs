//! Frames that wait in the FIFO, in order, each as the parser has left it.
//!
//! A frame stays where it was put until it is delivered, and its place is used again: what is stored field by
//! field and copied soon after waits for all stores before it.

use nicforge_platform::expect;
use nicforge_units::Time;
use nicforge_wire::FrameSummary;

use crate::{Arriving, PortId, RxFlags};

/// Frames that wait.
#[derive(Default)]
pub(super) struct HeldFrames {
    /// Places, `count` of which from `first` on, in a circle, are in use.
    places: Vec<Held>,
    first: usize,
    count: usize,
}

/// A frame that waits.
#[derive(Default)]
pub(super) struct Held {
    pub bytes: HeldBytes,
    /// What [`Arriving`] says beside the bytes.
    headers: usize,
    stamp: Time,
    rss_hash: u32,
    flags: RxFlags,
    mark: u64,
    segment: u16,
    queue: u16,
    /// What the parser found in it, where stages want to know.
    pub summary: FrameSummary,
    /// When the parser is done with it.
    pub parsed: Time,
}

/// Bytes of a frame that waits. Zeros at its end are not copied: behind `head` there are only
/// zeros.
#[derive(Default)]
pub(super) struct HeldBytes {
    bytes: Vec<u8>,
    head: usize,
    len: usize,
}

impl HeldFrames {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// `arriving` waits behind the others; the parser is done with it at `parsed`. Only stages need its `summary`.
    pub fn push(&mut self, arriving: &Arriving<'_>, summary: Option<&FrameSummary>, parsed: Time) {
        if self.count == self.places.len() {
            self.places.rotate_left(self.first);
            self.first = 0;
            self.places.push(Held::default());
        }
        let behind = self.place(self.count);
        let held = &mut self.places[behind];
        held.bytes.hold(arriving.bytes, arriving.head);
        held.headers = arriving.headers;
        held.stamp = arriving.stamp;
        held.rss_hash = arriving.rss_hash;
        held.flags = arriving.flags;
        held.mark = arriving.mark;
        held.segment = arriving.segment;
        held.queue = arriving.queue;
        if let Some(summary) = summary {
            held.summary = *summary;
        }
        held.parsed = parsed;
        self.count += 1;
    }

    /// Where the frame is that came `number` after the oldest.
    #[inline]
    fn place(&self, number: usize) -> usize {
        let place = self.first + number;
        match place < self.places.len() {
            true => place,
            false => place - self.places.len(),
        }
    }

    /// The oldest is delivered now. What the next ones need is prefetched: the bytes of one, and the place of the
    /// one behind it, which says where its bytes are.
    #[inline]
    pub fn expect_next(&self) {
        if let Some(next) = self.places.get(self.place(1)) {
            expect(&next.bytes.bytes, 0);
        }
        let behind = self.place(2);
        expect(&self.places, behind);
        // It may lie in two lines of the machine that simulates.
        expect(&self.places, behind + 1);
    }

    /// The one that waits for longest.
    #[inline]
    pub fn oldest(&mut self) -> Option<&mut Held> {
        match self.count {
            0 => None,
            _ => self.places.get_mut(self.first),
        }
    }

    /// The oldest has gone; its place gets its `bytes` back.
    #[inline]
    pub fn pop(&mut self, bytes: HeldBytes) {
        self.places[self.first].bytes = bytes;
        self.count -= 1;
        // What was used last is used again soonest.
        self.first = if self.count == 0 { 0 } else { self.place(1) };
    }
}

impl Held {
    /// The frame with these `bytes`, which came in at `port`.
    #[inline]
    pub fn arriving<'a>(&self, bytes: &'a HeldBytes, port: PortId) -> Arriving<'a> {
        Arriving {
            mark: self.mark,
            bytes: &bytes.bytes[..bytes.len],
            head: bytes.head,
            headers: self.headers,
            stamp: self.stamp,
            rss_hash: self.rss_hash,
            flags: self.flags,
            segment: self.segment,
            port,
            queue: self.queue,
        }
    }
}

impl HeldBytes {
    fn hold(&mut self, frame: &[u8], head: usize) {
        if head < self.head {
            self.bytes[head..self.head].fill(0);
        }
        if self.bytes.len() < frame.len() {
            self.bytes.resize(frame.len(), 0);
        }
        self.bytes[..head].copy_from_slice(&frame[..head]);
        self.head = head;
        self.len = frame.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_leave_in_order_with_their_own_bytes() {
        let mut held = HeldFrames::default();
        let frame = |number: usize| vec![number as u8; 60 + number % 50];
        let (mut came, mut gone) = (0, 0);
        for step in 0..300 {
            // More come than go, then the other way round, so that it grows and goes round.
            for _ in 0..if step < 100 { 3 } else { 1 } {
                let bytes = frame(came);
                let arriving = Arriving {
                    mark: 0,
                    bytes: &bytes,
                    head: bytes.len(),
                    headers: 14,
                    stamp: Time::from_ns(came as u64),
                    rss_hash: came as u32,
                    flags: RxFlags::default(),
                    segment: 0,
                    port: PortId(0),
                    queue: 3,
                };
                held.push(&arriving, None, Time::from_ns(came as u64));
                came += 1;
            }
            for _ in 0..2 {
                let Some(oldest) = held.oldest() else { break };
                let bytes = std::mem::take(&mut oldest.bytes);
                let arriving = oldest.arriving(&bytes, PortId(0));
                assert_eq!((arriving.bytes, arriving.queue), (&frame(gone)[..], 3));
                assert_eq!(arriving.rss_hash, gone as u32);
                held.pop(bytes);
                gone += 1;
            }
            assert_eq!(held.len(), came - gone);
        }
        assert!(gone > 300);
    }
}
