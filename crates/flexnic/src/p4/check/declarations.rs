//! Declarations at the top level: types, constants, externs, functions, actions, instances.

use super::statements::may_fall_through;
use super::{Access, Checker, Context, FunctionRef, Symbol, TypeSymbol};
use crate::p4::ast::{self, Annotation, Declaration, DeclarationKind, Direction, Ident, Prototype, TypeRef};
use crate::p4::hir::{Action, Body, Construct, Expr, ExprKind, Extern, Function, Local, Package, Parameter, Signature};
use crate::p4::source::{Name, Span};
use crate::p4::types::{ObjectKind, Type};

impl Checker<'_> {
    pub(super) fn top_level(&mut self, declaration: &Declaration) {
        let name = &declaration.name;
        match &declaration.kind {
            DeclarationKind::Constant { ty, value } => self.constant(name, ty, value),
            DeclarationKind::Typedef { ty, is_new } => self.typedef(declaration, ty, *is_new),
            DeclarationKind::Struct { kind, type_parameters, fields } => {
                self.struct_like(declaration, *kind, type_parameters, fields);
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
                    self.check_global(&local, declaration);
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
        if matches!(ty, Type::Object(_) | Type::Void | Type::Varbit(_))
            || !ty.is_concrete() && !matches!(ty, Type::Parameter(..))
        {
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

    /// Parsers and controls live in packages, and `main` is a package.
    fn check_global(&mut self, local: &Local, declaration: &Declaration) {
        let Local::Instance { construct, .. } = local else { return };
        let Type::Object(of) = &construct.ty else { return };
        match of.kind {
            ObjectKind::Parser | ObjectKind::Control => {
                self.error(declaration.span, format!("`{}` cannot be instantiated at the top level", of.name))
                    .help("give it to a package: `V1Switch(..., MyControl(), ...) main;`");
            }
            ObjectKind::Extern if &*declaration.name.name == "main" => {
                self.error(declaration.name.span, "`main` must be a package");
            }
            _ => {}
        }
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
            if matches!(ty, Type::Integer | Type::Text) && parameter.direction != Direction::None {
                self.error(span, format!("a parameter of type `{ty}` has no direction"));
            }
            if let Type::Object(of) = &ty
                && !self.context.in_package
                && (of.kind == ObjectKind::Package || of.kind != ObjectKind::Extern && self.has_body(of.declaration))
            {
                self.error(span, format!("a parameter cannot have type `{ty}`")).help("only packages take them");
            }
            let default = parameter.default.as_ref().map(|value| {
                if parameter.direction != Direction::In && parameter.direction != Direction::None {
                    self.error(value.span, "only `in` parameters and those without a direction have defaults");
                }
                let value = self.expr_of(value, &ty);
                if !self.is_constant(&value) {
                    self.error(value.span, "a default value must be known at compile time");
                }
                value
            });
            let variable = self.variable(access);
            self.declare(&parameter.name, Symbol::Variable(variable, ty.clone()));
            let optional = parameter.annotations.iter().any(|annotation| &*annotation.name == "optional");
            let name = parameter.name.name.clone();
            let annotations = parameter.annotations.clone().into();
            found.push(Parameter {
                annotations,
                variable,
                name,
                direction: parameter.direction,
                ty,
                default,
                optional,
            });
        }
        found
    }

    /// A parser or control that is more than a type.
    fn has_body(&self, block: usize) -> bool {
        self.program.blocks.get(block).is_some_and(|block| !matches!(block.body, Body::None))
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
                let scalar = matches!(
                    parameter.ty.representation(),
                    Type::Bit(_)
                        | Type::Int(_)
                        | Type::Bool
                        | Type::Enum(_)
                        | Type::Error
                        | Type::Unknown
                        | Type::Varbit(_)
                );
                let is_data = parameter.direction == Direction::None;
                if matches!(parameter.ty, Type::Object(_) | Type::Integer | Type::Text) || is_data && !scalar {
                    checker.error(written.ty.span, format!("an action cannot have data of type `{}`", parameter.ty));
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
        self.program.actions.push(Action {
            annotations: declaration.annotations.clone().into(),
            is_global: self.scopes.len() == 1,
            name: name.name.clone(),
            path,
            parameters,
            body,
        });
        self.declare(name, Symbol::Action(self.program.actions.len() - 1));
    }

    fn package(&mut self, name: &Ident, type_parameters: &[Ident], parameters: &[ast::Parameter]) {
        let (numbers, parameters) = self.scoped(|checker| {
            let numbers = checker.type_parameters(type_parameters);
            checker.context.in_package = true;
            let parameters = checker.parameters(parameters, Access::CompileTime);
            checker.context.in_package = false;
            (numbers, parameters)
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
        let annotations = declaration.annotations.clone().into();
        Some(Local::Instance { variable, path, construct: *construct, annotations })
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
            if let Some(method) = methods.first() {
                self.error(method.span, "only instances of externs implement methods");
            }
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
