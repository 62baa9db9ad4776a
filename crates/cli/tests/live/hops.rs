//! What `traceroute` rests on: a packet whose last hop is the gateway ends there, and its sender hears
//! from whom. Needs root; skipped with a line where that is not allowed.

use crate::support::interfaces::interfaces;
use crate::support::netns::Hosts;

/// What `host` hears that asks for `address` with so few hops.
fn asked_with_hops(hosts: &Hosts, host: &str, address: &str, hops: u8) -> String {
    let mut ping = hosts.on(host, "ping");
    ping.args(["-n", "-c", "1", "-W", "5", "-t", &hops.to_string(), address]);
    String::from_utf8_lossy(&ping.output().unwrap().stdout).into_owned()
}

#[test]
fn the_gateway_is_a_hop() {
    let Some(hosts) = Hosts::up("hops") else {
        return;
    };
    // How the client calls the server, and who else asks whom: from outside nobody can ask through NAT.
    let nat = ("nat-netns.toml", "10.99.2.2", None);
    let lb = ("lb-netns.toml", "10.99.1.1", Some("10.99.1.2"));
    let everywhere = interfaces().into_iter().map(|interface| (nat, interface));
    for ((example, server, client), interface) in everywhere.chain([(lb, "rx_bisect")]) {
        let what = format!("{example}, {interface}");
        let set = format!("interface={interface}");
        let gateway = hosts.gateway(example, &[&set, "cores=2"], server);
        let asked = [("client", Some(server), "10.99.1.1"), ("server", client, "10.99.2.1")];
        for (host, to, hop) in asked {
            let Some(to) = to else { continue };
            let heard = asked_with_hops(&hosts, host, to, 1);
            let expected = format!("From {hop} icmp_seq=1 Time to live exceeded");
            assert!(heard.contains(&expected), "{what}, {host}: {heard}");
        }
        // Each host is two hops from the other.
        let heard = asked_with_hops(&hosts, "client", server, 2);
        let answered = heard.contains(&format!("from {server}: icmp_seq=1 ttl=63"));
        assert!(answered, "{what}: {heard}");
        gateway.stop();
    }
}
