//! Operators.

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};

use super::Checker;
use super::convert::range;
use crate::p4::ast::{self, BinaryOp, UnaryOp};
use crate::p4::constant;
use crate::p4::hir::{Expr, ExprKind};
use crate::p4::source::Span;
use crate::p4::types::Type;

impl Checker<'_> {
    pub(super) fn unary(&mut self, operator: UnaryOp, operand: &ast::Expr, span: Span) -> Expr {
        let operand = self.expr(operand, None);
        if matches!(operand.ty, Type::Unknown) {
            return self.broken(span);
        }
        if operator == UnaryOp::Not {
            let operand = self.coerce(operand, &Type::Bool);
            let kind = match operand.kind {
                ExprKind::Broken => return self.broken(span),
                ExprKind::Bool(value) => ExprKind::Bool(!value),
                _ => ExprKind::Unary(operator, Box::new(operand)),
            };
            return Expr { kind, ty: Type::Bool, span };
        }
        let operand = self.underlying(operand);
        let Some(range) = range(&operand.ty) else {
            self.error(span, format!("this operator does not work on `{}`", operand.ty));
            return self.broken(span);
        };
        if operator == UnaryOp::Complement && operand.ty == Type::Integer {
            self.error(span, "`~` needs a width").help("give the literal one: ~8w1");
            return self.broken(span);
        }
        let ty = operand.ty.clone();
        let kind = match (&operand.kind, operator) {
            (_, UnaryOp::Plus) => operand.kind,
            (ExprKind::Integer(value), UnaryOp::Negate) => ExprKind::Integer(range.wrap(-value)),
            (ExprKind::Integer(value), _) => ExprKind::Integer(range.wrap(!value.clone())),
            _ => ExprKind::Unary(operator, Box::new(operand)),
        };
        Expr { kind, ty, span }
    }

    /// A value of an enumeration with values as its underlying type.
    fn underlying(&mut self, expr: Expr) -> Expr {
        match &expr.ty {
            Type::Enum(of) => match of.underlying.clone() {
                Some(ty) => self.make_cast(expr, &ty),
                None => expr,
            },
            _ => expr,
        }
    }

    pub(super) fn binary(&mut self, operator: BinaryOp, left: &ast::Expr, right: &ast::Expr, span: Span) -> Expr {
        // `{#}` takes its type from the other side of a comparison.
        let compares = matches!(operator, BinaryOp::Equal | BinaryOp::NotEqual);
        let first = matches!(left.kind, ast::ExprKind::Invalid) && compares;
        if first {
            let right = self.expr(right, None);
            let left = self.expr(left, Some(&right.ty));
            return self.binary_of(operator, left, right, span);
        }
        let left = self.expr(left, None);
        let right = self.expr(right, compares.then_some(&left.ty));
        self.binary_of(operator, left, right, span)
    }

    pub(super) fn binary_of(&mut self, operator: BinaryOp, left: Expr, right: Expr, span: Span) -> Expr {
        if matches!(left.ty, Type::Unknown) || matches!(right.ty, Type::Unknown) {
            return self.broken(span);
        }
        match operator {
            BinaryOp::AndAlso | BinaryOp::OrElse => self.logical(operator, left, right, span),
            BinaryOp::Equal | BinaryOp::NotEqual => self.equality(operator, left, right, span),
            BinaryOp::ShiftLeft | BinaryOp::ShiftRight => self.shift(operator, left, right, span),
            BinaryOp::Concat => self.concat(left, right, span),
            _ => self.arithmetic(operator, left, right, span),
        }
    }

    fn logical(&mut self, operator: BinaryOp, left: Expr, right: Expr, span: Span) -> Expr {
        let (left, right) = (self.coerce(left, &Type::Bool), self.coerce(right, &Type::Bool));
        let is_and = operator == BinaryOp::AndAlso;
        let kind = match (&left.kind, &right.kind) {
            (ExprKind::Broken, _) | (_, ExprKind::Broken) => return self.broken(span),
            (ExprKind::Bool(value), _) if *value == is_and => right.kind,
            (ExprKind::Bool(value), _) => ExprKind::Bool(*value),
            _ => ExprKind::Binary(operator, Box::new(left), Box::new(right)),
        };
        Expr { kind, ty: Type::Bool, span }
    }

    fn equality(&mut self, operator: BinaryOp, left: Expr, right: Expr, span: Span) -> Expr {
        let Some((left, right)) = self.same_type(left, right, span) else {
            return self.broken(span);
        };
        if matches!(
            left.ty,
            Type::Object(_) | Type::Callable(_) | Type::Void | Type::Set(_) | Type::Text | Type::Parameter(..)
        ) {
            self.error(span, format!("values of type `{}` cannot be compared", left.ty));
            return self.broken(span);
        }
        let is_equal = operator == BinaryOp::Equal;
        let kind = match (&left.kind, &right.kind) {
            (ExprKind::Integer(a), ExprKind::Integer(b)) => ExprKind::Bool((a == b) == is_equal),
            (ExprKind::Bool(a), ExprKind::Bool(b)) => ExprKind::Bool((a == b) == is_equal),
            (ExprKind::Error(a), ExprKind::Error(b)) => ExprKind::Bool((a == b) == is_equal),
            _ => ExprKind::Binary(operator, Box::new(left), Box::new(right)),
        };
        Expr { kind, ty: Type::Bool, span }
    }

    /// Both operands in one type.
    fn same_type(&mut self, left: Expr, right: Expr, span: Span) -> Option<(Expr, Expr)> {
        if left.ty == right.ty {
            return Some((left, right));
        }
        let open = |expr: &Expr| matches!(expr.kind, ExprKind::Aggregate(_) | ExprKind::Invalid | ExprKind::Zero);
        let (left, right) = if left.ty == Type::Integer || open(&left) && !open(&right) {
            let right = self.underlying(right);
            (self.coerce(left, &right.ty.clone()), right)
        } else if right.ty == Type::Integer || open(&right) {
            let left = self.underlying(left);
            let right = self.coerce(right, &left.ty.clone());
            (left, right)
        } else {
            let (left, right) = (self.underlying(left), self.underlying(right));
            if left.ty != right.ty {
                self.error(span, format!("the operands have different types: `{}` and `{}`", left.ty, right.ty))
                    .help("cast one of them");
                return None;
            }
            (left, right)
        };
        let broken = matches!(left.kind, ExprKind::Broken) || matches!(right.kind, ExprKind::Broken);
        (!broken).then_some((left, right))
    }

    fn arithmetic(&mut self, operator: BinaryOp, left: Expr, right: Expr, span: Span) -> Expr {
        let (left, right) = (self.underlying(left), self.underlying(right));
        for side in [&left, &right] {
            if range(&side.ty).is_none() {
                let message = format!("this operator does not work on `{}`", side.ty);
                self.error(side.span, message).help("it takes values of type bit<W>, int<W> or int");
                return self.broken(span);
            }
        }
        let negative = |side: &Expr| matches!(&side.kind, ExprKind::Integer(value) if value.is_negative());
        if matches!(operator, BinaryOp::Div | BinaryOp::Mod) && (negative(&left) || negative(&right)) {
            self.error(span, "`/` and `%` are not defined for negative numbers");
            return self.broken(span);
        }
        let Some((left, right)) = self.same_type(left, right, span) else {
            return self.broken(span);
        };
        let ty = left.ty.clone();
        let Some(range) = range(&ty) else {
            return self.broken(span);
        };
        let saturates = matches!(operator, BinaryOp::AddSat | BinaryOp::SubSat);
        let divides = matches!(operator, BinaryOp::Div | BinaryOp::Mod);
        if saturates && ty == Type::Integer {
            self.error(span, "saturating arithmetic needs a width").help("give a literal one: 8w1");
            return self.broken(span);
        }
        if divides && matches!(ty, Type::Int(_)) {
            self.error(span, format!("`/` and `%` do not work on `{ty}`"));
            return self.broken(span);
        }
        if let (ExprKind::Integer(a), ExprKind::Integer(b)) = (&left.kind, &right.kind) {
            if let Some(holds) = constant::compare(operator, a, b) {
                return Expr { kind: ExprKind::Bool(holds), ty: Type::Bool, span };
            }
            let Some(value) = constant::binary(operator, a, b, range) else {
                let why =
                    if divides { "a division by zero or of a negative number" } else { "a result that is too large" };
                self.error(span, why);
                return self.broken(span);
            };
            return Expr { kind: ExprKind::Integer(value), ty, span };
        }
        if divides && matches!(&right.kind, ExprKind::Integer(value) if !value.is_positive()) {
            self.error(right.span, "a divisor must be positive");
            return self.broken(span);
        }
        let compares = constant::compare(operator, &BigInt::ZERO, &BigInt::ZERO).is_some();
        let result = if compares { Type::Bool } else { ty };
        Expr { kind: ExprKind::Binary(operator, Box::new(left), Box::new(right)), ty: result, span }
    }

    fn shift(&mut self, operator: BinaryOp, left: Expr, right: Expr, span: Span) -> Expr {
        let (left, right) = (self.underlying(left), self.underlying(right));
        let (Some(range), Some(_)) = (range(&left.ty), range(&right.ty)) else {
            self.error(span, format!("`{}` cannot be shifted by `{}`", left.ty, right.ty));
            return self.broken(span);
        };
        if matches!(right.ty, Type::Int(_)) || matches!(&right.kind, ExprKind::Integer(by) if by.is_negative()) {
            self.error(right.span, "the distance of a shift cannot be signed").help("use bit<W> or a positive number");
            return self.broken(span);
        }
        if let (ExprKind::Integer(value), ExprKind::Integer(by)) = (&left.kind, &right.kind) {
            let Some(value) = constant::binary(operator, value, by, range) else {
                self.error(span, "the result of this shift is too large");
                return self.broken(span);
            };
            return Expr { kind: ExprKind::Integer(value), ty: left.ty, span };
        }
        if left.ty == Type::Integer {
            self.error(left.span, "a value without a width cannot be shifted by a distance that varies")
                .help("give the literal a width: 8w1");
            return self.broken(span);
        }
        let ty = left.ty.clone();
        Expr { kind: ExprKind::Binary(operator, Box::new(left), Box::new(right)), ty, span }
    }

    fn concat(&mut self, left: Expr, right: Expr, span: Span) -> Expr {
        let (left, right) = (self.underlying(left), self.underlying(right));
        if let (ExprKind::Text(a), ExprKind::Text(b)) = (&left.kind, &right.kind) {
            let kind = ExprKind::Text(format!("{a}{b}").into());
            return Expr { kind, ty: Type::Text, span };
        }
        let width = |ty: &Type| match ty {
            Type::Bit(width) | Type::Int(width) => Some(*width),
            _ => None,
        };
        let (Some(a), Some(b)) = (width(&left.ty), width(&right.ty)) else {
            self.error(span, format!("`{}` and `{}` cannot be concatenated", left.ty, right.ty))
                .help("both need a width");
            return self.broken(span);
        };
        let ty = if matches!(left.ty, Type::Int(_)) { Type::Int(a + b) } else { Type::Bit(a + b) };
        let kind = match (&left.kind, &right.kind, range(&ty), range(&Type::Bit(b))) {
            (ExprKind::Integer(x), ExprKind::Integer(y), Some(whole), Some(low)) => {
                ExprKind::Integer(whole.wrap((x << b) | low.wrap(y.clone())))
            }
            _ => ExprKind::Binary(BinaryOp::Concat, Box::new(left), Box::new(right)),
        };
        Expr { kind, ty, span }
    }

    pub(super) fn slice(&mut self, base: &ast::Expr, high: &ast::Expr, low: &ast::Expr, span: Span) -> Expr {
        let base = self.expr(base, None);
        let (high_value, low_value) =
            (self.constant_number(high, "a bit's number"), self.constant_number(low, "a bit's number"));
        let base = self.underlying(base);
        let (Some(high_value), Some(low_value)) = (high_value, low_value) else {
            return self.broken(span);
        };
        let width = match &base.ty {
            Type::Bit(width) | Type::Int(width) => u64::from(*width),
            Type::Integer if matches!(base.kind, ExprKind::Integer(_)) => u64::from(crate::p4::lexer::WIDTH_MAX),
            Type::Unknown => return self.broken(span),
            other => {
                let message = format!("`{other}` has no bits to take a slice of");
                self.error(span, message);
                return self.broken(span);
            }
        };
        if high_value < low_value || high_value >= width {
            self.error(span, format!("bits {high_value} to {low_value} are no slice of `{}`", base.ty))
                .help(format!("the first number is the higher one and at most {}", width - 1));
            return self.broken(span);
        }
        let ty = Type::Bit((high_value - low_value + 1) as u32);
        let (high, low) = (high_value.to_u32().unwrap_or(0), low_value.to_u32().unwrap_or(0));
        let kind = match (&base.kind, range(&ty)) {
            (ExprKind::Integer(value), Some(range)) => ExprKind::Integer(range.wrap(value >> low)),
            _ => ExprKind::Slice(Box::new(base), high, low),
        };
        Expr { kind, ty, span }
    }
}
