//! Where routed packets leave in a run.

use std::collections::BTreeMap;
use std::path::Path;

use nicforge_lab::run::{RunIo, run_point};
use nicforge_lab::settings::Settings;
use nicforge_units::Time;
use nicforge_wire::capture::{CaptureFormat, CaptureReader, CaptureWriter};

use crate::common::machine::{machine, small};

/// Frames by the port out of which they left, told by the source address that they got there; and drops.
fn sent(settings: &Settings, folder: &Path) -> (BTreeMap<u8, u64>, BTreeMap<String, u64>) {
    let path = folder.join("sent.pcap");
    let io = RunIo { pcap_out: Some(path.clone()), ..RunIo::default() };
    let point = run_point(machine(), settings, 1, &io, &mut |_, _| {}).unwrap();
    let mut reader = CaptureReader::open(&path).unwrap();
    let mut by_port = BTreeMap::new();
    while let Some(frame) = reader.next_record().unwrap() {
        assert_eq!(frame.bytes[6..11], [2, 0, 0, 0, 0]);
        *by_port.entry(frame.bytes[11]).or_default() += 1;
    }
    let drops = point.metrics.drops.into_iter();
    (by_port, drops.map(|(cause, count)| (cause.to_string(), count)).collect())
}

#[test]
fn packets_leave_by_the_port_that_a_files_route_names() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("routes");
    for app in ["l3fwd", "synthetic"] {
        let settings = |routes: &str| {
            std::fs::write(&file, routes).unwrap();
            small().with("app", app).with("offered_gbps", 40.0).with("routes_file", file.to_str().unwrap())
        };
        for port in [0, 1] {
            let (by_port, drops) = sent(&settings(&format!("0.0.0.0/0 {port}\n")), folder.path());
            assert_eq!(by_port.keys().collect::<Vec<_>>(), [&port], "{app}");
            assert!(by_port[&port] > 100 && drops.is_empty(), "{app}: {drops:?}");
        }
        let halves = settings("0.0.0.0/1 0\n128.0.0.0/1 1\n");
        assert_eq!(sent(&halves, folder.path()).0.len(), 2, "{app}");
    }
}

#[test]
fn a_nic_does_not_send_what_lies_in_another_ones_memory() {
    let wanted = |interface: &str, nics: usize| {
        let settings =
            small().with("app", "l3fwd").with("interface", interface).with("nics", nics).with("routes_file", "routes");
        settings.check(machine())
    };
    for interface in ["nm_nfv", "nm_nfv_minus"] {
        let finding = wanted(interface, 2).unwrap_err();
        assert!(finding.wrong.contains("from one NIC to another"));
        wanted(interface, 1).unwrap();
    }
    wanted("split", 2).unwrap();
}

#[test]
fn generated_routes_have_a_default_of_ipv6() {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("six.pcap");
    let file = std::fs::File::create(&capture).unwrap();
    let mut writer = CaptureWriter::new(file, CaptureFormat::Pcap).unwrap();
    for number in 0..100u8 {
        let mut frame = Vec::new();
        etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv6([1; 16], [0x20 | (number % 16); 16], 9)
            .udp(number.into(), 6)
            .write(&mut frame, b"x")
            .unwrap();
        writer.write(Time::from_us(number.into()), &frame).unwrap();
    }
    writer.finish().unwrap();
    for app in ["l3fwd", "synthetic"] {
        let settings = small().with("app", app).with("arrival", "replay").with("pcap", capture.to_str().unwrap());
        let (by_port, drops) = sent(&settings, folder.path());
        assert!(drops.is_empty(), "{app}: {drops:?}");
        // Each leaves where it came in.
        assert_eq!(by_port, BTreeMap::from([(0, 100), (1, 100)]), "{app}");
    }
}
