//! Checks that need more than one key, or the machine.

use nicforge_apps::kvs::hot_place_bytes;
use nicforge_interfaces::rx_bisect::Topology;
use nicforge_interfaces::{kernel, registry};
use nicforge_wire::traffic::{FRAME_BYTES_MAX, REQUEST_HEADERS_LEN};

use crate::machine::Machine;
use crate::run::{bisect, topology};
use nicforge_options::nearest;

use super::Settings;

/// Key and value of the longest frame that a source makes.
const MOST_PAIR_BYTES: u32 = FRAME_BYTES_MAX - REQUEST_HEADERS_LEN as u32;
/// Cores of a whole system, at most. One connection, as an initiator has, is one process's.
const SYSTEM_CORES_MOST: usize = 16;
/// Entries of a time line, at most: more than that no plot shows.
const TIMELINE_MOST: f64 = 10_000.0;

/// Settings that do not go together.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The keys concerned; the one that the scenario sets last is where the error points.
    pub keys: &'static [&'static str],
    /// What is wrong.
    pub wrong: String,
    /// What would be right.
    pub right: String,
}

impl Settings {
    /// Whether the settings go together, and fit the machine.
    pub fn check(&self, machine: &Machine) -> Result<(), Finding> {
        self.check_interface()?;
        if self.is_of_whole_systems() {
            return self.check_systems(machine);
        }
        self.check_cores(machine)?;
        self.check_rings()?;
        self.check_ways(machine)?;
        self.check_app(machine)?;
        self.check_nicmem()?;
        self.check_times()?;
        self.check_traffic()
    }

    /// Whether whole systems run, and not one server at which frames are sent.
    pub fn is_of_whole_systems(&self) -> bool {
        self.workload != "frames"
    }

    fn check_interface(&self) -> Result<(), Finding> {
        let known = match self.is_of_whole_systems() {
            true => kernel::registry::names(),
            false => registry::names(),
        };
        let fits = known.contains(&self.interface.as_str());
        ensure(fits, &["interface", "workload"], || {
            (
                format!("workload \"{}\" has no interface \"{}\"", self.workload, self.interface),
                format!("use one of {}", known.join(", ")),
            )
        })
    }

    fn check_systems(&self, machine: &Machine) -> Result<(), Finding> {
        let placements = machine.integrated.as_ref().map(|machine| {
            let names = machine.placements.iter().map(|(name, _)| name.as_str());
            names.collect::<Vec<_>>()
        });
        let placements = placements.unwrap_or_default();
        let known = placements.contains(&self.placement.as_str());
        ensure(known, &["placement", "workload"], || {
            (
                format!("{} has no place {}", machine.name, self.placement),
                match placements.is_empty() {
                    true => "use a machine with [placements], such as m5-10gbe".to_string(),
                    false => match nearest(&self.placement, &placements) {
                        Some(near) => format!("did you mean \"{near}\"?"),
                        None => format!("it has {}", placements.join(", ")),
                    },
                },
            )
        })?;
        let most = match self.workload.as_str() {
            "iscsi_initiator" => 1,
            _ => SYSTEM_CORES_MOST,
        };
        ensure(self.cores <= most, &["cores", "workload"], || {
            (
                format!("{} cores are too many for workload \"{}\"", self.cores, self.workload),
                format!("set cores to {most} or less"),
            )
        })?;
        let threads = self.receive_thread || !self.spread_receive;
        ensure(threads, &["spread_receive", "receive_thread"], || {
            (
                "packets are spread over receive threads, and there are none".to_string(),
                "set receive_thread to true, too".to_string(),
            )
        })
    }

    fn check_times(&self) -> Result<(), Finding> {
        let ends = self.ends_ms();
        // A replay has no window: all of the capture is measured, and it ends when all is done.
        let polls = self.arrival == "replay" || self.polling_starts_ms < ends;
        let keys = &["polling_starts_ms", "warmup_ms", "window_ms"];
        ensure(polls, keys, || {
            (
                format!("cores begin to poll at {} ms, when the window has ended ({ends} ms)", self.polling_starts_ms),
                "set polling_starts_ms below warmup_ms + window_ms, such as 0".to_string(),
            )
        })?;
        let entries = self.timeline_ms.map_or(0.0, |ms| ends / ms);
        let keys = &["timeline_ms", "warmup_ms", "window_ms"];
        ensure(entries <= TIMELINE_MOST, keys, || {
            (
                format!("a time line of {entries:.0} entries over {ends} ms is too long"),
                // Up, so that it is not too long again.
                format!("set timeline_ms to {} or more", (ends / TIMELINE_MOST * 1e6).ceil() / 1e6),
            )
        })
    }

    /// Each association set has an allocation ring.
    fn check_rings(&self) -> Result<(), Finding> {
        if super::key("associations").is_some_and(|key| key.is_used(self)) {
            self.check_topology()?;
        }
        if self.associations.is_some() || self.ax_links.is_some() {
            return Ok(());
        }
        let queues = self.cores / self.nics;
        let rings = bisect(self, 0).rings(queues);
        // Rings lie at even distances and sets are neighbours, so some numbers do not go together
        // though there are rings enough.
        let each_has_rings = |sets: usize| {
            let topology = Topology::in_sets(queues, (rings, 1), 1, sets);
            let found = topology.association_sets();
            found.len() == sets && found.iter().all(|set| !set.ax.is_empty())
        };
        let keys = &["association_sets", "ax_rings", "cores", "nics"];
        ensure(each_has_rings(self.association_sets), keys, || {
            let fewer = (1..self.association_sets).rev().find(|&sets| each_has_rings(sets));
            (
                format!(
                    "{} association sets for {queues} queues and {rings} allocation rings of each NIC: \
                     one would have none",
                    self.association_sets
                ),
                format!("set association_sets to {}", fewer.unwrap_or(1)),
            )
        })
    }

    /// What is said ring by ring belongs together.
    fn check_topology(&self) -> Result<(), Finding> {
        let both = self.associations.is_some() && self.association_sets > 1;
        ensure(!both, &["associations", "association_sets"], || {
            (
                "associations and association_sets both say which rings belong together".to_string(),
                "set one of them".to_string(),
            )
        })?;
        if self.associations.is_none() && self.ax_links.is_none() {
            return Ok(());
        }
        let (topology, queues) = (topology(self), self.cores / self.nics);
        let keys = &["associations", "ax_links", "ax_rings", "association_sets", "cores", "nics"];
        topology.check(queues).map(|_| ()).map_err(|error| Finding {
            keys,
            wrong: error.to_string(),
            right: format!(
                "each NIC has {queues} Bx rings, one for each of its cores, and {} Ax rings, counted from 0",
                topology.ax.len()
            ),
        })
    }

    fn check_ways(&self, machine: &Machine) -> Result<(), Finding> {
        let ways = machine.hardware.llc.ways;
        ensure(self.io_ways <= ways, &["io_ways"], || {
            (
                format!("{} I/O ways wanted, the LLC of {} has {ways}", self.io_ways, machine.name),
                format!("set io_ways to 0 to {ways}"),
            )
        })
    }

    /// Whether what is taken from memory of NICs beside packet buffers fits there.
    pub fn check_nicmem(&self) -> Result<(), Finding> {
        let taken = self.hot_area_bytes(self.nics.max(1)) + self.copied_bytes();
        let fits = taken <= self.nicmem_kib * 1024;
        let keys = &["kvs_hot_kib", "kvs_hot_values", "copy", "copy_kib", "nicmem_kib"];
        ensure(fits, keys, || {
            (
                format!("{} KiB of each NIC's memory wanted, it gives {}", taken.div_ceil(1024), self.nicmem_kib),
                format!("set nicmem_kib to at least {}", taken.div_ceil(1024)),
            )
        })
    }

    fn check_app(&self, machine: &Machine) -> Result<(), Finding> {
        let known: Vec<&str> = machine.work_cycles.keys().map(String::as_str).collect();
        ensure(known.contains(&self.app.as_str()), &["app"], || {
            (
                format!("{} does not say how much work `{}` does", machine.name, self.app),
                format!("add [apps.{}] work_cycles to {}", self.app, machine.file.display()),
            )
        })?;
        let crosses = self.routes_by_port() && self.nics > 1;
        let keys = &["routes_file", "interface", "nics", "nicmem_queues"];
        ensure(!crosses || !self.has_packets_in_nicmem(), keys, || {
            (
                "routes lead from one NIC to another, which cannot read packets out of the first one's own memory"
                    .to_string(),
                "use one NIC, an interface without packets in nicmem, such as split, or no routes_file".to_string(),
            )
        })
    }

    /// Whether routes say where packets leave. Generated ones do not: each packet leaves where it came in,
    /// so that all ports stay as loaded as they are.
    pub(crate) fn routes_by_port(&self) -> bool {
        matches!(self.app.as_str(), "l3fwd" | "synthetic") && self.routes_file.is_some()
    }

    /// The part of [`Settings::check`] that concerns traffic alone, for which no machine is needed.
    pub fn check_traffic(&self) -> Result<(), Finding> {
        ensure(self.arrival != "replay" || self.pcap.is_some(), &["arrival"], || {
            (
                "arrival \"replay\" has no capture to play".to_string(),
                "set pcap to a capture file, or use --pcap FILE".to_string(),
            )
        })?;
        let has_sizes = self.packet_sizes != "empirical" || self.size_file.is_some();
        ensure(has_sizes, &["packet_sizes"], || {
            (
                "packet_sizes \"empirical\" has no distribution".to_string(),
                "set size_file to a file of `bytes weight` lines".to_string(),
            )
        })?;
        self.check_shares()?;
        self.check_requests()?;
        let has_rate = self.arrival != "ping_pong" && (self.arrival != "replay" || self.replay_timing != "recorded");
        ensure(self.measure != "no_drop_rate" || has_rate, &["measure", "arrival", "replay_timing"], || {
            (
                "a no-drop-rate search needs a rate that it can vary".to_string(),
                "use arrival \"constant\", \"poisson\", \"bursts\" or a scaled replay".to_string(),
            )
        })
    }

    /// Shares of queues: said in one way, and with flows to choose from.
    fn check_shares(&self) -> Result<(), Finding> {
        let ratio = self.busiest_to_idlest;
        if ratio == 0.0 || !self.makes_up_frames() {
            return Ok(());
        }
        ensure(ratio >= 1.0, &["busiest_to_idlest"], || {
            (
                format!("the busiest queue cannot get {ratio} times the packets of the idlest"),
                "set busiest_to_idlest to 1 or more, or to 0 for what RSS makes of it".to_string(),
            )
        })?;
        let keys = &["busiest_to_idlest", "target_share"];
        ensure(self.target_share == 0.0, keys, || {
            (
                "target_share and busiest_to_idlest both say what the first queue gets".to_string(),
                "set one of them to 0".to_string(),
            )
        })?;
        let keys = &["busiest_to_idlest", "flow_choice"];
        ensure(self.flow_choice != "single", keys, || {
            (
                "a single flow is of one queue, and busiest_to_idlest needs flows of each".to_string(),
                "use another flow_choice, or set busiest_to_idlest to 0".to_string(),
            )
        })
    }

    fn check_requests(&self) -> Result<(), Finding> {
        if self.app != "kvs" {
            return Ok(());
        }
        let preloaded = self.kvs_preload_keys.unwrap_or(0);
        ensure(preloaded <= self.kvs_keys, &["kvs_preload_keys", "kvs_keys"], || {
            (
                format!("{preloaded} keys to preload, but there are {}", self.kvs_keys),
                format!("set kvs_preload_keys to at most {}", self.kvs_keys),
            )
        })?;
        let hot = self.kvs_hot_kib * 1024 / self.nics.max(1) as u64;
        let value = hot_place_bytes(self.kvs_value_bytes);
        let keys = &["kvs_hot_kib", "kvs_key_choice", "kvs_value_bytes"];
        let has_area = self.kvs_key_choice != "hot_area" || hot >= value;
        ensure(has_area, keys, || {
            let least = (value * self.nics as u64).div_ceil(1024);
            (
                format!("a hot area of {hot} bytes has no value of {value} in it"),
                format!("set kvs_hot_kib to at least {least}"),
            )
        })?;
        let changes = self.kvs_put_share + self.kvs_delete_share;
        let keys = &["kvs_delete_share", "kvs_put_share"];
        ensure(changes <= 1.0, keys, || {
            (
                format!("PUTs and DELETEs are {changes} of all requests"),
                "kvs_put_share + kvs_delete_share is at most 1".to_string(),
            )
        })?;
        let sizes = &["kvs_value_bytes", "kvs_key_bytes"];
        let pair = self.kvs_key_bytes + self.kvs_value_bytes;
        ensure(pair <= MOST_PAIR_BYTES, sizes, || {
            (
                format!("a PUT of {pair} bytes of key and value does not fit a frame"),
                format!("kvs_key_bytes + kvs_value_bytes is at most {MOST_PAIR_BYTES}"),
            )
        })
    }
}

pub(super) fn ensure(
    holds: bool,
    keys: &'static [&'static str],
    say: impl FnOnce() -> (String, String),
) -> Result<(), Finding> {
    if holds {
        return Ok(());
    }
    let (wrong, right) = say();
    Err(Finding { keys, wrong, right })
}
