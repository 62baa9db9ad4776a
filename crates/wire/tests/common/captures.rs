//! What is read of captures that tests make.

use nicforge_wire::capture::{CaptureError, CaptureProblem, CaptureReader};

/// The times of its frames, in nanoseconds.
pub fn times(file: &[u8]) -> Vec<u64> {
    let mut reader = CaptureReader::new(file).unwrap();
    let mut times = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        times.push(record.time.as_ps() / 1_000);
    }
    times
}

/// What ends the reading of it.
pub fn problem(file: &[u8]) -> CaptureProblem {
    let read = |mut reader: CaptureReader<'_>| loop {
        match reader.next_record() {
            Ok(record) => assert!(record.is_some(), "read to its end"),
            Err(error) => return error,
        }
    };
    let error = CaptureReader::new(file).map_or_else(|error| error, read);
    let CaptureError::Broken { problem, .. } = error else {
        panic!("{error}");
    };
    problem
}

/// Bytes that were captured of its frames, and that they had.
pub fn lengths(file: &[u8]) -> Vec<(usize, u32)> {
    let mut reader = CaptureReader::new(file).unwrap();
    let mut lengths = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        lengths.push((record.bytes.len(), record.original_len));
    }
    lengths
}
