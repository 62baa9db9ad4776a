//! Members: fields, `next` and `last`, results of tables, methods that the language defines.

use num_bigint::BigInt;

use super::{Checker, nearest};
use crate::p4::ast::{self, Ident, StructKind};
use crate::p4::hir::{BuiltIn, Callee, Expr, ExprKind, TableResult};
use crate::p4::source::Span;
use crate::p4::types::Type;

impl Checker<'_> {
    pub(super) fn member(&mut self, base: &ast::Expr, member: &Ident, span: Span) -> Expr {
        let base = self.expr(base, None);
        if let ExprKind::Call(call) = &base.kind
            && let Callee::Table(table) = call.callee
        {
            return self.table_result(table, member, span);
        }
        match &base.ty {
            Type::Unknown => self.broken(span),
            Type::Struct(of) => {
                let Some(index) = of.fields.iter().position(|field| field.name == member.name) else {
                    let similar = nearest(&member.name, of.fields.iter().map(|field| &field.name));
                    let name = if of.id == 0 { "this record".to_owned() } else { of.name.to_string() };
                    self.no_member(member, &name, similar);
                    return self.broken(span);
                };
                let ty = of.fields[index].ty.clone();
                match base.kind {
                    ExprKind::Aggregate(mut values) if index < values.len() && self.is_constant(&values[index]) => {
                        Expr { span, ..values.swap_remove(index) }
                    }
                    _ => Expr { kind: ExprKind::Field(Box::new(base), index), ty, span },
                }
            }
            Type::Stack(..) => self.stack_member(base, member, span),
            other => {
                let message = format!("`{other}` has no member `{}`", member.name);
                self.error(member.span, message);
                self.broken(span)
            }
        }
    }

    fn stack_member(&mut self, base: Expr, member: &Ident, span: Span) -> Expr {
        let Type::Stack(element, size) = base.ty.clone() else {
            return self.broken(span);
        };
        let element = (*element).clone();
        let only_in_parser = |checker: &mut Self| {
            if !checker.context.in_parser {
                checker.error(span, format!("`{}` of a header stack can only be used in a parser", member.name));
            }
        };
        match &*member.name {
            "next" => {
                only_in_parser(self);
                Expr { kind: ExprKind::Next(Box::new(base)), ty: element, span }
            }
            "last" => {
                only_in_parser(self);
                Expr { kind: ExprKind::Last(Box::new(base)), ty: element, span }
            }
            "lastIndex" => {
                only_in_parser(self);
                Expr { kind: ExprKind::LastIndex(Box::new(base)), ty: Type::Bit(32), span }
            }
            "size" => Expr { kind: ExprKind::Integer(BigInt::from(size)), ty: Type::Bit(32), span },
            _ => {
                let known = ["next", "last", "lastIndex", "size"].map(|name| name.into());
                let similar = nearest(&member.name, known.iter());
                self.no_member(member, "a header stack", similar);
                self.broken(span)
            }
        }
    }

    fn table_result(&mut self, table: usize, member: &Ident, span: Span) -> Expr {
        let (result, ty) = match &*member.name {
            "hit" => (TableResult::Hit, Type::Bool),
            "miss" => (TableResult::Miss, Type::Bool),
            "action_run" => (TableResult::ActionRun, Type::Callable("action_run")),
            _ => {
                let known = ["hit", "miss", "action_run"].map(|name| name.into());
                let similar = nearest(&member.name, known.iter());
                self.no_member(member, "the result of a table", similar);
                return self.broken(span);
            }
        };
        Expr { kind: ExprKind::Apply(table, result), ty, span }
    }

    /// Sizes of types, which are constants.
    pub(super) fn size_of(&mut self, ty: &Type, method: &str, span: Span) -> Option<Expr> {
        let (largest, bytes) = match method {
            "minSizeInBits" => (false, false),
            "minSizeInBytes" => (false, true),
            "maxSizeInBits" => (true, false),
            "maxSizeInBytes" => (true, true),
            _ => return None,
        };
        let bits = match ty.struct_kind() {
            Some(StructKind::Union) if !largest => {
                ty.fields().iter().map(|field| field.ty.bits(|_| 0)).min().flatten().unwrap_or(0)
            }
            _ => ty.bits(|width| if largest { width } else { 0 })?,
        };
        let value = if bytes { bits.div_ceil(8) } else { bits };
        Some(Expr { kind: ExprKind::Integer(BigInt::from(value)), ty: Type::Integer, span })
    }

    /// `h.isValid()` and its like; none where the type has no such method.
    pub(super) fn built_in(&mut self, base: &Expr, method: &Ident) -> Option<(BuiltIn, Type)> {
        let kind = base.ty.struct_kind();
        let is_header = kind == Some(StructKind::Header);
        let found = match &*method.name {
            "isValid" if is_header || kind == Some(StructKind::Union) => (BuiltIn::IsValid, Type::Bool),
            "setValid" if is_header => (BuiltIn::SetValid, Type::Void),
            "setInvalid" if is_header => (BuiltIn::SetInvalid, Type::Void),
            "push_front" if matches!(base.ty, Type::Stack(..)) => (BuiltIn::PushFront, Type::Void),
            "pop_front" if matches!(base.ty, Type::Stack(..)) => (BuiltIn::PopFront, Type::Void),
            _ => return None,
        };
        if found.0 != BuiltIn::IsValid && !self.is_place(base) {
            self.error(base.span, format!("`{}` changes this, but it may only be read", method.name));
        }
        Some(found)
    }
}
