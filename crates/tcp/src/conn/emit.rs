//! Headers of outgoing segments.

use nicforge_units::Time;

use super::output::Burst;
use super::{Connection, State};
use crate::fast::FlowFlags;
use crate::options::{Options, SACK_BLOCKS, Timestamps};
use crate::segment::{Ecn, Flags, Header};
use crate::seq::Seq;

/// Payload of an outgoing segment: a piece of the transmit ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxSpan {
    /// Place of its first byte in the transmit ring.
    pub at: u32,
    /// Bytes, around the end of the ring where needed.
    pub len: u32,
}

/// An outgoing segment: its header and where its payload lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emission {
    /// The header; `payload_len` is that of `payload`.
    pub header: Header,
    /// The payload.
    pub payload: Option<TxSpan>,
    /// The ECN field of the IP header.
    pub ecn: Ecn,
}

/// An RST to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reset {
    pub seq: Seq,
    pub ack: Option<Seq>,
}

impl Connection {
    fn header(&mut self, seq: Seq, flags: Flags, now: Time) -> Header {
        let window = self.offer_window();
        let options = self.usual_options(now);
        self.rx.last_ack_sent = self.expected();
        self.counters.segments_out += 1;
        Header {
            source_port: self.flow.pre.local_port,
            destination_port: self.flow.pre.remote_port,
            seq,
            ack: self.expected(),
            flags: flags.with(Flags::ACK).with_if(self.rx.echo_mark && self.agreed.ecn, Flags::ECE),
            window,
            urgent: 0,
            options,
            payload_len: 0,
        }
    }

    fn usual_options(&mut self, now: Time) -> Options {
        let mut options = Options::default();
        if self.agreed.timestamps {
            options.timestamps = Some(Timestamps { value: self.clock(now), echo: self.flow.protocol.next_ts });
        }
        if self.agreed.sack && (!self.rx.intervals.is_empty() || self.rx.duplicate.is_some()) {
            let most = if self.agreed.timestamps { SACK_BLOCKS - 1 } else { SACK_BLOCKS };
            options.sack = self.rx.intervals.blocks(self.rx.duplicate.take(), most);
        }
        options
    }

    pub(crate) fn emit_ack(&mut self, now: Time) -> Emission {
        let header = self.header(self.acceptable(), Flags::ACK, now);
        self.ack_went_out(1);
        Emission { header, payload: None, ecn: Ecn::NotCapable }
    }

    /// A sequence number that the peer must find acceptable, also when it shrank its window.
    fn acceptable(&self) -> Seq {
        if self.goes_back_n() {
            // After a way back the next number lies below what the peer expects.
            return self.tx.highest;
        }
        let edge = self.una() + self.flow.protocol.remote_win;
        if self.next().after(edge) && self.flow.remote_shift() == 0 { edge.max(self.una()) } else { self.next() }
    }

    /// A segment without data whose old sequence number makes the peer answer.
    pub(crate) fn emit_probe(&mut self, seq: Seq, now: Time) -> Emission {
        let header = self.header(seq, Flags::ACK, now);
        Emission { header, payload: None, ecn: Ecn::NotCapable }
    }

    pub(crate) fn emit_data(&mut self, burst: &Burst, len: u32, last: bool, now: Time) -> Emission {
        let fin = last && burst.fin;
        let flags = Flags::ACK.with_if(last && burst.push, Flags::PSH).with_if(fin, Flags::FIN);
        let mut header = self.header(burst.next, flags, now);
        header.payload_len = len;
        if let Some(end) = self.tx.urgent.filter(|end| end.after(burst.next)) {
            header.flags = header.flags.with(Flags::URG);
            header.urgent = end.since(burst.next).min(u32::from(u16::MAX)) as u16;
        }
        let mut ecn = Ecn::NotCapable;
        if self.agreed.ecn && len > 0 && !burst.again {
            ecn = Ecn::Capable0;
            if std::mem::take(&mut self.tx.cwr) {
                header.flags = header.flags.with(Flags::CWR);
            }
        }
        self.ack_went_out(1);
        self.ack.now = 0;
        self.counters.data_segments_out += u64::from(len > 0);
        let payload = (len > 0).then(|| TxSpan { at: self.tx_place(burst.next), len });
        Emission { header, payload, ecn }
    }

    /// Place of `seq` in the transmit ring.
    fn tx_place(&self, seq: Seq) -> u32 {
        let data_end = self.next() - u32::from(self.flow.has(FlowFlags::FIN_SENT));
        self.flow.tx_before(data_end.since(seq))
    }

    pub(crate) fn emit_reset(&mut self, reset: Reset, now: Time) -> Emission {
        let mut options = Options::default();
        if self.agreed.timestamps && reset.ack.is_some() {
            options.timestamps = Some(Timestamps { value: self.clock(now), echo: self.flow.protocol.next_ts });
        }
        let header = Header {
            source_port: self.flow.pre.local_port,
            destination_port: self.flow.pre.remote_port,
            seq: reset.seq,
            ack: reset.ack.unwrap_or_default(),
            flags: Flags::RST.with_if(reset.ack.is_some(), Flags::ACK),
            options,
            ..Header::default()
        };
        self.counters.segments_out += 1;
        Emission { header, payload: None, ecn: Ecn::NotCapable }
    }

    /// The SYN or SYN-ACK of an active open.
    pub(crate) fn emit_syn(&mut self, now: Time) -> Emission {
        let crossing = self.state == State::SynReceived;
        let asks_ecn = self.config.ecn == crate::config::EcnMode::On || self.control.wants_ecn();
        let first = self.tx.retransmits < 2;
        let mut options = Options {
            mss: Some(self.agreed.own_mss),
            window_scale: self.offers_scaling().then_some(self.flow.local_shift()),
            sack_permitted: if crossing { self.agreed.sack } else { self.config.sack },
            ..Options::default()
        };
        if if crossing { self.agreed.timestamps } else { self.config.timestamps } {
            options.timestamps = Some(Timestamps { value: self.clock(now), echo: self.flow.protocol.next_ts });
        }
        let ecn_flags = if crossing {
            Flags::default().with_if(self.agreed.ecn, Flags::ECE)
        } else {
            // A path that drops ECN SYNs is tried without (RFC 3168 section 6.1.1.1).
            Flags::default().with_if(asks_ecn && first, Flags(Flags::ECE.0 | Flags::CWR.0))
        };
        self.rx.window = self.window_bound().min(u32::from(u16::MAX));
        self.rx.window_at = self.expected();
        self.rx.last_ack_sent = self.expected();
        self.counters.segments_out += 1;
        let header = Header {
            source_port: self.flow.pre.local_port,
            destination_port: self.flow.pre.remote_port,
            seq: self.tx.iss,
            ack: self.expected(),
            flags: Flags::SYN.with_if(crossing, Flags::ACK).with(ecn_flags),
            window: self.rx.window as u16,
            options,
            ..Header::default()
        };
        Emission { header, payload: None, ecn: Ecn::NotCapable }
    }

    fn offers_scaling(&self) -> bool {
        if self.state == State::SynReceived { self.agreed.window_scaling } else { self.config.window_scaling }
    }

    /// Payload of a full segment without SACK blocks.
    pub(crate) fn full_segment(&self) -> u32 {
        let clocks = if self.agreed.timestamps { 12 } else { 0 };
        self.tx.path_mss.saturating_sub(clocks).max(1)
    }

    /// Payload of the next full segment: options taken off, and half of the largest window seen at most, so that small
    /// windows do not stop the sender.
    pub(crate) fn payload_most(&self) -> u32 {
        let mut mss = self.full_segment();
        if self.agreed.sack && !self.rx.intervals.is_empty() {
            let most = if self.agreed.timestamps { SACK_BLOCKS - 1 } else { SACK_BLOCKS };
            let blocks = self.rx.intervals.blocks(None, most).as_slice().len() as u32;
            mss = mss.saturating_sub(4 + 8 * blocks);
        }
        let most = self.tx.window_most;
        let cut = if most > 536 { most / 2 } else { most };
        if cut > 0 { mss.min(cut.max(48)) } else { mss }.max(1)
    }
}
