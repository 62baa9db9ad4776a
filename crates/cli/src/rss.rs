//! `nicforge rss`: which hash and which queue RSS gives a frame.

use std::path::Path;

use nicforge_wire::capture::CaptureReader;
use nicforge_wire::rss::{IndirectionTable, Toeplitz};
use nicforge_wire::{FrameSummary, IpAddresses, parse_headers};

use crate::args::RssOptions;
use crate::error::CliError;
use crate::output::{columns, print};

/// Prints a row for each frame.
pub fn rss(options: &RssOptions) -> Result<(), CliError> {
    let (rss, table) = (Toeplitz::new(&options.key), IndirectionTable::spread_over(options.queues));
    let mut rows = vec![["frame", "hashed", "hash", "entry", "queue"].map(str::to_owned).to_vec()];
    let mut row = |bytes: &[u8], frame_len: usize| {
        let number = rows.len().to_string();
        rows.push(match parse_headers(bytes, frame_len) {
            Ok(summary) => {
                let hash = rss.hash(&summary);
                let (entry, queue) = (IndirectionTable::entry(hash), table.queue(hash));
                let hashed = hashed(&summary).to_owned();
                vec![number, hashed, format!("{hash:#010x}"), entry.to_string(), queue.to_string()]
            }
            Err(cause) => vec![number, format!("no: {cause}"), "-".into(), "-".into(), "-".into()],
        });
    };
    let path = Path::new(&options.frame);
    if let Some(frame) = frame_of_digits(&options.frame).filter(|_| !path.exists()) {
        row(&frame, frame.len());
    } else {
        let failed = |cause: &dyn std::fmt::Display| {
            let right = "name a capture, or write a frame as hexadecimal digits";
            CliError::Usage(format!("{}: {cause}; {right}", options.frame))
        };
        let mut reader = CaptureReader::open(path).map_err(|cause| failed(&cause))?;
        while let Some(record) = reader.next_record().map_err(|cause| failed(&cause))? {
            row(record.bytes, record.original_len as usize);
        }
    }
    print(&columns(&rows))
}

/// The fields that the hash covers.
fn hashed(summary: &FrameSummary) -> &'static str {
    match summary.addresses {
        IpAddresses::None => "nothing",
        _ if summary.has_ports() && !summary.is_fragment() => "addresses, ports",
        _ => "addresses",
    }
}

/// The bytes that pairs of hexadecimal digits stand for; `None` if `text` is something else.
fn frame_of_digits(text: &str) -> Option<Vec<u8>> {
    if text.is_empty() || !text.len().is_multiple_of(2) || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}
