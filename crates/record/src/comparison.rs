//! A point on both grounds, side by side.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One point on both grounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// What is compared in the scenario.
    pub variant: String,
    /// Every swept or varied value, by the scenario's own keys.
    pub params: Map<String, Value>,
    /// The quantities that mean the same on both.
    pub rows: Vec<ComparedRow>,
    /// Frames dropped in the simulation and live, by cause.
    pub drops: Vec<ComparedRow>,
    /// The live generator stayed below the simulation's rate: the grounds cannot be compared, and no row has a
    /// ratio.
    #[serde(default)]
    pub missed_rate: bool,
}

/// One quantity.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ComparedRow {
    /// Its key, as in the metrics; the cause of a drop.
    pub key: String,
    /// Unit of both values.
    pub unit: String,
    /// In the simulation, if it was measured there.
    pub sim: Option<f64>,
    /// On the live ground, likewise.
    pub live: Option<f64>,
    /// Live by sim; absent where one is missing or the simulation's is zero.
    pub ratio: Option<f64>,
}
