//! Frames of every kind that an application may meet.

/// A frame and what it is.
pub struct Frame {
    pub name: &'static str,
    pub bytes: Vec<u8>,
}

const MACS: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
const UDP: u8 = 17;
const TCP: u8 = 6;
const ICMP: u8 = 1;

/// Whole frames of all kinds.
pub fn all() -> Vec<Frame> {
    let udp = l4_udp(9, 53, &[7; 18]);
    let tcp = l4_tcp(40_000, 80, 0x18, b"GET / HTTP/1.0");
    let frame = |name, bytes| Frame { name, bytes };
    vec![
        frame("UDP", ethernet(0x0800, &ipv4(UDP, 0, &udp))),
        frame("UDP of 1500 bytes", ethernet(0x0800, &ipv4(UDP, 0, &l4_udp(9, 53, &[7; 1472])))),
        frame("TCP", ethernet(0x0800, &ipv4(TCP, 0, &tcp))),
        frame("TCP SYN", ethernet(0x0800, &ipv4(TCP, 0, &l4_tcp(40_000, 80, 0x02, &[])))),
        frame("ICMP echo", ethernet(0x0800, &ipv4(ICMP, 0, &[8, 0, 0, 0, 0, 1, 0, 2, 1, 2, 3, 4]))),
        frame("a first fragment", ethernet(0x0800, &ipv4(UDP, 0x2000, &udp))),
        frame("a later fragment", ethernet(0x0800, &ipv4(UDP, 3, &udp))),
        frame("UDP over IPv6", ethernet(0x86dd, &ipv6(UDP, &udp))),
        frame("TCP over IPv6", ethernet(0x86dd, &ipv6(TCP, &tcp))),
        frame("UDP with a VLAN tag", ethernet(0x8100, &[&[0, 5, 8, 0][..], &ipv4(UDP, 0, &udp)].concat())),
        frame("ARP", ethernet(0x0806, &[&[0, 1, 8, 0, 6, 4, 0, 1][..], &[1; 20]].concat())),
        frame("an unknown type", ethernet(0x88b5, &[0; 46])),
    ]
}

/// The frame itself, cut after every byte of its headers, and with every byte of them damaged.
pub fn variants(frame: &[u8]) -> Vec<Vec<u8>> {
    let headers = frame.len().min(80);
    let mut all = vec![frame.to_vec()];
    all.extend((0..headers).map(|len| frame[..len].to_vec()));
    for at in 0..headers {
        for value in [0, 0xff, frame[at] ^ 1, frame[at] ^ 0x80] {
            let mut damaged = frame.to_vec();
            damaged[at] = value;
            all.push(damaged);
        }
    }
    all
}

fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    [&MACS[..], &kind.to_be_bytes(), payload].concat()
}

/// An IPv4 packet from 10.0.0.1 to 10.0.0.2; `fragment` is the word of flags and offset.
fn ipv4(protocol: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
    let len = (20 + payload.len()) as u16;
    let mut header = [0x45, 0, 0, 0, 0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    header[2..4].copy_from_slice(&len.to_be_bytes());
    header[6..8].copy_from_slice(&fragment.to_be_bytes());
    let sum = internet_checksum(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    [&header[..], payload].concat()
}

fn ipv6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut header = [0; 40];
    header[0] = 0x60;
    header[4..6].copy_from_slice(&(payload.len() as u16).to_be_bytes());
    header[6..8].copy_from_slice(&[protocol, 64]);
    header[8..24].copy_from_slice(&[0x20; 16]);
    header[24..].copy_from_slice(&[0x21; 16]);
    [&header[..], payload].concat()
}

/// Without a checksum, as RFC 768 allows.
fn l4_udp(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let len = (8 + payload.len()) as u16;
    let words = [from, to, len, 0].map(u16::to_be_bytes).concat();
    [&words[..], payload].concat()
}

fn l4_tcp(from: u16, to: u16, flags: u8, payload: &[u8]) -> Vec<u8> {
    let ports = [from, to].map(u16::to_be_bytes).concat();
    [&ports[..], &[0, 0, 0, 1, 0, 0, 0, 2, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0], payload].concat()
}

fn internet_checksum(header: &[u8; 20]) -> u16 {
    let words = header.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum: u32 = words.sum();
    !((sum & 0xffff) + (sum >> 16)) as u16
}
