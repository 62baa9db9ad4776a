//! The state of one connection on the fast path: what the paper's table 3.1 lists, in two cache lines.

use bytemuck::{Pod, Zeroable};

use crate::ring::advance;
use crate::seq::Seq;

/// Who the peer is: read by the pre-processing stage.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Pre {
    /// Hardware address of the next hop.
    pub peer_mac: [u8; 6],
    /// Flow-group: which protocol processor owns the connection.
    pub group: u8,
    /// Unused.
    pub reserved: u8,
    /// IPv4 address of the peer, in host order.
    pub peer: u32,
    /// Our port.
    pub local_port: u16,
    /// The peer's port.
    pub remote_port: u16,
}

/// Bits of [`Protocol::flags`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct FlowFlags(pub u8);

impl FlowFlags {
    /// The fast path may process the flow's segments.
    pub const FAST: u8 = 0x01;
    /// The application sends no more: a FIN follows the last byte.
    pub const CLOSING: u8 = 0x02;
    /// Our FIN has a sequence number.
    pub const FIN_SENT: u8 = 0x04;
    /// The peer's FIN has been taken.
    pub const PEER_CLOSED: u8 = 0x08;
    /// Segments carry time stamps.
    pub const TIMESTAMPS: u8 = 0x10;
    /// Both ends use ECN.
    pub const ECN: u8 = 0x20;
    /// Loss recovery is the paper's go-back-N, done by the fast path.
    pub const GO_BACK_N: u8 = 0x40;
    /// The receive window was advertised as zero.
    pub const WINDOW_CLOSED: u8 = 0x80;
}

/// Windows, sequence numbers and positions: the protocol stage owns it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Protocol {
    /// Place of the next in-order byte in the receive ring.
    pub rx_pos: u32,
    /// Place of the next byte to send in the transmit ring.
    pub tx_pos: u32,
    /// Bytes in the transmit ring that were not sent yet.
    pub tx_avail: u32,
    /// Free bytes of the receive ring, counted from `rx_pos`.
    pub rx_avail: u32,
    /// The peer's window in bytes, from its last acknowledgment on.
    pub remote_win: u32,
    /// Sequence numbers sent and not acknowledged.
    pub tx_sent: u32,
    /// Next sequence number to send.
    pub seq: u32,
    /// Next sequence number expected.
    pub ack: u32,
    /// Begin of the out-of-order interval.
    pub ooo_start: u32,
    /// Its length in bytes; zero when there is none.
    pub ooo_len: u32,
    /// The peer's clock, to be echoed.
    pub next_ts: u32,
    /// Duplicate acknowledgments in a row.
    pub dupack_cnt: u8,
    /// [`FlowFlags`].
    pub flags: u8,
    /// Shifts of the windows: ours in the low half, the peer's in the high half.
    pub shifts: u8,
    /// Bit 0: the last data segment carried a congestion mark.
    pub marks: u8,
}

/// Buffers, context queue and congestion counters: the post-processing stage owns it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Post {
    /// The application's word for the flow.
    pub opaque: u64,
    /// Address of the receive ring.
    pub rx_base: u64,
    /// Address of the transmit ring.
    pub tx_base: u64,
    /// Size of the receive ring in bytes.
    pub rx_size: u32,
    /// Size of the transmit ring in bytes.
    pub tx_size: u32,
    /// Bytes acknowledged since the slow path last read it.
    pub cnt_ackb: u32,
    /// Those of them that carried an ECN echo.
    pub cnt_ecnb: u32,
    /// Smoothed round-trip time in microseconds.
    pub rtt_est: u32,
    /// Bytes per second; zero is unlimited.
    pub rate: u32,
    /// Congestion window in bytes; zero is unlimited.
    pub window: u32,
    /// Context queue.
    pub context: u16,
    /// Fast retransmissions since the slow path last read it.
    pub cnt_fretx: u8,
    /// Unused.
    pub reserved: u8,
}

/// The whole state: 120 bytes in two cache lines of 64.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Flow {
    /// Windows, sequence numbers, positions.
    pub protocol: Protocol,
    /// Who the peer is.
    pub pre: Pre,
    /// Buffers, context queue, congestion counters.
    pub post: Post,
}

const _: () = assert!(size_of::<Pre>() == 16 && size_of::<Protocol>() == 48 && size_of::<Post>() == 56);
const _: () = assert!(size_of::<Flow>() == 120);

impl Flow {
    /// Whether all bits of `flag` are set.
    #[inline]
    pub fn has(&self, flag: u8) -> bool {
        self.protocol.flags & flag == flag
    }

    /// Sets or clears the bits of `flag`.
    #[inline]
    pub fn set(&mut self, flag: u8, on: bool) {
        if on {
            self.protocol.flags |= flag;
        } else {
            self.protocol.flags &= !flag;
        }
    }

    /// Oldest sequence number without acknowledgment.
    #[inline]
    pub fn unacknowledged(&self) -> Seq {
        Seq(self.protocol.seq.wrapping_sub(self.protocol.tx_sent))
    }

    /// Shift of our window.
    #[inline]
    pub fn local_shift(&self) -> u8 {
        self.protocol.shifts & 15
    }

    /// Shift of the peer's window.
    #[inline]
    pub fn remote_shift(&self) -> u8 {
        self.protocol.shifts >> 4
    }

    /// Sets both shifts.
    pub fn set_shifts(&mut self, local: u8, remote: u8) {
        self.protocol.shifts = (local & 15) | (remote << 4);
    }

    /// Free bytes of the transmit ring.
    #[inline]
    pub fn tx_free(&self) -> u32 {
        // A sequence number of SYN or FIN takes no byte, so the difference may fall below what is there.
        self.post.tx_size.saturating_sub(self.protocol.tx_avail).saturating_sub(self.protocol.tx_sent)
    }

    /// Bytes of the receive ring that wait for the application.
    #[inline]
    pub fn rx_waiting(&self) -> u32 {
        self.post.rx_size - self.protocol.rx_avail
    }

    /// Place in the receive ring of the byte `offset` after the next one in order.
    #[inline]
    pub fn rx_at(&self, offset: u32) -> u32 {
        advance(self.protocol.rx_pos, offset, self.post.rx_size)
    }

    /// Place in the transmit ring of the byte `back` before the next one to send.
    #[inline]
    pub fn tx_before(&self, back: u32) -> u32 {
        advance(self.protocol.tx_pos, self.post.tx_size - back, self.post.tx_size)
    }

    /// Takes `bytes` in order: moves position and free space.
    #[inline]
    pub fn rx_take(&mut self, bytes: u32) {
        let size = self.post.rx_size;
        self.protocol.rx_pos = advance(self.protocol.rx_pos, bytes, size);
        self.protocol.rx_avail -= bytes;
        self.protocol.ack = self.protocol.ack.wrapping_add(bytes);
    }

    /// The peer's window is closed, and something waits for it to open.
    #[inline]
    pub fn is_stalled(&self) -> bool {
        let fin = self.has(FlowFlags::CLOSING) && !self.has(FlowFlags::FIN_SENT);
        self.protocol.remote_win == 0 && (self.protocol.tx_avail > 0 || self.protocol.tx_sent > 0 || fin)
    }

    /// Both ends have closed, and both know.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.has(FlowFlags::FIN_SENT | FlowFlags::PEER_CLOSED) && self.protocol.tx_sent == 0
    }

    /// Gives `bytes` of the transmit ring sequence numbers: moves position and counts.
    #[inline]
    pub fn tx_take(&mut self, bytes: u32) {
        let size = self.post.tx_size;
        self.protocol.tx_pos = advance(self.protocol.tx_pos, bytes, size);
        self.protocol.tx_avail -= bytes;
        self.protocol.tx_sent += bytes;
        self.protocol.seq = self.protocol.seq.wrapping_add(bytes);
    }
}
