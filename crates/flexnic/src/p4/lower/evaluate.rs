//! Values that are known once constructors have their arguments.

use std::sync::Arc;

use num_bigint::BigInt;

use super::places::scalar_width;
use super::{Binding, Lower};
use crate::p4::ast::{BinaryOp, UnaryOp};
use crate::p4::constant::{self, Range};
use crate::p4::hir::{Expr, ExprKind};
use crate::p4::ir::{Constant, Operand, words};
use crate::p4::types::Type;

/// A number as words of a value of `width` bits.
pub(super) fn limbs(value: &BigInt, width: u32) -> Vec<u64> {
    let value = Range::Fixed { width, signed: false }.wrap(value.clone());
    let mut limbs = value.iter_u64_digits().collect::<Vec<u64>>();
    limbs.resize(words(width), 0);
    limbs
}

/// A constant operand.
pub(super) fn constant_operand(value: &BigInt, width: u32) -> Operand {
    Operand::Constant(Constant { width, limbs: Arc::from(limbs(value, width)) })
}

fn range(ty: &Type) -> Range {
    match ty.representation() {
        Type::Int(width) => Range::Fixed { width, signed: true },
        ty => scalar_width(&ty)
            .filter(|_| ty != Type::Integer)
            .map_or(Range::Unbounded, |width| Range::Fixed { width, signed: false }),
    }
}

impl Lower<'_> {
    /// Replaces what constructor parameters stand for and computes as far as that makes values known.
    pub(super) fn evaluate(&self, expr: &Expr) -> Expr {
        let with = |kind: ExprKind| Expr { kind, ty: expr.ty.clone(), span: expr.span };
        match &expr.kind {
            ExprKind::Variable(variable) => match self.bindings.get(variable) {
                Some(Binding::Value(value)) => value.clone(),
                _ => expr.clone(),
            },
            ExprKind::Binary(operator, left, right) => {
                let (left, right) = (self.evaluate(left), self.evaluate(right));
                with(binary(*operator, left, right))
            }
            ExprKind::Unary(operator, operand) => {
                let operand = self.evaluate(operand);
                match (operator, &operand.kind) {
                    (UnaryOp::Not, ExprKind::Bool(value)) => with(ExprKind::Bool(!value)),
                    (UnaryOp::Negate, ExprKind::Integer(value)) => {
                        with(ExprKind::Integer(range(&expr.ty).wrap(-value)))
                    }
                    (UnaryOp::Complement, ExprKind::Integer(value)) => {
                        with(ExprKind::Integer(range(&expr.ty).wrap(!value.clone())))
                    }
                    _ => with(ExprKind::Unary(*operator, Box::new(operand))),
                }
            }
            ExprKind::Cast(operand) => {
                let operand = self.evaluate(operand);
                match (&operand.kind, expr.ty.representation()) {
                    (ExprKind::Integer(value), Type::Bool) => with(ExprKind::Bool(*value != BigInt::ZERO)),
                    (ExprKind::Integer(value), _) => with(ExprKind::Integer(range(&expr.ty).wrap(value.clone()))),
                    (ExprKind::Bool(value), Type::Bit(_)) => with(ExprKind::Integer(BigInt::from(u8::from(*value)))),
                    _ => with(ExprKind::Cast(Box::new(operand))),
                }
            }
            ExprKind::Conditional(condition, yes, no) => match self.evaluate(condition).kind {
                ExprKind::Bool(true) => self.evaluate(yes),
                ExprKind::Bool(false) => self.evaluate(no),
                _ => expr.clone(),
            },
            ExprKind::Field(base, number) => match self.evaluate(base).kind {
                ExprKind::Aggregate(items) if *number < items.len() => items[*number].clone(),
                _ => expr.clone(),
            },
            ExprKind::Slice(base, high, low) => match self.evaluate(base).kind {
                ExprKind::Integer(value) => {
                    let width = high - low + 1;
                    with(ExprKind::Integer(Range::Fixed { width, signed: false }.wrap(value >> *low)))
                }
                _ => expr.clone(),
            },
            ExprKind::Aggregate(items) => {
                with(ExprKind::Aggregate(items.iter().map(|item| self.evaluate(item)).collect()))
            }
            _ => expr.clone(),
        }
    }

    /// A number, if it is known.
    pub(super) fn known_number(&self, expr: &Expr) -> Option<BigInt> {
        match self.evaluate(expr).kind {
            ExprKind::Integer(value) => Some(value),
            ExprKind::Bool(value) => Some(BigInt::from(u8::from(value))),
            ExprKind::Error(index) => Some(BigInt::from(index)),
            ExprKind::Zero => Some(BigInt::ZERO),
            _ => None,
        }
    }
}

fn binary(operator: BinaryOp, left: Expr, right: Expr) -> ExprKind {
    match (&left.kind, &right.kind) {
        (ExprKind::Integer(a), ExprKind::Integer(b)) => {
            if let Some(holds) = constant::compare(operator, a, b) {
                return ExprKind::Bool(holds);
            }
            if operator != BinaryOp::Concat
                && let Some(value) = constant::binary(operator, a, b, range(&left.ty))
            {
                return ExprKind::Integer(value);
            }
        }
        (ExprKind::Bool(a), ExprKind::Bool(b)) => match operator {
            BinaryOp::AndAlso => return ExprKind::Bool(*a && *b),
            BinaryOp::OrElse => return ExprKind::Bool(*a || *b),
            BinaryOp::Equal => return ExprKind::Bool(a == b),
            BinaryOp::NotEqual => return ExprKind::Bool(a != b),
            _ => {}
        },
        _ => {}
    }
    ExprKind::Binary(operator, Box::new(left), Box::new(right))
}
