//! Machine files: every hardware number with its unit and its source.
//!
//! ```toml
//! [machine]
//! title = "one line"
//! [core]
//! frequency_ghz = { value = 2.1, source = "data sheet" }
//! mlp_streaming = { value = 8, source = "estimate: why", fitted = "c1, c5" }
//! [apps.nat]
//! work_cycles = { value = 900, source = "…" }
//! ```
//!
//! `fitted` names the calibration points that a value was fitted to. No number has a
//! default: a machine file says all of them, and nothing else.

mod hardware;
mod integrated;
mod limits;
mod reader;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nicforge_platform::sim::Hardware;

pub(crate) use integrated::per_cycle;
pub use integrated::{
    ALL_LINES, Bridges, ClockedCache, Integrated, LinkNumbers, MemoryNumbers, NicNumbers, Placement, Wire,
};
pub use limits::{CORES_MAX, nearest_cache_kib};
use nicforge_options::{ConfigError, Place, parse_tree, read_text};
use reader::Reader;

/// A machine, with the source of each of its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// The file's name without `.toml`.
    pub name: String,
    /// The file, as it was found.
    pub file: PathBuf,
    /// One line.
    pub title: String,
    /// What the model runs on.
    pub hardware: Hardware,
    /// Where its NIC may sit, if it is a machine with several such places; `hardware` then has it
    /// in the first one.
    pub integrated: Option<Integrated>,
    /// Work of each application per packet, in cycles, beyond its memory accesses.
    pub work_cycles: BTreeMap<String, u64>,
    /// Every number as it stands in the file, in the order of the model.
    pub rows: Vec<Row>,
}

/// One number of a machine file.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The section, such as `llc` or `apps.nat`.
    pub section: String,
    /// The key, with the unit in its name.
    pub key: &'static str,
    /// Unit; empty for a plain number.
    pub unit: &'static str,
    /// What it is.
    pub doc: &'static str,
    /// The value, in `unit`.
    pub value: f64,
    /// Where it comes from.
    pub source: String,
    /// The calibration points that it was fitted to.
    pub fitted: Option<String>,
}

/// What processes of whole systems run, beside the applications.
const PROGRAMS: [&str; 3] = ["web_server", "web_dynamic", "iscsi_read"];

/// Reads and parses a machine file.
pub fn load_machine(file: &Path) -> Result<Machine, ConfigError> {
    parse_machine(&read_text(file)?, file)
}

/// Parses a machine file's text; `file` gives the name and the place of errors.
pub fn parse_machine(text: &str, file: &Path) -> Result<Machine, ConfigError> {
    let root = parse_tree(text, file)?;
    let mut reader = Reader::new(root.table("a machine file")?, Place::file(file));
    let title = reader.title();
    let integrated = reader.has("kernel").then(|| integrated::read(&mut reader));
    let plain = integrated.as_ref().and_then(Integrated::plain);
    let hardware = plain.unwrap_or_else(|| hardware::read(&mut reader));
    let shipped = nicforge_apps::Apps::shipped().names();
    let apps = shipped.iter().chain(&PROGRAMS);
    let work_cycles = reader.apps(apps.copied().collect());
    let machine = Machine {
        name: file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        file: file.to_path_buf(),
        title,
        hardware,
        integrated,
        work_cycles,
        rows: reader.finish()?,
    };
    Ok(machine)
}

#[cfg(test)]
mod tests;
