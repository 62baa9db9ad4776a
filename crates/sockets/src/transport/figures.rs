//! Figures of the stack's connections, for those who look.

use nicforge_tcp::conn::Connection;

use nicforge_tcp::stack::{FourTuple, Stack};
use nicforge_units::Time;

use super::names::state_name;
use super::pages::PagedBuffers;
use super::{Info, Segments};
use crate::watch::trace::{Figures, OfConnection};

/// Figures of a connection.
pub(super) fn info(connection: &Connection, now: Time) -> Info {
    // The fields of Linux's structure.
    let info = connection.info(now);
    let word = |at: usize| u32::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]);
    let counters = connection.counters();
    let dropped = counters.paws_drops + counters.outside_window + counters.bad_acks + counters.no_interval;
    let mss = word(16);
    Info {
        rtt: Time::from_us(word(68).into()),
        rtt_variance: Time::from_us(word(72).into()),
        window: u64::from(word(80)) * u64::from(mss),
        mss,
        retransmits: word(100),
        unacknowledged: connection.next().0.wrapping_sub(connection.una().0),
        state: state_name(connection.state()),
        segments: Some(Segments {
            algorithm: connection.tuning.algorithm.name(),
            window_shifts: [info[6] & 15, info[6] >> 4],
            timeout_us: word(8),
            least_rtt_us: word(148),
            threshold: word(76),
            bytes_retransmitted: counters.bytes_retransmitted,
            bytes_acknowledged: counters.bytes_acked,
            out: word(136),
            came: word(140),
            data_out: word(156),
            data_in: word(152),
            lost: word(32),
            sacked: word(28),
            timeouts: counters.timeouts,
            out_of_order: counters.out_of_order,
            dropped,
            not_sent: word(144),
        }),
    }
}

/// What a trace compares.
pub(super) fn traced(stack: &Stack<PagedBuffers>, tuple: Option<FourTuple>, now: Time) -> Figures {
    let connection = tuple.and_then(|tuple| stack.connection(stack.find(&tuple)?));
    let connection = connection.map(|connection| OfConnection::of(connection, now));
    Figures { connection, host: *stack.counters() }
}
