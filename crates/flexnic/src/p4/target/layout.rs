//! The result of a placement: tables with their stages, or all that does not fit.

use serde::Serialize;

/// Why a table comes after another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Its key reads what the other's actions write.
    Match,
    /// Its actions read or write what the other's actions write.
    Action,
    /// The other's result decides whether it runs; it may share a stage.
    Control,
}

/// A dependency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dependency {
    /// The earlier table.
    pub from: String,
    /// Why.
    pub reason: Reason,
    /// A field that both touch.
    pub field: Option<String>,
}

/// A table and its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlacedTable {
    /// Name for the control plane.
    pub name: String,
    /// Control that applies it.
    pub control: String,
    /// First and last stage, from 0; a large table takes several.
    pub stages: (usize, usize),
    /// Entries that it has room for.
    pub entries: u64,
    /// Bits of SRAM and TCAM.
    pub sram_bits: u64,
    /// Bits of TCAM.
    pub tcam_bits: u64,
    /// Actions.
    pub actions: usize,
    /// The reason why it waits.
    pub after: Vec<Dependency>,
}

/// The contents of a stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StageUse {
    /// Bits of SRAM.
    pub sram_bits: u64,
    /// Bits of TCAM.
    pub tcam_bits: u64,
    /// Tables.
    pub tables: usize,
    /// Actions.
    pub actions: usize,
}

/// A program on a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Layout {
    /// Tables in the order of application.
    pub tables: Vec<PlacedTable>,
    /// Stages, those of one pipeline behind those of the other.
    pub stages: Vec<StageUse>,
    /// Names of the pipelines, where there are several.
    pub pipelines: Vec<String>,
    /// Transfers that a packet may ask for, at most.
    pub transfers: usize,
    /// Bits of headers and metadata.
    pub header_bits: u64,
    /// States on the longest way through the parser.
    pub parser_depth: usize,
    /// Bytes on that way.
    pub parser_bytes: u64,
    /// Cycles from the first bit to the deparser.
    pub cycles: u64,
}

/// One thing that does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Misfit {
    #[error("the chain of tables {} needs {needs} stages, the target has {has}", .chain.join(" -> "))]
    Stages { chain: Vec<String>, needs: usize, has: usize },
    #[error("`{table}` needs {needs} bits of {memory}, the target has {has} in all stages that are left for it")]
    Memory { table: String, memory: &'static str, needs: u64, has: u64 },
    #[error("table `{table}` has {needs} actions, a stage has room for {has}")]
    Actions { table: String, needs: usize, has: usize },
    #[error("headers and metadata have {needs} bits, the target carries {has}")]
    HeaderBits { needs: u64, has: u64 },
    #[error("the parser's longest way has {needs} states, the target's has {has}")]
    ParserDepth { needs: usize, has: usize },
    #[error("the parser looks at {needs} bytes, the target's looks at {has}")]
    ParserBytes { needs: u64, has: u64 },
    #[error("control `{control}` has a loop, which a pipeline of stages cannot run")]
    Loop { control: String },
    #[error("control `{control}` multiplies or divides, which the target cannot do")]
    Multiply { control: String },
    #[error(
        "table `{table}` matches the tag `{field}` with {kind}, so that rules of one application may match packets of another: match it exactly"
    )]
    Tag { table: String, field: String, kind: String },
    #[error("actions of table `{table}` write the tag `{field}`, which only the operating system's tables may")]
    WritesTag { table: String, field: String },
    #[error("table `{table}` is applied in more than one place")]
    AppliedTwice { table: String },
    #[error("a packet may ask for {needs} transfers, the target's DMA engine makes {has} at most")]
    Transfers { needs: usize, has: usize },
}

/// All that does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// At least one.
    pub misfits: Vec<Misfit>,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for misfit in &self.misfits {
            writeln!(out, "{misfit}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Refusal {}
