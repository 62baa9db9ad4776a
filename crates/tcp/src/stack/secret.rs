//! Numbers that outsiders must not guess: initial sequence numbers (RFC 6528), clocks (RFC 7323 section 5.4), ports
//! (RFC 6056), SYN cookies (RFC 4987). All come from one seed, so that a run with the same seed is the same run.

use std::hash::{BuildHasher, Hash, Hasher};
use std::net::IpAddr;

use nicforge_units::Time;
use siphasher::sip::SipHasher13;

use super::FourTuple;
use crate::conn::rtt::micros;
use crate::seq::Seq;

/// Ephemeral ports as Linux hands them out.
pub const EPHEMERAL: std::ops::RangeInclusive<u16> = 32768..=60999;

/// The secret of one stack.
#[derive(Clone, Copy, Debug)]
pub struct Secret {
    keys: [u64; 2],
    /// Ports handed out so far.
    port_counter: u16,
}

#[derive(Hash)]
enum Purpose {
    Isn,
    Clock,
    Port,
    Cookie,
}

impl Secret {
    /// From 16 bytes of seed.
    pub fn new(seed: [u8; 16]) -> Secret {
        let (low, high) = seed.split_at(8);
        let word = |bytes: &[u8]| bytes.iter().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
        Secret { keys: [word(low), word(high)], port_counter: 0 }
    }

    fn hash(&self, purpose: Purpose, of: impl Hash) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.keys[0], self.keys[1]);
        purpose.hash(&mut hasher);
        of.hash(&mut hasher);
        hasher.finish()
    }

    /// The initial sequence number: a clock of 4 microseconds plus a keyed hash of the connection.
    pub fn initial(&self, tuple: &FourTuple, now: Time) -> Seq {
        Seq((self.hash(Purpose::Isn, tuple) as u32).wrapping_add((micros(now) / 4) as u32))
    }

    /// What is added to the clock of the timestamps option between two hosts.
    pub fn clock_offset(&self, local: IpAddr, remote: IpAddr) -> u32 {
        self.hash(Purpose::Clock, (local, remote)) as u32
    }

    /// Ports to try for a connection, in order: a hash of the destination plus a counter (RFC 6056 algorithm 3).
    pub fn ports(&mut self, local: IpAddr, remote: IpAddr, remote_port: u16) -> impl Iterator<Item = u16> + use<> {
        let count = u32::from(EPHEMERAL.end() - EPHEMERAL.start()) + 1;
        let offset = self.hash(Purpose::Port, (local, remote, remote_port)) as u32;
        let start = offset.wrapping_add(u32::from(self.port_counter));
        self.port_counter = self.port_counter.wrapping_add(1);
        (0..count).map(move |step| EPHEMERAL.start() + (start.wrapping_add(step) % count) as u16)
    }

    /// The authenticator of a SYN cookie, 24 bits.
    pub fn cookie(&self, tuple: &FourTuple, irs: Seq, period: u32, mss_index: u32) -> u32 {
        self.hash(Purpose::Cookie, (tuple, irs.0, period, mss_index)) as u32 & 0xff_ffff
    }
}

/// Hashes tables with the secret, so that peers cannot aim at one bucket.
impl BuildHasher for Secret {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.keys[1], self.keys[0])
    }
}
