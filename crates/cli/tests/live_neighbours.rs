//! The gateway as its neighbours see it, and as it sees them: it answers at its own addresses, and finds a
//! host whose hardware address has changed. Needs root; skipped with a line where that is not allowed.
#![cfg(target_os = "linux")]

mod netns;

use std::time::{Duration, Instant};

use netns::{Hosts, example_file};

/// An example whose next hops are asked for again every second.
fn asks_every_second(example: &str, folder: &tempfile::TempDir) -> std::path::PathBuf {
    let text = std::fs::read_to_string(example_file(example)).unwrap();
    let text = text.replacen("[live]\n", "[live]\nask_again_s = 1\n", 1);
    assert!(text.contains("ask_again_s"), "{text}");
    let file = folder.path().join(example);
    std::fs::write(&file, text).unwrap();
    file
}

#[test]
fn a_next_hop_with_another_hardware_address_is_found_again() {
    let Some(hosts) = Hosts::up("moves") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut gateway = hosts.start(&asks_every_second("nat-netns.toml", &folder), &["cores=2"]);
    hosts.wait_for(&mut gateway, "10.99.2.2");
    for mac in ["02:00:0a:63:02:77", "02:00:0a:63:02:78"] {
        let mut set = hosts.on("server", "ip");
        set.args(["link", "set", "eth0", "address", mac]);
        assert!(set.status().unwrap().success());
        let until = Instant::now() + Duration::from_secs(30);
        while !hosts.answers("10.99.2.2") {
            assert!(Instant::now() < until, "{mac} is never found");
        }
        assert!(hosts.pings("10.99.2.2", 5), "{mac} is lost again");
    }
    gateway.stop();
}

#[test]
fn the_gateway_answers_at_its_own_addresses() {
    let Some(hosts) = Hosts::up("own") else {
        return;
    };
    let gateway = hosts.gateway("nat-netns.toml", &[], "10.99.2.2");
    assert!(hosts.pings("10.99.1.1", 5), "the private side");
    let mut ping = hosts.on("server", "ping");
    ping.args(["-c", "1", "-W", "10", "10.99.2.1"]);
    let heard = ping.output().unwrap();
    let heard = String::from_utf8_lossy(&heard.stdout);
    assert!(heard.contains("icmp_seq=1 ttl=64"), "the public side: {heard}");
    gateway.stop();
}
