//! TLS on a NIC that runs TCP. That each answer is what was asked is checked inside: a record that is not authentic fails
//! the run.

use super::{count, rate, run, settings};
use crate::settings::Settings;

fn tls(by: &str) -> Settings {
    settings()
        .with("rpc_free_clients", true)
        .with("rpc_connections", 16)
        .with("rpc_bytes", 16384)
        .with("rpc_in_flight", 2)
        .with("tas_buffer_kib", 64)
        .with("rpc_layer5", "tls")
        .with("tls_server", by)
}

#[test]
fn the_nic_takes_the_cipher_from_the_core() {
    let (software, nic) = (run(&tls("software")), run(&tls("nic")));
    assert!(rate(&nic) > 1.5 * rate(&software), "{} against {}", rate(&nic), rate(&software));
    assert!(count(&software, "records_not_offloaded") > 50 && count(&software, "records_offloaded") == 0);
    assert!(count(&nic, "records_offloaded") > 50 && count(&nic, "records_not_offloaded") == 0);
    assert_eq!(count(&nic, "records_read_again_bytes"), 0, "nothing is lost");
}

#[test]
fn lost_frames_cost_the_bus_and_no_core() {
    let lossy = tls("nic").with("link_loss", 0.01).with("window_ms", 4.0);
    let point = run(&lossy);
    assert!(count(&point, "records_offloaded") > 50 && count(&point, "records_not_offloaded") == 0);
    assert!(count(&point, "records_read_again_bytes") > 1000, "{:?}", point.metrics.stages);
    assert_eq!(run(&lossy), point, "same seed, same run");
}
