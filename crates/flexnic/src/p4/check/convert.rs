//! Conversions: the implicit ones that an assignment makes, and casts.

use num_bigint::BigInt;

use super::Checker;
use crate::p4::ast::StructKind;
use crate::p4::constant::Range;
use crate::p4::hir::{Expr, ExprKind};
use crate::p4::source::Span;
use crate::p4::types::Type;

/// Range of a numeric type.
pub(super) fn range(ty: &Type) -> Option<Range> {
    match ty {
        Type::Integer => Some(Range::Unbounded),
        Type::Bit(width) => Some(Range::Fixed { width: *width, signed: false }),
        Type::Int(width) => Some(Range::Fixed { width: *width, signed: true }),
        _ => None,
    }
}

impl Checker<'_> {
    /// Gives `expr` the type `wanted` by the conversions that need no cast, or reports why it cannot.
    pub(super) fn coerce(&mut self, expr: Expr, wanted: &Type) -> Expr {
        let (wanted, given) = (self.resolve(wanted), self.resolve(&expr.ty));
        let is_invalid = matches!(expr.kind, ExprKind::Invalid);
        if matches!(given, Type::Unknown) && !is_invalid || matches!(wanted, Type::Unknown) {
            return Expr { ty: wanted, ..expr };
        }
        match (&expr.kind, &wanted) {
            (ExprKind::Integer(value), Type::Bit(_) | Type::Int(_)) if given == Type::Integer => {
                let value = value.clone();
                return self.literal(value, &wanted, expr.span);
            }
            (ExprKind::Invalid, Type::Struct(of)) if of.kind != StructKind::Struct && given == Type::Unknown => {
                return Expr { ty: wanted, ..expr };
            }
            (ExprKind::Zero, _) => return Expr { ty: wanted, ..expr },
            (ExprKind::Aggregate(_), Type::Struct(_) | Type::Tuple(_) | Type::List(_) | Type::Stack(..))
                if given != wanted && expr_is_open(&given) =>
            {
                return self.coerce_aggregate(expr, &given, &wanted);
            }
            _ => {}
        }
        if given == wanted {
            return Expr { ty: wanted, ..expr };
        }
        match (&given, &wanted) {
            (_, Type::Infer(_)) => return expr,
            (Type::Integer, Type::Bit(_) | Type::Int(_)) => {
                return Expr { span: expr.span, kind: ExprKind::Cast(Box::new(expr)), ty: wanted };
            }
            (Type::Enum(of), Type::Bit(_) | Type::Int(_)) if of.underlying.as_ref() == Some(&wanted) => {
                return self.make_cast(expr, &wanted);
            }
            (Type::Object(_), Type::Object(_)) if self.unify(&wanted, &given) => return expr,
            _ => {}
        }
        self.mismatch(&expr, &given, &wanted);
        self.broken(expr.span)
    }

    fn mismatch(&mut self, expr: &Expr, given: &Type, wanted: &Type) {
        let problem = self.reporter.error(expr.span, format!("expected a value of type `{wanted}`, found `{given}`"));
        if may_cast(given, wanted) {
            problem.help(format!("write `({wanted})` in front of it to convert it"));
        }
    }

    /// A literal of a fixed width; what does not fit is cut off and gives a warning.
    fn literal(&mut self, value: BigInt, ty: &Type, span: Span) -> Expr {
        let Some(range) = range(ty) else {
            return self.broken(span);
        };
        if !range.holds(&value) {
            let cut = range.wrap(value.clone());
            self.reporter.warning(span, format!("{value} does not fit into `{ty}`: it becomes {cut}"));
        }
        Expr { kind: ExprKind::Integer(range.wrap(value)), ty: ty.clone(), span }
    }

    fn coerce_aggregate(&mut self, expr: Expr, given: &Type, wanted: &Type) -> Expr {
        let span = expr.span;
        let ExprKind::Aggregate(mut items) = expr.kind else {
            return self.broken(span);
        };
        let targets: Vec<Type> = match wanted {
            Type::Struct(of) if of.kind == StructKind::Union => {
                self.error(span, "a header union has no list of values").help("assign its headers one by one");
                return self.broken(span);
            }
            Type::Struct(of) => of.fields.iter().map(|field| field.ty.clone()).collect(),
            Type::Tuple(types) => types.to_vec(),
            Type::List(of) => vec![(**of).clone(); items.len()],
            Type::Stack(of, size) => vec![(**of).clone(); *size as usize],
            _ => Vec::new(),
        };
        if let (Type::Struct(from), Type::Struct(to)) = (given, wanted)
            && from.id == 0
        {
            let position = |name| from.fields.iter().position(|field| field.name == name);
            let order: Vec<Option<usize>> = to.fields.iter().map(|field| position(field.name.clone())).collect();
            let unknown = from.fields.iter().find(|field| !to.fields.iter().any(|other| other.name == field.name));
            if let Some(field) = unknown {
                self.error(span, format!("`{wanted}` has no field `{}`", field.name));
                return self.broken(span);
            }
            if let Some(missing) = order.iter().position(Option::is_none) {
                self.error(span, format!("field `{}` of `{wanted}` has no value", to.fields[missing].name))
                    .help("add it, or `...` for default values");
                return self.broken(span);
            }
            items = order.into_iter().flatten().map(|at| items[at].clone()).collect();
        }
        if items.len() != targets.len() {
            self.error(span, format!("`{wanted}` has {} values, not {}", targets.len(), items.len()));
            return self.broken(span);
        }
        let items = items.into_iter().zip(&targets).map(|(item, ty)| self.coerce(item, ty)).collect();
        Expr { kind: ExprKind::Aggregate(items), ty: wanted.clone(), span }
    }

    /// `(T) value`
    pub(super) fn cast(&mut self, expr: Expr, to: &Type, span: Span) -> Expr {
        let from = self.resolve(&expr.ty);
        if matches!(from, Type::Unknown) || matches!(to, Type::Unknown) {
            return self.broken(span);
        }
        if from == *to {
            return Expr { span, ..expr };
        }
        let open = matches!(expr.kind, ExprKind::Aggregate(_) | ExprKind::Invalid | ExprKind::Zero);
        if open && matches!(to, Type::Struct(_) | Type::Tuple(_) | Type::List(_) | Type::Stack(..)) {
            return self.coerce(expr, to);
        }
        let is_bit =
            matches!(&expr.kind, ExprKind::Integer(value) if *value == BigInt::ZERO || *value == BigInt::from(1));
        if from == Type::Integer && *to == Type::Bool && is_bit {
            return self.make_cast(expr, to);
        }
        if !may_cast(&from, to) {
            self.error(span, format!("a value of type `{from}` cannot be cast to `{to}`"));
            return self.broken(span);
        }
        let expr = self.make_cast(expr, to);
        Expr { span, ..expr }
    }

    /// A cast that is known to be allowed, folded where the value is known.
    pub(super) fn make_cast(&mut self, expr: Expr, to: &Type) -> Expr {
        let target = to.representation();
        let kind = match (&expr.kind, &target) {
            (ExprKind::Integer(value), Type::Bool) => ExprKind::Bool(*value != BigInt::ZERO),
            (ExprKind::Bool(value), Type::Bit(_)) => ExprKind::Integer(BigInt::from(u8::from(*value))),
            (ExprKind::Bool(value), Type::Bool) => ExprKind::Bool(*value),
            (ExprKind::Integer(value), _) => match range(&target) {
                Some(range) => ExprKind::Integer(range.wrap(value.clone())),
                None => ExprKind::Integer(value.clone()),
            },
            _ => ExprKind::Cast(Box::new(expr.clone())),
        };
        Expr { kind, ty: to.clone(), span: expr.span }
    }
}

/// The type of a list or record that has no declared type yet.
fn expr_is_open(ty: &Type) -> bool {
    match ty {
        Type::Tuple(_) => true,
        Type::Struct(of) => of.id == 0,
        _ => false,
    }
}

/// The specification allows the cast (section 8.11).
fn may_cast(from: &Type, to: &Type) -> bool {
    match (from, to) {
        (Type::Bit(1), Type::Bool) | (Type::Bool, Type::Bit(1)) => true,
        (Type::Integer, Type::Bool) => false,
        (Type::Integer, Type::Bit(_) | Type::Int(_)) => true,
        (Type::Bit(_) | Type::Int(_), Type::Integer) => true,
        (Type::Bit(_), Type::Bit(_)) | (Type::Int(_), Type::Int(_)) => true,
        (Type::Bit(a), Type::Int(b)) | (Type::Int(a), Type::Bit(b)) => a == b,
        (Type::New(a), Type::New(b)) if a.of == *to || b.of == *from => true,
        (Type::New(new), _) => new.of == *to,
        (_, Type::New(new)) => new.of == *from || *from == Type::Integer && may_cast(from, &new.of),
        (Type::Enum(of), _) if of.underlying.is_some() && !matches!(to, Type::Enum(_)) => {
            let under = of.representation_or_unknown();
            under == *to || may_cast(&under, to)
        }
        (Type::Enum(a), Type::Enum(b)) => a.underlying.is_some() && b.underlying.is_some(),
        (_, Type::Enum(of)) if of.underlying.is_some() => {
            let under = of.representation_or_unknown();
            under == *from || may_cast(from, &under)
        }
        _ => false,
    }
}

impl crate::p4::types::EnumType {
    fn representation_or_unknown(&self) -> Type {
        self.underlying.clone().unwrap_or(Type::Unknown)
    }
}
