//! Which capacity of a cache lies between two neighbours in a sweep.

use nicforge_record::{PointRecord, Record};

use crate::number::{bytes, number};
use crate::shape::At;

/// A footprint that changes by less than this share explains no step.
const FOOTPRINT_DIFFERS: f64 = 0.1;

/// A capacity that lies between the footprints of two neighbours in a sweep.
pub struct Passed<'a> {
    footprint: Footprint,
    name: &'static str,
    capacity: u64,
    pub from: At<'a>,
    pub to: At<'a>,
    /// Whether the footprint outgrows the capacity here, or comes to fit it.
    pub grows: bool,
}

/// What is held against the capacities of caches.
#[derive(Clone, Copy)]
struct Footprint {
    name: &'static str,
    of: fn(&PointRecord) -> Option<u64>,
}

/// What NICs may write into, by the settings; what DMA touched, by the measurement.
const FOOTPRINTS: [Footprint; 2] = [
    Footprint { name: "the buffer space of all receive rings", of: |point| point.facts.receive_buffer_bytes },
    Footprint { name: "the I/O working set", of: |point| point.metrics.io_working_set_bytes },
];

/// Caches that DMA can use, largest first.
fn capacities(record: &Record) -> impl Iterator<Item = (&'static str, u64)> {
    let known = [("the whole LLC", record.llc_bytes), ("the I/O ways", record.io_way_bytes)];
    known.into_iter().filter_map(|(name, capacity)| Some((name, capacity?)))
}

/// The footprint that changes between two points, by both ends.
fn changing(from: At, to: At) -> Option<(Footprint, u64, u64)> {
    FOOTPRINTS.into_iter().find_map(|footprint| {
        let (low, high) = ((footprint.of)(from.point)?, (footprint.of)(to.point)?);
        let changes = low.abs_diff(high) as f64 > low.min(high) as f64 * FOOTPRINT_DIFFERS;
        changes.then_some((footprint, low, high))
    })
}

/// The largest capacity between the footprints of two points.
pub fn passed<'a>(record: &Record, from: At<'a>, to: At<'a>) -> Option<Passed<'a>> {
    let (footprint, before, after) = changing(from, to)?;
    let (low, high) = (before.min(after), before.max(after));
    let (name, capacity) = capacities(record).find(|(_, capacity)| low <= *capacity && *capacity < high)?;
    Some(Passed { footprint, name, capacity, from, to, grows: before < after })
}

impl Passed<'_> {
    /// What the footprint does, and which capacity that passes.
    pub fn words(&self) -> String {
        let show = |at: At| bytes((self.footprint.of)(at.point).unwrap_or(0) as f64);
        let (does, then) = if self.grows { ("grows", "passes") } else { ("shrinks", "fits") };
        format!(
            "{} {does} from {} to {} and {then} {} ({})",
            self.footprint.name,
            show(self.from),
            show(self.to),
            self.name,
            bytes(self.capacity as f64)
        )
    }
}

/// Two values of the x axis in words.
pub fn between(key: &str, from: At, to: At) -> String {
    format!("between {key} {} and {}", number(from.x), number(to.x))
}

/// Whether the footprint is smaller at the second point.
pub fn shrinks(from: At, to: At) -> bool {
    changing(from, to).is_some_and(|(_, before, after)| after < before)
}

/// A change at which no capacity is passed: where the footprint is meanwhile, if it changes.
pub fn beyond(record: &Record, from: At, to: At) -> String {
    let Some((footprint, low, high)) = changing(from, to) else {
        return String::new();
    };
    let (least, most) = (low.min(high), low.max(high));
    let side = match capacities(record).find(|(_, capacity)| least > *capacity) {
        Some((name, capacity)) => {
            let capacity = bytes(capacity as f64);
            format!(", at both ends more than {name} ({capacity})")
        }
        None => capacities(record)
            .last()
            .filter(|(_, capacity)| most <= *capacity)
            .map_or(String::new(), |(name, _)| format!(", within {name}")),
    };
    let (low, high) = (bytes(low as f64), bytes(high as f64));
    format!(", where {} goes from {low} to {high}{side}", footprint.name)
}
