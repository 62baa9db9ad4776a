//! What hosts do to each other, through NAT on every interface: names asked for, ports scanned,
//! parallel streams both ways, path MTU errors; and IPv6 forwarded. Needs root; skipped with a line
//! where that is not allowed.

use crate::support::interfaces::interfaces;
use crate::support::netns::{Gateway, Hosts};
use crate::support::programs::{asks_for_names, run, said, scans_ports, streams_both_ways};

/// A router behind the server's link has a smaller MTU, and says so through the NAT.
fn learns_of_a_smaller_mtu(hosts: &Hosts, interface: &str) {
    let learnt = || {
        let mut ping = hosts.on("client", "ping");
        ping.args(["-c", "1", "-W", "0.2", "-M", "do", "-s", "1400"]);
        let answer = said(ping.arg("10.99.9.9"));
        answer.contains("mtu = 1000") || answer.contains("mtu=1000")
    };
    assert!((0..20).any(|_| learnt()), "{interface}: no MTU is told");
}

/// `10.99.9.0/24` lies behind a link of the server that takes 1000 bytes.
fn a_narrow_link(hosts: &Hosts) {
    for command in [
        "sysctl -qw net.ipv4.ip_forward=1",
        "ip link add narrow type veth peer name beyond",
        "ip link set narrow mtu 1000 up",
        "ip link set beyond up",
        "ip addr add 10.99.9.1/24 dev narrow",
        "ip neigh add 10.99.9.9 lladdr 02:00:00:00:09:09 dev narrow",
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        run(hosts.on("server", words[0]).args(&words[1..]));
    }
}

fn nat(hosts: &Hosts, interface: &str) -> Gateway {
    let set = format!("interface={interface}");
    hosts.gateway("nat-netns.toml", &[&set, "cores=2"], "10.99.2.2")
}

#[test]
fn hosts_find_each_other_through_nat_on_every_interface() {
    let Some(hosts) = Hosts::up("many") else {
        return;
    };
    a_narrow_link(&hosts);
    for interface in interfaces() {
        let gateway = nat(&hosts, interface);
        asks_for_names(&hosts, "10.99.2.2", interface);
        scans_ports(&hosts, "10.99.2.2", interface);
        learns_of_a_smaller_mtu(&hosts, interface);
        streams_both_ways(&hosts, "10.99.2.2", interface);
        gateway.stop();
        // The client forgets the path's MTU, for the next one to tell.
        run(hosts.on("client", "ip").args(["route", "flush", "cache"]));
    }
}

#[test]
fn ipv6_is_forwarded_on_every_interface() {
    let Some(hosts) = Hosts::up("six") else {
        return;
    };
    for (host, own, other) in
        [("client", "2001:db8:1::2/64", "2001:db8:2::/64"), ("server", "2001:db8:2::2/64", "2001:db8:1::/64")]
    {
        run(hosts.on(host, "sysctl").args(["-qw", "net.ipv6.conf.eth0.disable_ipv6=0"]));
        run(hosts.on(host, "ip").args(["addr", "add", own, "dev", "eth0", "nodad"]));
        let router = own.replace("::2/64", "::1");
        run(hosts.on(host, "ip").args(["route", "add", other, "via", &router, "dev", "eth0"]));
    }
    let folder = tempfile::tempdir().unwrap();
    let routes = folder.path().join("routes");
    std::fs::write(&routes, "2001:db8:1::/64 0\n2001:db8:2::/64 1\n").unwrap();
    let file = folder.path().join("six.toml");
    let text = format!(
        "[live]\nname = \"six\"\nask_again_s = 1\n[settings]\napp = \"l3fwd\"\ncores = 2\nroutes_file = {routes:?}\n\
         [[port]]\ninterface = \"nf-inside\"\naddress6 = \"2001:db8:1::1\"\n\
         next_hop = \"2001:db8:1::2\"\n\
         [[port]]\ninterface = \"nf-outside\"\naddress6 = \"2001:db8:2::1\"\n\
         next_hop = \"2001:db8:2::2\"\n"
    );
    std::fs::write(&file, text).unwrap();
    let answers = |address: &str| {
        (0..40).any(|_| {
            let mut ping = hosts.on("client", "ping");
            let ping = ping.args(["-6", "-q", "-c", "3", "-i", "0.05", "-W", "1"]);
            said(ping.arg(address)).contains(" 0% packet loss")
        })
    };
    for (number, interface) in interfaces().into_iter().enumerate() {
        let set = format!("interface={interface}");
        let gateway = hosts.start(&file, &[&set]);
        assert!(answers("2001:db8:2::2"), "{interface}: no answer by IPv6");
        assert!(answers("2001:db8:1::1"), "{interface}: not its own address");
        if number == 0 {
            // The server is found where it is then.
            let moves = ["link", "set", "eth0", "address", "02:00:0a:63:02:77"];
            run(hosts.on("server", "ip").args(moves));
            assert!(answers("2001:db8:2::2"), "{interface}: it is not found again");
        }
        gateway.stop();
    }
}
