//! Traffic sources: frames, and the times at which their first bits arrive at a port.
//!
//! A source is one of three: [`Synthetic`], which composes an arrival model ([`ArrivalModel`]), a
//! size model ([`SizeModel`]) and a choice of flows ([`FlowChoice`], [`Shares`]); [`Requests`] of
//! clients to a key-value store; or [`Replay`] of a capture. All keep to the line: a frame never begins before the one before, with preamble,
//! FCS and gap, is over. Rates are Gbit/s of frame bytes without those. The same seed gives the
//! same frames at the same picoseconds on every machine: logarithms and exponentials are libm's.

mod alias;
mod arrival;
mod closed_loop;
mod flows;
mod line;
mod pairs;
mod random;
mod replay;
mod requests;
mod shares;
mod sizes;
mod steered;
mod synthetic;
mod template;
mod zipf;

use nicforge_units::{BitRate, Time};
use thiserror::Error;

pub use arrival::ArrivalModel;
pub use flows::{FlowChoice, FlowSpace, FlowTuple, Target};
pub use line::Line;
pub use pairs::{PairSpace, WORD_BYTES};
pub use replay::{LongFrames, REPLAY_BYTES_MAX, Replay, ReplayCounts, ReplayTiming};
pub use requests::{RequestConfig, RequestProtocol, Requests};
pub use shares::{QueueShares, Shares};
pub use sizes::{FRAME_BYTES_MAX, FRAME_BYTES_MIN, SizeModel};
pub use synthetic::{Synthetic, SyntheticConfig};
pub use zipf::Zipf;

use crate::capture::CaptureError;
use crate::rss::INDIRECTION_ENTRIES;

/// A frame that arrives.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// When its first bit arrives at the port.
    pub time: Time,
    /// The frame, without FCS.
    pub bytes: &'a [u8],
    /// From here on all its bytes are zero.
    pub head: usize,
    /// Number of its flow ([`FlowSpace::tuple`]); absent in replayed captures.
    pub flow: Option<u64>,
}

/// Why a traffic source cannot be made.
#[derive(Debug, Error)]
pub enum TrafficError {
    /// A rate of zero never sends.
    #[error("the rate must be above 0 bit/s")]
    ZeroRate,
    /// Bursts or ping-pong of no frames.
    #[error("{0} must be at least 1")]
    ZeroFrames(&'static str),
    /// Ping-pong that gives up at once.
    #[error("a frame cannot be given up the moment it is sent: the time-out must be above 0")]
    ZeroTimeout,
    /// A frame size that Ethernet does not have.
    #[error("a frame of {0} bytes is outside {FRAME_BYTES_MIN} to {FRAME_BYTES_MAX} (without FCS)")]
    FrameSize(u32),
    /// A size table without sizes, or with weights that cannot be shares.
    #[error("a size table needs at least one size, with a weight above 0")]
    SizeWeights,
    /// A line of a size table that is no size with a weight.
    #[error("line {line}: {wrong}")]
    SizeLine {
        /// Line, from 1.
        line: usize,
        /// What is wrong with it.
        wrong: String,
    },
    /// No flows.
    #[error("there must be at least 1 flow")]
    NoFlows,
    /// A share outside 0 to 1.
    #[error("a share must be between 0 and 1, not {0}")]
    Share(f64),
    /// A Zipf exponent outside 0 to 10.
    #[error("the Zipf exponent must be between 0 and 10, not {0}")]
    ZipfExponent(f64),
    /// Flows for one of the two sides of a target share are missing.
    #[error(
        "a target share needs flows that map to the target and flows that do not, of the same \
         flow space as the source, and another choice than a single flow"
    )]
    TargetFlows,
    /// Shares that cannot fall from the first queue to the last.
    #[error(
        "of {queues} queues the busiest cannot get {ratio} times the packets of the idlest: once or more \
         often, and not without end"
    )]
    QueueRatio {
        /// Queues that share the packets.
        queues: u16,
        /// How often the busiest is to get as many as the idlest.
        ratio: f64,
    },
    /// A queue whose share no flow can bring.
    #[error("none of {flows} flows is steered to queue {queue}, which is to get packets: use more flows")]
    QueueFlows {
        /// The first such queue.
        queue: u16,
        /// How many flows there are.
        flows: u64,
    },
    /// Shares of queues with flows that cannot be chosen among those of one queue.
    #[error(
        "shares of queues need flows of the same flow space as the source, chosen uniformly, by Zipf \
         or one after the other"
    )]
    QueueChoice,
    /// No pairs of key and value.
    #[error("there must be at least 1 key")]
    NoPairs,
    /// A key or value that has no room for a number.
    #[error("a {0} must have at least {WORD_BYTES} bytes, not {1}")]
    PairBytes(&'static str, u32),
    /// More queues than a client can choose from.
    #[error("clients can steer requests to 1 to {INDIRECTION_ENTRIES} queues, not {0}")]
    SteeredQueues(u16),
    /// A capture that cannot be read.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// A capture without a frame that could be sent.
    #[error("the capture has no frame that could be replayed: {0}")]
    EmptyCapture(Box<ReplayCounts>),
    /// A capture that does not fit into memory.
    #[error("the capture holds more than {REPLAY_BYTES_MAX} bytes of frames")]
    CaptureTooLarge,
}

/// Where traffic comes from.
#[derive(Clone, Debug)]
pub enum TrafficSource {
    /// Made-up frames.
    Synthetic(Box<Synthetic>),
    /// Requests to a key-value store.
    Requests(Box<Requests>),
    /// A capture.
    Replay(Box<Replay>),
}

impl TrafficSource {
    /// When the next frame arrives, a ping-pong source's if none comes back before; `Time::NEVER` at
    /// the end of a replay.
    pub fn next_time(&self) -> Time {
        match self {
            TrafficSource::Synthetic(source) => source.next_time(),
            TrafficSource::Requests(source) => source.next_time(),
            TrafficSource::Replay(source) => source.next_time(),
        }
    }

    /// The next frame, or `None` when [`TrafficSource::next_time`] is never.
    #[allow(clippy::should_implement_trait)] // The frame borrows the source.
    pub fn next(&mut self) -> Option<Arrival<'_>> {
        match self {
            TrafficSource::Synthetic(source) => source.next(),
            TrafficSource::Requests(source) => source.next(),
            TrafficSource::Replay(source) => source.next(),
        }
    }

    /// Goes on with frames from `from` on, at `rate` of frame bytes on average; a capture is played
    /// from its beginning. A ping-pong source has no rate and does not change.
    pub fn begin_again(&mut self, from: Time, rate: BitRate) {
        match self {
            TrafficSource::Synthetic(source) => source.begin_again(from, rate),
            TrafficSource::Requests(source) => source.begin_again(from, rate),
            TrafficSource::Replay(source) => source.begin_again(from, rate),
        }
    }

    /// Tells that the frame whose first bit was sent at `sent` came back at `at`: a ping-pong source
    /// then sends the next one. Returns whether one was waited for; other sources wait for none, and a
    /// frame that was given up is no longer waited for.
    pub fn returned(&mut self, sent: Time, at: Time) -> bool {
        match self {
            TrafficSource::Synthetic(source) => source.returned(sent, at),
            TrafficSource::Requests(source) => source.returned(sent, at),
            TrafficSource::Replay(_) => false,
        }
    }

    /// Frames that a ping-pong source gave up so far; `None` of other sources.
    pub fn given_up(&self) -> Option<u64> {
        match self {
            TrafficSource::Synthetic(source) => source.given_up(),
            TrafficSource::Requests(source) => source.given_up(),
            TrafficSource::Replay(_) => None,
        }
    }
}
