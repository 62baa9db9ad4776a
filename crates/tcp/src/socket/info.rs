//! `TCP_INFO`: the layout of Linux's `struct tcp_info`.

use nicforge_units::Time;

use super::{Errno, Fd, Kind, Sockets};
use crate::conn::{CaState, Connection, State};
use crate::ring::Buffers;

/// Bytes of the structure that are filled.
pub const INFO_LEN: usize = 280;

const OPTION_TIMESTAMPS: u8 = 1;
const OPTION_SACK: u8 = 2;
const OPTION_SCALING: u8 = 4;
const OPTION_ECN: u8 = 8;
const OPTION_ECN_SEEN: u8 = 16;

fn state_number(state: State) -> u8 {
    match state {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed => 7,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Closing => 11,
    }
}

const LISTEN: u8 = 10;

struct Writer {
    bytes: [u8; INFO_LEN],
}

impl Writer {
    fn word(&mut self, at: usize, value: u32) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }

    fn long(&mut self, at: usize, value: u64) {
        self.bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
    }
}

fn us(time: Time) -> u32 {
    (time.as_ps() / 1_000_000).min(u64::from(u32::MAX)) as u32
}

fn ms_since(then: Time, now: Time) -> u32 {
    us(now.saturating_sub(then)) / 1000
}

impl Connection {
    /// The structure for this connection.
    pub fn info(&self, now: Time) -> [u8; INFO_LEN] {
        let mut out = Writer { bytes: [0; INFO_LEN] };
        let agreed = self.agreed();
        out.bytes[0] = state_number(self.state());
        out.bytes[1] = match self.rec.ca {
            CaState::Open => 0,
            CaState::Disorder => 1,
            CaState::Reducing => 2,
            CaState::Recovery => 3,
            CaState::Loss => 4,
        };
        out.bytes[2] = self.tx.retransmits.min(255) as u8;
        out.bytes[3] = self.tx.probes_out.min(255) as u8;
        out.bytes[4] = self.tx.backoff.min(255) as u8;
        let bit = |on: bool, bit: u8| if on { bit } else { 0 };
        out.bytes[5] = bit(agreed.timestamps, OPTION_TIMESTAMPS)
            | bit(agreed.sack, OPTION_SACK)
            | bit(agreed.window_scaling, OPTION_SCALING)
            | bit(agreed.ecn, OPTION_ECN)
            | bit(self.rx.marks_seen, OPTION_ECN_SEEN);
        out.bytes[6] = self.flow.remote_shift() | self.flow.local_shift() << 4;
        self.timing(&mut out, now);
        self.sums(&mut out);
        out.bytes
    }

    fn timing(&self, out: &mut Writer, now: Time) {
        let sent = &self.tx.sent;
        out.word(8, us(self.backed_off_rto()));
        out.word(12, us(self.ack.delay));
        out.word(16, self.segment_size());
        out.word(20, self.ack.peer_segment);
        out.word(24, sent.packets_out);
        out.word(28, sent.sacked_out);
        out.word(32, sent.lost_out);
        out.word(36, sent.retrans_out);
        out.word(44, ms_since(self.tx.last_sent_at, now));
        out.word(52, ms_since(self.rx.last_data_at.max(self.opened_at), now));
        out.word(56, ms_since(self.rx.last_segment_at, now));
        out.word(60, self.tx.path_mss + 40);
        out.word(64, self.window_bound());
        out.word(68, self.rtt.smoothed_us());
        out.word(72, self.rtt.deviation_us());
        out.word(76, self.window.threshold);
        out.word(80, self.window.size);
        out.word(84, u32::from(self.agreed().own_mss));
        out.word(88, self.rec.reordering);
        out.word(96, self.flow.post.rx_size);
        out.word(100, self.counters().retransmitted);
    }

    fn sums(&self, out: &mut Writer) {
        let counters = self.counters();
        out.long(104, self.pacing_rate());
        out.long(112, u64::MAX);
        out.long(120, counters.bytes_acked);
        out.long(128, counters.bytes_received);
        out.word(136, counters.segments_out as u32);
        out.word(140, counters.segments_in as u32);
        out.word(144, self.flow.protocol.tx_avail);
        out.word(148, self.rtt.least_us());
        out.word(152, counters.data_segments_in as u32);
        out.word(156, counters.data_segments_out as u32);
        out.word(192, counters.delivered);
        out.long(200, counters.bytes_sent + counters.bytes_retransmitted);
        out.long(208, counters.bytes_retransmitted);
        out.word(216, counters.dsack_duplicates);
        out.word(220, self.rec.reordering_seen);
        out.word(224, counters.out_of_order);
        out.word(228, self.flow.protocol.remote_win);
        out.word(232, self.window_offered());
        out.bytes[240..242].copy_from_slice(&(counters.timeouts.min(65535) as u16).to_ne_bytes());
    }
}

impl<B: Buffers> Sockets<B> {
    pub(super) fn tcp_info(&self, fd: Fd, now: Time) -> Result<[u8; INFO_LEN], Errno> {
        let socket = self.socket_ref(fd)?;
        let mut bytes = [0; INFO_LEN];
        match socket.kind {
            Kind::Fresh => bytes[0] = state_number(State::Closed),
            Kind::Listening(id) => {
                bytes[0] = LISTEN;
                bytes[24..28].copy_from_slice(&(self.stack.waiting(id) as u32).to_ne_bytes());
            }
            Kind::Connection(id) => {
                if let Some(connection) = self.stack.connection(id) {
                    bytes = connection.info(now);
                }
            }
        }
        Ok(bytes)
    }
}
