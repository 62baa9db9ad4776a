//! Types as written become types.

use std::sync::Arc;

use num_traits::ToPrimitive;

use super::{Checker, Symbol, TypeSymbol};
use crate::p4::ast::{self, Ident, StructKind, TypeKind, TypeRef};
use crate::p4::hir::ExprKind;
use crate::p4::lexer::WIDTH_MAX;
use crate::p4::source::Span;
use crate::p4::types::{LEAVES_MAX, ObjectKind, ObjectType, Substitution, Type};

/// Largest header stack.
const STACK_MAX: u32 = 1 << 16;

impl Checker<'_> {
    pub(super) fn ty(&mut self, written: &TypeRef) -> Type {
        let ty = self.ty_of_any_size(written);
        if ty.leaves() > LEAVES_MAX {
            self.error(written.span, format!("this type has more than {LEAVES_MAX} fields"));
            return Type::Unknown;
        }
        ty
    }

    fn ty_of_any_size(&mut self, written: &TypeRef) -> Type {
        match &written.kind {
            TypeKind::Void => Type::Void,
            TypeKind::Bool => Type::Bool,
            TypeKind::Error => Type::Error,
            TypeKind::MatchKind => Type::MatchKind,
            TypeKind::Text => Type::Text,
            TypeKind::Integer => Type::Integer,
            TypeKind::Bit(None) => Type::Bit(1),
            TypeKind::Bit(Some(width)) => self.width(width, 0).map_or(Type::Unknown, Type::Bit),
            TypeKind::Int(width) => self.width(width, 1).map_or(Type::Unknown, Type::Int),
            TypeKind::Varbit(width) => self.width(width, 0).map_or(Type::Unknown, Type::Varbit),
            TypeKind::Any => Type::Infer(self.fresh()),
            TypeKind::Tuple(items) => Type::tuple(items.iter().map(|item| self.element_type(item)).collect()),
            TypeKind::List(of) => Type::List(Arc::new(self.ty(of))),
            TypeKind::Stack(of, size) => self.stack(of, size),
            TypeKind::Named { name, global, arguments } => self.named(name, *global, arguments, written.span),
        }
    }

    /// A type of something that is stored in a tuple.
    fn element_type(&mut self, written: &TypeRef) -> Type {
        let ty = self.ty(written);
        if matches!(ty, Type::Void | Type::Object(_)) {
            self.error(written.span, format!("a tuple cannot hold `{ty}`"));
            return Type::Unknown;
        }
        ty
    }

    /// The value of a constant that must be a small number.
    pub(super) fn constant_number(&mut self, expr: &ast::Expr, what: &str) -> Option<u64> {
        let checked = self.expr(expr, None);
        match &checked.kind {
            ExprKind::Broken => None,
            ExprKind::Integer(value) => match value.to_u64() {
                Some(value) => Some(value),
                None => {
                    self.error(expr.span, format!("{what} cannot be {value}"));
                    None
                }
            },
            _ => {
                self.error(expr.span, format!("{what} must be known at compile time"))
                    .help("use a number or a constant");
                None
            }
        }
    }

    fn width(&mut self, expr: &ast::Expr, least: u32) -> Option<u32> {
        let width = self.constant_number(expr, "a width")?;
        if width > u64::from(WIDTH_MAX) || width < u64::from(least) {
            self.error(expr.span, format!("a width of {width} bits is not supported"))
                .help(format!("{least} to {WIDTH_MAX} bits are"));
            return None;
        }
        Some(width as u32)
    }

    fn stack(&mut self, of: &TypeRef, size: &ast::Expr) -> Type {
        let element = self.ty(of);
        let Some(size_value) = self.constant_number(size, "the size of a header stack") else {
            return Type::Unknown;
        };
        if size_value == 0 || size_value > u64::from(STACK_MAX) {
            self.error(size.span, format!("a header stack of {size_value} elements is not supported"))
                .help(format!("1 to {STACK_MAX} elements are"));
            return Type::Unknown;
        }
        match element.struct_kind() {
            Some(StructKind::Header | StructKind::Union) => Type::Stack(Arc::new(element), size_value as u32),
            _ if matches!(element, Type::Unknown | Type::Parameter(..)) => {
                Type::Stack(Arc::new(element), size_value as u32)
            }
            _ => {
                self.error(of.span, format!("a stack holds headers or header unions, not `{element}`"));
                Type::Unknown
            }
        }
    }

    fn named(&mut self, name: &Ident, global: bool, arguments: &[TypeRef], span: Span) -> Type {
        let written = arguments;
        let arguments: Vec<Type> = arguments.iter().map(|argument| self.ty(argument)).collect();
        for (argument, written) in arguments.iter().zip(written) {
            if matches!(argument, Type::Object(_)) {
                self.error(written.span, format!("`{argument}` cannot be a type argument"));
                return Type::Unknown;
            }
        }
        let symbol = match self.find(&name.name, global) {
            Some(Symbol::Type(symbol)) => symbol.clone(),
            Some(_) => {
                self.error(name.span, format!("`{}` is no type", name.name));
                return Type::Unknown;
            }
            None => {
                let similar = self.similar(&name.name);
                let problem = self.error(name.span, format!("there is no type `{}`", name.name));
                if let Some(similar) = similar {
                    problem.help(format!("there is `{similar}`"));
                }
                return Type::Unknown;
            }
        };
        let (parameters, ty) = match symbol {
            TypeSymbol::Plain(ty) => (Vec::new(), ty),
            TypeSymbol::Generic(parameters, ty) => (parameters, ty),
            TypeSymbol::Extern(index) => {
                let parameters = self.program.externs[index].type_parameters.clone();
                return self.object(ObjectKind::Extern, index, name, parameters, arguments, span);
            }
            TypeSymbol::Block(index) => {
                let block = &self.program.blocks[index];
                let kind = if block.is_parser { ObjectKind::Parser } else { ObjectKind::Control };
                let parameters = block.type_parameters.clone();
                return self.object(kind, index, name, parameters, arguments, span);
            }
            TypeSymbol::Package(index) => {
                let parameters = self.program.packages[index].type_parameters.clone();
                return self.object(ObjectKind::Package, index, name, parameters, arguments, span);
            }
        };
        if parameters.len() != arguments.len() {
            let message = format!("`{}` takes {} type arguments, not {}", name.name, parameters.len(), arguments.len());
            self.error(span, message);
            return Type::Unknown;
        }
        let is_generic = !parameters.is_empty();
        let with: Substitution = parameters.into_iter().zip(arguments).collect();
        let ty = ty.substitute(&with);
        if is_generic && let Type::Struct(of) = &ty {
            for field in &of.fields {
                if !field_fits(of.kind, &field.ty) {
                    self.error(span, format!("field `{}` of `{ty}` cannot have type `{}`", field.name, field.ty));
                }
            }
        }
        ty
    }

    /// An object's type; type arguments that are left out are to be inferred.
    fn object(
        &mut self,
        kind: ObjectKind,
        declaration: usize,
        name: &Ident,
        parameters: Vec<u32>,
        mut arguments: Vec<Type>,
        span: Span,
    ) -> Type {
        if arguments.is_empty() {
            arguments = parameters.iter().map(|_| Type::Infer(self.fresh())).collect();
        }
        if parameters.len() != arguments.len() {
            let message = format!("`{}` takes {} type arguments, not {}", name.name, parameters.len(), arguments.len());
            self.error(span, message);
            return Type::Unknown;
        }
        Type::Object(Arc::new(ObjectType { kind, declaration, name: name.name.clone(), arguments }))
    }

    /// Declares type parameters in the present scope and returns their numbers.
    pub(super) fn type_parameters(&mut self, names: &[Ident]) -> Vec<u32> {
        let mut numbers = Vec::new();
        for name in names {
            let number = self.fresh();
            let ty = Type::Parameter(number, name.name.clone());
            self.declare(name, Symbol::Type(TypeSymbol::Plain(ty)));
            numbers.push(number);
        }
        numbers
    }
}

/// A struct-like type can have a field of this type.
pub(super) fn field_fits(kind: StructKind, ty: &Type) -> bool {
    match (kind, ty.representation()) {
        (_, Type::Infer(_)) => false,
        (_, Type::Unknown) | (StructKind::Struct | StructKind::Header, Type::Parameter(..)) => true,
        (_, Type::Void | Type::Text | Type::MatchKind | Type::Integer | Type::Object(_) | Type::List(_)) => false,
        (StructKind::Union, _) => ty.is_header() || matches!(ty, Type::Parameter(..)),
        (StructKind::Header, Type::Struct(of)) if of.kind == StructKind::Struct => {
            of.fields.iter().all(|field| field_fits(StructKind::Header, &field.ty))
        }
        (StructKind::Header, Type::Bit(_) | Type::Int(_) | Type::Varbit(_) | Type::Bool) => true,
        (StructKind::Header, _) => false,
        (StructKind::Struct, _) => true,
    }
}
