//! The heuristic that chooses between private and shared rings (shRing, section 5.1.5), as the
//! control core runs it.

use std::collections::VecDeque;

use nicforge_units::{BitRate, Bytes, Time};

use super::layout::{PRIVATE, SHARED};

/// The parameters of the heuristic; their values come from settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heuristic {
    /// Time from one look to the next.
    pub step: Time,
    /// Looks that are remembered.
    pub window: usize,
    /// Sharing needs more throughput than this.
    pub throughput: BitRate,
    /// Sharing needs more memory bandwidth than this, by the NICs alone.
    pub memory: BitRate,
    /// A core is overloaded when the standard deviation of the cores' times between receive calls
    /// is larger than so many times their median.
    pub gap_ratio: f64,
    /// Rings are shared when more than this part of the window speaks for it.
    pub on_share: f64,
    /// Rings become private again when at least this part of the window speaks against it.
    pub off_share: f64,
}

/// What counters said at one time, over all NICs and cores.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// When that was.
    pub at: Time,
    /// Bytes of frames that came in from the wires, dropped ones included.
    pub received: Bytes,
    /// Bytes of host memory that NICs read or wrote.
    pub transferred: Bytes,
    /// Receive calls by core, empty ones included.
    pub calls: Vec<u64>,
}

impl Reading {
    /// What happened since `before`.
    pub fn since(&self, before: &Reading) -> Observation {
        let earlier = before.calls.iter().chain(std::iter::repeat(&0));
        let calls = self.calls.iter().zip(earlier);
        // Software that began anew counts from zero again.
        let calls = calls.map(|(&now, &before)| now.checked_sub(before).unwrap_or(now));
        Observation {
            elapsed: self.at - before.at,
            received: Bytes(self.received.0 - before.received.0),
            transferred: Bytes(self.transferred.0 - before.transferred.0),
            calls: calls.collect(),
        }
    }
}

/// What the control core sees of the time since it last looked, as the difference of two [`Reading`]s.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// How long that was.
    pub elapsed: Time,
    /// Bytes of frames that came in.
    pub received: Bytes,
    /// Bytes of host memory that NICs read or wrote.
    pub transferred: Bytes,
    /// Receive calls by core.
    pub calls: Vec<u64>,
}

/// The state of the control core.
#[derive(Clone, Debug)]
pub struct Control {
    heuristic: Heuristic,
    /// For each look, whether it spoke for sharing; the newest last.
    window: VecDeque<bool>,
    /// How long each core had not called receive when it was last looked at.
    silent: Vec<Time>,
    active: u16,
}

impl Control {
    /// Begins with private rings, as steering does.
    pub fn new(heuristic: Heuristic) -> Control {
        Control { heuristic, window: VecDeque::new(), silent: Vec::new(), active: PRIVATE }
    }

    /// When to look next, after each look.
    pub fn step(&self) -> Time {
        self.heuristic.step
    }

    /// Looks; returns the set that steering is to use when that changes.
    pub fn look(&mut self, seen: &Observation) -> Option<u16> {
        if self.window.len() == self.heuristic.window {
            self.window.pop_front();
        }
        let look = self.speaks_for_sharing(seen);
        self.window.push_back(look);
        let wanted = self.wanted();
        let changes = wanted != self.active;
        self.active = wanted;
        changes.then_some(wanted)
    }

    /// "When more than half of throughput and memory bandwidth measurements exceed a predefined
    /// threshold while no core is overloaded, we switch to shRing rings. To switch back, we wait
    /// until 7/8 of measurements are below the threshold." Looks that are yet to come count for
    /// neither.
    fn wanted(&self) -> u16 {
        let part = |count: usize| count as f64 / self.heuristic.window as f64;
        let for_sharing = self.window.iter().filter(|&&look| look).count();
        let against = self.window.len() - for_sharing;
        match self.active {
            PRIVATE if part(for_sharing) > self.heuristic.on_share => SHARED,
            SHARED if part(against) >= self.heuristic.off_share => PRIVATE,
            active => active,
        }
    }

    fn speaks_for_sharing(&mut self, seen: &Observation) -> bool {
        let seconds = seen.elapsed.as_seconds();
        let exceeds =
            |bytes: Bytes, threshold: BitRate| bytes.0 as f64 * 8.0 > threshold.as_bits_per_second() as f64 * seconds;
        let gaps = self.gaps(seen);
        exceeds(seen.received, self.heuristic.throughput)
            && exceeds(seen.transferred, self.heuristic.memory)
            && !is_overloaded(gaps, self.heuristic.gap_ratio)
    }

    /// Each core's mean time between receive calls, in nanoseconds. A call may last for several
    /// looks: its time is counted from the last look that saw one.
    fn gaps(&mut self, seen: &Observation) -> Vec<f64> {
        self.silent.resize(seen.calls.len(), Time::ZERO);
        let cores = seen.calls.iter().zip(&mut self.silent);
        cores
            .map(|(&calls, silent)| {
                let time = *silent + seen.elapsed;
                *silent = if calls == 0 { time } else { Time::ZERO };
                time.as_ns() / calls.max(1) as f64
            })
            .collect()
    }
}

/// Whether some cores call receive much less often than others: the cores' `gaps` between calls
/// deviate by more than `ratio` times their median.
///
/// Of an even number the lower one in the middle is the median. Between the two it would be as large as the overload
/// itself where half of the cores are overloaded, and none of two could ever stand out.
fn is_overloaded(mut gaps: Vec<f64>, ratio: f64) -> bool {
    gaps.sort_by(f64::total_cmp);
    let count = gaps.len();
    if count == 0 {
        return false;
    }
    let median = gaps[(count - 1) / 2];
    let mean = gaps.iter().sum::<f64>() / count as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count as f64;
    variance.sqrt() > ratio * median
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heuristic() -> Heuristic {
        Heuristic {
            step: Time::from_ms(10),
            window: 16,
            throughput: BitRate::from_gbps(170.0),
            memory: BitRate::from_gbps(200.0),
            gap_ratio: 32.0,
            on_share: 0.5,
            off_share: 0.875,
        }
    }

    /// A look at 10 ms with so many Gbit/s received and transferred.
    fn look(control: &mut Control, received: f64, transferred: f64, calls: &[u64]) -> Option<u16> {
        let bytes = |gbps: f64| Bytes((gbps * 1e9 / 8.0 * 0.01) as u64);
        control.look(&Observation {
            elapsed: Time::from_ms(10),
            received: bytes(received),
            transferred: bytes(transferred),
            calls: calls.to_vec(),
        })
    }

    const EVEN: [u64; 4] = [10_000, 10_000, 10_000, 10_000];

    /// In which of `count` looks the set changes, and to which.
    fn switches(
        control: &mut Control,
        count: usize,
        mut next: impl FnMut(&mut Control, usize) -> Option<u16>,
    ) -> Vec<(usize, u16)> {
        (1..=count).filter_map(|number| Some((number, next(control, number)?))).collect()
    }

    #[test]
    fn nine_of_sixteen_looks_turn_sharing_on_and_fourteen_turn_it_off() {
        let mut control = Control::new(heuristic());
        let on = switches(&mut control, 40, |c, _| look(c, 180.0, 400.0, &EVEN));
        assert_eq!(on, [(9, SHARED)]);
        let off = switches(&mut control, 40, |c, _| look(c, 100.0, 400.0, &EVEN));
        assert_eq!(off, [(14, PRIVATE)]);
        let on = switches(&mut control, 40, |c, _| look(c, 180.0, 400.0, &EVEN));
        assert_eq!(on, [(9, SHARED)]);
    }

    #[test]
    fn both_throughput_and_memory_must_exceed_their_thresholds() {
        for (received, transferred) in [(170.0, 400.0), (200.0, 200.0), (0.0, 0.0)] {
            let mut control = Control::new(heuristic());
            let none = switches(&mut control, 40, |c, _| look(c, received, transferred, &EVEN));
            assert_eq!(none, []);
        }
    }

    #[test]
    fn looks_that_alternate_change_nothing_either_way() {
        let alternate = |c: &mut Control, number: usize| {
            let gbps = if number.is_multiple_of(2) { 180.0 } else { 1.0 };
            look(c, gbps, 400.0, &EVEN)
        };
        let mut control = Control::new(heuristic());
        assert_eq!(switches(&mut control, 100, alternate), []);
        switches(&mut control, 20, |c, _| look(c, 180.0, 400.0, &EVEN));
        assert_eq!(control.active, SHARED);
        assert_eq!(switches(&mut control, 100, alternate), []);
    }

    #[test]
    fn a_core_that_calls_seldom_keeps_rings_private() {
        // Seven cores at 1 us between calls: the eighth deviates by 32 medians from 97 us on.
        let cores = |calls| [10_000, 10_000, 10_000, 10_000, 10_000, 10_000, 10_000, calls];
        for (calls, expected) in [(200, vec![(9, SHARED)]), (105, vec![(9, SHARED)]), (100, vec![]), (0, vec![])] {
            let mut control = Control::new(heuristic());
            let seen = switches(&mut control, 40, |c, _| look(c, 180.0, 400.0, &cores(calls)));
            assert_eq!(seen, expected, "{calls} calls");
        }
        // All alike are a load, not an overload of some.
        let mut control = Control::new(heuristic());
        let slow = switches(&mut control, 40, |c, _| look(c, 180.0, 400.0, &[0; 8]));
        assert_eq!(slow, [(9, SHARED)]);
    }

    /// Those that are not overloaded are what the others are compared with, as long as they are half of all.
    #[test]
    fn as_many_as_half_of_the_cores_may_be_overloaded() {
        // In medians: two halves deviate by (r - 1) / 2, which is more than 32 from r = 66 on.
        for cores in [2, 4, 8, 16] {
            for (ratio, expected) in [(64.0, false), (66.0, true)] {
                let gap = |core| if core < cores / 2 { 1.0 } else { ratio };
                let gaps = (0..cores).map(gap).collect();
                assert_eq!(is_overloaded(gaps, 32.0), expected, "{cores} cores");
            }
        }
        // Of more than half nobody can tell whether the others are fast or they are slow.
        assert!(!is_overloaded(vec![1.0, 1e6, 1e6], 32.0));
        assert!(!is_overloaded(vec![1.0], 0.0));
    }

    #[test]
    fn one_of_two_cores_that_calls_seldom_keeps_rings_private() {
        for (calls, expected) in [(200, vec![(9, SHARED)]), (100, vec![]), (0, vec![])] {
            let mut control = Control::new(heuristic());
            let seen = switches(&mut control, 40, |c, _| look(c, 180.0, 400.0, &[10_000, calls]));
            assert_eq!(seen, expected, "{calls} calls");
        }
    }

    /// One call of the last core lasts for 20 looks: 97 times as long as the others' from the
    /// tenth on.
    #[test]
    fn a_call_may_last_longer_than_a_look() {
        let mut control = Control::new(Heuristic { window: 1, off_share: 1.0, ..heuristic() });
        let changes = switches(&mut control, 40, |c, number| {
            let last = u64::from(number.is_multiple_of(20));
            look(c, 180.0, 400.0, &[10, 10, 10, 10, 10, 10, 10, last])
        });
        assert_eq!(changes, [(1, SHARED), (10, PRIVATE), (21, SHARED), (30, PRIVATE)]);
    }

    /// Whether looks counted before the last switch or after it, the last 16 count.
    #[test]
    fn a_switch_forgets_no_look() {
        let mut control = Control::new(heuristic());
        // Eight for sharing, seven against it, the ninth for it; from then on all against it.
        let changes = switches(&mut control, 40, |c, number| {
            let gbps = if number <= 8 || number == 16 { 180.0 } else { 1.0 };
            look(c, gbps, 400.0, &EVEN)
        });
        assert_eq!(changes, [(16, SHARED), (23, PRIVATE)]);
    }

    /// A core was silent for ten looks at which there was little traffic.
    #[test]
    fn time_between_calls_is_counted_whatever_the_traffic() {
        let mut control = Control::new(Heuristic { window: 1, off_share: 1.0, ..heuristic() });
        let changes = switches(&mut control, 13, |c, number| {
            let gbps = if number <= 10 { 1.0 } else { 180.0 };
            let last = if number <= 12 { 0 } else { 10 };
            let calls = [10, 10, 10, 10, 10, 10, 10, last];
            look(c, gbps, 400.0, &calls)
        });
        assert_eq!(changes, [(13, SHARED)]);
    }

    #[test]
    fn an_overload_turns_sharing_off() {
        let mut control = Control::new(heuristic());
        switches(&mut control, 16, |c, _| look(c, 180.0, 400.0, &EVEN));
        let idle = [400_000, 400_000, 400_000, 400_000, 400_000, 400_000, 400_000, 200];
        let off = switches(&mut control, 40, |c, _| look(c, 180.0, 400.0, &idle));
        assert_eq!(off, [(14, PRIVATE)]);
    }

    #[test]
    fn a_core_that_came_or_began_anew_made_all_calls_that_it_counts() {
        let reading = |ms, bytes: u64, calls: &[u64]| Reading {
            at: Time::from_ms(ms),
            received: Bytes(bytes),
            transferred: Bytes(3 * bytes),
            calls: calls.to_vec(),
        };
        let seen = reading(30, 7, &[50, 4, 9]).since(&reading(10, 5, &[20, 100]));
        let expected = Observation {
            elapsed: Time::from_ms(20),
            received: Bytes(2),
            transferred: Bytes(6),
            calls: vec![30, 4, 9],
        };
        assert_eq!(seen, expected);
    }

    #[test]
    fn without_cores_nobody_is_overloaded() {
        let mut control = Control::new(heuristic());
        assert_eq!(look(&mut control, 180.0, 400.0, &[]), None);
    }
}
