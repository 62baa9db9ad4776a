//! Requests whose headers the NIC took off (FlexNIC, section 3.2; examples/p4/flexkvs-dma.p4).
//!
//! | bytes | field, most significant byte first |
//! | --- | --- |
//! | 0–11 | hardware addresses of client and server |
//! | 12–19 | IPv4 addresses of client and server |
//! | 20–23 | ports of client and server |
//! | 24–25 | number of the datagram that the client gave |
//! | 26 | opcode |
//! | 27 | 1: the item is the first of its segment |
//! | 28–31 | opaque |
//! | 32–63 | of a GET: the key |
//! | 32–39 | of a SET: the address of the item that the NIC put into the log |
//!
//! A message becomes the headers of its request again, in the same buffer: the reply is made of them as of any request.

use nicforge_nic::{Packet, RxFlags};
use nicforge_platform::{Addr, Cpu};
use nicforge_wire::headers::{MAGIC_REQUEST, MEMCACHED_HEADER_LEN};
use nicforge_wire::parse_headers;

use super::request::{Operation, Request, When};
use crate::udp_service::Datagram;

/// Bits of the completion's flags that say that a packet is a message.
const GET: RxFlags = RxFlags(0x100);
const SET: RxFlags = RxFlags(0x200);
/// Keys of requests that the NIC understands.
pub const KEY_BYTES: usize = 32;

const CLIENT_BYTES: usize = 32;
const GET_BYTES: usize = CLIENT_BYTES + KEY_BYTES;
const SET_BYTES: usize = CLIENT_BYTES + 8;
/// Ethernet, IPv4 and UDP.
const HEADERS: usize = 42;
const REQUEST_BYTES: usize = HEADERS + MEMCACHED_HEADER_LEN;

/// What the NIC left of a request.
#[derive(Clone, Copy, Debug)]
pub enum Message {
    /// The value of this key is asked for.
    Get([u8; KEY_BYTES]),
    /// The NIC put the pair into the log, as this item.
    Set(Addr),
}

/// Whether a packet is a message.
#[inline]
pub fn is_message(packet: &Packet) -> bool {
    packet.flags.0 & (GET.0 | SET.0) != 0
}

/// Reads a message and makes its buffer hold the headers of the request. An error is the name of a drop.
pub fn read<C: Cpu>(cpu: &mut C, packet: &mut Packet) -> Result<(Request, Message), &'static str> {
    let is_get = packet.flags.contains(GET);
    let len = if is_get { GET_BYTES } else { SET_BYTES };
    if packet.head.len as usize != len {
        return Err("bad_message");
    }
    let bytes = cpu.bytes(packet.head.at, len);
    let (client, rest) = bytes.split_at(CLIENT_BYTES);
    let mut headers = [0; REQUEST_BYTES];
    request_of(client, &mut headers);
    let message = match rest.first_chunk() {
        Some(key) if is_get => Message::Get(*key),
        _ => Message::Set(Addr(rest.first_chunk().map_or(0, |address| u64::from_be_bytes(*address)))),
    };
    let summary = parse_headers(&headers, headers.len()).map_err(|_| "bad_message")?;
    cpu.bytes_mut(packet.head.at, REQUEST_BYTES).copy_from_slice(&headers);
    packet.head.len = REQUEST_BYTES as u32;
    let operation = if is_get { Operation::Get { with_key: false } } else { Operation::Store(When::Always) };
    let datagram = Datagram { summary, at: HEADERS as u32, len: MEMCACHED_HEADER_LEN as u32 };
    let request = Request { datagram, operation, quiet: false, extras_len: 0, key_len: 0, value_len: 0, cas: 0 };
    Ok((request, message))
}

/// The headers of the request of a `client`.
fn request_of(client: &[u8], headers: &mut [u8; REQUEST_BYTES]) {
    let mut put = |at: usize, bytes: &[u8]| headers[at..at + bytes.len()].copy_from_slice(bytes);
    let length = |from: usize| ((REQUEST_BYTES - from) as u16).to_be_bytes();
    put(0, &client[6..12]);
    put(6, &client[..6]);
    put(12, &[8, 0, 0x45, 0]);
    put(16, &length(14));
    // Hops, UDP.
    put(22, &[64, 17]);
    put(26, &client[12..20]);
    put(34, &client[20..24]);
    put(38, &length(34));
    put(42, &client[24..26]);
    // The first of one datagram.
    put(46, &[0, 1]);
    put(50, &[MAGIC_REQUEST, client[26]]);
    put(62, &client[28..32]);
}
