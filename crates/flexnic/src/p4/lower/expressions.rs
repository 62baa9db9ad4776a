//! Expressions.

use super::evaluate::constant_operand;
use super::places::{Place, is_signed, scalar_width};
use super::{Binding, Lower};
use crate::p4::ast::{BinaryOp, StructKind, UnaryOp};
use crate::p4::hir::{Expr, ExprKind, TableResult};
use crate::p4::ir::{Op, Operand, Unary};
use crate::p4::types::Type;

/// The value of an expression.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Scalar(Operand),
    /// An aggregate in storage.
    Place(Place),
    /// An aggregate by its parts; a header of this kind is valid.
    Items(Vec<Value>),
    /// Zero, or an invalid header.
    Zero,
}

impl Lower<'_> {
    /// The type with type parameters replaced.
    pub(super) fn concrete(&self, ty: &Type) -> Type {
        ty.substitute(&self.types)
    }

    /// The value of a scalar expression.
    pub(super) fn scalar(&mut self, expr: &Expr) -> Operand {
        match self.value(expr) {
            Value::Scalar(operand) => operand,
            Value::Place(place) => self.read(&place),
            Value::Zero | Value::Items(_) => {
                let width = scalar_width(&self.concrete(&expr.ty)).unwrap_or(1);
                constant_operand(&num_bigint::BigInt::ZERO, width)
            }
        }
    }

    pub(super) fn value(&mut self, expr: &Expr) -> Value {
        let ty = self.concrete(&expr.ty);
        let width = scalar_width(&ty);
        if let Some(width) = width
            && let Some(number) = self.known_number(expr)
        {
            return Value::Scalar(constant_operand(&number, width));
        }
        match &expr.kind {
            ExprKind::Variable(_)
            | ExprKind::Field(..)
            | ExprKind::Index(..)
            | ExprKind::Last(_)
            | ExprKind::Next(_) => self.read_value(expr),
            ExprKind::LastIndex(stack) => {
                let Some(stack) = self.place(stack) else { return Value::Zero };
                let next = self.read(&stack.next());
                Value::Scalar(self.binary_op(BinaryOp::Sub, next, Operand::small(1, 32), false))
            }
            ExprKind::Slice(base, _, low) => {
                let from = self.scalar(base);
                let to = self.temporary(width.unwrap_or(1));
                self.op(Op::Slice { to, from, low: *low });
                Value::Scalar(Operand::Slot(to))
            }
            ExprKind::Unary(operator, operand) => Value::Scalar(self.unary(*operator, operand)),
            ExprKind::Binary(operator, left, right) => Value::Scalar(self.binary(*operator, left, right)),
            ExprKind::Conditional(condition, yes, no) => self.conditional(condition, yes, no, &ty),
            ExprKind::Cast(operand) => self.cast(operand, &ty),
            ExprKind::Aggregate(items) => self.items(items),
            ExprKind::Call(call) => self.call(call, &ty),
            ExprKind::Apply(table, result) => {
                let hit = self.apply(*table).0;
                let hit = Operand::Slot(hit);
                Value::Scalar(if *result == TableResult::Miss { self.not(hit) } else { hit })
            }
            _ => Value::Zero,
        }
    }

    fn read_value(&mut self, expr: &Expr) -> Value {
        // A field of something that is no variable: of a call's result, for example.
        if let ExprKind::Field(base, number) = &expr.kind
            && !is_place(base)
        {
            return match self.value(base) {
                Value::Place(place) => self.value_at(&place.field(*number)),
                Value::Items(mut items) if *number < items.len() => items.swap_remove(*number),
                _ => Value::Zero,
            };
        }
        if let ExprKind::Variable(variable) = &expr.kind
            && let Some(Binding::Value(value)) = self.bindings.get(variable).cloned()
            && value.kind_is_not(*variable)
        {
            return self.value(&value);
        }
        match self.place(expr) {
            Some(place) => self.value_at(&place),
            None => Value::Zero,
        }
    }

    pub(super) fn value_at(&mut self, place: &Place) -> Value {
        if scalar_width(&place.ty).is_some() { Value::Scalar(self.read(place)) } else { Value::Place(place.clone()) }
    }

    /// The parts of an aggregate. Where one of them has a side effect, those before it are copied first.
    fn items(&mut self, items: &[Expr]) -> Value {
        let mut values = Vec::new();
        for (number, item) in items.iter().enumerate() {
            let value = self.value(item);
            let later = items[number + 1..].iter().any(has_call);
            values.push(if later { self.kept(value) } else { value });
        }
        Value::Items(values)
    }

    /// The value, safe from later writes.
    pub(super) fn kept(&mut self, value: Value) -> Value {
        match value {
            Value::Scalar(operand) => Value::Scalar(self.kept_operand(operand)),
            Value::Place(place) => Value::Place(self.snapshot(&place)),
            Value::Items(items) => Value::Items(items.into_iter().map(|item| self.kept(item)).collect()),
            Value::Zero => Value::Zero,
        }
    }

    fn kept_operand(&mut self, operand: Operand) -> Operand {
        match operand {
            Operand::Slot(slot) if !slot.temporary => {
                let to = self.temporary(slot.width);
                self.op(Op::Copy { to, from: operand });
                Operand::Slot(to)
            }
            _ => operand,
        }
    }

    pub(super) fn not(&mut self, operand: Operand) -> Operand {
        let to = self.temporary(1);
        self.op(Op::Unary { operator: Unary::Complement, to, from: operand });
        Operand::Slot(to)
    }

    fn unary(&mut self, operator: UnaryOp, operand: &Expr) -> Operand {
        let from = self.scalar(operand);
        let operator = match operator {
            UnaryOp::Plus => return from,
            UnaryOp::Negate => Unary::Negate,
            UnaryOp::Not | UnaryOp::Complement => Unary::Complement,
        };
        let to = self.temporary(from.width());
        self.op(Op::Unary { operator, to, from });
        Operand::Slot(to)
    }

    pub(super) fn binary_op(&mut self, operator: BinaryOp, left: Operand, right: Operand, signed: bool) -> Operand {
        let compares = matches!(
            operator,
            BinaryOp::Equal
                | BinaryOp::NotEqual
                | BinaryOp::Less
                | BinaryOp::LessEqual
                | BinaryOp::Greater
                | BinaryOp::GreaterEqual
        );
        let to = self.temporary(if compares { 1 } else { left.width() });
        self.op(Op::Binary { operator, to, left, right, signed });
        Operand::Slot(to)
    }

    fn binary(&mut self, operator: BinaryOp, left: &Expr, right: &Expr) -> Operand {
        match operator {
            BinaryOp::AndAlso | BinaryOp::OrElse => return self.logical(operator, left, right),
            BinaryOp::Equal | BinaryOp::NotEqual if scalar_width(&self.concrete(&left.ty)).is_none() => {
                let ty = self.concrete(&left.ty);
                let a = self.value(left);
                let a = if has_call(right) { self.kept(a) } else { a };
                let b = self.value(right);
                let equal = self.equal(&a, &b, &ty);
                return if operator == BinaryOp::Equal { equal } else { self.not(equal) };
            }
            _ => {}
        }
        let signed = is_signed(&self.concrete(&left.ty));
        let a = self.scalar(left);
        let a = if has_call(right) { self.kept_operand(a) } else { a };
        let b = self.scalar(right);
        if operator == BinaryOp::Concat {
            let to = self.temporary(a.width() + b.width());
            self.op(Op::Concat { to, left: a, right: b });
            return Operand::Slot(to);
        }
        self.binary_op(operator, a, b, signed)
    }

    /// `&&` and `||`; the right side is skipped only where it has a side effect.
    fn logical(&mut self, operator: BinaryOp, left: &Expr, right: &Expr) -> Operand {
        let is_and = operator == BinaryOp::AndAlso;
        let a = self.scalar(left);
        if !has_call(right) {
            let b = self.scalar(right);
            return self.binary_op(if is_and { BinaryOp::And } else { BinaryOp::Or }, a, b, false);
        }
        let to = self.temporary(1);
        self.op(Op::Copy { to, from: a });
        let (more, done) = (self.new_block(), self.new_block());
        let (yes, no) = if is_and { (more, done) } else { (done, more) };
        self.branch(Operand::Slot(to), yes, no);
        self.current = more;
        let b = self.scalar(right);
        self.op(Op::Copy { to, from: b });
        self.continue_in(done);
        Operand::Slot(to)
    }

    fn conditional(&mut self, condition: &Expr, yes: &Expr, no: &Expr, ty: &Type) -> Value {
        let condition = self.scalar(condition);
        if let Some(width) = scalar_width(ty)
            && !has_call(yes)
            && !has_call(no)
        {
            let (yes, no) = (self.scalar(yes), self.scalar(no));
            let to = self.temporary(width);
            self.op(Op::Select { to, condition, yes, no });
            return Value::Scalar(Operand::Slot(to));
        }
        let result = self.allocate(ty);
        let (then, otherwise, done) = (self.new_block(), self.new_block(), self.new_block());
        self.branch(condition, then, otherwise);
        for (block, expr) in [(then, yes), (otherwise, no)] {
            self.current = block;
            let value = self.value(expr);
            self.store(&result, value);
            self.jump(done);
        }
        self.current = done;
        self.value_at(&result)
    }

    fn cast(&mut self, operand: &Expr, ty: &Type) -> Value {
        let from_type = self.concrete(&operand.ty);
        let Some(width) = scalar_width(ty) else {
            return self.value(operand);
        };
        let from = self.scalar(operand);
        if from.width() == width {
            return Value::Scalar(from);
        }
        let to = self.temporary(width);
        self.op(Op::Resize { to, from, signed: is_signed(&from_type) });
        Value::Scalar(Operand::Slot(to))
    }

    /// Equality of two values of a type.
    pub(super) fn equal(&mut self, a: &Value, b: &Value, ty: &Type) -> Operand {
        if scalar_width(ty).is_some() {
            let (a, b) = (self.scalar_of(a, ty), self.scalar_of(b, ty));
            return self.binary_op(BinaryOp::Equal, a, b, false);
        }
        let is_header = ty.is_header();
        let mut all = Operand::small(1, 1);
        for number in 0..part_count(ty) {
            let part = part_type(ty, number);
            let (x, y) = (self.part(a, number), self.part(b, number));
            let same = self.equal(&x, &y, &part);
            all = self.binary_op(BinaryOp::And, all, same, false);
        }
        if !is_header {
            return all;
        }
        let (valid_a, valid_b) = (self.validity(a), self.validity(b));
        let either = self.binary_op(BinaryOp::Or, valid_a.clone(), valid_b.clone(), false);
        let both = self.binary_op(BinaryOp::And, valid_a, valid_b, false);
        let equal_and_valid = self.binary_op(BinaryOp::And, both, all, false);
        let none = self.not(either);
        self.binary_op(BinaryOp::Or, none, equal_and_valid, false)
    }

    fn scalar_of(&mut self, value: &Value, ty: &Type) -> Operand {
        match value {
            Value::Scalar(operand) => operand.clone(),
            Value::Place(place) => self.read(place),
            _ => constant_operand(&num_bigint::BigInt::ZERO, scalar_width(ty).unwrap_or(1)),
        }
    }

    fn validity(&mut self, value: &Value) -> Operand {
        match value {
            Value::Place(place) => self.read(&place.valid()),
            Value::Items(_) => Operand::small(1, 1),
            _ => Operand::small(0, 1),
        }
    }

    /// A field, element or item of a value.
    pub(super) fn part(&mut self, value: &Value, number: usize) -> Value {
        match value {
            Value::Place(place) if matches!(place.ty, Type::Stack(..)) => self.value_at(&place.element(number as u32)),
            Value::Place(place) => self.value_at(&place.field(number)),
            Value::Items(items) => items.get(number).cloned().unwrap_or(Value::Zero),
            _ => Value::Zero,
        }
    }
}

/// Number of fields, elements or items.
pub(super) fn part_count(ty: &Type) -> usize {
    match ty {
        Type::Tuple(items) => items.len(),
        Type::Stack(_, count) => *count as usize,
        _ => ty.fields().len(),
    }
}

/// Type of a field, element or item.
pub(super) fn part_type(ty: &Type, number: usize) -> Type {
    match ty {
        Type::Tuple(items) => items[number].clone(),
        Type::Stack(of, _) => (**of).clone(),
        _ => ty.fields()[number].ty.clone(),
    }
}

/// The expression names storage.
pub(super) fn is_place(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Variable(_) => true,
        ExprKind::Field(base, _) | ExprKind::Index(base, _) | ExprKind::Next(base) | ExprKind::Last(base) => {
            is_place(base)
        }
        _ => false,
    }
}

/// Evaluating the expression may change something.
pub(super) fn has_call(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Call(call) => !matches!(&call.callee, crate::p4::hir::Callee::BuiltIn(..)),
        ExprKind::Apply(..) => true,
        ExprKind::Last(_) | ExprKind::Next(_) => true,
        ExprKind::Field(base, _) | ExprKind::LastIndex(base) | ExprKind::Slice(base, _, _) => has_call(base),
        ExprKind::Unary(_, base) | ExprKind::Cast(base) => has_call(base),
        ExprKind::Index(left, right) | ExprKind::Binary(_, left, right) => has_call(left) || has_call(right),
        ExprKind::Conditional(condition, yes, no) => has_call(condition) || has_call(yes) || has_call(no),
        ExprKind::Aggregate(items) => items.iter().any(has_call),
        _ => false,
    }
}

impl Expr {
    /// A value that is not the variable itself.
    fn kind_is_not(&self, variable: crate::p4::hir::VarId) -> bool {
        !matches!(self.kind, ExprKind::Variable(own) if own == variable)
    }
}

/// The type is a union.
pub(super) fn is_union(ty: &Type) -> bool {
    ty.struct_kind() == Some(StructKind::Union)
}
