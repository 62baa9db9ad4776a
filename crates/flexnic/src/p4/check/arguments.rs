//! Arguments: matched to parameters, converted, and constructor calls.

use super::Checker;
use crate::p4::ast::{Argument, Direction, Ident};
use crate::p4::hir::{CallArgument, Callee, Construct, Expr, ExprKind, Parameter, Signature};
use crate::p4::source::Span;
use crate::p4::types::{ObjectKind, Substitution, Type};

impl Checker<'_> {
    /// Methods of packets (section 13.8).
    pub(super) fn check_packet_call(&mut self, callee: &Callee, signature: &Signature, types: &[Type], span: Span) {
        let (Callee::ExternMethod(object, _), [ty]) = (callee, types) else { return };
        if !matches!(&object.ty, Type::Object(of) if &*of.name == "packet_in") || matches!(ty, Type::Parameter(..)) {
            return;
        }
        let has_varbit = ty.bits(|_| 0) != ty.bits(|width| width.max(1));
        match &*signature.name {
            "extract" if !ty.is_header() => {
                self.error(span, format!("`{ty}` cannot be extracted")).help("extract a header");
            }
            "extract" if has_varbit != (signature.parameters.len() == 2) => {
                let message = if has_varbit {
                    "a header with a varbit needs its size as a second argument"
                } else {
                    "only a header with a varbit takes a size"
                };
                self.error(span, message);
            }
            "lookahead" if has_varbit || ty.bits(|_| 0).is_none() => {
                self.error(span, format!("`lookahead` needs a type of fixed size, not `{ty}`"));
            }
            _ => {}
        }
    }

    /// Matches arguments to parameters, infers types and converts.
    pub(super) fn arguments(
        &mut self,
        name: &str,
        parameters: &[Parameter],
        with: &Substitution,
        arguments: &[Argument],
        span: Span,
    ) -> Option<Vec<CallArgument>> {
        let matched = self.match_arguments(name, parameters, arguments, span)?;
        let mut values = Vec::new();
        for (parameter, argument) in parameters.iter().zip(&matched) {
            let ty = self.resolve(&parameter.ty.substitute(with));
            let Some(argument) = argument.and_then(|argument| argument.value.as_ref()) else {
                values.push(None);
                continue;
            };
            let value = self.expr(argument, Some(&ty));
            let is_block = matches!(&value.ty, Type::Object(of) if of.kind != ObjectKind::Extern);
            if is_block && matches!(parameter.ty, Type::Parameter(..)) && parameter.direction != Direction::None {
                self.error(value.span, format!("`{}` cannot be an argument", value.ty));
                return None;
            }
            if matches!(value.ty, Type::Callable(_) | Type::Void) {
                self.error(value.span, format!("`{}` is no value", value.ty));
                return None;
            }
            let wanted = parameter.ty.substitute(with);
            if !matches!(value.kind, ExprKind::Broken | ExprKind::Invalid) && !self.unify(&wanted, &value.ty) {
                let (wanted, given) = (self.resolve(&wanted), self.resolve(&value.ty));
                self.error(value.span, format!("parameter `{}` has type `{wanted}`, not `{given}`", parameter.name));
                return None;
            }
            values.push(Some(value));
        }
        let mut result = Vec::new();
        for (parameter, value) in parameters.iter().zip(values) {
            let ty = self.resolve(&parameter.ty.substitute(with));
            let value = match value {
                Some(value) => Some(self.argument(parameter, value, &ty)?),
                None => parameter.default.clone(),
            };
            result.push(CallArgument { value, direction: parameter.direction, ty });
        }
        Some(result)
    }

    fn match_arguments<'a>(
        &mut self,
        name: &str,
        parameters: &[Parameter],
        arguments: &'a [Argument],
        span: Span,
    ) -> Option<Vec<Option<&'a Argument>>> {
        let named = arguments.iter().filter(|argument| argument.name.is_some()).count();
        if named != 0 && named != arguments.len() {
            self.error(span, "either all arguments have names or none has");
            return None;
        }
        let mut matched: Vec<Option<&Argument>> = vec![None; parameters.len()];
        for (index, argument) in arguments.iter().enumerate() {
            let at = match &argument.name {
                None => Some(index),
                Some(name) => parameters.iter().position(|parameter| parameter.name == name.name),
            };
            match at.and_then(|at| matched.get_mut(at)) {
                Some(place @ None) => *place = Some(argument),
                Some(Some(_)) => {
                    self.error(argument.span, "this parameter has an argument already");
                    return None;
                }
                None => {
                    self.error(argument.span, format!("`{name}` has no parameter for this argument"));
                    return None;
                }
            }
        }
        for (parameter, argument) in parameters.iter().zip(&matched) {
            let left_open = argument.is_some_and(|argument| argument.value.is_none());
            if left_open && matches!(parameter.direction, Direction::In | Direction::InOut) {
                self.error(span, format!("parameter `{}` needs a value: `_` only stands for `out`", parameter.name));
                return None;
            }
            if argument.is_none() && parameter.default.is_none() && !parameter.optional {
                self.error(span, format!("`{name}` needs an argument for `{}`", parameter.name));
                return None;
            }
        }
        Some(matched)
    }

    fn argument(&mut self, parameter: &Parameter, value: Expr, ty: &Type) -> Option<Expr> {
        if matches!(value.kind, ExprKind::Broken) {
            return None;
        }
        if matches!(parameter.direction, Direction::Out | Direction::InOut) {
            if !self.is_place(&value) {
                self.error(value.span, format!("parameter `{}` is written, but this cannot be", parameter.name))
                    .help("pass a variable that is not `in` or constant");
                return None;
            }
            if self.resolve(&value.ty) != *ty {
                self.error(
                    value.span,
                    format!("parameter `{}` needs exactly `{ty}`, not `{}`", parameter.name, value.ty),
                );
                return None;
            }
            return Some(value);
        }
        let value = self.coerce(value, ty);
        (!matches!(value.kind, ExprKind::Broken)).then_some(value)
    }

    pub(super) fn construct(&mut self, ty: &Type, arguments: &[Argument], span: Span) -> Expr {
        let Type::Object(of) = ty else {
            if !matches!(ty, Type::Unknown) {
                self.error(span, format!("`{ty}` has no constructor"));
            }
            return self.broken(span);
        };
        let name = Ident { name: of.name.clone(), span };
        let (method, numbers, parameters) = match of.kind {
            ObjectKind::Extern => {
                let declaration = self.program.externs[of.declaration].clone();
                let constructors: Vec<usize> = (0..declaration.methods.len())
                    .filter(|at| declaration.methods[*at].name == declaration.name)
                    .collect();
                if constructors.is_empty() {
                    self.error(span, format!("`{}` has no constructor: the architecture provides it", of.name));
                    return self.broken(span);
                }
                let signatures: Vec<Signature> =
                    constructors.iter().map(|at| declaration.methods[*at].clone()).collect();
                let Some(at) = self.overload(&signatures, arguments, &name) else {
                    return self.broken(span);
                };
                (constructors[at], declaration.type_parameters, signatures[at].parameters.clone())
            }
            ObjectKind::Parser | ObjectKind::Control => {
                let block = &self.program.blocks[of.declaration];
                if matches!(block.body, crate::p4::hir::Body::None) {
                    self.error(span, format!("`{}` is a type without a body", of.name));
                    return self.broken(span);
                }
                (0, block.type_parameters.clone(), block.constructor.clone())
            }
            ObjectKind::Package => {
                let package = &self.program.packages[of.declaration];
                (0, package.type_parameters.clone(), package.parameters.clone())
            }
        };
        let with: Substitution = numbers.into_iter().zip(of.arguments.iter().cloned()).collect();
        let Some(bound) = self.arguments(&of.name, &parameters, &with, arguments, span) else {
            return self.broken(span);
        };
        let mut values = Vec::new();
        for argument in bound {
            let value = argument.value.unwrap_or(Expr { kind: ExprKind::Zero, ty: argument.ty, span });
            if !self.is_constant(&value) {
                self.error(value.span, "an argument of a constructor must be known at compile time");
                return self.broken(span);
            }
            values.push(value);
        }
        let ty = self.resolve(ty);
        let construct = Construct { ty: ty.clone(), method, arguments: values };
        Expr { kind: ExprKind::Construct(Box::new(construct)), ty, span }
    }
}
