//! Inputs that users met (`../shared/cases`, beside the repository) and their kind, on both grounds. tshark judges what
//! comes out.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common;
use crate::common::{nicforge, stderr};
use crate::judge;
use crate::judge::{decoded, frames, write_capture};
use crate::skip;
use etherparse::{IpFragOffset, IpNumber, Ipv6FragmentHeader, Ipv6Header, PacketBuilder};
use tempfile::TempDir;

const CLIENT_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const GATEWAY_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// A folder with the shipped scenarios and the cases; `None`, with a line that says why, where those or tshark are not.
fn cases() -> Option<TempDir> {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases");
    if !cases.exists() {
        skip::skipped("no ../shared/cases beside the repository");
        return None;
    }
    if !judge::is_there() {
        skip::skipped("tshark is not installed");
        return None;
    }
    let folder = common::folder();
    for entry in std::fs::read_dir(cases).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    Some(folder)
}

/// Runs a case of the folder live, with `change` made to its file; its drops by cause.
fn live(folder: &TempDir, case: &str, change: impl FnOnce(String) -> String) -> serde_json::Value {
    let file = folder.path().join(case);
    std::fs::write(&file, change(std::fs::read_to_string(&file).unwrap())).unwrap();
    judge::live(folder, case)
}

/// The file of a live run from capture `in.pcap` to `to.pcap`, and back to `back.pcap`.
fn between(folder: &TempDir, settings: &str, app: &str, of_port: &str) -> serde_json::Value {
    let text = format!(
        "[live]\nname = \"case\"\n[settings]\n{settings}\n[app]\n{app}\n\
         [[port]]\nread = \"in.pcap\"\nwrite = \"back.pcap\"\n{of_port}\n[[port]]\nwrite = \"to.pcap\"\n"
    );
    std::fs::write(folder.path().join("case.toml"), text).unwrap();
    judge::live(folder, "case.toml")
}

fn path(folder: &TempDir, name: &str) -> PathBuf {
    folder.path().join(name)
}

#[test]
fn what_no_router_forwards_stays() {
    let Some(folder) = cases() else { return };
    for app in ["nat", "l3fwd"] {
        let with_prefix = |text: String| text.replacen("[[port]]\n", "[[port]]\naddress = \"10.99.1.1/24\"\n", 1);
        let drops = live(&folder, &format!("leak4-{app}.toml"), with_prefix);
        let simulated = judge::simulate(&folder, app, "leak4.pcap", &[]);
        for (ground, drops) in [("live", drops), ("sim", simulated)] {
            let count = |cause: &str| drops[cause].as_u64().unwrap_or(0);
            let counted = [count("group_frame"), count("bad_source"), count("bad_destination")];
            assert_eq!(counted, [5, 3, 4], "{app}, {ground}: {drops}");
        }
        for port in [0, 1] {
            let out = format!("out-leak4-{app}-{port}.pcap");
            assert!(frames(&path(&folder, &out)).is_empty(), "{out}");
        }
        assert!(frames(&path(&folder, "sim.pcap")).is_empty(), "{app}, sim");
    }
    // In a frame of its own, the broadcast address of the subnet alone tells.
    let mut frame = frames(&path(&folder, "leak4.pcap")).swap_remove(3);
    frame[..6].copy_from_slice(&GATEWAY_MAC);
    write_capture(&path(&folder, "in.pcap"), &[frame]);
    let app = "app = \"nat\"";
    let drops = between(&folder, app, "external_address = \"198.19.0.1\"", "address = \"10.99.1.1/24\"");
    assert_eq!(drops["bad_destination"], 1, "{drops}");
}

/// The fields of fragments that a NAT wrote, and the datagrams that tshark puts together from them.
fn assert_whole(capture: &Path, fragments: usize, datagrams: usize) {
    let seen = decoded(capture, "ip", &["ip.src", "ip.id", "ip.checksum.status", "ip.ttl"]);
    assert_eq!(seen.len(), fragments, "{}", capture.display());
    assert!(
        seen.iter().all(|fields| fields[0].starts_with("198.19.") && fields[2] == "1" && fields[3] == "63"),
        "{seen:?}"
    );
    let ids: std::collections::BTreeSet<&String> = seen.iter().map(|fields| &fields[1]).collect();
    assert_eq!(ids.len(), datagrams, "identifications stay apart: {seen:?}");
    let whole = decoded(capture, "udp", &["udp.length", "udp.checksum.status"]);
    assert_eq!(whole.len(), datagrams, "{whole:?}");
    assert!(whole.iter().all(|fields| fields[1] != "0"), "{whole:?}");
}

#[test]
fn fragments_wait_for_the_first_one() {
    let Some(folder) = cases() else { return };
    let drops = live(&folder, "fragments.toml", |text| text);
    assert_eq!(drops.as_object().map(serde_json::Map::len), Some(0), "{drops}");
    assert_whole(&path(&folder, "out-fragments-1.pcap"), 4, 1);
    let holds = ["hold_fragments=true"];
    judge::simulate(&folder, "nat", "fragments_second_first.pcap", &holds);
    assert_whole(&path(&folder, "sim.pcap"), 4, 1);

    // Two hosts use one identification at the same time. Words of an address in another order have the same sum.
    let of_one = frames(&path(&folder, "fragments_second_first.pcap"));
    let of_both: Vec<Vec<u8>> = of_one
        .into_iter()
        .flat_map(|frame| {
            let mut other = frame.clone();
            other[26..30].rotate_left(2);
            [frame, other]
        })
        .collect();
    write_capture(&path(&folder, "in.pcap"), &of_both);
    between(&folder, "app = \"nat\"", "external_address = \"198.19.0.1\"", "");
    assert_whole(&path(&folder, "to.pcap"), 8, 2);
    judge::simulate(&folder, "nat", "in.pcap", &holds);
    assert_whole(&path(&folder, "sim.pcap"), 8, 2);
}

#[test]
fn a_balanced_service_takes_fragments_of_any_order() {
    let Some(folder) = cases() else { return };
    std::fs::copy(path(&folder, "fragments_second_first.pcap"), path(&folder, "in.pcap")).unwrap();
    let addresses = "service = \"203.0.113.5\"\nserver_address = \"10.200.0.1\"";
    between(&folder, "app = \"lb\"", addresses, "");
    let seen = decoded(&path(&folder, "to.pcap"), "ip", &["ip.dst", "ip.checksum.status"]);
    assert_eq!(seen, vec![vec!["10.200.0.1".to_owned(), "1".to_owned()]; 4]);
    assert_eq!(decoded(&path(&folder, "to.pcap"), "udp", &["udp.length"]).len(), 1);
    // A simulated balancer has no address of its own: it takes packets to any, and no fragments.
    let drops = judge::simulate(&folder, "lb", "in.pcap", &["hold_fragments=true"]);
    assert_eq!(drops["fragment"], 4, "{drops}");
}

/// Three fragments of an IPv6 packet with identification `id`.
fn fragments_v6(id: u32) -> [Vec<u8>; 3] {
    let (from, to) = ([0x20; 16], [0x30; 16]);
    let mut whole = Vec::new();
    PacketBuilder::ethernet2(CLIENT_MAC, GATEWAY_MAC)
        .ipv6(from, to, 64)
        .udp(5000, 6000)
        .write(&mut whole, &[7; 56])
        .unwrap();
    let datagram = &whole[54..];
    [(0, 24), (24, 48), (48, 64)].map(|(first, end)| {
        let offset = IpFragOffset::try_new(first as u16 / 8).unwrap();
        let fragment = Ipv6FragmentHeader::new(IpNumber::UDP, offset, end < datagram.len(), id);
        let header = Ipv6Header {
            payload_length: (end - first + 8) as u16,
            next_header: IpNumber::IPV6_FRAGMENTATION_HEADER,
            hop_limit: 64,
            source: from,
            destination: to,
            ..Ipv6Header::default()
        };
        [&whole[..14], &header.to_bytes(), &fragment.to_bytes(), &datagram[first..end]].concat()
    })
}

#[test]
fn fragments_of_ipv6_are_routed_in_every_order() {
    let Some(folder) = cases() else { return };
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let packets = (1..).zip(orders).flat_map(|(id, order)| order.map(|number| fragments_v6(id)[number].clone()));
    write_capture(&path(&folder, "in.pcap"), &packets.collect::<Vec<_>>());
    between(&folder, "app = \"l3fwd\"\nroutes_file = \"routes.txt\"", "", "");
    judge::simulate(&folder, "l3fwd", "in.pcap", &[]);
    for out in ["to.pcap", "sim.pcap"] {
        let seen = decoded(&path(&folder, out), "ipv6", &["ipv6.hlim"]);
        assert_eq!(seen, vec![vec!["63".to_owned()]; 18], "{out}");
        let whole = decoded(&path(&folder, out), "udp", &["udp.checksum.status"]);
        assert_eq!(whole, vec![vec!["1".to_owned()]; 6], "{out}");
    }
    // The balancer is one of IPv4.
    let drops = between(&folder, "app = \"lb\"", "server_address = \"10.200.0.1\"", "");
    assert_eq!(drops["not_ipv4"], 18, "{drops}");
}

#[test]
fn redirects_and_errors_with_wrong_checksums_pass_no_nat() {
    let Some(folder) = cases() else { return };
    let redirect = frames(&path(&folder, "redirect.pcap")).swap_remove(0);
    let mut wrong = redirect.clone();
    // Host unreachable, under the checksum of the redirect.
    wrong[34..36].copy_from_slice(&[3, 1]);
    for (frame, cause) in [(redirect, "icmp_message"), (wrong, "icmp_error_checksum")] {
        write_capture(&path(&folder, "redirect.pcap"), std::slice::from_ref(&frame));
        let drops = live(&folder, "redirect.toml", |text| text);
        assert_eq!(drops[cause], 1, "{drops}");
        assert!(frames(&path(&folder, "out-redirect-0.pcap")).is_empty(), "{cause}");
        assert_eq!(frames(&path(&folder, "out-redirect-1.pcap")).len(), 1, "what was opened");
        let both = [frames(&path(&folder, "open.pcap")), vec![frame]].concat();
        write_capture(&path(&folder, "in.pcap"), &both);
        let drops = judge::simulate(&folder, "nat", "in.pcap", &[]);
        assert_eq!(drops[cause], 1, "sim: {drops}");
        assert_eq!(decoded(&path(&folder, "sim.pcap"), "udp and not icmp", &["ip.dst"]), [["203.0.113.5"]]);
        assert_eq!(frames(&path(&folder, "sim.pcap")).len(), 1);
    }
}

#[test]
fn a_bridge_passes_what_neighbours_say_about_each_other() {
    let Some(folder) = cases() else { return };
    live(&folder, "l2-arp.toml", |text| text);
    let fields = ["arp.opcode", "arp.src.proto_ipv4", "arp.dst.proto_ipv4", "arp.src.hw_mac", "eth.dst"];
    let sent = decoded(&path(&folder, "out-l2-arp-1.pcap"), "arp", &fields);
    assert_eq!(sent, decoded(&path(&folder, "arp.pcap"), "arp", &fields));
    assert_eq!(sent.len(), 2);
    // In the simulator each port is its own peer, and reflects.
    judge::simulate(&folder, "l2fwd", "arp.pcap", &[]);
    assert_eq!(decoded(&path(&folder, "sim.pcap"), "arp", &fields[..4]).len(), 2);

    // Control frames of a link stay on it; no group becomes a source.
    let pause = [&[1, 0x80, 0xc2, 0, 0, 1][..], &CLIENT_MAC, &[0x88, 8, 0, 1, 0xff, 0xff], &[0; 42]].concat();
    let to_all = frames(&path(&folder, "arp.pcap")).swap_remove(0);
    write_capture(&path(&folder, "in.pcap"), &[pause, to_all]);
    let live = between(&folder, "app = \"l2fwd\"", "", "");
    let simulated = judge::simulate(&folder, "l2fwd", "in.pcap", &[]);
    for (out, drops) in [("to.pcap", live), ("sim.pcap", simulated)] {
        assert_eq!(drops["link_protocol"], 1, "{out}: {drops}");
        assert_eq!(decoded(&path(&folder, out), "eth.src.ig == 0", &["eth.type"]), [["0x0806"]], "{out}");
        assert_eq!(frames(&path(&folder, out)).len(), 1, "{out}");
    }
}

#[test]
fn what_is_whole_of_a_capture_is_played_and_the_rest_is_said() {
    let Some(folder) = cases() else { return };
    for (capture, whole, said) in [("cut-data.pcap", 3, "cut"), ("ng-eth-80211.pcapng", 2, "link type")] {
        let text = format!(
            "[live]\nname = \"case\"\n[settings]\napp = \"l2fwd\"\n[[port]]\nread = \"{capture}\"\n[[port]]\nwrite = \"to.pcap\"\n"
        );
        std::fs::write(path(&folder, "case.toml"), text).unwrap();
        let output = nicforge(&folder, &["live", "case.toml", "--quiet"]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(stderr(&output).contains(said), "{capture}: {}", stderr(&output));
        judge::simulate(&folder, "l2fwd", capture, &[]);
        for out in ["to.pcap", "sim.pcap"] {
            assert_eq!(decoded(&path(&folder, out), "udp", &["ip.src"]).len(), whole, "{capture}, {out}");
        }
        let heard = judge::simulation_said(&folder);
        assert!(heard.contains(said), "{capture}: {heard}");
    }
}

#[test]
fn packed_captures_are_played_from_files_and_from_standard_input() {
    const PACKED: &str = "scenarios/captures/tunnels.pcap.gz";
    if !judge::is_there() {
        skip::skipped("tshark is not installed");
        return;
    }
    let folder = common::folder();
    let fields = ["frame.len", "ip.src", "ip.dst", "udp.checksum"];
    let inside = decoded(&path(&folder, PACKED), "eth", &fields);
    assert!(inside.len() > 100, "{}", inside.len());
    for read in [PACKED, "-"] {
        let text = format!(
            "[live]\nname = \"case\"\n[settings]\napp = \"l2fwd\"\n[[port]]\nread = \"{read}\"\n[[port]]\nwrite = \"to.pcap\"\n"
        );
        std::fs::write(path(&folder, "case.toml"), text).unwrap();
        let mut live = Command::new(env!("CARGO_BIN_EXE_nicforge"));
        live.args(["live", "case.toml", "--quiet"]).current_dir(folder.path());
        live.stdin(std::fs::File::open(path(&folder, PACKED)).unwrap());
        assert!(live.status().unwrap().success(), "{read}");
        assert_eq!(decoded(&path(&folder, "to.pcap"), "eth", &fields), inside, "{read}");
    }
    judge::simulate(&folder, "l2fwd", PACKED, &[]);
    assert_eq!(decoded(&path(&folder, "sim.pcap"), "eth", &fields), inside);
}
