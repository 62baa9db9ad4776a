//! Points that earlier runs finished, and those that this one does.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::kept::{Found, KeptError, Store};
use crate::run::PointRun;

/// The points of a run, as far as they are finished.
pub struct Kept {
    store: Store,
    keys: Vec<String>,
    /// Those that earlier runs finished, until they are taken.
    found: Mutex<Vec<Option<PointRun>>>,
    at_first: usize,
    of_others: usize,
    damaged: usize,
    /// How many there are now.
    count: Arc<AtomicUsize>,
}

impl Kept {
    /// Finds the points of `keys` in `folder`. With `anew` it finds none, so that all of them run.
    ///
    /// # Errors
    /// The program's own file cannot be read.
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

    /// The folder of the points.
    pub fn folder(&self) -> &Path {
        self.store.folder()
    }

    /// What determines each point.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// How many points there are in all.
    pub fn all(&self) -> usize {
        self.keys.len()
    }

    /// Whether earlier runs finished all points.
    pub fn is_whole(&self) -> bool {
        self.at_first == self.keys.len()
    }

    /// How many are finished by now.
    pub fn count(&self) -> &Arc<AtomicUsize> {
        &self.count
    }

    /// A line about what is not run again, and why the rest is; `forces` is what would run it again.
    pub fn what_is_there(&self, forces: &str) -> Option<String> {
        let (count, all, folder) = (self.at_first, self.keys.len(), self.store.folder().display());
        let mut again = Vec::new();
        if self.damaged > 0 {
            let were = if self.damaged == 1 { "was" } else { "were" };
            again.push(format!("{} that {were} cut short or changed", self.damaged));
        }
        if self.of_others > 0 {
            again.push(format!("{} of another version or build", self.of_others));
        }
        let again = if again.is_empty() { String::new() } else { format!("; runs {} again", again.join(" and ")) };
        if count == all && all > 0 {
            Some(format!("all {all} points were finished before, in {folder}; {forces} runs them again"))
        } else if count > 0 || !again.is_empty() {
            Some(format!("continues: {count} of {all} points are finished in {folder}{again}"))
        } else {
            None
        }
    }

    /// The point with number `index`, if an earlier run finished it.
    pub fn take(&self, index: usize) -> Option<PointRun> {
        self.found.lock().ok()?[index].take()
    }

    /// Keeps the point with number `index`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep(&self, index: usize, run: &PointRun) -> Result<(), KeptError> {
        self.store.keep(&self.keys[index], run)?;
        self.count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}
