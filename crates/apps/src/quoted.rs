//! What ICMP errors quote (RFC 792), and its translation with the error (RFC 5508, section 4;
//! RFC 3022, section 4.3).
//!
//! ```text
//!  IPv4 header │ ICMP header │ quoted IPv4 header │ first bytes of the quoted L4 header …
//!  ▲ address     ▲ checksum    ▲ address, checksum  ▲ port, checksum if it is there
//! ```
//!
//! The quoted packet went the other way, and as its sender saw it: what replaced one of its ends
//! on the way is put back, so that who gets the error knows its own flow in it.

use nicforge_nic::{Packet, RxFlags};
use nicforge_platform::Cpu;
use nicforge_wire as wire;
use nicforge_wire::checksum::{checksum, update16};
use nicforge_wire::headers::ICMP_HEADER_LEN;
use nicforge_wire::rewrite::{self, End};

use crate::headers::Headers;

/// Why an error that quotes nothing readable is dropped.
pub const MALFORMED: &str = "icmp_error_malformed";
/// Why an error with a wrong checksum, its own or that of the quoted IP header, is dropped.
pub const CHECKSUM: &str = "icmp_error_checksum";
/// Why an error about no flow that is known here is dropped.
pub const NO_FLOW: &str = "icmp_error_no_flow";

/// The most that is read: quoted headers, with IPv4 options, as far as the TCP checksum.
const QUOTED_MAX: usize = 60 + 18;

/// The most of an ICMP message that is read.
const MESSAGE_MAX: usize = ICMP_HEADER_LEN + QUOTED_MAX;

/// A quoted packet: where it is in the frame, and between whom it went.
pub struct Quoted {
    /// The ICMP message, of which the frame's second part may hold some or all that is quoted: a copy in one
    /// piece, and how much of it there is.
    copy: [u8; MESSAGE_MAX],
    len: usize,
    /// Where the ICMP header is in the frame.
    message: usize,
    l3: usize,
    l4: usize,
    /// TCP, UDP or ICMP.
    pub protocol: u8,
    /// Who sent it: address and port. An echo's identifier is the port of the end that asked.
    pub source: (u32, u16),
    /// To whom.
    pub destination: (u32, u16),
}

impl Quoted {
    /// What the error in `packet` quotes. An error is the name of a drop: a wrong checksum of the message or of the
    /// quoted IP header, or nothing that could be known.
    pub fn checked<C: Cpu>(cpu: &mut C, packet: &Packet, headers: &Headers) -> Result<Quoted, &'static str> {
        if packet.flags.contains(RxFlags::L4_BAD) {
            return Err(CHECKSUM);
        }
        let quoted = Quoted::read(cpu, packet, headers).ok_or(MALFORMED)?;
        if checksum(&quoted.copy[quoted.l3..quoted.l4]) != 0 {
            return Err(CHECKSUM);
        }
        Ok(quoted)
    }

    /// What the error in `packet` quotes; `None` if that is no TCP, UDP or echo that could be known.
    pub fn read<C: Cpu>(cpu: &mut C, packet: &Packet, headers: &Headers) -> Option<Quoted> {
        let summary = &headers.summary;
        let message = usize::from(summary.l4_offset);
        let len = (summary.l3_end.min(packet.len()) as usize).checked_sub(message)?;
        let len = len.min(MESSAGE_MAX);
        let mut copy = [0; MESSAGE_MAX];
        let (head, behind) = parts(packet, message, len);
        let (first, second) = copy[..len].split_at_mut(head.checked_sub(message)?);
        first.copy_from_slice(&cpu.bytes(packet.head.at, head)[message..]);
        if behind > 0 {
            second.copy_from_slice(cpu.bytes(packet.rest.at, behind));
        }
        let quoted = wire::Quoted::read(&copy[..len])?;
        let (source_port, destination_port) = quoted.ports?;
        Some(Quoted {
            copy,
            len,
            message,
            l3: quoted.l3_offset,
            l4: quoted.l4_offset,
            protocol: quoted.protocol,
            source: (quoted.source, source_port),
            destination: (quoted.destination, destination_port),
        })
    }

    /// Replaces an end of what is quoted, and makes the ICMP checksum follow each word.
    pub fn replace<C: Cpu>(mut self, cpu: &mut C, packet: &Packet, end: End, address: u32, port: Option<u16>) {
        let frame = &mut self.copy[..self.len];
        let address_at = self.l3 + if end == End::Source { 12 } else { 16 };
        let l4_checksum_at =
            rewrite::checksum_offset(self.protocol).map(|offset| self.l4 + offset).filter(|at| at + 2 <= frame.len());
        let words = [
            Some(self.l3 + 10),
            Some(address_at),
            Some(address_at + 2),
            Some(self.l4 + rewrite::port_offset(self.protocol, end)),
            l4_checksum_at,
        ];
        let before = words.map(|at| at.map(|at| rewrite::get16(frame, at)));
        let old = rewrite::replace_address(&mut frame[self.l3..], end, address);
        let segment = &mut frame[self.l4..];
        rewrite::replace_l4(segment, self.protocol, end, rewrite::AddressChange { old, new: address }, port);
        let mut checksum = rewrite::get16(frame, 2);
        for (at, before) in words.into_iter().zip(before) {
            if let (Some(at), Some(before)) = (at, before) {
                checksum = update16(checksum, before, rewrite::get16(frame, at));
            }
        }
        rewrite::put16(frame, 2, checksum);
        let (head, behind) = parts(packet, self.message, self.len);
        let (first, second) = frame.split_at(head - self.message);
        cpu.bytes_mut(packet.head.at, head)[self.message..].copy_from_slice(first);
        if behind > 0 {
            cpu.bytes_mut(packet.rest.at, behind).copy_from_slice(second);
        }
    }
}

/// Up to which byte the first part of `packet` holds of a message of `len` bytes at `message`, and how many bytes
/// of it begin the second part.
fn parts(packet: &Packet, message: usize, len: usize) -> (usize, usize) {
    let end = message + len;
    let head = end.min(packet.head.len as usize);
    (head, end - head)
}
