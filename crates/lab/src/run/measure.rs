//! What was counted between the two ends of a window.

use std::collections::BTreeMap;
use std::path::Path;

use nicforge_nic::transmit::TransmitEngine;
use nicforge_nic::{DropCounters, NicCounters, Pool, Waiting};
use nicforge_platform::FlatCpu;
use nicforge_platform::sim::{CoreCycles, DmaCounters, MemoryCounters};
use nicforge_record::{CoreFigures, Metrics, drop_fraction};
use nicforge_units::{Frequency, Lines, Time};
use nicforge_wire::capture::write_file;

use super::batches::Left;
use super::build::Built;
use super::by_core::{CoreCounts, borrowed, by_core};
use super::{RunError, RunIo};
use crate::counts::{by_cause, highest_by_name, share, sum_by_name};
use crate::world::World;
use crate::world::core_time::Cores;
use crate::world::generator::Generator;
use crate::world::sink::Captured;

/// How often progress is reported.
pub const STEPS: u64 = 50;

/// Everything that is counted, at one time.
#[derive(Clone)]
pub struct Snapshot {
    nics: Vec<NicCounters>,
    dma: Vec<DmaCounters>,
    memory: MemoryCounters,
    dram_lines: u64,
    cores: Vec<CoreCounts>,
    /// Those that play NICs.
    emulators: Vec<CoreCycles>,
    /// What those moved, and in how many turns.
    moved: (u64, u64),
    transmit: (u64, u64),
    drops: DropCounters,
    /// Frames and bytes that left since the run began.
    pub left: (u64, u64),
    /// Of all receive queues, summed over arriving frames.
    waiting: Waiting,
    /// Frames that went to a ring of second choice.
    spilled: u64,
    /// GETs of key-value stores, and those that were answered with their value.
    gets: u64,
    get_hits: u64,
    /// Requests that they refused.
    too_large: u64,
    misdirected: u64,
    /// GETs answered from memory of the NIC.
    lent: u64,
    /// How often a transmit ring filled the internal buffer.
    deschedules: u64,
    /// Bytes that co-runners copied.
    copied: u64,
    /// Packet buffers that cores wanted and did not get.
    refused_buffers: u64,
    /// Requests that clients gave up, where they wait for answers.
    given_up: Option<u64>,
    /// What stages of NICs counted, by name.
    stages: BTreeMap<&'static str, u64>,
}

impl Snapshot {
    /// At `now`, up to which the world has run.
    pub fn of(world: &mut World, now: Time) -> Snapshot {
        let hierarchy = &mut world.hosts[0].machine.hierarchy;
        let (memory, dram_lines) = (hierarchy.counters(), hierarchy.dram_lines());
        let host = &world.hosts[0];
        let counted = |name: &str| {
            let counters = host.cores.iter().flat_map(|core| core.program.counters());
            let named = counters.filter(|&(counter, _)| counter == name);
            named.map(|(_, count)| count).sum()
        };
        let engines = world.rings().map(|device| &device.nic.transmit).map(TransmitEngine::counters);
        let plays = || host.players().map(|core| core.program.account());
        Snapshot {
            nics: world.rings().map(|device| device.nic.counters.clone()).collect(),
            dma: world.rings().map(|device| device.port.counters(&host.machine)).collect(),
            memory,
            dram_lines,
            cores: CoreCounts::of(world, now),
            emulators: host.players().map(|core| core.spent_until(now)).collect(),
            moved: (plays().map(|account| account.moved).sum(), plays().map(|account| account.bursts).sum()),
            transmit: (world.sum(|account| account.transmit_used), world.sum(|account| account.transmit_entries)),
            drops: world.drops(),
            left: (world.outside.sink.total(), world.outside.sink.sums().0),
            waiting: world.waiting_sum(),
            spilled: world.rings().map(|device| device.nic.receive.spilled()).sum(),
            gets: counted("gets"),
            get_hits: counted("get_hits"),
            too_large: counted("too_large"),
            misdirected: counted("misdirected"),
            lent: counted("hot_lent"),
            given_up: world.outside.generators.iter().map(Generator::given_up).sum(),
            stages: stages(world),
            deschedules: engines.map(|counted| counted.deschedules).sum(),
            copied: world.sum(|account| account.copied),
            refused_buffers: world.sum(|account| account.refused_buffers),
        }
    }
}

impl Snapshot {
    fn of_nics(&self, pick: fn(&NicCounters) -> u64) -> u64 {
        self.nics.iter().map(pick).sum()
    }

    fn of_ports(&self, pick: fn(&DmaCounters) -> u64) -> u64 {
        self.dma.iter().map(pick).sum()
    }

    /// The stages' counter called `name`.
    fn of_stages(&self, name: &str) -> u64 {
        self.stages.get(name).copied().unwrap_or(0)
    }
}

/// What was counted when a window began.
pub struct Window {
    from: Time,
    before: Snapshot,
}

impl Window {
    /// The window begins now, at `from`.
    pub fn begin(world: &mut World, from: Time) -> Window {
        world.hosts[0].machine.hierarchy.forget_touched();
        let before = Snapshot::of(world, from);
        Window { from, before }
    }

    /// It ends now, at `ended`.
    pub fn end(&self, built: &mut Built, ended: Time) -> Measured {
        let after = Snapshot::of(&mut built.world, ended);
        let seconds = (ended - self.from).as_seconds();
        let hierarchy = &built.world.hosts[0].machine.hierarchy;
        let touched = Lines(hierarchy.touched_lines()).bytes().0;
        let whole = metrics(built, (&self.before, &after), Left::in_window(&built.world), seconds);
        Measured {
            // Only here, not for each batch: it reads the word of every line of memory.
            metrics: Metrics { io_working_set_bytes: Some(touched), ..whole },
            cores: by_core(built, &self.before.cores, &after.cores, seconds),
        }
    }
}

/// What was measured in a window.
#[derive(Default)]
pub struct Measured {
    /// Of all together.
    pub metrics: Metrics,
    /// Of each core.
    pub cores: Vec<CoreFigures>,
}

/// Told the time that a run has come to, and frames so far.
type Tell<'a> = &'a mut dyn FnMut(Time, u64);

/// Runs until `to`.
pub fn run_to(world: &mut World, to: Time, tell: Tell<'_>) -> Result<(), RunError> {
    let mut next = world.now();
    let step = Time::from_ps((to.saturating_sub(next).as_ps() / STEPS).max(1));
    while next < to {
        next = (next + step).min(to);
        world.run_until(next)?;
        tell(next, world.arrived());
    }
    Ok(())
}

/// A core that still has no buffer so long after the last frame left gets none: only frames that leave free buffers.
const STARVED_AFTER: Time = Time::from_ms(1);

/// Runs until nothing is due any more but co-runners, who never end, and cores that poll for buffers which others keep.
/// Returns when the last frame arrived or left, to a microsecond.
pub fn run_out(world: &mut World, tell: Tell<'_>) -> Result<Time, RunError> {
    let step = Time::from_us(1);
    let mut ended = step;
    // When something arrived or was inside last.
    let mut busy = world.now();
    while world.next_time() != Time::NEVER {
        let arrivals = world.outside.generators.iter().map(Generator::next_step);
        let arrivals = arrivals.filter(|&time| time != Time::NEVER).max();
        ended = ended.max(arrivals.unwrap_or_default());
        if arrivals.is_some() || world.inside() > 0 {
            busy = world.now();
        } else if world.now() - busy > STARVED_AFTER {
            break;
        }
        world.run_until(world.next_time() + step)?;
        tell(world.now(), world.arrived());
    }
    Ok(ended.max(world.outside.sink.last()))
}

/// Checks that nothing was lost, and writes the capture.
pub fn finish(mut built: Built, io: &RunIo) -> Result<(), RunError> {
    let mut shared = FlatCpu::over(built.world.hosts[0].machine.memory.take_bytes());
    let available = built.pools.iter().map(|pool| pool.available(&mut shared));
    let available = available.sum();
    let buffers = built.pools.iter().map(Pool::count).sum::<usize>();
    built.world.check_conservation(buffers as u64, available)?;
    match &io.pcap_out {
        Some(path) => write_capture(path, built.world.outside.sink.take_capture()),
        None => Ok(()),
    }
}

/// Writes `frames` in the order of their times.
pub(crate) fn write_capture(path: &Path, mut frames: Vec<Captured>) -> Result<(), RunError> {
    // Ports depart independently; a capture is in order of time.
    frames.sort_by_key(|frame| (frame.time, frame.port));
    let mut frames = frames.iter();
    let written = write_file(path, |writer| frames.try_for_each(|frame| writer.write(frame.time, &frame.bytes)));
    written.map_err(|cause| RunError::Written { path: path.to_path_buf(), cause })
}

fn stages(world: &World) -> BTreeMap<&'static str, u64> {
    sum_by_name(world.rings().flat_map(|device| device.stage_counters()))
}

/// The mean of `count` times that are `sum_ps` together.
fn mean_us(sum_ps: u64, count: u64) -> Option<f64> {
    share(sum_ps, count).map(|ps| ps / 1e6)
}

fn any(count: u64) -> Option<u64> {
    (count > 0).then_some(count)
}

/// The share of `seconds` that cores that play NICs did not poll in vain; `None` without any.
fn emulators_busy(clock: Frequency, before: &Snapshot, after: &Snapshot, seconds: f64) -> Option<f64> {
    let cores = Cores::between(clock, before.emulators.iter().zip(&after.emulators));
    cores.idle_share(seconds).map(|idle| 1.0 - idle)
}

/// The time of those cores that `counts` picks by number.
fn cores_between(clock: Frequency, before: &Snapshot, after: &Snapshot, counts: impl Fn(usize) -> bool) -> Cores {
    let each = before.cores.iter().zip(&after.cores).enumerate();
    let picked = each.filter(|&(core, _)| counts(core));
    Cores::between(clock, picked.map(|(_, (from, until))| (&from.spent, &until.spent)))
}

/// What was counted between two snapshots.
pub fn metrics(built: &Built, (before, after): (&Snapshot, &Snapshot), left: Left, seconds: f64) -> Metrics {
    let world = &built.world;
    let sum = |pick: fn(&NicCounters) -> u64| after.of_nics(pick) - before.of_nics(pick);
    let Left { frames: frames_out, bytes: bytes_out, latency } = left;
    let (frames_in, bytes_in) = (sum(|nic| nic.frames), sum(|nic| nic.bytes));
    let drops = after.drops.since(&before.drops);
    let memory = after.memory.since(&before.memory);
    let per_second = |count: u64, unit: f64| count as f64 / seconds / unit;
    let link = built.hardware.pcie.rate.as_bits_per_second() as f64 * world.hosts[0].devices.len() as f64;
    let dma = |pick: fn(&DmaCounters) -> u64| after.of_ports(pick) - before.of_ports(pick);
    let busy = |bytes: u64| bytes as f64 * 8.0 / seconds / link;
    let clock = built.hardware.core.frequency;
    let cycles = cores_between(clock, before, after, |_| true);
    let target = |core: usize| built.has_target && core.is_multiple_of(built.queues);
    let targets = cores_between(clock, before, after, target);
    let others = cores_between(clock, before, after, |core| built.has_target && !target(core));
    let grew = |pick: fn(&Snapshot) -> u64| pick(after) - pick(before);
    let copied = grew(|now| now.copied);
    let of_stages = |name: &str| after.of_stages(name) - before.of_stages(name);
    Metrics {
        throughput_gbps: per_second(bytes_out * 8, 1e9),
        offered_gbps: per_second(bytes_in * 8, 1e9),
        throughput_mpps: per_second(frames_out, 1e6),
        offered_mpps: per_second(frames_in, 1e6),
        drop_fraction: drop_fraction(drops.total(), frames_in),
        drops: by_cause(&drops),
        requests_timed_out: after.given_up.zip(before.given_up).map(|(a, b)| a - b),
        rx_nombuf: any(grew(|now| now.refused_buffers)),
        latency_us: latency,
        rx_occupancy: share(grew(|now| now.waiting.entries), grew(|now| now.waiting.of)),
        tx_occupancy: share(grew(|now| now.transmit.0), grew(|now| now.transmit.1)),
        ddio_hit_rate: share(memory.fresh_read, memory.fresh_read + memory.fresh_lost),
        io_read_hit_rate: share(memory.device_read_hits, memory.device_read_lines),
        io_write_hit_rate: share(memory.device_write_hits, memory.device_write_lines),
        app_hit_rate: share(memory.app_hits, memory.app_look_ups),
        core_hit_rate: share(memory.app_hits + memory.driver_hits, memory.app_look_ups + memory.driver_look_ups),
        get_hit_rate: share(grew(|now| now.get_hits), grew(|now| now.gets)),
        requests_too_large: any(grew(|now| now.too_large)),
        requests_misdirected: any(grew(|now| now.misdirected)),
        copy_gb_per_s: (copied > 0).then(|| per_second(copied, 1e9)),
        tx_deschedules_per_packet: share(grew(|now| now.deschedules), frames_out),
        spill_fraction: (built.pools.len() > 1)
            .then(|| share(after.spilled - before.spilled, sum(|nic| nic.delivered)))
            .flatten(),
        borrowed_fraction: borrowed(&before.cores, &after.cores)
            .and_then(|count| share(count, sum(|nic| nic.delivered))),
        flow_state_miss_rate: share(of_stages("context_misses"), of_stages("context_lookups")),
        stages: after.stages.keys().map(|&name| (name.to_owned(), of_stages(name))).collect(),
        stage_gauges: highest_by_name(world.rings().flat_map(|device| device.nic.stages.gauges())),
        nicmem_get_share: share(grew(|now| now.lent), grew(|now| now.gets)),
        core_llc_accesses_per_packet: share(memory.app_look_ups + memory.driver_look_ups, frames_out),
        llc_misses_per_packet: share(memory.llc_misses(), frames_out),
        memory_gb_per_s: Some(per_second(Lines(grew(|now| now.dram_lines)).bytes().0, 1e9)),
        pcie_out_utilisation: Some(busy(dma(|dma| dma.out_bytes))),
        pcie_in_utilisation: Some(busy(dma(|dma| dma.in_bytes))),
        pcie_read_us: mean_us(dma(|dma| dma.read_time_ps), dma(|dma| dma.reads)),
        nic_receive_us: mean_us(sum(|nic| nic.receive_ps), sum(|nic| nic.delivered)),
        cycles_per_packet: cycles.per_packet(frames_out),
        target_alloc_share: targets.alloc_share(),
        other_alloc_share: others.alloc_share(),
        idle_fraction: cycles.idle_share(seconds),
        emulator_busy_fraction: emulators_busy(clock, before, after, seconds),
        emulator_burst_frames: share(grew(|now| now.moved.0), grew(|now| now.moved.1)),
        ..Metrics::default()
    }
}
