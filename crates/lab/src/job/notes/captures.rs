//! Notes on what a replay leaves out of a capture, or mends in it.

use std::path::Path;

use crate::machine::Machine;
use crate::settings::Settings;
use nicforge_nic::PoolOptions;
use nicforge_record::CHECKSUM_REMEDY;
use nicforge_wire::traffic::{Replay, ReplayCounts};

use super::fifo_of;

/// Frames of a capture that routers drop for their IPv4 header checksum, where `wrong` is that of so many.
pub fn about_checksums(capture: &Path, wrong: usize, frames: usize, settings: &Settings) -> Option<String> {
    let app = settings.catalogue().registry().apps.find(&settings.app());
    (wrong > 0 && app.is_ok_and(|app| app.router)).then(|| {
        format!(
            "{}: {wrong} of {frames} frames have a wrong IPv4 header checksum and will be dropped by {} (ip_checksum): \
             {CHECKSUM_REMEDY}",
            capture.display(),
            settings.app()
        )
    })
}

/// Frames of a capture that no buffer, or not a NIC's FIFO, has room for.
pub fn about_long_replay(capture: &Path, replay: &Replay, settings: &Settings, machine: &Machine) -> Vec<String> {
    let said = |room: usize, what: &str, cause: &str, remedy: &dyn Fn(u32) -> String| {
        let long = replay.longer_than(room);
        let first = long.first?;
        Some(format!(
            "{}: {} of {} frames do not fit {what} of {room} bytes and will be dropped ({cause}), the first is \
             number {first}, the longest has {} bytes; {}",
            capture.display(),
            long.count,
            replay.frames(),
            long.longest,
            remedy(long.longest)
        ))
    };
    let (room, fifo) = (settings.read::<PoolOptions>().buffer_room(), fifo_of(machine, 0).0);
    let of_buffers = |longest| format!("set buffer_bytes to at least {longest}");
    let of_fifo = |longest| fifo_of(machine, longest).1;
    let buffers = said(room, "buffers", "oversized_frame", &of_buffers);
    let fifo = said(fifo, "the NIC's receive FIFO", "longer_than_fifo", &of_fifo);
    buffers.into_iter().chain(fifo).collect()
}

/// One line about `capture`; `None` when all of it is replayed as it is.
pub fn about(capture: &Path, counts: &ReplayCounts) -> Option<String> {
    let note = counts.note()?;
    Some(format!("{}: {note}", capture.display()))
}
