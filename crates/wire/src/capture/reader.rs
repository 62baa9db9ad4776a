//! Reads capture files record by record, in bounded memory.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use nicforge_units::Time;
use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{
    Block, InterfaceDescriptionBlock, LegacyPcapBlock, PcapBlockOwned, PcapError, PcapHeader,
    create_reader,
};

use super::error::{CaptureError, CaptureProblem, SkipCounts};
use super::link::LinkType;

/// Longest record that is read, in bytes: libpcap's own limit (MAXIMUM_SNAPLEN).
pub const RECORD_BYTES_MAX: usize = 262_144;
/// Room for one record with its headers and options.
const BUFFER_BYTES: usize = RECORD_BYTES_MAX + 65_536;
/// Most interfaces of one pcapng section.
pub(super) const INTERFACES_MAX: usize = 4_096;
/// Bits of a pcap header's link type field that must be zero.
const LINK_TYPE_RESERVED: u32 = 0x03ff_0000;
/// The bit of a pcap header's link type field that says that its highest four are the length of the FCS.
const FCS_LENGTH_KNOWN: u32 = 1 << 26;
const NS_PER_SECOND: i128 = 1_000_000_000;
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

/// How packets of one interface are to be read.
#[derive(Clone, Copy, Debug)]
struct Interface {
    /// The link type, or the number of one that we do not read.
    link: Result<LinkType, i32>,
    /// Bytes of FCS at the end of each packet.
    fcs_bytes: u32,
    /// Time stamp units per second; `None` when the file says something absurd.
    units_per_second: Option<u64>,
    /// Seconds to add to time stamps.
    offset_seconds: i64,
}

/// Reads a capture. After an error, every further call says end of file.
pub struct CaptureReader<'r> {
    parser: Box<dyn PcapReaderIterator + Send + 'r>,
    /// Bytes of the block that was handed out last, to be dropped before the next.
    pending: usize,
    interfaces: Vec<Interface>,
    state: RecordState,
    failed: bool,
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
}

impl CaptureReader<'static> {
    /// Opens a capture file.
    pub fn open(path: &Path) -> Result<CaptureReader<'static>, CaptureError> {
        let file = File::open(path).map_err(|source| CaptureError::Open {
            path: path.to_owned(),
            source,
        })?;
        CaptureReader::new(file)
    }
}

impl<'r> CaptureReader<'r> {
    /// Reads a capture from anywhere; buffers by itself.
    pub fn new(source: impl Read + Send + 'r) -> Result<CaptureReader<'r>, CaptureError> {
        let parser = create_reader(BUFFER_BYTES, FillingReader(source)).map_err(|error| {
            let problem = match error {
                PcapError::ReadError => CaptureProblem::ReadFailed,
                _ => CaptureProblem::NotACapture,
            };
            CaptureError::Broken {
                problem,
                records: 0,
                offset: 0,
            }
        })?;
        let mut reader = CaptureReader {
            parser,
            pending: 0,
            interfaces: Vec::new(),
            state: RecordState::default(),
            failed: false,
        };
        // The header comes first in every capture: so a bad version or link type shows here.
        reader.step().map_err(|problem| reader.broken(problem))?;
        Ok(reader)
    }

    /// The next frame, or `None` at the end of the file.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, CaptureError> {
        loop {
            match self.step() {
                Ok(Step::End) => return Ok(None),
                Ok(Step::Nothing) => {}
                Ok(Step::Record) => break,
                Err(problem) => {
                    self.failed = true;
                    return Err(self.broken(problem));
                }
            }
        }
        Ok(Some(Record {
            time: self.state.time,
            bytes: &self.state.frame,
            original_len: self.state.original_len,
        }))
    }

    /// Records read so far, skipped ones included.
    pub fn records(&self) -> u64 {
        self.state.records
    }

    /// What was skipped or mended so far.
    pub fn counts(&self) -> SkipCounts {
        self.state.counts
    }

    fn broken(&self, problem: CaptureProblem) -> CaptureError {
        CaptureError::Broken {
            problem,
            records: self.state.records,
            offset: self.parser.consumed() as u64,
        }
    }

    /// Takes one block.
    fn step(&mut self) -> Result<Step, CaptureProblem> {
        if self.failed {
            return Ok(Step::End);
        }
        self.parser.consume(self.pending);
        self.pending = 0;
        loop {
            let available = self.parser.data().len();
            match self.parser.next() {
                Ok((length, block)) => {
                    self.pending = length;
                    return take_block(block, &mut self.interfaces, &mut self.state);
                }
                Err(PcapError::Eof) => return Ok(Step::End),
                Err(PcapError::Incomplete(_)) => {}
                Err(error) => return Err(problem_of(&error)),
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

fn take_block(
    block: PcapBlockOwned<'_>,
    interfaces: &mut Vec<Interface>,
    state: &mut RecordState,
) -> Result<Step, CaptureProblem> {
    match block {
        PcapBlockOwned::LegacyHeader(header) => interfaces.push(interface_of_header(&header)?),
        PcapBlockOwned::Legacy(record) => return take_pcap_record(&record, interfaces, state),
        PcapBlockOwned::NG(Block::SectionHeader(section)) => {
            let (major, minor) = (section.major_version, section.minor_version);
            if major != 1 || !matches!(minor, 0 | 2) {
                return Err(CaptureProblem::UnsupportedVersion { major, minor });
            }
            interfaces.clear();
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
            if interfaces.len() == INTERFACES_MAX {
                return Err(CaptureProblem::TooManyInterfaces);
            }
            interfaces.push(interface_of_description(&description));
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let interface = *interfaces
                .get(packet.if_id as usize)
                .ok_or(CaptureProblem::UnknownInterface(packet.if_id))?;
            let units = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
            let ns = interface.ns(units).ok_or(CaptureProblem::Malformed)?;
            return state.take(&interface, Some(ns), packet.packet_data(), packet.origlen);
        }
        PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
            let interface = *interfaces
                .first()
                .ok_or(CaptureProblem::UnknownInterface(0))?;
            return state.take(&interface, None, packet.packet_data(), packet.origlen);
        }
        PcapBlockOwned::NG(Block::Unknown(_)) => state.counts.unknown_blocks += 1,
        PcapBlockOwned::NG(_) => {}
    }
    Ok(Step::Nothing)
}

fn interface_of_header(header: &PcapHeader) -> Result<Interface, CaptureProblem> {
    if header.version_major != 2 {
        return Err(CaptureProblem::UnsupportedVersion {
            major: header.version_major,
            minor: header.version_minor,
        });
    }
    // The link type is the lower half; the other one says how long the FCS is, in words of 16 bits
    // (draft-ietf-opsawg-pcap, section 4). Where its reserved bits are set, libpcap reads nothing either.
    let field = header.network.0 as u32;
    let number = match field & LINK_TYPE_RESERVED {
        0 => (field & 0xffff) as i32,
        _ => header.network.0,
    };
    let link = LinkType::from_number(number).ok_or(CaptureProblem::UnsupportedLinkType(number))?;
    let fcs_bytes = match field & FCS_LENGTH_KNOWN {
        0 => 0,
        _ => (field >> 28) * 2,
    };
    Ok(Interface {
        link: Ok(link),
        fcs_bytes,
        units_per_second: Some(if header.is_nanosecond_precision() {
            1_000_000_000
        } else {
            1_000_000
        }),
        offset_seconds: 0,
    })
}

fn interface_of_description(description: &InterfaceDescriptionBlock<'_>) -> Interface {
    let number = description.linktype.0;
    Interface {
        link: LinkType::from_number(number).ok_or(number),
        fcs_bytes: 0,
        units_per_second: description.ts_resolution().filter(|&units| units > 0),
        offset_seconds: description.ts_offset(),
    }
}

fn take_pcap_record(
    record: &LegacyPcapBlock<'_>,
    interfaces: &[Interface],
    state: &mut RecordState,
) -> Result<Step, CaptureProblem> {
    let interface = *interfaces
        .first()
        .ok_or(CaptureProblem::UnknownInterface(0))?;
    let units_per_second = interface
        .units_per_second
        .ok_or(CaptureProblem::Malformed)?;
    let mut fraction = u64::from(record.ts_usec);
    if fraction >= units_per_second {
        state.counts.fraction_out_of_range += 1;
        fraction = units_per_second - 1;
    }
    let units = u64::from(record.ts_sec) * units_per_second + fraction;
    let ns = interface.ns(units).ok_or(CaptureProblem::Malformed)?;
    state.take(&interface, Some(ns), record.data, record.origlen)
}

impl Interface {
    /// A time stamp as nanoseconds since 1970.
    fn ns(&self, units: u64) -> Option<i128> {
        let per_second = i128::from(self.units_per_second?);
        let ns = i128::from(units) * NS_PER_SECOND / per_second;
        Some(ns + i128::from(self.offset_seconds) * NS_PER_SECOND)
    }
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
        let link = interface
            .link
            .map_err(CaptureProblem::UnsupportedLinkType)?;
        if captured.len() > RECORD_BYTES_MAX {
            return Err(CaptureProblem::RecordTooLong);
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
        if let Some(ns) = ns {
            self.advance(ns);
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

/// Fills as much of the buffer as the source can give, so that a short first read (of a pipe)
/// does not look like a short file.
struct FillingReader<R>(R);

impl<R: Read> Read for FillingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.0.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(length) => filled += length,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}
