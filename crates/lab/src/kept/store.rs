//! The folder of finished points.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::{hash_of, program_hash};
use crate::run::PointRun;

/// How the first line of a file begins; the number is that of the form.
const FORM: &str = "nicforge point 1";

/// Why points cannot be kept or found.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// What determines a point cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
    /// A finished point cannot be kept.
    #[error("cannot keep a finished point in {}: {cause}", path.display())]
    Write {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
}

impl KeptError {
    pub(super) fn read(path: &Path, cause: std::io::Error) -> KeptError {
        KeptError::Read { path: path.to_path_buf(), cause }
    }
}

/// What there is of a point.
#[derive(Debug, PartialEq)]
pub enum Found {
    /// The whole point.
    Whole(Box<PointRun>),
    /// Only what another version or build of the program measured.
    OfAnotherProgram,
    /// A file that was cut short or changed.
    Damaged,
    /// Nothing.
    Nothing,
}

/// Finished points of this program in a folder, which the first one makes.
pub struct Store {
    folder: PathBuf,
    program: &'static str,
}

impl Store {
    /// Those in `folder`. What writers that are gone left half done is taken away.
    ///
    /// # Errors
    /// The program's own file cannot be read.
    pub fn open(folder: &Path) -> Result<Store, KeptError> {
        take_parts_away(folder);
        Ok(Store { folder: folder.to_path_buf(), program: program_hash()? })
    }

    /// Where they are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What there is of the point with `key`.
    pub fn find(&self, key: &str) -> Found {
        match std::fs::read_to_string(self.path(key)) {
            Ok(text) => whole(&text).map_or(Found::Damaged, |run| Found::Whole(Box::new(run))),
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => Found::Damaged,
            Err(_) if self.others(key) => Found::OfAnotherProgram,
            Err(_) => Found::Nothing,
        }
    }

    /// Keeps the point with `key`: after this it survives the process, and the system where its disk does. A reader
    /// never sees half of it.
    ///
    /// # Errors
    /// It cannot be written, as when the disk is full. Nothing of it is left then.
    pub fn keep(&self, key: &str, run: &PointRun) -> Result<(), KeptError> {
        // Two threads may keep points with one key.
        static WRITES: AtomicU64 = AtomicU64::new(0);
        let number = WRITES.fetch_add(1, Ordering::Relaxed);
        let part = self.folder.join(format!(".{key}.{number}.{}.part", std::process::id()));
        let written = self.write(&part, key, run);
        if written.is_err() {
            // The cause says more than a second failure would.
            let _ = std::fs::remove_file(&part);
        }
        written.map_err(|cause| KeptError::Write { path: self.folder.clone(), cause })
    }

    fn write(&self, part: &Path, key: &str, run: &PointRun) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        let body = serde_json::to_string(run)?;
        let mut file = File::create(part)?;
        write!(file, "{FORM} {}\n{body}\n", hash_of([body.as_str()]))?;
        file.sync_all()?;
        std::fs::rename(part, self.path(key))
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.{}.json", self.program))
    }

    /// Whether another program kept this point.
    fn others(&self, key: &str) -> bool {
        let names = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut names = names.map(|entry| entry.file_name());
        names.any(|name| name.to_str().is_some_and(|name| name.starts_with(key) && name.ends_with(".json")))
    }
}

/// The point in the text of a file, if all of it is there as it was written.
fn whole(text: &str) -> Option<PointRun> {
    let (header, body) = text.split_once('\n')?;
    let checksum = header.strip_prefix(FORM)?.trim();
    let body = body.strip_suffix('\n')?;
    if hash_of([body]) != checksum {
        return None;
    }
    serde_json::from_str(body).ok()
}

/// Removes parts whose writers are gone; `/proc` says who is there.
fn take_parts_away(folder: &Path) {
    if !Path::new("/proc/self").exists() {
        return;
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let writer = name.strip_suffix(".part").and_then(|rest| rest.rsplit('.').next()?.parse::<u32>().ok());
        if writer.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            // Somebody else may have been quicker.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use nicforge_record::{Metrics, Steadiness};
    use nicforge_units::Time;

    use super::*;

    fn run() -> PointRun {
        let metrics = Metrics { throughput_gbps: 0.1 + 0.2, memory_gb_per_s: Some(1.0 / 3.0), ..Metrics::default() };
        PointRun {
            metrics,
            intervals: Default::default(),
            simulated: Time::from_ps(12_345_678_901_234_567),
            cores: Vec::new(),
            stages: Vec::new(),
            steadiness: Steadiness::default(),
            timeline: Vec::new(),
            switches: Vec::new(),
            trace: None,
        }
    }

    fn only_file(folder: &Path) -> PathBuf {
        let mut entries = std::fs::read_dir(folder).unwrap();
        let path = entries.next().unwrap().unwrap().path();
        assert!(entries.next().is_none());
        path
    }

    #[test]
    fn a_kept_point_is_found_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("points")).unwrap();
        assert_eq!(store.find("k"), Found::Nothing);
        store.keep("k", &run()).unwrap();
        assert_eq!(store.find("k"), Found::Whole(Box::new(run())));
        assert_eq!(store.find("other"), Found::Nothing);
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_recognised() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        store.keep("k", &run()).unwrap();
        let path = only_file(folder.path());
        let bytes = std::fs::read(&path).unwrap();
        for length in 0..bytes.len() {
            std::fs::write(&path, &bytes[..length]).unwrap();
            assert_eq!(store.find("k"), Found::Damaged, "{length} of {} bytes", bytes.len());
        }
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            std::fs::write(&path, changed).unwrap();
            assert_eq!(store.find("k"), Found::Damaged, "byte {place}");
        }
        store.keep("k", &run()).unwrap();
        assert_eq!(store.find("k"), Found::Whole(Box::new(run())));
    }

    #[test]
    fn points_of_another_program_stay_and_are_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        store.keep("k", &run()).unwrap();
        let theirs = folder.path().join("k.0123456789abcdef.json");
        std::fs::rename(only_file(folder.path()), &theirs).unwrap();
        assert_eq!(store.find("k"), Found::OfAnotherProgram);
        store.keep("k", &run()).unwrap();
        assert_eq!(store.find("k"), Found::Whole(Box::new(run())));
        assert!(theirs.is_file());
    }

    #[test]
    fn parts_of_writers_that_are_gone_are_taken_away() {
        let folder = tempfile::tempdir().unwrap();
        let at = |pid: u32| folder.path().join(format!(".k.{pid}.part"));
        // No process has this number: it is above the system's limit.
        let (gone, here) = (at(u32::MAX), at(std::process::id()));
        std::fs::write(&gone, "nicforge").unwrap();
        std::fs::write(&here, "nicforge").unwrap();
        Store::open(folder.path()).unwrap();
        assert_eq!((gone.exists(), here.exists()), (!Path::new("/proc/self").exists(), true));
    }
}
