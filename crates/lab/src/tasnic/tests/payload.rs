//! Where payload lies.

use super::{count, rate, run, settings};
use crate::settings::Settings;
use crate::tas::build::{Carried, build};

fn of(place: &str) -> Settings {
    settings()
        .with("tasnic_payload", place)
        .with("rpc_connections", 40)
        .with("rpc_in_flight", 4)
        .with("rpc_bytes", 3000)
        .with("rpc_app_cores", 2)
        .with("window_ms", 4.0)
}

/// That each answer's bytes are right is checked inside, over a bad link and with connections that come and go, too.
#[test]
fn streams_are_intact_wherever_payload_lies() {
    for place in ["shared", "nic"] {
        let clean = run(&of(place));
        assert!(rate(&clean) > 0.01 && count(&clean, "went_back") == 0, "{place}: {:?}", clean.metrics);
        let bad = of(place)
            .with("link_loss", 0.01)
            .with("link_reordered", 0.02)
            .with("link_duplicates", 0.01)
            .with("rpc_requests", 6)
            .with("tasnic_linger_ms", 0.1)
            .with("tas_buffer_kib", 4)
            .with("window_ms", 12.0);
        let bad = run(&bad);
        assert!(rate(&bad) > 0.001 && count(&bad, "closed") > 0, "{place}: {:?}", bad.metrics);
    }
    let (host, nic) = (rate(&run(&of("host"))), rate(&run(&of("nic"))));
    assert!(nic < host, "cores read NIC memory over the bus: {nic} {host}");
}

#[test]
fn shared_buffers_hold_what_waits_and_no_more() {
    let settings = of("shared").with("rpc_bytes", 500).with("rpc_in_flight", 1);
    let mut rpcs = build(&super::machine(), &settings, 1).unwrap();
    rpcs.world.run_until(nicforge_units::Time::from_ms(3)).unwrap();
    let Carried::Nic { nic, .. } = &rpcs.software[0].carried else { panic!("no NIC") };
    let pages = nic.borrow().pages.clone().unwrap();
    // Of 160 pages for 40 connections at most one a request, or two at an edge.
    assert!((1..=80).contains(&pages.borrow().most), "{}", pages.borrow().most);
}
