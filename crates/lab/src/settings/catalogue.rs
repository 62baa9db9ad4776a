//! All owners of keys: interfaces and applications, which others may add to, and the lab's own.

use std::sync::{Arc, LazyLock};

use nicforge_apps::options::{HotAreaOptions, HotOptions, HotSketchOptions};
use nicforge_interfaces::describe::{Description, Software};
use nicforge_nic::{NicmemOptions, PoolOptions, PoolSize, RssOptions, TransmitOptions};
use nicforge_options::{Owner, Vocabulary};

use crate::packet_loop::Burst;
use crate::registry::Registry;
use crate::run::options::*;
use crate::storm::options::StormOptions;
use crate::systems::options::{Iscsi, LinkOptions, Sockets, Streams, SwitchOptions, SystemOptions, TcpOptions, Web};
use crate::tas::LinuxOptions;
use crate::tas::options::{RpcOptions, TasOptions};
use crate::tas::records::options::{NvmeOptions, RecordOptions, TlsOptions};
use crate::tasnic::options::TasnicOptions;

/// What a run may name, and all owners of keys.
#[derive(Debug)]
pub struct Catalogue {
    registry: Registry,
    vocabulary: Vocabulary,
    interfaces: Vec<Description>,
}

static SHIPPED: LazyLock<Arc<Catalogue>> = LazyLock::new(|| Arc::new(Catalogue::new(Registry::shipped())));

impl Catalogue {
    /// The catalogue of what is shipped.
    pub fn shipped() -> Arc<Catalogue> {
        Arc::clone(&SHIPPED)
    }

    /// The catalogue of what `registry` has, and of the lab.
    pub fn new(registry: Registry) -> Catalogue {
        let entries = registry.interfaces.entries().iter();
        let interfaces: Vec<Description> = entries.map(|entry| entry.description.clone()).collect();
        let applications = registry.apps.entries().iter().map(|entry| entry.owner.clone());
        // Columns of reports have this order: an interface that builds on another is said before the cores.
        let of = |software| interfaces.iter().filter(move |interface| interface.software == software);
        let (built_on, plain): (Vec<_>, Vec<_>) = of(Software::PacketLoop).partition(|interface| interface.builds_on());
        let owner = |interface: &Description| interface.owner.clone();
        let mut owners = vec![lab::<Run>("every run")];
        owners.extend(built_on.into_iter().map(owner));
        owners.extend([lab::<Application>(FRAMES), lab::<Cores>("every run"), lab::<Nics>(FRAMES)]);
        owners.extend(plain.into_iter().map(owner));
        owners.extend([
            lab::<TransmitOptions>(FRAMES),
            lab::<PoolOptions>(FRAMES),
            lab::<PoolSize>(FRAMES),
            lab::<RssOptions>(FRAMES),
            lab::<Llc>(FRAMES),
            lab::<Clock>("every run"),
            lab::<SystemOptions>(SYSTEMS),
        ]);
        owners.extend(of(Software::Kernel).map(owner));
        owners.extend([
            lab::<Streams>("whole systems but workload = iscsi_initiator"),
            lab::<Sockets>(SYSTEMS),
            lab::<Iscsi>("workload = iscsi_initiator"),
            lab::<Web>("workload = web_server"),
            lab::<TcpOptions>(TCP),
            lab::<LinkOptions>(LINKS),
            lab::<SwitchOptions>("link_gbps, workload = flexstorm"),
            lab::<RpcOptions>(RPCS),
            lab::<TasOptions>(RPCS),
            lab::<RecordOptions>(RPCS),
            lab::<TlsOptions>("TLS over RPCs (rpc_layer5 = tls)"),
            lab::<NvmeOptions>("NVMe/TCP over RPCs (rpc_layer5 = nvme)"),
            lab::<LinuxOptions>("a host's TCP in a kernel (rpc_server, rpc_clients = linux)"),
            lab::<TasnicOptions>("TCP of a host on its NIC (rpc_server, rpc_clients = tasnic)"),
            lab::<StormOptions>("workload = flexstorm"),
            lab::<Burst>(FRAMES),
        ]);
        owners.extend(traffic());
        owners.extend([
            lab::<Pairs>("app = kvs"),
            lab::<Requests>("requests of app = kvs"),
            lab::<KeyZipf>("kvs_key_choice = zipf"),
            lab::<HotAreaOptions>("kvs_key_choice = hot_area, or kvs_hot_values = nicmem"),
            lab::<HotArea>("kvs_key_choice = hot_area"),
        ]);
        owners.extend(applications);
        owners.extend([lab::<StageOptions>(FRAMES), lab::<StageProcessor>("NICs with stages")]);
        owners.extend(registry.stages.entries().iter().map(|entry| entry.owner.clone()));
        owners.extend([
            lab::<HotOptions>("kvs_hot_values = nicmem"),
            lab::<HotSketchOptions>("kvs_hot_items = sketch"),
            lab::<CoRunners>(FRAMES),
            lab::<Copies>("a copying co-runner (copy)"),
            lab::<NicmemOptions>("copies to or from NIC memory (copy)"),
            lab::<CoRunnerPlace>("stream_cores or graph_cores above 0"),
            lab::<Measurement>(FRAMES),
            lab::<Warmup>("a window, or a search"),
            lab::<TimelineOptions>("measure = window"),
            lab::<WindowOptions>("a window, or a search"),
            lab::<PrecisionOptions>("a window"),
        ]);
        Catalogue { registry, vocabulary: Vocabulary::new(owners), interfaces }
    }

    /// The interfaces and applications themselves.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Every owner and every key.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// What interface `name` says about itself, if it is known.
    pub fn interface(&self, name: &str) -> Option<&Description> {
        self.interfaces.iter().find(|interface| interface.owner.name == name)
    }

    /// The names of the interfaces that `software` uses.
    pub fn interfaces_of(&self, software: Software) -> Vec<&'static str> {
        let used = self.interfaces.iter().filter(|interface| interface.software == software);
        used.map(|interface| interface.owner.name).collect()
    }
}

const FRAMES: &str = "workload = frames";
const SYSTEMS: &str = "whole systems (every other workload)";
const RPCS: &str = "workload = rpc_echo";
const TCP: &str = "whole systems, workload = rpc_echo";
const LINKS: &str = "whole systems, workload = rpc_echo, workload = flexstorm";

/// An owner of the lab, which a point chooses by `choice`.
fn lab<O: nicforge_options::Options>(choice: &'static str) -> Owner {
    Owner::of::<O>("", choice, "")
}

fn traffic() -> Vec<Owner> {
    vec![
        lab::<Rate>("traffic at a rate (arrival)"),
        lab::<Arrivals>(FRAMES),
        lab::<Bursts>("arrival = bursts"),
        lab::<PingPong>("arrival = ping_pong"),
        lab::<PacketBytes>("packet_sizes = fixed or bimodal"),
        lab::<Sizes>("made-up frames"),
        lab::<Bimodal>("packet_sizes = bimodal"),
        lab::<Empirical>("packet_sizes = empirical"),
        lab::<Flows>("made-up flows, or offload = accel_nfv"),
        lab::<Choices>("made-up flows"),
        lab::<Zipf>("flow_choice = zipf"),
        lab::<Shares>("made-up frames"),
        lab::<TargetBytes>("target_share above 0"),
        lab::<TargetTime>("target_share, or target_accesses, above 0"),
        lab::<Capture>("arrival = replay"),
    ]
}
