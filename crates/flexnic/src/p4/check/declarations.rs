//! Declarations at the top level: types, constants, externs, functions, actions, instances.

use std::sync::Arc;

use num_bigint::BigInt;

use super::convert::range;
use super::statements::may_fall_through;
use super::{Access, Checker, Context, FunctionRef, Symbol, TypeSymbol};
use crate::p4::ast::{
    self, Annotation, Declaration, DeclarationKind, Direction, FieldDecl, Ident, Prototype, StructKind, TypeRef,
};
use crate::p4::hir::{Action, Construct, Expr, ExprKind, Extern, Function, Local, Package, Parameter, Signature};
use crate::p4::source::{Name, Span};
use crate::p4::types::{EnumType, Field, NewType, ObjectKind, StructType, Type};

impl Checker<'_> {
    pub(super) fn top_level(&mut self, declaration: &Declaration) {
        let name = &declaration.name;
        match &declaration.kind {
            DeclarationKind::Constant { ty, value } => self.constant(name, ty, value),
            DeclarationKind::Typedef { ty, is_new } => self.typedef(name, ty, *is_new),
            DeclarationKind::Struct { kind, type_parameters, fields } => {
                self.struct_like(name, *kind, type_parameters, fields);
            }
            DeclarationKind::Enum { underlying, members } => self.enumeration(name, underlying.as_ref(), members),
            DeclarationKind::Errors(names) => self.errors(names),
            DeclarationKind::MatchKinds(names) => {
                for name in names {
                    if !self.match_kinds.insert(name.name.clone()) {
                        self.error(name.span, format!("match kind `{}` is declared twice", name.name));
                    }
                }
            }
            DeclarationKind::Extern { type_parameters, methods } => self.external(name, type_parameters, methods),
            DeclarationKind::ExternFunction(prototype) => {
                let signature = self.scoped(|checker| checker.signature(prototype));
                self.program.extern_functions.push(signature);
                let function = FunctionRef::Extern(self.program.extern_functions.len() - 1);
                self.declare_function(name, function);
            }
            DeclarationKind::Function(prototype, body) => self.function(name, prototype, body),
            DeclarationKind::Action { parameters, body } => self.action(declaration, parameters, body),
            DeclarationKind::Parser(parser) => self.parser(name, parser, declaration.span),
            DeclarationKind::Control(control) => self.control(name, control, declaration.span),
            DeclarationKind::Package { type_parameters, parameters } => self.package(name, type_parameters, parameters),
            DeclarationKind::Instance { .. } => {
                if let Some(local) = self.instance(declaration) {
                    if let Local::Instance { variable, construct, .. } = &local
                        && matches!(&construct.ty, Type::Object(of) if of.kind == ObjectKind::Package)
                        && &*name.name == "main"
                    {
                        self.program.main = Some(*variable);
                    }
                    self.program.globals.push(local);
                }
            }
            DeclarationKind::Variable { .. } => {
                self.error(declaration.span, "there are no variables at the top level")
                    .help("declare it in a control or parser, or make it `const`");
            }
            DeclarationKind::Table(_) | DeclarationKind::ValueSet { .. } => {
                self.error(declaration.span, "this can only be declared in a control or parser");
            }
        }
    }

    pub(super) fn constant(&mut self, name: &Ident, ty: &TypeRef, value: &ast::Expr) {
        let written = ty;
        let ty = self.ty(ty);
        let value = self.expr_of(value, &ty);
        if matches!(ty, Type::Object(_) | Type::Void | Type::Varbit(_)) {
            self.error(written.span, format!("a constant cannot have type `{ty}`"));
        }
        let value = if self.is_constant(&value) {
            value
        } else {
            self.error(value.span, "the value of a constant must be known at compile time");
            self.broken(value.span)
        };
        self.declare(name, Symbol::Constant(Expr { ty, ..value }));
    }

    fn typedef(&mut self, name: &Ident, ty: &TypeRef, is_new: bool) {
        let written = ty;
        let ty = self.ty(ty);
        let symbol = if is_new {
            let fits = matches!(ty, Type::Bit(_) | Type::Int(_) | Type::Bool | Type::New(_) | Type::Error | Type::Unknown | Type::Varbit(_))
                || matches!(&ty, Type::Enum(of) if of.underlying.is_some());
            if !fits {
                self.error(written.span, format!("`type` cannot be made of `{ty}`"))
                    .help("bit<W>, int<W>, bool, varbit, or another `type`; use `typedef` for a second name");
            }
            let id = self.fresh();
            Type::New(Arc::new(NewType { id, name: name.name.clone(), of: ty }))
        } else {
            if matches!(ty, Type::Void | Type::MatchKind) {
                self.error(written.span, format!("`typedef` cannot rename `{ty}`"));
            }
            ty
        };
        self.declare(name, Symbol::Type(TypeSymbol::Plain(symbol)));
    }

    fn struct_like(&mut self, name: &Ident, kind: StructKind, parameters: &[Ident], fields: &[FieldDecl]) {
        let id = self.fresh();
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
                let lists = lists.flat_map(|annotation| &annotation.values).filter_map(|value| checker.list_number(value));
                let lists = lists.collect();
                found.push(Field { name: field.name.name.clone(), ty, lists });
            }
            (numbers, found)
        });
        let arguments: Vec<Type> =
            numbers.iter().zip(parameters).map(|(number, name)| Type::Parameter(*number, name.name.clone())).collect();
        let ty = Type::Struct(Arc::new(StructType { id, name: name.name.clone(), kind, arguments, fields }));
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
                Symbol::Type(TypeSymbol::Plain(Type::Enum(of))) => {
                    of.members.iter().find(|(member, _)| **member == *name).and_then(|(_, value)| u8::try_from(value).ok())
                }
                _ => None,
            }),
        }
    }

    fn check_field(&mut self, kind: StructKind, ty: &Type, field: &FieldDecl) {
        let span = field.ty.span;
        let fits = match (kind, ty.representation()) {
            (_, Type::Unknown) | (StructKind::Struct | StructKind::Header, Type::Parameter(..)) => true,
            (_, Type::Void | Type::Text | Type::MatchKind | Type::Integer | Type::Object(_) | Type::List(_)) => false,
            (StructKind::Union, _) => ty.is_header() || matches!(ty, Type::Parameter(..)),
            (StructKind::Header, Type::Struct(of)) if of.kind == StructKind::Struct => {
                let inner: Vec<Type> = of.fields.iter().map(|field| field.ty.clone()).collect();
                for ty in inner {
                    self.check_field(StructKind::Header, &ty, field);
                }
                true
            }
            (StructKind::Header, Type::Bit(_) | Type::Int(_) | Type::Varbit(_) | Type::Bool) => true,
            (StructKind::Header, _) => false,
            (StructKind::Struct, _) => true,
        };
        if !fits {
            let what = match kind {
                StructKind::Struct => "a struct",
                StructKind::Header => "a header",
                StructKind::Union => "a header union",
            };
            self.error(span, format!("{what} cannot have a field of type `{ty}`"));
        }
    }

    fn enumeration(&mut self, name: &Ident, underlying: Option<&TypeRef>, members: &[(Ident, Option<ast::Expr>)]) {
        let under = underlying.map(|ty| (self.ty(ty), ty.span));
        if let Some((ty, span)) = &under
            && !matches!(ty.representation(), Type::Bit(_) | Type::Int(_) | Type::Unknown)
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
                    self.error(value.span, "an enumeration without a type has no values").help("write `enum bit<8> ...`");
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

    fn errors(&mut self, names: &[Ident]) {
        for name in names {
            if self.program.errors.contains(&name.name) {
                self.error(name.span, format!("error `{}` is declared twice", name.name));
            } else {
                self.program.errors.push(name.name.clone());
            }
        }
    }

    fn declare_function(&mut self, name: &Ident, function: FunctionRef) {
        let count = |checker: &Self, of: FunctionRef| {
            let signature = match of {
                FunctionRef::Function(at) => &checker.program.functions[at].signature,
                FunctionRef::Extern(at) => &checker.program.extern_functions[at],
            };
            let names: Vec<Name> = signature.parameters.iter().map(|parameter| parameter.name.clone()).collect();
            (names.len(), names)
        };
        if let Some((Symbol::Functions(all), _)) = self.scopes[self.scopes.len() - 1].get(&name.name) {
            let new = count(self, function);
            let clash = all.iter().any(|old| {
                let old = count(self, *old);
                old.0 == new.0 && old.1 == new.1
            });
            if clash {
                self.error(name.span, format!("function `{}` is declared twice with the same parameters", name.name));
                return;
            }
        }
        self.declare(name, Symbol::Functions(vec![function]));
    }

    fn external(&mut self, name: &Ident, parameters: &[Ident], methods: &[Prototype]) {
        let index = self.program.externs.len();
        let reserved = Extern { name: name.name.clone(), type_parameters: Vec::new(), methods: Vec::new() };
        self.program.externs.push(reserved);
        self.declare(name, Symbol::Type(TypeSymbol::Extern(index)));
        let (numbers, found) = self.scoped(|checker| {
            let numbers = checker.type_parameters(parameters);
            checker.program.externs[index].type_parameters = numbers.clone();
            let mut found: Vec<Signature> = Vec::new();
            for method in methods {
                let signature = checker.scoped(|checker| checker.signature(method));
                let is_constructor = method.result.is_none();
                if !is_constructor && method.name.name == name.name {
                    checker.error(method.name.span, "a constructor has no result type");
                }
                if is_constructor && method.name.name != name.name {
                    checker.error(method.name.span, "a method needs a result type");
                }
                let same = |other: &Signature| {
                    other.name == signature.name && other.parameters.len() == signature.parameters.len()
                };
                if let Some(other) = found.iter().find(|other| same(other)) {
                    let names = |of: &Signature| of.parameters.iter().map(|p| p.name.clone()).collect::<Vec<_>>();
                    if names(other) == names(&signature) {
                        checker.error(method.name.span, format!("method `{}` is declared twice", method.name.name));
                    }
                }
                found.push(signature);
            }
            (numbers, found)
        });
        self.program.externs[index] = Extern { name: name.name.clone(), type_parameters: numbers, methods: found };
    }

    /// A signature; type parameters and parameters are declared in the present scope.
    fn signature(&mut self, prototype: &Prototype) -> Signature {
        let type_parameters = self.type_parameters(&prototype.type_parameters);
        let result = prototype.result.as_ref().map_or(Type::Void, |ty| self.ty(ty));
        let parameters = self.parameters(&prototype.parameters, Access::CompileTime);
        Signature {
            name: prototype.name.name.clone(),
            type_parameters,
            parameters,
            result,
            is_abstract: prototype.is_abstract,
            span: prototype.name.span,
        }
    }

    /// Parameters, declared in the present scope; `undirected` is the access to those without a direction.
    pub(super) fn parameters(&mut self, written: &[ast::Parameter], undirected: Access) -> Vec<Parameter> {
        let mut found = Vec::new();
        for parameter in written {
            let ty = self.ty(&parameter.ty);
            let access = match parameter.direction {
                Direction::None => undirected,
                Direction::In => Access::ReadOnly,
                Direction::Out | Direction::InOut => Access::ReadWrite,
            };
            let span = parameter.ty.span;
            let is_object = matches!(ty, Type::Object(_));
            if is_object && parameter.direction != Direction::None {
                self.error(span, format!("a parameter of type `{ty}` has no direction"));
            }
            if matches!(ty, Type::Void | Type::MatchKind) {
                self.error(span, format!("a parameter cannot have type `{ty}`"));
            }
            let unsized_type = matches!(ty, Type::Integer | Type::Text);
            if unsized_type && matches!(parameter.direction, Direction::Out | Direction::InOut) {
                self.error(span, format!("a parameter of type `{ty}` can only be `in` or have no direction"));
            }
            let default = parameter.default.as_ref().map(|value| {
                if parameter.direction != Direction::In && parameter.direction != Direction::None {
                    self.error(value.span, "only `in` parameters and those without a direction have defaults");
                }
                self.expr_of(value, &ty)
            });
            let variable = self.variable(access);
            self.declare(&parameter.name, Symbol::Variable(variable, ty.clone()));
            let optional = parameter.annotations.iter().any(|annotation| &*annotation.name == "optional");
            let name = parameter.name.name.clone();
            found.push(Parameter { variable, name, direction: parameter.direction, ty, default, optional });
        }
        found
    }

    fn function(&mut self, name: &Ident, prototype: &Prototype, body: &[ast::Statement]) {
        let (signature, body) = self.scoped(|checker| {
            let signature = checker.signature(prototype);
            let context = Context { result: Some(signature.result.clone()), ..Context::default() };
            let outer = std::mem::replace(&mut checker.context, context);
            let body = checker.block(body);
            checker.context = outer;
            (signature, body)
        });
        if signature.result != Type::Void && may_fall_through(&body) && !self.reporter.has_errors() {
            self.error(name.span, format!("not all paths through `{}` return a value", name.name));
        }
        self.program.functions.push(Function { signature, body });
        self.declare_function(name, FunctionRef::Function(self.program.functions.len() - 1));
    }

    pub(super) fn action(&mut self, declaration: &Declaration, parameters: &[ast::Parameter], body: &[ast::Statement]) {
        let name = &declaration.name;
        let (parameters, body) = self.scoped(|checker| {
            let found = checker.parameters(parameters, Access::ReadOnly);
            for (parameter, written) in found.iter().zip(parameters) {
                if matches!(parameter.ty, Type::Object(_)) {
                    checker.error(written.ty.span, "an action cannot have objects as parameters");
                }
            }
            let late = found.iter().skip_while(|p| p.direction != Direction::None);
            if late.into_iter().any(|p| p.direction != Direction::None) {
                checker.error(name.span, "parameters without a direction must come last");
            }
            let outer = checker.context.clone();
            checker.context = Context { in_action: true, ..Context::default() };
            let body = checker.block(body);
            checker.context = outer;
            (found, body)
        });
        let path = control_name(&declaration.annotations, &name.name);
        self.program.actions.push(Action { name: name.name.clone(), path, parameters, body });
        self.declare(name, Symbol::Action(self.program.actions.len() - 1));
    }

    fn package(&mut self, name: &Ident, type_parameters: &[Ident], parameters: &[ast::Parameter]) {
        let (numbers, parameters) = self.scoped(|checker| {
            let numbers = checker.type_parameters(type_parameters);
            (numbers, checker.parameters(parameters, Access::CompileTime))
        });
        for parameter in &parameters {
            if parameter.direction != Direction::None {
                self.error(name.span, format!("parameter `{}` of a package has no direction", parameter.name));
            }
        }
        self.program.packages.push(Package { name: name.name.clone(), type_parameters: numbers, parameters });
        self.declare(name, Symbol::Type(TypeSymbol::Package(self.program.packages.len() - 1)));
    }

    /// `Type(arguments) name;`
    pub(super) fn instance(&mut self, declaration: &Declaration) -> Option<Local> {
        let DeclarationKind::Instance { ty, arguments, methods } = &declaration.kind else {
            return None;
        };
        let written = ty;
        let ty = self.ty(ty);
        let object = self.construct(&ty, arguments, declaration.span);
        let variable = self.variable(Access::CompileTime);
        self.declare(&declaration.name, Symbol::Variable(variable, object.ty.clone()));
        let ExprKind::Construct(construct) = object.kind else {
            return None;
        };
        self.check_complete(&construct, declaration, written.span);
        self.check_abstract(&construct, methods, declaration.span);
        let path = control_name(&declaration.annotations, &declaration.name.name);
        Some(Local::Instance { variable, path, construct: *construct })
    }

    /// All type arguments are known.
    fn check_complete(&mut self, construct: &Construct, declaration: &Declaration, span: Span) {
        let Type::Object(of) = &construct.ty else { return };
        if of.arguments.iter().any(|ty| matches!(ty, Type::Infer(_))) {
            self.error(span, format!("the type arguments of `{}` cannot be inferred", declaration.name.name))
                .help(format!("write them out: `{}<...>(...) {};`", of.name, declaration.name.name));
        }
    }

    /// An instance implements all abstract methods of its extern and nothing else.
    fn check_abstract(&mut self, construct: &Construct, methods: &[Declaration], span: Span) {
        let Type::Object(of) = &construct.ty else { return };
        if of.kind != ObjectKind::Extern {
            return;
        }
        let declared = self.program.externs[of.declaration].methods.clone();
        for method in &declared {
            if method.is_abstract && !methods.iter().any(|given| given.name.name == method.name) {
                self.error(span, format!("abstract method `{}` is not implemented", method.name))
                    .see(method.span, "declared here");
            }
        }
        for given in methods {
            if !matches!(given.kind, DeclarationKind::Function(..)) {
                continue;
            }
            let known = declared.iter().any(|method| method.is_abstract && method.name == given.name.name);
            if known {
                self.error(given.name.span, "abstract methods of externs are not supported");
            } else {
                self.error(given.name.span, format!("`{}` has no abstract method `{}`", of.name, given.name.name));
            }
        }
    }
}

/// The name that the control plane uses: from `@name`, or the declared one.
pub(super) fn control_name(annotations: &[Annotation], name: &Name) -> Name {
    let given = annotations.iter().find(|annotation| &*annotation.name == "name");
    given.and_then(|annotation| annotation.values.first()).unwrap_or(name).clone()
}
