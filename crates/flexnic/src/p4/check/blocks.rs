//! Parsers and controls.

use std::sync::Arc;

use super::declarations::control_name;
use super::{Access, Checker, Context, Symbol, TypeSymbol};
use crate::p4::ast::{self, ControlDecl, Declaration, DeclarationKind, Ident, ParserDecl};
use crate::p4::hir::{Block, Body, Expr, ExprKind, Local, State, StateRef, Transition, ValueSet};
use crate::p4::source::{Name, Span};
use crate::p4::types::Type;

impl Checker<'_> {
    pub(super) fn parser(&mut self, name: &Ident, parser: &ParserDecl, span: Span) {
        let block = self.scoped(|checker| {
            let type_parameters = checker.type_parameters(&parser.type_parameters);
            let parameters = checker.parameters(&parser.parameters, Access::CompileTime);
            let constructor = checker.parameters(&parser.constructor, Access::CompileTime);
            let outer = std::mem::take(&mut checker.context);
            checker.context.in_parser = true;
            let locals = checker.locals(&parser.locals);
            let body = match &parser.states {
                Some(states) => Body::Parser(checker.states(name, states)),
                None => Body::None,
            };
            checker.context = outer;
            Block {
                name: name.name.clone(),
                is_parser: true,
                type_parameters,
                parameters,
                constructor,
                locals,
                body,
                span: name.span,
            }
        });
        self.add_block(name, block, span);
    }

    pub(super) fn control(&mut self, name: &Ident, control: &ControlDecl, span: Span) {
        let block = self.scoped(|checker| {
            let type_parameters = checker.type_parameters(&control.type_parameters);
            let parameters = checker.parameters(&control.parameters, Access::CompileTime);
            let constructor = checker.parameters(&control.constructor, Access::CompileTime);
            let outer = std::mem::take(&mut checker.context);
            let locals = checker.locals(&control.locals);
            checker.context = Context { in_control_apply: true, ..Context::default() };
            let body = match &control.apply {
                Some(apply) => Body::Control(checker.block(apply)),
                None => Body::None,
            };
            checker.context = outer;
            Block {
                name: name.name.clone(),
                is_parser: false,
                type_parameters,
                parameters,
                constructor,
                locals,
                body,
                span: name.span,
            }
        });
        self.add_block(name, block, span);
    }

    fn add_block(&mut self, name: &Ident, block: Block, span: Span) {
        if !matches!(block.body, Body::None) && !block.type_parameters.is_empty() {
            self.error(span, format!("`{}` has a body, so it cannot be generic", block.name))
                .help("give its parameters types");
        }
        self.program.blocks.push(block);
        self.declare(name, Symbol::Type(TypeSymbol::Block(self.program.blocks.len() - 1)));
    }

    fn locals(&mut self, declarations: &[Declaration]) -> Vec<Local> {
        declarations.iter().filter_map(|declaration| self.block_local(declaration)).collect()
    }

    fn block_local(&mut self, declaration: &Declaration) -> Option<Local> {
        let name = &declaration.name;
        match &declaration.kind {
            DeclarationKind::Variable { ty, value } => {
                let written = ty;
                let ty = self.ty(ty);
                self.check_variable_type(&ty, written.span);
                let value = value.as_ref().map(|value| self.expr_of(value, &ty));
                let variable = self.variable(Access::ReadWrite);
                self.declare(name, Symbol::Variable(variable, ty.clone()));
                Some(Local::Variable { variable, name: name.name.clone(), ty, value })
            }
            DeclarationKind::Constant { ty, value } => {
                self.constant(name, ty, value);
                None
            }
            DeclarationKind::Instance { .. } => self.instance(declaration),
            DeclarationKind::Action { parameters, body } if !self.context.in_parser => {
                self.action(declaration, parameters, body);
                None
            }
            DeclarationKind::Table(table) if !self.context.in_parser => {
                self.table(declaration, table);
                None
            }
            DeclarationKind::ValueSet { ty, size } if self.context.in_parser => {
                let written = ty;
                let ty = self.ty(ty);
                if !matches!(
                    ty.representation(),
                    Type::Bit(_)
                        | Type::Int(_)
                        | Type::Bool
                        | Type::Enum(_)
                        | Type::Struct(_)
                        | Type::Tuple(_)
                        | Type::Unknown
                ) {
                    self.error(written.span, format!("a value set cannot hold `{ty}`"));
                }
                let size = self.constant_number(size, "the size of a value set").unwrap_or(0);
                let path = control_name(&declaration.annotations, &name.name);
                self.program.value_sets.push(ValueSet {
                    path,
                    ty,
                    size,
                    annotations: declaration.annotations.clone().into(),
                });
                self.declare(name, Symbol::ValueSet(self.program.value_sets.len() - 1));
                None
            }
            _ => {
                let place = if self.context.in_parser { "parser" } else { "control" };
                self.error(declaration.span, format!("this cannot be declared in a {place}"));
                None
            }
        }
    }

    fn states(&mut self, name: &Ident, states: &[ast::State]) -> Vec<State> {
        let mut names: Vec<Name> = Vec::new();
        for state in states {
            if matches!(&*state.name.name, "accept" | "reject") {
                self.error(state.name.span, format!("state `{}` exists already", state.name.name));
            } else if names.contains(&state.name.name) {
                self.error(state.name.span, format!("state `{}` is declared twice", state.name.name));
            }
            names.push(state.name.name.clone());
        }
        if !names.iter().any(|name| &**name == "start") {
            self.error(name.span, format!("parser `{}` has no state `start`", name.name));
        }
        self.context.states = names;
        let found: Vec<State> = states.iter().map(|state| self.state(state)).collect();
        if !found.is_empty() && !reaches_end(&found) && !self.reporter.has_errors() {
            self.error(name.span, format!("parser `{}` never reaches `accept` or `reject`", name.name));
        }
        found
    }

    fn state(&mut self, state: &ast::State) -> State {
        self.scoped(|checker| {
            let body = checker.statements(&state.body);
            let transition = match &state.transition {
                ast::Transition::None => Transition::Direct(StateRef::Reject),
                ast::Transition::Direct(target) => Transition::Direct(checker.state_ref(target)),
                ast::Transition::Select { keys, cases, span } => checker.select(keys, cases, *span),
            };
            State { name: state.name.name.clone(), body, transition }
        })
    }

    fn state_ref(&mut self, name: &Ident) -> StateRef {
        match &*name.name {
            "accept" => StateRef::Accept,
            "reject" => StateRef::Reject,
            _ => match self.context.states.iter().position(|state| *state == name.name) {
                Some(index) => StateRef::State(index),
                None => {
                    let similar = super::nearest(&name.name, self.context.states.iter());
                    let problem = self.reporter.error(name.span, format!("there is no state `{}`", name.name));
                    if let Some(similar) = similar {
                        problem.help(format!("there is `{similar}`"));
                    }
                    StateRef::Reject
                }
            },
        }
    }

    fn select(&mut self, keys: &[ast::Expr], cases: &[(Vec<ast::Expr>, Ident)], span: Span) -> Transition {
        let mut keys: Vec<Expr> = keys.iter().map(|key| self.expr(key, None)).collect();
        for key in &mut keys {
            if key.ty == Type::Integer {
                self.reporter.error(key.span, "a key of `select` needs a width");
            }
            let fits = matches!(
                key.ty.representation(),
                Type::Bit(_) | Type::Int(_) | Type::Bool | Type::Enum(_) | Type::Error | Type::Unknown | Type::Integer
            );
            if !fits && !matches!(key.ty, Type::Tuple(_)) {
                self.reporter.error(key.span, format!("`select` does not work on `{}`", key.ty));
            }
        }
        if keys.is_empty() {
            self.error(span, "`select` needs a key");
        }
        // A list as the only key is a key per element.
        if let [Expr { kind: ExprKind::Aggregate(items), .. }] = &keys[..] {
            keys = items.clone();
        }
        let types: Vec<Type> = keys.iter().map(|key| key.ty.clone()).collect();
        let mut found = Vec::new();
        for (set, target) in cases {
            let set = self.key_set(set, &types);
            let target = self.state_ref(target);
            found.push((set, target));
        }
        Transition::Select { keys, cases: found }
    }

    /// The elements of a set that is matched against keys of these types.
    pub(super) fn key_set(&mut self, set: &[ast::Expr], types: &[Type]) -> Vec<Expr> {
        if let ([ast::Expr { kind: ast::ExprKind::List { items, dots: false }, .. }], [ty]) = (set, types)
            && let [only] = &items[..]
            && !matches!(ty, Type::Tuple(_) | Type::Struct(_))
        {
            return vec![self.set_element(only, ty)];
        }
        if let [one] = set
            && types.len() != 1
        {
            if matches!(one.kind, ast::ExprKind::Any | ast::ExprKind::Default) {
                let any = |ty: &Type| Expr { kind: ExprKind::Any, ty: ty.clone(), span: one.span };
                return types.iter().map(any).collect();
            }
            let tuple = Type::tuple(types.to_vec());
            let checked = self.expr(one, Some(&tuple));
            if matches!(checked.ty, Type::Set(_)) {
                return vec![checked];
            }
            if let ExprKind::Aggregate(_) = checked.kind {
                let checked = self.coerce(checked, &tuple);
                if let ExprKind::Aggregate(items) = checked.kind {
                    return items;
                }
                return Vec::new();
            }
        }
        if set.len() != types.len() {
            let span = set.first().map_or(Span::default(), |first| first.span);
            self.error(span, format!("this set has {} elements for {} keys", set.len(), types.len()));
            return Vec::new();
        }
        set.iter().zip(types).map(|(element, ty)| self.set_element(element, ty)).collect()
    }

    fn set_element(&mut self, element: &ast::Expr, ty: &Type) -> Expr {
        let span = element.span;
        let kind = match &element.kind {
            ast::ExprKind::Any | ast::ExprKind::Default => ExprKind::Any,
            ast::ExprKind::Mask(value, mask) | ast::ExprKind::Range(value, mask) => {
                let base = match ty {
                    Type::Enum(_) | Type::New(_) => ty.representation(),
                    _ => ty.clone(),
                };
                if !matches!(base, Type::Bit(_) | Type::Int(_) | Type::Unknown) {
                    self.error(span, format!("masks and ranges do not work on `{ty}`"));
                    return self.broken(span);
                }
                let (first, second) = (self.expr_of(value, &base), self.expr_of(mask, &base));
                for side in [&first, &second] {
                    if !self.is_constant(side) {
                        self.reporter.error(side.span, "an element of a set must be known at compile time");
                    }
                }
                if matches!(element.kind, ast::ExprKind::Range(..))
                    && let (ExprKind::Integer(low), ExprKind::Integer(high)) = (&first.kind, &second.kind)
                    && low > high
                {
                    self.reporter.error(span, format!("the range {low} .. {high} is empty"));
                }
                let make =
                    if matches!(element.kind, ast::ExprKind::Mask(..)) { ExprKind::Mask } else { ExprKind::Range };
                make(Box::new(first), Box::new(second))
            }
            _ => {
                let checked = self.expr(element, Some(ty));
                if let Type::Set(of) = &checked.ty {
                    if !self.unify(ty, &of.clone()) {
                        self.error(span, format!("this set holds `{}`, the key is `{ty}`", checked.ty));
                    }
                    return checked;
                }
                let value = self.coerce(checked, ty);
                if !self.is_constant(&value) {
                    self.error(value.span, "an element of a set must be known at compile time");
                }
                return value;
            }
        };
        Expr { kind, ty: Type::Set(Arc::new(ty.clone())), span }
    }
}

/// Some path from `start` ends.
fn reaches_end(states: &[State]) -> bool {
    let Some(start) = states.iter().position(|state| &*state.name == "start") else {
        return true;
    };
    let (mut seen, mut open) = (vec![false; states.len()], vec![start]);
    while let Some(number) = open.pop() {
        if std::mem::replace(&mut seen[number], true) {
            continue;
        }
        let targets: Vec<StateRef> = match &states[number].transition {
            Transition::Direct(target) => vec![*target],
            // A select that matches nothing rejects.
            Transition::Select { cases, .. } => {
                let total =
                    cases.iter().any(|(set, _)| set.iter().all(|element| matches!(element.kind, ExprKind::Any)));
                if !total {
                    return true;
                }
                cases.iter().map(|(_, target)| *target).collect()
            }
        };
        for target in targets {
            match target {
                StateRef::State(next) => open.push(next),
                StateRef::Accept | StateRef::Reject => return true,
            }
        }
    }
    false
}
