//! Notes on what a replay leaves out of a capture, or mends in it.

use std::path::Path;

use nicforge_lab::settings::Settings;
use nicforge_wire::traffic::{Replay, ReplayCounts};

/// Frames of a capture that no buffer has room for.
pub fn about_long_replay(capture: &Path, replay: &Replay, settings: &Settings) -> Option<String> {
    let long = replay.longer_than(settings.buffer_bytes);
    let first = long.first.filter(|_| !settings.splits_frames())?;
    Some(format!(
        "{}: {} of {} frames do not fit buffers of {} bytes and will be dropped (oversized_frame), the first is \
         number {first}, the longest has {} bytes; set buffer_bytes to at least {}",
        capture.display(),
        long.count,
        replay.frames(),
        settings.buffer_bytes,
        long.longest,
        long.longest
    ))
}

/// One line about `capture`; `None` when all of it is replayed as it is.
pub fn about(capture: &Path, counts: &ReplayCounts) -> Option<String> {
    let reader = &counts.reader;
    let mended = [
        (counts.padded, "captured short, filled up with zeros"),
        (reader.time_went_back, "from before the one before them"),
        (
            reader.time_out_of_range,
            "more than 106 days after the first",
        ),
        (reader.fraction_out_of_range, "with a broken time stamp"),
    ];
    let mended = mended.map(|(count, cause)| (count, cause.to_string()));
    let parts = [("left out", counts.left_out()), ("mended", mended.to_vec())];
    let parts: Vec<String> = parts
        .into_iter()
        .filter_map(|(what, causes)| list(what, &causes))
        .collect();
    (!parts.is_empty()).then(|| format!("{}: records {}", capture.display(), parts.join("; ")))
}

fn list(what: &str, causes: &[(u64, String)]) -> Option<String> {
    let causes = causes.iter().filter(|(count, _)| *count > 0);
    let causes: Vec<String> = causes
        .map(|(count, cause)| format!("{count} {cause}"))
        .collect();
    (!causes.is_empty()).then(|| format!("{what}: {}", causes.join(", ")))
}
        (
            reader.without_time,
            "without a time stamp, sent with the one before them",
        ),
