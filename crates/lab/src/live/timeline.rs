//! How a live run goes on over time, as the report of a simulated one has it.

use nicforge_record::drop_fraction;
use nicforge_record::{Switch, TimelineEntry};
use nicforge_units::Time;

use super::outcome::Snapshot;
use crate::run::options::TimelineOptions;
use crate::settings::Settings;

/// Counts at even intervals.
#[derive(Debug)]
pub struct Timeline {
    /// When the run began.
    began: Time,
    /// In seconds, where somebody asks.
    every: Option<f64>,
    before: Snapshot,
    entries: Vec<TimelineEntry>,
}

impl Timeline {
    /// One of a run that begins at `began`, with the intervals that `settings` ask for (`timeline_ms`).
    pub fn new(settings: &Settings, began: Time) -> Timeline {
        Timeline {
            began,
            every: settings.read::<TimelineOptions>().timeline_ms.map(|ms| ms / 1e3),
            before: Snapshot::default(),
            entries: Vec::new(),
        }
    }

    /// Adds an entry, if it is time.
    pub fn look(&mut self, now: &Snapshot) {
        let past = now.seconds - self.before.seconds;
        if self.every.is_none_or(|every| past < every) {
            return;
        }
        let before = std::mem::replace(&mut self.before, now.clone());
        let seconds = now.seconds - before.seconds;
        let since = |of: &dyn Fn(&Snapshot) -> u64| of(now).saturating_sub(of(&before));
        let gbps = |bytes: u64| bytes as f64 * 8.0 / seconds / 1e9;
        let arrivals = since(&Snapshot::arrived);
        let drops = since(&|counts| counts.drops().total());
        self.entries.push(TimelineEntry {
            ms: now.seconds * 1e3,
            throughput_gbps: gbps(since(&Snapshot::sent_bytes)),
            offered_gbps: gbps(since(&Snapshot::received_bytes)),
            arrivals,
            drops,
            drop_fraction: drop_fraction(drops, arrivals),
            taken: since(&Snapshot::taken),
            backlog: now.waiting(),
            latency_us: None,
            memory_gb_per_s: None,
            active_set: now.device.sets.as_ref().map(|sets| sets.active.to_owned()),
            in_use: now.device.sets.clone().unwrap_or_default().in_use,
        });
    }

    /// What a report says of when steering changed.
    pub fn switches(&self, changed: &[(Time, &'static str)]) -> Vec<Switch> {
        let switch = |&(at, set): &(Time, &'static str)| Switch {
            ms: at.saturating_sub(self.began).as_seconds() * 1e3,
            set: set.to_owned(),
        };
        changed.iter().map(switch).collect()
    }

    /// All entries.
    pub fn into_entries(self) -> Vec<TimelineEntry> {
        self.entries
    }
}
