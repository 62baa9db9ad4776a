//! What follows from the options of several owners.

use nicforge_apps::options::{HotAreaOptions, RouteOptions, ValueOptions};
use nicforge_units::{CACHE_LINE_BYTES, Time};

use super::Settings;
use crate::run::options::*;

/// Milliseconds without what sums of binary fractions add to them.
pub fn to_the_ns(milliseconds: f64) -> f64 {
    (milliseconds * 1e6).round() / 1e6
}

impl Settings {
    /// When the window ends, in ms since traffic began.
    pub fn ends_ms(&self) -> f64 {
        to_the_ns(self.read::<Warmup>().warmup_ms + self.read::<WindowOptions>().window_ms)
    }

    /// When the target's share and accesses begin.
    pub fn target_begins(&self) -> Time {
        Time::from_seconds(self.read::<TargetTime>().target_begins_ms / 1e3)
    }

    /// Whether a capture is played.
    pub fn replays(&self) -> bool {
        self.read::<Arrivals>().arrival == Arrival::Replay
    }

    /// Whether one core per NIC is a target, with load of its own.
    pub fn has_target(&self) -> bool {
        self.read::<Shares>().target_share > 0.0 && self.makes_up_frames() || self.app_shape().more_accesses
    }

    /// Whether each queue of a NIC that has `queues` gets a share of its own.
    pub fn has_queue_shares(&self, queues: usize) -> bool {
        self.read::<Shares>().busiest_to_idlest > 0.0 && queues > 1 && self.makes_up_frames()
    }

    /// Whether frames are of made-up flows, and neither of a capture nor requests of clients.
    pub fn makes_up_frames(&self) -> bool {
        !self.replays() && self.app_shape().requests.is_none()
    }

    /// Size of frames that go to the target, where they have one of their own.
    pub fn target_frame_bytes(&self) -> Option<u32> {
        let has_share = self.read::<Shares>().target_share > 0.0 && self.makes_up_frames();
        self.read::<TargetBytes>().target_packet_bytes.filter(|_| has_share)
    }

    /// Size of a frame in bytes, the mean of a store's requests and where a target's differ; where
    /// `packet_sizes` says other sizes, all but the target's count as large ones.
    pub fn frame_bytes(&self) -> u32 {
        if let Some(protocol) = self.app_shape().requests {
            let value = self.read::<Requests>().kvs_put_share * f64::from(self.read::<ValueOptions>().kvs_value_bytes);
            return protocol.headers_len() as u32 + self.read::<Pairs>().kvs_key_bytes + value.round() as u32;
        }
        self.mean_over_frames(u64::from) as u32
    }

    /// Bytes of the whole lines that a frame takes in a buffer, by the same mean.
    pub fn frame_lines_bytes(&self) -> u64 {
        let lines = |bytes: u32| u64::from(bytes).next_multiple_of(CACHE_LINE_BYTES);
        if self.app_shape().requests.is_some() { lines(self.frame_bytes()) } else { self.mean_over_frames(lines) }
    }

    /// The mean of `of` a frame's size, rounded.
    fn mean_over_frames(&self, of: impl Fn(u32) -> u64) -> u64 {
        let usual = of(self.read::<PacketBytes>().packet_bytes);
        let Some(target) = self.target_frame_bytes() else {
            return usual;
        };
        let more = self.read::<Shares>().target_share * (of(target) as f64 - usual as f64);
        (usual as f64 + more).round() as u64
    }

    /// Size of a PUT, the longest request to a store.
    pub fn put_bytes(&self) -> u32 {
        let protocol = self.app_shape().requests.unwrap_or_default();
        let pair = self.read::<Pairs>().kvs_key_bytes + self.read::<ValueOptions>().kvs_value_bytes;
        protocol.put_headers_len() as u32 + pair
    }

    /// Size of a reply that has a value.
    pub fn get_reply_bytes(&self) -> u32 {
        let protocol = self.app_shape().requests.unwrap_or_default();
        protocol.headers_len() as u32 + self.read::<ValueOptions>().kvs_value_bytes
    }

    /// Memory of each of `nics` NICs for values of hot items.
    pub(crate) fn hot_area_bytes(&self, nics: usize) -> u64 {
        if self.app_shape().values_in_nicmem {
            self.read::<HotAreaOptions>().kvs_hot_kib * 1024 / nics as u64
        } else {
            0
        }
    }

    /// Memory of the first NIC that a co-runner copies to or from.
    pub(crate) fn copied_bytes(&self) -> u64 {
        match self.read::<CoRunners>().copy {
            Copying::HostToNicmem | Copying::NicmemToHost => self.read::<Copies>().copy_kib * 1024,
            Copying::None | Copying::HostToHost => 0,
        }
    }

    /// Whether routes say where packets leave. Generated ones do not: each packet leaves where it came in,
    /// so that all ports stay as loaded as they are.
    pub(crate) fn routes_by_port(&self) -> bool {
        self.app_shape().routes && self.read::<RouteOptions>().routes_file.is_some()
    }
}
