//! The gateway as its neighbours see it, and as it sees them: it answers at its own addresses, and finds a
//! host whose hardware address has changed. Needs root; skipped with a line where that is not allowed.

use std::time::{Duration, Instant};

use crate::support::netns::{Hosts, example_file};
use nicforge_platform::live::ports::{PacketPort, Port};
use nicforge_units::Time;

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

#[test]
fn a_run_begins_while_its_next_hop_is_silent() {
    let Some(hosts) = Hosts::up("silent") else {
        return;
    };
    let on_server = |arguments: &str| {
        let mut ip = hosts.on("server", "ip");
        assert!(ip.args(arguments.split(' ')).status().unwrap().success(), "ip {arguments}");
    };
    on_server("addr del 10.99.2.2/24 dev eth0");
    let mut gateway = hosts.start(&example_file("nat-netns.toml"), &[]);
    // It has begun: it answers for itself.
    hosts.wait_for(&mut gateway, "10.99.1.1");
    assert!(!hosts.answers("10.99.2.2"), "nobody is there");
    on_server("addr add 10.99.2.2/24 dev eth0");
    on_server("route add default via 10.99.2.1");
    hosts.wait_for(&mut gateway, "10.99.2.2");
    let report = gateway.stop();
    let drops = &report["points"][0]["metrics"]["drops"];
    assert!(drops["next_hop_unknown"].as_u64().unwrap_or(0) > 0, "{drops}");
}

/// ARP that says that `address` is at `mac`, for everybody.
fn claim(mac: [u8; 6], address: [u8; 4]) -> Vec<u8> {
    let link = [&[0xff; 6][..], &mac, &[8, 6]].concat();
    let arp = [&[0, 1, 8, 0, 6, 4, 0, 1][..], &mac, &address, &[0; 6], &address].concat();
    [link, arp].concat()
}

#[test]
fn a_next_hop_that_is_there_cannot_be_impersonated() {
    let Some(hosts) = Hosts::up("spoof") else {
        return;
    };
    let gateway = hosts.gateway("nat-netns.toml", &[], "10.99.2.2");
    let mut link = hosts.run("server", || PacketPort::open("eth0").unwrap());
    for _ in 0..3 {
        link.send(&claim([2, 0, 0, 0, 6, 6], [10, 99, 2, 2]), Time::ZERO).unwrap();
        link.flush().unwrap();
        // Longer than a claim waits for the next hop to contradict.
        assert!(hosts.pings("10.99.2.2", 40), "frames went to the impostor");
    }
    gateway.stop();
}
