//! Parser states.

use super::expressions::{Value, part_count, part_type};
use super::places::scalar_width;
use super::{Lower, Object};
use crate::p4::ast::BinaryOp;
use crate::p4::hir::{Expr, ExprKind, State, StateRef, Transition};
use crate::p4::ir::{BlockId, Note, Op, Operand, Terminator};
use crate::p4::types::Type;

impl Lower<'_> {
    /// Number of an error.
    pub(super) fn error_number(&self, name: &str) -> u64 {
        self.program.errors.iter().position(|error| &**error == name).unwrap_or(0) as u64
    }

    /// Sets the parser's error and rejects unless the condition holds.
    pub(super) fn require(&mut self, condition: Operand, error: &str) {
        let number = Operand::small(self.error_number(error), 16);
        self.require_or(condition, number);
    }

    pub(super) fn require_or(&mut self, condition: Operand, error: Operand) {
        let (good, bad) = (self.new_block(), self.new_block());
        self.branch(condition, good, bad);
        self.current = bad;
        self.op(Op::Copy { to: self.error, from: error });
        self.jump(self.flow.reject);
        self.current = good;
    }

    /// Rejects if the last operation on the packet set the parser's error.
    pub(super) fn check_error(&mut self) {
        let fine = self.binary_op(BinaryOp::Equal, Operand::Slot(self.error), Operand::small(0, 16), false);
        let good = self.new_block();
        self.branch(fine, good, self.flow.reject);
        self.current = good;
    }

    pub(super) fn parser_states(&mut self, states: &[State]) {
        let blocks: Vec<BlockId> = states.iter().map(|_| self.new_block()).collect();
        let accept = self.new_block();
        let timeout = self.new_block();
        let Some(start) = states.iter().position(|state| &*state.name == "start") else { return };
        self.jump(blocks[start]);
        for (state, block) in states.iter().zip(&blocks) {
            self.current = *block;
            self.tick(timeout);
            self.op(Op::Note(Note::State(state.name.clone())));
            self.statements(&state.body);
            let to = |target: &StateRef, reject: BlockId| match target {
                StateRef::Accept => accept,
                StateRef::Reject => reject,
                StateRef::State(number) => blocks[*number],
            };
            let reject = self.flow.reject;
            match &state.transition {
                Transition::Direct(target) => self.jump(to(target, reject)),
                Transition::Select { keys, cases } => {
                    let targets: Vec<BlockId> = cases.iter().map(|(_, target)| to(target, reject)).collect();
                    self.select(keys, cases, &targets);
                }
            }
        }
        self.current = timeout;
        let number = Operand::small(self.error_number("ParserTimeout"), 16);
        self.op(Op::Copy { to: self.error, from: number });
        self.jump(self.flow.reject);
        self.current = accept;
    }

    fn select(&mut self, keys: &[Expr], cases: &[(Vec<Expr>, StateRef)], targets: &[BlockId]) {
        let values: Vec<Value> = keys
            .iter()
            .map(|key| {
                let value = self.value(key);
                self.kept(value)
            })
            .collect();
        if self.select_by_switch(keys, &values, cases, targets) {
            return;
        }
        for ((set, _), target) in cases.iter().zip(targets) {
            let mut all: Option<Operand> = None;
            if let [Expr { kind: ExprKind::ValueSet(number), .. }] = &set[..] {
                all = Some(self.in_set(*number, keys, &values));
            } else {
                for ((element, key), value) in set.iter().zip(keys).zip(&values) {
                    let ty = self.concrete(&key.ty);
                    let Some(holds) = self.element_matches(element, value, &ty) else { continue };
                    all = Some(match all {
                        None => holds,
                        Some(before) => self.binary_op(BinaryOp::And, before, holds, false),
                    });
                }
            }
            match all {
                None => {
                    self.jump(*target);
                    return;
                }
                Some(holds) => {
                    let next = self.new_block();
                    self.branch(holds, *target, next);
                    self.current = next;
                }
            }
        }
        self.no_match();
    }

    fn no_match(&mut self) {
        let number = Operand::small(self.error_number("NoMatch"), 16);
        self.op(Op::Copy { to: self.error, from: number });
        self.jump(self.flow.reject);
    }

    /// One key against constants only becomes a switch.
    fn select_by_switch(
        &mut self,
        keys: &[Expr],
        values: &[Value],
        cases: &[(Vec<Expr>, StateRef)],
        targets: &[BlockId],
    ) -> bool {
        let ([key], [Value::Scalar(value)]) = (keys, values) else {
            return false;
        };
        let width = scalar_width(&self.concrete(&key.ty)).unwrap_or(65);
        if width > 64 {
            return false;
        }
        let (mut jumps, mut otherwise): (Vec<(u64, BlockId)>, Option<BlockId>) = (Vec::new(), None);
        for ((set, _), target) in cases.iter().zip(targets) {
            let [element] = &set[..] else { return false };
            if matches!(element.kind, ExprKind::Any) {
                otherwise = Some(*target);
                break;
            }
            let Some(number) = self.known_number(element) else { return false };
            let label = super::evaluate::limbs(&number, width)[0];
            if !jumps.iter().any(|(known, _)| *known == label) {
                jumps.push((label, *target));
            }
        }
        let value = value.clone();
        let missing = otherwise.is_none().then(|| self.new_block());
        let otherwise = otherwise.or(missing).unwrap_or(0);
        self.end(Terminator::Switch { value, cases: jumps, otherwise });
        if let Some(missing) = missing {
            self.current = missing;
            self.no_match();
        }
        true
    }

    /// The value is in the set; none where everything is.
    fn element_matches(&mut self, element: &Expr, value: &Value, ty: &Type) -> Option<Operand> {
        let signed = super::places::is_signed(ty);
        match (&element.kind, value) {
            (ExprKind::Any, _) => None,
            (ExprKind::Mask(wanted, mask), Value::Scalar(value)) => {
                let (wanted, mask) = (self.scalar(wanted), self.scalar(mask));
                let left = self.binary_op(BinaryOp::And, value.clone(), mask.clone(), false);
                let right = self.binary_op(BinaryOp::And, wanted, mask, false);
                Some(self.binary_op(BinaryOp::Equal, left, right, false))
            }
            (ExprKind::Range(low, high), Value::Scalar(value)) => {
                let (low, high) = (self.scalar(low), self.scalar(high));
                let above = self.binary_op(BinaryOp::GreaterEqual, value.clone(), low, signed);
                let below = self.binary_op(BinaryOp::LessEqual, value.clone(), high, signed);
                Some(self.binary_op(BinaryOp::And, above, below, false))
            }
            (ExprKind::ValueSet(number), _) => {
                let key = Expr { ty: ty.clone(), ..element.clone() };
                Some(self.in_set(*number, &[key], std::slice::from_ref(value)))
            }
            (ExprKind::Aggregate(items), value) if part_count(ty) == items.len() => {
                let mut all = Operand::small(1, 1);
                for (number, item) in items.iter().enumerate() {
                    let part = self.part(value, number);
                    if let Some(holds) = self.element_matches(item, &part, &part_type(ty, number)) {
                        all = self.binary_op(BinaryOp::And, all, holds, false);
                    }
                }
                Some(all)
            }
            _ => {
                let wanted = self.value(element);
                Some(self.equal(value, &wanted, ty))
            }
        }
    }

    fn in_set(&mut self, number: usize, keys: &[Expr], values: &[Value]) -> Operand {
        let mut operands = Vec::new();
        for (key, value) in keys.iter().zip(values) {
            let ty = self.concrete(&key.ty);
            self.flatten(value, &ty, &mut operands);
        }
        let set = self.value_set(number);
        let to = self.temporary(1);
        let keys = operands.into_iter().map(|datum| datum.value).collect();
        self.op(Op::InSet { set, keys, to });
        Operand::Slot(to)
    }

    /// The packet, if the expression names it.
    pub(super) fn is_packet(&mut self, object: &Expr) -> bool {
        let object = self.object_of(object);
        matches!(object, Some(object) if matches!(*object, Object::Packet))
    }
}
