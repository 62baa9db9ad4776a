//! A link between two ports: it carries frames, late, and where a scenario wants it, not all of
//! them, not in order, and some twice.

use std::collections::VecDeque;

use nicforge_interfaces::kernel::Frame;
use nicforge_units::Time;
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

/// What a link does to frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WirePlan {
    /// From a frame's last bit out to its last bit in.
    pub delay: Time,
    /// Share of frames that are lost.
    pub loss: f64,
    /// Share of frames that come twice.
    pub duplicates: f64,
    /// Share of frames that others overtake.
    pub reordered: f64,
    /// How much later these come.
    pub reordered_by: Time,
}

/// One direction of a link, with the frames on it.
pub struct Wire {
    plan: WirePlan,
    random: Pcg64,
    /// With their arrival, in its order; of those that arrive together, the first that was sent first.
    frames: VecDeque<(Time, Frame)>,
    /// The arrival of the first of them: asked for far more often than it changes.
    due: Time,
    /// Buffers of frames that arrived, for the sender's next ones.
    spare: Vec<Frame>,
    /// Frames that were lost, by intent.
    pub lost: u64,
}

impl Wire {
    /// An empty link; `seed` decides which frames are lost, doubled and held back.
    pub fn new(plan: &WirePlan, seed: u64) -> Wire {
        Wire {
            plan: *plan,
            random: Pcg64::seed_from_u64(seed),
            frames: VecDeque::new(),
            due: Time::NEVER,
            spare: Vec::new(),
            lost: 0,
        }
    }

    /// A frame's last bit leaves at `time`.
    pub fn send(&mut self, time: Time, frame: Frame) {
        if self.happens(self.plan.loss) {
            self.lost += 1;
            return;
        }
        let mut arrives = time + self.plan.delay;
        if self.happens(self.plan.reordered) {
            arrives += self.plan.reordered_by;
        }
        if self.happens(self.plan.duplicates) {
            self.put(arrives, frame.clone());
        }
        self.put(arrives, frame);
    }

    fn put(&mut self, arrives: Time, frame: Frame) {
        // Only what was held back is overtaken: the place is at the end or near it.
        let before = self.frames.iter().rev();
        match before.take_while(|(time, _)| *time > arrives).count() {
            0 => self.frames.push_back((arrives, frame)),
            later => (self.frames).insert(self.frames.len() - later, (arrives, frame)),
        }
        self.due = self.due.min(arrives);
    }

    fn happens(&mut self, share: f64) -> bool {
        // Without impairments nothing is drawn.
        share > 0.0 && (self.random.next_u32() as f64) < share * 2f64.powi(32)
    }

    /// When the next frame arrives.
    pub fn due(&self) -> Time {
        self.due
    }

    /// A buffer that the receiving end needs no more.
    pub fn give_back(&mut self, buffer: Frame) {
        self.spare.push(buffer);
    }

    /// A buffer that the sending end may use again.
    pub fn take_back(&mut self) -> Option<Frame> {
        self.spare.pop()
    }

    /// The next frame.
    pub fn take(&mut self) -> Option<Frame> {
        let (_, frame) = self.frames.pop_front()?;
        self.due = self.frames.front().map_or(Time::NEVER, |&(time, _)| time);
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_met_and_late_frames_are_overtaken() {
        let plan = WirePlan {
            delay: Time::from_us(1),
            loss: 0.1,
            duplicates: 0.2,
            reordered: 0.05,
            reordered_by: Time::from_us(10),
        };
        let mut wire = Wire::new(&plan, 7);
        for number in 0..10_000u32 {
            wire.send(Time::from_us(u64::from(number)), number.to_le_bytes().to_vec().into());
        }
        let lost = wire.lost as f64 / 10_000.0;
        assert!((lost - 0.1).abs() < 0.01, "{lost}");
        let (mut last, mut overtaken, mut doubled) = (None, 0, 0);
        let mut arrived = 0.0;
        while let Some(frame) = wire.take() {
            let number = u32::from_le_bytes(frame.bytes().try_into().unwrap());
            doubled += u32::from(last == Some(number));
            overtaken += u32::from(last > Some(number));
            last = Some(number);
            arrived += 1.0;
        }
        assert!((f64::from(doubled) / 9000.0 - 0.2).abs() < 0.02, "{doubled}");
        assert!((f64::from(overtaken) / arrived - 0.05).abs() < 0.01, "{overtaken}");
    }
}
