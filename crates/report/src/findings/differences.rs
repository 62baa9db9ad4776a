//! What sets a better point apart from a worse one: what speaks for it, and what does not.

use nicforge_record::{CyclesPerPacket, Metrics};

use super::{SAME, whole};
use crate::columns::{Good, by_key};
use crate::number::{bytes, number, percent};

/// Least difference between two shares that is reported.
const SHARES_DIFFER: f64 = 0.05;
/// Least ratio between two amounts that is reported.
const AMOUNTS_DIFFER: f64 = 1.1;
/// An amount is among the causes of a gain if its change is at least this share of the gain.
const PART: f64 = 0.1;
/// Occupancy from which on full receive rings explain drops.
const FULL: f64 = 0.5;

/// How a quantity is compared and shown.
#[derive(Clone, Copy)]
enum Scale {
    /// A share of one.
    Share,
    /// An amount in bytes; less than this counts as this much, so that ratios of tiny amounts stay small.
    Bytes(f64),
    /// An amount in cycles, as part of a packet's total; likewise.
    Cycles(f64),
    /// Any other amount; likewise.
    Plain(f64),
}

/// A quantity in which two points may differ.
struct Quantity {
    /// The metric that says whether more of it is better.
    metric: &'static str,
    scale: Scale,
    get: fn(&Metrics) -> Option<f64>,
    /// `{a}` and `{b}` stand for the two values.
    words: &'static str,
}

const fn quantity(
    metric: &'static str,
    scale: Scale,
    get: fn(&Metrics) -> Option<f64>,
    words: &'static str,
) -> Quantity {
    Quantity { metric, scale, get, words }
}

/// How a design uses caches, memory, links and cores.
#[rustfmt::skip]
const CAUSES: [Quantity; 15] = [
    quantity("drop_fraction", Scale::Share, starved,
        "cores idle {a} of the time while frames are dropped, against {b}"),
    quantity("io_working_set_bytes", Scale::Bytes(1024.0), |m| m.io_working_set_bytes.map(|set| set as f64),
        "DMA touches {a}, against {b}"),
    quantity("ddio_hit_rate", Scale::Share, |m| m.ddio_hit_rate,
        "software finds {a} of the received lines still in the cache, against {b}"),
    quantity("io_read_hit_rate", Scale::Share, |m| m.io_read_hit_rate,
        "the NIC finds {a} of what it reads in the cache, against {b}"),
    quantity("app_hit_rate", Scale::Share, |m| m.app_hit_rate,
        "{a} of the application's own look-ups hit the cache, against {b}"),
    quantity("memory_gb_per_s", Scale::Bytes(64.0), |m| per_packet(m, m.memory_gb_per_s?, 1e9),
        "a packet costs {a} of DRAM traffic, against {b}"),
    quantity("memory_gb_per_s", Scale::Bytes(64.0), memory_per_kb,
        "each KB of payload costs {a} of DRAM traffic, against {b}"),
    quantity("cycles_per_packet.stall", Scale::Cycles(20.0), |m| cycles(m, |c| c.stall),
        "cores stall {a} cycles per packet on memory, against {b}"),
    quantity("cycles_per_packet.driver", Scale::Cycles(20.0), |m| cycles(m, |c| c.driver),
        "the driver takes {a} cycles per packet, against {b}"),
    quantity("cycles_per_packet.app", Scale::Cycles(20.0), |m| cycles(m, |c| c.app),
        "the application takes {a} cycles per packet, against {b}"),
    quantity("cycles_per_packet.sync", Scale::Cycles(20.0), |m| cycles(m, |c| c.sync),
        "locks and atomics take {a} cycles per packet, against {b}"),
    quantity("cycles_per_packet.alloc", Scale::Cycles(20.0), |m| cycles(m, |c| c.alloc),
        "buffer allocation takes {a} cycles per packet, against {b}"),
    quantity("pcie_out_utilisation", Scale::Plain(10.0), |m| per_packet(m, m.pcie_out_utilisation?, 1e9),
        "a packet takes {a} ns of PCIe towards the host, against {b}"),
    quantity("pcie_in_utilisation", Scale::Plain(10.0), |m| per_packet(m, m.pcie_in_utilisation?, 1e9),
        "a packet takes {a} ns of PCIe towards the NIC, against {b}"),
    quantity("misses_per_kb", Scale::Plain(0.5), |m| m.misses_per_kb,
        "{a} look-ups miss all caches for each KB of payload, against {b}"),
];

/// To which the cause of most drops is added.
const DROPPED: &str = "{a} of the frames are dropped, against {b}";

/// What follows for queues and latency.
#[rustfmt::skip]
const EFFECTS: [Quantity; 4] = [
    quantity("drop_fraction", Scale::Share, |m| Some(m.drop_fraction), DROPPED),
    quantity("rx_occupancy", Scale::Share, |m| m.rx_occupancy,
        "arriving frames find receive rings {a} full, against {b}"),
    quantity("idle_fraction", Scale::Share, room,
        "cores idle {a} of the time, against {b}"),
    quantity("latency_us.p99", Scale::Plain(1.0), |m| Some(m.latency_us.as_ref()?.p99),
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

/// A difference in words.
struct Difference {
    /// How much it explains: 1 at most.
    weight: f64,
    text: String,
}

/// How many differences of each kind are named, at most.
pub struct Counts {
    pub causes: usize,
    pub effects: usize,
    pub despite: usize,
}

/// What speaks for the better of two points and what against it, by falling weight.
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
    pub fn of(better: &Metrics, worse: &Metrics, first: First, most: &Counts) -> Differences {
        let gain = Gain::between(better, worse);
        let causes = CAUSES.iter().filter(|quantity| gain.comes_with(quantity, better, worse));
        let (causes, despite) = weigh(causes, better, worse, first);
        let (effects, price) = weigh(EFFECTS.iter(), better, worse, first);
        let top = |mut found: Vec<Difference>, count: usize| {
            found.sort_by(|a, b| b.weight.total_cmp(&a.weight));
            found.into_iter().take(count).map(|difference| difference.text)
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
            ("As a result", &self.effects),
            ("Despite this", &self.despite),
            ("In exchange", &self.price),
        ];
        let parts = parts.into_iter().filter(|(_, found)| !found.is_empty());
        parts.map(|(head, found)| format!(" {head}: {}.", found.join("; "))).collect()
    }
}

/// How much more one point delivers than another.
struct Gain {
    ratio: f64,
    /// Cycles per packet that the worse one would have to save for it, if cycles were the only limit.
    cycles: f64,
}

impl Gain {
    fn between(better: &Metrics, worse: &Metrics) -> Gain {
        let delivered = |metrics: &Metrics| metrics.bandwidth_gbps.unwrap_or(metrics.throughput_mpps);
        let (more, less) = (delivered(better), delivered(worse));
        let ratio = if less > 0.0 { (more / less).max(1.0) } else { 1.0 };
        let total = cycles(worse, |c| c.total).unwrap_or(0.0);
        Gain { ratio, cycles: total * (1.0 - 1.0 / ratio) }
    }

    /// Whether a difference is large enough to be among its causes.
    fn comes_with(&self, quantity: &Quantity, better: &Metrics, worse: &Metrics) -> bool {
        let (Some(a), Some(b)) = ((quantity.get)(better), (quantity.get)(worse)) else {
            return false;
        };
        match quantity.scale {
            Scale::Share => true,
            Scale::Cycles(_) => (a - b).abs() >= self.cycles * PART,
            Scale::Bytes(least) | Scale::Plain(least) => ratio(a, b, least).log2() >= self.ratio.log2() * PART,
        }
    }
}

/// The differences in the better point's favour, and those against it.
fn weigh<'a>(
    quantities: impl Iterator<Item = &'a Quantity>,
    better: &Metrics,
    worse: &Metrics,
    first: First,
) -> (Vec<Difference>, Vec<Difference>) {
    let (mut favour, mut against) = (Vec::new(), Vec::new());
    for quantity in quantities {
        let (Some(good), Some(bad)) = ((quantity.get)(better), (quantity.get)(worse)) else {
            continue;
        };
        let Some(weight) = quantity.scale.weight(good, bad) else {
            continue;
        };
        let (a, b) = match first {
            First::Better => (good, bad),
            First::Worse => (bad, good),
        };
        let values = (quantity.scale.show(a), quantity.scale.show(b));
        let mut text = quantity.words.replace("{a}", &values.0).replace("{b}", &values.1);
        if quantity.words == DROPPED {
            let more = if better.drop_fraction > worse.drop_fraction { better } else { worse };
            text += &main_drop(more);
        }
        match (by_key(quantity.metric).good, good > bad) {
            (Good::More, true) | (Good::Less, false) => favour.push(Difference { weight, text }),
            (Good::More, false) | (Good::Less, true) => against.push(Difference { weight, text }),
            (Good::Neither, _) => {}
        }
    }
    (favour, against)
}

impl Scale {
    /// How much a difference explains; `None` below the threshold.
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

/// Whether a core that is behind occupies a shared ring: rings are full, frames are dropped, and cores idle all
/// the same.
pub fn stalls_others(metrics: &Metrics) -> bool {
    let full = metrics.rx_occupancy.is_some_and(|share| share > FULL);
    full && starved(metrics).is_some_and(|idle| idle > SHARES_DIFFER)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eleven cycles of a packet's 3534 do not explain a factor of five, nor do 13 % more lines that DMA touches.
    #[test]
    fn small_differences_do_not_explain_a_large_gain() {
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
        let most = Counts { causes: 5, effects: 0, despite: 5 };
        let found = |better| {
            let worse = point(2.9, 2066.0, 90.0, 6_040_000);
            Differences::of(&better, &worse, First::Better, &most).why
        };
        let stalls = "cores stall 780 cycles per packet on memory, against 2066";
        assert_eq!(found(point(15.1, 780.0, 79.0, 5_320_000)), [stalls]);
        // They may explain a small gain.
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
        let most = Counts { causes: 5, effects: 0, despite: 0 };
        let found = Differences::of(&receives(0.0), &receives(2.048), First::Better, &most);
        let expected = "each KB of payload costs 0 B of DRAM traffic, against 2 KiB";
        assert_eq!(found.why, [expected]);
    }
}
