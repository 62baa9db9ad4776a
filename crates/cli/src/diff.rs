//! `nicforge diff`: two runs beside each other.

use std::path::{Path, PathBuf};

use nicforge_record::Record;
use nicforge_report::{diff_table, from_json, write_diff};

use crate::args::DiffOptions;
use crate::error::CliError;
use crate::output::print;
use crate::outputs::{Made, Named, keep_apart, of_report};
use crate::run::{closing, refuse_other_run};

/// Compares two runs; with `--out` it writes a report of both.
pub fn diff(options: &DiffOptions) -> Result<(), CliError> {
    let files = [record_file(&options.first)?, record_file(&options.second)?];
    let [first, second] = [read(&files[0])?, read(&files[1])?];
    let names = [&options.first, &options.second].map(|path| path.display().to_string());
    let names = [names[0].as_str(), names[1].as_str()];
    let mut text = diff_table(&nicforge_report::diff(&first, &second, names));
    if let Some(folder) = &options.out {
        let inputs = files.map(|file| Named::new("the comparison", &file));
        keep_apart(&inputs, &of_report(folder))?;
        if !options.force {
            refuse_other_run(folder, "")?;
        }
        Made::default().folder_of_report(folder)?;
        let written = write_diff(&first, &second, names, folder)?;
        text += &format!("\n{}", closing(&written, folder));
    }
    print(&text)
}

/// The record of the run that `path` names.
fn record_file(path: &Path) -> Result<PathBuf, CliError> {
    let tries = [path.to_path_buf(), path.join("report.json"), path.join("latest/report.json")];
    let found = tries.into_iter().find(|file| file.is_file());
    found.ok_or_else(|| {
        let wrong = format!("{}: there is no report.json", path.display());
        CliError::Usage(format!("{wrong}; name the folder of a run, such as out/nat-200g/latest"))
    })
}

fn read(file: &Path) -> Result<Record, CliError> {
    let wrong = |cause: String| CliError::Usage(format!("{}: {cause}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|cause| wrong(format!("cannot be read: {cause}")))?;
    from_json(&text).map_err(|cause| wrong(cause.to_string()))
}
