//! One direction of a PCIe link: bytes in order at a rate, with a header on every packet.

use nicforge_units::{Bytes, Time};

use super::LinkConfig;

/// One direction of a link.
pub struct Direction {
    ps_per_byte_q16: u64,
    max_payload: u64,
    overhead: u64,
    free_at: Time,
    bytes: u64,
}

impl Direction {
    /// An idle direction of the link that `config` describes.
    pub fn new(config: &LinkConfig) -> Direction {
        let ps_per_byte = 8e12 / config.rate.as_bits_per_second() as f64;
        Direction {
            ps_per_byte_q16: (ps_per_byte * 65536.0).round() as u64,
            max_payload: config.max_payload.0,
            overhead: config.tlp_overhead.0,
            free_at: Time::ZERO,
            bytes: 0,
        }
    }

    /// Sends `payload` (0: a bare header), split at the largest payload, not before `now`;
    /// returns when its last byte is through.
    #[inline]
    pub fn send(&mut self, now: Time, payload: Bytes) -> Time {
        let packets = payload.0.div_ceil(self.max_payload).max(1);
        let bytes = payload.0 + packets * self.overhead;
        self.bytes += bytes;
        self.free_at = self.free_at.max(now) + Time::from_ps((bytes * self.ps_per_byte_q16) >> 16);
        self.free_at
    }

    /// Nothing more can be sent before `time`: the other end has no room.
    pub fn hold_until(&mut self, time: Time) {
        self.free_at = self.free_at.max(time);
    }

    /// Bytes sent so far, headers included.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicforge_units::BitRate;

    fn config() -> LinkConfig {
        LinkConfig {
            rate: BitRate::from_gbps(125.0),
            max_payload: Bytes(256),
            max_read_request: Bytes(512),
            tlp_overhead: Bytes(24),
            tags: 64,
            read_round_trip: Time::from_ns(900),
            write_latency: Time::from_ns(300),
            mmio_write: Time::from_ns(300),
            mmio_read: Time::from_ns(900),
        }
    }

    #[test]
    fn a_write_of_1500_bytes_is_six_packets() {
        let mut out = Direction::new(&config());
        // 1500 + 6 x 24 = 1644 bytes at 64 ps each.
        assert_eq!(out.send(Time::ZERO, Bytes(1500)), Time::from_ps(1644 * 64));
        assert_eq!(out.bytes(), 1644);
    }

    #[test]
    fn transfers_queue_in_order_and_the_rate_is_met() {
        let mut out = Direction::new(&config());
        let mut end = Time::ZERO;
        for _ in 0..1000 {
            end = out.send(Time::ZERO, Bytes(232));
        }
        assert_eq!(end, Time::from_ps(1000 * 256 * 64));
    }

    #[test]
    fn an_idle_link_starts_at_once() {
        let mut out = Direction::new(&config());
        out.send(Time::ZERO, Bytes(0));
        assert_eq!(
            out.send(Time::from_us(1), Bytes(0)),
            Time::from_us(1) + Time::from_ps(24 * 64)
        );
    }
}
