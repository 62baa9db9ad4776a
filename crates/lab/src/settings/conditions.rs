//! When keys matter: conditions that several of them have.

use super::Condition;

pub const SHARED_RINGS: Condition = (
    "interface",
    &[
        "sh_ring",
        "sh_ring_list",
        "sh_ring_batched_list",
        "sh_ring_dynamic",
        "emulated/sh_ring",
        "emulated/sh_ring_list",
        "emulated/sh_ring_batched_list",
        "emulated/sh_ring_dynamic",
    ],
);
pub const BATCHED_LIST: Condition = (
    "interface",
    &["sh_ring_batched_list", "emulated/sh_ring_batched_list"],
);
pub const EMULATED: Condition = ("interface", &["emulated"]);
pub const SPLITTING: Condition = ("interface", &crate::nicmem::SPLITTING);
pub const ON_NICMEM: Condition = ("interface", &crate::nicmem::ON_NICMEM);
pub const DYNAMIC: Condition = (
    "interface",
    &["sh_ring_dynamic", "emulated/sh_ring_dynamic"],
);
pub const BISECT: Condition = ("interface", &["rx_bisect", "emulated/rx_bisect"]);
pub const BATCHED: Condition = ("consumption", &["batched"]);
pub const BURSTS: Condition = ("arrival", &["bursts"]);
pub const PING_PONG: Condition = ("arrival", &["ping_pong"]);
pub const REPLAY: Condition = ("arrival", &["replay"]);
pub const SYNTHETIC: Condition = ("app", &["synthetic"]);
pub const ROUTING: Condition = ("app", &["l3fwd", "synthetic"]);
pub const KVS: Condition = ("app", &["kvs"]);
pub const COUNTER: Condition = ("app", &["counter"]);
pub const OFFLOAD: Condition = ("offload", &["accel_nfv"]);
pub const COPIES: Condition = (
    "copy",
    &["host_to_host", "host_to_nicmem", "nicmem_to_host"],
);
pub const FLOW_TABLE: Condition = ("app", &["nat", "lb", "counter"]);

/// Workloads of whole systems that talk TCP to each other; all other keys are of the one server
/// that frames are sent to.
pub const WHOLE_SYSTEMS: Condition = (
    "workload",
    &[
        "tcp_receive",
        "tcp_transmit",
        "web_server",
        "iscsi_initiator",
        "nat_gateway",
    ],
);

/// Interfaces whose device tells its driver what to do.
pub const BY_REGISTERS: Condition = (
    "interface",
    &[
        "sinic",
        "v_sinic",
        "v_sinic_zero_copy",
        "v_sinic_delayed_copy",
    ],
);
pub const ISCSI: Condition = ("workload", &["iscsi_initiator"]);
