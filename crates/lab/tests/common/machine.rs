//! The shipped machine, and settings that make a run of it short.

use std::path::Path;
use std::sync::LazyLock;

use nicforge_lab::machine::{Machine, parse_machine};
use nicforge_lab::settings::Catalogue;
use nicforge_lab::settings::Settings;

static MACHINE: LazyLock<Machine> = LazyLock::new(|| {
    let text = include_str!("../../../../machines/xeon-4216-cx5.toml");
    let mut machine = parse_machine(text, Path::new("xeon-4216-cx5.toml")).expect("the shipped machine");
    // So much that the tests' rates overload cores, whatever the machine's fit says.
    for app in ["nat", "lb", "synthetic"] {
        machine.work_cycles.insert(app.to_owned(), 1450);
    }
    machine
});

/// The shipped machine, whose applications have more work.
pub fn machine() -> &'static Machine {
    &MACHINE
}

/// A NAT on four cores and two NICs for a tenth of a millisecond, with small tables.
pub fn small() -> Settings {
    Settings::for_machine(&Catalogue::shipped(), machine())
        .with("cores", 4)
        .with("nics", 2)
        .with("rx_entries", 256)
        .with("tx_entries", 256)
        .with("flows", 500)
        .with("table_entries", 4096)
        .with("routes", 500)
        .with("array_mib", 1)
        .with("kvs_keys", 1000)
        .with("kvs_index_slots", 2000)
        .with("kvs_log_mib", 2)
        .with("warmup_ms", 0.02)
        .with("window_ms", 0.08)
}
