//! Tables and value sets of the checked program.

use super::{Annotations, Expr};
use crate::p4::source::{Name, Span};
use crate::p4::types::Type;

/// How a key is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "each variant is the match kind of its name")]
pub enum MatchKind {
    Exact,
    Lpm,
    Ternary,
    Range,
    Optional,
    Selector,
}

/// A key of a table.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Key {
    pub annotations: Annotations,
    pub value: Expr,
    pub match_kind: MatchKind,
    pub name: Name,
}

/// An action that a table may run.
#[derive(Clone, Debug)]
pub struct TableAction {
    /// Index of the action.
    pub action: usize,
    /// Arguments for the parameters with a direction.
    pub bound: Vec<Expr>,
    /// Annotations in the list of actions.
    pub annotations: Annotations,
    /// `@defaultonly`: no entry may run it.
    pub default_only: bool,
    /// `@tableonly`: it may not be the default.
    pub table_only: bool,
}

/// A table.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Table {
    pub annotations: Annotations,
    pub name: Name,
    pub path: Name,
    pub keys: Vec<Key>,
    pub actions: Vec<TableAction>,
    /// Position in `actions`, arguments.
    pub default: Option<(usize, Vec<Expr>)>,
    pub default_is_const: bool,
    pub entries: Vec<Entry>,
    pub entries_are_const: bool,
    pub largest_priority_wins: bool,
    pub priority_delta: i64,
    pub size: Option<u64>,
    /// Extern objects that are attached: property, object.
    pub attached: Vec<(Name, Expr)>,
    pub span: Span,
}

/// An entry written in the program.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Entry {
    pub keys: Vec<Expr>,
    /// Position in the table's actions.
    pub action: usize,
    pub arguments: Vec<Expr>,
    pub priority: Option<i64>,
    /// The priority comes from `@priority`, where smaller ones win.
    pub annotated: bool,
    pub is_const: bool,
    pub span: Span,
}

/// A value set.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ValueSet {
    pub annotations: Annotations,
    pub path: Name,
    pub ty: Type,
    pub size: u64,
}
