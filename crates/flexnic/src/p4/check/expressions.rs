//! Expressions other than operators, members and calls.

use std::sync::Arc;

use num_bigint::BigInt;

use super::{Access, Checker, Symbol, nearest};
use crate::p4::ast::{self, Ident, StructKind, TypeRef};
use crate::p4::hir::{Expr, ExprKind};
use crate::p4::source::{Name, Span};
use crate::p4::types::{Field, StructType, Type, leaves};

impl Checker<'_> {
    /// Checks an expression. `wanted` helps lists and records to find their type; it is not enforced.
    pub(super) fn expr(&mut self, expr: &ast::Expr, wanted: Option<&Type>) -> Expr {
        let span = expr.span;
        match &expr.kind {
            ast::ExprKind::Number(number) => {
                let ty = match number.width {
                    None => Type::Integer,
                    Some((width, false)) => Type::Bit(width),
                    Some((width, true)) => Type::Int(width),
                };
                let plain = Expr { kind: ExprKind::Integer(number.value.clone()), ty: Type::Integer, span };
                self.coerce(plain, &ty)
            }
            ast::ExprKind::Bool(value) => Expr { kind: ExprKind::Bool(*value), ty: Type::Bool, span },
            ast::ExprKind::Text(text) => Expr { kind: ExprKind::Text(text.clone()), ty: Type::Text, span },
            ast::ExprKind::Name { name, global } => self.name(name, *global),
            ast::ExprKind::This => {
                self.error(span, "`this` can only stand in an abstract method of an extern's instance");
                self.broken(span)
            }
            ast::ExprKind::Member(base, member) => self.member(base, member, span),
            ast::ExprKind::TypeMember(ty, member) => self.type_member(ty, member, span),
            ast::ExprKind::Index(base, index) => self.index(base, index, span),
            ast::ExprKind::Slice(base, high, low) => self.slice(base, high, low, span),
            ast::ExprKind::Unary(operator, operand) => self.unary(*operator, operand, span),
            ast::ExprKind::Binary(operator, left, right) => self.binary(*operator, left, right, span),
            ast::ExprKind::Conditional(condition, yes, no) => self.conditional(condition, yes, no, wanted, span),
            ast::ExprKind::Cast(ty, value) => {
                let ty = self.ty(ty);
                let value = self.expr(value, Some(&ty));
                self.cast(value, &ty, span)
            }
            ast::ExprKind::Call { callee, type_arguments, arguments } => {
                self.call(callee, type_arguments, arguments, span)
            }
            ast::ExprKind::Type(ty) => {
                let ty = self.ty(ty);
                self.error(span, format!("`{ty}` is a type, not a value"));
                self.broken(span)
            }
            ast::ExprKind::List { items, dots } => self.list(items, *dots, wanted, span),
            ast::ExprKind::Record { fields, dots } => self.record(fields, *dots, wanted, span),
            ast::ExprKind::Invalid => self.invalid(wanted, span),
            ast::ExprKind::Dots => match wanted.map(|ty| self.resolve(ty)) {
                None | Some(Type::List(_) | Type::Object(_) | Type::Infer(_)) => {
                    self.error(span, "`...` needs a place whose type has a default value");
                    self.broken(span)
                }
                Some(ty) => Expr { kind: ExprKind::Zero, ty, span },
            },
            ast::ExprKind::Mask(..) | ast::ExprKind::Range(..) | ast::ExprKind::Any | ast::ExprKind::Default => {
                self.error(span, "a set of values cannot stand here");
                self.broken(span)
            }
        }
    }

    /// Checks an expression and gives it a type.
    pub(super) fn expr_of(&mut self, expr: &ast::Expr, wanted: &Type) -> Expr {
        let checked = self.expr(expr, Some(wanted));
        self.coerce(checked, wanted)
    }

    fn name(&mut self, name: &Ident, global: bool) -> Expr {
        let span = name.span;
        let (kind, ty) = match self.find(&name.name, global) {
            Some(Symbol::Variable(variable, ty)) => (ExprKind::Variable(*variable), ty.clone()),
            Some(Symbol::Constant(value)) => return Expr { span, ..value.clone() },
            Some(Symbol::Table(table)) => (ExprKind::Table(*table), Type::Callable("table")),
            Some(Symbol::ValueSet(set)) => {
                let of = self.program.value_sets[*set].ty.clone();
                (ExprKind::ValueSet(*set), Type::Set(Arc::new(of)))
            }
            Some(Symbol::Functions(_)) => (ExprKind::Broken, Type::Callable("function")),
            Some(Symbol::Action(_)) => (ExprKind::Broken, Type::Callable("action")),
            Some(Symbol::Type(_)) => {
                self.error(span, format!("`{}` is a type, not a value", name.name));
                return self.broken(span);
            }
            None => {
                let similar = self.similar(&name.name);
                let problem = self.error(span, format!("nothing is called `{}` here", name.name));
                if let Some(similar) = similar {
                    problem.help(format!("there is `{similar}`"));
                }
                return self.broken(span);
            }
        };
        if let Type::Callable(what @ ("function" | "action")) = ty {
            self.error(span, format!("{what} `{}` is not called here", name.name)).help("add its arguments: `(...)`");
            return self.broken(span);
        }
        Expr { kind, ty, span }
    }

    fn type_member(&mut self, ty: &TypeRef, member: &Ident, span: Span) -> Expr {
        let ty = self.ty(ty);
        match &ty {
            Type::Error => {
                let found = self.program.errors.iter().position(|name| *name == member.name);
                let Some(index) = found else {
                    let similar = nearest(&member.name, self.program.errors.iter());
                    self.no_member(member, "error", similar);
                    return self.broken(span);
                };
                Expr { kind: ExprKind::Error(index), ty, span }
            }
            Type::Enum(of) => {
                let found = of.members.iter().position(|(name, _)| *name == member.name);
                let Some(index) = found else {
                    let similar = nearest(&member.name, of.members.iter().map(|(name, _)| name));
                    self.no_member(member, &of.name, similar);
                    return self.broken(span);
                };
                let value = if of.underlying.is_some() { of.members[index].1.clone() } else { BigInt::from(index) };
                Expr { kind: ExprKind::Integer(value), ty: ty.clone(), span }
            }
            Type::Unknown => self.broken(span),
            _ => {
                self.error(span, format!("type `{ty}` has no member `{}`", member.name));
                self.broken(span)
            }
        }
    }

    pub(super) fn no_member(&mut self, member: &Ident, of: &str, similar: Option<Name>) {
        let problem = self.error(member.span, format!("`{of}` has no member `{}`", member.name));
        if let Some(similar) = similar {
            problem.help(format!("it has `{similar}`"));
        }
    }

    fn index(&mut self, base: &ast::Expr, index: &ast::Expr, span: Span) -> Expr {
        let base = self.expr(base, None);
        let mut index = self.expr(index, None);
        if matches!(index.ty, Type::Enum(_)) {
            let under = index.ty.representation();
            index = self.make_cast(index, &under);
        }
        let (element, size) = match &base.ty {
            Type::Stack(of, size) => ((**of).clone(), *size as usize),
            Type::Tuple(items) => (Type::Unknown, items.len()),
            Type::Unknown => return self.broken(span),
            other => {
                let message = format!("`{other}` cannot be indexed");
                self.error(span, message).help("only header stacks and tuples can");
                return self.broken(span);
            }
        };
        match (&index.kind, &index.ty) {
            (ExprKind::Broken, _) => return self.broken(span),
            (ExprKind::Integer(value), _) => {
                let inside = usize::try_from(value).ok().filter(|at| *at < size);
                let Some(at) = inside else {
                    let inside = match size.checked_sub(1) {
                        Some(last) => format!("0 to {last} are inside"),
                        None => "it is empty".to_owned(),
                    };
                    self.error(index.span, format!("index {value} is outside of `{}`", base.ty)).help(inside);
                    return self.broken(span);
                };
                if let Type::Tuple(items) = &base.ty {
                    let ty = items[at].clone();
                    return match base.kind {
                        ExprKind::Aggregate(mut values) if at < values.len() => values.swap_remove(at),
                        _ => Expr { kind: ExprKind::Field(Box::new(base), at), ty, span },
                    };
                }
            }
            (_, Type::Bit(_) | Type::Int(_) | Type::Integer) if element != Type::Unknown => {}
            _ => {
                let needs = if element == Type::Unknown { "a constant" } else { "a number" };
                self.error(index.span, format!("this index must be {needs}, not `{}`", index.ty));
                return self.broken(span);
            }
        }
        if index.ty == Type::Integer {
            index = self.make_cast(index, &Type::Bit(32));
        }
        Expr { kind: ExprKind::Index(Box::new(base), Box::new(index)), ty: element, span }
    }

    fn conditional(
        &mut self,
        condition: &ast::Expr,
        yes: &ast::Expr,
        no: &ast::Expr,
        wanted: Option<&Type>,
        span: Span,
    ) -> Expr {
        let condition = self.expr_of(condition, &Type::Bool);
        let (yes, no) = (self.expr(yes, wanted), self.expr(no, wanted));
        let ty = match wanted.map(|ty| self.resolve(ty)) {
            Some(ty) if ty.is_concrete() && (yes.ty != no.ty || matches!(yes.kind, ExprKind::Aggregate(_))) => ty,
            _ if yes.ty == Type::Integer => no.ty.clone(),
            _ => yes.ty.clone(),
        };
        let (yes, no) = (self.coerce(yes, &ty), self.coerce(no, &ty));
        match condition.kind {
            ExprKind::Bool(true) => yes,
            ExprKind::Bool(false) => no,
            ExprKind::Broken => self.broken(span),
            _ if ty == Type::Integer => {
                self.error(span, "the values of `?:` need a width where the condition is not constant")
                    .help("give one of the literals a width: 8w1");
                self.broken(span)
            }
            _ => {
                let kind = ExprKind::Conditional(Box::new(condition), Box::new(yes), Box::new(no));
                Expr { kind, ty, span }
            }
        }
    }

    fn list(&mut self, items: &[ast::Expr], dots: bool, wanted: Option<&Type>, span: Span) -> Expr {
        let wanted = wanted.map(|ty| self.resolve(ty));
        let targets: Option<Vec<Type>> = match &wanted {
            Some(Type::Struct(of)) => Some(of.fields.iter().map(|field| field.ty.clone()).collect()),
            Some(Type::Tuple(types)) => Some(types.to_vec()),
            Some(Type::List(of)) => Some(vec![(**of).clone(); items.len()]),
            Some(Type::Stack(of, size)) => Some(vec![(**of).clone(); *size as usize]),
            _ => None,
        };
        let mut values = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let target = targets.as_ref().and_then(|targets| targets.get(index)).cloned();
            values.push(self.expr(item, target.as_ref()));
        }
        if dots {
            let Some(targets) = &targets else {
                self.error(span, "`...` needs a place whose type is known");
                return self.broken(span);
            };
            for ty in targets.iter().skip(values.len()) {
                values.push(Expr { kind: ExprKind::Zero, ty: ty.clone(), span });
            }
        }
        if values.iter().any(|value| matches!(value.ty, Type::Callable(_) | Type::Void)) {
            self.error(span, "a list holds values only");
            return self.broken(span);
        }
        let ty = Type::tuple(values.iter().map(|value| value.ty.clone()).collect());
        Expr { kind: ExprKind::Aggregate(values), ty, span }
    }

    fn record(&mut self, fields: &[(Ident, ast::Expr)], dots: bool, wanted: Option<&Type>, span: Span) -> Expr {
        let wanted = wanted.map(|ty| self.resolve(ty));
        let target = |name: &Name| {
            let fields = wanted.as_ref().map_or(&[][..], Type::fields);
            fields.iter().find(|field| field.name == *name).map(|field| field.ty.clone())
        };
        let (mut values, mut types): (Vec<Expr>, Vec<Field>) = (Vec::new(), Vec::new());
        for (name, value) in fields {
            if types.iter().any(|field| field.name == name.name) {
                self.error(name.span, format!("field `{}` has two values", name.name));
                continue;
            }
            let value = self.expr(value, target(&name.name).as_ref());
            types.push(Field { name: name.name.clone(), ty: value.ty.clone(), lists: Vec::new() });
            values.push(value);
        }
        if dots {
            let Some(Type::Struct(of)) = &wanted else {
                self.error(span, "`...` needs a place whose type is known");
                return self.broken(span);
            };
            for field in &of.fields {
                if !types.iter().any(|known| known.name == field.name) {
                    values.push(Expr { kind: ExprKind::Zero, ty: field.ty.clone(), span });
                    types.push(field.clone());
                }
            }
        }
        let leaves = leaves(&types);
        let (name, kind, arguments) = ("".into(), StructKind::Struct, Vec::new());
        let record = StructType { id: 0, name, kind, arguments, fields: types, leaves };
        Expr { kind: ExprKind::Aggregate(values), ty: Type::Struct(Arc::new(record)), span }
    }

    fn invalid(&mut self, wanted: Option<&Type>, span: Span) -> Expr {
        let ty = wanted.map_or(Type::Unknown, |ty| self.resolve(ty));
        if !matches!(ty, Type::Unknown | Type::Infer(_) | Type::Struct(_))
            || ty.struct_kind() == Some(StructKind::Struct)
        {
            self.error(span, format!("`{{#}}` is an invalid header, not a value of type `{ty}`"));
            return self.broken(span);
        }
        let ty = if matches!(ty, Type::Infer(_)) { Type::Unknown } else { ty };
        Expr { kind: ExprKind::Invalid, ty, span }
    }

    /// The expression is a place that may be written.
    pub(super) fn is_place(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Variable(variable) => {
                self.access[variable.0 as usize] == Access::ReadWrite && !matches!(expr.ty, Type::Object(_))
            }
            ExprKind::Field(base, _) | ExprKind::Index(base, _) | ExprKind::Slice(base, _, _) => self.is_place(base),
            ExprKind::Next(base) | ExprKind::Last(base) => self.is_place(base),
            _ => false,
        }
    }

    /// The value is known when the program is put together.
    pub(super) fn is_constant(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Integer(_) | ExprKind::Bool(_) | ExprKind::Text(_) | ExprKind::Error(_) | ExprKind::Broken => {
                true
            }
            ExprKind::Invalid | ExprKind::Zero | ExprKind::Construct(_) => true,
            ExprKind::Variable(variable) => {
                self.access[variable.0 as usize] == Access::CompileTime || matches!(expr.ty, Type::Object(_))
            }
            ExprKind::Aggregate(items) => items.iter().all(|item| self.is_constant(item)),
            ExprKind::Field(base, _)
            | ExprKind::Cast(base)
            | ExprKind::Unary(_, base)
            | ExprKind::Slice(base, _, _) => self.is_constant(base),
            ExprKind::Binary(_, left, right) => self.is_constant(left) && self.is_constant(right),
            ExprKind::Conditional(condition, yes, no) => {
                self.is_constant(condition) && self.is_constant(yes) && self.is_constant(no)
            }
            _ => false,
        }
    }
}
