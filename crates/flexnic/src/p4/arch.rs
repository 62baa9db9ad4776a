//! Architectures: which blocks a program has, and what happens between them.

pub(crate) mod pna;
pub(crate) mod v1model;

use super::diagnostics::Reporter;
use super::hir::Checked;
use super::ir::{Ir, Slot};
use super::lower::Lower;
use super::source::Span;

/// The architecture of a program with the places it needs.
#[derive(Clone, Debug)]
pub(crate) enum Architecture {
    V1Model(v1model::Layout),
    Pna(pna::Layout),
}

impl Architecture {
    /// Name of the package.
    pub fn name(&self) -> &'static str {
        match self {
            Architecture::V1Model(_) => "V1Switch",
            Architecture::Pna(_) => "PNA_NIC",
        }
    }
}

/// Lowers a program for the architecture that its `main` names.
pub(crate) fn lower(checked: &Checked, reporter: &mut Reporter) -> Option<(Ir, Architecture)> {
    let mut lower = Lower::new(checked, reporter);
    let Some((name, arguments)) = lower.main_arguments() else {
        let message = "the program has no `main`";
        lower.reporter.error(Span::default(), message).help("instantiate a package: `V1Switch(...) main;`");
        return None;
    };
    let architecture = match name.as_str() {
        "V1Switch" => Architecture::V1Model(v1model::lower(&mut lower, &arguments)?),
        "PNA_NIC" => Architecture::Pna(pna::lower(&mut lower, &arguments)?),
        other => {
            let message = format!("the package `{other}` is not supported");
            lower.reporter.error(Span::default(), message).help("V1Switch (v1model.p4) and PNA_NIC (pna.p4) are");
            return None;
        }
    };
    lower.check_size();
    let failed = lower.reporter.has_errors();
    let ir = lower.finish();
    (!failed).then_some((ir, architecture))
}

/// A field of the architecture's metadata; one that a program's file lacks is not written.
pub(crate) type MetadataSlot = Option<Slot>;
