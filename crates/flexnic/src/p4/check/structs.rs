//! Declarations of types: new names, structs, headers, unions, enumerations.

use std::sync::Arc;

use num_bigint::BigInt;

use super::convert::range;
use super::{Checker, Symbol, TypeSymbol};
use crate::p4::ast::{self, FieldDecl, Ident, StructKind, TypeRef};
use crate::p4::hir::{ControllerHeader, Expr, ExprKind};
use crate::p4::source::Name;
use crate::p4::types::{EnumType, Field, LEAVES_MAX, NewType, StructType, Translation, Type, leaves};

impl Checker<'_> {
    pub(super) fn typedef(&mut self, declaration: &ast::Declaration, ty: &TypeRef, is_new: bool) {
        let name = &declaration.name;
        let written = ty;
        let ty = self.ty(ty);
        let symbol = if is_new {
            let fits = matches!(
                ty,
                Type::Bit(_) | Type::Int(_) | Type::Bool | Type::New(_) | Type::Error | Type::Unknown | Type::Varbit(_)
            ) || matches!(&ty, Type::Enum(of) if of.underlying.is_some());
            if !fits {
                self.error(written.span, format!("`type` cannot be made of `{ty}`"))
                    .help("bit<W>, int<W>, bool, varbit, or another `type`; use `typedef` for a second name");
            }
            let id = self.fresh();
            let translation = self.translation(declaration);
            Type::New(Arc::new(NewType { id, name: name.name.clone(), of: ty, translation }))
        } else {
            if matches!(ty, Type::Void | Type::MatchKind) {
                self.error(written.span, format!("`typedef` cannot rename `{ty}`"));
            }
            ty
        };
        self.declare(name, Symbol::Type(TypeSymbol::Plain(symbol)));
    }

    /// `@p4runtime_translation("uri", bits)` or `("uri", string)`.
    fn translation(&mut self, declaration: &ast::Declaration) -> Option<Translation> {
        let given = declaration.annotations.iter().find(|given| &*given.name == "p4runtime_translation")?;
        let [uri, to, ..] = &given.values[..] else {
            self.error(declaration.name.span, "`@p4runtime_translation` needs a URI and a type")
                .help("@p4runtime_translation(\"p4.org/psa/v1/PortId_t\", 32)");
            return None;
        };
        // `bit<32>` as well as `32`.
        let bits = given.values.iter().skip(1).find_map(|value| value.parse().ok());
        if bits.is_none() && &**to != "string" {
            self.error(declaration.name.span, format!("`{to}` is no type for controllers"))
                .help("a width, or `string`");
        }
        Some(Translation { uri: uri.clone(), bits })
    }

    pub(super) fn struct_like(
        &mut self,
        declaration: &ast::Declaration,
        kind: StructKind,
        parameters: &[Ident],
        fields: &[FieldDecl],
    ) {
        let name = &declaration.name;
        let (id, fields_of) = (self.fresh(), fields);
        let (numbers, fields) = self.scoped(|checker| {
            let numbers = checker.type_parameters(parameters);
            let mut found: Vec<Field> = Vec::new();
            for field in fields {
                let ty = checker.ty(&field.ty);
                checker.check_field(kind, &ty, field);
                if found.iter().any(|other| other.name == field.name.name) {
                    checker.error(field.name.span, format!("field `{}` is declared twice", field.name.name));
                    continue;
                }
                let lists = field.annotations.iter().filter(|annotation| &*annotation.name == "field_list");
                let lists =
                    lists.flat_map(|annotation| &annotation.values).filter_map(|value| checker.list_number(value));
                let lists = lists.collect();
                found.push(Field { name: field.name.name.clone(), ty, lists });
            }
            let varbits = found.iter().filter(|field| matches!(field.ty.representation(), Type::Varbit(_))).count();
            if kind == StructKind::Header && varbits > 1 {
                checker.error(name.span, "a header has at most one varbit field");
            }
            (numbers, found)
        });
        let arguments: Vec<Type> =
            numbers.iter().zip(parameters).map(|(number, name)| Type::Parameter(*number, name.name.clone())).collect();
        let leaves = leaves(&fields);
        if leaves > LEAVES_MAX {
            self.error(name.span, format!("`{}` has more than {LEAVES_MAX} fields", name.name));
            return;
        }
        let ty = Type::Struct(Arc::new(StructType { id, name: name.name.clone(), kind, arguments, fields, leaves }));
        if declaration.annotations.iter().any(|given| &*given.name == "controller_header") {
            self.program.controller_headers.push(ControllerHeader {
                ty: ty.clone(),
                annotations: declaration.annotations.clone().into(),
                fields: fields_of.iter().map(|field| field.annotations.clone().into()).collect(),
            });
        }
        let symbol = if numbers.is_empty() { TypeSymbol::Plain(ty) } else { TypeSymbol::Generic(numbers, ty) };
        self.declare(name, Symbol::Type(symbol));
    }

    /// The number of a `@field_list`, which may be the name of a constant.
    fn list_number(&self, value: &Name) -> Option<u8> {
        if let Ok(number) = value.parse() {
            return Some(number);
        }
        let name = value.rsplit('.').next()?;
        match self.find(name, false) {
            Some(Symbol::Constant(Expr { kind: ExprKind::Integer(value), .. })) => u8::try_from(value).ok(),
            // A member of an enumeration stands for its value.
            _ => self.scopes[0].values().find_map(|(symbol, _)| match symbol {
                Symbol::Type(TypeSymbol::Plain(Type::Enum(of))) => of
                    .members
                    .iter()
                    .find(|(member, _)| **member == *name)
                    .and_then(|(_, value)| u8::try_from(value).ok()),
                _ => None,
            }),
        }
    }

    fn check_field(&mut self, kind: StructKind, ty: &Type, field: &FieldDecl) {
        let span = field.ty.span;
        let fits = super::types::field_fits(kind, ty);
        if !fits {
            let what = match kind {
                StructKind::Struct => "a struct",
                StructKind::Header => "a header",
                StructKind::Union => "a header union",
            };
            self.error(span, format!("{what} cannot have a field of type `{ty}`"));
        }
    }

    pub(super) fn enumeration(
        &mut self,
        name: &Ident,
        underlying: Option<&TypeRef>,
        members: &[(Ident, Option<ast::Expr>)],
    ) {
        let under = underlying.map(|ty| (self.ty(ty), ty.span));
        if let Some((ty, span)) = &under
            && !matches!(ty, Type::Bit(_) | Type::Int(_) | Type::Unknown)
        {
            self.error(*span, format!("the values of an enumeration are bit<W> or int<W>, not `{ty}`"));
        }
        let mut found: Vec<(Name, BigInt)> = Vec::new();
        for (member, value) in members {
            if found.iter().any(|(other, _)| *other == member.name) {
                self.error(member.span, format!("member `{}` is declared twice", member.name));
                continue;
            }
            let value = match (&under, value) {
                (None, None) => BigInt::from(found.len()),
                (None, Some(value)) => {
                    self.error(value.span, "an enumeration without a type has no values")
                        .help("write `enum bit<8> ...`");
                    continue;
                }
                (Some(_), None) => {
                    self.error(member.span, format!("member `{}` has no value", member.name));
                    continue;
                }
                (Some((ty, _)), Some(value)) => {
                    let representation = ty.representation();
                    let checked = self.expr_of(value, &representation);
                    match checked.kind {
                        ExprKind::Integer(value) if range(&representation).is_some() => value,
                        ExprKind::Broken => continue,
                        _ => {
                            self.error(value.span, "the value of a member must be a constant");
                            continue;
                        }
                    }
                }
            };
            found.push((member.name.clone(), value));
        }
        let id = self.fresh();
        let underlying = under.map(|(ty, _)| ty.representation());
        let of = EnumType { id, name: name.name.clone(), underlying, members: found };
        self.declare(name, Symbol::Type(TypeSymbol::Plain(Type::Enum(Arc::new(of)))));
    }
}
