//! Capture files as a port: frames come in from one, and what goes out is written to another.

use std::error::Error;
use std::fs::File;
use std::io::{self, BufWriter};
use std::os::fd::BorrowedFd;
use std::path::Path;

use nicforge_units::Time;
use nicforge_wire::capture::{CaptureFormat, CaptureReader, CaptureWriter, FileWriter};

use super::{Port, PortCounters};
use crate::live::LiveError;

/// Frames from a file, as fast as they are taken, and into a file.
pub struct CapturePort {
    from: Option<CaptureReader<'static>>,
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
            CaptureWriter::new(BufWriter::new(file), CaptureFormat::of(path))
                .map_err(failed(&name(path)))
        };
        Ok(CapturePort {
            from: from.map(reader).transpose()?,
            to: to.map(writer).transpose()?,
            names: [from, to].map(|path| path.map_or_else(String::new, name)),
            counters: PortCounters::default(),
        })
    }
}

impl Port for CapturePort {
    fn receive(&mut self, budget: usize, each: &mut dyn FnMut(&[u8])) -> Result<usize, LiveError> {
        let mut frames = 0;
        while frames < budget
            && let Some(reader) = &mut self.from
        {
            let record = reader.next_record().map_err(failed(&self.names[0]))?;
            match record {
                Some(record) => each(record.bytes),
                None => {
                    self.from = None;
                    break;
                }
            }
            frames += 1;
        }
        self.counters.received += frames as u64;
        Ok(frames)
    }

    fn send(&mut self, frame: &[u8], now: Time) -> Result<(), LiveError> {
        if let Some(writer) = &mut self.to {
            writer.write(now, frame).map_err(failed(&self.names[1]))?;
        }
        self.counters.went_out(frame.len() as u64);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), LiveError> {
        Ok(())
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
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
