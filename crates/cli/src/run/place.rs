//! Where a run's results go: a folder of its own, which no other run replaces.
//!
//! ```text
//! out/<scenario>/points/        finished points of all runs
//! out/<scenario>/<run>/         report.json, points.csv, report.html
//! out/<scenario>/latest         link to the newest run
//! ```
//!
//! `--out DIR` names the run's folder instead; its points are in `DIR/points`.

use std::path::{Path, PathBuf};

use nicforge_report::report_of_another_run;

use crate::error::CliError;
use crate::output::print_notes;

/// Digits of a run's hash that name its folder.
const DIGITS: usize = 8;

/// Folders of a run.
pub struct Place {
    /// Of its report.
    pub folder: PathBuf,
    /// Of finished points.
    pub points: PathBuf,
    /// The link to the newest run; none where the user names the folder.
    latest: Option<PathBuf>,
}

impl Place {
    /// Of the run with hash `run`, of the scenario `name`.
    pub fn of(out: Option<&Path>, name: &str, run: &str) -> Place {
        match out {
            Some(folder) => Place { folder: folder.to_path_buf(), points: folder.join("points"), latest: None },
            None => {
                let all = Path::new("out").join(name);
                let own = &run[..DIGITS.min(run.len())];
                Place { folder: all.join(own), points: all.join("points"), latest: Some(all.join("latest")) }
            }
        }
    }

    /// Of a run that no other repeats, as all on the live ground: the next number in `out/<name>`.
    pub fn of_next(out: Option<&Path>, name: &str) -> Place {
        let all = Path::new("out").join(name);
        let names = std::fs::read_dir(&all).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let last = names.filter_map(|name| name.to_str()?.parse::<u64>().ok()).max();
        Place::of(out, name, &(last.unwrap_or(0) + 1).to_string())
    }

    /// Refuses a folder in which there is the report of another run than `run`.
    pub fn refuse_other_run(&self, run: &str) -> Result<(), CliError> {
        refuse_other_run(&self.folder, run)
    }

    /// Points the link to this run. Returns the path under which its report is found from now on.
    pub fn link_latest(&self) -> PathBuf {
        let linked = self.latest.as_ref().filter(|latest| link(latest, &self.folder));
        linked.unwrap_or(&self.folder).clone()
    }
}

/// Refuses `folder` if there is a report in it that is not that of `run`; any if `run` is empty.
pub fn refuse_other_run(folder: &Path, run: &str) -> Result<(), CliError> {
    let Some(there) = report_of_another_run(folder, run) else {
        return Ok(());
    };
    Err(CliError::Usage(format!(
        "--out {}: {} is of another run; name another folder, or replace it by --force",
        folder.display(),
        there.display()
    )))
}

#[cfg(unix)]
fn link(latest: &Path, folder: &Path) -> bool {
    let Some(target) = folder.file_name() else {
        return false;
    };
    let in_the_way = latest.symlink_metadata().is_ok_and(|meta| !meta.is_symlink());
    let part = latest.with_file_name(format!(".latest.{}.part", std::process::id()));
    let made = if in_the_way {
        Err(std::io::Error::other("there is something else of that name"))
    } else {
        std::os::unix::fs::symlink(target, &part).and_then(|()| std::fs::rename(&part, latest))
    };
    if let Err(cause) = &made {
        // The report is whole, and its path is printed.
        let _ = std::fs::remove_file(&part);
        print_notes(&[format!("{} does not lead to this run: {cause}", latest.display())]);
    }
    made.is_ok()
}

#[cfg(not(unix))]
fn link(_: &Path, _: &Path) -> bool {
    false
}
