//! Frames of FlexStorm: Ethernet, IPv4, DCCP with short sequence numbers (RFC 4340, section 5.1), and a tuple or an
//! acknowledgement.

use nicforge_wire::checksum::{Accumulator, checksum};
use nicforge_wire::headers::{ETHERNET_HEADER_LEN, EthernetView, IPV4_MIN_HEADER_LEN, Ipv4View, ethertype};

use super::topology::{address_of, mac_of, machine_at};
use super::tuple::{TUPLE_BYTES, Tuple};

const DCCP: u8 = 33;
const DCCP_AT: usize = ETHERNET_HEADER_LEN + IPV4_MIN_HEADER_LEN;
/// DCCP's header, and what an acknowledgement has behind it.
const DCCP_BYTES: usize = 12;
const DATA: u8 = 2;
const ACK: u8 = 3;
const HOPS: u8 = 64;

/// Where a tuple begins.
pub const TUPLE_AT: usize = DCCP_AT + DCCP_BYTES;
/// Bytes of a frame with a tuple.
pub const DATA_BYTES: usize = TUPLE_AT + TUPLE_BYTES;
/// Bytes of an acknowledgement.
pub const ACK_BYTES: usize = TUPLE_AT + 4;
/// Behind an Ethernet header of this type, for local experiments, workers give the NIC bare tuples.
pub const BARE_TYPE: u16 = 0x88b5;
/// Bytes of such a frame.
pub const BARE_BYTES: usize = ETHERNET_HEADER_LEN + TUPLE_BYTES;
/// The NIC's mark of a tuple whose headers it took off.
pub const BARE_MARK: u64 = 1;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A tuple with this sequence number.
    Tuple { from: usize, sequence: u32 },
    /// The machine has everything up to there.
    Acknowledgement { from: usize, upto: u32 },
}

/// The sum over what DCCP's checksum covers (RFC 4340, section 9.1).
fn sum_of(frame: &[u8]) -> Accumulator {
    let mut sum = Accumulator::new();
    let segment = &frame[DCCP_AT..];
    sum.add(&frame[DCCP_AT - 8..DCCP_AT]);
    sum.add_word(DCCP.into());
    sum.add_word(segment.len() as u16);
    sum.add(segment);
    sum
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte))
}

/// Reads a frame that came to `machine`. An error is the name of a drop.
pub fn read(frame: &[u8], machine: usize) -> Result<Content, &'static str> {
    let ethernet = EthernetView::new(frame).map_err(|_| "malformed")?;
    let ip = Ipv4View::new(ethernet.payload()).map_err(|_| "not_ipv4")?;
    if ethernet.ethertype() != ethertype::IPV4 || ip.protocol() != DCCP || ip.header_len() != IPV4_MIN_HEADER_LEN {
        return Err("not_dccp");
    }
    let is_whole = usize::from(ip.total_len()) + ETHERNET_HEADER_LEN == frame.len() && !ip.is_fragment();
    if ip.destination() != address_of(machine) || !is_whole || frame.len() < ACK_BYTES {
        return Err("not_a_tuple");
    }
    if checksum(&frame[ETHERNET_HEADER_LEN..DCCP_AT]) != 0 || sum_of(frame).checksum() != 0 {
        return Err("bad_checksum");
    }
    let from = machine_at(ip.source()).ok_or("no_such_machine")?;
    let dccp = &frame[DCCP_AT..];
    let sequence = number(&dccp[9..12]);
    match (dccp[8] >> 1 & 15, dccp[8] & 1, frame.len()) {
        (DATA, 0, DATA_BYTES) => Ok(Content::Tuple { from, sequence }),
        (ACK, 0, ACK_BYTES) => Ok(Content::Acknowledgement { from, upto: number(&dccp[13..16]) }),
        _ => Err("not_a_tuple"),
    }
}

/// Writes the headers of a frame between machines; what is behind DCCP's header is there already.
fn finish(frame: &mut [u8], machines: (usize, usize), tasks: (u32, u32), kind: u8, sequence: u32) {
    let total = (frame.len() - ETHERNET_HEADER_LEN) as u16;
    let (from, to) = machines;
    if let Ok(mut ethernet) = EthernetView::new(&mut *frame) {
        ethernet.set_destination(mac_of(to));
        ethernet.set_source(mac_of(from));
        ethernet.set_ethertype(ethertype::IPV4);
    }
    if let Ok(mut ip) = Ipv4View::init(&mut frame[ETHERNET_HEADER_LEN..DCCP_AT], IPV4_MIN_HEADER_LEN) {
        ip.set_total_len(total);
        ip.set_fragment(true, false, 0);
        ip.set_time_to_live(HOPS);
        ip.set_protocol(DCCP);
        ip.set_source(address_of(from));
        ip.set_destination(address_of(to));
    }
    let sum = checksum(&frame[ETHERNET_HEADER_LEN..DCCP_AT]);
    frame[ETHERNET_HEADER_LEN + 10..][..2].copy_from_slice(&sum.to_be_bytes());
    let dccp = &mut frame[DCCP_AT..];
    dccp[..2].copy_from_slice(&(tasks.0 as u16).to_be_bytes());
    dccp[2..4].copy_from_slice(&(tasks.1 as u16).to_be_bytes());
    // Words of the header; coverage and checksum are zero.
    dccp[4..9].copy_from_slice(&[if kind == ACK { 4 } else { 3 }, 0, 0, 0, kind << 1]);
    dccp[9..12].copy_from_slice(&sequence.to_be_bytes()[1..]);
    let sum = sum_of(frame).checksum();
    frame[DCCP_AT + 6..][..2].copy_from_slice(&sum.to_be_bytes());
}

/// Writes the headers of a frame from `from` to `to` whose tuple is there already.
pub fn write_headers(frame: &mut [u8], from: usize, to: usize, sequence: u32) {
    let mut tuple = Tuple::default();
    tuple.0.copy_from_slice(&frame[TUPLE_AT..]);
    finish(frame, (from, to), (tuple.from(), tuple.to()), DATA, sequence);
}

/// The acknowledgement of `tuple` with `sequence` that `from` sends to `to`.
pub fn acknowledgement(from: usize, to: usize, tuple: &Tuple, sequence: u32) -> [u8; ACK_BYTES] {
    let mut frame = [0; ACK_BYTES];
    frame[TUPLE_AT + 1..].copy_from_slice(&sequence.to_be_bytes()[1..]);
    finish(&mut frame, (from, to), (tuple.to(), tuple.from()), ACK, sequence);
    frame
}
