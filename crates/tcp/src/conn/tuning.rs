//! Options of one socket; a connection inherits its listener's.

use nicforge_units::Time;

use crate::config::{Config, KeepAlive};
use crate::congestion::Algorithm;

/// What an application may set per socket.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// Sends small segments at once (TCP_NODELAY).
    pub no_delay: bool,
    /// Holds partial segments (TCP_CORK).
    pub cork: bool,
    /// Keep-alive.
    pub keep_alive: KeepAlive,
    /// Unacknowledged data ends the connection after this time (RFC 5482).
    pub user_timeout: Option<Time>,
    /// Largest segment both ways (TCP_MAXSEG), 0 for the path's.
    pub max_segment: u16,
    /// Retransmissions of a SYN.
    pub syn_retries: u8,
    /// Time in FIN-WAIT-2 once no application holds the connection.
    pub fin_wait: Time,
    /// Type of service of outgoing packets.
    pub tos: u8,
    /// Time to live, 0 for the default.
    pub ttl: u8,
    /// Congestion control.
    pub algorithm: Algorithm,
    /// Receive buffer; half of it is the ring.
    pub receive_buffer: u32,
    /// Send buffer.
    pub send_buffer: u32,
    /// Unsent bytes below which the socket is writable.
    pub not_sent_low_water: u32,
    /// The window never exceeds this, 0 for no bound.
    pub window_clamp: u32,
    /// A listener reports connections only after data came, for this long.
    pub defer_accept: Option<Time>,
    /// Least bytes that make a socket readable.
    pub receive_low_water: u32,
}

impl Tuning {
    /// What new sockets start with.
    pub fn new(config: &Config) -> Tuning {
        Tuning {
            no_delay: false,
            cork: false,
            keep_alive: config.keep_alive,
            user_timeout: None,
            max_segment: 0,
            syn_retries: config.syn_retries,
            fin_wait: config.fin_wait,
            tos: 0,
            ttl: 0,
            algorithm: config.algorithm,
            receive_buffer: config.receive.default,
            send_buffer: config.send.default,
            not_sent_low_water: config.not_sent_low_water,
            window_clamp: 0,
            defer_accept: None,
            receive_low_water: 1,
        }
    }

    /// Size of the receive ring in bytes.
    pub fn receive_ring(&self) -> u32 {
        (self.receive_buffer / 2).max(2048)
    }

    /// Size of the transmit ring in bytes.
    pub fn send_ring(&self) -> u32 {
        self.send_buffer.max(4096)
    }
}
