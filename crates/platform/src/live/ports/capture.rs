//! Capture files as a port: frames come in from one, and what goes out is written to another.

use std::error::Error;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use nicforge_units::Time;
use nicforge_wire::capture::{CaptureFormat, CaptureReader, CaptureWriter, FileWriter, SkipCounts};
use nicforge_wire::traffic::ReplayCounts;

use super::{Port, PortCounters};
use crate::live::LiveError;

/// Longest frame that comes in, in bytes: a segment that its sender left to the NIC to cut.
const FRAME_BYTES_MOST: u32 = 65_550;

/// Frames from a file, as fast as they are taken, and into a file.
pub struct CapturePort {
    from: Option<CaptureReader<'static>>,
    /// A frame of which the capture has only the beginning.
    filled_up: Vec<u8>,
    read: ReplayCounts,
    to: Option<FileWriter>,
    /// Which capture is read, and which written, as errors name them.
    names: [String; 2],
    counters: PortCounters,
}

fn name(path: &Path) -> String {
    format!("capture {}", path.display())
}

/// The error of the capture called `name`.
fn failed<E: Error + Send + Sync + 'static>(name: &str) -> impl Fn(E) -> LiveError {
    move |error| LiveError::of(name)(io::Error::other(error))
}

impl CapturePort {
    /// Frames come from the capture `from`, and go to a new capture `to`.
    pub fn open(from: Option<&Path>, to: Option<&Path>) -> Result<CapturePort, LiveError> {
        let reader = |path: &Path| CaptureReader::open(path).map_err(failed(&name(path)));
        let writer = |path: &Path| {
            let file = File::create(path).map_err(LiveError::of(name(path)))?;
            CaptureWriter::new(BufWriter::new(file), CaptureFormat::of(path)).map_err(failed(&name(path)))
        };
        Ok(CapturePort {
            from: from.map(reader).transpose()?,
            to: to.map(writer).transpose()?,
            filled_up: Vec::new(),
            read: ReplayCounts::default(),
            names: [from, to].map(|path| path.map_or_else(String::new, name)),
            counters: PortCounters::default(),
        })
    }
}

impl CapturePort {
    /// Hands the next frame to `each`; `None` at the end of the capture.
    fn read_one(
        &mut self,
        reader: &mut CaptureReader<'_>,
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<Option<u64>, LiveError> {
        let record = reader.next_record().map_err(failed(&self.names[0]))?;
        let frames = record.map(|record| {
            if record.original_len > FRAME_BYTES_MOST {
                self.counters.lost("longer_than_any_frame", 1);
                return 0;
            }
            if record.is_short() {
                self.read.padded += 1;
                self.filled_up.clear();
                record.fill_up(&mut self.filled_up);
                each(&self.filled_up);
            } else {
                each(record.bytes)
            }
            1
        });
        let skipped = reader.counts().skipped();
        self.counters.lost("no_frame", skipped - self.read.reader.skipped());
        // Times do not matter here.
        self.read.reader = SkipCounts {
            without_time: 0,
            time_went_back: 0,
            time_out_of_range: 0,
            fraction_out_of_range: 0,
            ..reader.counts()
        };
        Ok(frames)
    }
}

impl Port for CapturePort {
    fn receive(&mut self, budget: usize, each: &mut dyn FnMut(&[u8])) -> Result<usize, LiveError> {
        let mut frames = 0;
        while frames < budget as u64
            && let Some(mut reader) = self.from.take()
        {
            if let Some(more) = self.read_one(&mut reader, each)? {
                frames += more;
                self.from = Some(reader);
            }
        }
        self.counters.received += frames;
        Ok(frames as usize)
    }

    fn take_note(&mut self) -> Option<String> {
        if !self.is_over() {
            return None;
        }
        let note = std::mem::take(&mut self.read).note()?;
        Some(format!("{}: {note}", self.names[0]))
    }

    fn send(&mut self, frame: &[u8], now: Time) -> Result<(), LiveError> {
        if let Some(writer) = &mut self.to {
            writer.write(now, frame).map_err(failed(&self.names[1]))?;
        }
        self.counters.went_out(frame.len() as u64);
        Ok(())
    }

    fn is_patient(&self) -> bool {
        true
    }

    fn is_over(&self) -> bool {
        self.from.is_none()
    }

    fn counters(&self) -> &PortCounters {
        &self.counters
    }

    fn counters_mut(&mut self) -> &mut PortCounters {
        &mut self.counters
    }

    fn finish(&mut self) -> Result<(), LiveError> {
        match self.to.take() {
            Some(writer) => writer.finish().map(|_| ()).map_err(failed(&self.names[1])),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pcap of records (original length, bytes).
    fn pcap(records: &[(u32, &[u8])]) -> Vec<u8> {
        let header = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1];
        let mut file: Vec<u8> = header.into_iter().flat_map(u32::to_le_bytes).collect();
        for &(original, bytes) in records {
            let head = [0, 0, bytes.len() as u32, original];
            file.extend(head.into_iter().flat_map(u32::to_le_bytes));
            file.extend_from_slice(bytes);
        }
        file
    }

    #[test]
    fn truncated_records_are_padded_and_non_frames_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.pcap");
        let records: &[(u32, &[u8])] =
            &[(60, &[1; 60]), (64, &[2; 14]), (0, &[]), (FRAME_BYTES_MOST + 1, &[3; 14]), (61, &[4; 61])];
        std::fs::write(&path, pcap(records)).unwrap();
        let mut port = CapturePort::open(Some(&path), None).unwrap();
        let mut frames = Vec::new();
        while !port.is_over() {
            assert_eq!(port.take_note(), None, "it is not read yet");
            let mut each = |frame: &[u8]| frames.push(frame.to_vec());
            port.receive(1, &mut each).unwrap();
        }
        let short = [&[2; 14][..], &[0; 50]].concat();
        assert_eq!(frames, [vec![1; 60], short, vec![4; 61]]);
        let counters = port.counters();
        assert_eq!(counters.received, 3);
        let lost = [("longer_than_any_frame", 1), ("no_frame", 1)];
        assert_eq!(counters.unreadable, lost);
        let note = port.take_note().unwrap();
        let says = "in.pcap: records left out: 1 without bytes; mended: 1 captured short";
        assert!(note.contains(says), "{note}");
        assert_eq!(port.take_note(), None, "it is told once");
    }
}
