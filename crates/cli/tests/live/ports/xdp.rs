use std::net::UdpSocket;
use std::time::{Duration, Instant};

use nicforge_platform::live::ports::{Port, XdpPort};
use nicforge_units::Time;
use nicforge_wire::{checksum, parse_frame};

use super::*;
use crate::support::interfaces::interfaces;
use crate::support::traffic::{frame_that_ends_with, tagged_datagram, tcp_both_ways, udp_questions};

/// Whether an XDP program is at the interfaces of the gateway.
fn has_program(hosts: &Hosts) -> bool {
    let mut said = ip(hosts, "gateway", "-d link show nf-inside");
    said.push_str(&ip(hosts, "gateway", "-d link show nf-outside"));
    said.contains("prog/xdp")
}

/// The hosts leave checksums to their NICs, which do not finish them, as these are virtual: if the
/// port did not, NAT would spoil every frame.
#[test]
fn nat_over_af_xdp_carries_ping_tcp_and_udp_on_every_interface() {
    let Some(hosts) = Hosts::up("xdp") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = nat(&folder, "xdp", "xdp");
    for interface in interfaces() {
        let set = format!("interface={interface}");
        let gateway = hosts.start(&file, &[&set, "cores=2"]);
        wait_for_answers(&hosts);
        assert!(has_program(&hosts), "frames come by XDP");
        let pings = hosts.pings("10.99.2.2", 10);
        assert!(pings, "{interface}: {}", gateway.stop());
        tcp_both_ways(&hosts, "10.99.2.2:7000", "10.99.2.2:7000", 3);
        udp_questions(&hosts, "10.99.2.2:53", "10.99.2.2:53", 1472);
        let report = gateway.stop();
        assert_eq!(drops(&report, "bad_checksum"), 0, "{interface}");
        assert!(!has_program(&hosts), "SIGTERM takes the program away");
    }
}

/// A frame comes in at an XDP port and goes out of a packet socket, and the reverse.
#[test]
fn both_kinds_of_ports_go_together() {
    let Some(hosts) = Hosts::up("mixed") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let gateway = hosts.start(&nat(&folder, "interface", "xdp"), &[]);
    wait_for_answers(&hosts);
    tcp_both_ways(&hosts, "10.99.2.2:7000", "10.99.2.2:7000", 2);
    gateway.signal(rustix::process::Signal::KILL);
    drop(gateway);
    assert!(!has_program(&hosts), "SIGKILL takes the program away too");
}

/// Whichever kind of port each has: the first to come would see only what the other leaves.
#[test]
fn runs_with_xdp_and_packet_sockets_refuse_each_other() {
    let Some(hosts) = Hosts::up("xdptwice") else {
        return;
    };
    for (first, second) in [("xdp", "interface"), ("interface", "xdp"), ("xdp", "xdp")] {
        let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let gateway = hosts.start(&nat(&folders[0], first, first), &[]);
        wait_for_answers(&hosts);
        let mut other = hosts.on("gateway", env!("CARGO_BIN_EXE_nicforge"));
        other.arg("live").arg(nat(&folders[1], second, second)).arg("--out").arg(folders[1].path().join("out"));
        let output = other.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{first}, {second}: {said}");
        for part in ["nf-inside", "another run takes its frames", "; end the other run"] {
            assert!(said.contains(part), "{first}, {second}: {said}");
        }
        assert!(hosts.pings("10.99.2.2", 5), "the first one goes on");
        gateway.stop();
    }
}

/// What a stack began and left to its NIC is finished when a frame comes out of the port.
#[test]
fn a_begun_checksum_is_finished() {
    let Some(hosts) = Hosts::up("begun") else {
        return;
    };
    let mut port = hosts.run("gateway", || XdpPort::open("nf-inside", None).unwrap());
    hosts.run("client", || {
        let neighbour = "neigh add 10.99.1.1 lladdr 02:00:00:00:00:99 dev eth0";
        ip(&hosts, "client", neighbour);
        let socket = UdpSocket::bind("10.99.1.2:0").unwrap();
        socket.send_to(&[7; 999], "10.99.1.1:53").unwrap();
    });
    let came = frame_that_ends_with(&mut port, &[7; 999]);
    let came = came.expect("the datagram, though it is for another hardware address");
    let verdict = checksum::verify(&came, &parse_frame(&came).unwrap());
    assert_eq!((verdict.l3, verdict.l4), (Some(true), Some(true)));
}

/// A tag stands in the frame for XDP, and for the packet socket beside it: both bring it through.
#[test]
fn tags_come_through_af_xdp() {
    let Some(hosts) = Hosts::up("xdptag") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let gateway = hosts.start(&nat(&folder, "xdp", "xdp"), &[]);
    wait_for_answers(&hosts);
    let came = tagged_datagram(&hosts);
    assert_eq!(came[12..16], [0x81, 0, 0, 5]);
    gateway.stop();
}

/// Every frame that is taken comes out, also when more are sent at once than rings hold.
#[test]
fn rings_of_an_af_xdp_port_wrap() {
    const FRAMES: usize = 10_000;
    let Some(hosts) = Hosts::up("wrap") else {
        return;
    };
    let mut from = hosts.run("client", || XdpPort::open("eth0", None).unwrap());
    let mut to = hosts.run("gateway", || XdpPort::open("nf-inside", Some(0)).unwrap());
    let (mut seen, mut sent) = (Vec::new(), 0u32);
    let patience = Instant::now() + Duration::from_secs(60);
    while seen.len() < FRAMES && Instant::now() < patience {
        for _ in 0..100 {
            if (sent as usize) < FRAMES {
                let mut frame = vec![sent as u8; 60 + sent as usize % 1400];
                frame[12..18].copy_from_slice(&[0x88, 0xb5, 0, 0, 0, 0]);
                frame[14..18].copy_from_slice(&sent.to_be_bytes());
                from.send(&frame, Time::ZERO).unwrap();
                sent += 1;
            }
        }
        from.flush().unwrap();
        from.receive(32, &mut |_| {}).unwrap();
        let mut look = |frame: &[u8]| {
            if frame[12..14] == [0x88, 0xb5] {
                let number = u32::from_be_bytes(frame[14..18].try_into().unwrap());
                assert_eq!(frame.len(), 60 + number as usize % 1400);
                assert!(frame[18..].iter().all(|&byte| byte == number as u8));
                seen.push(number);
            }
        };
        while to.receive(32, &mut look).unwrap() > 0 {}
    }
    assert_eq!(seen.len(), FRAMES, "{:?} {:?}", from.counters(), to.counters());
    assert!(seen.is_sorted(), "in order");
    assert_eq!(from.counters().sent, FRAMES as u64);
}

#[test]
fn what_cannot_be_is_said_with_a_remedy() {
    let Some(hosts) = Hosts::up("xdperr") else {
        return;
    };
    let open = |name: &'static str, queue| {
        let tried = hosts.run("gateway", move || XdpPort::open(name, queue));
        tried.err().map(|error| error.to_string()).unwrap_or_default()
    };
    let said = open("nf-nowhere", None);
    assert!(said.contains("nf-nowhere"), "{said}");
    let said = open("nf-inside", Some(7));
    assert!(said.contains("no receive queue 7") && said.contains("there are 1"), "{said}");
    let first = hosts.run("gateway", || XdpPort::open("nf-inside", None).unwrap());
    let said = open("nf-inside", None);
    assert!(said.contains("another program"), "{said}");
    drop(first);
    assert_eq!(open("nf-inside", None), "", "it is free again");
    // One port does not take as many queues.
    ip(&hosts, "gateway", "link add nf-many numrxqueues 65 numtxqueues 65 type veth");
    let said = open("nf-many", None);
    assert!(said.contains("65 receive queues") && said.contains("ethtool -L"), "{said}");
    ip(&hosts, "gateway", "link set nf-many up");
    assert_eq!(open("nf-many", Some(1)), "", "one is meant");
}

/// Datagrams of many flows, which the other end's kernel spreads over the queues: all come, whatever their queue, and
/// the port is readable while one is there.
#[test]
fn frames_of_all_queues_come_in() {
    const FLOWS: u16 = 64;
    let Some(hosts) = Hosts::up("xdpqueues") else {
        return;
    };
    for command in [
        "link add nf-two numrxqueues 2 numtxqueues 2 type veth peer name nf-peer numrxqueues 2 numtxqueues 2",
        "link set nf-two up",
        "link set nf-peer up",
        "addr add 10.99.7.1/24 dev nf-peer",
        "neigh add 10.99.7.2 lladdr 02:00:00:00:07:02 dev nf-peer",
    ] {
        ip(&hosts, "gateway", command);
    }
    let take = |queue| {
        let mut port = hosts.run("gateway", || XdpPort::open("nf-two", queue).unwrap());
        hosts.run("gateway", || {
            for flow in 0..FLOWS {
                let socket = UdpSocket::bind(("10.99.7.1", 20_000 + flow)).unwrap();
                socket.send_to(b"question", "10.99.7.2:7").unwrap();
            }
        });
        let mut came = std::collections::BTreeSet::new();
        let until = Instant::now() + Duration::from_secs(2);
        while came.len() < usize::from(FLOWS) && Instant::now() < until {
            let file = port.readable().expect("nothing waits to be sent");
            let waits = rustix::event::Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
            let mut file = [rustix::event::PollFd::new(&file, rustix::event::PollFlags::IN)];
            if rustix::event::poll(&mut file, Some(&waits)).unwrap() == 0 {
                break;
            }
            let mut each = |frame: &[u8]| {
                let ports = parse_frame(frame).ok().map(|seen| seen.source_port);
                came.extend(ports.filter(|port| (20_000..20_000 + FLOWS).contains(port)));
            };
            port.receive(32, &mut each).unwrap();
        }
        came.len()
    };
    assert_eq!(take(None), usize::from(FLOWS));
    assert!((1..usize::from(FLOWS)).contains(&take(Some(0))), "one queue has only some");
}

/// Nobody but root may.
#[test]
fn without_the_privilege_it_says_so() {
    let Some(hosts) = Hosts::up("xdpnobody") else {
        return;
    };
    let said = hosts.run("gateway", || {
        let mut none = rustix::thread::capabilities(None).unwrap();
        none.effective = rustix::thread::CapabilitySet::empty();
        // Of this thread only.
        rustix::thread::set_capabilities(None, none).unwrap();
        XdpPort::open("nf-inside", None).err().unwrap().to_string()
    });
    assert!(said.contains("root or CAP_NET_ADMIN"), "{said}");
}
