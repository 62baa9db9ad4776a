//! Calls of functions, methods, actions, parsers, controls, tables and constructors.

use super::{Checker, FunctionRef, Symbol};
use crate::p4::ast::{self, Argument, Direction, Ident, TypeRef};
use crate::p4::hir::{BuiltIn, Call, CallArgument, Callee, Expr, ExprKind, Signature};
use crate::p4::source::Span;
use crate::p4::types::{ObjectKind, ObjectType, Substitution, Type};

impl Checker<'_> {
    pub(super) fn call(
        &mut self,
        callee: &ast::Expr,
        type_arguments: &[TypeRef],
        arguments: &[Argument],
        span: Span,
    ) -> Expr {
        let types: Vec<Type> = type_arguments.iter().map(|ty| self.ty(ty)).collect();
        match &callee.kind {
            ast::ExprKind::Type(ty) => {
                let ty = self.ty(ty);
                self.check_no_abstract(&ty, span);
                self.construct(&ty, arguments, span)
            }
            ast::ExprKind::Name { name, global } => self.call_name(name, *global, types, arguments, span),
            ast::ExprKind::TypeMember(ty, member) => self.call_on_type(ty, member, arguments, span),
            ast::ExprKind::Member(base, method) => {
                let base = self.expr(base, None);
                self.call_method(base, method, types, arguments, span)
            }
            _ => {
                self.error(callee.span, "this cannot be called");
                self.broken(span)
            }
        }
    }

    /// Only a declaration can implement abstract methods.
    fn check_no_abstract(&mut self, ty: &Type, span: Span) {
        if let Type::Object(of) = ty
            && of.kind == ObjectKind::Extern
            && self.program.externs[of.declaration].methods.iter().any(|method| method.is_abstract)
        {
            self.error(span, format!("`{}` has abstract methods, so only a declaration can make one", of.name));
        }
    }

    fn call_name(&mut self, name: &Ident, global: bool, types: Vec<Type>, arguments: &[Argument], span: Span) -> Expr {
        let symbol = self.find(&name.name, global).cloned();
        if &*name.name == "verify" && !self.context.in_parser && matches!(symbol, Some(Symbol::Functions(_))) {
            self.error(name.span, "`verify` can only be called in a parser");
        }
        let (callee, signature) = match symbol {
            Some(Symbol::Functions(all)) => {
                let signatures = all.iter().map(|function| match function {
                    FunctionRef::Function(index) => self.program.functions[*index].signature.clone(),
                    FunctionRef::Extern(index) => self.program.extern_functions[*index].clone(),
                });
                let signatures: Vec<Signature> = signatures.collect();
                let Some(at) = self.overload(&signatures, arguments, name) else {
                    return self.broken(span);
                };
                let callee = match all[at] {
                    FunctionRef::Function(index) => Callee::Function(index),
                    FunctionRef::Extern(index) => Callee::ExternFunction(index),
                };
                (callee, signatures[at].clone())
            }
            Some(Symbol::Action(index)) => {
                let action = &self.program.actions[index];
                let signature = Signature {
                    name: action.name.clone(),
                    type_parameters: Vec::new(),
                    parameters: action.parameters.clone(),
                    result: Type::Void,
                    is_abstract: false,
                    span: name.span,
                };
                if self.context.in_parser || self.context.result.is_some() {
                    self.error(span, "parsers and functions cannot call actions").help("call a function");
                }
                (Callee::Action(index), signature)
            }
            Some(_) => {
                self.error(name.span, format!("`{}` cannot be called", name.name));
                return self.broken(span);
            }
            None => {
                let similar = self.similar(&name.name);
                let problem = self.error(name.span, format!("there is no function `{}`", name.name));
                if let Some(similar) = similar {
                    problem.help(format!("there is `{similar}`"));
                }
                return self.broken(span);
            }
        };
        self.finish_call(callee, &signature, Substitution::new(), types, arguments, span)
    }

    fn call_on_type(&mut self, ty: &TypeRef, member: &Ident, arguments: &[Argument], span: Span) -> Expr {
        let ty = self.ty(ty);
        if let Some(size) = self.size_of(&ty, &member.name, span) {
            return size;
        }
        match &ty {
            Type::Unknown => self.broken(span),
            Type::Object(of)
                if matches!(of.kind, ObjectKind::Parser | ObjectKind::Control) && &*member.name == "apply" =>
            {
                let object = self.construct(&ty, &[], span);
                self.call_method(object, member, Vec::new(), arguments, span)
            }
            _ => {
                self.error(span, format!("type `{ty}` has no method `{}`", member.name));
                self.broken(span)
            }
        }
    }

    fn call_method(
        &mut self,
        base: Expr,
        method: &Ident,
        types: Vec<Type>,
        arguments: &[Argument],
        span: Span,
    ) -> Expr {
        if let ExprKind::Table(table) = base.kind {
            return self.apply_table(table, method, arguments, span);
        }
        if let Some(size) = self.size_of(&base.ty, &method.name, span) {
            return size;
        }
        if let Some((built_in, result)) = self.built_in(&base, method) {
            return self.call_built_in(built_in, base, result, arguments, span);
        }
        let Type::Object(of) = base.ty.clone() else {
            if !matches!(base.ty, Type::Unknown) {
                self.error(method.span, format!("`{}` has no method `{}`", base.ty, method.name));
            }
            return self.broken(span);
        };
        match of.kind {
            ObjectKind::Extern => self.call_extern(base, &of, method, types, arguments, span),
            ObjectKind::Parser | ObjectKind::Control if &*method.name == "apply" => {
                self.apply_block(base, &of, arguments, span)
            }
            _ => {
                self.error(method.span, format!("`{}` has no method `{}`", of.name, method.name));
                self.broken(span)
            }
        }
    }

    fn call_extern(
        &mut self,
        base: Expr,
        of: &ObjectType,
        method: &Ident,
        types: Vec<Type>,
        arguments: &[Argument],
        span: Span,
    ) -> Expr {
        let declaration = &self.program.externs[of.declaration];
        let with: Substitution =
            declaration.type_parameters.iter().copied().zip(of.arguments.iter().cloned()).collect();
        let candidates: Vec<(usize, Signature)> = declaration
            .methods
            .iter()
            .enumerate()
            .filter(|(_, signature)| signature.name == method.name && signature.name != declaration.name)
            .map(|(index, signature)| (index, signature.clone()))
            .collect();
        if candidates.is_empty() {
            let names: Vec<_> = declaration.methods.iter().map(|method| method.name.clone()).collect();
            let similar = super::nearest(&method.name, names.iter());
            self.no_member(method, &of.name, similar);
            return self.broken(span);
        }
        let signatures: Vec<Signature> = candidates.iter().map(|(_, signature)| signature.clone()).collect();
        let Some(at) = self.overload(&signatures, arguments, method) else {
            return self.broken(span);
        };
        let callee = Callee::ExternMethod(base, candidates[at].0);
        self.finish_call(callee, &signatures[at], with, types, arguments, span)
    }

    fn apply_block(&mut self, base: Expr, of: &ObjectType, arguments: &[Argument], span: Span) -> Expr {
        if self.program.blocks[of.declaration].is_parser != self.context.in_parser {
            let what = if self.context.in_parser { "control" } else { "parser" };
            self.error(span, format!("a {what} can only be applied in a {what}"));
            return self.broken(span);
        }
        if self.context.in_action {
            self.error(span, "an action cannot apply a control").help("apply it in the control's `apply`");
        }
        let block = &self.program.blocks[of.declaration];
        let signature = Signature {
            name: block.name.clone(),
            type_parameters: block.type_parameters.clone(),
            parameters: block.parameters.clone(),
            result: Type::Void,
            is_abstract: false,
            span: block.span,
        };
        let types = of.arguments.clone();
        self.finish_call(Callee::Block(base), &signature, Substitution::new(), types, arguments, span)
    }

    fn apply_table(&mut self, table: usize, method: &Ident, arguments: &[Argument], span: Span) -> Expr {
        if &*method.name != "apply" || !arguments.is_empty() {
            self.error(span, "a table has one method, `apply()`");
            return self.broken(span);
        }
        if !self.context.in_control_apply || self.context.in_action {
            self.error(span, "a table can only be applied in the `apply` of a control");
            return self.broken(span);
        }
        let call = Call { callee: Callee::Table(table), type_arguments: Vec::new(), arguments: Vec::new(), span };
        Expr { kind: ExprKind::Call(Box::new(call)), ty: Type::Callable("table's result"), span }
    }

    fn call_built_in(
        &mut self,
        built_in: BuiltIn,
        base: Expr,
        result: Type,
        arguments: &[Argument],
        span: Span,
    ) -> Expr {
        let mut values = Vec::new();
        let takes = usize::from(matches!(built_in, BuiltIn::PushFront | BuiltIn::PopFront));
        if arguments.len() != takes {
            self.error(span, format!("this method takes {takes} arguments, not {}", arguments.len()));
            return self.broken(span);
        }
        if let Some(argument) = arguments.first().and_then(|argument| argument.value.as_ref()) {
            let count = self.expr(argument, None);
            if !self.is_constant(&count) || !matches!(count.ty, Type::Integer | Type::Bit(_)) {
                self.error(count.span, "the number of elements must be a positive constant");
                return self.broken(span);
            }
            values.push(CallArgument { ty: count.ty.clone(), value: Some(count), direction: Direction::In });
        }
        let callee = Callee::BuiltIn(built_in, base);
        let call = Call { callee, type_arguments: Vec::new(), arguments: values, span };
        Expr { kind: ExprKind::Call(Box::new(call)), ty: result, span }
    }

    /// The first signature that takes as many arguments with these names.
    pub(super) fn overload(&mut self, signatures: &[Signature], arguments: &[Argument], name: &Ident) -> Option<usize> {
        let fits = |signature: &Signature| {
            let required = signature.parameters.iter().filter(|p| p.default.is_none() && !p.optional).count();
            let known = arguments.iter().all(|argument| {
                argument.name.as_ref().is_none_or(|name| signature.parameters.iter().any(|p| p.name == name.name))
            });
            (required..=signature.parameters.len()).contains(&arguments.len()) && known
        };
        let found = signatures.iter().position(fits);
        if found.is_none() {
            let counts: Vec<String> = signatures.iter().map(|s| s.parameters.len().to_string()).collect();
            let message = format!(
                "`{}` takes {} arguments; {} are given, or their names differ",
                name.name,
                counts.join(" or "),
                arguments.len()
            );
            self.error(name.span, message).see(signatures[0].span, "declared here");
        }
        found
    }

    pub(super) fn finish_call(
        &mut self,
        callee: Callee,
        signature: &Signature,
        mut with: Substitution,
        types: Vec<Type>,
        arguments: &[Argument],
        span: Span,
    ) -> Expr {
        let numbers = &signature.type_parameters;
        if !types.is_empty() && types.len() != numbers.len() {
            let message = format!("`{}` takes {} type arguments, not {}", signature.name, numbers.len(), types.len());
            self.error(span, message);
            return self.broken(span);
        }
        let types = if types.is_empty() { numbers.iter().map(|_| Type::Infer(self.fresh())).collect() } else { types };
        with.extend(numbers.iter().copied().zip(types.iter().cloned()));
        let Some(arguments) = self.arguments(&signature.name, &signature.parameters, &with, arguments, span) else {
            return self.broken(span);
        };
        let type_arguments: Vec<Type> = types.iter().map(|ty| self.resolve(ty)).collect();
        if type_arguments.iter().any(|ty| matches!(ty, Type::Infer(_))) {
            self.error(span, format!("the type arguments of `{}` cannot be inferred", signature.name))
                .help("write them out: `name<T>(...)`");
            return self.broken(span);
        }
        if type_arguments.contains(&Type::Integer) && !matches!(callee, Callee::Block(_)) {
            self.error(span, format!("an argument of `{}` has no width", signature.name))
                .help("give the literal a width: 16w0");
            return self.broken(span);
        }
        let is_record = |ty: &Type| matches!(ty, Type::Struct(of) if of.id == 0);
        if matches!(callee, Callee::Function(_)) && type_arguments.iter().any(is_record) {
            self.error(span, "the type of this record cannot be inferred").help("cast it: `(T) { ... }`");
            return self.broken(span);
        }
        self.check_packet_call(&callee, signature, &type_arguments, span);
        let result = self.resolve(&signature.result.substitute(&with));
        let call = Call { callee, type_arguments, arguments, span };
        Expr { kind: ExprKind::Call(Box::new(call)), ty: result, span }
    }
}
