//! Statements.

use std::collections::HashMap;

use super::{Failed, NameKind, Parsed, Parser};
use crate::p4::ast::{BinaryOp, DeclarationKind, Expr, ExprKind, Statement, StatementKind, SwitchCase};
use crate::p4::token::Kind;

/// Assignments that also compute.
const COMPOUND: [(&str, BinaryOp); 11] = [
    ("+=", BinaryOp::Add),
    ("-=", BinaryOp::Sub),
    ("|+|=", BinaryOp::AddSat),
    ("|-|=", BinaryOp::SubSat),
    ("*=", BinaryOp::Mul),
    ("/=", BinaryOp::Div),
    ("%=", BinaryOp::Mod),
    ("<<=", BinaryOp::ShiftLeft),
    ("&=", BinaryOp::And),
    ("|=", BinaryOp::Or),
    ("^=", BinaryOp::Xor),
];

impl Parser<'_> {
    /// `{ statements }` in a scope of its own.
    pub(super) fn block(&mut self) -> Parsed<Vec<Statement>> {
        self.scoped(|parser| parser.block_in_scope())
    }

    /// `{ statements }` in the present scope. An error in one statement does not hide those of the next.
    pub(super) fn block_in_scope(&mut self) -> Parsed<Vec<Statement>> {
        self.annotations()?;
        self.expect("{")?;
        let mut found = Vec::new();
        let mut failed = false;
        while !self.is("}") {
            if matches!(self.peek().kind, Kind::End) {
                return self.fail("`}`");
            }
            let (before, scopes, depth) = (self.at, self.scopes.len(), self.depth);
            match self.statement() {
                Ok(statement) => found.push(statement),
                Err(Failed) if self.quiet > 0 => return Err(Failed),
                Err(Failed) => {
                    failed = true;
                    self.scopes.truncate(scopes);
                    self.depth = depth;
                    self.recover_in_block(before);
                }
            }
        }
        self.next();
        if failed { Err(Failed) } else { Ok(found) }
    }

    /// Skips to the end of the statement that begins at `before`.
    fn recover_in_block(&mut self, before: usize) {
        let mut open = 0_i32;
        for token in &self.tokens[before..self.at] {
            open += i32::from(token.is("{")) - i32::from(token.is("}"));
        }
        while !matches!(self.peek().kind, Kind::End) {
            if open <= 0 && self.is("}") {
                return;
            }
            let token = self.next();
            open += i32::from(token.is("{")) - i32::from(token.is("}"));
            if open <= 0 && (token.is(";") || token.is("}")) {
                return;
            }
        }
    }

    pub(super) fn statement(&mut self) -> Parsed<Statement> {
        self.nested(|parser| {
            let start = parser.peek().span;
            let kind = parser.statement_kind()?;
            Ok(Statement { kind, span: start.to(parser.previous_span()) })
        })
    }

    fn statement_kind(&mut self) -> Parsed<StatementKind> {
        if self.is("@") {
            let at = self.at;
            self.annotations()?;
            if !self.is("{") && !self.is("for") && !self.is("if") && !self.is("switch") {
                self.at = at;
                return self.declaration_statement();
            }
        }
        let token = self.peek();
        match &token.kind {
            Kind::Symbol("{") => Ok(StatementKind::Block(self.block()?)),
            Kind::Symbol(";") => {
                self.next();
                Ok(StatementKind::Empty)
            }
            Kind::Word(word) => match &**word {
                "if" => self.if_statement(),
                "switch" => self.switch_statement(),
                "for" => self.for_statement(),
                "return" => self.return_statement(),
                "exit" => self.simple(StatementKind::Exit),
                "break" => self.simple(StatementKind::Break),
                "continue" => self.simple(StatementKind::Continue),
                "const" => self.declaration_statement(),
                _ if self.starts_declaration() => self.declaration_statement(),
                _ => self.assignment_or_call(true),
            },
            _ if self.starts_declaration() => self.declaration_statement(),
            _ => self.assignment_or_call(true),
        }
    }

    fn simple(&mut self, kind: StatementKind) -> Parsed<StatementKind> {
        self.next();
        self.expect(";")?;
        Ok(kind)
    }

    /// A type that is followed by a name, or by arguments and a name.
    fn starts_declaration(&mut self) -> bool {
        if !self.at_type() {
            return false;
        }
        let at = self.at;
        let follows = self.attempt(|parser| {
            parser.type_ref()?;
            if !parser.is("(") {
                return Ok(!parser.is("."));
            }
            parser.next();
            parser.arguments_after_open()?;
            Ok(matches!(parser.peek().kind, Kind::Word(_)))
        });
        self.at = at;
        // A type that does not parse is reported as a declaration.
        follows.unwrap_or(true)
    }

    fn declaration_statement(&mut self) -> Parsed<StatementKind> {
        let declaration = self.local_declaration()?;
        match declaration.kind {
            DeclarationKind::Variable { .. } | DeclarationKind::Constant { .. } | DeclarationKind::Instance { .. } => {
                Ok(StatementKind::Declaration(Box::new(declaration)))
            }
            _ => self.fail_at(declaration.span, "only variables, constants and instances are declared here".to_owned()),
        }
    }

    /// `target = value`, `target += value` or a call, with or without `;`.
    fn assignment_or_call(&mut self, semicolon: bool) -> Parsed<StatementKind> {
        let target = self.expression()?;
        let mut operator = None;
        let mut assigns = self.eat("=");
        if !assigns && self.joined(">=") {
            self.next();
            self.next();
            (assigns, operator) = (true, Some(BinaryOp::ShiftRight));
        }
        if !assigns && let Some((symbol, found)) = COMPOUND.iter().find(|(symbol, _)| self.is(symbol)) {
            self.expect(symbol)?;
            (assigns, operator) = (true, Some(*found));
        }
        let kind = if assigns {
            StatementKind::Assign { target, operator, value: self.expression()? }
        } else if matches!(target.kind, ExprKind::Call { .. }) {
            StatementKind::Call(target)
        } else {
            return self.fail("`=` or `(` after this expression");
        };
        if semicolon {
            self.expect(";")?;
        }
        Ok(kind)
    }

    fn if_statement(&mut self) -> Parsed<StatementKind> {
        self.next();
        self.expect("(")?;
        let condition = self.expression()?;
        self.expect(")")?;
        let then = Box::new(self.scoped(|parser| parser.statement())?);
        let otherwise = if self.eat("else") { Some(Box::new(self.scoped(|parser| parser.statement())?)) } else { None };
        Ok(StatementKind::If { condition, then, otherwise })
    }

    fn switch_statement(&mut self) -> Parsed<StatementKind> {
        self.next();
        self.expect("(")?;
        let value = self.expression()?;
        self.expect(")")?;
        self.expect("{")?;
        let mut cases = Vec::new();
        while !self.eat("}") {
            let label = self.set_element()?;
            self.expect(":")?;
            let body = if self.is("{") { Some(self.statement()?) } else { None };
            cases.push(SwitchCase { label, body });
        }
        Ok(StatementKind::Switch { value, cases })
    }

    fn return_statement(&mut self) -> Parsed<StatementKind> {
        self.next();
        if self.eat(";") {
            return Ok(StatementKind::Return(None));
        }
        let value = self.expression()?;
        self.expect(";")?;
        Ok(StatementKind::Return(Some(value)))
    }

    fn for_statement(&mut self) -> Parsed<StatementKind> {
        self.scopes.push(HashMap::new());
        let result = self.for_in_scope();
        self.scopes.pop();
        result
    }

    fn for_in_scope(&mut self) -> Parsed<StatementKind> {
        self.next();
        self.expect("(")?;
        if let Some(header) = self.attempt(|parser| parser.for_in_header()) {
            if let Some((_, name)) = &header.0 {
                self.declare(&name.name, NameKind::Other);
            }
            let first = self.expression()?;
            let over = if self.eat("..") {
                let last = self.expression()?;
                let span = first.span.to(last.span);
                Expr { kind: ExprKind::Range(Box::new(first), Box::new(last)), span }
            } else {
                first
            };
            self.expect(")")?;
            let body = Box::new(self.statement()?);
            return Ok(StatementKind::ForIn { declaration: header.0, target: header.1, over, body });
        }
        let start = self.for_clause(";")?;
        let condition = self.expression()?;
        self.expect(";")?;
        let update = self.for_clause(")")?;
        let body = Box::new(self.statement()?);
        Ok(StatementKind::For { start, condition, update, body })
    }

    fn for_in_header(&mut self) -> Parsed<ForInHeader> {
        self.annotations()?;
        if self.at_type() {
            let ty = self.type_ref()?;
            let name = self.ident()?;
            self.expect("in")?;
            return Ok((Some((ty, name)), None));
        }
        let target = self.expression()?;
        self.expect("in")?;
        Ok((None, Some(target)))
    }

    fn for_clause(&mut self, close: &str) -> Parsed<Vec<Statement>> {
        self.list(close, |parser| {
            let start = parser.peek().span;
            let annotated = parser.is("@");
            let kind = if annotated || parser.starts_declaration() {
                let annotations = parser.annotations()?;
                StatementKind::Declaration(Box::new(parser.variable(annotations, start)?))
            } else {
                parser.assignment_or_call(false)?
            };
            Ok(Statement { kind, span: start.to(parser.previous_span()) })
        })
    }
}

/// The variable of `for (T x in …)`, or the target of `for (x in …)`.
type ForInHeader = (Option<(crate::p4::ast::TypeRef, crate::p4::ast::Ident)>, Option<Expr>);
