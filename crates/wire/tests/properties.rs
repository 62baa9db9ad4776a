//! Properties that hold for all inputs.

mod common;

use std::net::Ipv6Addr;

use common::exercise;
use nicforge_units::Time;
use nicforge_wire::capture::{CaptureFormat, CaptureReader, CaptureWriter};
use nicforge_wire::headers::{EthernetView, Ipv4View, Ipv6View, MacAddress, TcpView, UdpView, ethertype, ip_protocol};
use nicforge_wire::{Fragment, IpAddresses, checksum, parse_frame};
use proptest::collection::vec;
use proptest::prelude::*;

/// An Ethernet frame around a network packet.
fn ethernet(ethertype: u16, packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![0u8; 14];
    let mut view = EthernetView::new(&mut frame[..]).unwrap();
    view.set_source(MacAddress([2, 0, 0, 0, 0, 1]));
    view.set_ethertype(ethertype);
    frame.extend_from_slice(packet);
    frame
}

fn udp(ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0u8; 8];
    bytes.extend_from_slice(payload);
    let length = bytes.len() as u16;
    let mut view = UdpView::new(&mut bytes[..]).unwrap();
    view.set_source_port(ports.0);
    view.set_destination_port(ports.1);
    view.set_length(length);
    bytes
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(data in vec(any::<u8>(), 0..200)) {
        exercise::headers(&data);
        exercise::captures(&data);
    }

    #[test]
    fn arbitrary_ip_packets_never_panic(v6: bool, data in vec(any::<u8>(), 0..120)) {
        let (kind, version) = if v6 { (ethertype::IPV6, 6) } else { (ethertype::IPV4, 4) };
        let mut packet = data;
        if let Some(first) = packet.first_mut() {
            *first = version << 4 | *first & 0xf;
        }
        exercise::headers(&ethernet(kind, &packet));
    }

    #[test]
    fn udp_over_ipv4_reads_back(
        source: u32, destination: u32, ports: (u16, u16), payload in vec(any::<u8>(), 0..100),
        options in 0usize..=10, padding in 0usize..20,
    ) {
        let datagram = udp(ports, &payload);
        let header_len = 20 + 4 * options;
        let mut packet = vec![0u8; header_len];
        let total = header_len + datagram.len();
        let mut view = Ipv4View::init(&mut packet[..], header_len).unwrap();
        view.set_total_len(total as u16);
        view.set_protocol(ip_protocol::UDP);
        view.set_source(source.into());
        view.set_destination(destination.into());
        packet.extend_from_slice(&datagram);
        packet.resize(total + padding, 0);
        let mut frame = ethernet(ethertype::IPV4, &packet);
        let summary = parse_frame(&frame).unwrap();
        prop_assert_eq!(summary.addresses, IpAddresses::V4 {
            source: source.into(), destination: destination.into(),
        });
        prop_assert_eq!((summary.source_port, summary.destination_port), ports);
        prop_assert_eq!(summary.l4_len as usize, datagram.len());
        prop_assert_eq!(summary.l3_end as usize, 14 + total);
        checksum::fill(&mut frame, &summary, true, true);
        let decoded = etherparse::PacketHeaders::from_ethernet_slice(&frame).unwrap();
        let Some(etherparse::NetHeaders::Ipv4(ip, _)) = decoded.net else { panic!("not IPv4") };
        let Some(etherparse::TransportHeader::Udp(udp)) = decoded.transport else {
            panic!("not UDP")
        };
        prop_assert_eq!(ip.calc_header_checksum(), ip.header_checksum);
        prop_assert_eq!(udp.calc_checksum_ipv4(&ip, &payload).unwrap(), udp.checksum);
    }

    #[test]
    fn tcp_over_ipv6_reads_back(
        source: u128, destination: u128, ports: (u16, u16), payload in vec(any::<u8>(), 0..100),
    ) {
        let mut segment = vec![0u8; 20];
        let mut view = TcpView::init(&mut segment[..], 20).unwrap();
        view.set_source_port(ports.0);
        view.set_destination_port(ports.1);
        segment.extend_from_slice(&payload);
        let mut packet = vec![0u8; 40];
        let mut view = Ipv6View::init(&mut packet[..]).unwrap();
        view.set_payload_len(segment.len() as u16);
        view.set_next_header(ip_protocol::TCP);
        view.set_source(source.into());
        view.set_destination(destination.into());
        packet.extend_from_slice(&segment);
        let mut frame = ethernet(ethertype::IPV6, &packet);
        let summary = parse_frame(&frame).unwrap();
        prop_assert_eq!(summary.addresses, IpAddresses::V6 {
            source: Ipv6Addr::from(source), destination: Ipv6Addr::from(destination),
        });
        prop_assert_eq!(summary.fragment, Fragment::Whole);
        checksum::fill(&mut frame, &summary, true, true);
        let decoded = etherparse::PacketHeaders::from_ethernet_slice(&frame).unwrap();
        let Some(etherparse::NetHeaders::Ipv6(ip, _)) = decoded.net else { panic!("not IPv6") };
        let Some(etherparse::TransportHeader::Tcp(tcp)) = decoded.transport else {
            panic!("not TCP")
        };
        prop_assert_eq!((tcp.source_port, tcp.destination_port), ports);
        prop_assert_eq!(tcp.calc_checksum_ipv6(&ip, &payload).unwrap(), tcp.checksum);
    }

    #[test]
    fn incremental_checksums_equal_whole_ones(
        mut data in vec(any::<u8>(), 8..64), at in 0usize..2, word: u16, words: u32,
    ) {
        // Data that is all zeros has two checksums; a header never is.
        data[0] = 0x45;
        let before = checksum::checksum(&data);
        let at = 2 + 2 * at;
        let old = u16::from_be_bytes([data[at], data[at + 1]]);
        data[at..at + 2].copy_from_slice(&word.to_be_bytes());
        let after = checksum::update16(before, old, word);
        prop_assert_eq!(after, checksum::checksum(&data));
        let old = u32::from_be_bytes([data[4], data[5], data[6], data[7]]);
        data[4..8].copy_from_slice(&words.to_be_bytes());
        prop_assert_eq!(checksum::update32(after, old, words), checksum::checksum(&data));
    }

    #[test]
    fn captures_read_back(
        frames in vec((0u64..1 << 40, vec(any::<u8>(), 1..200)), 1..20), ng: bool,
    ) {
        let format = if ng { CaptureFormat::PcapNg } else { CaptureFormat::Pcap };
        let mut writer = CaptureWriter::new(Vec::new(), format).unwrap();
        let mut times: Vec<u64> = frames.iter().map(|(ns, _)| *ns).collect();
        times.sort_unstable();
        for (ns, (_, bytes)) in times.iter().zip(&frames) {
            writer.write(Time::from_ns(*ns), bytes).unwrap();
        }
        let file = writer.finish().unwrap();
        let mut reader = CaptureReader::new(&file[..]).unwrap();
        for (ns, (_, bytes)) in times.iter().zip(&frames) {
            let record = reader.next_record().unwrap().unwrap();
            prop_assert_eq!(record.time, Time::from_ns(ns - times[0]));
            prop_assert_eq!(record.bytes, &bytes[..]);
        }
        prop_assert!(reader.next_record().unwrap().is_none());
    }

    #[test]
    fn a_damaged_capture_never_panics(
        bytes in vec(any::<u8>(), 60..100), at: prop::sample::Index, value: u8, ng: bool,
    ) {
        let format = if ng { CaptureFormat::PcapNg } else { CaptureFormat::Pcap };
        let mut writer = CaptureWriter::new(Vec::new(), format).unwrap();
        for _ in 0..3 {
            writer.write(Time::ZERO, &bytes).unwrap();
        }
        let mut file = writer.finish().unwrap();
        let at = at.index(file.len());
        file[at] = value;
        exercise::captures(&file);
        exercise::captures(&file[..at]);
    }
}
