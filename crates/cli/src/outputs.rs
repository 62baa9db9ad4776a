//! What a command writes: none of what it reads, nothing twice, and where it can be written. All of
//! that is found out before anything runs.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use nicforge_lab::settings::Settings;
use nicforge_options::{Allowed, Value};
use nicforge_report::part_paths;

use crate::error::CliError;

/// A file, and who names it.
#[derive(PartialEq)]
pub struct Named {
    /// Such as `--pcap-out x.pcap`.
    by: String,
    path: PathBuf,
}

impl Named {
    /// The file `path`, which `by` names.
    pub fn new(by: impl Into<String>, path: &Path) -> Named {
        Named { by: by.into(), path: path.to_path_buf() }
    }
}

/// Every file that `settings` name.
pub fn of_settings(settings: &Settings) -> Vec<Named> {
    let keys = settings.catalogue().vocabulary().keys().into_iter();
    let keys = keys.filter(|key| matches!(key.allowed, Allowed::File));
    let named = keys.filter_map(|key| match settings.value(key)? {
        Value::Text(file) => Some(Named::new(format!("`{}`", key.name), Path::new(&file))),
        _ => None,
    });
    named.collect()
}

/// Every file that a report in `folder` consists of, and those that it is written to first.
pub fn of_report(folder: &Path) -> Vec<Named> {
    let by = format!("--out {}", folder.display());
    let paths = part_paths(folder).into_iter();
    paths.flat_map(|(part, path)| [part, path]).map(|path| Named::new(&by, &path)).collect()
}

/// Refuses `outputs` that are files of `inputs`, or of each other, by whatever name or link.
pub fn keep_apart(inputs: &[Named], outputs: &[Named]) -> Result<(), CliError> {
    let mut taken: Vec<(Identity, &Named, &str)> = Vec::new();
    for input in inputs {
        taken.push((Identity::of(&input.path), input, "reads"));
    }
    for output in outputs {
        let identity = Identity::of(&output.path);
        let other = taken.iter().find(|(other, named, _)| *other == identity && named.by != output.by);
        if let Some((_, other, does)) = other {
            return Err(CliError::Usage(format!(
                "{}: {} is the file that {} {does}; name another",
                output.by,
                output.path.display(),
                other.by
            )));
        }
        taken.push((identity, output, "writes"));
    }
    Ok(())
}

/// Which file a path means, however it is spelled.
#[derive(PartialEq)]
enum Identity {
    /// One that is there: device and number, so that links of both kinds are seen through.
    #[cfg(unix)]
    There(u64, u64),
    /// One that is not there yet, below folders that are.
    Path(PathBuf),
}

impl Identity {
    fn of(path: &Path) -> Identity {
        #[cfg(unix)]
        if let Ok(meta) = std::fs::metadata(path) {
            use std::os::unix::fs::MetadataExt;
            return Identity::There(meta.dev(), meta.ino());
        }
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        let known = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
        Identity::Path(match known {
            Some((above, canonical)) => match path.strip_prefix(above) {
                Ok(rest) => canonical.join(rest),
                Err(_) => canonical,
            },
            None => path,
        })
    }
}

/// Folders that were made for a command's outputs.
#[derive(Default)]
pub struct Made(Vec<PathBuf>);

impl Made {
    /// Makes `folder`, which `--out` names, and tries whether a report can be put into it.
    pub fn folder_of_report(&mut self, folder: &Path) -> Result<(), CliError> {
        let by = format!("--out {}", folder.display());
        if folder.exists() && !folder.is_dir() {
            return Err(CliError::Usage(format!("{by}: is a file; name a folder")));
        }
        for (part, path) in part_paths(folder) {
            if let Some(path) = [&part, &path].into_iter().find(|path| path.is_dir()) {
                let wrong = format!("{} is a folder, where a file is to be", path.display());
                let right = "take it away, or name another folder";
                return Err(CliError::Usage(format!("{by}: {wrong}; {right}")));
            }
            // What is left of an earlier run is written over; what it had finished is replaced.
            if part.is_file() {
                try_old(&part).map_err(|cause| {
                    let right = format!("take {} away, or name another folder", part.display());
                    self.refuse(&by, &cause, &right)
                })?;
            }
        }
        let tried = self.make(folder).and_then(|()| try_new(&folder.join(format!(".{}.part", std::process::id()))));
        tried.map_err(|cause| self.refuse(&by, &cause, "name a folder that can be written"))
    }

    /// Makes the folder of `file`, which `by` names, and tries whether it can be written.
    pub fn file(&mut self, by: &str, file: &Path) -> Result<(), CliError> {
        if file.is_dir() {
            return Err(CliError::Usage(format!("{by}: is a folder; name a file")));
        }
        let tried = match std::fs::metadata(file) {
            Ok(meta) if meta.is_file() => try_old(file),
            // A pipe or a device: opening one may wait, or mean something.
            Ok(_) => Ok(()),
            Err(_) => self.make(file.parent().unwrap_or(Path::new(""))).and_then(|()| try_new(file)),
        };
        tried.map_err(|cause| self.refuse(by, &cause, "name a file that can be written"))
    }

    /// Takes back the folders that are still empty, after a failure.
    pub fn take_back(&mut self) {
        for folder in self.0.drain(..).rev() {
            // What somebody has put something into stays.
            let _ = std::fs::remove_dir(folder);
        }
    }

    fn refuse(&mut self, by: &str, cause: &io::Error, right: &str) -> CliError {
        self.take_back();
        CliError::Usage(format!("{by}: cannot be written: {cause}; {right}"))
    }

    fn make(&mut self, folder: &Path) -> io::Result<()> {
        let missing: Vec<&Path> =
            folder.ancestors().take_while(|above| !above.as_os_str().is_empty() && !above.is_dir()).collect();
        for folder in missing.into_iter().rev() {
            match std::fs::create_dir(folder) {
                Ok(()) => self.0.push(folder.to_path_buf()),
                // Somebody else was quicker.
                Err(_) if folder.is_dir() => {}
                Err(cause) => return Err(cause),
            }
        }
        Ok(())
    }
}

/// Opens the file, and leaves it as it is.
fn try_old(file: &Path) -> io::Result<()> {
    OpenOptions::new().append(true).open(file).map(drop)
}

/// Makes the file and takes it away again.
fn try_new(file: &Path) -> io::Result<()> {
    File::create_new(file)?;
    std::fs::remove_file(file)
}
