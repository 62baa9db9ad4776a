//! The last step of a passive open: a segment for a half-open connection, or one that brings a SYN cookie back.

use nicforge_units::Time;

use super::input::{Arrival, Envelope};
use super::listen::{Request, clock};
use super::{Event, FourTuple, ListenerId, Stack, cookie};
use crate::conn::{Accepted, Connection, Opening, State};
use crate::options::{Options, Timestamps};
use crate::ring::Buffers;
use crate::segment::{Ecn, Flags, Header};

/// What became of an acknowledgment that may bring a SYN cookie back.
pub(super) enum CookieOutcome {
    /// It opened a connection, or waits for room in the accept queue.
    Taken(Option<Arrival>),
    /// It brings none.
    NotOne,
}

impl<B: Buffers> Stack<B> {
    pub(super) fn deliver_to_request(
        &mut self,
        request: Request,
        envelope: &Envelope,
        tuple: &FourTuple,
        header: &Header,
        now: Time,
    ) -> Option<Arrival> {
        let flags = header.flags;
        let plain_syn = flags.has(Flags::SYN) && !flags.any(Flags(Flags::ACK.0 | Flags::RST.0));
        if plain_syn && header.seq == request.irs {
            self.send_syn_ack(&request, tuple, false, now);
            return None;
        }
        let expected = request.irs + 1;
        let in_window = !header.end().before(expected) && !header.seq.after(expected + request.window);
        let clock_back = match (request.clock, header.options.timestamps) {
            (Some(known), Some(clock)) => (clock.value.wrapping_sub(known) as i32) < 0,
            _ => false,
        };
        if flags.has(Flags::RST) {
            if header.seq == expected {
                self.forget_request(tuple);
            }
            return None;
        }
        if !in_window || clock_back || flags.has(Flags::SYN) {
            self.acknowledge_request(&request, tuple, now);
            return None;
        }
        if !flags.has(Flags::ACK) {
            return None;
        }
        if header.ack != request.iss + 1 {
            self.refuse(tuple, header);
            return None;
        }
        self.complete(request, envelope, tuple, header, now)
    }

    fn acknowledge_request(&mut self, request: &Request, tuple: &FourTuple, now: Time) {
        let mut options = Options::default();
        if let Some(echo) = request.clock {
            options.timestamps = Some(Timestamps { value: clock(now).wrapping_add(request.ts_offset), echo });
        }
        let header = Header {
            source_port: tuple.local_port,
            destination_port: tuple.remote_port,
            seq: request.iss + 1,
            ack: request.irs + 1,
            flags: Flags::ACK,
            window: request.window as u16,
            options,
            ..Header::default()
        };
        self.answer(tuple, &header);
    }

    fn complete(
        &mut self,
        mut request: Request,
        envelope: &Envelope,
        tuple: &FourTuple,
        header: &Header,
        now: Time,
    ) -> Option<Arrival> {
        let listener = self.listener(request.listener)?;
        let waits_for_data = listener.tuning.defer_accept.is_some() && header.payload_len == 0;
        if waits_for_data && !header.flags.has(Flags::FIN) && request.retransmissions < 1 {
            request.acknowledged = true;
            self.requests.insert(*tuple, request);
            return None;
        }
        if listener.queue.len() > listener.backlog {
            // The peer sends again; meanwhile the application may accept.
            self.counters.accept_queue_full += 1;
            return None;
        }
        self.forget_request(tuple);
        self.promote(&request, envelope.ecn, tuple, header, now)
    }

    /// Turns a completed handshake into a connection in the accept queue.
    fn promote(
        &mut self,
        request: &Request,
        ecn: Ecn,
        tuple: &FourTuple,
        header: &Header,
        now: Time,
    ) -> Option<Arrival> {
        let listener = self.listener(request.listener)?;
        let tuning = listener.tuning.clone();
        let accepted = Accepted {
            opening: Opening {
                local_port: tuple.local_port,
                remote_port: tuple.remote_port,
                iss: request.iss,
                path_mss: self.host.path_mss(tuple.remote),
                ts_offset: request.ts_offset,
            },
            irs: request.irs,
            agreed: request.agreed,
            remote_shift: request.remote_shift,
            sent_at: request.sent_at,
            retransmissions: request.retransmissions,
            clock: request.clock,
            window: request.window,
        };
        let connection = Connection::accept(&accepted, tuning, self.config.clone(), now);
        let Ok(index) = self.insert(connection, *tuple, Some(request.listener)) else {
            self.counters.no_buffer += 1;
            return None;
        };
        let arrival = self.deliver_to(index, header, ecn, now);
        let id = self.id_of(index);
        let open = self.entry_at(index).is_some_and(|entry| entry.connection.state() != State::SynReceived);
        if open && let Some(listener) = self.listener_mut(request.listener) {
            listener.queue.push_back(id);
            self.events.push_back(Event::Accepted(request.listener));
        }
        arrival
    }

    pub(super) fn open_by_cookie(
        &mut self,
        id: ListenerId,
        envelope: &Envelope,
        tuple: &FourTuple,
        header: &Header,
        now: Time,
    ) -> CookieOutcome {
        if !self.config.syn_cookies || self.counters.cookies_out == 0 {
            return CookieOutcome::NotOne;
        }
        let (irs, iss) = (header.seq - 1, header.ack - 1);
        let Some(mss) = cookie::check(&self.secret, tuple, irs, iss, now) else {
            self.counters.cookies_bad += 1;
            return CookieOutcome::NotOne;
        };
        let Some(listener) = self.listener(id) else { return CookieOutcome::NotOne };
        if listener.queue.len() > listener.backlog {
            self.counters.accept_queue_full += 1;
            return CookieOutcome::Taken(None);
        }
        let tuning = listener.tuning.clone();
        let mut request = self.request_for(id, &tuning, tuple, header, now);
        request.irs = irs;
        request.iss = iss;
        request.agreed.peer_mss = mss;
        let echo = header.options.timestamps.filter(|_| self.config.timestamps);
        let (scale, sack, ecn) =
            echo.map_or((None, false, false), |clock| cookie::options_in(clock.echo.wrapping_sub(0)));
        request.agreed.timestamps = echo.is_some();
        request.agreed.sack = sack && self.config.sack;
        request.agreed.window_scaling = scale.is_some();
        request.agreed.ecn = ecn;
        request.remote_shift = scale.unwrap_or(0);
        // The RTT of the handshake is unknown.
        request.retransmissions = 1;
        self.counters.cookies_in += 1;
        CookieOutcome::Taken(self.promote(&request, envelope.ecn, tuple, header, now))
    }
}
