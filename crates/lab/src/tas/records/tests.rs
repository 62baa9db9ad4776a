use std::path::Path;

use crate::machine::{Machine, parse_machine};
use crate::run::{PointRun, RunIo, run_point};
use crate::settings::{Catalogue, Settings};

fn machine() -> Machine {
    let text = include_str!("../../../../../machines/xeon-4216-cx5.toml");
    parse_machine(text, Path::new("machines/xeon-4216-cx5.toml")).unwrap()
}

fn settings() -> Settings {
    Settings::for_machine(&Catalogue::shipped(), &machine())
        .with("workload", "rpc_echo")
        .with("rpc_server", "linux")
        .with("rpc_free_clients", true)
        .with("rpc_layer5", "tls")
        .with("rpc_connections", 4)
        .with("rpc_answer_bytes", 60_000)
        .with("tas_buffer_kib", 128)
        .with("linux_merge_kib", 64)
        .with("linux_burst", 64)
        .with("linux_gathers", true)
        .with("tcp_rto_min_ms", 1.0)
        .with("warmup_ms", 1.0)
        .with("window_ms", 3.0)
}

fn run(settings: &Settings) -> PointRun {
    settings.check(&machine()).unwrap();
    run_point(&machine(), settings, 1, &RunIo::default(), &mut |_, _| {}).unwrap()
}

fn count(point: &PointRun, name: &str) -> u64 {
    point.metrics.stages.get(name).copied().unwrap_or_else(|| panic!("{name}: {:?}", point.metrics.stages))
}

/// That each answer's bytes are what was asked is checked inside.
#[test]
fn the_nic_encrypts_what_a_core_would_have_and_the_core_has_time_for_more() {
    let rate = |by: &str, from: &str| {
        let point = run(&settings().with("tls_server", by).with("rpc_answer_from", from));
        assert!(point.metrics.drops.values().all(|count| *count == 0), "{by}: {:?}", point.metrics.drops);
        (point.metrics.rpc_mps.unwrap(), point)
    };
    let (software, _) = rate("software", "page_cache");
    let (nic, point) = rate("nic", "page_cache");
    let (zero_copy, _) = rate("nic_zero_copy", "page_cache");
    assert!(nic > 1.3 * software, "{nic} against {software} million answers a second");
    assert!(zero_copy > 1.02 * nic, "{zero_copy} against {nic}");
    assert!(count(&point, "l5p_tx_bytes") > 60_000 * 10 && count(&point, "records_recoveries") == 0);
}

#[test]
fn records_that_come_are_decrypted_by_the_nic() {
    let settings = settings().with("rpc_bytes", 60_000).with("rpc_answer_bytes", 16);
    let software = run(&settings);
    let nic = run(&settings.with("tls_server", "nic"));
    assert!(nic.metrics.rpc_mps.unwrap() > 1.2 * software.metrics.rpc_mps.unwrap());
    assert_eq!((count(&nic, "records_not_offloaded"), count(&nic, "records_partly_offloaded")), (0, 0));
    assert_eq!(count(&software, "records_offloaded"), 0);
}

/// A connection's turn lasts for a run, which the receiver acknowledges as one.
#[test]
fn segments_of_a_turn_are_cheaper_and_acknowledged_together() {
    let settings = settings().with("rpc_layer5", "plain").with("rpc_client_moderation_us", 10.0);
    let (runs, single) = (run(&settings), run(&settings.clone().with("linux_merge_kib", 0)));
    let acks = |point: &PointRun| point.metrics.offered_mpps / point.metrics.throughput_mpps;
    assert!(runs.metrics.rpc_mps.unwrap() > 1.5 * single.metrics.rpc_mps.unwrap());
    assert!(acks(&runs) < 0.9 * acks(&single), "{} {}", acks(&runs), acks(&single));
}

/// Loss, duplicates, reordering and damage both ways: answers are right, and offloading comes back.
#[test]
fn a_bad_link_costs_speed_only() {
    for bytes in ["rpc_bytes", "rpc_answer_bytes"] {
        let settings = settings()
            .with("rpc_answer_bytes", 1000)
            .with(bytes, 60_000)
            .with("tls_server", "nic")
            .with("tls_clients", "nic")
            .with("link_loss", 0.01)
            .with("link_duplicates", 0.01)
            .with("link_reordered", 0.01)
            .with("link_corrupted", 0.005)
            .with("window_ms", 20.0);
        let point = run(&settings);
        assert!(point.metrics.rpc_mps.unwrap() > 0.0005, "{:?}", point.metrics);
        assert!(count(&point, "records_offloaded") > 0, "{:?}", point.metrics.stages);
        if bytes == "rpc_bytes" {
            assert!(count(&point, "records_not_offloaded") > 0 && count(&point, "l5p_rx_resync_res_ok") > 0);
        } else {
            assert!(count(&point, "records_recoveries") > 0 && count(&point, "records_dump_bytes") > 0);
        }
        assert_eq!((count(&point, "l5p_tx_refused"), count(&point, "l5p_commands_refused")), (0, 0));
    }
}

/// The NIC's memory holds a tenth of the contexts.
#[test]
fn contexts_that_do_not_fit_come_from_host_memory() {
    let settings = settings()
        .with("tls_server", "nic")
        .with("rpc_connections", 100)
        .with("rpc_answer_bytes", 4000)
        .with("l5p_memory_kib", 4);
    let point = run(&settings);
    assert!(count(&point, "l5p_context_misses") > 100, "{:?}", point.metrics.stages);
    assert!(point.metrics.rpc_mps.unwrap() > 0.0);
}

/// A host reads 64 KiB at a time from a target; digests and places are the NIC's affair.
#[test]
fn the_nic_checks_digests_and_places_what_a_host_reads() {
    let settings = settings()
        .with("rpc_layer5", "nvme")
        .with("rpc_clients", "linux")
        .with("rpc_free_clients", false)
        .with("rpc_free_server", true)
        .with("rpc_bytes", 16)
        .with("rpc_answer_bytes", 65_536)
        .with("rpc_in_flight", 4)
        .with("window_ms", 5.0);
    let software = run(&settings);
    let nic = run(&settings.clone().with("nvme_clients", "nic"));
    assert!(nic.metrics.rpc_mps.unwrap() > 1.1 * software.metrics.rpc_mps.unwrap());
    assert_eq!((count(&software, "records_offloaded"), count(&software, "records_placed_bytes")), (0, 0));
    assert_eq!(count(&nic, "records_not_offloaded"), 0, "{:?}", nic.metrics.stages);
    assert!(count(&nic, "records_placed_bytes") > 60_000 && count(&nic, "l5p_rx_placed_bytes") > 60_000);
    let lossy = settings.with("nvme_clients", "nic").with("link_loss", 0.01).with("window_ms", 20.0);
    let point = run(&lossy);
    assert!(count(&point, "records_not_offloaded") > 0 && count(&point, "records_offloaded") > 0);
    assert_eq!(count(&point, "l5p_commands_refused"), 0);
}

/// An emulated NIC is one that costs nothing to drive, and does no less.
#[test]
fn emulation_leaves_work_out_and_nothing_else() {
    let rates = |settings: Settings, key: &str| {
        ["software", "nic", "emulated"].map(|by| run(&settings.clone().with(key, by)).metrics.rpc_mps.unwrap())
    };
    let [software, nic, emulated] = rates(settings(), "tls_server");
    assert!(nic > 1.2 * software && emulated >= nic && emulated < 1.2 * nic, "{software} {nic} {emulated}");
    let reads = settings()
        .with("rpc_layer5", "nvme")
        .with("rpc_clients", "linux")
        .with("rpc_free_clients", false)
        .with("rpc_free_server", true)
        .with("rpc_bytes", 16)
        .with("rpc_in_flight", 4);
    let [software, nic, emulated] = rates(reads, "nvme_clients");
    assert!(nic > 1.1 * software && emulated >= nic && emulated < 1.2 * nic, "{software} {nic} {emulated}");
}

#[test]
fn a_drive_bounds_the_rate_and_adds_its_latency() {
    let settings = settings().with("rpc_layer5", "plain").with("rpc_answer_bytes", 10_000).with("rpc_drive_gbps", 1.0);
    let point = run(&settings.with("rpc_drive_us", 300.0));
    assert!(point.metrics.bandwidth_gbps.unwrap() < 1.1);
    assert!(point.metrics.latency_us.unwrap().p50 > 300.0);
}

/// A server whose page cache is empty: it reads each file over NVMe/TCP from a third host before it sends it over TLS.
#[test]
fn a_server_reads_what_it_sends_from_a_target() {
    let settings = settings()
        .with("rpc_answer_from", "storage")
        .with("rpc_in_flight", 4)
        .with("rpc_app_cores", 2)
        .with("tas_buffer_kib", 256)
        .with("window_ms", 5.0);
    let software = run(&settings);
    let placed = run(&settings.clone().with("nvme_server", "nic"));
    let both = run(&settings.clone().with("nvme_server", "nic").with("tls_server", "nic_zero_copy"));
    let rate = |point: &PointRun| point.metrics.rpc_mps.unwrap();
    assert!(rate(&placed) > 1.02 * rate(&software), "{} {}", rate(&placed), rate(&software));
    assert!(rate(&both) > 1.3 * rate(&placed), "{} {}", rate(&both), rate(&placed));
    assert_eq!(count(&software, "storage_placed_bytes"), 0);
    assert!(count(&software, "storage_records_not_offloaded") > 20);
    assert_eq!(count(&both, "storage_records_not_offloaded"), 0, "{:?}", both.metrics.stages);
    assert!(count(&both, "storage_placed_bytes") > 60_000 * 20 && count(&both, "l5p_tx_bytes") > 60_000 * 20);
    let slow = run(&settings.with("rpc_drive_gbps", 1.0));
    assert!(slow.metrics.bandwidth_gbps.unwrap() < 1.3, "{:?}", slow.metrics.bandwidth_gbps);
}

/// Loss on all links: what is read and what is sent is right.
#[test]
fn a_server_with_a_target_survives_a_bad_network() {
    let settings = settings()
        .with("rpc_answer_from", "storage")
        .with("nvme_server", "nic")
        .with("tls_server", "nic_zero_copy")
        .with("tas_buffer_kib", 256)
        .with("link_loss", 0.01)
        .with("link_reordered", 0.01)
        .with("window_ms", 20.0);
    let point = run(&settings);
    assert!(count(&point, "storage_records_offloaded") > 0 && count(&point, "storage_records_not_offloaded") > 0);
    assert!(count(&point, "records_recoveries") > 0, "{:?}", point.metrics.stages);
    assert_eq!((count(&point, "l5p_tx_refused"), count(&point, "l5p_commands_refused")), (0, 0));
}

/// Reads over NVMe/TCP over TLS. The NIC decrypts, checks and places; each layer comes back by itself after loss.
#[test]
fn the_nic_works_on_pdus_within_records() {
    let settings = settings()
        .with("rpc_layer5", "nvme_tls")
        .with("rpc_clients", "linux")
        .with("rpc_free_clients", false)
        .with("rpc_free_server", true)
        .with("rpc_bytes", 16)
        .with("rpc_in_flight", 4)
        .with("window_ms", 5.0);
    let software = run(&settings);
    let tls = run(&settings.clone().with("tls_clients", "nic"));
    let both = settings.with("tls_clients", "nic").with("nvme_clients", "nic");
    let nic = run(&both);
    let rate = |point: &PointRun| point.metrics.rpc_mps.unwrap();
    assert!(rate(&tls) > 1.3 * rate(&software), "{} {}", rate(&tls), rate(&software));
    assert!(rate(&nic) > 1.1 * rate(&tls), "{} {}", rate(&nic), rate(&tls));
    assert_eq!(count(&tls, "records_around_not_offloaded") + count(&tls, "records_offloaded"), 0);
    assert_eq!(count(&nic, "records_around_not_offloaded") + count(&nic, "records_not_offloaded"), 0);
    assert!(count(&nic, "records_placed_bytes") > 60_000 && count(&nic, "l5p_commands_refused") == 0);
    let lossy = run(&both.with("link_loss", 0.002).with("link_reordered", 0.002).with("window_ms", 30.0));
    for name in
        ["records_around_offloaded", "records_around_partly_offloaded", "records_offloaded", "records_recoveries"]
    {
        assert!(count(&lossy, name) > 0, "{name}: {:?}", lossy.metrics.stages);
    }
    assert!(count(&lossy, "records_not_offloaded") > 0, "{:?}", lossy.metrics.stages);
    assert_eq!((count(&lossy, "l5p_tx_refused"), count(&lossy, "l5p_commands_refused")), (0, 0));
}

#[test]
fn a_server_reads_from_its_target_over_tls() {
    let settings = settings()
        .with("rpc_answer_from", "storage")
        .with("rpc_storage_tls", true)
        .with("rpc_in_flight", 4)
        .with("tas_buffer_kib", 256)
        .with("window_ms", 5.0);
    let software = run(&settings);
    let settings = settings.with("tls_server", "nic_zero_copy").with("tls_storage", "nic").with("nvme_server", "nic");
    let nic = run(&settings);
    assert!(nic.metrics.rpc_mps.unwrap() > 1.8 * software.metrics.rpc_mps.unwrap());
    assert_eq!(count(&nic, "storage_around_not_offloaded") + count(&nic, "storage_records_not_offloaded"), 0);
    assert!(count(&nic, "storage_placed_bytes") > 60_000 * 10);
}

#[test]
fn settings_that_cannot_go_together_are_refused() {
    let refused = |settings: Settings| settings.check(&machine()).is_err();
    assert!(refused(settings().with("tas_buffer_kib", 8)));
    assert!(refused(settings().with("rpc_layer5", "nvme")));
    assert!(refused(settings().with("l5p_contexts", 4)));
    let storage = settings().with("rpc_answer_from", "storage");
    assert!(refused(storage.clone().with("rpc_server", "tas")));
    assert!(refused(storage.with("rpc_layer5", "nvme").with("rpc_bytes", 16)));
    let stacked = settings().with("rpc_layer5", "nvme_tls").with("rpc_bytes", 16).with("nvme_clients", "nic");
    assert!(refused(stacked.clone()) && !refused(stacked.with("tls_clients", "nic")));
    assert!(!refused(settings()));
}

#[test]
fn service_cores_carry_records_too() {
    for interface in ["priv_ring", "rx_bisect", "sh_ring"] {
        let settings = settings().with("rpc_server", "tas").with("interface", interface).with("tls_server", "nic");
        assert!(count(&run(&settings), "l5p_tx_packets") > 100, "{interface}");
    }
}
