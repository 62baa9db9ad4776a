//! Statements.

use super::{Access, Checker, Symbol};
use crate::p4::ast::{self, DeclarationKind, StatementKind};
use crate::p4::hir::{ActionCase, Expr, ExprKind, Statement, SwitchCase, TableResult};
use crate::p4::source::Span;
use crate::p4::types::Type;

impl Checker<'_> {
    pub(super) fn block(&mut self, statements: &[ast::Statement]) -> Vec<Statement> {
        self.scoped(|checker| checker.statements(statements))
    }

    pub(super) fn statements(&mut self, statements: &[ast::Statement]) -> Vec<Statement> {
        statements.iter().flat_map(|statement| self.statement(statement)).collect()
    }

    fn nested(&mut self, statement: &ast::Statement) -> Vec<Statement> {
        self.scoped(|checker| checker.statement(statement).into_iter().collect())
    }

    fn statement(&mut self, statement: &ast::Statement) -> Option<Statement> {
        let span = statement.span;
        match &statement.kind {
            StatementKind::Empty => None,
            StatementKind::Assign { target, operator, value } => self.assign(target, *operator, value, span),
            StatementKind::Call(call) => self.call_statement(call),
            StatementKind::If { condition, then, otherwise } => {
                let condition = self.expr_of(condition, &Type::Bool);
                let then = self.nested(then);
                let otherwise = otherwise.as_ref().map(|otherwise| self.nested(otherwise)).unwrap_or_default();
                Some(Statement::If { condition, then, otherwise })
            }
            StatementKind::Switch { value, cases } => self.switch(value, cases, span),
            StatementKind::Block(inside) => Some(Statement::Block(self.block(inside))),
            StatementKind::Declaration(declaration) => self.local(declaration),
            StatementKind::Return(value) => self.return_statement(value.as_ref(), span),
            StatementKind::Exit => {
                if self.context.in_parser || self.context.result.is_some() {
                    self.error(span, "`exit` can only be used in controls and actions");
                }
                Some(Statement::Exit)
            }
            StatementKind::Break | StatementKind::Continue => {
                if !self.context.in_loop {
                    self.error(span, "this can only be used in a loop");
                }
                let is_break = matches!(statement.kind, StatementKind::Break);
                Some(if is_break { Statement::Break } else { Statement::Continue })
            }
            StatementKind::For { start, condition, update, body } => Some(self.scoped(|checker| {
                let start = checker.statements(start);
                let condition = checker.expr_of(condition, &Type::Bool);
                let update = checker.statements(update);
                let body = checker.loop_body(body);
                Statement::For { start, condition, update, body }
            })),
            StatementKind::ForIn { declaration, target, over, body } => {
                self.scoped(|checker| checker.for_in(declaration.as_ref(), target.as_ref(), over, body, span))
            }
        }
    }

    fn loop_body(&mut self, body: &ast::Statement) -> Vec<Statement> {
        let outer = std::mem::replace(&mut self.context.in_loop, true);
        let body = self.nested(body);
        self.context.in_loop = outer;
        body
    }

    fn assign(
        &mut self,
        target: &ast::Expr,
        operator: Option<ast::BinaryOp>,
        value: &ast::Expr,
        span: Span,
    ) -> Option<Statement> {
        let target = self.expr(target, None);
        if matches!(target.kind, ExprKind::Broken) {
            self.expr(value, None);
            return None;
        }
        if !self.is_place(&target) {
            self.error(target.span, "this cannot be assigned to").help("it is constant, `in`, or no variable");
            return None;
        }
        if matches!(target.kind, ExprKind::Last(_)) && target.ty.fields().is_empty() {
            self.error(target.span, "`last` cannot be assigned to");
        }
        let Some(operator) = operator else {
            let value = self.expr_of(value, &target.ty);
            return Some(Statement::Assign { target, operator: None, value });
        };
        let right = self.expr(value, None);
        // The operator is checked on the target as it is read; lowering reads it only once.
        let whole = self.binary_of(operator, target.clone(), right, span);
        match self.coerce(whole, &target.ty).kind {
            ExprKind::Binary(operator, _, right) => {
                Some(Statement::Assign { target, operator: Some(operator), value: *right })
            }
            _ => None,
        }
    }

    fn call_statement(&mut self, call: &ast::Expr) -> Option<Statement> {
        let checked = self.expr(call, None);
        match checked.kind {
            ExprKind::Call(call) => Some(Statement::Call(*call)),
            ExprKind::Broken => None,
            ExprKind::Integer(_) => None,
            _ => {
                self.error(checked.span, "this is no statement");
                None
            }
        }
    }

    fn local(&mut self, declaration: &ast::Declaration) -> Option<Statement> {
        match &declaration.kind {
            DeclarationKind::Variable { ty, value } => {
                let written = ty;
                let ty = self.ty(ty);
                self.check_variable_type(&ty, written.span);
                let value = value.as_ref().map(|value| self.expr_of(value, &ty));
                let variable = self.variable(Access::ReadWrite);
                self.declare(&declaration.name, Symbol::Variable(variable, ty.clone()));
                let name = declaration.name.name.clone();
                Some(Statement::Declare { variable, name, ty, value })
            }
            DeclarationKind::Constant { ty, value } => {
                self.constant(&declaration.name, ty, value);
                None
            }
            _ => {
                self.error(declaration.span, "an instance cannot be declared here")
                    .help("declare it in the control or parser, before `apply` or the states");
                None
            }
        }
    }

    pub(super) fn check_variable_type(&mut self, ty: &Type, span: Span) {
        let why = match ty {
            Type::Void | Type::Text | Type::MatchKind | Type::Integer | Type::List(_) => {
                "only values of fixed size are stored"
            }
            Type::Object(_) => "objects are instances: `Type(arguments) name;`",
            Type::Infer(_) => "its type has to be written",
            _ => return,
        };
        self.error(span, format!("a variable cannot have type `{ty}`: {why}"));
    }

    fn return_statement(&mut self, value: Option<&ast::Expr>, span: Span) -> Option<Statement> {
        if self.context.in_parser && self.context.result.is_none() {
            self.error(span, "a parser state cannot `return`").help("use `transition`");
            return None;
        }
        let value = match (self.context.result.clone(), value) {
            (None | Some(Type::Void), Some(value)) => {
                self.error(value.span, "there is nothing to return a value to");
                return None;
            }
            (None | Some(Type::Void), None) => None,
            (Some(ty), Some(value)) => Some(self.expr_of(value, &ty)),
            (Some(ty), None) => {
                self.error(span, format!("this function returns a value of type `{ty}`"));
                return None;
            }
        };
        Some(Statement::Return(value))
    }

    fn for_in(
        &mut self,
        declaration: Option<&(ast::TypeRef, ast::Ident)>,
        target: Option<&ast::Expr>,
        over: &ast::Expr,
        body: &ast::Statement,
        span: Span,
    ) -> Option<Statement> {
        let target = match (declaration, target) {
            (Some((ty, name)), _) => {
                let ty = self.ty(ty);
                let variable = self.variable(Access::ReadWrite);
                self.declare(name, Symbol::Variable(variable, ty.clone()));
                Expr { kind: ExprKind::Variable(variable), ty, span: name.span }
            }
            (None, Some(target)) => self.expr(target, None),
            (None, None) => return None,
        };
        if !self.is_place(&target) {
            self.error(target.span, "the variable of a loop must be one that can be written");
            return None;
        }
        let over = if let ast::ExprKind::Range(first, last) = &over.kind {
            let (first, last) = (self.expr_of(first, &target.ty), self.expr_of(last, &target.ty));
            if !matches!(target.ty, Type::Bit(_) | Type::Int(_) | Type::Unknown) {
                self.error(over.span, format!("a range of `{}` cannot be run through", target.ty));
                return None;
            }
            Expr { kind: ExprKind::Range(Box::new(first), Box::new(last)), ty: target.ty.clone(), span: over.span }
        } else {
            let wanted = Type::List(std::sync::Arc::new(target.ty.clone()));
            let list = self.expr(over, Some(&wanted));
            match list.ty.clone() {
                Type::Stack(of, _) if *of == target.ty => list,
                Type::Tuple(_) => self.coerce(list, &wanted),
                Type::List(of) if *of == target.ty => list,
                Type::Unknown => return None,
                other => {
                    self.error(span, format!("`{other}` cannot be run through"));
                    return None;
                }
            }
        };
        let body = self.loop_body(body);
        Some(Statement::ForIn { target, over, body })
    }

    fn switch(&mut self, value: &ast::Expr, cases: &[ast::SwitchCase], span: Span) -> Option<Statement> {
        let checked = self.expr(value, None);
        if self.context.in_parser {
            self.error(span, "a parser has no `switch`").help("use `select`");
        }
        let defaults: Vec<usize> =
            (0..cases.len()).filter(|at| matches!(cases[*at].label.kind, ast::ExprKind::Default)).collect();
        if defaults.len() > 1 || defaults.first().is_some_and(|at| at + 1 != cases.len()) {
            self.error(cases[defaults[0]].label.span, "`default` must be the last label and stand once");
        }
        if let ExprKind::Apply(table, TableResult::ActionRun) = checked.kind {
            return self.switch_action(table, cases);
        }
        match &checked.ty {
            Type::Unknown => {}
            Type::Bit(_) | Type::Int(_) | Type::Enum(_) | Type::Error | Type::Bool | Type::Integer => {}
            other => {
                let message = format!("`switch` does not work on `{other}`");
                self.error(checked.span, message).help("it takes numbers, enumerations, errors or `action_run`");
            }
        }
        let mut result: Vec<SwitchCase> = Vec::new();
        let (mut labels, mut is_default) = (Vec::new(), false);
        let mut seen: Vec<String> = Vec::new();
        for case in cases {
            if matches!(case.label.kind, ast::ExprKind::Default) {
                is_default = true;
            } else {
                let label = self.expr_of(&case.label, &checked.ty);
                if !self.is_constant(&label) {
                    self.error(label.span, "a label must be known at compile time");
                }
                let text = format!("{:?}", label.kind);
                if !matches!(label.kind, ExprKind::Broken) && seen.contains(&text) {
                    self.error(label.span, "this label stands twice");
                }
                seen.push(text);
                labels.push(label);
            }
            if let Some(body) = &case.body {
                let body = self.nested(body);
                result.push(SwitchCase { labels: std::mem::take(&mut labels), is_default, body });
                is_default = false;
            }
        }
        Some(Statement::Switch { value: checked, cases: result })
    }

    fn switch_action(&mut self, table: usize, cases: &[ast::SwitchCase]) -> Option<Statement> {
        let mut result = Vec::new();
        let (mut actions, mut is_default): (Vec<usize>, bool) = (Vec::new(), false);
        let mut seen = Vec::new();
        for case in cases {
            match &case.label.kind {
                ast::ExprKind::Default => is_default = true,
                ast::ExprKind::Name { name, .. } => {
                    let known = &self.program.tables[table].actions;
                    let found = known
                        .iter()
                        .map(|action| action.action)
                        .find(|action| self.program.actions[*action].name == name.name);
                    match found {
                        Some(action) if seen.contains(&action) => {
                            self.error(name.span, "this label stands twice");
                        }
                        Some(action) => {
                            seen.push(action);
                            actions.push(action);
                        }
                        None => {
                            self.error(name.span, format!("the table has no action `{}`", name.name));
                        }
                    }
                }
                _ => {
                    self.error(case.label.span, "a label must be an action of the table");
                }
            }
            if let Some(body) = &case.body {
                let body = self.nested(body);
                result.push(ActionCase { actions: std::mem::take(&mut actions), is_default, body });
                is_default = false;
            }
        }
        Some(Statement::SwitchAction { table, cases: result })
    }
}

/// A path through the statements ends without `return`.
pub(super) fn may_fall_through(statements: &[Statement]) -> bool {
    !statements.iter().any(always_leaves)
}

fn always_leaves(statement: &Statement) -> bool {
    match statement {
        Statement::Return(_) | Statement::Exit => true,
        Statement::Block(inside) => !may_fall_through(inside),
        Statement::If { condition, then, otherwise } => match condition.kind {
            ExprKind::Bool(true) => !may_fall_through(then),
            ExprKind::Bool(false) => !may_fall_through(otherwise),
            _ => !may_fall_through(then) && !may_fall_through(otherwise),
        },
        Statement::Switch { cases, .. } => {
            cases.iter().any(|case| case.is_default) && cases.iter().all(|case| !may_fall_through(&case.body))
        }
        _ => false,
    }
}
