//! `nicforge capture`: a capture from a traffic source.

use std::path::Path;

use nicforge_lab::job::about_capture;
use nicforge_lab::run::options::Capture;
use nicforge_lab::run::{RunError, traffic_source};
use nicforge_lab::scenario::Assignment;
use nicforge_lab::settings::Settings;
use nicforge_options::{ConfigError, Place};
use nicforge_units::BitRate;
use nicforge_wire::capture::{CaptureWriteError, FileWriter, part_of, write_file};
use nicforge_wire::traffic::{Line, TrafficSource};

use crate::args::CaptureOptions;
use crate::error::CliError;
use crate::input::assignments;
use crate::output::{path_word, print, print_notes};
use crate::outputs::{Made, Named, keep_apart, of_settings};

/// The line that the capture is taken from.
const LINE_GBPS: f64 = 100.0;

/// Writes the capture.
pub fn capture(options: &CaptureOptions) -> Result<(), CliError> {
    let settings = settings(&assignments(&options.overrides)?)?;
    let by = format!("--out {}", options.out.display());
    let outputs = [&options.out, &part_of(&options.out)].map(|path| Named::new(&by, path));
    keep_apart(&of_settings(&settings), &outputs)?;
    let seed = options.overrides.seed.unwrap_or(1);
    let line = Line::ethernet(BitRate::from_gbps(LINE_GBPS));
    let mut source = traffic_source(&settings, line, seed, 0, 1, false).map_err(RunError::from)?;
    if let (TrafficSource::Replay(replay), Some(pcap)) = (&source, &settings.read::<Capture>().pcap) {
        let note = about_capture(Path::new(pcap), &replay.counts());
        print_notes(note.as_slice());
    }
    let mut made = Made::default();
    made.file(&by, &options.out)?;
    let written = write_file(&options.out, |writer| frames(&mut source, writer, options.packets));
    let written = written.map_err(|cause| {
        made.take_back();
        CliError::Run(RunError::Written { path: options.out.clone(), cause })
    })?;
    print(&format!(
        "wrote {}: {written} frames\nnext: nicforge run scenarios/nat-capture.toml --pcap {}\n",
        options.out.display(),
        path_word(&options.out)
    ))
}

/// Settings that describe traffic. What belongs to other modules is said.
fn settings(assignments: &[Assignment]) -> Result<Settings, ConfigError> {
    let mut settings = Settings::default().with("nics", 1);
    assignments.iter().for_each(|set| set.apply(&mut settings));
    let owners = settings.of_traffic();
    let unused = assignments.iter().filter(|set| !owners.iter().any(|owner| owner.declares(set.key.name)));
    let notes: Vec<String> = unused.map(|set| set.somebody_elses(settings.catalogue())).collect();
    print_notes(&notes);
    settings.check_traffic().map_err(|finding| {
        let place = assignments.iter().rev().find(|set| finding.keys.contains(&set.key.name));
        match place {
            Some(set) => ConfigError::new(&set.place, finding.wrong, finding.right),
            None => ConfigError::new(&Place::argument("capture"), finding.wrong, finding.right),
        }
    })?;
    Ok(settings)
}

/// Writes frames until there are as many as asked for, or no more; returns how many.
fn frames(source: &mut TrafficSource, writer: &mut FileWriter, most: u64) -> Result<u64, CaptureWriteError> {
    let mut written = 0;
    while written < most {
        let Some(arrival) = source.next() else {
            break;
        };
        let time = arrival.time;
        writer.write(time, arrival.bytes)?;
        // Nothing delays a frame here: ping-pong goes on at once.
        source.returned(time, time);
        written += 1;
    }
    Ok(written)
}
