//! The parser: the grammar of P4-16 1.2.5 by recursive descent.
//!
//! Whether a name is a type decides between a declaration and a statement, a cast and brackets, so the parser keeps
//! scopes of declared names.

mod blocks;
mod declarations;
mod expressions;
mod statements;
mod tables;
mod types;

use std::collections::HashMap;

use super::ast::{Annotation, Declaration, Ident};
use super::diagnostics::Reporter;
use super::source::{Name, Span};
use super::token::{Kind, Token, is_reserved};

/// Expressions and statements may nest this deep.
const DEPTH_MAX: usize = 150;

/// Parsing of one construct failed; the error is reported.
pub struct Failed;

type Parsed<T> = Result<T, Failed>;

/// The kinds of names, as far as the grammar cares.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NameKind {
    Type,
    Other,
}

/// Parses a whole program. What has an error is left out of the result.
pub fn program(tokens: &[Token], reporter: &mut Reporter) -> Vec<Declaration> {
    let mut parser = Parser { tokens, at: 0, scopes: vec![HashMap::new()], reporter, depth: 0, quiet: 0 };
    let mut found = Vec::new();
    while !matches!(parser.peek().kind, Kind::End) {
        if parser.eat(";") {
            continue;
        }
        let before = parser.at;
        match parser.declaration() {
            Ok(declaration) => found.push(declaration),
            Err(Failed) => parser.recover_at_top(before),
        }
    }
    found
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    scopes: Vec<HashMap<Name, NameKind>>,
    reporter: &'a mut Reporter,
    depth: usize,
    /// Errors are not reported while the parser tries an alternative.
    quiet: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> &'a Token {
        self.peek_at(0)
    }

    fn peek_at(&self, offset: usize) -> &'a Token {
        &self.tokens[(self.at + offset).min(self.tokens.len() - 1)]
    }

    fn next(&mut self) -> &'a Token {
        let token = self.peek();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn previous_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    fn is(&self, text: &str) -> bool {
        self.peek().is(text)
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.is(text);
        if found {
            self.next();
        }
        found
    }

    fn expect(&mut self, text: &str) -> Parsed<Span> {
        let token = self.peek();
        if token.is(text) {
            self.next();
            return Ok(token.span);
        }
        let message = format!("expected `{text}`, found {}", token.describe());
        // A missing `;` is shown where it should stand, not at the next line.
        let span = if text == ";" && self.at > 0 { self.previous_span() } else { token.span };
        self.fail_at(span, message)
    }

    fn fail<T>(&mut self, expected: &str) -> Parsed<T> {
        let token = self.peek();
        let message = format!("expected {expected}, found {}", token.describe());
        self.fail_at(token.span, message)
    }

    fn fail_at<T>(&mut self, span: Span, message: String) -> Parsed<T> {
        if self.quiet == 0 {
            self.reporter.error(span, message);
        }
        Err(Failed)
    }

    /// Any name, also one that is a keyword only in some places.
    fn ident(&mut self) -> Parsed<Ident> {
        let token = self.peek();
        match &token.kind {
            Kind::Word(word) if !is_reserved(word) => {
                self.next();
                Ok(Ident { name: word.clone(), span: token.span })
            }
            Kind::Word(word) => self.fail_at(token.span, format!("expected a name, found the keyword `{word}`")),
            _ => self.fail("a name"),
        }
    }

    /// A member after a dot, where any word can stand that some method has as its name.
    fn member(&mut self) -> Parsed<Ident> {
        self.ident()
    }

    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEPTH_MAX {
            let span = self.peek().span;
            return self.fail_at(span, format!("this nests more than {DEPTH_MAX} deep"));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// Tries an alternative; where it fails, nothing was read and nothing reported.
    fn attempt<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Option<T> {
        let (at, depth) = (self.at, self.depth);
        self.quiet += 1;
        let result = parse(self);
        self.quiet -= 1;
        if result.is_err() {
            (self.at, self.depth) = (at, depth);
        }
        result.ok()
    }

    fn scoped<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.scopes.push(HashMap::new());
        let result = parse(self);
        self.scopes.pop();
        result
    }

    fn declare(&mut self, name: &Name, kind: NameKind) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.clone(), kind);
        }
    }

    fn declare_types(&mut self, names: &[Ident]) {
        for name in names {
            self.declare(&name.name, NameKind::Type);
        }
    }

    fn is_type_name(&self, name: &str) -> bool {
        self.scopes.iter().rev().find_map(|scope| scope.get(name)) == Some(&NameKind::Type)
    }

    fn is_global_type_name(&self, name: &str) -> bool {
        self.scopes[0].get(name) == Some(&NameKind::Type)
    }

    /// `item (, item)*` up to `close`, which is read; a trailing comma is allowed.
    fn list<T>(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut found = Vec::new();
        while !self.is(close) {
            found.push(item(self)?);
            if !self.eat(",") {
                break;
            }
        }
        self.expect(close)?;
        Ok(found)
    }

    fn annotations(&mut self) -> Parsed<Vec<Annotation>> {
        let mut found = Vec::new();
        while self.eat("@") {
            let Kind::Word(name) = &self.next().kind else {
                return self.fail("the name of an annotation");
            };
            let (mut values, from) = (Vec::new(), self.at);
            if name.as_ref() == "pragma" {
                let start = self.at;
                while self.at == start || !self.peek().starts_line {
                    if matches!(self.next().kind, Kind::End) {
                        break;
                    }
                }
            } else if self.is("(") {
                self.annotation_body("(", ")", &mut values)?;
            } else if self.is("[") {
                self.annotation_body("[", "]", &mut values)?;
            }
            let body: String = self.tokens[from..self.at].iter().map(Token::written).collect();
            let text = Name::from(format!("@{name}{body}"));
            found.push(Annotation { name: name.clone(), values, text });
        }
        Ok(found)
    }

    fn annotation_body(&mut self, open: &str, close: &str, values: &mut Vec<Name>) -> Parsed<()> {
        let start = self.expect(open)?;
        let mut depth = 1;
        while depth > 0 {
            let token = self.next();
            match &token.kind {
                Kind::End => return self.fail_at(start, format!("this `{open}` is not closed")),
                Kind::Text(text) => values.push(text.clone()),
                Kind::Number(number) => values.push(Name::from(number.value.to_string())),
                Kind::Word(word) => values.push(word.clone()),
                Kind::Symbol(symbol) if *symbol == open => depth += 1,
                Kind::Symbol(symbol) if *symbol == close => depth -= 1,
                Kind::Symbol(_) => {}
            }
        }
        Ok(())
    }

    /// Skips to what looks like the next declaration, at least one token.
    fn recover_at_top(&mut self, before: usize) {
        self.scopes.truncate(1);
        self.depth = 0;
        // Brackets opened since the declaration began have to be closed before the next one can begin.
        let mut open = 0_i32;
        for token in &self.tokens[before..self.at] {
            open += i32::from(token.is("{")) - i32::from(token.is("}"));
        }
        self.at = self.at.max((before + 1).min(self.tokens.len() - 1));
        while !matches!(self.peek().kind, Kind::End) {
            let token = self.next();
            open += i32::from(token.is("{")) - i32::from(token.is("}"));
            if open <= 0 && (token.is(";") || token.is("}")) {
                return;
            }
        }
    }
}
