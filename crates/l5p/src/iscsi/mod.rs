//! iSCSI (RFC 7143): header and data digests both ways, and read data placed by initiator task tag.
//!
//! The third protocol, and the proof that a folder is enough. Its magic pattern is weak: an opcode of the peer's
//! direction and bits that must be zero. So false guesses are common in binary data; tracking and software's answer
//! sort them out. With header digests on, the digest confirms a candidate.

pub mod reader;

use bytemuck::{Pod, Zeroable};

use crate::context::State;
use crate::crc;
use crate::placement::RrStateId;
use crate::protocol::{Action, Direction, Header, MessagePiece, Properties, Protocol, Verdict, Work};

/// Bytes of the basic header segment.
pub const BASIC_BYTES: usize = 48;
/// Bytes that show opcode and lengths.
const LEAD_BYTES: usize = 8;
/// Bytes of a digest.
const DIGEST_BYTES: usize = 4;
/// The opcode of SCSI Data-In, which carries what a command reads.
const DATA_IN: u8 = 0x25;
const TASK_TAG: std::ops::Range<usize> = 16..20;
const BUFFER_OFFSET: std::ops::Range<usize> = 40..44;

/// The protocol.
pub struct Iscsi;

/// Who sends the PDUs of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The initiator: opcodes 0 to 6, 0x10 and vendor's 0x1c to 0x1e.
    Initiator = 0,
    /// The target: opcodes 0x20 to 0x26, 0x31, 0x32, 0x3f and vendor's 0x3c to 0x3e.
    Target = 1,
}

/// Which digests a connection has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Digests {
    /// `HeaderDigest=CRC32C`.
    pub header: bool,
    /// `DataDigest=CRC32C`.
    pub data: bool,
}

/// Lengths in a PDU's first bytes, which could be genuine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lead {
    /// The opcode.
    pub opcode: u8,
    /// Bytes of basic and additional header segments.
    pub header_bytes: usize,
    /// Bytes of data.
    pub data_bytes: usize,
    /// The digests that apply.
    pub digests: Digests,
}

impl Lead {
    /// Reads the first 8 bytes; `None` when they cannot begin a PDU of this sender.
    pub fn parse(sender: Sender, digests: Digests, bytes: &[u8]) -> Option<Self> {
        let [first, flags, _, _, additional, length @ ..] = *bytes.first_chunk::<LEAD_BYTES>()?;
        let opcode = first & 0x3f;
        let (is_known, may_be_immediate) = match sender {
            Sender::Initiator => (matches!(opcode, 0..=6 | 0x10 | 0x1c..=0x1e), true),
            Sender::Target => (matches!(opcode, 0x20..=0x26 | 0x31 | 0x32 | 0x3c..=0x3f), false),
        };
        let is_marked = first & 0x80 == 0 && (may_be_immediate || first & 0x40 == 0);
        // Additional headers exist with commands only; what is neither data nor login text is final.
        let has_additional = opcode == 0x01 || additional == 0;
        let is_final = flags & 0x80 != 0 || matches!(opcode, 0x01 | 0x03..=0x05 | 0x23..=0x25);
        let [a, b, c] = length.map(usize::from);
        let lead = Self {
            opcode,
            header_bytes: BASIC_BYTES + 4 * usize::from(additional),
            data_bytes: a << 16 | b << 8 | c,
            digests,
        };
        (is_known && is_marked && has_additional && is_final).then_some(lead)
    }

    /// Offset of the data.
    pub fn data_at(&self) -> usize {
        self.header_bytes + if self.digests.header { DIGEST_BYTES } else { 0 }
    }

    /// Offset behind data and padding, which the data digest covers both.
    pub fn padded_end(&self) -> usize {
        self.data_at() + self.data_bytes.next_multiple_of(4)
    }

    /// Length of the PDU.
    pub fn length(&self) -> usize {
        self.padded_end() + if self.digests.data && self.data_bytes > 0 { DIGEST_BYTES } else { 0 }
    }
}

/// What a context holds of iSCSI.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct IscsiState {
    digest: u32,
    task_tag: [u8; 4],
    buffer_offset: [u8; 4],
    header_difference: u8,
    data_difference: u8,
    /// Bit 0: header digests. Bit 1: data digests. Bit 2: the target sends.
    options: u8,
    unused: u8,
}

impl IscsiState {
    /// What a context gets at `l5o_create`. Digests hold from full feature phase on.
    pub fn state(sender: Sender, digests: Digests) -> State {
        let options = u8::from(digests.header) | u8::from(digests.data) << 1 | (sender as u8) << 2;
        State::of(Self { options, ..Self::zeroed() })
    }

    fn lead(&self, bytes: &[u8]) -> Option<Lead> {
        let sender = if self.options & 4 == 0 { Sender::Initiator } else { Sender::Target };
        let digests = Digests { header: self.options & 1 != 0, data: self.options & 2 != 0 };
        Lead::parse(sender, digests, bytes)
    }
}

impl Protocol for Iscsi {
    fn name(&self) -> &'static str {
        "iscsi"
    }

    fn properties(&self) -> Properties {
        Properties {
            size_preserving: true,
            incremental: true,
            state_bytes: size_of::<IscsiState>(),
            header_bytes: LEAD_BYTES,
            // About 4 bits of opcode, 2 of markers, 8 of additional length.
            magic_bits: 14,
        }
    }

    fn parse(&self, state: &State, bytes: &[u8]) -> Option<Header> {
        let iscsi: &IscsiState = state.view();
        let length = iscsi.lead(bytes)?.length() as u32;
        Some(Header { length, is_numbered: true })
    }

    fn is_plausible(&self, state: &State, bytes: &[u8]) -> bool {
        let iscsi: &IscsiState = state.view();
        let Some(lead) = iscsi.lead(bytes) else {
            return false;
        };
        match bytes.get(lead.header_bytes..lead.data_at()) {
            Some(digest) if !digest.is_empty() => digest == crc::digest(&bytes[..lead.header_bytes]),
            _ => true,
        }
    }

    fn begin(&self, work: &mut Work<'_>, _length: u32) {
        let lead = work.header;
        let iscsi: &mut IscsiState = work.state.view_mut();
        iscsi.digest = crc::update(crc::BEGIN, &lead);
        iscsi.header_difference = 0;
        iscsi.data_difference = 0;
    }

    fn advance(&self, work: &mut Work<'_>, piece: MessagePiece<'_>) {
        let iscsi: &IscsiState = work.state.view();
        let Some(lead) = iscsi.lead(&work.header).filter(|_| piece.action != Action::Undo) else {
            return;
        };
        let ends =
            [lead.header_bytes, lead.data_at(), lead.data_at() + lead.data_bytes, lead.padded_end(), lead.length()];
        let (mut at, mut bytes) = (piece.at as usize, piece.bytes);
        while !bytes.is_empty() {
            let part = ends.iter().position(|end| at < *end).unwrap_or(ends.len() - 1);
            let begin = part.checked_sub(1).map_or(0, |before| ends[before]);
            let (here, rest) = bytes.split_at_mut(bytes.len().min(ends[part].max(at + 1) - at));
            let direction = work.direction;
            if part == 2 && piece.action == Action::Transform && direction == Direction::Receive {
                place(work, lead, at - begin, here);
            }
            let iscsi: &mut IscsiState = work.state.view_mut();
            match part {
                0 => iscsi.take_header(at, here),
                1 => iscsi.header_difference |= exchange(direction, iscsi.digest, at - begin, here),
                2 | 3 => iscsi.digest = crc::update(iscsi.digest, here),
                _ => iscsi.data_difference |= exchange(direction, iscsi.digest, at - begin, here),
            }
            at += here.len();
            if at == lead.data_at() {
                iscsi.digest = crc::BEGIN;
            }
            bytes = rest;
        }
    }

    fn finish(&self, work: &mut Work<'_>, _length: u32) -> Verdict {
        let iscsi: &IscsiState = work.state.view();
        if iscsi.header_difference != 0 {
            Verdict::Lost
        } else if iscsi.data_difference != 0 {
            Verdict::Failed
        } else {
            Verdict::Passed
        }
    }
}

impl IscsiState {
    fn take_header(&mut self, at: usize, bytes: &[u8]) {
        self.digest = crc::update(self.digest, bytes);
        for (byte, place) in bytes.iter().zip(at..) {
            if TASK_TAG.contains(&place) {
                self.task_tag[place - TASK_TAG.start] = *byte;
            } else if BUFFER_OFFSET.contains(&place) {
                self.buffer_offset[place - BUFFER_OFFSET.start] = *byte;
            }
        }
    }
}

/// Fills a digest in on transmit; on receive returns the bits in which it differs.
fn exchange(direction: Direction, digest: u32, within: usize, bytes: &mut [u8]) -> u8 {
    let made = crc::finish(digest);
    let made = &made[within..within + bytes.len()];
    if direction == Direction::Transmit {
        bytes.copy_from_slice(made);
        return 0;
    }
    made.iter().zip(bytes).fold(0, |difference, (made, came)| difference | (made ^ *came))
}

/// Writes read data to its destination, as far as there is one.
fn place(work: &mut Work<'_>, lead: Lead, within: usize, bytes: &[u8]) {
    if lead.opcode != DATA_IN {
        return;
    }
    let iscsi: &IscsiState = work.state.view();
    let state = work.placements.get(work.context, RrStateId(u32::from_be_bytes(iscsi.task_tag)));
    let offset = u64::from(u32::from_be_bytes(iscsi.buffer_offset)) + within as u64;
    let mut done = 0;
    while done < bytes.len() {
        let offset = u32::try_from(offset + done as u64).ok();
        let target = offset.and_then(|offset| state?.locate(offset, (bytes.len() - done) as u32));
        let Some(target) = target.filter(|target| target.bytes > 0) else {
            break;
        };
        let count = target.bytes as usize;
        if work.host.write(target.address, &bytes[done..done + count]).is_err() {
            break;
        }
        done += count;
    }
    work.placed_bytes += done as u32;
    work.unplaced_bytes += (bytes.len() - done) as u32;
}
