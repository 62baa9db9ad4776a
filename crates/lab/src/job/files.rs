//! Captures and size files that points name, read before the first point runs.

use std::path::Path;

use nicforge_wire::traffic::TrafficSource;

use super::{Job, JobError, at_fault_in, notes};
use crate::run::options::{Capture, Empirical};
use crate::run::{check_replay, line_of, traffic_source};
use crate::scenario::Point;

/// Makes every point's traffic once, so that a broken capture or size file stops us before the
/// first point has run. Returns what is to be said about them.
pub(super) fn try_files(job: &Job) -> Result<Vec<String>, JobError> {
    let (mut tried, mut said) = (Vec::new(), Vec::new());
    for point in &job.points {
        let settings = &point.settings;
        let Capture { pcap, .. } = settings.read();
        let files = (settings.replays(), pcap.clone(), settings.read::<Empirical>().size_file);
        if !settings.is_of_frames() || tried.contains(&files) {
            continue;
        }
        tried.push(files);
        let line = line_of(&job.machine.hardware);
        // Steering does not matter to the files: one queue spares us the search for flows.
        let unsteered = settings.clone().with("target_share", 0.0).with("busiest_to_idlest", 0.0);
        let source = traffic_source(&unsteered, line, job.scenario.seed, 0, 1, true)
            .map_err(|cause| at_fault_in(point, cause.into()))?;
        if let (TrafficSource::Replay(replay), Some(pcap)) = (source, &pcap) {
            let capture = Path::new(pcap);
            said.extend(notes::about(capture, &replay.counts()));
            let (wrong, frames) = (replay.wrong_ip_checksums(), replay.frames());
            let same = |other: &&Point| {
                let theirs = &other.settings;
                theirs.replays() && theirs.read::<Capture>().pcap.as_ref() == Some(pcap)
            };
            for point in job.points.iter().filter(same) {
                let settings = &point.settings;
                check_replay(settings, &replay).map_err(|cause| at_fault_in(point, cause.into()))?;
                let mut found = notes::about_long_replay(capture, &replay, settings, &job.machine);
                found.extend(notes::about_checksums(capture, wrong, frames, settings));
                found.retain(|note| !said.contains(note));
                said.extend(found);
            }
        }
    }
    Ok(said)
}
