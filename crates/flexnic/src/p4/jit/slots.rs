//! Which slots an operation reads and writes.

use crate::p4::ir::{HeaderPlace, Index, Op, Operand, Slot};

fn read(operand: &Operand, reads: &mut Vec<Slot>) {
    if let Operand::Slot(slot) = operand {
        reads.push(*slot);
    }
}

fn read_index(index: &Index, reads: &mut Vec<Slot>) {
    read(&index.value, reads);
}

fn read_header(header: &HeaderPlace, reads: &mut Vec<Slot>) {
    if let Some(index) = &header.index {
        read_index(index, reads);
    }
}

/// Slots that an operation reads, and those that it writes. A slot that is written in part counts as read, too.
pub(super) fn of(op: &Op) -> (Vec<Slot>, Vec<Slot>) {
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    match op {
        Op::Copy { to, from }
        | Op::Resize { to, from, .. }
        | Op::Slice { to, from, .. }
        | Op::Unary { to, from, .. } => {
            read(from, &mut reads);
            writes.push(*to);
        }
        Op::Load { to, index, .. } => {
            read_index(index, &mut reads);
            writes.push(*to);
        }
        Op::Store { index, from, .. } => {
            read_index(index, &mut reads);
            read(from, &mut reads);
        }
        Op::Binary { to, left, right, .. } | Op::Concat { to, left, right } => {
            read(left, &mut reads);
            read(right, &mut reads);
            writes.push(*to);
        }
        Op::Insert { to, from, .. } => {
            reads.push(*to);
            read(from, &mut reads);
            writes.push(*to);
        }
        Op::Select { to, condition, yes, no } => {
            [condition, yes, no].into_iter().for_each(|operand| read(operand, &mut reads));
            writes.push(*to);
        }
        Op::Extract { header, varbit_bits, error } => {
            read_header(header, &mut reads);
            varbit_bits.iter().for_each(|bits| read(bits, &mut reads));
            writes.push(*error);
        }
        Op::Lookahead { to, error } => {
            writes.extend(to);
            writes.push(*error);
        }
        Op::Advance { bits, error } => {
            read(bits, &mut reads);
            writes.push(*error);
        }
        Op::PacketLength { to } => writes.push(*to),
        Op::Emit { header } => read_header(header, &mut reads),
        Op::Apply { keys, hit, action, .. } => {
            keys.iter().for_each(|key| read(key, &mut reads));
            writes.extend([*hit, *action]);
        }
        Op::InSet { keys, to, .. } => {
            keys.iter().for_each(|key| read(key, &mut reads));
            writes.push(*to);
        }
        Op::Extern(op) => {
            op.inputs.iter().flatten().for_each(|datum| read(&datum.value, &mut reads));
            reads.extend(&op.outputs);
            writes.extend(&op.outputs);
        }
        Op::Clear { .. } | Op::Note(_) => {}
    }
    (reads, writes)
}
