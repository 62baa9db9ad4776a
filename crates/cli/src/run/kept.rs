//! What a command says of points that are finished.

use std::path::Path;
use std::sync::atomic::Ordering;

use nicforge_lab::job::Kept;

#[cfg(target_os = "linux")]
use crate::error::CliError;
use crate::output::{print_notes, tell};

/// Says in a line what is not run again, and why the rest is.
pub fn say_what_is_there(kept: &Kept) {
    print_notes(kept.what_is_there("--force").as_slice());
}

/// Says what is kept, when the run ends before its report is written.
pub fn say_how_to_continue(kept: &Kept) {
    let count = kept.count().load(Ordering::Relaxed);
    if count > 0 {
        tell(&how_to_continue(count, kept.all(), kept.folder()));
    }
}

/// The same where a signal ends the process, as it would have without this; for as long as what is returned lives.
#[cfg(target_os = "linux")]
pub fn say_what_is_there_on_signals(kept: &Kept) -> Result<Watch, CliError> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]);
    let mut signals = signals.map_err(|cause| CliError::Write { what: "the signal handlers".to_owned(), cause })?;
    let (count, all, folder) = (std::sync::Arc::clone(kept.count()), kept.all(), kept.folder().to_path_buf());
    let watch = Watch(signals.handle());
    std::thread::spawn(move || {
        for signal in signals.forever() {
            tell(&format!("\n{}", how_to_continue(count.load(Ordering::Relaxed), all, &folder)));
            // It ends the process; if it could not, the next signal would try again.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    });
    Ok(watch)
}

/// Signals say what is kept until this is dropped, so that a command of several runs speaks of the one under way.
#[cfg(target_os = "linux")]
pub struct Watch(signal_hook::iterator::Handle);

#[cfg(target_os = "linux")]
impl Drop for Watch {
    fn drop(&mut self) {
        self.0.close();
    }
}

fn how_to_continue(count: usize, all: usize, folder: &Path) -> String {
    match count {
        0 => "stopped: no point was finished\n".to_owned(),
        _ => format!("stopped: {count} of {all} points are kept in {}; the same command continues\n", folder.display()),
    }
}
