//! Movement between rings and stack, and the ends of connections.

use std::sync::atomic::Ordering;

use nicforge_units::Time;
use rustix::io::Errno;

use super::flow::{Flow, Role};
use super::{BATCH_BYTES, Service};
use crate::layout::{FLAG_CONNECTED, FLAG_FAILED, FLAG_FINISHED, Kind, State};
use crate::queue::Message;
use crate::shared::Ring;
use crate::transport::{Id, Transport};

/// How old the figures that programs see may be.
const FIGURES_EVERY: Time = Time::from_ms(10);

/// What a turn of one flow did.
#[derive(Clone, Copy, Debug, Default)]
struct Moved {
    received: usize,
    sent: usize,
    finished: bool,
    /// Data came that nobody will read.
    unwanted: bool,
    /// The batch was used up; more may be left.
    again: bool,
}

impl Service {
    /// Moves what is due. Returns whether more is.
    pub(super) fn pump_due(&mut self) -> bool {
        for name in std::mem::take(&mut self.paused) {
            if let Some(index) = self.find(name) {
                self.flows[index].paused = false;
                self.due.insert(name);
            }
        }
        for name in std::mem::take(&mut self.due) {
            if let Some(index) = self.find(name) {
                self.pump(index);
            }
        }
        !self.due.is_empty()
    }

    pub(super) fn pump(&mut self, index: usize) {
        let Role::Connected(id) = self.flows[index].role else { return };
        let mut moved = Moved::default();
        self.pump_out(index, id, &mut moved);
        self.pump_in(index, id, &mut moved);
        if moved.unwanted {
            self.refuse_data(index, id);
            return;
        }
        self.publish_figures(index, id);
        let flow = &mut self.flows[index];
        if moved.again {
            self.due.insert(flow.name);
        }
        match flow.direct {
            Some(serial) => self.notify(index, serial, moved),
            None if moved.finished => flow.show_finished(),
            None => {}
        }
        self.unstop(index);
        let flow = &self.flows[index];
        if flow.abandoned && flow.tx_ready == 0 {
            self.route.release(id);
            self.forget(index);
        } else if flow.over && moved.finished {
            self.closed(id);
        }
    }

    /// Data for a socket that reads no more resets its connection (RFC 1122, section 4.2.2.13).
    fn refuse_data(&mut self, index: usize, id: Id) {
        self.route.abort(id);
        let error = Errno::CONNRESET.raw_os_error() as u32;
        self.flows[index].memory.page().service.error.store(error, Ordering::Release);
        self.end(index, id, FLAG_FAILED);
    }

    /// Figures for `TCP_INFO`, as they are now.
    pub(super) fn figures_now(&mut self, index: usize) {
        if let Role::Connected(id) = self.flows[index].role {
            self.flows[index].figures_due = self.now;
            self.publish_figures(index, id);
        }
    }

    /// Figures for `nicforge ss` and programs that look at the memory, now and then.
    fn publish_figures(&mut self, index: usize, id: Id) {
        let flow = &mut self.flows[index];
        if self.now < flow.figures_due {
            return;
        }
        flow.figures_due = self.now + FIGURES_EVERY;
        let info = self.route.info(id);
        let figures = &flow.memory.page().service.figures;
        let us = |time: Time| time.as_us() as u32;
        figures.rtt_us.store(us(info.rtt), Ordering::Relaxed);
        figures.rtt_variance_us.store(us(info.rtt_variance), Ordering::Relaxed);
        figures.window_segments.store((info.window / u64::from(info.mss.max(1))) as u32, Ordering::Relaxed);
        figures.mss.store(info.mss, Ordering::Relaxed);
        figures.retransmits.store(info.retransmits, Ordering::Relaxed);
        figures.unacknowledged.store(info.unacknowledged, Ordering::Relaxed);
    }

    fn notify(&mut self, index: usize, serial: u64, moved: Moved) {
        let flow = &mut self.flows[index];
        let finished = moved.finished && !flow.finish_shown;
        if finished {
            flow.finish_shown = true;
            flow.memory.page().service.finished.store(1, Ordering::Release);
        }
        if moved.received == 0 && moved.sent == 0 && !finished {
            return;
        }
        let message = Message {
            rx_bump: moved.received as u32,
            tx_bump: moved.sent as u32,
            flags: if finished { FLAG_FINISHED } else { 0 },
            ..Message::new(Kind::Bump, flow.name)
        };
        if let Some(application) = self.application(serial) {
            application.notify(message);
        }
    }

    fn pump_out(&mut self, index: usize, id: Id, moved: &mut Moved) {
        while self.flows[index].tx_ready > 0 && moved.sent < BATCH_BYTES {
            let (ready, owner) = (self.flows[index].tx_ready, self.flows[index].owner);
            let now = self.now;
            let allowance = self.application(owner).map_or(usize::MAX, |application| {
                let limits = application.limits;
                application.rate.allowance(now, &limits)
            });
            let len = ready.min(BATCH_BYTES).min(allowance);
            let flow = &mut self.flows[index];
            if len == 0 {
                if !std::mem::replace(&mut flow.paused, true) {
                    self.paused.push(flow.name);
                }
                return;
            }
            // The stack copies, then computes checksums over its copy: the application may change its ring meanwhile.
            let (route, more) = (&mut self.route, flow.more_follows);
            let sent = flow.memory.drain_with(Ring::Transmit, flow.tx_tail, len, |bytes| route.send(id, bytes, more));
            flow.tx_tail += sent as u64;
            flow.tx_ready -= sent;
            moved.sent += sent;
            if let Some(application) = self.application(owner) {
                application.rate.spend(sent);
            }
            if sent < len {
                break;
            }
        }
        moved.again |= moved.sent >= BATCH_BYTES && self.flows[index].tx_ready > 0;
        let flow = &mut self.flows[index];
        if moved.sent > 0 {
            flow.memory.page().service.tx_tail.store(flow.tx_tail, Ordering::Release);
        }
        if flow.finish_wanted && flow.tx_ready == 0 && !std::mem::replace(&mut flow.finish_given, true) {
            self.route.finish(id);
        }
    }

    fn pump_in(&mut self, index: usize, id: Id, moved: &mut Moved) {
        loop {
            let flow = &mut self.flows[index];
            if flow.deaf || flow.abandoned {
                moved.unwanted = self.route.receive(id, &mut [0]) > 0;
                if moved.unwanted {
                    return;
                }
                break;
            }
            let room = flow.rx_free.min(BATCH_BYTES);
            if room == 0 {
                break;
            }
            if moved.received >= BATCH_BYTES {
                moved.again = true;
                break;
            }
            let route = &mut self.route;
            let len = flow.memory.fill_with(Ring::Receive, flow.rx_head, room, |bytes| route.receive(id, bytes));
            if len == 0 {
                break;
            }
            flow.rx_head += len as u64;
            flow.rx_free -= len;
            moved.received += len;
        }
        let flow = &self.flows[index];
        if moved.received > 0 && flow.direct.is_none() {
            flow.show_received();
        } else if moved.received > 0 {
            flow.memory.page().service.rx_head.store(flow.rx_head, Ordering::Release);
        }
        moved.finished = self.route.finished(id);
    }

    /// Makes a held descriptor writable when a third of the ring is free, as Linux does.
    pub(super) fn unstop(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        // Before a handshake has ended, and at listeners, nothing is writable.
        let connected = matches!(flow.role, Role::Connected(_));
        if flow.stopped && connected && flow.tx_free() >= flow.memory.ring_bytes() / 3 {
            flow.show_writable();
        }
    }

    /// The handshake is done.
    pub(super) fn connected(&mut self, id: Id) {
        let Some(index) = self.by_connection.get(&id).and_then(|name| self.find(*name)) else { return };
        self.flows[index].role = Role::Connected(id);
        self.apply_options(index);
        let flow = &mut self.flows[index];
        flow.show_state(State::Connected);
        // Whatever the application has sent by now only waits for this.
        flow.stopped = true;
        self.due.insert(flow.name);
        if let Some(serial) = flow.direct {
            let message = Message { flags: FLAG_CONNECTED, ..Message::new(Kind::Bump, flow.name) };
            if let Some(application) = self.application(serial) {
                application.notify(message);
            }
        }
        self.unstop(index);
    }

    /// The stack gave the connection up.
    pub(super) fn failed(&mut self, id: Id, cause: Errno) {
        let Some(index) = self.by_connection.get(&id).and_then(|name| self.find(*name)) else {
            self.route.release(id);
            return;
        };
        // What came before the reset is still the application's.
        let mut moved = Moved::default();
        self.pump_in(index, id, &mut moved);
        let flow = &self.flows[index];
        flow.memory.page().service.error.store(cause.raw_os_error() as u32, Ordering::Release);
        self.end(index, id, FLAG_FAILED);
    }

    /// Both directions have ended in order.
    pub(super) fn closed(&mut self, id: Id) {
        let Some(index) = self.by_connection.get(&id).and_then(|name| self.find(*name)) else {
            self.route.release(id);
            return;
        };
        let mut moved = Moved::default();
        self.pump_in(index, id, &mut moved);
        if !self.route.finished(id) {
            // The receive ring is full: the last bytes follow when there is room.
            self.flows[index].over = true;
            return;
        }
        let flow = &mut self.flows[index];
        flow.memory.page().service.finished.store(1, Ordering::Release);
        flow.drain_end();
        self.end(index, id, FLAG_FINISHED);
    }

    /// The connection is over: the descriptor hangs up, and nothing of the socket stays here.
    fn end(&mut self, index: usize, id: Id, flag: u32) {
        let flow = &self.flows[index];
        flow.show_state(State::Closed);
        self.uncount(index);
        let flow = &self.flows[index];
        if let Some(serial) = flow.direct {
            let message = Message { flags: flag, ..Message::new(Kind::Bump, flow.name) };
            if let Some(application) = self.application(serial) {
                application.notify(message);
            }
        }
        self.route.release(id);
        self.forget(index);
    }

    /// The application's last descriptor is closed.
    pub(super) fn abandon(&mut self, name: u32) {
        let Some(index) = self.find(name) else { return };
        self.uncount(index);
        let flow = &mut self.flows[index];
        match flow.role {
            Role::Listener(_) => self.stop_listening(index),
            Role::Connecting(id) => {
                self.route.abort(id);
                self.forget(index);
            }
            Role::Connected(id) => {
                flow.abandoned = true;
                if self.resets(index, id) {
                    // What it wrote before comes first, such as the alert that says why.
                    self.pump_out(index, id, &mut Moved::default());
                    self.route.abort(id);
                    self.forget(index);
                } else {
                    let _ = rustix::event::epoll::delete(&self.epoll, &self.flows[index].end);
                    self.pump(index);
                }
            }
            Role::Fresh => self.forget(index),
        }
    }

    /// A close resets the connection when data is unread, when the option says so, or when nobody closed: a process
    /// that dies leaves its descriptors to the kernel.
    fn resets(&mut self, index: usize, id: Id) -> bool {
        let flow: &Flow = &self.flows[index];
        let unread = !flow.deaf && flow.rx_free < flow.memory.ring_bytes();
        if unread || !flow.announced || flow.options.reset_on_close {
            return true;
        }
        !flow.deaf && self.route.receive(id, &mut [0]) > 0
    }

    /// A connection that waited at its listener does so no more.
    pub(super) fn uncount(&mut self, index: usize) {
        let Some(listener) = self.flows[index].waits_at.take() else { return };
        let Some(listener) = self.find(listener) else { return };
        if let Role::Listener(state) = &mut self.flows[listener].role {
            state.waiting = state.waiting.saturating_sub(1);
            self.hand_over_held(listener);
            self.incoming_for(listener);
        }
    }
}
