//! The slow path: one connection with all that the RFCs ask for, on the state that the fast path shares.
//!
//! Five verbs drive it, as in other sans-IO stacks: [`Connection::on_segment`], [`Connection::on_timer`], calls of the
//! application ([`Connection::wrote`], [`Connection::consumed`], [`Connection::close`] …), [`Connection::transmit`] until
//! it returns nothing, and [`Connection::deadline`]. No call reads a clock or touches a payload byte: received payload
//! is placed by a [`Placement`], sent payload by an [`Emission`], both in terms of the rings of the [`Flow`].
//!
//! A file per phase: `open` (handshake), `arrive` and `receive` (segments, data), `ack`, `sack`, `recovery`, `loss`,
//! `cwnd` (what acknowledgments mean), `output` and `emit` (what is sent when), `timer`, `close`.

mod ack;
mod acking;
mod application;
mod arrive;
mod close;
mod cwnd;
mod emit;
pub mod intervals;
mod loss;
mod open;
mod output;
mod predicted;
mod probe;
mod receive;
mod recovery;
pub mod rtt;
mod sack;
pub mod sent;
mod state;
mod timer;
mod tuning;
mod undo;

use std::sync::Arc;

use nicforge_units::Time;

use crate::config::{Config, Recovery};
use crate::congestion::{Congestion, Window};
use crate::fast::{Flow, FlowFlags};
use crate::seq::{Seq, Span};
use acking::Acking;
use intervals::Intervals;
use loss::Rack;
use rtt::RttEstimator;
use sent::SentQueue;

pub use emit::{Emission, TxSpan};
pub(crate) use open::own_mss;
pub use open::{Accepted, Opening};
pub use receive::Placement;
pub use state::{CaState, ConnectionError, State};
pub use timer::TimerKind;
pub use tuning::Tuning;

/// What both ends agreed on in the handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreed {
    /// Both sent the timestamps option.
    pub timestamps: bool,
    /// Both permitted SACK.
    pub sack: bool,
    /// Both sent the window scale option.
    pub window_scaling: bool,
    /// Both asked for ECN.
    pub ecn: bool,
    /// Largest payload that the peer takes, in bytes: its MSS option, or the default (RFC 9293 section 3.7.1).
    pub peer_mss: u16,
    /// What our MSS option says.
    pub own_mss: u16,
}

/// Counters of one connection, for `TCP_INFO` and traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Segments received.
    pub segments_in: u64,
    /// Segments received that the fast path took.
    pub predicted: u64,
    /// Segments sent.
    pub segments_out: u64,
    /// Segments with data received.
    pub data_segments_in: u64,
    /// Segments with data sent.
    pub data_segments_out: u64,
    /// Payload bytes received in order.
    pub bytes_received: u64,
    /// Payload bytes that the peer acknowledged.
    pub bytes_acked: u64,
    /// Payload bytes sent, first copies only.
    pub bytes_sent: u64,
    /// Payload bytes sent again.
    pub bytes_retransmitted: u64,
    /// Segments sent again.
    pub retransmitted: u32,
    /// Segments delivered to the peer.
    pub delivered: u32,
    /// Segments that the peer says came twice.
    pub dsack_duplicates: u32,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Recoveries that duplicate acknowledgments or SACK began.
    pub fast_recoveries: u32,
    /// Recoveries that were undone as unfounded.
    pub undone: u32,
    /// Data segments received out of order.
    pub out_of_order: u32,
    /// Segments dropped because PAWS found them old.
    pub paws_drops: u32,
    /// Segments dropped outside the window.
    pub outside_window: u32,
    /// Segments whose acknowledgment number is impossible.
    pub bad_acks: u32,
    /// Challenge acknowledgments (RFC 5961).
    pub challenges: u32,
    /// Out-of-order segments dropped for want of an interval.
    pub no_interval: u32,
}

/// What the receiving side remembers besides the flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReceiveSide {
    /// Initial sequence number of the peer.
    pub irs: Seq,
    /// `ack` when the last window was advertised.
    pub window_at: Seq,
    /// That window in bytes.
    pub window: u32,
    pub intervals: Intervals,
    /// Duplicate to report next (RFC 2883).
    pub duplicate: Option<Span>,
    /// The peer's FIN follows this number.
    pub fin_at: Option<Seq>,
    /// When `next_ts` of the flow was taken.
    pub ts_recent_at: Time,
    pub has_ts: bool,
    /// Acknowledgment number of our last segment: what a segment must reach for its clock to be echoed.
    pub last_ack_sent: Seq,
    /// End of urgent data.
    pub urgent: Option<Seq>,
    /// The application takes no more data.
    pub shut: bool,
    /// Last time an invalid segment was answered.
    pub invalid_acked_at: Option<Time>,
    /// Bound of the window that the application set.
    pub window_clamp: u32,
    /// When the last data arrived.
    pub last_data_at: Time,
    /// When the last segment arrived.
    pub last_segment_at: Time,
    /// Congestion marks seen since CWR, or in the last segment for DCTCP.
    pub echo_mark: bool,
    pub marks_seen: bool,
    /// In DCTCP: state of the last data segment.
    pub last_marked: bool,
}

/// What the sending side remembers besides the flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct SendSide {
    /// Our initial sequence number.
    pub iss: Seq,
    /// Sequence and acknowledgment number of the segment that set the window.
    pub wl1: Seq,
    /// Largest window that the peer ever offered.
    pub window_most: u32,
    pub sent: SentQueue,
    /// Highest sequence number ever sent plus one: go-back-N moves `seq` back, not this.
    pub highest: Seq,
    /// End of the last small segment (Minshall).
    pub small_end: Seq,
    /// The last write wanted PSH.
    pub push: bool,
    /// Place of the end of a write that must not share a segment with the next one.
    pub pending: Option<output::Push>,
    pub retransmit: bool,
    pub probe: Option<output::Probe>,
    /// The rest of a burst that is cut into segments.
    pub burst: Option<output::Burst>,
    /// Payload of a full segment, options taken off, before it is known that options vary.
    pub path_mss: u32,
    pub urgent: Option<Seq>,
    pub last_sent_at: Time,
    pub backoff: u32,
    pub probes_out: u32,
    pub retransmits: u32,
    /// First retransmission of the oldest data, for the user timeout and for Eifel.
    pub retransmitted_at: Option<Time>,
    /// Same as a clock value of the timestamps option.
    pub retransmitted_ts: u32,
    pub cwr: bool,
    pub paced_until: Time,
    /// Data waits for that time.
    pub paced_waits: bool,
    /// The application waits for space.
    pub wants_space: bool,
    /// Unacknowledged data since.
    pub probing_since: Option<Time>,
}

/// Recovery and window bookkeeping (RFC 6582, 6675, 6937, 8985).
#[derive(Clone, Debug)]
pub(crate) struct RecoverySide {
    pub ca: CaState,
    /// Recovery ends when this is acknowledged.
    pub high: Seq,
    /// The reduction may be undone while this is set.
    pub undo: Option<Seq>,
    pub undo_retransmits: i64,
    pub prior_threshold: u32,
    pub prior_window: u32,
    pub prr_delivered: u32,
    pub prr_out: u32,
    pub frto: bool,
    pub reordering: u32,
    /// Times that reordering was seen.
    pub reordering_seen: u32,
    pub rack: Rack,
    /// End of a tail loss probe in flight.
    pub probe_high: Option<Seq>,
    pub probe_retransmitted: bool,
    pub window_limited: bool,
    pub window_used_until: Seq,
    pub packets_out_most: u32,
    /// Highest number that SACK covered.
    pub sack_high: Option<Seq>,
}

/// Deadlines; only one of the first kind is set at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timers {
    pub main: Option<(TimerKind, Time)>,
    pub delayed_ack: Option<Time>,
    /// Keep-alive, FIN-WAIT-2 or TIME-WAIT, depending on the state.
    pub life: Option<Time>,
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    /// What the fast path shares.
    pub flow: Flow,
    /// Options of the socket.
    pub tuning: Tuning,
    pub(crate) config: Arc<Config>,
    pub(crate) state: State,
    pub(crate) agreed: Agreed,
    pub(crate) error: Option<ConnectionError>,
    pub(crate) soft_error: Option<ConnectionError>,
    pub(crate) rx: ReceiveSide,
    pub(crate) tx: SendSide,
    pub(crate) ack: Acking,
    pub(crate) rec: RecoverySide,
    pub(crate) rtt: RttEstimator,
    pub(crate) window: Window,
    pub(crate) control: Box<dyn Congestion>,
    pub(crate) timers: Timers,
    pub(crate) counters: Counters,
    /// Added to the clock of the timestamps option, different for each pair of addresses (RFC 7323 section 5.4).
    pub(crate) ts_offset: u32,
    pub(crate) opened_at: Time,
    /// An RST has to go out.
    pub(crate) reset: Option<emit::Reset>,
    /// No application holds the connection.
    pub(crate) orphan: bool,
    /// Was opened by the peer.
    pub(crate) passive: bool,
}

impl Connection {
    /// State of the connection.
    pub fn state(&self) -> State {
        self.state
    }

    /// Why it ended, if it ended in an error.
    pub fn error(&self) -> Option<ConnectionError> {
        self.error
    }

    /// Takes the error, as `SO_ERROR` does.
    pub fn take_error(&mut self) -> Option<ConnectionError> {
        self.error.take().or_else(|| self.soft_error.take())
    }

    /// Counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What the handshake agreed on.
    pub fn agreed(&self) -> &Agreed {
        &self.agreed
    }

    /// Next sequence number to send.
    pub fn next(&self) -> Seq {
        Seq(self.flow.protocol.seq)
    }

    /// Oldest sequence number without acknowledgment.
    pub fn una(&self) -> Seq {
        self.flow.unacknowledged()
    }

    /// Next sequence number expected.
    pub fn expected(&self) -> Seq {
        Seq(self.flow.protocol.ack)
    }

    /// Present time as the clock of the timestamps option: milliseconds.
    pub fn clock(&self, now: Time) -> u32 {
        ((now.as_ps() / 1_000_000_000) as u32).wrapping_add(self.ts_offset)
    }

    /// Whether loss recovery is the paper's.
    pub(crate) fn goes_back_n(&self) -> bool {
        self.config.recovery == Recovery::GoBackN
    }

    /// Bytes that wait for the application. A FIN takes no byte.
    pub fn readable(&self) -> u32 {
        self.flow.rx_waiting()
    }

    /// Bytes that the application may write now.
    pub fn writable(&self) -> u32 {
        if self.can_send() { self.flow.tx_free() } else { 0 }
    }

    /// Whether the application may write, now or later.
    pub fn can_send(&self) -> bool {
        let open = matches!(self.state, State::Established | State::CloseWait | State::SynSent | State::SynReceived);
        open && !self.flow.has(FlowFlags::CLOSING)
    }

    /// Whether no more data will arrive.
    pub fn is_read_closed(&self) -> bool {
        self.flow.has(FlowFlags::PEER_CLOSED) || self.rx.shut || self.state == State::Closed
    }

    /// The application wrote `bytes` at the place that [`Connection::write_at`] named. `more` says that it will write
    /// again soon (`MSG_MORE`).
    pub fn wrote(&mut self, bytes: u32, more: bool, now: Time) {
        let bytes = bytes.min(self.flow.tx_free());
        if bytes == 0 {
            return;
        }
        self.restart_if_idle(now);
        self.flow.protocol.tx_avail += bytes;
        self.tx.push = !more;
        self.push(if more { output::Push::Corked } else { output::Push::Usual });
    }

    /// Place in the transmit ring where the application writes next.
    pub fn write_at(&self) -> u32 {
        let protocol = &self.flow.protocol;
        crate::ring::advance(protocol.tx_pos, protocol.tx_avail, self.flow.post.tx_size)
    }

    /// Place in the receive ring where the application reads next.
    pub fn read_at(&self) -> u32 {
        let waiting = self.flow.rx_waiting();
        crate::ring::advance(self.flow.protocol.rx_pos, self.flow.post.rx_size - waiting, self.flow.post.rx_size)
    }

    /// The application read `bytes`.
    pub fn consumed(&mut self, bytes: u32, now: Time) {
        let bytes = bytes.min(self.flow.rx_waiting());
        self.flow.protocol.rx_avail += bytes;
        self.after_read(bytes, now);
    }

    /// When [`Connection::on_timer`] wants to be called, if nothing else happens first.
    pub fn deadline(&self) -> Option<Time> {
        let Timers { main, delayed_ack, life } = self.timers;
        let paced = self.tx.paced_waits.then_some(self.tx.paced_until);
        [main.map(|(_, at)| at), delayed_ack, life, paced].into_iter().flatten().min()
    }
}
