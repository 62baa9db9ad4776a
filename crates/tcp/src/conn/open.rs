//! The handshake of an active open, of crossing SYNs, and the last step of a passive open.

use std::sync::Arc;

use nicforge_units::Time;

use super::acking::Acking;
use super::output::Push;
use super::rtt::{RttEstimator, micros};
use super::sent::Sent;
use super::{
    Agreed, CaState, Connection, ConnectionError, Counters, ReceiveSide, RecoverySide, SendSide, State, TimerKind,
    Timers, Tuning,
};
use crate::config::{Config, EcnMode};
use crate::congestion::Window;
use crate::fast::{Flow, FlowFlags};
use crate::options::Timestamps;
use crate::segment::{Flags, Header};
use crate::seq::{Seq, Span};

/// The segment size that every peer takes (RFC 9293 section 3.7.1), IPv4.
pub const MSS_DEFAULT: u16 = 536;
/// No smaller segment is ever used, whatever a peer or a router says (RFC 5927 section 7).
pub const MSS_LEAST: u16 = 88;

/// What a new connection needs besides options.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// Our port.
    pub local_port: u16,
    /// The peer's port.
    pub remote_port: u16,
    /// Our initial sequence number.
    pub iss: Seq,
    /// Payload of a segment that fills the MTU, in bytes, without TCP options.
    pub path_mss: u16,
    /// Added to the clock of the timestamps option.
    pub ts_offset: u32,
}

/// A handshake that a listener completed up to the peer's acknowledgment.
#[derive(Clone, Copy, Debug)]
pub struct Accepted {
    /// Ports and numbers.
    pub opening: Opening,
    /// The peer's initial sequence number.
    pub irs: Seq,
    /// What was agreed.
    pub agreed: Agreed,
    /// Shift of the peer's window.
    pub remote_shift: u8,
    /// When the SYN-ACK was sent last.
    pub sent_at: Time,
    /// It was sent more than once.
    pub retransmissions: u8,
    /// The peer's clock.
    pub clock: Option<u32>,
    /// The window that the SYN-ACK offered.
    pub window: u32,
}

/// What our MSS option says.
pub(crate) fn own_mss(config: &Config, tuning: &Tuning, path_mss: u16) -> u16 {
    let mss = path_mss.min(config.mss_limit);
    if tuning.max_segment > 0 { mss.min(tuning.max_segment) } else { mss }
}

impl Connection {
    fn new(opening: &Opening, tuning: Tuning, config: Arc<Config>, state: State, now: Time) -> Connection {
        let mut flow = Flow::default();
        flow.post.rx_size = tuning.receive_ring();
        flow.post.tx_size = tuning.send_ring();
        flow.pre.local_port = opening.local_port;
        flow.pre.remote_port = opening.remote_port;
        flow.protocol.rx_avail = flow.post.rx_size;
        flow.protocol.seq = (opening.iss + 1).0;
        flow.protocol.tx_sent = 1;
        let mut sent = super::sent::SentQueue::default();
        sent.push(Sent {
            span: Span::new(opening.iss, opening.iss + 1),
            segments: 1,
            mss: 1,
            sent_at: now,
            syn: true,
            ..Sent::default()
        });
        let agreed = Agreed { own_mss: own_mss(&config, &tuning, opening.path_mss), ..Agreed::default() };
        let control = tuning.algorithm.start();
        let mut window = Window::new(config.initial_window);
        window.most = tuning.send_ring().max(1 << 16);
        Connection {
            flow,
            state,
            agreed,
            error: None,
            soft_error: None,
            rx: ReceiveSide { window_clamp: tuning.window_clamp, ..ReceiveSide::default() },
            tx: SendSide {
                iss: opening.iss,
                sent,
                highest: opening.iss + 1,
                small_end: opening.iss,
                path_mss: u32::from(opening.path_mss),
                ..SendSide::default()
            },
            ack: Acking { peer_segment: u32::from(MSS_DEFAULT), ..Acking::default() },
            rec: RecoverySide::new(opening.iss, &config),
            rtt: RttEstimator::new(&config),
            window,
            control,
            timers: Timers::default(),
            counters: Counters::default(),
            ts_offset: opening.ts_offset,
            opened_at: now,
            reset: None,
            orphan: false,
            passive: false,
            tuning,
            config,
        }
    }

    /// Opens actively: a SYN is the first thing that [`Connection::transmit`] returns.
    pub fn connect(opening: &Opening, tuning: Tuning, config: Arc<Config>, now: Time) -> Connection {
        let mut connection = Connection::new(opening, tuning, config, State::SynSent, now);
        let shift = connection.config.window_shift(connection.tuning.receive_buffer);
        connection.flow.set_shifts(shift, 0);
        connection.tx.retransmit = true;
        connection.arm_handshake(now);
        connection
    }

    /// A connection whose SYN-ACK a listener sent; the segment that acknowledges it comes next, through
    /// [`Connection::on_segment`].
    pub fn accept(accepted: &Accepted, tuning: Tuning, config: Arc<Config>, now: Time) -> Connection {
        let mut connection = Connection::new(&accepted.opening, tuning, config, State::SynReceived, accepted.sent_at);
        connection.opened_at = now;
        connection.passive = true;
        let local_shift = if accepted.agreed.window_scaling {
            connection.config.window_shift(connection.tuning.receive_buffer)
        } else {
            0
        };
        connection.flow.set_shifts(local_shift, accepted.remote_shift);
        connection.agreed = accepted.agreed;
        if accepted.retransmissions > 0 {
            connection.tx.sent.change(0, |syn| syn.ever_retransmitted = true);
            connection.counters.retransmitted += u32::from(accepted.retransmissions);
        }
        connection.take_irs(accepted.irs);
        if let Some(clock) = accepted.clock {
            connection.take_clock(clock, now);
        }
        connection.rx.window = accepted.window;
        connection.set_path_mss(accepted.opening.path_mss);
        connection.set_flow_flags();
        connection
    }

    fn take_irs(&mut self, irs: Seq) {
        self.rx.irs = irs;
        self.flow.protocol.ack = (irs + 1).0;
        self.rx.window_at = irs + 1;
        self.rx.last_ack_sent = irs + 1;
    }

    fn take_clock(&mut self, clock: u32, now: Time) {
        self.flow.protocol.next_ts = clock;
        self.rx.has_ts = true;
        self.rx.ts_recent_at = now;
    }

    fn set_flow_flags(&mut self) {
        self.flow.set(FlowFlags::TIMESTAMPS, self.agreed.timestamps);
        self.flow.set(FlowFlags::ECN, self.agreed.ecn);
        self.flow.set(FlowFlags::GO_BACK_N, self.goes_back_n());
    }

    /// The path takes segments of `path_mss` bytes; the peer's MSS and the socket's option bound it.
    pub(crate) fn set_path_mss(&mut self, path_mss: u16) {
        let mut mss = path_mss.min(self.agreed.peer_mss);
        if self.tuning.max_segment > 0 {
            mss = mss.min(self.tuning.max_segment);
        }
        self.tx.path_mss = u32::from(mss.max(MSS_LEAST));
        let expected = self.agreed.own_mss.min(mss).min(MSS_DEFAULT);
        if self.ack.peer_segment == u32::from(MSS_DEFAULT) {
            self.ack.peer_segment = u32::from(expected.max(MSS_LEAST));
        }
    }

    /// A router says that segments are too long (RFC 1191, RFC 8201), about a segment of ours in flight.
    pub fn on_packet_too_big(&mut self, seq: Seq, path_mss: u16, now: Time) {
        let current = self.tx.path_mss;
        let ours = seq.between(self.una(), self.tx.highest);
        if !ours || u32::from(path_mss) >= current || self.state == State::Closed {
            return;
        }
        self.set_path_mss(path_mss);
        if self.tx.path_mss < current && self.state.is_synchronized() {
            // Not a sign of congestion: what is out is sent again in smaller segments, the window stays.
            for index in 0..self.tx.sent.len() {
                if self.tx.sent.get(index).is_some_and(|sent| sent.mss > self.payload_most()) {
                    self.mark_lost(index);
                }
            }
            if self.tx.sent.lost_out > 0 && self.rec.ca < CaState::Reducing {
                self.rec.high = self.next();
                self.set_ca(CaState::Disorder);
            }
            self.tx.retransmit = true;
            self.rearm_retransmit(now);
        }
    }

    /// Agrees on what a SYN offers and we want.
    fn agree(&mut self, header: &Header, now: Time) {
        let options = &header.options;
        self.agreed.peer_mss = options.mss.filter(|mss| *mss > 0).unwrap_or(MSS_DEFAULT);
        self.agreed.timestamps = self.config.timestamps && options.timestamps.is_some();
        self.agreed.sack = self.config.sack && options.sack_permitted;
        let remote = options.window_scale.filter(|_| self.config.window_scaling);
        self.agreed.window_scaling = remote.is_some();
        let local = if remote.is_some() { self.flow.local_shift() } else { 0 };
        self.flow.set_shifts(local, remote.unwrap_or(0));
        if let Some(Timestamps { value, .. }) = options.timestamps.filter(|_| self.agreed.timestamps) {
            self.take_clock(value, now);
        }
        self.take_irs(header.seq);
        let path = self.tx.path_mss.min(u32::from(u16::MAX)) as u16;
        self.set_path_mss(path);
        self.flow.protocol.remote_win = u32::from(header.window);
        self.tx.window_most = self.flow.protocol.remote_win;
        self.tx.wl1 = header.seq;
        self.set_flow_flags();
    }

    /// RFC 9293 section 3.10.7.3.
    pub(crate) fn on_segment_syn_sent(&mut self, header: &Header, now: Time) -> Option<super::Placement> {
        let flags = header.flags;
        if flags.has(Flags::ACK) && self.is_foreign_ack(header, now) {
            self.answer_with_reset(header);
            return None;
        }
        if flags.has(Flags::RST) {
            if flags.has(Flags::ACK) {
                self.end(Some(ConnectionError::Refused));
            }
            return None;
        }
        if !flags.has(Flags::SYN) {
            return None;
        }
        self.rx.last_segment_at = now;
        if flags.has(Flags::ACK) {
            self.open_by_syn_ack(header, now);
        } else {
            self.cross(header, now);
        }
        None
    }

    fn is_foreign_ack(&self, header: &Header, now: Time) -> bool {
        if header.ack != self.next() {
            return true;
        }
        let Some(clock) = header.options.timestamps.filter(|clock| self.config.timestamps && clock.echo != 0) else {
            return false;
        };
        let age = self.clock(now).wrapping_sub(clock.echo);
        let since_open = (micros(now.saturating_sub(self.opened_at)) / 1000) as u32;
        age > since_open.saturating_add(1)
    }

    fn open_by_syn_ack(&mut self, header: &Header, now: Time) {
        let asked = self.config.ecn == EcnMode::On || self.control.wants_ecn();
        let echo = header.flags.has(Flags::ECE) && !header.flags.has(Flags::CWR);
        self.agreed.ecn = asked && echo && self.tx.retransmits < 2;
        self.agree(header, now);
        self.flow.protocol.tx_sent = 0;
        if let Some(syn) = self.tx.sent.pop().filter(|syn| !syn.ever_retransmitted) {
            let us = micros(now.saturating_sub(syn.sent_at)) as u32;
            self.rtt.sample(us, self.una(), self.next(), now);
        }
        self.counters.delivered += 1;
        self.establish(now);
        if self.flow.protocol.tx_avail > 0 || self.flow.has(FlowFlags::CLOSING) {
            self.ack.scheduled = true;
            self.push(Push::Usual);
        }
        self.ack_now();
    }

    /// SYNs crossed: answers with a SYN-ACK.
    fn cross(&mut self, header: &Header, now: Time) {
        let asked = self.config.ecn == EcnMode::On;
        let asks = header.flags.has(Flags(Flags::ECE.0 | Flags::CWR.0));
        self.agreed.ecn = asked && asks;
        self.agree(header, now);
        self.state = State::SynReceived;
        self.tx.retransmit = true;
        self.rx.window = self.window_bound().min(u32::from(u16::MAX));
    }

    /// The acknowledgment of our SYN-ACK. Returns whether the segment is looked at further.
    pub(crate) fn complete_passive(&mut self, header: &Header, now: Time) -> bool {
        let acks = header.ack.after(self.una()) && !header.ack.after(self.next());
        if !acks {
            self.answer_with_reset(header);
            return false;
        }
        let shift = if header.flags.has(Flags::SYN) { 0 } else { self.flow.remote_shift() };
        self.flow.protocol.remote_win = u32::from(header.window) << shift;
        self.tx.window_most = self.tx.window_most.max(self.flow.protocol.remote_win);
        self.tx.wl1 = header.seq;
        self.establish(now);
        true
    }

    fn establish(&mut self, now: Time) {
        self.state = State::Established;
        self.opened_at = now;
        self.timers.main = None;
        (self.tx.backoff, self.tx.retransmits) = (0, 0);
        self.tx.retransmit = false;
        self.tx.small_end = self.next();
        self.rec.high = self.next();
        self.rec.window_used_until = self.una();
        self.rx.last_data_at = Time::ZERO;
        if self.counters.retransmitted > 1 {
            self.window.size = 1;
        }
        self.tx.last_sent_at = now;
        self.flow.set(FlowFlags::FAST, true);
        self.start_keep_alive(now);
        if self.flow.has(FlowFlags::CLOSING) {
            self.state = State::FinWait1;
            self.push(Push::Everything);
        }
    }

    pub(crate) fn transmit_handshake(&mut self, now: Time) -> Option<super::Emission> {
        if std::mem::take(&mut self.tx.retransmit) {
            return Some(self.emit_syn(now));
        }
        if self.ack.now > 0 && self.state == State::SynReceived {
            self.ack.now -= 1;
            return Some(self.emit_ack(now));
        }
        None
    }

    pub(crate) fn on_handshake_timeout(&mut self, now: Time) {
        let expired = self.tuning.user_timeout.is_some_and(|limit| now.saturating_sub(self.opened_at) >= limit);
        if expired || self.tx.retransmits >= u32::from(self.tuning.syn_retries) {
            self.end(Some(self.soft_error.unwrap_or(ConnectionError::TimedOut)));
            return;
        }
        self.tx.retransmits += 1;
        self.tx.backoff += 1;
        self.counters.retransmitted += 1;
        self.tx.sent.change(0, |syn| {
            syn.ever_retransmitted = true;
            syn.sent_at = now;
        });
        self.tx.retransmit = true;
        self.arm_handshake(now);
    }

    fn arm_handshake(&mut self, now: Time) {
        let after = self.config.handshake_timeout(self.backed_off_rto(), self.tx.iss, self.tx.retransmits);
        self.timers.main = Some((TimerKind::Retransmit, now + after));
    }
}
