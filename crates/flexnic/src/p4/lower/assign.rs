//! Places of expressions, and assignments.

use super::expressions::{Value, has_call, is_union, part_count};
use super::places::{Place, scalar_width};
use super::{Binding, Lower};
use crate::p4::ast::BinaryOp;
use crate::p4::hir::{Expr, ExprKind};
use crate::p4::ir::{Note, Op, Operand};
use crate::p4::types::Type;

/// The target of an assignment: a place, or bits of one.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub place: Place,
    /// Lowest bit and number of bits.
    pub bits: Option<(u32, u32)>,
    /// Union that the place is a header of, and which one.
    pub union: Option<(Place, usize)>,
}

impl Lower<'_> {
    /// The storage that an expression names. Indices are evaluated, once.
    pub(super) fn place(&mut self, expr: &Expr) -> Option<Place> {
        match &expr.kind {
            ExprKind::Variable(variable) => match self.bindings.get(variable) {
                Some(Binding::Place(place)) => Some(place.clone()),
                _ => None,
            },
            ExprKind::Field(base, number) => {
                let base = self.place(base)?;
                Some(base.field(*number))
            }
            ExprKind::Index(base, index) => {
                let stack = self.place(base)?;
                let value = self.scalar(index);
                let value = match value {
                    Operand::Slot(slot) if !slot.temporary => {
                        let to = self.temporary(slot.width);
                        self.op(Op::Copy { to, from: Operand::Slot(slot) });
                        Operand::Slot(to)
                    }
                    other => other,
                };
                Some(stack.element_at(value))
            }
            ExprKind::Next(stack) => {
                let stack = self.place(stack)?;
                let next = self.read(&stack.next());
                let inside =
                    self.binary_op(BinaryOp::Less, next.clone(), Operand::small(u64::from(stack.count()), 32), false);
                self.require(inside, "StackOutOfBounds");
                let index = self.temporary(32);
                self.op(Op::Copy { to: index, from: next });
                Some(stack.element_at(Operand::Slot(index)))
            }
            ExprKind::Last(stack) => {
                let stack = self.place(stack)?;
                let next = self.read(&stack.next());
                let inside = self.binary_op(BinaryOp::NotEqual, next.clone(), Operand::small(0, 32), false);
                self.require(inside, "StackOutOfBounds");
                let index = self.binary_op(BinaryOp::Sub, next, Operand::small(1, 32), false);
                Some(stack.element_at(index))
            }
            _ => {
                let ty = self.concrete(&expr.ty);
                let value = self.value(expr);
                let place = self.allocate(&ty);
                self.store(&place, value);
                Some(place)
            }
        }
    }

    pub(super) fn target(&mut self, expr: &Expr) -> Option<Target> {
        match &expr.kind {
            ExprKind::Slice(base, high, low) => {
                let inner = self.target(base)?;
                let shift = inner.bits.map_or(0, |(low, _)| low);
                Some(Target { bits: Some((shift + low, high - low + 1)), ..inner })
            }
            ExprKind::Field(base, number) => {
                let base = self.place(base)?;
                let place = base.field(*number);
                let union = is_union(&base.ty).then_some((base, *number));
                Some(Target { place, bits: None, union })
            }
            _ => Some(Target { place: self.place(expr)?, bits: None, union: None }),
        }
    }

    pub(super) fn assign(&mut self, target: &Expr, operator: Option<BinaryOp>, value: &Expr) {
        // A value that reads what the target's indices change is rare; indices come first, as the specification says.
        let Some(to) = self.target(target) else { return };
        let Some(operator) = operator else {
            let value = self.value(value);
            self.store_target(&to, value);
            return;
        };
        let signed = super::places::is_signed(&to.place.ty);
        let old = self.read_target(&to);
        let old = if has_call(value) { self.kept(old) } else { old };
        let Value::Scalar(old) = old else { return };
        let right = self.scalar(value);
        let new = self.binary_op(operator, old, right, signed);
        self.store_target(&to, Value::Scalar(new));
    }

    fn read_target(&mut self, target: &Target) -> Value {
        let value = self.value_at(&target.place);
        match (target.bits, value) {
            (Some((low, width)), Value::Scalar(from)) => {
                let to = self.temporary(width);
                self.op(Op::Slice { to, from, low });
                Value::Scalar(Operand::Slot(to))
            }
            (_, value) => value,
        }
    }

    pub(super) fn store_target(&mut self, target: &Target, value: Value) {
        match (target.bits, value) {
            (Some((low, _)), Value::Scalar(from)) => self.insert(&target.place, low, from),
            (Some((low, width)), _) => {
                let zero = super::evaluate::constant_operand(&num_bigint::BigInt::ZERO, width);
                self.insert(&target.place, low, zero);
            }
            (None, value) => self.store(&target.place, value),
        }
        if let Some((union, number)) = &target.union {
            self.invalidate_others(union, *number);
        }
    }

    fn insert(&mut self, place: &Place, low: u32, from: Operand) {
        if place.index.is_none() {
            self.op(Op::Insert { to: place.slot(), low, from });
            self.op(Op::Note(Note::Assign(place.slot())));
            return;
        }
        let whole = self.read(place);
        let Operand::Slot(slot) = whole else { return };
        self.op(Op::Insert { to: slot, low, from });
        self.write(place, whole);
    }

    /// A valid header of a union makes the others invalid.
    pub(super) fn invalidate_others(&mut self, union: &Place, number: usize) {
        let valid = self.read(&union.field(number).valid());
        let keep = self.not(valid);
        for other in (0..union.field_count()).filter(|other| *other != number) {
            let place = union.field(other).valid();
            let old = self.read(&place);
            let new = self.binary_op(BinaryOp::And, old, keep.clone(), false);
            self.write(&place, new);
        }
    }

    /// Writes a value to a place.
    pub(super) fn store(&mut self, place: &Place, value: Value) {
        match value {
            Value::Scalar(operand) => {
                self.write(place, operand);
                if place.index.is_none() {
                    self.op(Op::Note(Note::Assign(place.slot())));
                }
            }
            Value::Place(from) => self.copy(place, &from),
            Value::Zero => self.clear(place),
            Value::Items(items) => {
                // The parts may read what they write: `h = { h.b, h.a }`.
                let items: Vec<Value> =
                    if items.len() > 1 { items.into_iter().map(|item| self.kept(item)).collect() } else { items };
                self.store_items(place, items);
            }
        }
    }

    fn store_items(&mut self, place: &Place, items: Vec<Value>) {
        if place.ty.is_header() {
            self.write(&place.valid(), Operand::small(1, 1));
        }
        let is_stack = matches!(place.ty, Type::Stack(..));
        if is_stack {
            self.clear(place);
        }
        let count = part_count(&place.ty);
        for (number, item) in items.into_iter().enumerate().take(count) {
            let part = if is_stack { place.element(number as u32) } else { place.field(number) };
            match item {
                Value::Items(inner) if scalar_width(&part.ty).is_none() => self.store_items(&part, inner),
                item => self.store(&part, item),
            }
        }
    }
}
