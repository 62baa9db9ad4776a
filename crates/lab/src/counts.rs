//! From counters to the figures of a record.

use std::collections::BTreeMap;

use nicforge_nic::DropCounters;

/// What went in and what came out do not add up: a defect of ours.
#[derive(Debug, thiserror::Error)]
pub enum LostError {
    /// Frames vanished or multiplied.
    #[error("frames do not add up: {arrived} arrived, {left} left, {dropped} dropped, {inside} inside")]
    Frames {
        /// Came in.
        arrived: u64,
        /// Went out; of whole systems, to the kernel's stack.
        left: u64,
        /// Were dropped.
        dropped: u64,
        /// Are still inside.
        inside: u64,
    },
    /// Buffers vanished or multiplied.
    #[error("packet buffers do not add up: the pool has {buffers}, {held} were found")]
    Buffers {
        /// There are.
        buffers: u64,
        /// Were found.
        held: u64,
    },
    /// Acknowledgments or notifications passed the payload that they speak of.
    #[error("{early} acknowledgments or notifications left before the DMA of their payload was complete")]
    Early {
        /// So many.
        early: u64,
    },
}

/// `part` of `whole`, if there is any.
pub(crate) fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Drops as the report has them.
pub(crate) fn by_cause(drops: &DropCounters) -> BTreeMap<String, u64> {
    let causes = drops.causes().iter();
    causes.map(|&(cause, count)| (cause.to_owned(), count)).collect()
}

/// Counters of the same name together.
pub(crate) fn sum_by_name(counters: impl IntoIterator<Item = (&'static str, u64)>) -> BTreeMap<&'static str, u64> {
    let mut sums = BTreeMap::new();
    for (name, count) in counters {
        *sums.entry(name).or_default() += count;
    }
    sums
}

/// The highest value of each gauge, as gauges of several NICs do not add up.
pub(crate) fn highest_by_name(gauges: impl IntoIterator<Item = (&'static str, u64)>) -> BTreeMap<String, u64> {
    let mut highest = BTreeMap::new();
    for (name, value) in gauges {
        let known: &mut u64 = highest.entry(name.to_owned()).or_default();
        *known = value.max(*known);
    }
    highest
}
