//! Writes capture files: Ethernet frames with nanosecond time stamps, little-endian everywhere so
//! that the same frames give the same bytes on every machine.

use std::borrow::Cow;
use std::io::Write;
use std::time::Duration;

use nicforge_units::Time;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::{DataLink, Endianness, PcapError, TsResolution};
use thiserror::Error;

use super::reader::RECORD_BYTES_MAX;

/// Longest comment of a packet; the rest is cut off.
const COMMENT_BYTES_MAX: usize = 60_000;

/// Which format to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureFormat {
    /// Classic pcap with nanoseconds.
    Pcap,
    /// pcapng with nanoseconds.
    PcapNg,
}

/// Why a frame or header could not be written.
#[derive(Debug, Error)]
pub enum CaptureWriteError {
    /// The frame is longer than readers accept.
    #[error("a frame of {0} bytes is longer than a capture may hold ({RECORD_BYTES_MAX} bytes)")]
    FrameTooLong(usize),
    /// The system's reason.
    #[error("cannot write the capture: {0}")]
    Write(#[from] std::io::Error),
    /// The format's own rules.
    #[error("cannot write the capture: {0}")]
    Format(PcapError),
}

impl From<PcapError> for CaptureWriteError {
    fn from(error: PcapError) -> CaptureWriteError {
        match error {
            // It says of every access that bytes could not be read; the system says why.
            PcapError::IoError(cause) => CaptureWriteError::Write(cause),
            other => CaptureWriteError::Format(other),
        }
    }
}

enum Format<W: Write> {
    Pcap(PcapWriter<W>),
    PcapNg(PcapNgWriter<W>),
}

/// Writes a capture. Give it a buffered writer; call [`CaptureWriter::finish`] at the end.
pub struct CaptureWriter<W: Write> {
    format: Format<W>,
}

impl<W: Write> CaptureWriter<W> {
    /// Writes the file's header.
    pub fn new(to: W, format: CaptureFormat) -> Result<CaptureWriter<W>, CaptureWriteError> {
        let format = match format {
            CaptureFormat::Pcap => Format::Pcap(PcapWriter::with_header(
                to,
                PcapHeader {
                    snaplen: RECORD_BYTES_MAX as u32,
                    datalink: DataLink::ETHERNET,
                    ts_resolution: TsResolution::NanoSecond,
                    endianness: Endianness::Little,
                    ..PcapHeader::default()
                },
            )?),
            CaptureFormat::PcapNg => {
                let mut writer = PcapNgWriter::with_endianness(to, Endianness::Little)?;
                writer.write_pcapng_block(InterfaceDescriptionBlock {
                    linktype: DataLink::ETHERNET,
                    snaplen: RECORD_BYTES_MAX as u32,
                    options: vec![InterfaceDescriptionOption::IfTsResol(9)],
                })?;
                Format::PcapNg(writer)
            }
        };
        Ok(CaptureWriter { format })
    }

    /// Writes one frame without FCS; `time` is cut to nanoseconds.
    pub fn write(&mut self, time: Time, frame: &[u8]) -> Result<(), CaptureWriteError> {
        self.write_at(Duration::from_nanos(time.as_ps() / 1_000), frame.len() as u32, frame)
    }

    /// Writes the beginning of a frame of `length` bytes that passed at `timestamp`, since 1970 for instance.
    pub fn write_at(&mut self, timestamp: Duration, length: u32, frame: &[u8]) -> Result<(), CaptureWriteError> {
        self.put(timestamp, length, frame, Vec::new())
    }

    /// Writes one frame as [`write`](Self::write) does, with a comment, which only pcapng keeps: pcap has no room for it.
    pub fn write_commented(&mut self, time: Time, frame: &[u8], comment: &str) -> Result<(), CaptureWriteError> {
        // An option's length has 16 bits.
        let mut end = comment.len().min(COMMENT_BYTES_MAX);
        while !comment.is_char_boundary(end) {
            end -= 1;
        }
        let options = vec![EnhancedPacketOption::Comment(Cow::Borrowed(&comment[..end]))];
        self.put(Duration::from_nanos(time.as_ps() / 1_000), frame.len() as u32, frame, options)
    }

    fn put(
        &mut self,
        timestamp: Duration,
        original_len: u32,
        frame: &[u8],
        options: Vec<EnhancedPacketOption<'_>>,
    ) -> Result<(), CaptureWriteError> {
        if frame.len() > RECORD_BYTES_MAX {
            return Err(CaptureWriteError::FrameTooLong(frame.len()));
        }
        match &mut self.format {
            Format::Pcap(writer) => writer.write_packet(&PcapPacket::new(timestamp, original_len, frame))?,
            Format::PcapNg(writer) => writer.write_pcapng_block(EnhancedPacketBlock {
                interface_id: 0,
                timestamp,
                original_len,
                data: Cow::Borrowed(frame),
                options,
            })?,
        };
        Ok(())
    }

    /// Flushes and gives the writer back.
    pub fn finish(self) -> Result<W, CaptureWriteError> {
        let mut writer = match self.format {
            Format::Pcap(writer) => writer.into_writer(),
            Format::PcapNg(writer) => writer.into_inner(),
        };
        writer.flush()?;
        Ok(writer)
    }
}
