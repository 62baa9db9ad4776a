//! Reads capture files record by record, in bounded memory.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nicforge_units::Time;
use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{Block, LegacyPcapBlock, PcapBlockOwned, PcapError, UnknownBlock, create_reader};

use super::error::{CaptureError, CaptureProblem, SkipCounts};
use super::interface::{Interface, fcs_bytes_of};
use super::packet_block::{PACKET_BLOCK, packet_block};
use super::source::Source;

/// Longest record that is read, in bytes: libpcap's own limit (MAXIMUM_SNAPLEN).
pub const RECORD_BYTES_MAX: usize = 262_144;
/// Room for one record with its headers and options.
const BUFFER_BYTES: usize = RECORD_BYTES_MAX + 65_536;
/// Shortest block of a pcapng: its type, and its length twice.
const BLOCK_BYTES_MIN: usize = 12;
/// Most interfaces of one pcapng section.
pub(super) const INTERFACES_MAX: usize = 4_096;
/// The path that means no file.
const STANDARD_INPUT: &str = "-";
/// Longest FCS of a frame, in bytes: that of any link is 2 or 4, and 64 bits is the longest checksum there is.
const FCS_BYTES_MAX: u32 = 8;
/// Latest time of a record after the first: half of what `Time` holds, so that sums fit.
const TIME_MAX_PS: u64 = u64::MAX / 2;

/// One frame of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// When it was captured, since the first record; never before the record before.
    pub time: Time,
    /// The bytes that were captured, as an Ethernet frame without FCS.
    pub bytes: &'a [u8],
    /// Length of the frame when it was on the wire, at least `bytes.len()`.
    pub original_len: u32,
}

impl Record<'_> {
    /// Whether the capture lacks bytes of the frame.
    pub fn is_short(&self) -> bool {
        self.bytes.len() < self.original_len as usize
    }

    /// Puts the whole frame behind what `into` holds, with zeros for the bytes that the capture lacks.
    pub fn fill_up(&self, into: &mut Vec<u8>) {
        let end = into.len() + self.original_len as usize;
        into.extend_from_slice(self.bytes);
        into.resize(end, 0);
    }
}

/// Reads a capture. After an error, every further call says end of file.
pub struct CaptureReader<'r> {
    parser: Box<dyn PcapReaderIterator + Send + 'r>,
    /// Bytes of the block that was handed out last, to be dropped before the next.
    pending: usize,
    interfaces: Vec<Interface>,
    state: RecordState,
    /// Whether bytes that were packed are missing.
    is_cut: Arc<AtomicBool>,
    is_over: bool,
}

/// What is known from record to record.
#[derive(Default)]
struct RecordState {
    frame: Vec<u8>,
    original_len: u32,
    first_ns: Option<i128>,
    time: Time,
    records: u64,
    counts: SkipCounts,
    /// Whether any was handed out.
    yielded: bool,
    /// The link type of a packet that was left out because of it.
    other_link: Option<i32>,
    /// The byte order of this section of a pcapng.
    big_endian: Option<bool>,
}

impl CaptureReader<'static> {
    /// Opens a capture file, packed with gzip or not; `-` is standard input.
    ///
    /// # Errors
    /// It cannot be opened, or does not begin as a capture.
    pub fn open(path: &Path) -> Result<CaptureReader<'static>, CaptureError> {
        if path == Path::new(STANDARD_INPUT) {
            return CaptureReader::new(std::io::stdin());
        }
        let file = File::open(path).map_err(|source| CaptureError::Open { path: path.to_owned(), source })?;
        CaptureReader::new(file)
    }
}

impl<'r> CaptureReader<'r> {
    /// Reads a capture from anywhere; buffers by itself.
    pub fn new(source: impl Read + Send + 'r) -> Result<CaptureReader<'r>, CaptureError> {
        let broken = |problem| CaptureError::Broken { problem, records: 0, offset: 0 };
        let source = Source::new(source).map_err(|_| broken(CaptureProblem::ReadFailed))?;
        let is_cut = source.is_cut();
        let parser = create_reader(BUFFER_BYTES, source).map_err(|error| {
            broken(match error {
                PcapError::ReadError => CaptureProblem::ReadFailed,
                _ => CaptureProblem::NotACapture,
            })
        })?;
        let (interfaces, state) = (Vec::new(), RecordState::default());
        let mut reader = CaptureReader { parser, pending: 0, interfaces, state, is_cut, is_over: false };
        // The header comes first in every capture: so a bad version or link type shows here.
        reader.step().map_err(|problem| reader.broken(problem))?;
        Ok(reader)
    }

    /// The next frame, or `None` at the end of the file. A file that ends within a record behind others ends
    /// there, and the record is counted.
    ///
    /// # Errors
    /// The rest cannot be read.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, CaptureError> {
        loop {
            match self.step() {
                Ok(Step::End) => return self.end().map(|()| None),
                Ok(Step::Nothing) => {}
                Ok(Step::Record) => break,
                Err(CaptureProblem::Truncated) if self.state.records > 0 => {
                    self.is_cut.store(true, Ordering::Relaxed);
                    return self.end().map(|()| None);
                }
                Err(problem) => {
                    self.is_over = true;
                    return Err(self.broken(problem));
                }
            }
        }
        self.state.yielded = true;
        Ok(Some(Record { time: self.state.time, bytes: &self.state.frame, original_len: self.state.original_len }))
    }

    /// Nothing more comes. A capture none of whose interfaces can be read is not an empty one.
    fn end(&mut self) -> Result<(), CaptureError> {
        if std::mem::replace(&mut self.is_over, true) {
            return Ok(());
        }
        self.state.counts.cut_off += u64::from(self.is_cut.load(Ordering::Relaxed));
        match self.state.other_link {
            Some(number) if !self.state.yielded => Err(self.broken(CaptureProblem::UnsupportedLinkType(number))),
            _ => Ok(()),
        }
    }

    /// Records read so far: skipped ones included, one that the end cuts off not.
    pub fn records(&self) -> u64 {
        self.state.records
    }

    /// What was skipped or mended so far.
    pub fn counts(&self) -> SkipCounts {
        self.state.counts
    }

    fn broken(&self, problem: CaptureProblem) -> CaptureError {
        CaptureError::Broken { problem, records: self.state.records, offset: self.parser.consumed() as u64 }
    }

    /// Takes one block.
    fn step(&mut self) -> Result<Step, CaptureProblem> {
        if self.is_over {
            return Ok(Step::End);
        }
        self.parser.consume(self.pending);
        self.pending = 0;
        loop {
            let available = self.parser.data().len();
            // The parser takes some of its word.
            if self.block_bytes().is_some_and(|len| len < BLOCK_BYTES_MIN) {
                return Err(CaptureProblem::Malformed);
            }
            let problem = match self.parser.next() {
                Ok((length, block)) => {
                    self.pending = length;
                    return take_block(block, &mut self.interfaces, &mut self.state);
                }
                Err(PcapError::Eof) => return Ok(Step::End),
                Err(PcapError::Incomplete(_)) => None,
                Err(error) => Some(problem_of(&error)),
            };
            // What wants more than its block has is no matter of the file's end.
            let is_whole = self.block_bytes().is_some_and(|len| len <= available);
            if matches!(problem, None | Some(CaptureProblem::Truncated)) && is_whole {
                return Err(CaptureProblem::Malformed);
            }
            if let Some(problem) = problem {
                return Err(problem);
            }
            let refilled = self.parser.refill().is_ok();
            if !refilled {
                return Err(CaptureProblem::ReadFailed);
            }
            // A full buffer that still does not hold the block: it would never end.
            if self.parser.data().len() == available && !self.parser.reader_exhausted() {
                return Err(CaptureProblem::RecordTooLong);
            }
        }
    }
}

impl CaptureReader<'_> {
    /// How long the next block of a pcapng says that it is.
    fn block_bytes(&self) -> Option<usize> {
        let length = self.parser.data().get(4..8)?.try_into().ok()?;
        let length = if self.state.big_endian? { u32::from_be_bytes(length) } else { u32::from_le_bytes(length) };
        Some(length as usize)
    }
}

enum Step {
    End,
    Nothing,
    Record,
}

fn problem_of<I>(error: &PcapError<I>) -> CaptureProblem {
    match error {
        PcapError::BufferTooSmall => CaptureProblem::RecordTooLong,
        PcapError::UnexpectedEof => CaptureProblem::Truncated,
        PcapError::ReadError => CaptureProblem::ReadFailed,
        _ => CaptureProblem::Malformed,
    }
}

fn interface(interfaces: &[Interface], number: u32) -> Result<Interface, CaptureProblem> {
    let interface = interfaces.get(number as usize).copied();
    interface.ok_or(CaptureProblem::UnknownInterface(number))
}

/// The parser reads the type of what it does not know as little-endian.
fn is_packet_block(block: &UnknownBlock<'_>, state: &RecordState) -> bool {
    let kind = match state.big_endian {
        Some(true) => block.block_type.swap_bytes(),
        _ => block.block_type,
    };
    kind == PACKET_BLOCK
}

fn take_block(
    block: PcapBlockOwned<'_>,
    interfaces: &mut Vec<Interface>,
    state: &mut RecordState,
) -> Result<Step, CaptureProblem> {
    match block {
        PcapBlockOwned::LegacyHeader(header) => interfaces.push(Interface::of_header(&header)?),
        PcapBlockOwned::Legacy(record) => return take_pcap_record(&record, interfaces, state),
        PcapBlockOwned::NG(Block::SectionHeader(section)) => {
            let (major, minor) = (section.major_version, section.minor_version);
            if major != 1 || !matches!(minor, 0 | 2) {
                return Err(CaptureProblem::UnsupportedVersion { major, minor });
            }
            interfaces.clear();
            state.big_endian = Some(section.big_endian());
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
            if interfaces.len() == INTERFACES_MAX {
                return Err(CaptureProblem::TooManyInterfaces);
            }
            interfaces.push(Interface::of_description(&description));
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let mut interface = interface(interfaces, packet.if_id)?;
            interface.fcs_bytes = fcs_bytes_of(&packet).unwrap_or(interface.fcs_bytes);
            let units = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
            let ns = interface.ns(units)?;
            return state.take(&interface, Some(ns), packet.packet_data(), packet.origlen);
        }
        PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
            let interface = interface(interfaces, 0)?;
            // Its length says how long the packet was; the rest is what was captured, and filling up.
            let data = packet.packet_data();
            let captured = &data[..data.len().min(interface.snap_bytes())];
            return state.take(&interface, None, captured, packet.origlen);
        }
        PcapBlockOwned::NG(Block::Unknown(block)) if is_packet_block(&block, state) => {
            let big_endian = state.big_endian == Some(true);
            let packet = packet_block(block.data, big_endian).ok_or(CaptureProblem::Malformed)?;
            let interface = interface(interfaces, packet.interface.into())?;
            let ns = interface.ns(packet.time)?;
            return state.take(&interface, Some(ns), packet.bytes, packet.original_len);
        }
        PcapBlockOwned::NG(Block::Unknown(_)) => state.counts.unknown_blocks += 1,
        PcapBlockOwned::NG(_) => {}
    }
    Ok(Step::Nothing)
}

fn take_pcap_record(
    record: &LegacyPcapBlock<'_>,
    interfaces: &[Interface],
    state: &mut RecordState,
) -> Result<Step, CaptureProblem> {
    let interface = interface(interfaces, 0)?;
    let (ns, in_range) = interface.ns_of_parts(record.ts_sec, record.ts_usec)?;
    state.counts.fraction_out_of_range += u64::from(!in_range);
    state.take(&interface, Some(ns), record.data, record.origlen)
}

impl RecordState {
    /// Takes one packet; without a time stamp it has the time of the one before.
    fn take(
        &mut self,
        interface: &Interface,
        ns: Option<i128>,
        captured: &[u8],
        original_len: u32,
    ) -> Result<Step, CaptureProblem> {
        let link = match interface.link {
            Ok(link) => link,
            Err(number) => {
                // Another interface of the same file may have frames.
                self.records += 1;
                self.counts.other_link_type += 1;
                self.other_link = Some(number);
                return Ok(Step::Nothing);
            }
        };
        if captured.len() > RECORD_BYTES_MAX {
            return Err(CaptureProblem::RecordTooLong);
        }
        if interface.fcs_bytes > FCS_BYTES_MAX {
            return Err(CaptureProblem::FcsLength(interface.fcs_bytes));
        }
        self.records += 1;
        if captured.len() > original_len as usize {
            self.counts.longer_than_original += 1;
            return Ok(Step::Nothing);
        }
        let original_len = original_len.saturating_sub(interface.fcs_bytes);
        let captured = &captured[..captured.len().min(original_len as usize)];
        if captured.is_empty() {
            self.counts.zero_length += 1;
            return Ok(Step::Nothing);
        }
        if !link.to_ethernet(captured, &mut self.frame) {
            self.counts.no_ethernet_form += 1;
            return Ok(Step::Nothing);
        }
        self.counts.captured_short += u64::from(captured.len() < original_len as usize);
        self.original_len = link.ethernet_len(original_len);
        match ns {
            Some(ns) => self.advance(ns),
            None => self.counts.without_time += 1,
        }
        Ok(Step::Record)
    }

    fn advance(&mut self, ns: i128) {
        let since_first_ns = ns - *self.first_ns.get_or_insert(ns);
        let time = match u64::try_from(since_first_ns.saturating_mul(1_000)) {
            Ok(ps) if ps <= TIME_MAX_PS => Time::from_ps(ps),
            Ok(_) => self.out_of_range(),
            Err(_) if since_first_ns > 0 => self.out_of_range(),
            // Before the first record: also before the one before.
            Err(_) => Time::ZERO,
        };
        if since_first_ns < 0 || time < self.time {
            self.counts.time_went_back += 1;
        }
        self.time = self.time.max(time);
    }

    fn out_of_range(&mut self) -> Time {
        self.counts.time_out_of_range += 1;
        Time::from_ps(TIME_MAX_PS)
    }
}
