//! Everything that one point of a scenario may set: the vocabulary of scenario files,
//! `--set`, `[[variant]]` and `[sweep]`.
//!
//! Each key is declared once, in `table.rs`.

mod check;
mod conditions;
mod cores;
mod docs;
mod field;
mod key;
mod rings;
mod table;

use nicforge_nic::room_for;
use nicforge_units::{CACHE_LINE_BYTES, Time};
use nicforge_wire::traffic::REQUEST_HEADERS_LEN;

use crate::machine::Machine;

pub use check::Finding;
pub use docs::markdown;
pub use key::{Allowed, Condition, Key, Names, Refusal, Value};
pub use rings::RingGroups;
pub use table::{KEYS, Settings};

/// The declaration of the key called `name`.
pub fn key(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// Milliseconds without what sums of binary fractions add to them.
pub fn to_the_ns(milliseconds: f64) -> f64 {
    (milliseconds * 1e6).round() / 1e6
}

/// All key names, in listing order.
pub fn key_names() -> Vec<&'static str> {
    KEYS.iter().map(|key| key.name).collect()
}

impl Settings {
    /// When the window ends, in ms since traffic began.
    pub fn ends_ms(&self) -> f64 {
        to_the_ns(self.warmup_ms + self.window_ms)
    }

    /// When the target's share and accesses begin.
    pub fn target_begins(&self) -> Time {
        Time::from_seconds(self.target_begins_ms / 1e3)
    }

    /// Whether one core per NIC is a target, with load of its own.
    pub fn has_target(&self) -> bool {
        self.target_share > 0.0 && self.makes_up_frames() || self.target_accesses > 0
    }

    /// Whether each queue of a NIC that has `queues` gets a share of its own.
    pub fn has_queue_shares(&self, queues: usize) -> bool {
        self.busiest_to_idlest > 0.0 && queues > 1 && self.makes_up_frames()
    }

    /// Whether frames are of made-up flows, and neither of a capture nor requests of clients.
    pub fn makes_up_frames(&self) -> bool {
        self.arrival != "replay" && self.app != "kvs"
    }

    /// The defaults on `machine`: all of its cores and NICs, its I/O ways.
    pub fn for_machine(machine: &Machine) -> Settings {
        Settings {
            cores: machine.hardware.cores,
            nics: machine.hardware.nics,
            io_ways: machine.hardware.io_ways,
            nicmem_kib: machine.hardware.nic.nicmem.0 / 1024,
            ..Settings::default()
        }
    }

    /// Size of frames that go to the target, where they have one of their own.
    pub fn target_frame_bytes(&self) -> Option<u32> {
        let has_share = self.target_share > 0.0 && self.makes_up_frames();
        self.target_packet_bytes.filter(|_| has_share)
    }

    /// Size of a frame in bytes, the mean of a store's requests and where a target's differ; where
    /// `packet_sizes` says other sizes, all but the target's count as large ones.
    pub fn frame_bytes(&self) -> u32 {
        if self.app == "kvs" {
            let value = self.kvs_put_share * f64::from(self.kvs_value_bytes);
            return REQUEST_HEADERS_LEN as u32 + self.kvs_key_bytes + value.round() as u32;
        }
        self.mean_over_frames(u64::from) as u32
    }

    /// Bytes of the whole lines that a frame takes in a buffer, by the same mean.
    pub fn frame_lines_bytes(&self) -> u64 {
        let lines = |bytes: u32| u64::from(bytes).next_multiple_of(CACHE_LINE_BYTES);
        match self.app.as_str() {
            "kvs" => lines(self.frame_bytes()),
            _ => self.mean_over_frames(lines),
        }
    }

    /// The mean of `of` a frame's size, rounded.
    fn mean_over_frames(&self, of: impl Fn(u32) -> u64) -> u64 {
        let usual = of(self.packet_bytes);
        let Some(target) = self.target_frame_bytes() else {
            return usual;
        };
        let more = self.target_share * (of(target) as f64 - usual as f64);
        (usual as f64 + more).round() as u64
    }

    /// Bytes of frame that a packet buffer really holds: whole cache lines.
    pub fn buffer_room(&self) -> usize {
        room_for(self.buffer_bytes as u64) as usize
    }

    /// Size of a PUT, the longest request to a store.
    pub fn put_bytes(&self) -> u32 {
        self.get_reply_bytes() + self.kvs_key_bytes
    }

    /// Size of a reply that has a value.
    pub fn get_reply_bytes(&self) -> u32 {
        REQUEST_HEADERS_LEN as u32 + self.kvs_value_bytes
    }
}

#[cfg(test)]
mod tests;
