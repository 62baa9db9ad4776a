//! The external ports of a NAT on four cores, of which one has all the work, on both grounds. tshark judges what comes out.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::Path;

use crate::common;
use crate::judge;
use crate::judge::{decoded, write_capture};
use crate::skip;
use etherparse::PacketBuilder;
use nicforge_wire::rss::{IndirectionTable, Toeplitz};

/// More than a quarter of the ports of an address.
const ENDPOINTS: usize = 20_000;
const QUARTER: usize = 64_512 / 4;

/// A datagram of each of so many inside hosts whose flows queue 0 of four gets.
fn of_one_core() -> Vec<Vec<u8>> {
    let (rss, table) = (Toeplitz::default(), IndirectionTable::spread(0..4));
    let hosts = (0x0a01_0001..).map(Ipv4Addr::from_bits).filter(|host| host.octets()[3] % 255 != 0);
    let queue = |host: &Ipv4Addr| table.queue(rss.hash_ipv4_ports(*host, Ipv4Addr::UNSPECIFIED, 4000, 0));
    let frame = |host: Ipv4Addr| {
        let (from, to) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let builder = PacketBuilder::ethernet2(from, to).ipv4(host.octets(), [203, 0, 113, 5], 64).udp(4000, 53);
        let mut frame = Vec::new();
        builder.write(&mut frame, b"x").unwrap();
        frame
    };
    hosts.filter(|host| queue(host) == 0).take(ENDPOINTS).map(frame).collect()
}

#[test]
fn a_busy_core_has_the_ports_that_others_do_not_need() {
    if !judge::is_there() {
        skip::skipped("tshark is not installed");
        return;
    }
    let folder = common::folder();
    write_capture(&folder.path().join("in.pcap"), &of_one_core());
    for (kept, given) in [(50, ENDPOINTS), (100, QUARTER)] {
        let keys = format!("nat_ports_kept_percent = {kept}");
        let file = format!(
            "[live]\nname = \"ports\"\n[settings]\napp = \"nat\"\ncores = 4\ntable_entries = 400000\n{keys}\n[app]\n\
             external_address = \"198.51.100.1\"\n[[port]]\nread = \"in.pcap\"\n[[port]]\nwrite = \"live.pcap\"\n"
        );
        std::fs::write(folder.path().join("ports.toml"), file).unwrap();
        let live = judge::live(&folder, "ports.toml");
        let dropped = live["no_external_port"].as_u64().unwrap_or(0) as usize;
        assert_eq!(dropped, ENDPOINTS - given, "{live}");
        assert_eq!(assert_ports(&folder.path().join("live.pcap"), given), 1);
    }
    // In a scenario there are as many addresses as the flow table needs, unless it says how many.
    let keys = ["nat_mapping=endpoint_independent", "cores=4", "offered_gbps=0.2", "external_addresses=1"];
    for (keys, addresses) in [(&keys[..3], 2), (&keys, 1)] {
        let drops = judge::simulate(&folder, "nat", "in.pcap", keys);
        assert_eq!(drops.as_object().map(serde_json::Map::len), Some(0), "{drops}");
        assert_eq!(assert_ports(&folder.path().join("sim.pcap"), ENDPOINTS), addresses);
    }
}

/// So many datagrams came out, each from a port of its own, of the parity that its host's had; from how many addresses.
fn assert_ports(capture: &Path, count: usize) -> usize {
    let filter = "udp.checksum.status == 1 && ip.checksum.status == 1";
    let ports = decoded(capture, filter, &["ip.src", "udp.srcport"]);
    let distinct: BTreeSet<_> = ports.iter().collect();
    assert_eq!((ports.len(), distinct.len()), (count, count), "{}", capture.display());
    assert!(ports.iter().all(|row| row[1].parse::<u16>().is_ok_and(|port| port >= 1024 && port % 2 == 0)));
    ports.iter().map(|row| &row[0]).collect::<BTreeSet<_>>().len()
}
