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
mod npu;
mod section;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nicforge_platform::sim::Hardware;
use nicforge_platform::sim::npu::NpuConfig;

use crate::kept::sha256;
use hardware::{AppSection, PlainFile};
use integrated::IntegratedFile;
pub(crate) use integrated::per_cycle;
pub use integrated::{
    ALL_LINES, Bridges, ClockedCache, Integrated, LinkNumbers, MemoryNumbers, NicNumbers, Placement, Wire,
};
pub use limits::{CORES_MAX, nearest_cache_kib};
use nicforge_options::{ConfigError, Place, read_text};
use section::{Named, Section, Source, parse};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// A machine, with the source of each of its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// The file's name without `.toml`.
    pub name: String,
    /// The file, as it was found.
    pub file: PathBuf,
    /// SHA-256 of the file's text, in hexadecimal digits.
    pub hash: String,
    /// One line.
    pub title: String,
    /// What the model runs on.
    pub hardware: Hardware,
    /// Where its NIC may sit, if it is a machine with several such places; `hardware` then has it
    /// in the first one.
    pub integrated: Option<Integrated>,
    /// The processor of its NIC, if that is one.
    pub npu: Option<NpuConfig>,
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

/// The section by which a file says that it has several places for its NICs.
#[derive(Deserialize)]
struct Kind {
    kernel: Option<IgnoredAny>,
}

/// Parses a machine file's text; `file` gives the name and the place of errors.
pub fn parse_machine(text: &str, file: &Path) -> Result<Machine, ConfigError> {
    let mut source = Source::new(text, file);
    let kind: Kind = parse(text, file)?;
    let (hardware, integrated, npu, title, apps) = if kind.kernel.is_some() {
        let parsed: IntegratedFile = parse(text, file)?;
        let integrated = parsed.read(&mut source, &Place::file(file))?;
        (integrated.plain(), Some(integrated), None, parsed.machine.title, parsed.apps)
    } else {
        let parsed: PlainFile = parse(text, file)?;
        let hardware = parsed.read(&mut source)?;
        let npu = parsed.npu.as_ref().map(|npu| npu.read(&mut source)).transpose()?;
        (hardware, None, npu, parsed.machine.title, parsed.apps)
    };
    let work_cycles = work_cycles(&apps, &mut source)?;
    Ok(Machine {
        name: file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        file: file.to_path_buf(),
        hash: sha256(text),
        title: title.unwrap_or_default(),
        hardware,
        integrated,
        npu,
        work_cycles,
        rows: source.into_rows(),
    })
}

/// `[apps.NAME] work_cycles` of every application that the file names.
fn work_cycles(apps: &Named<AppSection>, source: &mut Source<'_>) -> Result<BTreeMap<String, u64>, ConfigError> {
    let shipped = nicforge_apps::Apps::shipped().names();
    let known: Vec<&str> = shipped.into_iter().chain(PROGRAMS).collect();
    let mut cycles = BTreeMap::new();
    for (name, app) in &apps.0 {
        if !known.contains(&name.get_ref().as_str()) {
            return Err(source.unknown("application", name, &known));
        }
        app.take(&format!("apps.{}", name.get_ref()), source)?;
        cycles.insert(name.get_ref().clone(), app.work_cycles.count() as u64);
    }
    Ok(cycles)
}

#[cfg(test)]
mod tests;
