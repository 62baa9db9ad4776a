//! Two hosts of one subnet talk through a live `l2fwd`, as through a switch. Needs root; skipped with a line where that
//! is not allowed.

use crate::support::interfaces::interfaces;
use crate::support::netns::Hosts;

const BRIDGE: &str = "[live]\nname = \"bridge\"\n[settings]\ninterface = \"priv_ring\"\napp = \"l2fwd\"\n\
                      [[port]]\ninterface = \"nf-inside\"\n[[port]]\ninterface = \"nf-outside\"\n";

/// Gives both hosts addresses of one subnet, of either version.
fn one_subnet(hosts: &Hosts) {
    for (host, number) in [("client", 1), ("server", 2)] {
        for command in [
            "sysctl -qw net.ipv6.conf.eth0.disable_ipv6=0".to_owned(),
            format!("ip addr add 10.99.5.{number}/24 dev eth0"),
            format!("ip addr add fd00:99:5::{number}/64 dev eth0 nodad"),
        ] {
            let (program, arguments) = command.split_once(' ').unwrap();
            let mut run = hosts.on(host, program);
            assert!(run.args(arguments.split(' ')).status().unwrap().success(), "{host}: {command}");
        }
    }
}

#[test]
fn two_hosts_of_one_subnet_ping_each_other_through_a_bridge() {
    let Some(hosts) = Hosts::up("bridge") else { return };
    one_subnet(&hosts);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bridge.toml");
    std::fs::write(&file, BRIDGE).unwrap();
    for interface in interfaces() {
        let mut gateway = hosts.start(&file, &[&format!("interface={interface}"), "cores=2"]);
        for address in ["10.99.5.2", "fd00:99:5::2"] {
            hosts.wait_for(&mut gateway, address);
            // They have to find each other again: ARP, and neighbour discovery.
            for host in ["client", "server"] {
                assert!(hosts.on(host, "ip").args(["neigh", "flush", "all"]).status().unwrap().success());
            }
            assert!(hosts.pings(address, 5), "{interface}: {address}");
        }
        gateway.stop();
    }
}
