//! Replay of a capture: as recorded, scaled to a rate, or evenly paced; once or several times.

use nicforge_units::{BitRate, Bytes, Time};

use super::line::Line;
use super::sizes::FRAME_BYTES_MAX;
use super::{Arrival, TrafficError};
use crate::capture::{CaptureReader, SkipCounts};
use crate::checksum::verify_l3;
use crate::parse_frame;

/// Most bytes of frames that are kept in memory.
pub const REPLAY_BYTES_MAX: usize = 512 << 20;

/// When the frames of a capture are sent. The line's rate limits all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayTiming {
    /// As recorded.
    Recorded,
    /// Recorded gaps, stretched or shrunk so that the mean is this rate of frame bytes. Evenly
    /// paced when the capture has no duration.
    Scaled(BitRate),
    /// Evenly paced at this rate of frame bytes; recorded times do not count.
    Paced(BitRate),
}

/// What was dropped or mended while a capture was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayCounts {
    /// What the reader counted.
    pub reader: SkipCounts,
    /// Dropped: frames longer than any port takes (captured before segmentation).
    pub over_long: u64,
    /// Sent with zeros for the bytes that the capture lacks.
    pub padded: u64,
}

impl ReplayCounts {
    /// What is not sent, by cause: how many, and which.
    pub fn left_out(&self) -> Vec<(u64, String)> {
        let reader = &self.reader;
        let causes = [
            (self.over_long, format!("longer than {FRAME_BYTES_MAX} bytes")),
            (reader.zero_length, "without bytes".to_string()),
            (reader.longer_than_original, "longer than their packet".to_string()),
            (reader.no_ethernet_form, "that have no Ethernet form".to_string()),
            (reader.other_link_type, "of interfaces with a link type that is not read".to_string()),
            (reader.cut_off, "cut off by the end of the file (copy it again, if it should be whole)".to_string()),
            (reader.unknown_blocks, "in blocks of unknown kinds".to_string()),
        ];
        causes.into_iter().filter(|(count, _)| *count > 0).collect()
    }

    /// One line on what was left out and mended; `None` when all of the capture is sent as it is.
    pub fn note(&self) -> Option<String> {
        let reader = &self.reader;
        let mended = [
            (self.padded, "captured short, filled up with zeros"),
            (reader.without_time, "without a time stamp, sent with the one before them"),
            (reader.time_went_back, "from before the one before them"),
            (reader.time_out_of_range, "more than 106 days after the first"),
            (reader.fraction_out_of_range, "with a broken time stamp"),
        ];
        let mended = mended.map(|(count, cause)| (count, cause.to_string()));
        let parts = [("left out", self.left_out()), ("mended", mended.to_vec())];
        let parts: Vec<String> = parts.into_iter().filter_map(|(what, causes)| list(what, &causes)).collect();
        (!parts.is_empty()).then(|| format!("records {}", parts.join("; ")))
    }
}

fn list(what: &str, causes: &[(u64, String)]) -> Option<String> {
    let causes = causes.iter().filter(|(count, _)| *count > 0);
    let causes: Vec<String> = causes.map(|(count, cause)| format!("{count} {cause}")).collect();
    (!causes.is_empty()).then(|| format!("{what}: {}", causes.join(", ")))
}

/// The frames of a capture that are longer than something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LongFrames {
    /// How many there are.
    pub count: u64,
    /// The number of the first one, counted from 1 among those that are sent.
    pub first: Option<usize>,
    /// Bytes of the longest one.
    pub longest: u32,
}

/// What was read of a capture of which nothing can be sent.
impl std::fmt::Display for ReplayCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let causes = self.left_out();
        let records: u64 = causes.iter().map(|(count, _)| count).sum();
        let causes = causes.iter().map(|(count, cause)| format!("{count} {cause}"));
        match records {
            0 => f.write_str("it was read to its end and has no record"),
            _ => {
                let causes = causes.collect::<Vec<_>>().join(", ");
                write!(f, "it was read to its end, and left out are all {records} records: {causes}")
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    time: Time,
    start: u32,
    len: u32,
}

/// How long a capture lasts.
#[derive(Clone, Copy, Debug)]
struct Lengths {
    /// From its first frame to its last.
    to_last: Time,
    /// From its first frame to the first of the next loop.
    period: Time,
}

/// A source that replays a capture.
#[derive(Clone, Debug)]
pub struct Replay {
    bytes: Vec<u8>,
    frames: Vec<Frame>,
    counts: ReplayCounts,
    line: Line,
    recorded: Lengths,
    loops: u32,
    loops_left: u32,
    /// Length of one loop.
    period: Time,
    loop_start: Time,
    next: usize,
    line_free: Time,
}

impl Replay {
    /// Loads a capture to be sent `loops` times on `line`.
    pub fn load(
        mut reader: CaptureReader<'_>,
        line: Line,
        timing: ReplayTiming,
        loops: u32,
    ) -> Result<Replay, TrafficError> {
        let rate_is_zero = match timing {
            ReplayTiming::Recorded => false,
            ReplayTiming::Scaled(rate) | ReplayTiming::Paced(rate) => rate.as_bits_per_second() == 0,
        };
        if rate_is_zero || line.rate.as_bits_per_second() == 0 {
            return Err(TrafficError::ZeroRate);
        }
        let (mut bytes, mut frames) = (Vec::new(), Vec::new());
        let mut counts = ReplayCounts::default();
        while let Some(record) = reader.next_record()? {
            if record.original_len > FRAME_BYTES_MAX {
                counts.over_long += 1;
                continue;
            }
            let start = bytes.len();
            if start + record.original_len as usize > REPLAY_BYTES_MAX {
                return Err(TrafficError::CaptureTooLarge);
            }
            counts.padded += u64::from(record.is_short());
            record.fill_up(&mut bytes);
            frames.push(Frame { time: record.time, start: start as u32, len: record.original_len });
        }
        counts.reader = reader.counts();
        if frames.is_empty() {
            return Err(TrafficError::EmptyCapture(Box::new(counts)));
        }
        let period = set_times(&mut frames, ReplayTiming::Recorded);
        let recorded = Lengths { to_last: frames[frames.len() - 1].time, period };
        let period = set_times(&mut frames, timing);
        Ok(Replay {
            bytes,
            frames,
            counts,
            line,
            recorded,
            loops,
            loops_left: loops,
            period,
            loop_start: Time::ZERO,
            next: 0,
            line_free: Time::ZERO,
        })
    }

    /// What was dropped or mended while loading.
    pub fn counts(&self) -> ReplayCounts {
        self.counts
    }

    /// Frames of one loop that have more than `bytes` bytes.
    pub fn longer_than(&self, bytes: usize) -> LongFrames {
        let mut long = LongFrames::default();
        for (index, frame) in self.frames.iter().enumerate() {
            if frame.len as usize > bytes {
                long.count += 1;
                long.first.get_or_insert(index + 1);
                long.longest = long.longest.max(frame.len);
            }
        }
        long
    }

    /// Frames of one loop whose IPv4 header checksum is wrong.
    pub fn wrong_ip_checksums(&self) -> usize {
        let wrong = |frame: &&Frame| {
            let start = frame.start as usize;
            let bytes = &self.bytes[start..start + frame.len as usize];
            let summary = parse_frame(bytes);
            summary.is_ok_and(|summary| verify_l3(bytes, &summary) == Some(false))
        };
        self.frames.iter().filter(wrong).count()
    }

    /// Frames of one loop.
    pub fn frames(&self) -> usize {
        self.frames.len()
    }

    /// From the first frame to the last where the capture is sent `loops` times; [`Time::NEVER`] where
    /// that is more than `Time` holds.
    pub fn lasts(&self, timing: ReplayTiming, loops: u32) -> Time {
        let on_line = self.frames.iter().map(|frame| self.line.time_for(frame.len));
        let on_line = on_line.fold(Time::ZERO, later);
        let Lengths { to_last, period } = match timing {
            ReplayTiming::Recorded => self.recorded,
            ReplayTiming::Scaled(rate) | ReplayTiming::Paced(rate) => {
                let period = time_at(rate, self.bytes.len() as u64);
                Lengths { to_last: period, period }
            }
        };
        let before = u64::from(loops.saturating_sub(1));
        let before = period.max(on_line).as_ps().saturating_mul(before);
        later(Time::from_ps(before), to_last.max(on_line))
    }

    /// Plays the capture from its beginning, as often as at first; gaps scaled.
    pub(super) fn begin_again(&mut self, from: Time, rate: BitRate) {
        self.period = set_times(&mut self.frames, ReplayTiming::Scaled(rate));
        (self.loop_start, self.line_free) = (from, from);
        (self.loops_left, self.next) = (self.loops, 0);
    }

    pub(super) fn next_time(&self) -> Time {
        match self.frames.get(self.next) {
            Some(frame) if self.loops_left > 0 => later(self.loop_start, frame.time).max(self.line_free),
            _ => Time::NEVER,
        }
    }

    pub(super) fn next(&mut self) -> Option<Arrival<'_>> {
        let time = self.next_time();
        let frame = *self.frames.get(self.next)?;
        if time == Time::NEVER {
            return None;
        }
        self.line_free = later(time, self.line.time_for(frame.len));
        self.next += 1;
        if self.next == self.frames.len() {
            self.next = 0;
            self.loops_left -= 1;
            self.loop_start = later(self.loop_start, self.period);
        }
        let start = frame.start as usize;
        Some(Arrival {
            time,
            bytes: &self.bytes[start..start + frame.len as usize],
            head: frame.len as usize,
            flow: None,
        })
    }
}

/// `time` and `duration` together. Captures may span years and be looped: what `Time` cannot hold
/// is never, which ends the replay.
fn later(time: Time, duration: Time) -> Time {
    Time::from_ps(time.as_ps().saturating_add(duration.as_ps()))
}

/// Sets the frames' times, the first at zero; gives the length of one loop: the last frame's time
/// and one mean gap.
fn set_times(frames: &mut [Frame], timing: ReplayTiming) -> Time {
    let first = frames[0].time;
    for frame in frames.iter_mut() {
        frame.time = frame.time.saturating_sub(first);
    }
    let gaps = (frames.len() - 1).max(1) as u64;
    let duration = frames[frames.len() - 1].time;
    let recorded = later(duration, Time::from_ps(duration.as_ps() / gaps));
    let total: u64 = frames.iter().map(|frame| u64::from(frame.len)).sum();
    match timing {
        ReplayTiming::Recorded => recorded,
        ReplayTiming::Scaled(rate) if duration > Time::ZERO => {
            let wanted = time_at(rate, total);
            let factor = wanted.as_ps() as f64 / recorded.as_ps() as f64;
            for frame in frames.iter_mut() {
                frame.time = Time::from_ps((frame.time.as_ps() as f64 * factor) as u64);
            }
            wanted
        }
        ReplayTiming::Scaled(rate) | ReplayTiming::Paced(rate) => {
            let mut before = 0;
            for frame in frames.iter_mut() {
                frame.time = time_at(rate, before);
                before += u64::from(frame.len);
            }
            time_at(rate, total)
        }
    }
}

/// How long `bytes` take at `rate`; `BitRate::time_for` is exact up to 2 MB only.
fn time_at(rate: BitRate, bytes: u64) -> Time {
    const MEGABYTE: u64 = 1_000_000;
    let whole = rate.time_for(Bytes(MEGABYTE)) * (bytes / MEGABYTE);
    whole + rate.time_for(Bytes(bytes % MEGABYTE))
}
