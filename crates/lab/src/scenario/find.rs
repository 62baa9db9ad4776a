//! Where the machine of a scenario is.

use std::path::{Path, PathBuf};

use nicforge_options::{ConfigError, nearest};

use super::Scenario;

impl Scenario {
    /// The machine's file: `machines/<name>.toml` beside the scenario file, in a folder
    /// above it, or in the working directory.
    pub fn machine_file(&self) -> Result<PathBuf, ConfigError> {
        let file_name = format!("{}.toml", self.machine);
        let folders = machine_folders(&self.file);
        let mut known: Vec<String> = Vec::new();
        for folder in &folders {
            let file = folder.join(&file_name);
            if file.is_file() {
                return Ok(file);
            }
            // One folder may be seen by two paths, and two folders may have a name in common.
            for stem in toml_stems(folder) {
                if !known.contains(&stem) {
                    known.push(stem);
                }
            }
        }
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let right = match (nearest(&self.machine, &known), known.is_empty()) {
            (Some(near), _) => format!("did you mean \"{near}\"?"),
            (None, false) => format!("known: {}", known.join(", ")),
            (None, true) => "name a machine file by --machine FILE".to_string(),
        };
        let file = std::path::absolute(&self.file).unwrap_or_default();
        let folder = file.parent().unwrap_or(&file).display();
        let wrong = format!(
            "there is no machine file machines/{file_name} in {folder}, in a folder above it or in the \
             working directory"
        );
        Err(ConfigError::new(&self.machine_place, wrong, right))
    }
}

/// Every `machines` folder that a scenario in `file` sees, nearest first.
fn machine_folders(file: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    let above = file.ancestors().skip(1).map(Path::to_path_buf);
    // A relative path ends at the working directory; what lies above it counts too.
    let absolute = std::path::absolute(file).unwrap_or_default();
    let further = absolute.ancestors().skip(1).map(Path::to_path_buf);
    for folder in above.chain(further).chain([PathBuf::new()]) {
        let machines = folder.join("machines");
        if machines.is_dir() && !folders.contains(&machines) {
            folders.push(machines);
        }
    }
    folders
}

fn toml_stems(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut stems: Vec<String> =
        entries.filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".toml")?.to_string())).collect();
    stems.sort();
    stems
}
