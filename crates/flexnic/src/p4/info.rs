//! Tables, value sets, objects and fields of a program.

use super::hir::{Annotations, MatchKind};
use super::ir::{HashKind, Slot};
use super::source::{Name, Span};
use super::types::Type;

/// A key of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyInfo {
    /// The program's own words about it.
    pub annotations: Annotations,
    /// Its type.
    pub ty: Type,
    /// Name for the control plane.
    pub name: Name,
    /// Bits.
    pub width: u32,
    /// How it is matched.
    pub kind: MatchKind,
    /// Names of an enumeration's or of the errors' values, which entries may use.
    pub names: Vec<(Name, u64)>,
}

/// A parameter of an action that an entry gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterInfo {
    /// The program's own words about it.
    pub annotations: Annotations,
    /// Its type.
    pub ty: Type,
    /// Name.
    pub name: Name,
    /// Where the table puts it.
    pub slot: Slot,
}

/// An action of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionInfo {
    /// The program's own words about it.
    pub annotations: Annotations,
    /// Its words in the table's list.
    pub list_annotations: Annotations,
    /// Name for the control plane.
    pub path: Name,
    /// Data of an entry.
    pub parameters: Vec<ParameterInfo>,
    /// No entry may run it.
    pub default_only: bool,
    /// It may not be the default.
    pub table_only: bool,
}

/// One key of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Match {
    Exact(Vec<u64>),
    /// Value, bits of the prefix.
    Lpm(Vec<u64>, u32),
    /// Value, mask.
    Ternary(Vec<u64>, Vec<u64>),
    /// Lowest and highest value.
    Range(Vec<u64>, Vec<u64>),
    /// Everything.
    Any,
}

/// An action with its data, by position in the table's list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActionCall {
    /// Position.
    pub action: usize,
    /// Values of its parameters.
    pub data: Vec<Vec<u64>>,
}

/// An entry of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntrySpec {
    /// One per key.
    pub keys: Vec<Match>,
    /// The higher one wins.
    pub priority: i64,
    /// Its effect.
    pub call: ActionCall,
    /// The control plane cannot change it.
    pub is_const: bool,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct TableInfo {
    pub annotations: Annotations,
    /// Action profile or selector, by object.
    pub profile: Option<usize>,
    pub path: Name,
    pub keys: Vec<KeyInfo>,
    pub actions: Vec<ActionInfo>,
    pub default: ActionCall,
    pub default_is_const: bool,
    pub entries: Vec<EntrySpec>,
    pub entries_are_const: bool,
    pub size: Option<u64>,
    /// Counter that counts hits of each entry, by object.
    pub counter: Option<usize>,
    /// Meter of each entry.
    pub meter: Option<usize>,
    /// Entries may name a group of actions, chosen by the selector keys.
    pub has_selector: bool,
    /// A miss may add an entry (PNA).
    pub add_on_miss: bool,
    pub span: Span,
}

/// A value set.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct SetInfo {
    pub annotations: Annotations,
    pub ty: Type,
    pub path: Name,
    pub widths: Vec<u32>,
    pub size: u64,
}

/// An object of the architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ObjectKind {
    Counter {
        size: u64,
        bytes: bool,
        packets: bool,
    },
    Meter {
        size: u64,
        bytes: bool,
    },
    Register {
        size: u64,
        widths: Vec<u32>,
        initial: Vec<Vec<u64>>,
        element: Type,
    },
    DirectCounter {
        bytes: bool,
        packets: bool,
    },
    DirectMeter {
        bytes: bool,
    },
    Checksum,
    Hash(HashKind),
    Random {
        low: u64,
        high: u64,
    },
    Digest {
        element: Type,
    },
    Profile {
        has_selector: bool,
        size: u64,
    },
    /// Without state that controllers see.
    Other,
}

/// An object of the architecture with its name for the control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ObjectInfo {
    pub annotations: Annotations,
    pub path: Name,
    pub kind: ObjectKind,
}

/// A field that a trace can show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedField {
    /// `hdr.ethernet.etherType`
    pub name: String,
    /// Where its value lies.
    pub slot: Slot,
    /// Word that says whether its header is valid.
    pub valid: Option<u32>,
    /// Field lists that keep it when a packet is cloned, resubmitted or recirculated.
    pub lists: Vec<u8>,
    /// A varbit: a word with the size in bits, then the value.
    pub varbit: bool,
}
