//! What a stack may be told: the knobs of the RFCs and of the paper, with the defaults that the RFCs or Linux have.

use nicforge_units::Time;

use crate::congestion::Algorithm;
use crate::seq::Seq;

/// When a connection uses ECN (RFC 3168 section 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnMode {
    /// Never.
    Off,
    /// Asks for it and grants it.
    On,
    /// Grants it to peers that ask.
    Passive,
}

/// How lost data is found and sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// SACK with RACK-TLP (RFC 2018, RFC 8985), NewReno (RFC 6582) with peers that lack SACK.
    Selective,
    /// The paper's: three duplicate acknowledgments or a timeout send everything unacknowledged again.
    GoBackN,
}

/// How much out-of-order data the receiver keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reassembly {
    /// Any number of intervals up to a bound that hostile peers cannot pass.
    Full,
    /// The paper's: one interval; data that does not touch it is dropped.
    OneInterval,
}

/// Least, default and largest size of a buffer, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferSizes {
    /// Least.
    pub least: u32,
    /// What a socket starts with.
    pub default: u32,
    /// Largest that growth may reach; it decides the window scale.
    pub most: u32,
}

/// Keep-alive (RFC 9293 section 3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// Whether probes are sent. Off by default (MUST-25).
    pub on: bool,
    /// Idle time before the first probe.
    pub idle: Time,
    /// Time between probes.
    pub interval: Time,
    /// Unanswered probes after which the connection ends.
    pub probes: u8,
}

/// Everything that a connection reads at its start and while it runs.
#[derive(Clone, Debug)]
pub struct Config {
    /// Offers and accepts timestamps (RFC 7323).
    pub timestamps: bool,
    /// Offers and accepts window scaling (RFC 7323).
    pub window_scaling: bool,
    /// Offers and accepts SACK (RFC 2018).
    pub sack: bool,
    /// Reports duplicates (RFC 2883).
    pub dsack: bool,
    /// ECN.
    pub ecn: EcnMode,
    /// Lets the fast path take the common case. Off is for comparing: nothing but speed may differ.
    pub fast_path: bool,
    /// Loss recovery.
    pub recovery: Recovery,
    /// Out-of-order data.
    pub reassembly: Reassembly,
    /// Acknowledges every data segment at once, as the paper does.
    pub ack_every_segment: bool,
    /// Congestion control of new connections.
    pub algorithm: Algorithm,
    /// Initial congestion window, in segments (RFC 6928).
    pub initial_window: u32,
    /// Duplicate acknowledgments that prove a loss without time stamps of sending.
    pub reordering: u32,
    /// Tail loss probes (RFC 8985 section 7).
    pub tail_loss_probe: bool,
    /// Detection of spurious timeouts (RFC 5682).
    pub frto: bool,
    /// Restarts slow start after an idle retransmission timeout (RFC 5681 section 4.1).
    pub slow_start_after_idle: bool,
    /// Retransmissions of a SYN.
    pub syn_retries: u8,
    /// Retransmissions of a SYN-ACK.
    pub syn_ack_retries: u8,
    /// Retransmissions in an open connection.
    pub data_retries: u8,
    /// Retransmissions of a connection that no application holds.
    pub orphan_retries: u8,
    /// Least retransmission timeout.
    pub rto_min: Time,
    /// Largest retransmission timeout (RFC 6298 section 2.5).
    pub rto_max: Time,
    /// Timeout before the first RTT measurement (RFC 6298 section 2.1).
    pub rto_initial: Time,
    /// Timeouts of a handshake are drawn between a half and one and a half of what they would be, as TAS does: hosts that
    /// lost their SYNs in one burst do not repeat them in another.
    pub handshake_spread: bool,
    /// Time in TIME-WAIT: twice the segment lifetime of 30 s.
    pub time_wait: Time,
    /// Time in FIN-WAIT-2 after the application has gone.
    pub fin_wait: Time,
    /// Keep-alive of new connections.
    pub keep_alive: KeepAlive,
    /// Receive buffers. Half a buffer is offered as window, as sockets count.
    pub receive: BufferSizes,
    /// Send buffers.
    pub send: BufferSizes,
    /// Unsent bytes below which a socket is writable.
    pub not_sent_low_water: u32,
    /// The host hands bursts of segments to its device, and waits to make them large. Without it each segment leaves as
    /// soon as it may.
    pub segmentation_offload: bool,
    /// A burst waits for more window until it fills this part of it; 0 is off.
    pub burst_divisor: u32,
    /// Least segments of a burst.
    pub burst_segments_min: u32,
    /// Paces output at twice the window per RTT in slow start, 1.2 times after (percent).
    pub pacing_percent: (u32, u32),
    /// Whether bursts wait for their pacing time.
    pub pacing: bool,
    /// SYN cookies (RFC 4987): when the backlog is full.
    pub syn_cookies: bool,
    /// Least time between acknowledgments of invalid segments of one connection (RFC 5961).
    pub invalid_ack_interval: Time,
    /// Largest segment that we offer to take, whatever the MTU.
    pub mss_limit: u16,
    /// Fast Open: 1 client, 2 server.
    pub fast_open: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            timestamps: true,
            window_scaling: true,
            sack: true,
            dsack: true,
            ecn: EcnMode::Passive,
            fast_path: true,
            recovery: Recovery::Selective,
            reassembly: Reassembly::Full,
            ack_every_segment: false,
            algorithm: Algorithm::Cubic,
            initial_window: 10,
            reordering: 3,
            tail_loss_probe: true,
            frto: true,
            slow_start_after_idle: true,
            syn_retries: 6,
            syn_ack_retries: 5,
            data_retries: 15,
            orphan_retries: 8,
            rto_min: Time::from_ms(200),
            rto_max: Time::from_ms(120_000),
            rto_initial: Time::from_ms(1_000),
            handshake_spread: false,
            time_wait: Time::from_ms(60_000),
            fin_wait: Time::from_ms(60_000),
            keep_alive: KeepAlive {
                on: false,
                idle: Time::from_ms(7_200_000),
                interval: Time::from_ms(75_000),
                probes: 9,
            },
            receive: BufferSizes { least: 4096, default: 131_072, most: 6_291_456 },
            send: BufferSizes { least: 4096, default: 262_144, most: 4_194_304 },
            not_sent_low_water: u32::MAX,
            segmentation_offload: true,
            burst_divisor: 3,
            burst_segments_min: 2,
            pacing_percent: (200, 120),
            pacing: false,
            syn_cookies: true,
            invalid_ack_interval: Time::from_ms(500),
            mss_limit: u16::MAX,
            fast_open: 1,
        }
    }
}

impl Config {
    /// The paper's simplifications together: one out-of-order interval, go-back-N, an acknowledgment per segment, no
    /// SACK and no window scaling.
    pub fn paper() -> Config {
        Config {
            sack: false,
            dsack: false,
            window_scaling: false,
            recovery: Recovery::GoBackN,
            reassembly: Reassembly::OneInterval,
            ack_every_segment: true,
            algorithm: Algorithm::Dctcp,
            tail_loss_probe: false,
            frto: false,
            ..Config::default()
        }
    }

    /// How long a handshake waits that would wait for `timeout`, by its initial number and how often it was repeated.
    pub(crate) fn handshake_timeout(&self, timeout: Time, iss: Seq, repeated: u32) -> Time {
        if !self.handshake_spread {
            return timeout;
        }
        // Initial numbers are a keyed hash already; the factor of Fibonacci hashing spreads their sum's low bits.
        let drawn = iss.0.wrapping_add(repeated.wrapping_mul(0x85EB_CA6B)).wrapping_mul(0x9E37_79B1);
        let part = (u128::from(timeout.as_ps()) * u128::from(drawn)) >> 32;
        Time::from_ps(timeout.as_ps() / 2 + part as u64)
    }

    /// The shift that we offer for a receive buffer (RFC 7323 section 2.3).
    pub fn window_shift(&self, receive_buffer: u32) -> u8 {
        if !self.window_scaling {
            return 0;
        }
        let space = receive_buffer.max(self.receive.most);
        let bits = 31 - space.max(1).leading_zeros();
        (bits as u8).saturating_sub(15).min(crate::options::WINDOW_SCALE_MAX)
    }
}
