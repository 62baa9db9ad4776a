//! The transmit side of a MAC: one frame at a time at the port's rate.

use std::collections::VecDeque;

use nicforge_units::{BitRate, Bytes, Time};

use super::Frame;

/// Where a NIC's frames leave for the wire.
#[derive(Debug)]
pub struct Port {
    rate: BitRate,
    overhead: Bytes,
    free_at: Time,
    sent: VecDeque<(Time, Frame)>,
    frames: u64,
    bytes: u64,
    /// Room for the bytes of further frames.
    spare: Vec<Frame>,
}

impl Port {
    /// An idle port; `overhead` is what each frame takes on the wire beside its own bytes.
    pub fn new(rate: BitRate, overhead: Bytes) -> Port {
        Port { rate, overhead, free_at: Time::ZERO, sent: VecDeque::new(), frames: 0, bytes: 0, spare: Vec::new() }
    }

    /// When the next frame can begin.
    pub fn free_at(&self) -> Time {
        self.free_at
    }

    /// Sends a frame, not before `now`; returns when its last bit is out.
    pub fn send(&mut self, now: Time, frame: Frame) -> Time {
        let begins = now.max(self.free_at);
        let bytes = Bytes(frame.len() as u64);
        let ends = begins + self.rate.time_for(bytes);
        self.free_at = begins + self.rate.time_for(bytes + self.overhead);
        self.frames += 1;
        self.bytes += bytes.0;
        self.sent.push_back((ends, frame));
        ends
    }

    /// Whether a frame left that was not collected yet.
    #[inline]
    pub fn has_sent(&self) -> bool {
        !self.sent.is_empty()
    }

    /// The next frame that left, and when its last bit did.
    pub fn take_sent(&mut self) -> Option<(Time, Frame)> {
        self.sent.pop_front()
    }

    /// Frames and bytes sent so far.
    pub fn counts(&self) -> (u64, u64) {
        (self.frames, self.bytes)
    }

    /// An empty buffer for the bytes of a frame, an old one if there is one.
    pub fn buffer(&mut self) -> Frame {
        self.spare.pop().unwrap_or_default()
    }

    /// Gives a frame's memory back for further ones.
    pub fn recycle(&mut self, mut frame: Frame) {
        frame.clear();
        self.spare.push(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_leave_one_after_the_other_at_the_ports_rate() {
        let mut port = Port::new(BitRate::from_gbps(10.0), Bytes(24));
        // 1000 bytes are 800 ns, the gap and preamble 19.2 ns.
        assert_eq!(port.send(Time::ZERO, vec![1; 1000].into()), Time::from_ns(800));
        assert_eq!(port.free_at(), Time::from_ps(819_200));
        assert_eq!(port.send(Time::from_ns(100), vec![2; 1000].into()), Time::from_ps(1_619_200));
        assert_eq!(port.send(Time::from_us(9), vec![3; 1000].into()), Time::from_ns(9_800));
        let order: Vec<u8> = std::iter::from_fn(|| port.take_sent()).map(|(_, frame)| frame.bytes()[0]).collect();
        assert_eq!(order, [1, 2, 3]);
        assert_eq!(port.counts(), (3, 3000));
    }
}
