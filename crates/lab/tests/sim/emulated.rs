//! Whole runs on NICs that a core plays, while one worker is far too slow for its packets. That frames
//! and buffers are conserved is checked inside of a run, which fails if not.

use nicforge_interfaces::emulated::played_by_cores;
use nicforge_lab::run::{PointRun, RunIo, run_point};
use nicforge_lab::settings::Settings;
use nicforge_record::Metrics;

use crate::common::machine::{machine, small};

/// Gbit/s for the cores that keep up: four fifths of what is offered.
const OTHERS: f64 = 8.0;

/// Four workers on one NIC, of which the first takes a millisecond for each of its packets, a fifth of
/// all. Rings are full of those before the window begins.
fn overloaded(change: impl FnOnce(&mut Settings)) -> Metrics {
    run(change).metrics
}

fn run(change: impl FnOnce(&mut Settings)) -> PointRun {
    let mut settings = small()
        .with("interface", "emulated")
        .with("app", "synthetic")
        .with("nics", 1)
        .with("sharing", 4)
        .with("packet_bytes", 500)
        .with("offered_gbps", 10.0)
        .with("rx_entries", 32)
        .with("ax_entries", 32)
        .with("bx_entries", 32)
        .with("target_share", 0.2)
        .with("target_accesses", 10_000)
        .with("warmup_ms", 0.6)
        .with("window_ms", 0.3);
    change(&mut settings);
    settings.check(machine()).unwrap();
    let point = run_point(machine(), &settings, 1, &RunIo::default(), &mut |_, _| {});
    point.unwrap_or_else(|error| panic!("{error}\n{settings:#?}"))
}

/// The core that plays a NIC has an account of its own: it has no time left where many packets come, while
/// the workers, who lose packets to it, idle.
#[test]
fn the_time_of_the_core_that_plays_a_nic_is_told() {
    let busy = |interface: &str, offered_gbps| {
        let metrics = overloaded(|settings| {
            settings.set("interface", interface.to_owned());
            settings.set("emulator_socket", "other".to_owned());
            settings.set("app", "l2fwd".to_owned());
            settings.set("target_share", 0.0);
            settings.set("target_accesses", 0);
            settings.set("packet_bytes", 200);
            settings.set("offered_gbps", offered_gbps);
        });
        (metrics.emulator_busy_fraction.zip(metrics.emulator_burst_frames), metrics.idle_fraction.unwrap())
    };
    let (much, idle) = busy("emulated", 60.0);
    let (share, burst) = much.unwrap();
    assert!(share > 0.95 && burst > 30.0 && idle > 0.1, "{much:?} {idle}");
    // It has hardly an empty poll left, and room for many more frames.
    let (share, burst) = busy("emulated", 15.0).0.unwrap();
    assert!(share > 0.95 && (1.0..8.0).contains(&burst), "{share} {burst}");
    let (share, burst) = busy("emulated", 0.5).0.unwrap();
    assert!((0.001..0.5).contains(&share) && (1.0..1.1).contains(&burst), "{share} {burst}");
    assert_eq!(busy("rx_bisect", 0.5).0, None);
}

/// What each interface says of a slow core holds when a core plays its NIC: private rings and rxBisect
/// let the others go on, a shared ring does not.
#[test]
fn one_slow_core_behind_every_interface() {
    for emulates in played_by_cores() {
        let metrics = overloaded(|settings| settings.set("emulates", emulates));
        assert!(!metrics.drops.is_empty(), "{emulates}");
        let received = metrics.throughput_gbps;
        // Dynamic shRing shares nothing before its first look.
        if emulates.starts_with("sh_ring") && emulates != "sh_ring_dynamic" {
            assert!(received < 0.3 * OTHERS, "{emulates}: {received} Gbit/s")
        } else {
            assert!(received > 0.95 * OTHERS, "{emulates}: {received} Gbit/s")
        }
    }
}

/// All workers are too slow, so that all physical rings wait for descriptors again and again: each doorbell wakes the core that
/// plays the NIC, which keeps them as busy as a NIC would.
#[test]
fn doorbells_wake_a_core_that_waits_for_descriptors() {
    for emulates in played_by_cores() {
        let received = |interface: &str| {
            let metrics = overloaded(|settings| {
                settings.set("interface", interface.to_owned());
                settings.set("emulates", emulates.to_owned());
                settings.set("target_share", 0.0);
                settings.set("target_accesses", 0);
                settings.set("reads", 50);
            });
            assert!(!metrics.drops.is_empty(), "{interface} {emulates}");
            metrics.throughput_gbps
        };
        let (played, alone) = (received("emulated"), received(emulates));
        let near = (0.85 * alone..1.15 * alone).contains(&played);
        assert!(near, "{emulates}: {played} instead of {alone} Gbit/s");
    }
}

/// Rings are shared when the first core becomes slow, and its packets stop the others until the control core
/// sees it: from then on those have private rings, and none of their packets waits behind what is left of the
/// shared one.
#[test]
fn one_core_becomes_slow_while_rings_are_shared() {
    for interface in ["sh_ring_dynamic", "emulated"] {
        let point = run(|settings| {
            settings.set("interface", interface.to_owned());
            settings.set("emulates", "sh_ring_dynamic".to_owned());
            settings.set("target_begins_ms", 0.2);
            settings.set("dynamic_step_ms", 0.1);
            settings.set("dynamic_window", 1);
            settings.set("dynamic_gbps", 0.0);
            settings.set("dynamic_memory_gib_per_s", 0.0);
            settings.set("dynamic_gap_ratio", 8.0);
        });
        let sets = point.switches.iter().map(|switch| switch.set.as_str());
        let sets: Vec<&str> = sets.collect();
        assert_eq!(sets, ["shared", "private"], "{interface}");
        let received = point.metrics.throughput_gbps;
        assert!(received > 0.95 * OTHERS, "{interface}: {received} Gbit/s");
    }
}

/// Sets share no ring, so one that has no buffers left holds up no other: with one Ax ring for two cores,
/// the slow core, which fills it, and its neighbour receive nothing; the other two all that is theirs.
#[test]
fn one_slow_core_and_cores_that_are_kept_apart() {
    for (interface, sets, rings, share) in [
        ("emulated", 4, 0, 1.0),
        ("rx_bisect", 4, 0, 1.0),
        ("emulated", 2, 2, 2.0 / 3.0),
        ("rx_bisect", 2, 2, 2.0 / 3.0),
    ] {
        let received = overloaded(|settings| {
            settings.set("interface", interface.to_owned());
            settings.set("association_sets", sets);
            settings.set("ax_rings", rings);
        });
        let (received, expected) = (received.throughput_gbps, share * OTHERS);
        let near = (0.85 * expected..1.15 * expected).contains(&received);
        assert!(near, "{interface}, {sets} sets: {received} Gbit/s, not {expected}");
    }
}

/// The same said ring by ring: two cores share a ring of the slow one, the other two one of their own.
#[test]
fn one_slow_core_and_cores_that_are_kept_apart_ring_by_ring() {
    let by_number = |interface: &str| {
        overloaded(|settings| {
            settings.set("interface", interface.to_owned());
            settings.set("association_sets", 2);
            settings.set("ax_rings", 2);
        })
    };
    let by_ring = |interface: &str, links: &str, associations: &str| {
        overloaded(|settings| {
            settings.set("interface", interface.to_owned());
            settings.set("ax_links", links);
            settings.set("associations", associations);
        })
    };
    for interface in ["rx_bisect", "emulated"] {
        let same = by_ring(interface, "0 2", "0, 0, 1, 1");
        assert_eq!(same, by_number(interface), "{interface}");
        // Where the slow core's neighbour may use the others' ring, it goes on.
        let helped = by_ring(interface, "0 2", "0, 0-1, 1, 1").throughput_gbps;
        assert!(helped > 0.95 * OTHERS, "{interface}: {helped} Gbit/s");
    }
}
