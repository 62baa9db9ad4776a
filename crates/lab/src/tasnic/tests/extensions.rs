//! Stages before and behind the pipeline.

use std::path::Path;
use std::sync::Arc;

use super::{count, rate, run, settings, settings_of, stage};
use crate::registry::Registry;
use crate::settings::{Catalogue, Settings};

fn with_stages(stages: &str) -> Settings {
    settings().with("stages", stages).with("rpc_connections", 16).with("rpc_in_flight", 4).with("rpc_bytes", 500)
}

#[test]
fn stages_take_time_of_free_fpcs_and_change_no_byte() {
    let bare = run(&with_stages("trace").with("stages", ""));
    let traced = run(&with_stages("tcpdump, trace"));
    assert!(rate(&traced) > 0.7 * rate(&bare), "{} {}", rate(&traced), rate(&bare));
    let stages = stage(&traced, "stages");
    assert_eq!((stages.cores, stages.threads), (12, 96), "three of an island's twelve FPCs");
    assert!(stages.busiest_core > 0.0 && stages.compute_ns > 150.0, "{stages:?}");
    assert!(count(&traced, "tcpdump_copied") > 1000 && count(&traced, "trace_retransmitted") == 0);
    assert_eq!(count(&traced, "tcpdump_copied"), count(&traced, "tcpdump_frames"));
    let none = run(&with_stages("tcpdump").with("tcpdump_filter", "udp"));
    assert!(count(&none, "tcpdump_copied") == 0 && count(&none, "tcpdump_frames") > 1000);
    assert!(stage(&none, "stages").compute_ns < stages.compute_ns);
}

#[test]
fn a_trace_sees_what_a_bad_link_does() {
    let bad = with_stages("trace").with("link_loss", 0.01).with("link_duplicates", 0.01).with("window_ms", 8.0);
    let point = run(&bad);
    for name in ["trace_gaps", "trace_again", "trace_retransmitted"] {
        assert!(count(&point, name) > 0, "{name}: {:?}", point.metrics.stages);
    }
}

#[test]
fn limits_bound_connections_and_their_rate() {
    let few = run(&with_stages("limits").with("limits_connections", 3));
    assert_eq!(few.metrics.stages["limits_refused"], 0, "all were refused before the window");
    let all = run(&with_stages("limits"));
    assert!(rate(&few) < 0.5 * rate(&all) && rate(&few) > 0.0, "{} {}", rate(&few), rate(&all));
    let slow = run(&with_stages("limits").with("limits_mbps", 20.0).with("window_ms", 10.0));
    assert!(slow.metrics.drops["limits_rate"] > 0, "{:?}", slow.metrics);
    let each = slow.metrics.offered_gbps * 1e3 / 16.0;
    assert!(rate(&slow) < 0.5 * rate(&all), "{each} Mbit/s a connection");
}

/// A P4 program sees all frames both ways; its table drops peers.
#[test]
fn a_p4_program_stands_before_and_behind_tcp() {
    let catalogue = Arc::new(Catalogue::new(Registry::shipped().stage::<nicforge_p4stage::P4Kind>()));
    let file =
        |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/p4").join(name).display().to_string();
    let folder = tempfile::tempdir().unwrap();
    let closed = folder.path().join("closed.toml");
    let entry = "[[entry]]\ntable = \"guard\"\nmatch = { \"hdr.ipv4.src\" = \"10.0.0.0/8\", \"hdr.ports.dst\" = 5000 }\naction = \"drop\"\n";
    std::fs::write(&closed, entry).unwrap();
    let of = |entries: String| {
        settings_of(&catalogue)
            .with("rpc_connections", 8)
            .with("stages", "p4")
            .with("p4_program", file("guard.p4"))
            .with("p4_entries", entries)
    };
    let open = run(&of(file("guard.toml")));
    assert!(rate(&open) > 0.1, "{:?}", open.metrics);
    assert!(stage(&open, "stages").items_mps > 0.2);
    let shut = run(&of(closed.display().to_string()));
    assert_eq!(rate(&shut), 0.0, "nobody comes through");
}
