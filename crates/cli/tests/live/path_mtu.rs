//! A gateway whose ports have different MTUs: senders hear that a packet is too long for its way out. Needs
//! root; skipped with a line where that is not allowed.

use crate::support::netns::Hosts;
use crate::support::programs::run;
use crate::support::traffic::tcp_both_ways;

/// On the public side only. The server says that it takes longer segments all the same, as a host behind one
/// more router would.
const MTU: &str = "1200";

fn narrow(hosts: &Hosts) {
    for (host, interface) in [("gateway", "nf-outside"), ("server", "eth0")] {
        run(hosts.on(host, "ip").args(["link", "set", interface, "mtu", MTU]));
    }
    let mut route = hosts.on("server", "ip");
    let route = route.args(["route", "change", "default", "via", "10.99.2.1"]);
    run(route.args(["advmss", "1460"]));
}

#[test]
fn senders_hear_of_a_link_that_takes_less() {
    let Some(hosts) = Hosts::up("narrow") else {
        return;
    };
    narrow(&hosts);
    for (example, address) in [("nat-netns.toml", "10.99.2.2"), ("lb-netns.toml", "10.99.1.1")] {
        let gateway = hosts.gateway(example, &["cores=2"], address);
        // TCP first: it is not told by anybody else.
        tcp_both_ways(&hosts, &format!("{address}:5001"), "10.99.2.2:5001", 2);
        run(hosts.on("client", "ip").args(["route", "flush", "cache"]));
        let mut ping = hosts.on("client", "ping");
        ping.args(["-n", "-c", "1", "-W", "10", "-M", "do", "-s", "1400", address]);
        let heard = String::from_utf8_lossy(&ping.output().unwrap().stdout).into_owned();
        assert!(heard.contains(&format!("mtu = {MTU}")), "{example}: {heard}");
        let report = gateway.stop();
        let drops = &report["points"][0]["metrics"]["drops"];
        // What TCP sent before it was told.
        assert!(drops["above_mtu"].as_u64().unwrap_or(0) >= 1, "{example}: {drops}");
        run(hosts.on("client", "ip").args(["route", "flush", "cache"]));
    }
}
