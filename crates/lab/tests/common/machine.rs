//! The shipped machine, and settings that make a run of it short.

use std::path::Path;
use std::sync::LazyLock;

use nicforge_lab::machine::{Machine, parse_machine};
use nicforge_lab::settings::Settings;

static MACHINE: LazyLock<Machine> = LazyLock::new(|| {
    let text = include_str!("../../../../machines/xeon-4216-cx5.toml");
    parse_machine(text, Path::new("xeon-4216-cx5.toml")).expect("the shipped machine")
});

/// The shipped machine.
pub fn machine() -> &'static Machine {
    &MACHINE
}

/// A NAT on four cores and two NICs for a tenth of a millisecond, with small tables.
pub fn small() -> Settings {
    Settings {
        cores: 4,
        nics: 2,
        rx_entries: 256,
        tx_entries: 256,
        flows: 500,
        table_entries: 4096,
        routes: 500,
        array_mib: 1,
        kvs_keys: 1000,
        kvs_index_slots: 2000,
        kvs_log_mib: 2,
        warmup_ms: 0.02,
        window_ms: 0.08,
        ..Settings::for_machine(machine())
    }
}
