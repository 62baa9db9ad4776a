use etherparse::PacketBuilder;
use nicforge_wire::checksum;
use rustix::net::{AddressFamily, SocketType, socket};

use super::*;

fn link(mtu: usize) -> Link {
    Link::made("test".into(), mtu)
}

/// A TCP segment as a guest leaves it to its adapter: longer than any frame, its checksum only begun.
fn segment(v6: bool, payload: usize) -> Vec<u8> {
    let ethernet = PacketBuilder::ethernet2([2; 6], [4; 6]);
    let builder =
        if v6 { ethernet.ipv6([1; 16], [2; 16], 64) } else { ethernet.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64) };
    let mut frame = Vec::new();
    builder.tcp(1000, 2000, 7, 100).ack(9).write(&mut frame, &vec![5; payload]).unwrap();
    frame
}

#[test]
fn a_segment_that_comes_whole_is_cut_to_what_the_link_carries() {
    for v6 in [false, true] {
        let headers = if v6 { 60 } else { 40 };
        let mut frame = segment(v6, 5000);
        let offload = segments_of(&frame, &link(1500)).unwrap();
        assert_eq!(usize::from(offload.segment_bytes), 1500 - headers);
        let mut lengths = Vec::new();
        let mut each = |frame: &[u8]| {
            assert_eq!(checksum::verify(frame, &parse_frame(frame).unwrap()).l4, Some(true));
            lengths.push(frame.len() - 14);
        };
        offload.finish(&mut frame, &mut Vec::new(), &mut each).unwrap();
        assert_eq!(lengths[..3], [1500; 3]);
        assert_eq!(lengths.iter().sum::<usize>(), 5000 + lengths.len() * headers);
    }
}

#[test]
fn frames_that_the_link_carries_and_long_ones_that_are_no_segments_stay() {
    assert_eq!(segments_of(&segment(false, 1460), &link(1500)), None);
    assert!(segments_of(&segment(false, 1461), &link(1500)).is_some());
    let mut datagram = Vec::new();
    let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9);
    builder.udp(5, 6).write(&mut datagram, &[7; 3000]).unwrap();
    assert_eq!(segments_of(&datagram, &link(1500)), None);
    assert_eq!(segments_of(&[0xff; 3000], &link(1500)), None);
    assert_eq!(segments_of(&segment(false, 3000), &link(10)), None, "no frame is so short");
}

#[test]
fn a_tap_device_is_no_adapter_of_a_wire() {
    let name = format!("nft{}", std::process::id() % 100_000);
    let Ok(_tap) = crate::live::ports::TapPort::open(&name) else {
        eprintln!("skipped: a TAP device needs root and /dev/net/tun");
        return;
    };
    let asks = socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
    assert!(system::is_virtual(asks.as_fd(), &name).unwrap());
    assert!(system::is_virtual(asks.as_fd(), "lo").unwrap());
    // Its file is taken, and the way out is said.
    let Err(LiveError::Interface { remedy, .. }) = crate::live::ports::TapPort::open(&name) else {
        panic!("a TAP device has one file");
    };
    assert!(remedy.contains("vhost_user"), "{remedy}");
}

/// The tests' own frames that `port` gets and that end with `end` (the kernel sends some, too); it waits until `bytes` of payload are there, for seconds at most.
fn payload_from(port: &mut dyn Port, end: u8, bytes: usize) -> Vec<Vec<u8>> {
    let (mut came, mut seen) = (Vec::new(), 0);
    for _ in 0..1000 {
        let mut each = |frame: &[u8]| {
            if frame.starts_with(&[4; 6]) && frame.last() == Some(&end) {
                seen += frame.iter().rev().take_while(|&&byte| byte == end).count();
                came.push(frame.to_vec());
            }
        };
        port.receive(64, &mut each).unwrap();
        if seen >= bytes {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    came
}

/// A guest's adapter leaves checksums and cutting to the TAP device behind it, which marks neither for XDP.
#[test]
fn what_a_guest_leaves_to_its_tap_device_is_finished() {
    let name = format!("nfg{}", std::process::id() % 100_000);
    let Ok(mut guest) = crate::live::ports::TapPort::open(&name) else {
        eprintln!("skipped: a TAP device needs root and /dev/net/tun");
        return;
    };
    let up = std::process::Command::new("ip").args(["link", "set", &name, "up"]).status();
    let opened = XdpPort::open(&name, None);
    let (true, Ok(mut port)) = (up.is_ok_and(|up| up.success()), opened) else {
        eprintln!("skipped: a TAP device under AF_XDP needs ip and a kernel with it");
        return;
    };
    guest.look().unwrap();
    let mut datagram = Vec::new();
    let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9);
    builder.udp(5, 6).write(&mut datagram, &[6; 900]).unwrap();
    let begun = TxOffload { l4_checksum: true, ..TxOffload::default() };
    let cut = TxOffload { segment: 1000, ..begun };
    for (frame, left, end, bytes) in
        [(datagram, begun, 6, 900), (segment(false, 1000), begun, 5, 1000), (segment(true, 5000), cut, 5, 5000)]
    {
        guest.send_unfinished(&frame, left, Time::ZERO).unwrap();
        guest.flush().unwrap();
        let came = payload_from(&mut port, end, bytes);
        assert_eq!(came.len() > 1, left == cut, "{} frames", came.len());
        for frame in came {
            let verdict = checksum::verify(&frame, &parse_frame(&frame).unwrap());
            assert_eq!(verdict.l4, Some(true), "{bytes} bytes");
            // And back.
            port.send(&frame, Time::ZERO).unwrap();
            port.flush().unwrap();
            let back = payload_from(&mut guest, end, 1);
            assert_eq!(back, [frame]);
        }
    }
}
