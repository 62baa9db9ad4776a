//! Gateways with several workers: a load balancer as clients see it, datagrams in fragments, and a rate
//! at which nothing is lost. Needs root; skipped with a line where that is not allowed.

use crate::support::interfaces::interfaces;
use crate::support::netns::Hosts;
use crate::support::programs::{Web, asks_for_names, fetch, run, scans_ports, streams_both_ways};
use crate::support::traffic::{pattern, udp_questions, unanswered};

/// An example, the server's address as clients know it, and what it listens at.
const NAT: (&str, &str) = ("nat-netns.toml", "10.99.2.2");
const LB: (&str, &str) = ("lb-netns.toml", "10.99.1.1");

fn drops(report: &serde_json::Value, cause: &str) -> u64 {
    let drops = &report["points"][0]["metrics"]["drops"];
    drops[cause].as_u64().unwrap_or(0)
}

#[test]
fn datagrams_in_fragments_come_through() {
    let Some(hosts) = Hosts::up("frag") else {
        return;
    };
    for (example, address) in [NAT, LB] {
        for cores in [2, 4] {
            let what = format!("{example}, {cores} workers");
            let set = format!("cores={cores}");
            let gateway = hosts.gateway(example, &[&set], address);
            assert!(hosts.pings_with(address, 10, 4000), "{what}: ping");
            // Whole ones and fragments of the same flow, questions and answers.
            udp_questions(&hosts, &format!("{address}:53"), "10.99.2.2:53", 4000);
            let report = gateway.stop();
            for cause in ["fragment", "fragment_unknown"] {
                assert_eq!(drops(&report, cause), 0, "{what}: {cause}");
            }
        }
    }
}

/// Questions a second, each step twice the one before, until some are lost or as many as the asker
/// itself can well do.
const RATES: [u32; 4] = [2_000, 4_000, 8_000, 16_000];

/// Each rate for a quarter of a second until one is too high, then half of the last that was not for a
/// second: of these none may be lost.
#[test]
fn nothing_is_lost_at_a_rate_that_workers_can_do() {
    let Some(hosts) = Hosts::up("paced") else {
        return;
    };
    let bind = "10.99.2.2:7";
    let everywhere = interfaces().into_iter().map(|interface| (NAT, interface));
    for ((example, address), interface) in everywhere.chain([(LB, "priv_ring"), (LB, "rx_bisect")]) {
        let what = format!("{example}, {interface}");
        let set = format!("interface={interface}");
        let to = format!("{address}:7");
        let ramp = hosts.gateway(example, &[&set, "cores=2"], address);
        let done = |rate: &&u32| unanswered(&hosts, &to, bind, **rate / 4, **rate).is_empty();
        let highest = RATES.iter().take_while(done).last();
        ramp.stop();
        let rate = highest.unwrap_or_else(|| panic!("{what}: some are lost at any rate")) / 2;
        let gateway = hosts.gateway(example, &[&set, "cores=2"], address);
        let lost = unanswered(&hosts, &to, bind, rate, rate);
        println!("{what}: {} of {} lost at {rate} a second", lost.len(), rate);
        assert!(lost.is_empty(), "{what}: {lost:?}");
        let report = gateway.stop();
        for cause in ["no_descriptor", "bx_full"] {
            assert_eq!(drops(&report, cause), 0, "{what}: {cause}");
        }
    }
}

/// The far client's last link takes less than the server's first, and only an ICMP error says so.
#[test]
fn a_load_balancer_serves_clients_of_all_kinds_on_every_interface() {
    let Some(hosts) = Hosts::up("kinds") else {
        return;
    };
    hosts.far_host(1000);
    let folder = tempfile::tempdir().unwrap();
    let (small, large) = (pattern(4), pattern(5).repeat(25));
    std::fs::write(folder.path().join("small"), &small).unwrap();
    std::fs::write(folder.path().join("large"), &large).unwrap();
    let web = Web::start(&hosts, folder.path());
    let (example, address) = LB;
    for interface in interfaces() {
        let set = format!("interface={interface}");
        let gateway = hosts.gateway(example, &[&set, "cores=2"], address);
        assert!(hosts.pings(address, 20), "{interface}: ping");
        asks_for_names(&hosts, address, interface);
        streams_both_ways(&hosts, address, interface);
        scans_ports(&hosts, address, interface);
        let files = [("far", "small", &small), ("client", "large", &large)];
        for (host, file, expected) in files.into_iter().filter(|_| web.is_some()) {
            let fetched = fetch(&hosts, host, address, file);
            let same = fetched == *expected;
            assert!(same, "{interface}: {host} got {} of {file}", fetched.len());
        }
        gateway.stop();
        // The server forgets the path's MTU, for the next one to be told.
        run(hosts.on("server", "ip").args(["route", "flush", "cache"]));
    }
}
