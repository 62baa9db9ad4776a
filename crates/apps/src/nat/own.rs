//! What a NAT answers itself: pings of its external addresses from inside.

use nicforge_nic::{Packet, Verdict};
use nicforge_platform::Cpu;
use nicforge_wire::checksum::update16;
use nicforge_wire::headers::icmp_type;
use nicforge_wire::rewrite::{self, get16, put16};

use crate::Port;
use crate::headers::Headers;

/// Makes an echo request the answer to it, which leaves by the port that it came in on.
pub fn answer_echo<C: Cpu>(cpu: &mut C, packet: &Packet, headers: &Headers, port: &Port) -> Verdict {
    let frame = cpu.bytes_mut(packet.head.at, headers.window);
    let (ip, icmp) = (usize::from(headers.summary.l3_offset), usize::from(headers.summary.l4_offset));
    for byte in 0..4 {
        frame.swap(ip + 12 + byte, ip + 16 + byte);
    }
    let old = get16(frame, icmp);
    frame[icmp] = icmp_type::ECHO_REPLY;
    let checksum = update16(get16(frame, icmp + 2), old, get16(frame, icmp));
    put16(frame, icmp + 2, checksum);
    let mut asker = [0; 6];
    asker.copy_from_slice(&frame[6..12]);
    rewrite::set_macs(frame, port.mac, nicforge_wire::headers::MacAddress(asker));
    Verdict::Transmit(packet.port)
}
