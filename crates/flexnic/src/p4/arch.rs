//! Architectures: which blocks a program has, and what happens between them.

pub(crate) mod flexnic;
pub(crate) mod pna;
pub(crate) mod v1model;

use super::diagnostics::Reporter;
use super::hir::Checked;
use super::ir::{ExternFunction, Ir, Op, Slot};
use super::lower::Lower;
use super::machine::function_name;
use super::source::Span;

/// The architecture of a program with the places it needs.
#[derive(Clone, Debug)]
pub(crate) enum Architecture {
    V1Model(v1model::Layout),
    Pna(pna::Layout),
    FlexNic(flexnic::Layout),
}

impl Architecture {
    /// Name of the package.
    pub fn name(&self) -> &'static str {
        match self {
            Architecture::V1Model(_) => "V1Switch",
            Architecture::Pna(_) => "PNA_NIC",
            Architecture::FlexNic(_) => "FlexNIC",
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
        "FlexNIC" => Architecture::FlexNic(flexnic::lower(&mut lower, &arguments)?),
        other => {
            let message = format!("the package `{other}` is not supported");
            let known = "V1Switch (v1model.p4), PNA_NIC (pna.p4) and FlexNIC (flexnic.p4) are";
            lower.reporter.error(Span::default(), message).help(known);
            return None;
        }
    };
    check_verbs(&mut lower, &architecture);
    lower.check_size();
    let failed = lower.reporter.has_errors();
    let ir = lower.finish();
    (!failed).then_some((ir, architecture))
}

/// A field of the architecture's metadata; one that a program's file lacks is not written.
pub(crate) type MetadataSlot = Option<Slot>;

/// Verbs of FlexNIC's package stand in the pipelines that have them.
fn check_verbs(lower: &mut Lower<'_>, architecture: &Architecture) {
    let mut wrong = Vec::new();
    for (number, function) in lower.ir.functions.iter().enumerate() {
        for op in function.blocks.iter().flat_map(|block| &block.ops) {
            let Op::Extern(op) = op else { continue };
            let allowed = match architecture {
                Architecture::FlexNic(_) => flexnic::allows(number, &op.function),
                Architecture::Pna(_) => !flexnic::is_own(&op.function),
                Architecture::V1Model(_) => {
                    let others = [ExternFunction::DropPacket, ExternFunction::SendToPort];
                    !flexnic::is_own(&op.function) && !others.contains(&op.function)
                }
            };
            if !allowed {
                wrong.push((function.name.clone(), function_name(&op.function)));
            }
        }
    }
    wrong.dedup();
    for (control, verb) in wrong {
        let message = format!("`{control}` uses {verb}, which it does not have");
        let help = "transfers and refusals belong into the DMA pipeline of package FlexNIC, copies into its ingress";
        lower.reporter.error(Span::default(), message).help(help);
    }
}
