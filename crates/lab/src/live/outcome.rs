//! What a live run counted, and what follows from it.

use std::collections::BTreeMap;
use std::ops::Add;

use hdrhistogram::Histogram;
use nicforge_nic::DropCounters;
use nicforge_record::CoreFigures;
use nicforge_record::{Latency, Metrics, drop_fraction};
use nicforge_record::{Switch, TimelineEntry, Trace};

use super::device::{DeviceCounts, NicCounts};
use super::events::Events;
use super::worker::WorkerCounts;
use crate::counts::{LostError, by_cause, highest_by_name, share, sum_by_name};

/// All counts at one time.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Since the run began, until frames stopped coming in.
    pub seconds: f64,
    /// Of the NICs and ports.
    pub device: DeviceCounts,
    /// Of the workers.
    pub workers: Vec<WorkerCounts>,
    /// What happened to workers that are processes, and to neighbours.
    pub events: Events,
}

/// A live run that is over.
#[derive(Clone, Debug)]
pub struct LiveRun {
    /// Its measurements over the whole time; what only a model knows is absent.
    pub metrics: Metrics,
    /// What each worker did.
    pub cores: Vec<CoreFigures>,
    /// How it went on, where `timeline_ms` asks for that.
    pub timeline: Vec<TimelineEntry>,
    /// When steering changed to another set of queues.
    pub switches: Vec<Switch>,
    /// All counts at its end.
    pub snapshot: Snapshot,
    /// The lives of some packets, if that was asked for.
    pub trace: Option<Trace>,
}

impl Snapshot {
    fn sum(&self, of: impl Fn(&NicCounts) -> u64) -> u64 {
        self.device.nics.iter().map(of).sum()
    }

    /// Frames that came in.
    pub fn arrived(&self) -> u64 {
        self.sum(NicCounts::arrived)
    }

    /// Their bytes, without those that the ports kept.
    pub(super) fn received_bytes(&self) -> u64 {
        self.sum(|nic| nic.nic.bytes)
    }

    /// Bytes of the frames that went out.
    pub(super) fn sent_bytes(&self) -> u64 {
        self.sum(|nic| nic.port.sent_bytes)
    }

    /// Frames that workers took out of receive rings.
    pub(super) fn taken(&self) -> u64 {
        self.workers.iter().map(|worker| worker.taken).sum()
    }

    /// Frames in receive rings.
    pub(super) fn waiting(&self) -> u64 {
        // Counts of different threads are not of one instant while a run goes on.
        self.sum(|nic| nic.nic.delivered).saturating_sub(self.taken())
    }

    /// Frames that went out.
    pub fn left(&self) -> u64 {
        self.sum(|nic| nic.port.sent)
    }

    /// Frames that were dropped, by cause.
    pub fn drops(&self) -> DropCounters {
        let of_nics = self.device.nics.iter().map(|nic| &nic.drops);
        let of_workers = self.workers.iter().map(|worker| &worker.drops);
        of_nics.chain(of_workers).collect()
    }

    /// Frames between the wires: in receive rings, kept by an application, in transmit rings, sent by stages.
    pub fn inside(&self) -> u64 {
        let pushed: u64 = self.workers.iter().map(|worker| worker.pushed).sum();
        let kept: u64 = self.workers.iter().map(|worker| worker.kept).sum();
        let served = self.sum(|nic| nic.served);
        let of_stages = self.sum(|nic| nic.stages.inside);
        self.waiting() + kept + of_stages + pushed.saturating_sub(served)
    }

    /// Mean share of receive entries that waited for software.
    pub fn rx_occupancy(&self) -> Option<f64> {
        let entries = self.sum(|nic| nic.waiting.of);
        share(self.sum(|nic| nic.waiting.entries), entries)
    }

    /// Share of delivered frames that came in another worker's buffer, where workers lend each other any.
    fn borrowed_fraction(&self) -> Option<f64> {
        let each = self.device.lending.iter().flatten();
        let borrowed = each.map(|lending| lending.borrowed).reduce(u64::add)?;
        share(borrowed, self.sum(|nic| nic.nic.delivered))
    }

    /// At the end: arrivals = departures + drops + inside, and every buffer is in one place: `held` of
    /// the pool's `of_pool` were found.
    pub(super) fn check(&self, of_pool: u64, held: u64) -> Result<(), LostError> {
        let (arrived, left) = (self.arrived(), self.left());
        let (dropped, inside) = (self.drops().total(), self.inside());
        let made: u64 = self.workers.iter().map(|worker| worker.made).sum();
        let made = made + self.sum(|nic| nic.port.cut + nic.stages.sent);
        let kept = self.sum(|nic| nic.stages.kept);
        if arrived + made != left + dropped + inside + kept {
            return Err(LostError::Frames { arrived, left, dropped, inside });
        }
        if held != of_pool {
            return Err(LostError::Buffers { buffers: of_pool, held });
        }
        Ok(())
    }

    /// What each worker did, as far as it was counted.
    pub(super) fn by_core(&self) -> Vec<CoreFigures> {
        // Who knows how long each process was there?
        let are_threads = self.device.nonsense.is_empty();
        let each = self.workers.iter().enumerate().map(|(core, worker)| {
            let at_nics = self.device.dropped.get(core);
            let drops = at_nics.into_iter().chain([&worker.drops]).collect();
            let idle = worker.idle.as_seconds() / self.seconds.max(1e-9);
            let receive = self.device.receive.get(core);
            let lending = self.device.lending.get(core).copied().flatten();
            CoreFigures {
                core,
                received: worker.taken,
                borrowed: lending.map(|lending| lending.borrowed),
                lent: lending.map(|lending| lending.lent),
                drops: by_cause(&drops),
                busy_fraction: are_threads.then(|| 1.0 - idle.min(1.0)),
                rx_occupancy: receive.and_then(|&(waiting, of)| share(waiting, of)),
                ..CoreFigures::default()
            }
        });
        each.collect()
    }

    /// What stages of all ports counted, by name.
    fn stages(&self) -> BTreeMap<String, u64> {
        let counters = self.device.nics.iter().flat_map(|nic| nic.stages.counters.iter().copied());
        sum_by_name(counters).into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
    }

    /// The metrics of `report.json`.
    pub(super) fn metrics(&self, latency: &Histogram<u64>) -> Metrics {
        let per_second = |count: u64| count as f64 / self.seconds.max(1e-9);
        let drops = self.drops();
        let transmit =
            self.workers.iter().fold((0, 0), |(used, of), worker| (used + worker.transmit.0, of + worker.transmit.1));
        let idle: f64 = self.workers.iter().map(|worker| worker.idle.as_seconds()).sum();
        let whole = self.seconds * self.workers.len() as f64;
        Metrics {
            throughput_gbps: per_second(self.sent_bytes()) * 8.0 / 1e9,
            offered_gbps: per_second(self.received_bytes()) * 8.0 / 1e9,
            throughput_mpps: per_second(self.left()) / 1e6,
            offered_mpps: per_second(self.arrived()) / 1e6,
            drop_fraction: drop_fraction(drops.total(), self.arrived()),
            drops: by_cause(&drops),
            stages: self.stages(),
            stage_gauges: highest_by_name(self.device.nics.iter().flat_map(|nic| nic.stages.gauges.iter().copied())),
            latency_us: (!latency.is_empty()).then(|| latency_us(latency)),
            rx_occupancy: self.rx_occupancy(),
            borrowed_fraction: self.borrowed_fraction(),
            tx_occupancy: share(transmit.0, transmit.1),
            idle_fraction: (whole > 0.0).then(|| (idle / whole).min(1.0)),
            ..Metrics::default()
        }
    }
}

fn latency_us(histogram: &Histogram<u64>) -> Latency {
    let us = |ns: u64| ns as f64 / 1e3;
    let at = |quantile| us(histogram.value_at_quantile(quantile));
    let curve = histogram.iter_quantiles(2);
    Latency {
        mean: histogram.mean() / 1e3,
        p50: at(0.5),
        p99: at(0.99),
        p999: at(0.999),
        max: us(histogram.max()),
        curve: curve.map(|step| (step.percentile(), us(step.value_iterated_to()))).collect(),
    }
}
