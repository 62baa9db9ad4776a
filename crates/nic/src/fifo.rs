//! The MAC's receive FIFO: holds frames until the NIC has drained them, drops when it is full.

use std::collections::VecDeque;

use nicforge_units::{Bytes, Time};

/// Frames that came in and have not yet gone to the host.
#[derive(Debug)]
pub struct MacFifo {
    size: Bytes,
    held: Bytes,
    frames: VecDeque<(Time, Bytes)>,
    /// How many of them are gone at a known time: the first ones, for frames leave in order.
    timed: usize,
}

impl MacFifo {
    /// An empty FIFO of `size` bytes.
    pub fn new(size: Bytes) -> MacFifo {
        MacFifo { size, held: Bytes(0), frames: VecDeque::new(), timed: 0 }
    }

    /// Whether a frame of `len` bytes fits at `now`.
    #[inline]
    pub fn accepts(&mut self, now: Time, len: Bytes) -> bool {
        while let Some(&(drained, bytes)) = self.frames.front()
            && drained <= now
        {
            self.held = self.held - bytes;
            self.frames.pop_front();
            self.timed -= 1;
        }
        self.held + len <= self.size
    }

    /// A frame of `len` bytes came in and is gone at `drained`: `Time::NEVER` when that is not
    /// known yet, and then for all that come behind it until [`drain_next`](Self::drain_next).
    #[inline]
    pub fn hold(&mut self, len: Bytes, drained: Time) {
        self.held += len;
        self.timed += usize::from(drained < Time::NEVER);
        self.frames.push_back((drained, len));
    }

    /// The first of the frames held until [`Time::NEVER`] will be gone at `drained`.
    pub fn drain_next(&mut self, drained: Time) {
        if let Some((time, _)) = self.frames.get_mut(self.timed) {
            *time = drained;
            self.timed += 1;
        }
    }

    /// From when on a frame of `len` bytes fits, if no other comes before; `Time::NEVER` when that
    /// is not known yet.
    pub fn room_at(&self, len: Bytes) -> Time {
        let mut held = self.held;
        let mut at = Time::ZERO;
        for &(drained, bytes) in &self.frames {
            if held + len <= self.size {
                break;
            }
            held = held - bytes;
            at = drained;
        }
        at
    }

    /// Frames still inside at `now`.
    pub fn frames_inside(&self, now: Time) -> usize {
        self.frames.iter().filter(|(drained, _)| *drained > now).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_full_until_the_first_frame_is_drained() {
        let mut fifo = MacFifo::new(Bytes(3000));
        for _ in 0..2 {
            assert!(fifo.accepts(Time::ZERO, Bytes(1500)));
            fifo.hold(Bytes(1500), Time::from_ns(500));
        }
        assert!(!fifo.accepts(Time::from_ns(499), Bytes(60)));
        assert_eq!(fifo.frames_inside(Time::from_ns(499)), 2);
        assert_eq!(fifo.room_at(Bytes(60)), Time::from_ns(500));
        assert!(fifo.accepts(Time::from_ns(500), Bytes(1500)));
        assert_eq!(fifo.room_at(Bytes(60)), Time::ZERO);
    }

    #[test]
    fn frames_whose_turn_nobody_knows_yet_drain_in_order() {
        let mut fifo = MacFifo::new(Bytes(3000));
        fifo.hold(Bytes(1000), Time::from_ns(100));
        fifo.hold(Bytes(1000), Time::NEVER);
        fifo.hold(Bytes(1000), Time::NEVER);
        fifo.drain_next(Time::from_ns(200));
        assert_eq!(fifo.frames_inside(Time::from_ns(100)), 2);
        assert!(fifo.accepts(Time::from_ns(200), Bytes(2000)));
        assert!(!fifo.accepts(Time::from_ns(999), Bytes(2001)));
    }
}
