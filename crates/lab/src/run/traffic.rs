//! From settings to traffic sources.

use std::collections::BTreeSet;
use std::path::PathBuf;

use nicforge_nic::RssOptions;
use nicforge_platform::sim::Hardware;
use nicforge_units::{BitRate, Time};
use nicforge_wire::capture::CaptureReader;
use nicforge_wire::headers::MacAddress;
use nicforge_wire::rss::{IndirectionTable, Toeplitz};
use nicforge_wire::traffic::{
    ArrivalModel, FlowChoice, FlowSpace, FlowTuple, Line, QueueShares, Replay, ReplayTiming, Shares, SizeModel,
    Synthetic, SyntheticConfig, Target, TrafficError, TrafficSource,
};

use super::options::{
    self, Arrival, Arrivals, Bimodal, Bursts, Capture, Choices, Empirical, FlowChoices, Flows, Measure, Measurement,
    PacketBytes, PacketSizes, PingPong, Rate, Sizes, Timing, Zipf,
};
use super::requests::requests_source;
use super::search;
use crate::settings::Settings;

/// Why there is no traffic.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// It cannot be made up.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// A file cannot be read.
    #[error("{}: {cause}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
    /// A file of frame sizes says something else.
    #[error("{}: {cause}", path.display())]
    Sizes {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        cause: TrafficError,
    },
    /// The capture cannot be replayed.
    #[error("{}: {cause}", path.display())]
    Capture {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        cause: TrafficError,
    },
    /// The capture lasts longer than time is kept.
    #[error(
        "{}: to replay it as it is asked for takes {seconds} s, and a run lasts {} s at most: {right}",
        path.display(),
        Time::RUN_MAX.as_seconds()
    )]
    ReplayTooLong {
        /// Which.
        path: PathBuf,
        /// How long it lasts, loops and trials included.
        seconds: u64,
        /// What would do.
        right: String,
    },
}

/// Which queue of its NIC a flow is steered to.
pub fn queue_of(tuple: &FlowTuple, rss: &Toeplitz, steering: &IndirectionTable) -> u16 {
    steering.queue(rss.hash_ipv4_ports(tuple.source, tuple.destination, tuple.source_port, tuple.destination_port))
}

/// The hash by which NICs of a point spread frames.
pub(crate) fn rss_of(settings: &Settings) -> Toeplitz {
    Toeplitz::new(&settings.read::<RssOptions>().rss_key)
}

/// The wire to each port of `hardware`.
pub fn line_of(hardware: &Hardware) -> Line {
    Line { rate: hardware.nic.port, overhead: hardware.nic.wire_overhead }
}

/// The flows of port `port`: each port has its own share.
pub fn flows_of(settings: &Settings, seed: u64, port: usize) -> Result<FlowSpace, SourceError> {
    let share = settings.read::<Flows>().flows.div_ceil(settings.nics() as u64);
    Ok(FlowSpace::new(seed ^ (port as u64) << 48, share)?)
}

/// The traffic that arrives at port `port`, whose NIC has `queues` queues. Synthetic payload is zero
/// where nobody will look at it (`zero_payload`).
pub fn traffic_source(
    settings: &Settings,
    line: Line,
    seed: u64,
    port: usize,
    queues: u16,
    zero_payload: bool,
) -> Result<TrafficSource, SourceError> {
    let rate = BitRate::from_gbps(settings.read::<Rate>().offered_gbps / settings.nics() as f64);
    if settings.replays() {
        return replay(settings, line, rate);
    }
    if settings.app_shape().requests.is_some() {
        let arrival = arrival(settings, rate);
        return requests_source(settings, line, seed, port, queues, arrival);
    }
    let flows = flows_of(settings, seed, port)?;
    let config = SyntheticConfig {
        seed: seed.wrapping_add(port as u64),
        line,
        arrival: arrival(settings, rate),
        sizes: sizes(settings)?,
        flows,
        choice: choice(settings),
        shares: shares(settings, &flows, queues)?,
        // Locally administered addresses: a generator, and the port (as the applications have it).
        source: MacAddress([2, 0, 0, 0, 1, port as u8]),
        destination: MacAddress([2, 0, 0, 0, 0, port as u8]),
        zero_payload,
    };
    Ok(TrafficSource::Synthetic(Box::new(Synthetic::new(config)?)))
}

fn arrival(settings: &Settings, rate: BitRate) -> ArrivalModel {
    match settings.read::<Arrivals>().arrival {
        Arrival::Poisson => ArrivalModel::Poisson { rate },
        Arrival::Bursts => ArrivalModel::Bursts { rate, frames: settings.read::<Bursts>().burst_packets },
        Arrival::PingPong => {
            let PingPong { in_flight, request_timeout_us } = settings.read();
            ArrivalModel::PingPong { in_flight, timeout: Time::from_seconds(request_timeout_us / 1e6) }
        }
        // A replay has times of its own.
        Arrival::Constant | Arrival::Replay => ArrivalModel::Constant { rate },
    }
}

fn sizes(settings: &Settings) -> Result<SizeModel, SourceError> {
    let PacketBytes { packet_bytes } = settings.read();
    Ok(match (settings.read::<Sizes>().packet_sizes, settings.read::<Empirical>().size_file) {
        (PacketSizes::Imix, _) => SizeModel::Imix,
        (PacketSizes::Bimodal, _) => {
            let small_share = settings.read::<Bimodal>().small_share;
            SizeModel::Bimodal { small: 64, large: packet_bytes, small_share }
        }
        (PacketSizes::Empirical, Some(file)) => sizes_of_file(PathBuf::from(file))?,
        (PacketSizes::Empirical, None) | (PacketSizes::Fixed, _) => SizeModel::Fixed(packet_bytes),
    })
}

fn sizes_of_file(path: PathBuf) -> Result<SizeModel, SourceError> {
    match std::fs::read_to_string(&path) {
        Ok(text) => SizeModel::from_lines(&text).map_err(|cause| SourceError::Sizes { path, cause }),
        Err(cause) => Err(SourceError::File { path, cause }),
    }
}

pub(super) fn choice(settings: &Settings) -> FlowChoice {
    match settings.read::<Choices>().flow_choice {
        FlowChoices::Zipf => FlowChoice::Zipf { s: settings.read::<Zipf>().zipf_s },
        FlowChoices::Single => FlowChoice::Single,
        FlowChoices::RoundRobin => FlowChoice::RoundRobin,
        FlowChoices::Uniform => FlowChoice::Uniform,
    }
}

fn shares(settings: &Settings, flows: &FlowSpace, queues: u16) -> Result<Option<Shares>, SourceError> {
    let options::Shares { target_share, busiest_to_idlest } = settings.read();
    let options::TargetBytes { target_packet_bytes } = settings.read();
    let queue_of = queue_among(settings, queues);
    if settings.has_queue_shares(queues.into()) {
        let shares = QueueShares::falling(flows, queues, busiest_to_idlest, queue_of)?;
        return Ok(Some(Shares::Queues(shares)));
    }
    if target_share == 0.0 {
        return Ok(None);
    }
    let target = Target::new(flows, target_share, target_packet_bytes, |tuple| queue_of(tuple) == 0)?;
    let target = target.beginning_at(settings.target_begins());
    Ok(Some(Shares::Target(target)))
}

/// Which of `queues` queues RSS steers a flow to.
fn queue_among(settings: &Settings, queues: u16) -> impl Fn(&FlowTuple) -> u16 + use<> {
    let rss = rss_of(settings);
    let steering = IndirectionTable::spread_over(queues);
    move |tuple| queue_of(tuple, &rss, &steering)
}

/// Whether there are flows for all who are to get a share, without looking at all of them.
///
/// # Errors
/// What [`traffic_source`] says, which looks at all.
pub fn check_shares(settings: &Settings, seed: u64) -> Result<(), SourceError> {
    let queues = settings.queues();
    let of_queues = settings.has_queue_shares(queues);
    let of_target = settings.read::<options::Shares>().target_share > 0.0 && settings.makes_up_frames();
    if !of_queues && !of_target {
        return Ok(());
    }
    let queues = queues as u16;
    let queue_of = queue_among(settings, queues);
    for port in 0..settings.nics() {
        let flows = flows_of(settings, seed, port)?;
        let queue_of_each = (0..flows.count()).map(|flow| queue_of(&flows.tuple(flow)));
        if of_queues {
            check_queues(queue_of_each, queues, flows.count())?
        } else {
            check_target(settings, queue_of_each, queues)?
        }
    }
    Ok(())
}

/// Whether each queue has a flow.
fn check_queues(queue_of_each: impl Iterator<Item = u16>, queues: u16, flows: u64) -> Result<(), TrafficError> {
    let mut without: BTreeSet<u16> = (0..queues).collect();
    for queue in queue_of_each {
        without.remove(&queue);
        if without.is_empty() {
            break;
        }
    }
    match without.first() {
        Some(&queue) => Err(TrafficError::QueueFlows { queue, flows }),
        None => Ok(()),
    }
}

/// Whether there are flows for a target, and others.
fn check_target(
    settings: &Settings,
    queue_of_each: impl Iterator<Item = u16> + Clone,
    queues: u16,
) -> Result<(), TrafficError> {
    let single = settings.read::<Choices>().flow_choice == FlowChoices::Single;
    let has_target = queue_of_each.clone().any(|queue| queue == 0);
    let has_other = queues > 1 && queue_of_each.clone().any(|queue| queue != 0);
    if single || !has_target || settings.read::<options::Shares>().target_share < 1.0 && !has_other {
        return Err(TrafficError::TargetFlows);
    }
    Ok(())
}

fn replay(settings: &Settings, line: Line, rate: BitRate) -> Result<TrafficSource, SourceError> {
    let path = capture_of(settings);
    let Capture { replay_timing, replay_loops, .. } = settings.read();
    let timing = match replay_timing {
        Timing::Recorded => ReplayTiming::Recorded,
        Timing::Scaled => ReplayTiming::Scaled(rate),
    };
    let failed = |cause| SourceError::Capture { path: path.clone(), cause };
    let reader = CaptureReader::open(&path).map_err(|cause| failed(cause.into()))?;
    let replay = Replay::load(reader, line, timing, replay_loops).map_err(failed)?;
    check_replay(settings, &replay)?;
    Ok(TrafficSource::Replay(Box::new(replay)))
}

fn capture_of(settings: &Settings) -> PathBuf {
    PathBuf::from(settings.read::<Capture>().pcap.unwrap_or_default())
}

/// Whether a run can last as long as its capture, which is `replay` whatever timing that has.
///
/// # Errors
/// It cannot.
pub fn check_replay(settings: &Settings, replay: &Replay) -> Result<(), SourceError> {
    let rate = BitRate::from_gbps(settings.read::<Rate>().offered_gbps / settings.nics() as f64);
    let searches = settings.read::<Measurement>().measure == Measure::NoDropRate;
    let Capture { replay_timing, replay_loops: loops, .. } = settings.read();
    let (timing, times) = match replay_timing {
        _ if searches => (ReplayTiming::Scaled(rate), search::LENGTHS),
        Timing::Recorded => (ReplayTiming::Recorded, 1),
        Timing::Scaled => (ReplayTiming::Scaled(rate), 1),
    };
    let lasts = |loops| replay.lasts(timing, loops).as_ps().saturating_mul(times);
    let fits = |loops: u32| lasts(loops) <= Time::RUN_MAX.as_ps();
    if fits(loops) {
        return Ok(());
    }
    // Of so many loops the first ones fit.
    let (mut fit, mut not) = (0, loops);
    while not - fit > 1 {
        let middle = fit + (not - fit) / 2;
        if fits(middle) { fit = middle } else { not = middle }
    }
    let right = match (fit, timing) {
        (1.., _) => format!("set replay_loops to at most {fit}"),
        (0, ReplayTiming::Recorded) => "set replay_timing to \"scaled\", or cut it".to_string(),
        (0, _) => "set offered_gbps to more, or cut it".to_string(),
    };
    Err(SourceError::ReplayTooLong {
        path: capture_of(settings),
        seconds: lasts(loops).div_ceil(Time::from_ms(1000).as_ps()),
        right,
    })
}
