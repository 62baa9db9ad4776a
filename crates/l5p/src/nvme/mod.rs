//! NVMe/TCP: header and data digests both ways, and data placed straight into its buffer by command identifier.
//!
//! Linux: ULP DDP `sk_add`, `sk_del`, `setup`, `teardown`, `resync`. Digest and placement are reported in a bit each:
//! a packet counts as processed when every digest that ended in it fits. A wrong data digest fails one command; a
//! wrong header digest puts the framing in doubt, so the engine searches anew.

pub mod connection;
mod identify;
pub mod initiator;
pub mod pdu;
pub mod store;
pub mod subsystem;
pub mod target;
pub mod wire;

use bytemuck::{Pod, Zeroable};

use crate::context::State;
use crate::crc;
use crate::placement::RrStateId;
use crate::protocol::{Action, Direction, Header, MessagePiece, Properties, Protocol, Verdict, Work};
use pdu::{COMMON_BYTES, CommonHeader, DIGEST_BYTES, Digests, PduType, Transfer};

/// The protocol.
pub struct NvmeTcp;

/// Bytes of a header whose fields matter for placement: command, tag and offset.
const FIELDS: std::ops::Range<usize> = COMMON_BYTES..16;

/// What a context holds of NVMe/TCP.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct NvmeState {
    digest: u32,
    fields: [u8; 8],
    /// Header bytes that have passed.
    header_seen: u8,
    header_difference: u8,
    data_difference: u8,
    /// Bit 0: header digests. Bit 1: data digests.
    digests: u8,
}

impl NvmeState {
    /// What a context gets at `l5o_create`.
    pub fn state(digests: Digests) -> State {
        let digests = u8::from(digests.header) | u8::from(digests.data) << 1;
        State::of(Self { digests, ..Self::zeroed() })
    }

    fn agreed(&self) -> Digests {
        Digests { header: self.digests & 1 != 0, data: self.digests & 2 != 0 }
    }
}

/// The request-response state that data with this command identifier (towards the host) belongs to.
pub fn command_state(command: u16) -> RrStateId {
    RrStateId(u32::from(command))
}

/// The request-response state that data with this transfer tag (towards the controller) belongs to.
pub fn transfer_state(tag: u16) -> RrStateId {
    RrStateId(1 << 16 | u32::from(tag))
}

impl Protocol for NvmeTcp {
    fn name(&self) -> &'static str {
        "nvme_tcp"
    }

    fn properties(&self) -> Properties {
        Properties {
            size_preserving: true,
            incremental: true,
            state_bytes: size_of::<NvmeState>(),
            header_bytes: COMMON_BYTES,
            // Type (nine values), flags and header length that follow from it, data offset, the length's first byte.
            magic_bits: 24,
        }
    }

    fn parse(&self, state: &State, bytes: &[u8]) -> Option<Header> {
        let nvme: &NvmeState = state.view();
        let header = CommonHeader::parse(nvme.agreed(), bytes)?;
        Some(Header { length: header.length, is_numbered: true })
    }

    /// The header digest confirms a candidate when enough of it is there.
    fn is_plausible(&self, state: &State, bytes: &[u8]) -> bool {
        let nvme: &NvmeState = state.view();
        let Some(header) = CommonHeader::parse(nvme.agreed(), bytes) else {
            return false;
        };
        let digest_at = header.header_bytes();
        match bytes.get(digest_at..digest_at + header.header_digest_bytes()) {
            Some(digest) if !digest.is_empty() => digest == crc::digest(&bytes[..digest_at]),
            _ => true,
        }
    }

    fn begin(&self, work: &mut Work<'_>, _length: u32) {
        let common = work.header;
        let nvme: &mut NvmeState = work.state.view_mut();
        nvme.digest = crc::update(crc::BEGIN, &common);
        nvme.header_seen = COMMON_BYTES as u8;
        nvme.header_difference = 0;
        nvme.data_difference = 0;
    }

    fn advance(&self, work: &mut Work<'_>, piece: MessagePiece<'_>) {
        if piece.action == Action::Undo {
            return; // Nothing was changed on receive.
        }
        let Some(header) = header_of(work) else {
            return;
        };
        let (mut at, mut bytes) = (piece.at as usize, piece.bytes);
        while !bytes.is_empty() {
            let (part, end) = part_at(&header, at);
            let (here, rest) = bytes.split_at_mut(bytes.len().min(end - at));
            let direction = work.direction;
            let nvme: &mut NvmeState = work.state.view_mut();
            match part {
                Part::Header => nvme.take_header(&header, at, here),
                Part::HeaderDigest(within) => {
                    let made = crc::finish(nvme.digest);
                    nvme.header_difference |= exchange(direction, &made[within..], here);
                    if within + here.len() == DIGEST_BYTES {
                        nvme.digest = crc::BEGIN;
                    }
                }
                Part::Padding => {}
                Part::Data(within) => {
                    nvme.digest = crc::update(nvme.digest, here);
                    if piece.action == Action::Transform && direction == Direction::Receive {
                        place(work, &header, within, here);
                    }
                }
                Part::DataDigest(within) => {
                    let made = crc::finish(nvme.digest);
                    nvme.data_difference |= exchange(direction, &made[within..], here);
                }
            }
            at += here.len();
            bytes = rest;
        }
    }

    fn finish(&self, work: &mut Work<'_>, _length: u32) -> Verdict {
        let nvme: &NvmeState = work.state.view();
        if nvme.header_difference != 0 {
            Verdict::Lost
        } else if nvme.data_difference != 0 {
            Verdict::Failed
        } else {
            Verdict::Passed
        }
    }

    /// The PDU's header has passed, so data behind a gap has a known place. Its digest is lost all the same.
    fn place_ahead(&self, work: &mut Work<'_>, at: u32, bytes: &[u8]) -> bool {
        let nvme: &NvmeState = work.state.view();
        let Some(header) = header_of(work).filter(|_| usize::from(nvme.header_seen) >= FIELDS.end) else {
            return false;
        };
        let data = header.data();
        let (begin, end) = ((at as usize).max(data.start), (at as usize + bytes.len()).min(data.end));
        if begin >= end {
            return false;
        }
        place(work, &header, begin - data.start, &bytes[begin - at as usize..end - at as usize]);
        work.placed_bytes > 0 && work.unplaced_bytes == 0
    }
}

impl NvmeState {
    fn take_header(&mut self, header: &CommonHeader, at: usize, bytes: &[u8]) {
        self.digest = crc::update(self.digest, bytes);
        for (byte, place) in bytes.iter().zip(at..) {
            if FIELDS.contains(&place) {
                self.fields[place - FIELDS.start] = *byte;
            }
        }
        let seen = at + bytes.len();
        self.header_seen = seen as u8;
        if seen == header.header_bytes() && header.header_digest_bytes() == 0 {
            self.digest = crc::BEGIN;
        }
    }
}

/// A part of a PDU, with the offset within it.
enum Part {
    Header,
    HeaderDigest(usize),
    Padding,
    Data(usize),
    DataDigest(usize),
}

/// The part that the byte at `at` belongs to, and where it ends.
fn part_at(header: &CommonHeader, at: usize) -> (Part, usize) {
    let header_end = header.header_bytes();
    let digest_end = header_end + header.header_digest_bytes();
    let data = header.data();
    if at < header_end {
        (Part::Header, header_end)
    } else if at < digest_end {
        (Part::HeaderDigest(at - header_end), digest_end)
    } else if at < data.start {
        (Part::Padding, data.start)
    } else if at < data.end {
        (Part::Data(at - data.start), data.end)
    } else {
        (Part::DataDigest(at - data.end), header.length as usize)
    }
}

fn header_of(work: &Work<'_>) -> Option<CommonHeader> {
    let nvme: &NvmeState = work.state.view();
    CommonHeader::parse(nvme.agreed(), &work.header)
}

/// Fills a digest in on transmit; on receive returns the bits in which it differs.
fn exchange(direction: Direction, made: &[u8], bytes: &mut [u8]) -> u8 {
    if direction == Direction::Transmit {
        bytes.copy_from_slice(&made[..bytes.len()]);
        return 0;
    }
    made.iter().zip(bytes).fold(0, |difference, (made, came)| difference | (made ^ *came))
}

/// Writes data to its destination, as far as there is one.
fn place(work: &mut Work<'_>, header: &CommonHeader, within: usize, bytes: &[u8]) {
    let nvme: &NvmeState = work.state.view();
    let mut fields = [0; 20];
    fields[FIELDS].copy_from_slice(&nvme.fields);
    let transfer = Transfer::parse(&fields).unwrap_or_default();
    let id = match header.kind {
        PduType::C2hData => command_state(transfer.command),
        PduType::H2cData => transfer_state(transfer.tag),
        _ => return,
    };
    let state = work.placements.get(work.context, id);
    let mut done = 0;
    while done < bytes.len() {
        let offset = u64::from(transfer.offset) + (within + done) as u64;
        let target = u32::try_from(offset).ok().and_then(|offset| state?.locate(offset, (bytes.len() - done) as u32));
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
