//! What a live run measures, for Prometheus.

use nicforge_lab::live::{NicCounts, Snapshot, StageCounts, WorkerCounts};
use nicforge_nic::DropCounters;

use crate::openmetrics::{Metric, Row, Value};

/// Named values, as applications and stages have them.
type Named = [(&'static str, u64)];

/// All of it, as of `now`.
pub fn of(now: &Snapshot) -> Vec<Metric> {
    let mut metrics = of_ports(now);
    metrics.extend(of_workers(now));
    metrics.extend(of_applications(now));
    metrics
}

fn of_ports(now: &Snapshot) -> Vec<Metric> {
    let each = |of: fn(&NicCounts) -> u64| -> Vec<Row> {
        let ports = now.device.nics.iter().enumerate();
        ports.map(|(port, nic)| Row::of("port", port, of(nic))).collect()
    };
    let of_stages = |values: fn(&StageCounts) -> &Vec<(&'static str, u64)>| -> Vec<Row> {
        let ports = now.device.nics.iter().enumerate();
        ports.flat_map(|(port, nic)| named("port", port, values(&nic.stages))).collect()
    };
    vec![
        Metric::counter("received_frames", "Frames that came in", each(NicCounts::arrived)),
        Metric::counter("received_bytes", "Bytes that came in", each(|nic| nic.nic.bytes)),
        Metric::counter("sent_frames", "Frames that went out", each(|nic| nic.port.sent)),
        Metric::counter("sent_bytes", "Bytes that went out", each(|nic| nic.port.sent_bytes)),
        Metric::counter(
            "link_downs",
            "How often a port's interface went down",
            each(|nic| nic.link.as_ref().map_or(0, |link| link.downs)),
        ),
        Metric::counter(
            "next_hop_moves",
            "How often a next hop had another hardware address than before",
            each(|nic| nic.stages.count("next_hop_moved")),
        ),
        Metric::counter(
            "next_hop_questions",
            "Questions for a next hop: frames that went out without one that came in",
            each(|nic| nic.stages.count("next_hop_asked")),
        ),
        Metric::counter(
            "next_hop_unanswered",
            "Questions for a next hop that nobody answered in time",
            each(|nic| nic.stages.count("next_hop_unanswered")),
        ),
        Metric::counter("dropped_frames", "Frames dropped, by cause", drops(now)),
        Metric::counter(
            "stage_count",
            "What stages of a port's NIC counted, by name",
            of_stages(|stages| &stages.counters),
        ),
        Metric::gauge(
            "stage_gauge",
            "What stages of a port's NIC hold now, by name",
            of_stages(|stages| &stages.gauges),
        ),
    ]
}

fn of_workers(now: &Snapshot) -> Vec<Metric> {
    let each = |of: &dyn Fn(usize, &WorkerCounts) -> Value| -> Vec<Row> {
        let workers = now.workers.iter().enumerate();
        workers.map(|(worker, counts)| Row::of("worker", worker, of(worker, counts))).collect()
    };
    let receive = |worker: usize| now.device.receive.get(worker).copied().unwrap_or_default();
    vec![
        Metric::gauge(
            "worker_present",
            "Whether somebody works there",
            each(&|_, counts| u64::from(!counts.absent).into()),
        ),
        Metric::gauge(
            "worker_silent_seconds",
            "How long a worker's process has said nothing",
            each(&|_, counts| counts.silent.as_seconds().into()),
        ),
        Metric::counter("worker_packets", "Packets that a worker took", each(&|_, counts| counts.taken.into())),
        Metric::counter(
            "worker_idle_seconds",
            "Time without a packet, or without anybody who works there",
            each(&|_, counts| counts.idle.as_seconds().into()),
        ),
        Metric::counter(
            "worker_receive_entries_waiting",
            "Receive entries waiting for software, summed over looks",
            each(&|worker, _| receive(worker).0.into()),
        ),
        Metric::counter(
            "worker_receive_entries",
            "Receive entries there were, summed over the same looks",
            each(&|worker, _| receive(worker).1.into()),
        ),
        Metric::counter(
            "worker_transmit_entries_used",
            "Transmit entries in use, summed over packets",
            each(&|_, counts| counts.transmit.0.into()),
        ),
        Metric::counter(
            "worker_transmit_entries",
            "Transmit entries there were, summed over the same packets",
            each(&|_, counts| counts.transmit.1.into()),
        ),
    ]
}

fn of_applications(now: &Snapshot) -> Vec<Metric> {
    let each = |values: fn(&WorkerCounts) -> &Vec<(&'static str, u64)>| -> Vec<Row> {
        let workers = now.workers.iter().enumerate();
        workers.flat_map(|(worker, counts)| named("worker", worker, values(counts))).collect()
    };
    vec![
        Metric::counter("app_count", "What a worker's application counted, by name", each(|counts| &counts.app)),
        Metric::gauge("app_gauge", "What a worker's application holds now, by name", each(|counts| &counts.gauges)),
    ]
}

fn named(owner: &'static str, number: usize, values: &Named) -> impl Iterator<Item = Row> {
    values.iter().map(move |(name, value)| Row::of(owner, number, *value).and("name", name))
}

/// Drops of ports and workers, by cause.
fn drops(now: &Snapshot) -> Vec<Row> {
    let of = |owner, number, drops: &DropCounters| -> Vec<Row> {
        let causes = drops.causes().iter();
        causes.map(|(cause, count)| Row::of(owner, number, *count).and("cause", cause)).collect()
    };
    let ports = now.device.nics.iter().enumerate().flat_map(|(port, nic)| of("port", port, &nic.drops));
    let workers = now.workers.iter().enumerate().flat_map(|(worker, counts)| of("worker", worker, &counts.drops));
    ports.chain(workers).collect()
}
