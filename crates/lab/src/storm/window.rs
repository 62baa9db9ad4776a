//! The window of a connection, TCP's way in DCCP: it grows by one with each acknowledgement in order, halves on a gap, and a
//! timeout empties the pipe. The receiver knows which numbers came. examples/p4/flexnic/storm.p4 has the same.

use nicforge_units::Time;

/// Tuples that may be in flight at first.
const FIRST_WINDOW: u32 = 4;
/// The first timeout, and the longest that doubles.
const FIRST_TIMEOUT: Time = Time::from_us(130);
const LONGEST_TIMEOUT: Time = Time::from_ms(1000);
/// Sequence numbers are short.
const SEQUENCES: u32 = 1 << 24;

/// The sender's side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    sent: u32,
    acknowledged: u32,
    /// Tuples that may be in flight, and those that are.
    window: u32,
    pipe: u32,
    /// The last acknowledgement, or the first tuple since nothing was in flight.
    since: Time,
    timeout: Time,
}

impl Default for Window {
    fn default() -> Window {
        let (window, since) = (FIRST_WINDOW, Time::ZERO);
        Window { sent: 0, acknowledged: 0, window, pipe: 0, since, timeout: FIRST_TIMEOUT }
    }
}

/// The receiver's side of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The highest sequence number that came, and which of the 64 up to it did, that one in bit 0.
    highest: u32,
    came: u64,
}

impl Seen {
    /// Whether `sequence` came before. What is far behind the others is taken for what did.
    pub fn has(&self, sequence: u32) -> bool {
        let bit = 1u64.checked_shl(ahead(sequence, self.highest)).unwrap_or(0);
        !self.is_higher(sequence) && (bit == 0 || self.came & bit != 0)
    }

    /// `sequence` came.
    pub fn add(&mut self, sequence: u32) {
        if self.is_higher(sequence) {
            self.came = self.came.checked_shl(ahead(self.highest, sequence)).unwrap_or(0) | 1;
            self.highest = sequence;
        } else {
            self.came |= 1u64.checked_shl(ahead(sequence, self.highest)).unwrap_or(0);
        }
    }

    fn is_higher(&self, sequence: u32) -> bool {
        (1..SEQUENCES / 2).contains(&ahead(self.highest, sequence))
    }
}

fn ahead(of: u32, what: u32) -> u32 {
    what.wrapping_sub(of) % SEQUENCES
}

impl Window {
    /// The sequence number of a tuple that leaves at `now`, if it may.
    pub fn send(&mut self, now: Time) -> Option<u32> {
        if self.pipe > 0 && now.saturating_sub(self.since) > self.timeout {
            self.pipe = 0;
            if self.timeout < LONGEST_TIMEOUT {
                self.timeout = self.timeout + self.timeout;
            }
        }
        if self.pipe == 0 {
            self.since = now;
        }
        if self.pipe >= self.window {
            return None;
        }
        self.sent = (self.sent + 1) % SEQUENCES;
        self.pipe += 1;
        Some(self.sent)
    }

    /// The peer has everything up to `upto`.
    pub fn acknowledge(&mut self, upto: u32, now: Time) {
        let (more, outstanding) = (ahead(self.acknowledged, upto), ahead(self.acknowledged, self.sent));
        if more == 0 || more > outstanding {
            return;
        }
        self.window = if more == 1 { self.window.saturating_add(1) } else { (self.window / 2).max(1) };
        self.pipe = self.pipe.saturating_sub(more);
        (self.acknowledged, self.since, self.timeout) = (upto, now, FIRST_TIMEOUT);
    }

    /// Tuples that may be in flight.
    #[cfg(test)]
    pub fn size(&self) -> u32 {
        self.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sends(window: &mut Window, now: Time) -> Vec<u32> {
        std::iter::from_fn(|| window.send(now)).collect()
    }

    #[test]
    fn it_grows_in_order_halves_on_a_gap_and_a_timeout_empties_the_pipe() {
        let mut window = Window::default();
        let at = Time::from_us;
        assert_eq!(sends(&mut window, at(1)), [1, 2, 3, 4]);
        (1..=4).for_each(|sequence| window.acknowledge(sequence, at(2)));
        assert_eq!((window.size(), sends(&mut window, at(3)).len()), (8, 8));
        // Two are missing: what they held is free, and the window half.
        window.acknowledge(7, at(4));
        assert_eq!((window.size(), sends(&mut window, at(4))), (4, vec![]));
        // Old and unknown acknowledgements say nothing.
        window.acknowledge(7, at(5));
        window.acknowledge(40, at(5));
        assert_eq!(window.size(), 4);
        assert!(sends(&mut window, at(4 + 130)).is_empty());
        assert_eq!(sends(&mut window, at(4 + 131)).len(), 4);
        // The next timeout is twice as long.
        assert!(sends(&mut window, at(135 + 260)).is_empty());
        assert_eq!(sends(&mut window, at(135 + 261)).len(), 4);
    }

    #[test]
    fn sequence_numbers_begin_anew_after_24_bits() {
        let mut window = Window { sent: SEQUENCES - 2, acknowledged: SEQUENCES - 2, ..Window::default() };
        assert_eq!(sends(&mut window, Time::ZERO), [SEQUENCES - 1, 0, 1, 2]);
        [SEQUENCES - 1, 0].iter().for_each(|&sequence| window.acknowledge(sequence, Time::ZERO));
        assert_eq!((window.size(), window.pipe), (6, 2));
    }
}
