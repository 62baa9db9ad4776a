//! `nicforge tcpdump`: the frames of a service's network, filtered before they are copied.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use nicforge_sockets::observe::capture;
use nicforge_sockets::watch::CaptureHeader;
use nicforge_sockets::watch::frame::Seen;
use nicforge_wire::capture::{CaptureFormat, CaptureWriter};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::{Place, SocketsError};
use crate::error::CliError;
use crate::output::{print, tell};

/// Options of `nicforge tcpdump`.
#[derive(Args)]
pub struct TcpdumpOptions {
    #[command(flatten)]
    place: Place,
    /// Write a capture (pcapng) in place of lines; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// End after so many frames
    #[arg(short, long, value_name = "N")]
    count: Option<u64>,
    /// Bytes of each frame, at most
    #[arg(short, long, value_name = "BYTES", default_value_t = 65_600)]
    snapshot: u32,
    /// Which frames: [src|dst] host, net or port; tcp, udp, icmp, arp, ip, ip6; syn, fin, rst, psh, ack; data; and, or, not, ( )
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
}

/// Where frames go.
enum Sink {
    Lines,
    Capture(CaptureWriter<Box<dyn Write>>),
}

/// Shows or writes frames until the count, the service's end or an interrupt.
pub fn tcpdump(options: &TcpdumpOptions) -> Result<(), CliError> {
    let mut frames =
        capture(&options.place.path(), &options.filter.join(" "), options.snapshot).map_err(SocketsError::Observe)?;
    let mut sink = sink(options)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Ends the wait for the next frame.
        signal_hook::flag::register(signal, stop.clone()).map_err(SocketsError::Wait)?;
    }
    let (mut count, mut lost) = (0, 0);
    while !stop.load(Ordering::Acquire) && options.count.is_none_or(|most| count < most) {
        let Some((header, frame)) = frames.frame() else { break };
        count += 1;
        lost = header.lost;
        show(&mut sink, &header, frame)?;
    }
    if let Sink::Capture(writer) = sink {
        writer.finish().map_err(|error| written(options, error.to_string()))?;
    }
    tell(&format!("{count} frames, {lost} lost because they were not read in time\n"));
    Ok(())
}

fn sink(options: &TcpdumpOptions) -> Result<Sink, CliError> {
    let Some(path) = &options.write else { return Ok(Sink::Lines) };
    let to: Box<dyn Write> = if path.as_os_str() == "-" {
        Box::new(std::io::stdout())
    } else {
        let file = File::create(path).map_err(|cause| CliError::Write { what: path.display().to_string(), cause })?;
        Box::new(BufWriter::new(file))
    };
    let writer = CaptureWriter::new(to, CaptureFormat::PcapNg);
    Ok(Sink::Capture(writer.map_err(|error| written(options, error.to_string()))?))
}

fn written(options: &TcpdumpOptions, cause: String) -> CliError {
    let what = options.write.as_ref().map_or_else(String::new, |path| path.display().to_string());
    CliError::Write { what, cause: std::io::Error::other(cause) }
}

fn show(sink: &mut Sink, header: &CaptureHeader, frame: &[u8]) -> Result<(), CliError> {
    match sink {
        Sink::Lines => print(&format!("{} {}\n", clock(header.time_ns), Seen::parse(frame).line())),
        Sink::Capture(writer) => {
            let time = Duration::from_nanos(header.time_ns);
            let result = writer.write_at(time, header.frame_bytes, frame);
            result.map_err(|error| CliError::Write {
                what: "the capture".into(),
                cause: std::io::Error::other(error.to_string()),
            })
        }
    }
}

/// The time of day in UTC.
pub(super) fn clock(time_ns: u64) -> String {
    let seconds = time_ns / 1_000_000_000 % 86_400;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{:06}", seconds % 60, time_ns / 1000 % 1_000_000)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_time_of_day_is_utc() {
        assert_eq!(super::clock(1_000_000_123_456_789_000), "01:48:43.456789");
    }
}
