//! Tables: what they are, and applying them.

use num_traits::ToPrimitive;

use super::expressions::{Value, has_call};
use super::places::{is_signed, scalar_width};
use super::{Binding, Lower, Object};
use crate::p4::ast::Direction;
use crate::p4::hir::{self, CallArgument, Expr, ExprKind, MatchKind};
use crate::p4::ir::{
    ActionCall, ActionInfo, EntrySpec, KeyInfo, Match, Note, Op, Operand, ParameterInfo, SetInfo, Slot, TableInfo,
    Terminator, words,
};
use crate::p4::source::Name;
use crate::p4::types::Type;

impl Lower<'_> {
    /// Applies a table; returns whether an entry was hit, and the position of the action.
    pub(super) fn apply(&mut self, index: usize) -> (Slot, Slot) {
        let table = &self.program.tables[index];
        let mut keys: Vec<Operand> = Vec::new();
        for (number, key) in table.keys.iter().enumerate() {
            let later = table.keys[number + 1..].iter().any(|later| has_call(&later.value));
            let value = Value::Scalar(self.scalar(&key.value));
            let value = if later { self.kept(value) } else { value };
            let Value::Scalar(value) = value else { continue };
            keys.push(value);
        }
        let number = self.table(index);
        let (hit, action) = (self.temporary(1), self.temporary(32));
        self.op(Op::Apply { table: number, keys, hit, action });
        let done = self.new_block();
        let blocks: Vec<usize> = table.actions.iter().map(|_| self.new_block()).collect();
        let cases = blocks.iter().enumerate().map(|(position, block)| (position as u64, *block)).collect();
        self.end(Terminator::Switch { value: Operand::Slot(action), cases, otherwise: done });
        for (position, (used, block)) in table.actions.iter().zip(blocks).enumerate() {
            self.current = block;
            self.op(Op::Note(Note::Action(number, position)));
            self.run_action(used);
            self.jump(done);
        }
        self.current = done;
        (hit, action)
    }

    /// The body of an action whose data the table has written.
    fn run_action(&mut self, used: &hir::TableAction) {
        let action = &self.program.actions[used.action];
        let directed: Vec<hir::Parameter> =
            action.parameters.iter().filter(|p| p.direction != Direction::None).cloned().collect();
        for parameter in action.parameters.iter().filter(|p| p.direction == Direction::None) {
            let place = self.storage(parameter.variable, &parameter.ty);
            self.bindings.insert(parameter.variable, Binding::Place(place));
        }
        let arguments: Vec<CallArgument> = directed
            .iter()
            .zip(&used.bound)
            .map(|(parameter, value)| CallArgument {
                value: Some(value.clone()),
                direction: parameter.direction,
                ty: parameter.ty.clone(),
            })
            .collect();
        self.inline(&directed, &arguments, |lower| lower.statements(&action.body));
    }

    /// The table of the present instance.
    fn table(&mut self, index: usize) -> usize {
        let key = (self.path.clone(), index);
        if let Some(number) = self.tables.get(&key) {
            return *number;
        }
        let table = &self.program.tables[index];
        let keys: Vec<KeyInfo> = table.keys.iter().map(|key| self.key_info(key)).collect();
        let actions: Vec<ActionInfo> = table.actions.iter().map(|used| self.action_info(used)).collect();
        let default = match &table.default {
            Some((position, data)) => self.action_call(*position, data, &actions),
            None => ActionCall::default(),
        };
        let mut info = TableInfo {
            annotations: table.annotations.clone(),
            profile: None,
            path: Name::from(self.full_path(&table.path)),
            keys,
            actions,
            default,
            default_is_const: table.default_is_const,
            entries: Vec::new(),
            entries_are_const: table.entries_are_const,
            size: table.size,
            counter: None,
            meter: None,
            has_selector: false,
            add_on_miss: false,
            span: table.span,
        };
        info.entries = self.entries(table, &info);
        self.attach(table, &mut info);
        if self.ir.tables.iter().any(|other| other.path == info.path) {
            self.reporter.error(table.span, format!("two tables are called `{}` by the control plane", info.path));
        }
        self.ir.tables.push(info);
        let number = self.ir.tables.len() - 1;
        self.tables.insert(key, number);
        number
    }

    fn attach(&mut self, table: &hir::Table, info: &mut TableInfo) {
        for (property, value) in &table.attached {
            if &**property == "add_on_miss" {
                info.add_on_miss = matches!(value.kind, ExprKind::Bool(true));
            }
            let Some(object) = self.object_of(value) else { continue };
            let Object::Extern { name, index } = &*object else { continue };
            match &**name {
                "direct_counter" | "DirectCounter" => info.counter = Some(*index),
                "direct_meter" | "DirectMeter" => info.meter = Some(*index),
                "action_selector" | "ActionSelector" => (info.has_selector, info.profile) = (true, Some(*index)),
                "action_profile" | "ActionProfile" => info.profile = Some(*index),
                _ => {}
            }
        }
    }

    fn key_info(&mut self, key: &hir::Key) -> KeyInfo {
        let ty = self.concrete(&key.value.ty);
        let names = match &ty {
            Type::Error => self.program.errors.iter().cloned().zip(0..).collect(),
            Type::Enum(of) => {
                let plain = of.underlying.is_none();
                let members = of.members.iter().enumerate();
                members
                    .map(|(at, (name, value))| {
                        (name.clone(), if plain { at as u64 } else { value.to_u64().unwrap_or(0) })
                    })
                    .collect()
            }
            Type::Bool => vec![("false".into(), 0), ("true".into(), 1)],
            _ => Vec::new(),
        };
        if key.match_kind == MatchKind::Range && is_signed(&ty) {
            self.unsupported(key.value.span, "a range over signed values as a key");
        }
        let width = scalar_width(&ty).unwrap_or(1);
        let annotations = key.annotations.clone();
        KeyInfo { annotations, ty, name: key.name.clone(), width, kind: key.match_kind, names }
    }

    fn action_info(&mut self, used: &hir::TableAction) -> ActionInfo {
        let action = &self.program.actions[used.action];
        let mut parameters = Vec::new();
        for parameter in action.parameters.iter().filter(|p| p.direction == Direction::None) {
            let place = self.storage(parameter.variable, &parameter.ty);
            if scalar_width(&place.ty).is_none() {
                let message = format!("parameter `{}` of action `{}` is no number", parameter.name, action.name);
                self.reporter.error(self.program.blocks.first().map_or(Default::default(), |b| b.span), message);
                continue;
            }
            parameters.push(ParameterInfo {
                annotations: parameter.annotations.clone(),
                ty: place.ty.clone(),
                name: parameter.name.clone(),
                slot: place.slot(),
            });
        }
        let path = if action.is_global { action.path.to_string() } else { self.full_path(&action.path) };
        let known = *self.action_paths.entry(path.clone()).or_insert(used.action);
        if known != used.action {
            let message = format!("two actions are called `{path}` by the control plane");
            self.reporter.error(self.program.blocks.last().map_or(Default::default(), |b| b.span), message);
        }
        ActionInfo {
            annotations: action.annotations.clone(),
            list_annotations: used.annotations.clone(),
            path: path.trim_start_matches('.').into(),
            parameters,
            default_only: used.default_only,
            table_only: used.table_only,
        }
    }

    fn action_call(&mut self, position: usize, data: &[Expr], actions: &[ActionInfo]) -> ActionCall {
        let mut values = Vec::new();
        for (expr, parameter) in data.iter().zip(&actions[position].parameters) {
            let number = self.known_number(expr).unwrap_or_default();
            values.push(super::evaluate::limbs(&number, parameter.slot.width));
        }
        ActionCall { action: position, data: values }
    }

    /// Two entries with the same keys, where nothing says which one wins.
    fn check_duplicates(&mut self, table: &hir::Table, entries: &[EntrySpec]) {
        let decides =
            |key: &hir::Key| matches!(key.match_kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional);
        if table.keys.iter().any(decides) {
            return;
        }
        for (number, entry) in entries.iter().enumerate() {
            if entries[..number].iter().any(|other| other.keys == entry.keys) {
                self.reporter.error(table.entries[number].span, "an entry with these keys exists already");
            }
        }
    }

    fn entries(&mut self, table: &hir::Table, info: &TableInfo) -> Vec<EntrySpec> {
        let priorities = priorities(table);
        let mut found = Vec::new();
        for (entry, priority) in table.entries.iter().zip(priorities) {
            let mut keys = Vec::new();
            for (element, key) in entry.keys.iter().zip(&info.keys) {
                keys.push(self.entry_key(element, key));
            }
            let call = self.action_call(entry.action, &entry.arguments, &info.actions);
            let is_const = entry.is_const || table.entries_are_const;
            found.push(EntrySpec { keys, priority, call, is_const });
        }
        self.check_duplicates(table, &found);
        found
    }

    fn entry_key(&mut self, element: &Expr, key: &KeyInfo) -> Match {
        let number = |lower: &Self, expr: &Expr| {
            super::evaluate::limbs(&lower.known_number(expr).unwrap_or_default(), key.width)
        };
        match &element.kind {
            ExprKind::Any => Match::Any,
            ExprKind::Range(low, high) => Match::Range(number(self, low), number(self, high)),
            ExprKind::Mask(value, mask) => {
                let (value, mask) = (number(self, value), number(self, mask));
                if key.kind == MatchKind::Lpm {
                    let ones: u32 = mask.iter().map(|limb| limb.count_ones()).sum();
                    if mask != prefix_mask(key.width, ones) {
                        self.reporter.error(element.span, "the mask of an lpm key must be a prefix");
                    }
                    return Match::Lpm(value, ones);
                }
                Match::Ternary(value, mask)
            }
            _ => {
                let value = number(self, element);
                match key.kind {
                    MatchKind::Lpm => Match::Lpm(value, key.width),
                    MatchKind::Ternary => Match::Ternary(value, prefix_mask(key.width, key.width)),
                    MatchKind::Range => Match::Range(value.clone(), value),
                    _ => Match::Exact(value),
                }
            }
        }
    }

    /// The value set of the present instance.
    pub(super) fn value_set(&mut self, index: usize) -> usize {
        let key = (self.path.clone(), index);
        if let Some(number) = self.sets.get(&key) {
            return *number;
        }
        let set = &self.program.value_sets[index];
        let widths = self.flat_widths(&set.ty);
        let path = Name::from(self.full_path(&set.path));
        let (annotations, ty) = (set.annotations.clone(), set.ty.clone());
        self.ir.sets.push(SetInfo { annotations, ty, path, widths, size: set.size });
        self.sets.insert(key, self.ir.sets.len() - 1);
        self.ir.sets.len() - 1
    }
}

/// A mask of `ones` high bits of `width`.
pub(crate) fn prefix_mask(width: u32, ones: u32) -> Vec<u64> {
    let mut mask = vec![0u64; words(width)];
    for bit in (width - ones.min(width))..width {
        mask[(bit / 64) as usize] |= 1 << (bit % 64);
    }
    mask
}

/// Priorities of the entries, the higher one wins. Entries without one follow the order of the program: one step lower
/// than the entry before (section 14.2.1.5), or, where annotations give some, their position.
fn priorities(table: &hir::Table) -> Vec<i64> {
    let count = table.entries.len() as i64;
    if table.entries.iter().any(|entry| entry.annotated) {
        let positions = table.entries.iter().zip(1..);
        return positions.map(|(entry, position)| -entry.priority.unwrap_or(position)).collect();
    }
    let (sign, step) =
        if table.largest_priority_wins { (1, -table.priority_delta) } else { (-1, table.priority_delta) };
    let mut next = if table.largest_priority_wins { (count - 1) * table.priority_delta + 1 } else { 1 };
    let mut found = Vec::new();
    for entry in &table.entries {
        let priority = entry.priority.unwrap_or(next);
        next = priority + step;
        found.push(sign * priority);
    }
    found
}
