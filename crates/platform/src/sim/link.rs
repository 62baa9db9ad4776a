//! One direction of a PCIe link: bytes at a rate, with a header on every packet.
//!
//! Agents run loosely in time: one may send at a time that another has not reached yet. What
//! the other sends then goes into the gap that was left before it.

use nicforge_units::{Bytes, Time};

use super::LinkConfig;

/// A link between a host and a device, which the device's DMA and the cores' accesses share.
pub struct Link {
    /// Device to host: posted writes, read requests, what cores read of the device.
    pub out: Direction,
    /// Host to device: what the device reads, cores' writes and read requests.
    pub inward: Direction,
}

impl Link {
    /// An idle link as `config` describes it.
    pub fn new(config: &LinkConfig) -> Link {
        Link { out: Direction::new(config), inward: Direction::new(config) }
    }
}

/// One direction of a link.
pub struct Direction {
    ps_per_byte_q16: u64,
    max_payload: u64,
    /// Its logarithm, where it is a power of two, as in all of PCIe: many packets are counted.
    max_payload_shift: Option<u32>,
    overhead: u64,
    free_at: Time,
    /// The latest time in which nothing was sent, from and until.
    gap: (Time, Time),
    bytes: u64,
}

impl Direction {
    /// An idle direction of the link that `config` describes.
    pub fn new(config: &LinkConfig) -> Direction {
        let ps_per_byte = 8e12 / config.rate.as_bits_per_second() as f64;
        Direction {
            ps_per_byte_q16: (ps_per_byte * 65536.0).round() as u64,
            max_payload: config.max_payload.0,
            max_payload_shift: config.max_payload.0.is_power_of_two().then(|| config.max_payload.0.trailing_zeros()),
            overhead: config.tlp_overhead.0,
            free_at: Time::ZERO,
            gap: (Time::ZERO, Time::ZERO),
            bytes: 0,
        }
    }

    /// Sends `payload` (0: a bare header), split at the largest payload, not before `now`;
    /// returns when its last byte is through.
    #[inline]
    pub fn send(&mut self, now: Time, payload: Bytes) -> Time {
        self.send_with(now, payload, Bytes(0))
    }

    /// As [`send`](Self::send), with `more` bytes of the data link layer going along.
    #[inline]
    pub fn send_with(&mut self, now: Time, payload: Bytes, more: Bytes) -> Time {
        let bytes = payload.0 + self.packets(payload) * self.overhead + more.0;
        self.bytes += bytes;
        let lasts = Time::from_ps((bytes * self.ps_per_byte_q16) >> 16);
        let in_gap = self.gap.0.max(now) + lasts;
        if in_gap <= self.gap.1 {
            self.gap.0 = in_gap;
            return in_gap;
        }
        if now > self.free_at {
            self.gap = (self.free_at, now);
        }
        self.free_at = self.free_at.max(now) + lasts;
        self.free_at
    }

    /// How many packets `payload` is split into.
    pub fn packets(&self, payload: Bytes) -> u64 {
        match self.max_payload_shift {
            Some(shift) => ((payload.0 + self.max_payload - 1) >> shift).max(1),
            None => payload.0.div_ceil(self.max_payload).max(1),
        }
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
    use crate::sim::test_hardware;

    fn config() -> LinkConfig {
        test_hardware().pcie
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
    fn an_agent_behind_in_time_uses_the_gap_left_on_the_link() {
        let mut out = Direction::new(&config());
        out.send(Time::from_us(1), Bytes(1500));
        assert_eq!(out.send(Time::from_ns(10), Bytes(0)), Time::from_ps(10_000 + 24 * 64));
        // What does not fit into the gap goes behind.
        let behind = out.send(Time::from_ns(950), Bytes(1500));
        assert_eq!(behind, Time::from_us(1) + Time::from_ps(2 * 1644 * 64));
    }

    #[test]
    fn an_idle_link_starts_at_once() {
        let mut out = Direction::new(&config());
        out.send(Time::ZERO, Bytes(0));
        assert_eq!(out.send(Time::from_us(1), Bytes(0)), Time::from_us(1) + Time::from_ps(24 * 64));
    }
}
