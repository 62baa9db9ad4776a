//! Listeners: half-open connections in a table, SYN cookies when it is full, the accept queue.

use std::collections::VecDeque;
use std::net::IpAddr;

use nicforge_units::Time;

use super::demux::{Deadline, Owner};
use super::input::{Arrival, Envelope};
use super::request::CookieOutcome;
use super::{ConnectionId, FourTuple, ListenerId, Stack, cookie};
use crate::config::EcnMode;
use crate::conn::{Agreed, Tuning};
use crate::options::{Options, Timestamps};
use crate::ring::Buffers;
use crate::segment::{Flags, Header};
use crate::seq::Seq;

const MSS_DEFAULT: u16 = 536;

/// A port that takes connections.
#[derive(Debug)]
pub(super) struct Listener {
    pub local: Option<IpAddr>,
    pub port: u16,
    pub backlog: usize,
    pub tuning: Tuning,
    pub reuse_port: bool,
    pub queue: VecDeque<ConnectionId>,
    pub half_open: usize,
}

/// A half-open connection: what the final acknowledgment turns into a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub listener: ListenerId,
    pub order: u64,
    pub iss: Seq,
    pub irs: Seq,
    pub agreed: Agreed,
    pub remote_shift: u8,
    pub clock: Option<u32>,
    pub ts_offset: u32,
    pub window: u32,
    pub sent_at: Time,
    pub retransmissions: u8,
    /// The bare acknowledgment came, data is awaited or the accept queue was full.
    pub acknowledged: bool,
}

impl<B: Buffers> Stack<B> {
    pub(super) fn listener(&self, id: ListenerId) -> Option<&Listener> {
        let slot = self.listeners.get(id.index as usize)?;
        slot.value.as_ref().filter(|_| slot.generation == id.generation)
    }

    pub(super) fn listener_mut(&mut self, id: ListenerId) -> Option<&mut Listener> {
        let slot = self.listeners.get_mut(id.index as usize)?;
        let generation = slot.generation;
        slot.value.as_mut().filter(|_| generation == id.generation)
    }

    /// Bounds segments of the connections that a listener takes from now on (TCP_MAXSEG); 0 for what the path takes.
    pub fn set_max_segment(&mut self, id: ListenerId, bytes: u16) {
        if let Some(listener) = self.listener_mut(id) {
            listener.tuning.max_segment = bytes;
        }
    }

    /// The listener for a SYN: an exact address before any address, among several one by the peer's port and address.
    fn find_listener(&self, tuple: &FourTuple) -> Option<ListenerId> {
        let mut found: Vec<(bool, ListenerId)> = Vec::new();
        for (index, slot) in self.listeners.iter().enumerate() {
            let Some(listener) = &slot.value else { continue };
            let matches = listener.local.is_none_or(|local| local == tuple.local);
            if listener.port == tuple.local_port && matches {
                let id = ListenerId { index: index as u32, generation: slot.generation };
                found.push((listener.local.is_some(), id));
            }
        }
        let exact = found.iter().any(|(exact, _)| *exact);
        found.retain(|(is_exact, _)| *is_exact == exact);
        let spread = self.secret.clock_offset(tuple.remote, tuple.local) ^ u32::from(tuple.remote_port);
        let count = found.len().max(1) as u32;
        found.get((spread % count) as usize).map(|(_, id)| *id)
    }

    pub(super) fn deliver_to_listener(
        &mut self,
        envelope: &Envelope,
        tuple: &FourTuple,
        header: &Header,
        now: Time,
    ) -> Option<Arrival> {
        if let Some(request) = self.requests.get(tuple).copied() {
            return self.deliver_to_request(request, envelope, tuple, header, now);
        }
        let Some(id) = self.find_listener(tuple) else {
            self.counters.no_port += 1;
            self.refuse(tuple, header);
            return None;
        };
        let flags = header.flags;
        if flags.has(Flags::RST) {
            return None;
        }
        if flags.has(Flags::ACK) {
            let by_cookie = if flags.has(Flags::SYN) {
                CookieOutcome::NotOne
            } else {
                self.open_by_cookie(id, envelope, tuple, header, now)
            };
            return match by_cookie {
                CookieOutcome::Taken(arrival) => arrival,
                CookieOutcome::NotOne => {
                    self.refuse(tuple, header);
                    None
                }
            };
        }
        if flags.has(Flags::SYN) && !flags.has(Flags::FIN) {
            self.on_syn(id, tuple, header, now);
        }
        None
    }

    /// RST for a segment that belongs to nobody (RFC 9293 section 3.10.7.1).
    pub(super) fn refuse(&mut self, tuple: &FourTuple, header: &Header) {
        if header.flags.has(Flags::RST) {
            return;
        }
        let acked = header.flags.has(Flags::ACK);
        let answer = Header {
            source_port: tuple.local_port,
            destination_port: tuple.remote_port,
            seq: if acked { header.ack } else { Seq(0) },
            ack: if acked { Seq(0) } else { header.end() },
            flags: Flags::RST.with_if(!acked, Flags::ACK),
            ..Header::default()
        };
        self.counters.resets_out += 1;
        self.answer(tuple, &answer);
    }

    fn on_syn(&mut self, id: ListenerId, tuple: &FourTuple, header: &Header, now: Time) {
        let Some(listener) = self.listener(id) else { return };
        let (queued, half_open, backlog) = (listener.queue.len(), listener.half_open, listener.backlog);
        let tuning = listener.tuning.clone();
        if queued > backlog {
            self.counters.accept_queue_full += 1;
            return;
        }
        let full = half_open >= backlog.max(1);
        if full && !self.config.syn_cookies {
            self.counters.backlog_full += 1;
            return;
        }
        let mut request = self.request_for(id, &tuning, tuple, header, now);
        if full {
            self.counters.cookies_out += 1;
            request.iss = cookie::make(&self.secret, tuple, header.seq, request.agreed.peer_mss, now);
            request.agreed.sack &= request.agreed.timestamps;
            request.agreed.window_scaling &= request.agreed.timestamps;
            request.agreed.ecn &= request.agreed.timestamps;
            self.send_syn_ack(&request, tuple, true, now);
            return;
        }
        if let Some(listener) = self.listener_mut(id) {
            listener.half_open += 1;
        }
        self.requests.insert(*tuple, request);
        self.request_order += 1;
        self.send_syn_ack(&request, tuple, false, now);
        self.arm_request(&request, now);
    }

    pub(super) fn request_for(
        &self,
        id: ListenerId,
        tuning: &Tuning,
        tuple: &FourTuple,
        header: &Header,
        now: Time,
    ) -> Request {
        let options = &header.options;
        let config = &self.config;
        let path = self.host.path_mss(tuple.remote);
        let asks_ecn = header.flags.has(Flags(Flags::ECE.0 | Flags::CWR.0));
        let wants_ecn = config.ecn != EcnMode::Off || tuning.algorithm.start().wants_ecn();
        let scale = options.window_scale.filter(|_| config.window_scaling);
        Request {
            listener: id,
            order: self.request_order,
            iss: self.secret.initial(tuple, now),
            irs: header.seq,
            agreed: Agreed {
                timestamps: config.timestamps && options.timestamps.is_some(),
                sack: config.sack && options.sack_permitted,
                window_scaling: scale.is_some(),
                ecn: asks_ecn && wants_ecn,
                peer_mss: options.mss.filter(|mss| *mss > 0).unwrap_or(MSS_DEFAULT),
                own_mss: crate::conn::own_mss(config, tuning, path),
            },
            remote_shift: scale.unwrap_or(0),
            clock: options.timestamps.filter(|_| config.timestamps).map(|clock| clock.value),
            ts_offset: self.secret.clock_offset(tuple.local, tuple.remote),
            window: tuning.receive_ring().min(u32::from(u16::MAX)),
            sent_at: now,
            retransmissions: 0,
            acknowledged: false,
        }
    }

    pub(super) fn send_syn_ack(&mut self, request: &Request, tuple: &FourTuple, as_cookie: bool, now: Time) {
        let Some(listener) = self.listener(request.listener) else { return };
        let agreed = &request.agreed;
        let shift = self.config.window_shift(listener.tuning.receive_buffer);
        let mut options = Options {
            mss: Some(agreed.own_mss),
            window_scale: agreed.window_scaling.then_some(shift),
            sack_permitted: agreed.sack,
            ..Options::default()
        };
        if let Some(echo) = request.clock.filter(|_| agreed.timestamps) {
            let mut value = clock(now).wrapping_add(request.ts_offset);
            if as_cookie {
                let peer = Options { window_scale: agreed.window_scaling.then_some(request.remote_shift), ..options };
                value = cookie::clock_with(value, &peer, agreed.ecn);
            }
            options.timestamps = Some(Timestamps { value, echo });
        }
        let header = Header {
            source_port: tuple.local_port,
            destination_port: tuple.remote_port,
            seq: request.iss,
            ack: request.irs + 1,
            flags: Flags(Flags::SYN.0 | Flags::ACK.0).with_if(agreed.ecn, Flags::ECE),
            window: request.window as u16,
            options,
            ..Header::default()
        };
        self.answer(tuple, &header);
    }

    fn arm_request(&mut self, request: &Request, now: Time) {
        let usual = Time::from_ps(self.config.rto_initial.as_ps() << request.retransmissions.min(7));
        let after = self.config.handshake_timeout(usual, request.iss, request.retransmissions.into());
        self.deadlines.push(Deadline { at: now + after, owner: Owner::Request(request.order) });
    }

    pub(super) fn request_timer(&mut self, order: u64, now: Time) {
        let found = self.requests.iter().find(|(_, request)| request.order == order);
        let Some((tuple, mut request)) = found.map(|(tuple, request)| (*tuple, *request)) else { return };
        if request.retransmissions >= self.config.syn_ack_retries {
            self.forget_request(&tuple);
            return;
        }
        request.retransmissions += 1;
        request.sent_at = now;
        self.requests.insert(tuple, request);
        self.send_syn_ack(&request, &tuple, false, now);
        self.arm_request(&request, now);
    }

    pub(super) fn forget_request(&mut self, tuple: &FourTuple) {
        if let Some(request) = self.requests.remove(tuple)
            && let Some(listener) = self.listener_mut(request.listener)
        {
            listener.half_open = listener.half_open.saturating_sub(1);
        }
    }
}

/// Milliseconds, as the timestamps option counts.
pub(super) fn clock(now: Time) -> u32 {
    (now.as_ps() / 1_000_000_000) as u32
}
