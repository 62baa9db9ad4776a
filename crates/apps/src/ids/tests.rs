use nicforge_nic::{PortId, RxFlags, Segment, TxOffload};
use nicforge_platform::FlatCpu;
use nicforge_units::Time;

use super::*;

/// A frame of UDP or TCP over IPv4 with `payload`.
fn frame(protocol: u8, ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let header = if protocol == ip_protocol::TCP { 20 } else { 8 };
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    frame.extend((20 + header + payload.len() as u16).to_be_bytes());
    frame.extend([0, 1, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([ports.0.to_be_bytes(), ports.1.to_be_bytes()].concat());
    match protocol {
        ip_protocol::TCP => frame.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 1, 0, 0, 0, 0, 0]),
        _ => frame.extend([(8 + payload.len() as u16).to_be_bytes(), [0, 0]].concat()),
    }
    frame.extend(payload);
    frame
}

struct Run {
    ids: Ids,
    cpu: FlatCpu,
    buffer: Addr,
}

impl Run {
    fn new(text: &str) -> Run {
        let groups = Groups::compile(&parse(text).unwrap()).unwrap();
        let mut space = AddressSpace::default();
        let ids = Ids::allocate(PortMap::one_armed(1), &groups, &mut space);
        let buffer = space.data(2048, 64);
        let mut run = Run { ids, cpu: FlatCpu::new(space.end()), buffer };
        run.ids.start(&mut run.cpu);
        run
    }

    /// Alerts and scans that a frame causes; `split`: bytes in the first part.
    fn send(&mut self, bytes: &[u8], split: usize) -> (u64, u64) {
        let before = self.ids.counts;
        self.cpu.bytes_mut(self.buffer, bytes.len()).copy_from_slice(bytes);
        let rest = Segment { at: self.buffer + split as u64, len: (bytes.len() - split) as u32 };
        let mut packet = Packet {
            mbuf: self.buffer,
            tail: Addr(0),
            references: Addr(0),
            head: Segment { at: self.buffer, len: split as u32 },
            rest,
            port: PortId(0),
            rss_hash: 0,
            flags: RxFlags::default(),
            mark: 0,
            offload: TxOffload::default(),
            stamp: Time::ZERO,
        };
        assert_eq!(self.ids.packet(&mut self.cpu, &mut packet), Verdict::Transmit(PortId(0)));
        (self.ids.counts.alerts - before.alerts, self.ids.counts.scans - before.scans)
    }
}

#[test]
fn a_packet_meets_the_groups_of_its_ports_and_that_of_any() {
    let mut run = Run::new(
        "tcp any -> 80 \"GET\"\ntcp any -> 80 \"T /\"\ntcp 80 -> any \"OK\"\ntcp any -> any \"evil\"\nudp any -> 53 \"evil\"\n",
    );
    let tcp = ip_protocol::TCP;
    let mut whole = |bytes: Vec<u8>| run.send(&bytes, bytes.len());
    assert_eq!(whole(frame(tcp, (1000, 80), b"GET /evil OK")), (3, 2));
    assert_eq!(whole(frame(tcp, (80, 1000), b"GET /evil OK")), (2, 2));
    assert_eq!(whole(frame(tcp, (80, 80), b"GET /evil OK")), (4, 3));
    assert_eq!(whole(frame(tcp, (1000, 1000), b"GET /evil OK")), (1, 1));
    assert_eq!(whole(frame(ip_protocol::UDP, (1000, 53), b"evil evil")), (2, 1));
    assert_eq!(whole(frame(ip_protocol::UDP, (1000, 80), b"evil")), (0, 0));
    // The application forwards a packet that has no ports.
    assert_eq!(whole(vec![7; 60]), (0, 0));
    assert_eq!(whole(frame(1, (80, 80), b"GET evil")), (0, 0));
}

/// A pattern is found across the two parts of a split packet, and not in what pads a short frame.
#[test]
fn patterns_lie_across_parts_and_not_in_padding() {
    let mut run = Run::new("udp any -> any \"pattern\"\n");
    let bytes = frame(ip_protocol::UDP, (1, 2), b"a pattern");
    assert_eq!(run.send(&bytes, 46), (1, 1));
    let padded = [frame(ip_protocol::UDP, (1, 2), b"x"), b"pattern".to_vec()].concat();
    assert_eq!(run.send(&padded, padded.len()), (0, 1));
}
