//! A match-action NIC with stages: does a program fit, and where does each table land?
//!
//! The model follows the reconfigurable match tables that FlexNIC builds on (ASPLOS 2016, section 2.1): a chain of
//! stages, each with its own table memory and actions; what a later table reads, an earlier one has written.

mod access;
mod layout;
mod measure;
mod place;
mod show;

pub use layout::{Layout, Misfit, PlacedTable, Refusal, StageUse};
pub use place::place;
pub use show::{to_svg, to_text};

use serde::Deserialize;

/// Resources of a target.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Name.
    pub name: String,
    /// Stages of one pipeline.
    pub stages: usize,
    /// SRAM of a stage, in bits.
    pub sram_bits: u64,
    /// TCAM of a stage, in bits.
    pub tcam_bits: u64,
    /// Tables of a stage.
    pub tables: usize,
    /// Actions of a stage.
    pub actions: usize,
    /// Bits of headers and metadata that travel with a packet.
    pub header_bits: u64,
    /// States on the longest way through the parser.
    pub parser_depth: usize,
    /// Bytes that the parser looks at.
    pub parser_bytes: u64,
    /// Cycles that a stage takes.
    pub stage_cycles: u64,
    /// Cycles that the parser takes for each state.
    pub parser_cycles: u64,
    /// Clock in MHz.
    pub clock_mhz: u64,
    /// Entries that a table without a size counts with.
    #[serde(default = "default_entries")]
    pub default_entries: u64,
    /// Programs with loops run.
    #[serde(default)]
    pub loops: bool,
    /// Programs with multiplications, divisions and remainders run.
    #[serde(default)]
    pub multiply: bool,
    /// Transfers of a packet, at most.
    #[serde(default = "default_transfers")]
    pub transfers: usize,
}

fn default_transfers() -> usize {
    8
}

fn default_entries() -> u64 {
    1024
}

impl Default for Target {
    /// A NIC of the size that the FlexNIC paper assumes feasible: a small reconfigurable match table pipeline.
    fn default() -> Target {
        Target {
            name: "flexnic".to_owned(),
            stages: 16,
            sram_bits: 12 << 20,
            tcam_bits: 2 << 20,
            tables: 8,
            actions: 64,
            header_bits: 4096,
            parser_depth: 32,
            parser_bytes: 512,
            stage_cycles: 2,
            parser_cycles: 1,
            clock_mhz: 1000,
            default_entries: default_entries(),
            loops: false,
            multiply: false,
            transfers: default_transfers(),
        }
    }
}

/// Why a target file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct TargetError {
    /// Line from 1.
    pub line: usize,
    /// The mistake.
    pub message: String,
}

impl Target {
    /// Reads a target file.
    pub fn from_toml(text: &str) -> Result<Target, TargetError> {
        let target: Target = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start.min(text.len()));
            TargetError { line: text[..at].matches('\n').count() + 1, message: error.message().to_owned() }
        })?;
        if target.stages == 0 || target.stages > 1024 {
            return Err(TargetError { line: 1, message: "a target has 1 to 1024 stages".to_owned() });
        }
        Ok(target)
    }
}

#[cfg(test)]
mod tests;
