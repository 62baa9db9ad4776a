//! What sets a better point apart from a worse one: what speaks for it, and what does not.

use nicforge_record::{CyclesPerPacket, Metrics};

use super::{SAME, whole};
use crate::columns::{Good, by_key};
use crate::number::{bytes, number, percent};

/// Difference between two shares that is worth a word.
const SHARES_DIFFER: f64 = 0.05;
/// Ratio between two amounts that is worth a word.
const AMOUNTS_DIFFER: f64 = 1.1;
/// Share of the change in what is delivered that a change of an amount must come up to, to be among its causes.
const PART: f64 = 0.1;
/// Occupancy from which on receive rings say why frames are dropped.
const FULL: f64 = 0.5;

/// How a quantity is compared and shown.
#[derive(Clone, Copy)]
enum Scale {
    /// A share of one.
    Share,
    /// An amount in bytes; less than this does not matter, so that nothing is many times nothing.
    Bytes(f64),
    /// The same of cycles, which are part of all that a packet takes.
    Cycles(f64),
    /// The same of any number.
    Plain(f64),
}

/// A way in which two points may differ.
struct Way {
    /// The metric whose direction it has.
    metric: &'static str,
    scale: Scale,
    get: fn(&Metrics) -> Option<f64>,
    /// `{a}` and `{b}` stand for the two values.
    words: &'static str,
}

const fn way(metric: &'static str, scale: Scale, get: fn(&Metrics) -> Option<f64>, words: &'static str) -> Way {
    Way { metric, scale, get, words }
}

/// What a design does to caches, memory, links and the cores' time.
#[rustfmt::skip]
const CAUSES: [Way; 15] = [
    way("drop_fraction", Scale::Share, starved,
        "cores idle {a} of the time while frames are dropped, against {b}"),
    way("io_working_set_bytes", Scale::Bytes(1024.0), |m| m.io_working_set_bytes.map(|set| set as f64),
        "DMA touches {a}, against {b}"),
    way("ddio_hit_rate", Scale::Share, |m| m.ddio_hit_rate,
        "software finds {a} of the received lines still in the cache, against {b}"),
    way("io_read_hit_rate", Scale::Share, |m| m.io_read_hit_rate,
        "the NIC finds {a} of what it reads in the cache, against {b}"),
    way("app_hit_rate", Scale::Share, |m| m.app_hit_rate,
        "{a} of the application's own look-ups hit the cache, against {b}"),
    way("memory_gb_per_s", Scale::Bytes(64.0), |m| per_packet(m, m.memory_gb_per_s?, 1e9),
        "a packet costs {a} of DRAM traffic, against {b}"),
    way("memory_gb_per_s", Scale::Bytes(64.0), memory_per_kb,
        "each KB of payload costs {a} of DRAM traffic, against {b}"),
    way("cycles_per_packet.stall", Scale::Cycles(20.0), |m| cycles(m, |c| c.stall),
        "cores wait {a} cycles per packet for memory, against {b}"),
    way("cycles_per_packet.driver", Scale::Cycles(20.0), |m| cycles(m, |c| c.driver),
        "the driver takes {a} cycles per packet, against {b}"),
    way("cycles_per_packet.app", Scale::Cycles(20.0), |m| cycles(m, |c| c.app),
        "the application takes {a} cycles per packet, against {b}"),
    way("cycles_per_packet.sync", Scale::Cycles(20.0), |m| cycles(m, |c| c.sync),
        "locks and atomics take {a} cycles per packet, against {b}"),
    way("cycles_per_packet.alloc", Scale::Cycles(20.0), |m| cycles(m, |c| c.alloc),
        "buffer allocation takes {a} cycles per packet, against {b}"),
    way("pcie_out_utilisation", Scale::Plain(10.0), |m| per_packet(m, m.pcie_out_utilisation?, 1e9),
        "a packet takes {a} ns of PCIe towards the host, against {b}"),
    way("pcie_in_utilisation", Scale::Plain(10.0), |m| per_packet(m, m.pcie_in_utilisation?, 1e9),
        "a packet takes {a} ns of PCIe towards the NIC, against {b}"),
    way("misses_per_kb", Scale::Plain(0.5), |m| m.misses_per_kb,
        "{a} look-ups miss all caches for each KB of payload, against {b}"),
];

/// To which the cause of most drops is added.
const DROPPED: &str = "{a} of the frames are dropped, against {b}";

/// What follows for queues and packets.
#[rustfmt::skip]
const EFFECTS: [Way; 4] = [
    way("drop_fraction", Scale::Share, |m| Some(m.drop_fraction), DROPPED),
    way("rx_occupancy", Scale::Share, |m| m.rx_occupancy,
        "arriving frames find receive rings {a} full, against {b}"),
    way("idle_fraction", Scale::Share, room,
        "cores have {a} of their time left, against {b}"),
    way("latency_us.p99", Scale::Plain(1.0), |m| Some(m.latency_us.as_ref()?.p99),
        "99 % of packets are through in {a} µs, against {b}"),
];

fn cycles(metrics: &Metrics, get: fn(&CyclesPerPacket) -> f64) -> Option<f64> {
    metrics.cycles_per_packet.as_ref().map(get)
}

/// What a packet takes of what is `per_second`, in a unit of which there are `units`. Packets are those
/// that are sent, which of a whole system may be acknowledgements only: its payload says more.
fn per_packet(metrics: &Metrics, per_second: f64, units: f64) -> Option<f64> {
    let packets = metrics.throughput_mpps * 1e6;
    let counts = packets > 0.0 && metrics.bandwidth_gbps.is_none();
    counts.then(|| per_second * units / packets)
}

/// Bytes of DRAM traffic for each 1024 bytes of payload.
fn memory_per_kb(metrics: &Metrics) -> Option<f64> {
    let payload = metrics.bandwidth_gbps? * 1e9 / 8.0 / 1024.0;
    (payload > 0.0).then_some(metrics.memory_gb_per_s? * 1e9 / payload)
}

/// The share of their time that cores idle although frames are dropped; none is when none are.
fn starved(metrics: &Metrics) -> Option<f64> {
    let idle = metrics.idle_fraction?;
    Some(if metrics.drop_fraction > SAME { idle } else { 0.0 })
}

/// The share of their time that cores have left, where they keep up.
fn room(metrics: &Metrics) -> Option<f64> {
    metrics.idle_fraction.filter(|_| metrics.drop_fraction <= SAME)
}

/// Which of two points stands first in the sentences.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum First {
    /// The better one.
    Better,
    /// The worse one.
    Worse,
}

/// A difference in words, with its weight.
type Telling = (f64, String);

/// How many of each kind are named.
pub struct Most {
    pub causes: usize,
    pub effects: usize,
    pub despite: usize,
}

/// What speaks for the better of two points and what against it, most telling first.
pub struct Differences {
    /// Causes that favour it.
    pub why: Vec<String>,
    /// Effects that do.
    pub effects: Vec<String>,
    /// Causes that favour the other one.
    pub despite: Vec<String>,
    /// Effects that favour the other one.
    pub price: Vec<String>,
}

impl Differences {
    /// Between two points; `first` says whose value leads in the sentences.
    pub fn of(better: &Metrics, worse: &Metrics, first: First, most: &Most) -> Differences {
        let gain = Gain::between(better, worse);
        let causes = CAUSES.iter().filter(|way| gain.comes_with(way, better, worse));
        let (causes, despite) = told(causes, better, worse, first);
        let (effects, price) = told(EFFECTS.iter(), better, worse, first);
        let top = |mut told: Vec<Telling>, count: usize| {
            told.sort_by(|a, b| b.0.total_cmp(&a.0));
            told.into_iter().take(count).map(|(_, text)| text)
        };
        Differences {
            why: top(causes, most.causes).collect(),
            effects: top(effects, most.effects).collect(),
            despite: top(despite, most.despite).collect(),
            price: top(price, most.despite).collect(),
        }
    }

    /// Whether nothing speaks for the better point.
    pub fn are_none(&self) -> bool {
        self.why.is_empty() && self.effects.is_empty()
    }

    /// All of it as the end of a paragraph, with a blank before it; `why` heads the reasons.
    pub fn text(&self, why: &str) -> String {
        let parts = [
            (why, &self.why),
            ("With it", &self.effects),
            ("In spite of this", &self.despite),
            ("At this price", &self.price),
        ];
        let parts = parts.into_iter().filter(|(_, found)| !found.is_empty());
        parts.map(|(head, found)| format!(" {head}: {}.", found.join("; "))).collect()
    }
}

/// How much more one point delivers than another.
struct Gain {
    ratio: f64,
    /// Cycles per packet by which the worse one would have to come down for it, were they all that counts.
    cycles: f64,
}

impl Gain {
    fn between(better: &Metrics, worse: &Metrics) -> Gain {
        let delivered = |metrics: &Metrics| metrics.bandwidth_gbps.unwrap_or(metrics.throughput_mpps);
        let (more, less) = (delivered(better), delivered(worse));
        let ratio = match less > 0.0 {
            true => (more / less).max(1.0),
            false => 1.0,
        };
        let total = cycles(worse, |c| c.total).unwrap_or(0.0);
        Gain { ratio, cycles: total * (1.0 - 1.0 / ratio) }
    }

    /// Whether a difference is large enough to have something to do with it: others are noise beside it.
    fn comes_with(&self, way: &Way, better: &Metrics, worse: &Metrics) -> bool {
        let (Some(a), Some(b)) = ((way.get)(better), (way.get)(worse)) else {
            return false;
        };
        match way.scale {
            Scale::Share => true,
            Scale::Cycles(_) => (a - b).abs() >= self.cycles * PART,
            Scale::Bytes(least) | Scale::Plain(least) => ratio(a, b, least).log2() >= self.ratio.log2() * PART,
        }
    }
}

/// What is worth a word in the better point's favour, and what against it.
fn told<'a>(
    ways: impl Iterator<Item = &'a Way>,
    better: &Metrics,
    worse: &Metrics,
    first: First,
) -> (Vec<Telling>, Vec<Telling>) {
    let (mut favour, mut against) = (Vec::new(), Vec::new());
    for way in ways {
        let (Some(good), Some(bad)) = ((way.get)(better), (way.get)(worse)) else {
            continue;
        };
        let Some(weight) = way.scale.weight(good, bad) else {
            continue;
        };
        let (a, b) = match first {
            First::Better => (good, bad),
            First::Worse => (bad, good),
        };
        let values = (way.scale.show(a), way.scale.show(b));
        let mut text = way.words.replace("{a}", &values.0).replace("{b}", &values.1);
        if way.words == DROPPED {
            let more = match better.drop_fraction > worse.drop_fraction {
                true => better,
                false => worse,
            };
            text += &main_drop(more);
        }
        match (by_key(way.metric).good, good > bad) {
            (Good::More, true) | (Good::Less, false) => favour.push((weight, text)),
            (Good::More, false) | (Good::Less, true) => against.push((weight, text)),
            (Good::Neither, _) => {}
        }
    }
    (favour, against)
}

impl Scale {
    /// How telling a difference is; `None` when it is not worth a word.
    fn weight(self, a: f64, b: f64) -> Option<f64> {
        match self {
            Scale::Share => Some((a - b).abs()).filter(|share| *share > SHARES_DIFFER),
            Scale::Bytes(least) | Scale::Cycles(least) | Scale::Plain(least) => {
                let ratio = ratio(a, b, least);
                // A factor of two weighs as much as a difference of a third between shares.
                (ratio > AMOUNTS_DIFFER).then(|| (ratio.log2() / 3.0).min(1.0))
            }
        }
    }

    fn show(self, value: f64) -> String {
        match self {
            Scale::Share => percent(value),
            Scale::Bytes(_) => bytes(value),
            Scale::Cycles(_) => whole(value),
            Scale::Plain(_) => number(value),
        }
    }
}

/// How many times the smaller of two amounts the larger is; what is below `least` counts as that.
fn ratio(a: f64, b: f64, least: f64) -> f64 {
    a.max(b) / a.min(b).max(least)
}

/// The cause of most drops, as the end of a sentence.
pub fn main_drop(metrics: &Metrics) -> String {
    most_frequent(metrics.drops.iter()).map_or(String::new(), |cause| format!(", mostly as {cause}"))
}

/// Of causes of drops with their counts, that of most.
pub fn most_frequent<'a>(drops: impl Iterator<Item = (&'a String, &'a u64)>) -> Option<&'a str> {
    let (cause, count) = drops.max_by_key(|(_, count)| **count)?;
    (*count > 0).then_some(cause)
}

/// Whether a core that is behind holds entries of a shared ring while others go without: rings are
/// full, and all the same cores idle while frames are dropped.
pub fn is_held(metrics: &Metrics) -> bool {
    let full = metrics.rx_occupancy.is_some_and(|share| share > FULL);
    full && starved(metrics).is_some_and(|idle| idle > SHARES_DIFFER)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eleven cycles of a packet's 3534 say nothing of a factor of five, nor do 13 % more lines that DMA touches.
    #[test]
    fn trifles_are_no_causes_of_much() {
        let point = |mpps, stall, driver, lines| Metrics {
            throughput_mpps: mpps,
            io_working_set_bytes: Some(lines),
            cycles_per_packet: Some(CyclesPerPacket {
                total: stall + driver + 1000.0,
                stall,
                driver,
                ..CyclesPerPacket::default()
            }),
            ..Metrics::default()
        };
        let most = Most { causes: 5, effects: 0, despite: 5 };
        let found = |better| {
            let worse = point(2.9, 2066.0, 90.0, 6_040_000);
            Differences::of(&better, &worse, First::Better, &most).why
        };
        let stalls = "cores wait 780 cycles per packet for memory, against 2066";
        assert_eq!(found(point(15.1, 780.0, 79.0, 5_320_000)), [stalls]);
        // Of a small gain they may be the cause.
        assert_eq!(found(point(2.95, 2066.0, 79.0, 5_320_000)).len(), 2);
    }

    /// What a system receives is payload; what it sends are acknowledgements.
    #[test]
    fn a_whole_systems_memory_traffic_is_that_of_its_payload() {
        let receives = |memory_gb_per_s| Metrics {
            // A million KB a second.
            bandwidth_gbps: Some(8.192),
            throughput_mpps: 0.4,
            memory_gb_per_s: Some(memory_gb_per_s),
            ..Metrics::default()
        };
        let most = Most { causes: 5, effects: 0, despite: 0 };
        let found = Differences::of(&receives(0.0), &receives(2.048), First::Better, &most);
        let expected = "each KB of payload costs 0 B of DRAM traffic, against 2 KiB";
        assert_eq!(found.why, [expected]);
    }
}
