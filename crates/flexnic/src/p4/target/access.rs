//! Reads and writes of each table of a control, in the order in which they are applied.

use std::collections::{BTreeMap, BTreeSet};

use crate::p4::ast::BinaryOp;
use crate::p4::ir::{Function, HeaderPlace, Ir, Note, Op, Operand, Slot, Terminator};

/// Words of the frame that a table's step touches.
#[derive(Clone, Debug, Default)]
pub(super) struct Access {
    /// Words that its keys are computed from.
    pub key_reads: BTreeSet<u32>,
    /// The same for each key.
    pub each_key: Vec<BTreeSet<u32>>,
    /// Words that its actions read.
    pub reads: BTreeSet<u32>,
    /// Words that its actions write.
    pub writes: BTreeSet<u32>,
    /// Tables whose result decides whether it is applied.
    pub decided_by: BTreeSet<usize>,
    /// Words of conditions that decide whether it is applied.
    pub condition_reads: BTreeSet<u32>,
    /// Objects with state (counters, registers, meters) that its actions use.
    pub objects: BTreeSet<usize>,
}

/// A program's needs besides tables.
#[derive(Clone, Debug, Default)]
pub(super) struct Extras {
    pub loops: bool,
    pub multiplies: bool,
    pub applied_twice: Vec<usize>,
}

/// Words by which a value is computed: temporaries stand for what they were computed from.
type Origins = BTreeMap<u32, BTreeSet<u32>>;

/// Analyses a control. Returns tables in the order of their first application.
pub(super) fn analyse(ir: &Ir, function: &Function) -> (Vec<usize>, BTreeMap<usize, Access>, Extras) {
    let mut walk = Walk {
        origins: Origins::new(),
        access: BTreeMap::new(),
        order: Vec::new(),
        extras: Extras::default(),
        hits: BTreeMap::new(),
        inside: vec![BTreeSet::new(); function.blocks.len()],
        conditions: vec![BTreeSet::new(); function.blocks.len()],
        deciders: vec![BTreeSet::new(); function.blocks.len()],
    };
    for block in topological(function) {
        walk.block(function, block);
    }
    walk.extras.loops = has_loop(function);
    let _ = ir;
    (walk.order, walk.access, walk.extras)
}

struct Walk {
    origins: Origins,
    access: BTreeMap<usize, Access>,
    order: Vec<usize>,
    extras: Extras,
    /// Tables whose result a temporary holds.
    hits: BTreeMap<u32, usize>,
    /// Tables whose action a block belongs to.
    inside: Vec<BTreeSet<usize>>,
    conditions: Vec<BTreeSet<u32>>,
    deciders: Vec<BTreeSet<usize>>,
}

impl Walk {
    fn sources(&self, operand: &Operand) -> BTreeSet<u32> {
        match operand {
            Operand::Constant(_) => BTreeSet::new(),
            Operand::Slot(slot) if slot.temporary => self.origins.get(&slot.word).cloned().unwrap_or_default(),
            Operand::Slot(slot) => words(*slot).collect(),
        }
    }

    fn block(&mut self, function: &Function, number: usize) {
        let block = &function.blocks[number];
        let mut active = self.inside[number].clone();
        for op in &block.ops {
            if let Op::Note(Note::Action(table, _)) = op {
                active.insert(*table);
            }
            self.op(op, &active, number);
        }
        let (mut condition, mut decider) = (BTreeSet::new(), None);
        let targets: Vec<usize> = match &block.end {
            Terminator::End => vec![],
            Terminator::Jump(next) => vec![*next],
            Terminator::Branch { condition: operand, yes, no } => {
                condition = self.sources(operand);
                decider = slot_word(operand).and_then(|word| self.hits.get(&word).copied());
                vec![*yes, *no]
            }
            Terminator::Switch { value, cases, otherwise } => {
                condition = self.sources(value);
                decider = slot_word(value).and_then(|word| self.hits.get(&word).copied());
                cases.iter().map(|(_, block)| *block).chain([*otherwise]).collect()
            }
            Terminator::Tick { next, exhausted } => vec![*next, *exhausted],
        };
        let begins_action =
            |block: usize| matches!(function.blocks[block].ops.first(), Some(Op::Note(Note::Action(..))));
        for target in targets {
            // A block that several branches reach again no longer depends on their conditions.
            let joins = predecessors(function, target) > 1;
            let mut inside = active.clone();
            if joins {
                inside.clear();
            }
            self.inside[target].extend(inside);
            if !joins {
                let conditions: Vec<u32> = self.conditions[number].iter().chain(&condition).copied().collect();
                self.conditions[target].extend(conditions);
                let deciders: Vec<usize> = self.deciders[number].iter().copied().collect();
                self.deciders[target].extend(deciders);
                if !begins_action(target) {
                    self.deciders[target].extend(decider);
                }
            }
        }
    }

    fn op(&mut self, op: &Op, active: &BTreeSet<usize>, block: usize) {
        if let Op::Binary { operator: BinaryOp::Mul | BinaryOp::Div | BinaryOp::Mod, .. } = op {
            self.extras.multiplies = true;
        }
        if let Op::Apply { table, keys, hit, action } = op {
            let each: Vec<BTreeSet<u32>> = keys.iter().map(|key| self.sources(key).into_iter().collect()).collect();
            if self.order.contains(table) {
                self.extras.applied_twice.push(*table);
            } else {
                self.order.push(*table);
            }
            let entry = self.access.entry(*table).or_default();
            entry.key_reads.extend(each.iter().flatten());
            entry.each_key = each;
            entry.decided_by.extend(self.deciders[block].iter().copied());
            entry.condition_reads.extend(self.conditions[block].iter().copied());
            self.hits.insert(hit.word, *table);
            self.hits.insert(action.word, *table);
            return;
        }
        let (reads, writes) = operands(op);
        let sources: BTreeSet<u32> = reads.iter().flat_map(|operand| self.sources(operand)).collect();
        for slot in &writes {
            if slot.temporary {
                self.origins.entry(slot.word).or_default().extend(&sources);
            }
        }
        for table in active {
            let entry = self.access.entry(*table).or_default();
            entry.reads.extend(&sources);
            entry.writes.extend(writes.iter().filter(|slot| !slot.temporary).flat_map(|slot| words(*slot)));
            if let Op::Extern(call) = op {
                entry.objects.extend(call.object);
            }
        }
    }
}

fn slot_word(operand: &Operand) -> Option<u32> {
    match operand {
        Operand::Slot(slot) => Some(slot.word),
        Operand::Constant(_) => None,
    }
}

fn words(slot: Slot) -> std::ops::Range<u32> {
    slot.word..slot.word + slot.words() as u32
}

fn header_slot(header: &HeaderPlace) -> Slot {
    let last = header.layout.fields.iter().map(|field| field.offset + 1 + field.width.div_ceil(64)).max().unwrap_or(1);
    let stretch = header.index.as_ref().map_or(1, |index| index.count.max(1));
    Slot { word: header.word, width: 64 * last * stretch, temporary: false }
}

/// Operands that an operation reads and slots that it writes.
fn operands(op: &Op) -> (Vec<Operand>, Vec<Slot>) {
    let slot = |slot: Slot| Operand::Slot(slot);
    match op {
        Op::Copy { to, from }
        | Op::Unary { to, from, .. }
        | Op::Resize { to, from, .. }
        | Op::Slice { to, from, .. } => (vec![from.clone()], vec![*to]),
        Op::Insert { to, from, .. } => (vec![from.clone(), slot(*to)], vec![*to]),
        Op::Load { to, from, index } => {
            let whole = Slot { width: 64 * index.stride * index.count, ..*from };
            (vec![index.value.clone(), slot(whole)], vec![*to])
        }
        Op::Store { to, index, from } => {
            let whole = Slot { width: 64 * index.stride * index.count, ..*to };
            (vec![index.value.clone(), from.clone()], vec![whole])
        }
        Op::Binary { to, left, right, .. } | Op::Concat { to, left, right } => {
            (vec![left.clone(), right.clone()], vec![*to])
        }
        Op::Select { to, condition, yes, no } => (vec![condition.clone(), yes.clone(), no.clone()], vec![*to]),
        Op::Clear { word, words } => (vec![], vec![Slot { word: *word, width: 64 * words, temporary: false }]),
        Op::Extract { header, varbit_bits, error } => {
            (varbit_bits.iter().cloned().collect(), vec![header_slot(header), *error])
        }
        Op::Lookahead { to, error } => (vec![], to.iter().copied().chain([*error]).collect()),
        Op::Advance { bits, error } => (vec![bits.clone()], vec![*error]),
        Op::PacketLength { to } => (vec![], vec![*to]),
        Op::Emit { header } => (vec![slot(header_slot(header))], vec![]),
        Op::InSet { keys, to, .. } => (keys.clone(), vec![*to]),
        Op::Extern(op) => (op.inputs.iter().flatten().map(|datum| datum.value.clone()).collect(), op.outputs.clone()),
        Op::Apply { .. } | Op::Note(_) => (vec![], vec![]),
    }
}

pub(super) fn successors(end: &Terminator) -> Vec<usize> {
    match end {
        Terminator::End => vec![],
        Terminator::Jump(next) => vec![*next],
        Terminator::Branch { yes, no, .. } => vec![*yes, *no],
        Terminator::Switch { cases, otherwise, .. } => {
            cases.iter().map(|(_, block)| *block).chain([*otherwise]).collect()
        }
        Terminator::Tick { next, exhausted } => vec![*next, *exhausted],
    }
}

fn predecessors(function: &Function, block: usize) -> usize {
    function.blocks.iter().filter(|other| successors(&other.end).contains(&block)).count()
}

/// Blocks that can be reached, each after those that lead to it; back edges of loops are left out.
fn topological(function: &Function) -> Vec<usize> {
    let mut order = Vec::new();
    let mut state = vec![0u8; function.blocks.len()];
    let mut stack = vec![(0usize, false)];
    while let Some((block, done)) = stack.pop() {
        if done {
            order.push(block);
            continue;
        }
        if std::mem::replace(&mut state[block], 1) == 1 {
            continue;
        }
        stack.push((block, true));
        stack.extend(
            successors(&function.blocks[block].end)
                .into_iter()
                .filter(|next| state[*next] == 0)
                .map(|next| (next, false)),
        );
    }
    order.reverse();
    order
}

fn has_loop(function: &Function) -> bool {
    let order = topological(function);
    let mut position = vec![usize::MAX; function.blocks.len()];
    for (at, block) in order.iter().enumerate() {
        position[*block] = at;
    }
    order
        .iter()
        .any(|block| successors(&function.blocks[*block].end).iter().any(|next| position[*next] <= position[*block]))
}
