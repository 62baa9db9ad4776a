//! Tasks as text, with all that they need: for machines that have none of their files.
//!
//! ```text
//! Job::parcel ──► Parcel: machine file, names of other files, tasks ── to another machine ──► run_packed ──► PointRun
//! ```
//!
//! Whoever sends a parcel sends the files that it names, too, and puts them below a folder that stands for `/`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use nicforge_options::{Allowed, Value, read_text};
use serde::{Deserialize, Serialize};

use super::work::watched;
use super::{Job, JobError, Watcher};
use crate::kept::{Keys, with_included};
use crate::machine::parse_machine;
use crate::run::{PointRun, RunIo};
use crate::settings::{Catalogue, Settings};

/// Tasks of a job, and what they need.
#[derive(Serialize, Deserialize)]
pub struct Parcel {
    /// The machine file.
    pub machine: MachineText,
    /// Other files that the tasks read: absolute paths, without `..`.
    pub files: Vec<PathBuf>,
    /// A text for each task, in their order.
    pub tasks: Vec<String>,
}

/// A machine file.
#[derive(Serialize, Deserialize)]
pub struct MachineText {
    /// Where it was found.
    pub file: PathBuf,
    /// What stands in it.
    pub text: String,
}

/// A task as text.
#[derive(Serialize, Deserialize)]
struct Packed {
    /// Number of its point, from 1.
    number: usize,
    variant: String,
    seed: u64,
    /// What determines its result, as a hash.
    key: String,
    /// Files by their paths in the parcel.
    settings: BTreeMap<String, serde_json::Value>,
}

impl Job {
    /// All tasks, which have `keys`, as text.
    ///
    /// # Errors
    /// The machine file cannot be read again.
    pub fn parcel(&self, keys: &[String]) -> Result<Parcel, JobError> {
        let mut files = BTreeSet::new();
        let mut tasks = Vec::with_capacity(keys.len());
        for (index, (task, key)) in self.tasks().iter().zip(keys).enumerate() {
            let packed = Packed {
                number: self.number_of(index),
                variant: task.point.variant.clone(),
                seed: task.seed,
                key: key.clone(),
                settings: packed(&task.point.settings, &mut files),
            };
            tasks.push(text_of(&packed)?);
        }
        let file = self.machine.file.clone();
        let machine = MachineText { text: read_text(&file)?, file };
        Ok(Parcel { machine, files: files.into_iter().collect(), tasks })
    }
}

impl Parcel {
    /// The parcel as text.
    ///
    /// # Errors
    /// A path is no Unicode.
    pub fn to_text(&self) -> Result<String, JobError> {
        text_of(self)
    }
}

/// Runs `task` of a parcel. The files that it reads lie below `root`.
///
/// # Errors
/// As [`Job::run`]; [`JobError::Parcel`] if the task, or a file, is not what was packed.
pub fn run_packed(
    machine: &MachineText,
    task: &str,
    root: &Path,
    catalogue: &Arc<Catalogue>,
    watcher: &dyn Watcher,
) -> Result<PointRun, JobError> {
    let packed: Packed = serde_json::from_str(task).map_err(|cause| JobError::Parcel(cause.to_string()))?;
    let machine = parse_machine(&machine.text, &machine.file)?;
    let settings = unpacked(packed.settings, root, catalogue)?;
    let key = Keys::default().of_point(&machine, &settings, packed.seed)?;
    if key != packed.key {
        let wrong = "a file has changed since the run began, or the task comes from another version; run it again";
        return Err(JobError::Parcel(wrong.to_owned()));
    }
    let run = watched(&machine, &settings, packed.seed, (0, &RunIo::default()), watcher)?;
    run.map_err(|cause| JobError::Point { number: packed.number, variant: packed.variant, cause: Box::new(cause) })
}

/// The values of `settings`; the files that they name go to `files`.
fn packed(settings: &Settings, files: &mut BTreeSet<PathBuf>) -> BTreeMap<String, serde_json::Value> {
    let pack = |(name, value): (&str, &Value)| {
        let value = match value {
            Value::Text(file) if is_file(settings.catalogue(), name) => {
                files.extend(with_included(file).iter().map(|path| plain_path(path)));
                serde_json::json!(plain_path(Path::new(file)).to_string_lossy())
            }
            other => serde_json::json!(other),
        };
        (name.to_owned(), value)
    };
    settings.iter().map(pack).collect()
}

/// The settings of packed `values`, whose files lie below `root`.
fn unpacked(
    values: BTreeMap<String, serde_json::Value>,
    root: &Path,
    catalogue: &Arc<Catalogue>,
) -> Result<Settings, JobError> {
    let mut settings = Settings::new(catalogue);
    for (name, value) in values {
        let value = match &value {
            serde_json::Value::Bool(flag) => Value::Flag(*flag),
            serde_json::Value::String(text) if is_file(catalogue, &name) => {
                let inside = text.trim_start_matches('/');
                Value::Text(root.join(inside).to_string_lossy().into_owned())
            }
            serde_json::Value::String(text) => Value::Text(text.clone()),
            serde_json::Value::Number(number) => match (number.as_u64(), number.as_f64()) {
                (Some(whole), _) => Value::Integer(whole),
                (None, Some(number)) => Value::Number(number),
                (None, None) => return Err(JobError::Parcel(format!("{name} = {number} is no number of ours"))),
            },
            other => return Err(JobError::Parcel(format!("{name} = {other} is no value"))),
        };
        settings.set(&name, value);
    }
    Ok(settings)
}

fn is_file(catalogue: &Catalogue, name: &str) -> bool {
    catalogue.vocabulary().key(name).is_some_and(|key| matches!(key.allowed, Allowed::File))
}

/// The absolute path, without `.` and `..`.
fn plain_path(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let mut plain = PathBuf::new();
    for part in absolute.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

fn text_of(value: &impl Serialize) -> Result<String, JobError> {
    serde_json::to_string(value).map_err(|cause| JobError::Parcel(cause.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Request;

    struct Silent;

    impl Watcher for Silent {}

    const SCENARIO: &str = r#"
[scenario]
name = "sizes"
machine = "xeon-4216-cx5"
[settings]
app = "nat"
cores = 1
nics = 1
flows = 100
table_entries = 256
packet_sizes = "empirical"
size_file = "../files/sizes.txt"
offered_gbps = 10.5
polling_starts_ms = 0
warmup_ms = 0
window_ms = 0.05
[sweep]
rx_entries = [64, 128]
"#;

    /// A folder with a scenario, the file that it names, and its machine.
    fn scenario() -> (tempfile::TempDir, Job) {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, text).unwrap();
            file
        };
        write("machines/xeon-4216-cx5.toml", include_str!("../../../../machines/xeon-4216-cx5.toml"));
        write("files/sizes.txt", "64 3\n1500 1\n");
        let request = Request { seeds: 2, ..Request::of(&write("scenarios/sizes.toml", SCENARIO)) };
        let job = Job::load(request, &Catalogue::shipped()).unwrap();
        (folder, job)
    }

    #[test]
    fn a_packed_task_gives_the_same_result_elsewhere() {
        let (folder, job) = scenario();
        let runs = job.run(1, &RunIo::default(), None, &Silent).unwrap();
        let text = job.parcel(&job.keys().unwrap()).unwrap().to_text().unwrap();
        let parcel: Parcel = serde_json::from_str(&text).unwrap();
        let files = [plain_path(&folder.path().join("files/sizes.txt"))];
        assert_eq!((parcel.tasks.len(), parcel.files.as_slice()), (4, files.as_slice()));
        drop(folder);

        let root = tempfile::tempdir().unwrap();
        let file = root.path().join(files[0].strip_prefix("/").unwrap());
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "64 3\n1500 1\n").unwrap();
        let run = |index: usize| {
            run_packed(&parcel.machine, &parcel.tasks[index], root.path(), &Catalogue::shipped(), &Silent)
        };
        for (index, here) in runs.iter().enumerate() {
            assert_eq!(run(index).unwrap(), *here);
        }
        std::fs::write(&file, "64 1\n1500 1\n").unwrap();
        assert!(matches!(run(0), Err(JobError::Parcel(_))));
    }

    #[test]
    fn text_that_is_no_task_is_refused() {
        let (_folder, job) = scenario();
        let parcel = job.parcel(&job.keys().unwrap()).unwrap();
        let refused = |task: &str| {
            let run = run_packed(&parcel.machine, task, Path::new(""), &Catalogue::shipped(), &Silent);
            assert!(matches!(run, Err(JobError::Parcel(_))), "{task}");
        };
        refused("");
        refused("{}");
        refused(&parcel.tasks[0][..100]);
        refused(&parcel.tasks[0].replace("10.5", "[]"));
        refused(&parcel.tasks[0].replace("10.5", "-1"));
        refused(&parcel.tasks[0].replace("10.5", "10.25"));
    }

    #[test]
    fn paths_are_absolute_and_stay_below_the_root() {
        assert_eq!(plain_path(Path::new("/a/./b/../c")), Path::new("/a/c"));
        assert_eq!(plain_path(Path::new("/../../c")), Path::new("/c"));
    }
}
