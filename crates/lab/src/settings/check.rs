//! Checks that need more than one key, or the machine.

use nicforge_apps::kvs::hot_place_bytes;
use nicforge_apps::options::{HotAreaOptions, KvsOptions};
use nicforge_interfaces::describe::{Queues, Software};
use nicforge_nic::{NicmemOptions, PoolSize};
use nicforge_options::{Finding, ensure, nearest};
use nicforge_wire::traffic::FRAME_BYTES_MAX;

use super::Settings;
use crate::machine::Machine;
use crate::run::options::*;
use crate::storm::options::{Help, StormOptions};
use crate::systems::options::SystemOptions;
use crate::tas::options::{Carrier, RpcOptions, TasOptions};
use crate::tasnic::options::TasnicOptions;

/// Cores of a whole system, at most. One connection, as an initiator has, is one process's.
const SYSTEM_CORES_MOST: usize = 16;
/// Queues of a machine's NIC with FlexStorm, at most.
const STORM_QUEUES: usize = 5;
/// Entries of a time line, at most: more than that no plot shows.
const TIMELINE_MOST: f64 = 10_000.0;

impl Settings {
    /// Whether the settings go together, and fit the machine.
    pub fn check(&self, machine: &Machine) -> Result<(), Finding> {
        self.check_workload()?;
        if self.is_of_whole_systems() {
            return self.check_systems(machine);
        }
        if self.is_of_rpcs() {
            return self.check_rpcs(machine);
        }
        if self.is_of_storm() {
            return self.check_storm();
        }
        self.check_cores(machine)?;
        self.check_interface()?;
        self.check_ways(machine)?;
        self.check_app(machine)?;
        self.check_nicmem()?;
        self.check_pool()?;
        self.check_times()?;
        self.check_traffic()
    }

    fn check_workload(&self) -> Result<(), Finding> {
        let Run { workload, interface } = self.read();
        let software = if self.is_of_whole_systems() { Software::Kernel } else { Software::PacketLoop };
        let known = self.catalogue().interfaces_of(software);
        ensure(known.contains(&interface.as_str()), &["interface", "workload"], || {
            (
                format!("workload \"{}\" has no interface \"{interface}\"", workload.word()),
                format!("use one of {}", known.join(", ")),
            )
        })
    }

    /// What the interface says of its own options, and what it builds on of its own.
    pub(crate) fn check_interface(&self) -> Result<(), Finding> {
        let Some(interface) = self.description() else {
            return Ok(());
        };
        let queues = Queues { nics: self.nics(), each: self.queues(), inner: None };
        interface.check(self, &queues)?;
        let Some(wanted) = interface.inner(self) else {
            return Ok(());
        };
        let why_not = |name: &str| match self.catalogue().interface(name) {
            Some(inner) => inner.played.err(),
            None => Some("there is none of this name"),
        };
        let why = why_not(&wanted);
        ensure(why.is_none(), &["emulates"], || {
            let mut fit = self.catalogue().interfaces_of(Software::PacketLoop);
            fit.retain(|name| why_not(name).is_none());
            (
                format!("`emulates` cannot be \"{wanted}\": {}", why.unwrap_or_default()),
                format!("{} can be emulated", fit.join(", ")),
            )
        })?;
        self.inner_description().map_or(Ok(()), |inner| inner.check(self, &queues))
    }

    fn check_rpcs(&self, machine: &Machine) -> Result<(), Finding> {
        let (rpc, tas): (RpcOptions, TasOptions) = (self.read(), self.read());
        let played = self.shape_of(1).is_some_and(|shape| shape.played);
        ensure(!played, &["interface"], || {
            let what = format!("workload \"rpc_echo\" has no core that plays a NIC, as \"{}\" needs", self.interface());
            (what, "use another interface, such as priv_ring".to_string())
        })?;
        // A kernel's cores are the application's, and a NIC's slow path is idle but for connections that open.
        let fast = if rpc.uses(Carrier::Tas) && !rpc.rpc_free_clients || rpc.rpc_server == Carrier::Tas {
            tas.tas_fast_cores
        } else {
            0
        };
        let (apps, there) = (rpc.rpc_app_cores, machine.hardware.cores);
        ensure(fast + apps <= there, &["rpc_app_cores", "tas_fast_cores"], || {
            let name = &machine.name;
            let what = format!("cores wanted: {fast} for TCP and {apps} for the application; {name} has {there}");
            (what, format!("let rpc_app_cores and tas_fast_cores be {there} or less together"))
        })?;
        if let Some(interface) = self.description() {
            interface.check(self, &Queues { nics: 1, each: fast, inner: None })?;
        }
        self.check_records(&rpc)?;
        let closing = [rpc.rpc_server, rpc.clients()].iter().all(|carrier| *carrier == Carrier::Tasnic);
        ensure(rpc.rpc_requests == 0 || closing, &["rpc_requests"], || {
            let what = "connections only close where both hosts' TCP runs on the NIC".to_string();
            (what, "set rpc_server = \"tasnic\" without rpc_free_clients, or rpc_requests = 0".to_string())
        })?;
        self.check_tasnic(machine, &rpc)
    }

    fn check_tasnic(&self, machine: &Machine, rpc: &RpcOptions) -> Result<(), Finding> {
        if !rpc.uses(Carrier::Tasnic) {
            return Ok(());
        }
        let npu = machine.npu.as_ref();
        let there = npu.map_or(0, |npu| npu.core.islands - 1);
        ensure(npu.is_some(), &["rpc_server"], || {
            let what = format!("{}'s NIC has no processor for TCP", machine.name);
            (what, "use a machine with [npu.core], such as xeon-6138-nfp4000".to_string())
        })?;
        let tasnic: TasnicOptions = self.read();
        let groups = tasnic.tasnic_flow_groups;
        ensure(groups <= there, &["tasnic_flow_groups"], || {
            let what = format!("{groups} flow-groups, and {} has islands for {there}", machine.name);
            (what, format!("set tasnic_flow_groups to {there} or less"))
        })?;
        let beside = usize::from(!self.stages().is_empty());
        let (fpcs, have) = (tasnic.tasnic_pre_fpcs + tasnic.tasnic_post_fpcs + 1, npu.map_or(0, |npu| npu.core.fpcs));
        ensure(fpcs + beside <= have || beside == 0, &["stages"], || {
            let what = format!("the pipeline takes {fpcs} of an island's {have} FPCs, and leaves none to stages");
            (what, "set fewer tasnic_pre_fpcs or tasnic_post_fpcs".to_string())
        })?;
        ensure(fpcs <= have, &["tasnic_pre_fpcs", "tasnic_post_fpcs"], || {
            let what = format!("a flow-group takes {fpcs} FPCs, and an island has {have}");
            (what, format!("let tasnic_pre_fpcs and tasnic_post_fpcs be {} together", have - 1))
        })
    }

    fn check_storm(&self) -> Result<(), Finding> {
        let help = self.read::<StormOptions>().storm_help;
        let inner = self.description().and_then(|interface| interface.inner(self));
        let runs_programs = |name: &str| name == "flexnic";
        let fits = match help {
            Help::Software => inner.is_none(),
            Help::Nic => runs_programs(inner.as_deref().unwrap_or(&self.interface())),
        };
        ensure(fits, &["interface", "storm_help"], || {
            (
                format!("storm_help \"{}\" does not go with interface \"{}\"", help.word(), self.interface()),
                "with storm_help = \"nic\" set interface = \"flexnic\", or \"emulated\" around it; else such as priv_ring".to_string(),
            )
        })?;
        let queues = Queues { nics: 1, each: STORM_QUEUES, inner: None };
        self.description().map_or(Ok(()), |interface| interface.check(self, &queues))
    }

    fn check_systems(&self, machine: &Machine) -> Result<(), Finding> {
        let placements = machine.integrated.as_ref().map(|machine| {
            let names = machine.placements.iter().map(|(name, _)| name.as_str());
            names.collect::<Vec<_>>()
        });
        let placements = placements.unwrap_or_default();
        let SystemOptions { placement, .. } = self.read();
        let known = placements.contains(&placement.as_str());
        ensure(known, &["placement", "workload"], || {
            (
                format!("{} has no place {placement}", machine.name),
                if placements.is_empty() {
                    "use a machine with [placements], such as m5-10gbe".to_string()
                } else {
                    match nearest(&placement, &placements) {
                        Some(near) => format!("did you mean \"{near}\"?"),
                        None => format!("it has {}", placements.join(", ")),
                    }
                },
            )
        })?;
        let (workload, cores) = (self.read::<Run>().workload, self.cores());
        let most = if workload == Workload::IscsiInitiator { 1 } else { SYSTEM_CORES_MOST };
        ensure(cores <= most, &["cores", "workload"], || {
            (
                format!("{cores} cores are too many for workload \"{}\"", workload.word()),
                format!("set cores to {most} or less"),
            )
        })?;
        // Whoever has no such driver has its defaults, which go together.
        self.check_interface()
    }

    fn check_times(&self) -> Result<(), Finding> {
        let ends = self.ends_ms();
        let Measurement { polling_starts_ms, .. } = self.read();
        // A replay has no window: all of the capture is measured, and it ends when all is done.
        let polls = self.replays() || polling_starts_ms < ends;
        let keys = &["polling_starts_ms", "warmup_ms", "window_ms"];
        ensure(polls, keys, || {
            (
                format!("cores begin to poll at {polling_starts_ms} ms, when the window has ended ({ends} ms)"),
                "set polling_starts_ms below warmup_ms + window_ms, such as 0".to_string(),
            )
        })?;
        let entries = self.read::<TimelineOptions>().timeline_ms.map_or(0.0, |ms| ends / ms);
        let keys = &["timeline_ms", "warmup_ms", "window_ms"];
        ensure(entries <= TIMELINE_MOST, keys, || {
            (
                format!("a time line of {entries:.0} entries over {ends} ms is too long"),
                // Up, so that it is not too long again.
                format!("set timeline_ms to {} or more", (ends / TIMELINE_MOST * 1e6).ceil() / 1e6),
            )
        })
    }

    fn check_ways(&self, machine: &Machine) -> Result<(), Finding> {
        let (Llc { io_ways }, ways) = (self.read(), machine.hardware.llc.ways);
        ensure(io_ways <= ways, &["io_ways"], || {
            (
                format!("{io_ways} I/O ways wanted, the LLC of {} has {ways}", machine.name),
                format!("set io_ways to 0 to {ways}"),
            )
        })
    }

    /// Whether what is taken from memory of NICs beside packet buffers fits there.
    pub fn check_nicmem(&self) -> Result<(), Finding> {
        let NicmemOptions { nicmem_kib } = self.read();
        let taken = self.hot_area_bytes(self.nics().max(1)) + self.copied_bytes();
        let fits = taken <= nicmem_kib * 1024;
        let keys = &["kvs_hot_kib", "kvs_hot_values", "copy", "copy_kib", "nicmem_kib"];
        ensure(fits, keys, || {
            (
                format!("{} KiB of each NIC's memory wanted, it gives {nicmem_kib}", taken.div_ceil(1024)),
                format!("set nicmem_kib to at least {}", taken.div_ceil(1024)),
            )
        })
    }

    /// Whether the pool can fill the receive rings, without which no queue comes up.
    fn check_pool(&self) -> Result<(), Finding> {
        let size: PoolSize = self.read();
        let both = size.pool_buffers.is_some() && size.pool_per_entry.is_some();
        ensure(!both, &["pool_per_entry", "pool_buffers"], || {
            let what = "pool_buffers and pool_per_entry both say how many buffers there are".to_string();
            (what, "leave one of them out".to_string())
        })?;
        let empty = self.shape().map_or(0, |shape| self.nics() * shape.empty);
        let buffers = size.buffers(empty).unwrap_or(empty);
        ensure(buffers >= empty, &["pool_buffers"], || {
            let what = format!("{buffers} packet buffers do not fill receive rings that hold {empty}");
            (what, format!("set pool_buffers to {empty} or more"))
        })
    }

    fn check_app(&self, machine: &Machine) -> Result<(), Finding> {
        let app = self.app();
        ensure(self.work(machine).is_some(), &["app"], || {
            (
                format!("{} does not say how much work `{app}` does", machine.name),
                format!("add [apps.{app}] work_cycles to {}", machine.file.display()),
            )
        })?;
        let crosses = self.routes_by_port() && self.nics() > 1;
        let keys = &["routes_file", "interface", "nics", "nicmem_queues"];
        ensure(!crosses || !self.has_packets_in_nicmem(), keys, || {
            (
                "routes lead from one NIC to another, which cannot read packets out of the first one's own memory"
                    .to_string(),
                "use one NIC, an interface without packets in nicmem, such as split, or no routes_file".to_string(),
            )
        })
    }

    /// The part of [`Settings::check`] that concerns traffic alone, for which no machine is needed.
    pub fn check_traffic(&self) -> Result<(), Finding> {
        let Capture { pcap, replay_timing, .. } = self.read();
        ensure(!self.replays() || pcap.is_some(), &["arrival"], || {
            (
                "arrival \"replay\" has no capture to play".to_string(),
                "set pcap to a capture file, or use --pcap FILE".to_string(),
            )
        })?;
        let empirical = self.read::<Sizes>().packet_sizes == PacketSizes::Empirical;
        let has_sizes = !empirical || self.read::<Empirical>().size_file.is_some();
        ensure(has_sizes, &["packet_sizes"], || {
            (
                "packet_sizes \"empirical\" has no distribution".to_string(),
                "set size_file to a file of `bytes weight` lines".to_string(),
            )
        })?;
        self.check_shares()?;
        self.check_requests()?;
        let has_rate = match self.read::<Arrivals>().arrival {
            Arrival::PingPong => false,
            Arrival::Replay => replay_timing != Timing::Recorded,
            _ => true,
        };
        ensure(
            self.read::<Measurement>().measure != Measure::NoDropRate || has_rate,
            &["measure", "arrival", "replay_timing"],
            || {
                (
                    "a no-drop-rate search needs a rate that it can vary".to_string(),
                    "use arrival \"constant\", \"poisson\", \"bursts\" or a scaled replay".to_string(),
                )
            },
        )
    }

    /// Shares of queues: said in one way, and with flows to choose from.
    fn check_shares(&self) -> Result<(), Finding> {
        let Shares { target_share, busiest_to_idlest: ratio } = self.read();
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
        ensure(target_share == 0.0, keys, || {
            (
                "target_share and busiest_to_idlest both say what the first queue gets".to_string(),
                "set one of them to 0".to_string(),
            )
        })?;
        let keys = &["busiest_to_idlest", "flow_choice"];
        ensure(self.read::<Choices>().flow_choice != FlowChoices::Single, keys, || {
            (
                "a single flow is of one queue, and busiest_to_idlest needs flows of each".to_string(),
                "use another flow_choice, or set busiest_to_idlest to 0".to_string(),
            )
        })
    }

    fn check_requests(&self) -> Result<(), Finding> {
        let Some(protocol) = self.app_shape().requests else {
            return Ok(());
        };
        let (store, requests) = (self.read::<KvsOptions>(), self.read::<Requests>());
        let Pairs { kvs_keys, kvs_key_bytes, kvs_preload_keys, .. } = self.read();
        let preloaded = kvs_preload_keys.unwrap_or(0);
        ensure(preloaded <= kvs_keys, &["kvs_preload_keys", "kvs_keys"], || {
            (
                format!("{preloaded} keys to preload, but there are {kvs_keys}"),
                format!("set kvs_preload_keys to at most {kvs_keys}"),
            )
        })?;
        let hot = self.read::<HotAreaOptions>().kvs_hot_kib * 1024 / self.nics().max(1) as u64;
        let value = hot_place_bytes(store.value.kvs_value_bytes);
        let keys = &["kvs_hot_kib", "kvs_key_choice", "kvs_value_bytes"];
        let has_area = requests.kvs_key_choice != KeyChoice::HotArea || hot >= value;
        ensure(has_area, keys, || {
            let least = (value * self.nics() as u64).div_ceil(1024);
            (
                format!("a hot area of {hot} bytes has no value of {value} in it"),
                format!("set kvs_hot_kib to at least {least}"),
            )
        })?;
        let changes = requests.kvs_put_share + requests.kvs_delete_share;
        let keys = &["kvs_delete_share", "kvs_put_share"];
        ensure(changes <= 1.0, keys, || {
            (
                format!("PUTs and DELETEs are {changes} of all requests"),
                "kvs_put_share + kvs_delete_share is at most 1".to_string(),
            )
        })?;
        let sizes = &["kvs_value_bytes", "kvs_key_bytes"];
        let pair = kvs_key_bytes + store.value.kvs_value_bytes;
        let most = FRAME_BYTES_MAX - protocol.put_headers_len() as u32;
        ensure(pair <= most, sizes, || {
            (
                format!("a PUT of {pair} bytes of key and value does not fit a frame"),
                format!("kvs_key_bytes + kvs_value_bytes is at most {most}"),
            )
        })
    }
}
