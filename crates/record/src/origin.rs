//! Where a record comes from: the run, the program and the machine file; and values of the user's own beside it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Which run a record is of. Two records with one `run` hold the same results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunOrigin {
    /// Hash of everything that determines the results, in hexadecimal digits.
    pub run: String,
    /// Hash of the program's file.
    pub program: String,
    /// Commit that the program was built from, with `+changes` where files differed from it; absent in programs that
    /// were not built with `--release` in a checkout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The machine's file.
    pub machine_file: MachineFile,
    /// What the command line set, as `key=value`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<String>,
}

/// A machine file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineFile {
    /// Where it was found.
    pub path: String,
    /// SHA-256 of its text, in hexadecimal digits.
    pub sha256: String,
}

/// A row of the user's own values (`--overlay`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Overlay {
    /// Name of the row's series: its `variant`, or the file's name.
    pub series: String,
    /// Values of settings in the row.
    pub params: Map<String, Value>,
    /// Values of metrics, by the keys that `points.csv` has.
    pub values: BTreeMap<String, f64>,
    /// Half widths of their intervals, where the file has a column `<metric>.ci95`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub half_widths: BTreeMap<String, f64>,
}
