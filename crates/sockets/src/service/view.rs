//! What `nicforge ss` shows.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use rustix::net::SendFlags;
use serde::{Deserialize, Serialize};

use super::Service;
use super::flow::Role;
use crate::control::send;
use crate::transport::{Host, Info, Segments, Transport};

/// A socket, like a line of `ss -tin`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SocketView {
    /// State by its RFC 9293 name.
    pub state: String,
    /// Own address.
    pub local: String,
    /// The peer's address.
    pub remote: String,
    /// Process.
    pub pid: u32,
    /// User.
    pub user: u32,
    /// Program.
    pub program: String,
    /// Bytes in the receive ring.
    pub receive_queue_bytes: usize,
    /// Bytes in the transmit ring.
    pub send_queue_bytes: usize,
    /// Bytes sent and not acknowledged.
    pub unacknowledged_bytes: u32,
    /// Bytes ever received.
    pub received_bytes: u64,
    /// Bytes ever taken from the application.
    pub sent_bytes: u64,
    /// Smoothed round-trip time, µs.
    pub rtt_us: f64,
    /// Congestion window, bytes.
    pub window_bytes: u64,
    /// Maximum segment size, bytes.
    pub mss_bytes: u32,
    /// Segments retransmitted.
    pub retransmits: u32,
    /// Entries about it that were refused.
    pub refused: u64,
    /// Congestion control; empty where there is none.
    #[serde(default)]
    pub algorithm: String,
    /// Figures of its segments, where it has any.
    #[serde(default)]
    pub segments: Option<Segments>,
}

/// The host behind the service's port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostView {
    /// Connections, those in TIME-WAIT and those without an owner included.
    pub connections: usize,
    /// Counters by name.
    pub counters: BTreeMap<String, u64>,
}

impl HostView {
    fn of(host: &Host) -> HostView {
        let counters = &host.counters;
        let all = [
            ("frames_in", counters.frames_in),
            ("frames_out", counters.frames_out),
            ("not_ours", counters.not_ours),
            ("malformed", counters.malformed),
            ("fragments", counters.fragments),
            ("no_port", counters.no_port),
            ("resets_out", counters.resets_out),
            ("accept_queue_full", counters.accept_queue_full),
            ("backlog_full", counters.backlog_full),
            ("cookies_out", counters.cookies_out),
            ("cookies_in", counters.cookies_in),
            ("cookies_bad", counters.cookies_bad),
            ("answers_dropped", counters.answers_dropped),
            ("icmp_ignored", counters.icmp_ignored),
            ("no_buffer", counters.no_buffer),
            ("orphans_reset", host.orphans_reset),
            ("port_errors", host.port_errors),
            ("lost_by_intent", host.lost),
            ("fast_path_threads", host.threads as u64),
        ];
        let counters = all.into_iter().map(|(name, count)| (name.to_string(), count));
        let counters = counters.chain(host.tls.iter().cloned()).collect();
        HostView { connections: host.connections, counters }
    }
}

/// An application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApplicationView {
    /// Process.
    pub pid: u32,
    /// User.
    pub user: u32,
    /// Program.
    pub program: String,
    /// Sockets.
    pub connections: usize,
    /// Limit of them.
    pub connections_limit: usize,
    /// Limit of its sending rate, bytes per second.
    pub bytes_per_second_limit: Option<u64>,
    /// Entries and requests that were refused.
    pub refused: u64,
}

/// One line of the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum View {
    /// A socket.
    Socket(Box<SocketView>),
    /// An application.
    Application(ApplicationView),
    /// The host.
    Host(HostView),
    /// More follows: the next request begins here.
    Next(u32),
    /// That is all.
    End,
}

/// Sockets of one answer: they fit into the observer's socket at a time.
const BATCH: usize = 64;

impl Service {
    /// Sends one message per socket from number `from` on, a batch at a time, with the applications at the beginning.
    pub(super) fn list(&self, index: usize, from: u32) {
        let control = self.applications[index].control.as_fd();
        let applications =
            self.applications.iter().filter(|(_, application)| from == 0 && application.context.is_some());
        let applications = applications.map(|(_, application)| {
            View::Application(ApplicationView {
                pid: application.pid,
                user: application.user,
                program: application.name.clone(),
                connections: application.connections,
                connections_limit: application.limits.connections,
                bytes_per_second_limit: application.limits.bytes_per_second,
                refused: application.refused,
            })
        });
        let mut rest = self.flows.iter().filter(|(index, _)| *index >= from as usize);
        let batch: Vec<usize> = rest.by_ref().take(BATCH).map(|(index, _)| index).collect();
        let last = rest.next().map_or(View::End, |(index, _)| View::Next(index as u32));
        let sockets = batch.into_iter().map(|index| View::Socket(Box::new(self.view_of(index))));
        let host = self.route.host().filter(|_| from == 0).map(|host| View::Host(HostView::of(&host)));
        for view in applications.chain(host).chain(sockets).chain([last]) {
            let Ok(line) = serde_json::to_vec(&view) else { continue };
            // An observer that does not read gets no more.
            if send(control, &line, &[], SendFlags::DONTWAIT).is_err() {
                return;
            }
        }
    }

    fn view_of(&self, index: usize) -> SocketView {
        let flow = &self.flows[index];
        let info = flow.connection().map_or_else(Info::default, |id| self.route.info(id));
        let state = match flow.role {
            Role::Fresh if flow.claimed => "BOUND",
            Role::Fresh => "CLOSED",
            Role::Listener(_) => "LISTEN",
            Role::Connecting(_) => "SYN-SENT",
            Role::Connected(_) => info.state,
        };
        let owner = self.by_serial.get(&flow.owner).and_then(|index| self.applications.get(*index));
        let shown = |address: Option<std::net::SocketAddr>| address.map_or_else(|| "*:*".into(), |a| a.to_string());
        SocketView {
            state: state.into(),
            local: shown(flow.local),
            remote: shown(flow.remote),
            pid: owner.map_or(0, |owner| owner.pid),
            user: owner.map_or(0, |owner| owner.user),
            program: owner.map_or_else(String::new, |owner| owner.name.clone()),
            receive_queue_bytes: match flow.role {
                Role::Listener(listener) => listener.waiting,
                // What is read is given back in larger steps; the page has the exact place, good enough to be shown.
                _ => {
                    let read = flow.memory.page().application.rx_tail.load(Ordering::Relaxed);
                    flow.rx_head.saturating_sub(read).min(flow.memory.ring_bytes() as u64) as usize
                }
            },
            send_queue_bytes: match flow.role {
                Role::Listener(listener) => listener.backlog,
                _ => flow.tx_ready,
            },
            unacknowledged_bytes: info.unacknowledged,
            received_bytes: flow.rx_head,
            sent_bytes: flow.tx_tail,
            rtt_us: info.rtt.as_us(),
            window_bytes: info.window,
            mss_bytes: info.mss,
            retransmits: info.retransmits,
            refused: flow.refused,
            algorithm: info.segments.map_or_else(String::new, |segments| segments.algorithm.into()),
            segments: info.segments,
        }
    }
}
