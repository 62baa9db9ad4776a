//! How long a program's ways are, and how much memory its objects take.

use std::collections::{BTreeMap, BTreeSet};

use super::access;
use crate::p4::ir::{ExternFunction, Function, Ir, Note, ObjectKind, Op};

/// Transfers on the longest way from a block on; a block that is entered again counts once.
pub(super) fn longest_transfers(control: &Function, block: usize, known: &mut BTreeMap<usize, usize>) -> usize {
    if let Some(known) = known.get(&block) {
        return *known;
    }
    known.insert(block, 0);
    let asks = |op: &&Op| {
        let Op::Extern(op) = op else { return false };
        matches!(op.function, ExternFunction::Dma(_))
    };
    let own = control.blocks[block].ops.iter().filter(asks).count();
    let next = access::successors(&control.blocks[block].end).into_iter();
    let behind = next.map(|next| longest_transfers(control, next, known)).max().unwrap_or(0);
    known.insert(block, own + behind);
    own + behind
}

/// Objects that a control's operations use.
pub(super) fn objects_of(function: &Function) -> BTreeSet<usize> {
    let ops = function.blocks.iter().flat_map(|block| &block.ops);
    ops.filter_map(|op| if let Op::Extern(op) = op { op.object } else { None }).collect()
}

pub(super) fn object_bits(kind: &ObjectKind) -> u64 {
    match kind {
        ObjectKind::Counter { size, .. } => size * 128,
        ObjectKind::Meter { size, .. } => size * 256,
        ObjectKind::Register { size, widths, .. } => size * widths.iter().map(|width| u64::from(*width)).sum::<u64>(),
        _ => 0,
    }
}

pub(super) fn header_bits(ir: &Ir) -> u64 {
    let bits = |field: &crate::p4::ir::NamedField| {
        if field.varbit { u64::from(field.slot.width) - 64 } else { u64::from(field.slot.width) }
    };
    ir.fields.iter().map(bits).sum()
}

/// States and bytes on the longest way; a state that is entered again counts once.
pub(super) fn longest_parse(parser: &Function) -> (usize, u64) {
    let mut memory = BTreeMap::new();
    let mut open = vec![false; parser.blocks.len()];
    let (states, bits) = longest_from(parser, 0, &mut memory, &mut open);
    (states, bits.div_ceil(8))
}

fn longest_from(
    parser: &Function,
    block: usize,
    memory: &mut BTreeMap<usize, (usize, u64)>,
    open: &mut Vec<bool>,
) -> (usize, u64) {
    if open[block] {
        return (0, 0);
    }
    if let Some(known) = memory.get(&block) {
        return *known;
    }
    open[block] = true;
    let (mut states, mut bits) = (0, 0);
    for op in &parser.blocks[block].ops {
        match op {
            Op::Note(Note::State(_)) => states += 1,
            Op::Extract { header, .. } => {
                bits += header.layout.fields.iter().map(|field| u64::from(field.width)).sum::<u64>();
            }
            _ => {}
        }
    }
    let mut best = (0, 0);
    for next in access::successors(&parser.blocks[block].end) {
        let found = longest_from(parser, next, memory, open);
        best = (best.0.max(found.0), best.1.max(found.1));
    }
    open[block] = false;
    let result = (states + best.0, bits + best.1);
    memory.insert(block, result);
    result
}
