//! Points that earlier commands finished, and those that this one does.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use nicforge_lab::kept::{Found, KeptError, Store};
use nicforge_lab::run::PointRun;

use crate::error::CliError;
use crate::output::{print_notes, tell};

/// The points of a run, as far as they are finished.
pub struct Kept {
    store: Store,
    keys: Vec<String>,
    /// Those that earlier commands finished, until they are taken.
    found: Mutex<Vec<Option<PointRun>>>,
    at_first: usize,
    of_others: usize,
    damaged: usize,
    /// How many there are now.
    count: Arc<AtomicUsize>,
}

impl Kept {
    /// Finds the points of `keys` in `folder`. With `anew` it finds none, so that all of them run.
    pub fn open(folder: &Path, keys: Vec<String>, anew: bool) -> Result<Kept, KeptError> {
        let store = Store::open(folder)?;
        let (mut of_others, mut damaged) = (0, 0);
        let mut find = |key: &String| match store.find(key) {
            Found::Whole(run) => Some(*run),
            Found::OfAnotherProgram => {
                of_others += 1;
                None
            }
            Found::Damaged => {
                damaged += 1;
                None
            }
            Found::Nothing => None,
        };
        let found: Vec<Option<PointRun>> = keys.iter().map(|key| if anew { None } else { find(key) }).collect();
        let at_first = found.iter().flatten().count();
        let count = Arc::new(AtomicUsize::new(at_first));
        Ok(Kept { store, keys, found: Mutex::new(found), at_first, of_others, damaged, count })
    }

    /// Whether earlier commands finished all points.
    pub fn is_whole(&self) -> bool {
        self.at_first == self.keys.len()
    }

    /// Says in a line what is not run again, and why the rest is.
    pub fn say_what_is_there(&self) {
        let (count, all, folder) = (self.at_first, self.keys.len(), self.store.folder().display());
        let mut again = Vec::new();
        if self.damaged > 0 {
            again.push(format!("{} that was cut short or changed", self.damaged));
        }
        if self.of_others > 0 {
            again.push(format!("{} of another version or build", self.of_others));
        }
        let again = if again.is_empty() { String::new() } else { format!("; runs {} again", again.join(" and ")) };
        if count == all && all > 0 {
            print_notes(&[format!("all {all} points were finished before, in {folder}; --force runs them again")]);
        } else if count > 0 || !again.is_empty() {
            print_notes(&[format!("continues: {count} of {all} points are finished in {folder}{again}")]);
        }
    }

    /// Says what is kept, when the run ends before its report is written.
    pub fn say_how_to_continue(&self) {
        let count = self.count.load(Ordering::Relaxed);
        if count > 0 {
            tell(&how_to_continue(count, self.keys.len(), self.store.folder()));
        }
    }

    /// The point with number `index`, if an earlier command finished it.
    pub fn take(&self, index: usize) -> Option<PointRun> {
        self.found.lock().ok()?[index].take()
    }

    /// Keeps the point with number `index`.
    pub fn keep(&self, index: usize, run: &PointRun) -> Result<(), CliError> {
        self.store.keep(&self.keys[index], run)?;
        self.count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// The same where a signal ends the process, as it would have without this; for as long as what is returned lives.
    #[cfg(target_os = "linux")]
    pub fn say_what_is_there_on_signals(&self) -> Result<Watch, CliError> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        let signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]);
        let mut signals = signals.map_err(|cause| CliError::Write { what: "the signal handlers".to_owned(), cause })?;
        let (count, all, folder) = (Arc::clone(&self.count), self.keys.len(), self.store.folder().to_path_buf());
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
