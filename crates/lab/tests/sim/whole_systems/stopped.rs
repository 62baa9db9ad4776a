//! Whole systems that stand still, or nearly so: what is said of them.

use nicforge_lab::settings::Settings;

use super::{measure, run};

fn settings(workload: &str) -> Settings {
    super::settings(workload, "sinic", "OCC")
}

/// Sixteen windows of 256 KiB overflow a FIFO of 512 KiB when all connections begin at once, and without selective
/// acknowledgments every one of them loses so much that it waits for its timer.
fn overflowing() -> Settings {
    let settings = settings("tcp_receive").with("loss_recovery", "new_reno").with("tcp_initial_window", 100);
    settings.with("streams", 16).with("cpu_ghz", 2.0).with("warmup_ms", 20.0).with("window_ms", 20.0)
}

#[test]
fn a_window_without_payload_says_why() {
    let point = run(&overflowing());
    assert_eq!(point.metrics.bandwidth_gbps, Some(0.0));
    let note = point.steadiness.standstill.unwrap();
    for part in ["no payload moved", "timer to send again", "fifo_full"] {
        assert!(note.contains(part), "`{part}` in: {note}");
    }
    assert!(run(&settings("tcp_receive")).steadiness.is_steady());
}

/// A first segment that is lost is sent again after a second: until then the connection is being opened.
#[test]
fn a_connection_that_is_being_opened_waits_for_a_timer() {
    let point = run(&settings("tcp_receive")
        .with("link_loss", 0.9)
        .with("streams", 1)
        .with("warmup_ms", 1.0)
        .with("window_ms", 20.0));
    let note = point.steadiness.standstill.unwrap();
    assert!(!note.contains(" 0 wait for a timer"), "{note}");
    for part in ["no payload moved", "the first for", "on the links"] {
        assert!(note.contains(part), "`{part}` in: {note}");
    }
}

#[test]
fn a_core_that_sleeps_beyond_the_window_was_idle_in_it() {
    let time = measure(&overflowing()).cpu_time.unwrap();
    assert_eq!(time.idle, 1.0, "{time:?}");
}

/// Connections that wait for a timer go on after a fifth of a second, not after a whole one.
#[test]
fn lost_segments_are_sent_again_after_200_ms() {
    let point = run(&overflowing().with("warmup_ms", 20.0).with("window_ms", 280.0));
    assert!(point.metrics.bandwidth_gbps.unwrap() > 0.1, "{point:?}");
    // What moves in bursts after timers drifts within so short a window.
    assert_eq!(point.steadiness.standstill, None);
}

/// 1024 requests do not fit into the buffers, and answers come before all are written.
#[test]
fn an_initiator_reads_while_it_asks() {
    let metrics = measure(
        &settings("iscsi_initiator")
            .with("iscsi_outstanding", 1024)
            .with("iscsi_read_kib", 8)
            .with("socket_kib", 4)
            .with("window_ms", 5.0),
    );
    assert!(metrics.bandwidth_gbps.unwrap() > 0.1, "{metrics:?}");
}
