//! When keys matter: conditions that several of them have.

use super::{Condition, Settings, Value};

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
pub const BATCHED_LIST: Condition = ("interface", &["sh_ring_batched_list", "emulated/sh_ring_batched_list"]);
pub const EMULATED: Condition = ("interface", &["emulated"]);
pub const SPLITTING: Condition = ("interface", &crate::nicmem::SPLITTING);
pub const ON_NICMEM: Condition = ("interface", &crate::nicmem::ON_NICMEM);
pub const DYNAMIC: Condition = ("interface", &["sh_ring_dynamic", "emulated/sh_ring_dynamic"]);
pub const BISECT: Condition = ("interface", &["rx_bisect", "emulated/rx_bisect"]);
pub const BATCHED: Condition = ("consumption", &["batched"]);
pub const BURSTS: Condition = ("arrival", &["bursts"]);
pub const PING_PONG: Condition = ("arrival", &["ping_pong"]);
pub const REPLAY: Condition = ("arrival", &["replay"]);
pub const RECORDED: Condition = ("replay_timing", &["recorded"]);
pub const SYNTHETIC: Condition = ("app", &["synthetic"]);
pub const ROUTING: Condition = ("app", &["l3fwd", "synthetic"]);
pub const KVS: Condition = ("app", &["kvs"]);
pub const COUNTER: Condition = ("app", &["counter"]);
pub const OFFLOAD: Condition = ("offload", &["accel_nfv"]);
pub const COPIES: Condition = ("copy", &["host_to_host", "host_to_nicmem", "nicmem_to_host"]);
pub const FLOW_TABLE: Condition = ("app", &["nat", "lb", "counter"]);

/// Workloads of whole systems that talk TCP to each other; all other keys are of the one server
/// that frames are sent to.
pub const WHOLE_SYSTEMS: Condition =
    ("workload", &["tcp_receive", "tcp_transmit", "web_server", "iscsi_initiator", "nat_gateway"]);

/// Interfaces whose device tells its driver what to do.
pub const BY_REGISTERS: Condition = ("interface", &["sinic", "v_sinic", "v_sinic_zero_copy", "v_sinic_delayed_copy"]);
pub const ISCSI: Condition = ("workload", &["iscsi_initiator"]);

pub const MADE_UP: Condition = ("arrival", &["constant", "poisson", "bursts", "ping_pong"]);
pub const SEARCH: Condition = ("measure", &["no_drop_rate"]);
pub const TARGET_SHARE: Condition = ("target_share", &[ABOVE_0]);
pub const TARGET_READS: Condition = ("target_accesses", &[ABOVE_0]);
pub const STREAMS: Condition = ("stream_cores", &[ABOVE_0]);
pub const GRAPHS: Condition = ("graph_cores", &[ABOVE_0]);
pub const HOT_KEYS: Condition = ("kvs_key_choice", &["hot_area"]);
pub const HOT_IN_NICMEM: Condition = ("kvs_hot_values", &["nicmem"]);
pub const COPIES_NICMEM: Condition = ("copy", &["host_to_nicmem", "nicmem_to_host"]);

/// Any number that is not 0.
pub const ABOVE_0: &str = "above 0";

/// The value that key `name` has in `settings`, if it is set.
pub fn value_of(name: &str, settings: &Settings) -> Option<Value> {
    super::key(name).and_then(|key| (key.get)(settings))
}

/// Whether a condition holds in a point with `settings`.
pub fn holds((name, values): &Condition, settings: &Settings) -> bool {
    match value_of(name, settings) {
        Some(Value::Text(text)) => {
            // What a core plays has settings of its own.
            let plays = |value: &str| value.split_once('/') == Some((&text, &settings.emulates));
            values.iter().any(|&value| value == text || plays(value))
        }
        Some(Value::Integer(number)) => number > 0 && values.contains(&ABOVE_0),
        Some(Value::Number(number)) => number > 0.0 && values.contains(&ABOVE_0),
        _ => false,
    }
}
