//! Main memory: a latency that grows with load, and a bandwidth that cannot be exceeded.
//!
//! Agents run loosely in time, so requests do not come in time order. Bandwidth is therefore
//! kept in a calendar of short slots, each with room for so many lines: a request takes the
//! first slot with room at or after its time, whoever came first.
//!
//! Below saturation, requests still queue behind each other: the mean wait grows as u/(1-u)
//! with the share u of slots in use, linearly at first and steeply near the peak
//! (memory_bandwidth, figure 1.5). u is computed from slots that are over: those to come are empty
//! only because agents that are behind have yet to fill them.

use nicforge_units::{CACHE_LINE_BYTES, Time};

use super::DramConfig;

/// A slot lasts 2^17 ps = 131 ns: short against a packet's stay, long against one access.
const SLOT_SHIFT: u32 = 17;
/// Slots ahead of time that the calendar holds: 0.5 ms of backlog.
const SLOTS: usize = 4096;
/// Weight of one slot in the running mean of the load: about 16 slots, 2 us.
const LOAD_WEIGHT: f64 = 1.0 / 16.0;
/// How far off the bandwidth may be, as a share.
const BANDWIDTH_ERROR_MAX: f64 = 0.01;
/// A slow memory's slots have room for few lines, and not for a whole number of them: parts of lines count there.
const PARTS_OF_LINE: u32 = 1024;
/// The load that the wait formula is cut at; above it the calendar's backlog is the wait.
const LOAD_MAX: f64 = 0.98;

#[derive(Clone, Copy, Default)]
struct Slot {
    number: u64,
    /// Room that is taken.
    taken: u32,
    /// If it is full: so many from this one on are.
    full: u32,
}

/// Main memory behind one controller.
pub struct Dram {
    slots: Box<[Slot; SLOTS]>,
    /// Room of a slot, and what a line takes of it.
    room: u32,
    room_of_line: u32,
    idle_latency: Time,
    /// Wait at half load.
    queueing: Time,
    /// Slots before this one are over: nobody comes for them any more.
    over: u64,
    /// Share of them in use, lately.
    load: f64,
    /// Wait that follows from `load`, recomputed once a slot.
    wait: Time,
    lines: u64,
}

impl Dram {
    /// Memory as `config` describes it, idle.
    pub fn new(config: &DramConfig) -> Dram {
        let slot = Time::from_ps(1 << SLOT_SHIFT);
        let lines = config.peak.bytes_in(slot) / CACHE_LINE_BYTES as f64;
        // Whole lines, where bandwidth is met so.
        let room_of_line = if (lines.round() - lines).abs() <= BANDWIDTH_ERROR_MAX * lines { 1 } else { PARTS_OF_LINE };
        let service = CACHE_LINE_BYTES as f64 * config.channels as f64 / config.peak.as_bytes_per_second();
        Dram {
            slots: Box::new([Slot::default(); SLOTS]),
            room: ((lines * f64::from(room_of_line)).round() as u32).max(1),
            room_of_line,
            idle_latency: config.idle_latency,
            queueing: Time::from_seconds(service * config.queueing),
            over: 0,
            load: 0.0,
            wait: Time::ZERO,
            lines: 0,
        }
    }

    /// Reads `lines` lines at `now`; returns how long the last of them takes.
    #[inline]
    pub fn read(&mut self, now: Time, lines: u64) -> Time {
        let backlog = self.take(now, lines);
        self.idle_latency + self.wait + backlog
    }

    /// Writes `lines` lines at `now`; returns how long until the controller has taken them.
    #[inline]
    pub fn write(&mut self, now: Time, lines: u64) -> Time {
        self.take(now, lines)
    }

    /// Lines read and written so far.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Whether slots end at `now` of which that is not known yet.
    #[inline]
    pub fn slots_end(&self, now: Time) -> bool {
        now.as_ps() >> SLOT_SHIFT > self.over
    }

    /// Takes room for `lines` lines; returns how long the slots before the last were full.
    #[inline]
    fn take(&mut self, now: Time, lines: u64) -> Time {
        if lines == 0 {
            return Time::ZERO;
        }
        self.lines += lines;
        let wanted = now.as_ps() >> SLOT_SHIFT;
        let wants = lines * u64::from(self.room_of_line);
        // Nearly always the slot is in use, or others behind it are known to be full, and there is room.
        let mut number = wanted;
        loop {
            let slot = &mut self.slots[number as usize % SLOTS];
            if slot.number != number {
                break;
            }
            if slot.full > 0 {
                number += u64::from(slot.full);
                continue;
            }
            if u64::from(slot.taken) + wants >= u64::from(self.room) {
                break;
            }
            slot.taken += wants as u32;
            return Time::from_ps((number - wanted) << SLOT_SHIFT);
        }
        self.take_slots(wanted, wants)
    }

    /// As [`take`](Self::take), from slot `wanted` on.
    #[inline(never)]
    fn take_slots(&mut self, wanted: u64, wants: u64) -> Time {
        // Beyond the calendar, memory is hopelessly behind, and the last slot takes everything (its
        // wait then bounds the agents' rate).
        let end = wanted + SLOTS as u64;
        let (mut number, mut left) = (wanted, wants as u32);
        while number < end {
            let slot = &mut self.slots[number as usize % SLOTS];
            if slot.number != number {
                *slot = Slot { number, taken: 0, full: 0 };
            }
            if slot.full > 0 {
                number += u64::from(slot.full);
                continue;
            }
            let taken = left.min(self.room - slot.taken);
            slot.taken += taken;
            left -= taken;
            slot.full = u32::from(slot.taken == self.room);
            if left == 0 {
                break;
            }
            number += 1;
        }
        let waited = number.min(end) - wanted;
        let slot = &mut self.slots[wanted as usize % SLOTS];
        // Who comes next in the same time need not look at each of them again.
        slot.full = slot.full.max(waited as u32);
        Time::from_ps(waited << SLOT_SHIFT)
    }

    /// Nobody will ask for anything before `now`: slots until then stay as they are, and load is computed from them.
    #[cold]
    pub fn no_more_before(&mut self, now: Time) {
        let number = now.as_ps() >> SLOT_SHIFT;
        // A long idle time empties the mean: 256 slots are 16 weights.
        for passed in self.over.max(number.saturating_sub(256))..number {
            let slot = self.slots[passed as usize % SLOTS];
            let used = if slot.number == passed { slot.taken } else { 0 };
            let share = f64::from(used) / f64::from(self.room);
            self.load += (share - self.load) * LOAD_WEIGHT;
        }
        self.over = self.over.max(number);
        let load = self.load.clamp(0.0, LOAD_MAX);
        // At half load u/(1-u) is 1, so `queueing` is the wait at half load.
        let wait = self.queueing.as_ps() as f64 * load / (1.0 - load);
        self.wait = Time::from_ps(wait as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicforge_units::ByteRate;

    fn dram(queueing: f64) -> Dram {
        dram_of(64.0, queueing)
    }

    fn dram_of(gb_per_second: f64, queueing: f64) -> Dram {
        Dram::new(&DramConfig {
            channels: 4,
            peak: ByteRate::from_gb_per_second(gb_per_second),
            idle_latency: Time::from_ns(85),
            queueing,
        })
    }

    /// Issues `lines` reads at a constant rate in GB/s; returns the last latency and the rate
    /// that was achieved.
    fn load(dram: &mut Dram, gb_per_second: f64, lines: u64) -> (Time, f64) {
        let gap_ps = 64.0 / gb_per_second * 1e3;
        let mut latency = Time::ZERO;
        let mut end = Time::ZERO;
        for i in 0..lines {
            let now = Time::from_ps((i as f64 * gap_ps) as u64);
            dram.no_more_before(now);
            latency = dram.read(now, 1);
            end = end.max(now + latency);
        }
        (latency, lines as f64 * 64.0 / end.as_ns())
    }

    #[test]
    fn an_idle_memory_answers_in_its_idle_latency() {
        assert_eq!(dram(5.0).read(Time::from_us(3), 1), Time::from_ns(85));
    }

    #[test]
    fn bandwidth_is_met_within_one_percent() {
        // Of the slower ones a slot has room for a fifth of a line, two, 3.5, and 10.6.
        for peak in [0.1, 1.0, 1.7, 5.2, 45.5, 64.0] {
            let (_, rate) = load(&mut dram_of(peak, 0.0), 2.0 * peak, (7000.0 * peak) as u64);
            assert!((rate / peak - 1.0).abs() < 0.01, "{rate} GB/s of {peak}");
        }
    }

    #[test]
    fn latency_grows_with_load_first_linearly_then_steeply() {
        let at = |share: f64| load(&mut dram(5.0), 64.0 * share, 50_000).0.as_ns() - 85.0;
        let waits = [at(0.1), at(0.2), at(0.5), at(0.9)];
        // Service of one line on one of four channels is 4 ns: 5 services at half load are 20 ns.
        assert!((waits[2] - 20.0).abs() < 1.0, "{waits:?}");
        assert!((waits[1] / waits[0] - 2.0).abs() < 0.4, "{waits:?}");
        assert!(waits[3] > 7.0 * waits[2], "{waits:?}");
    }

    #[test]
    fn an_agent_far_ahead_in_time_does_not_hide_load_from_others() {
        let wait = |ahead: Time| {
            let mut dram = dram(5.0);
            let mut latency = Time::ZERO;
            for line in 0..50_000 {
                // Half of what memory gives, in turn by somebody who is ahead and by somebody who is not.
                let now = Time::from_ns(line * 2);
                dram.no_more_before(now);
                let behind = line % 2 == 0;
                if behind {
                    latency = dram.read(now, 1)
                } else {
                    dram.read(now + ahead, 1);
                }
            }
            latency.as_ns() - 85.0
        };
        let (beside, ahead) = (wait(Time::ZERO), wait(Time::from_us(5)));
        assert!((beside - 20.0).abs() < 1.0, "{beside}");
        assert!((ahead / beside - 1.0).abs() < 0.05, "{ahead} and {beside}");
    }

    #[test]
    fn a_request_skips_full_slots_to_the_first_with_room() {
        let mut dram = dram(0.0);
        let mut slots = std::collections::BTreeMap::new();
        let mut state = 1u32;
        let mut draw = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            u64::from((state >> 16) % below)
        };
        let mut longest = 0;
        for step in 0..20_000 {
            // 1.3 times what the memory gives, by agents that are up to 3 us apart.
            let now = Time::from_ns(step * 12 + draw(3000));
            let lines = 1 + draw(31);
            let wanted = now.as_ps() >> SLOT_SHIFT;
            let (mut number, mut left) = (wanted, lines);
            loop {
                let room: &mut u64 = slots.entry(number).or_insert(u64::from(dram.room));
                let taken = left.min(*room);
                (*room, left) = (*room - taken, left - taken);
                if left == 0 {
                    break;
                }
                number += 1;
            }
            longest = longest.max(number - wanted);
            let waited = dram.write(now, lines);
            assert_eq!(waited.as_ps() >> SLOT_SHIFT, number - wanted, "{now}");
        }
        assert!(longest > 100 && longest < SLOTS as u64, "{longest}");
    }

    #[test]
    fn order_of_calls_does_not_change_who_waits_for_bandwidth() {
        let mut dram = dram(0.0);
        // Somebody far ahead fills its slot; a request of now is not delayed by it.
        for _ in 0..1000 {
            dram.read(Time::from_us(10), 1);
        }
        assert_eq!(dram.read(Time::from_us(5), 1), Time::from_ns(85));
    }
}
