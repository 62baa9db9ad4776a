//! Parsers, controls, packages, actions and value sets.

use super::{NameKind, Parsed, Parser};
use crate::p4::ast::{Annotation, ControlDecl, Declaration, DeclarationKind, Parameter, ParserDecl, State, Transition};
use crate::p4::source::Span;
use crate::p4::token::Kind;

impl Parser<'_> {
    pub(super) fn package(&mut self, annotations: Vec<Annotation>, start: Span) -> Parsed<Declaration> {
        self.next();
        let name = self.ident()?;
        let kind = self.scoped(|parser| {
            let type_parameters = parser.type_parameters()?;
            let parameters = parser.parameters()?;
            Ok(DeclarationKind::Package { type_parameters, parameters })
        })?;
        self.expect(";")?;
        self.declare(&name.name, NameKind::Type);
        Ok(self.finish(annotations, name, kind, start))
    }

    pub(super) fn action(&mut self, annotations: Vec<Annotation>, start: Span) -> Parsed<Declaration> {
        self.next();
        let name = self.ident()?;
        let kind = self.scoped(|parser| {
            let parameters = parser.parameters()?;
            let body = parser.block_in_scope()?;
            Ok(DeclarationKind::Action { parameters, body })
        })?;
        self.declare(&name.name, NameKind::Other);
        Ok(self.finish(annotations, name, kind, start))
    }

    pub(super) fn value_set(&mut self, annotations: Vec<Annotation>, start: Span) -> Parsed<Declaration> {
        self.next();
        self.expect("<")?;
        let ty = self.type_ref()?;
        self.expect(">")?;
        self.expect("(")?;
        let size = self.expression()?;
        self.expect(")")?;
        let name = self.ident()?;
        self.expect(";")?;
        self.declare(&name.name, NameKind::Other);
        Ok(self.finish(annotations, name, DeclarationKind::ValueSet { ty, size }, start))
    }

    fn constructor_parameters(&mut self) -> Parsed<Vec<Parameter>> {
        if self.is("(") { self.parameters() } else { Ok(Vec::new()) }
    }

    pub(super) fn parser_declaration(&mut self, annotations: Vec<Annotation>, start: Span) -> Parsed<Declaration> {
        self.next();
        let name = self.ident()?;
        // The name is declared first, so that a use inside is found and refused as recursion.
        self.declare(&name.name, NameKind::Type);
        let decl = self.scoped(|parser| {
            let type_parameters = parser.type_parameters()?;
            let parameters = parser.parameters()?;
            let (mut constructor, mut locals, mut states) = (Vec::new(), Vec::new(), None);
            if !parser.eat(";") {
                constructor = parser.constructor_parameters()?;
                parser.expect("{")?;
                let mut found = Vec::new();
                while !parser.eat("}") {
                    if parser.at_state() {
                        found.push(parser.state()?);
                    } else if found.is_empty() {
                        locals.push(parser.local_declaration()?);
                    } else {
                        return parser.fail("a parser state");
                    }
                }
                states = Some(found);
            }
            Ok(ParserDecl { type_parameters, parameters, constructor, locals, states })
        })?;
        Ok(self.finish(annotations, name, DeclarationKind::Parser(Box::new(decl)), start))
    }

    /// `state name {`, after annotations.
    fn at_state(&mut self) -> bool {
        let at = self.at;
        let found = self.attempt(|parser| {
            parser.annotations()?;
            Ok(parser.is("state") && matches!(parser.peek_at(1).kind, Kind::Word(_)) && parser.peek_at(2).is("{"))
        });
        self.at = at;
        found == Some(true)
    }

    fn state(&mut self) -> Parsed<State> {
        self.annotations()?;
        self.next();
        let name = self.ident()?;
        self.scoped(|parser| {
            parser.expect("{")?;
            let mut body = Vec::new();
            while !parser.is("}") && !parser.is("transition") {
                body.push(parser.statement()?);
            }
            let transition = if parser.is("transition") { parser.transition()? } else { Transition::None };
            parser.expect("}")?;
            Ok(State { name, body, transition })
        })
    }

    fn transition(&mut self) -> Parsed<Transition> {
        self.next();
        if !self.is("select") {
            let target = self.ident()?;
            self.expect(";")?;
            return Ok(Transition::Direct(target));
        }
        let start = self.next().span;
        self.expect("(")?;
        let keys = self.list(")", |parser| parser.expression())?;
        self.expect("{")?;
        let mut cases = Vec::new();
        while !self.eat("}") {
            let set = self.set()?;
            self.expect(":")?;
            let target = self.ident()?;
            self.expect(";")?;
            cases.push((set, target));
        }
        let span = start.to(self.previous_span());
        Ok(Transition::Select { keys, cases, span })
    }

    pub(super) fn control_declaration(&mut self, annotations: Vec<Annotation>, start: Span) -> Parsed<Declaration> {
        self.next();
        let name = self.ident()?;
        self.declare(&name.name, NameKind::Type);
        let decl = self.scoped(|parser| {
            let type_parameters = parser.type_parameters()?;
            let parameters = parser.parameters()?;
            let (mut constructor, mut locals, mut apply) = (Vec::new(), Vec::new(), None);
            if !parser.eat(";") {
                constructor = parser.constructor_parameters()?;
                parser.expect("{")?;
                while !parser.at_apply() {
                    locals.push(parser.local_declaration()?);
                }
                parser.annotations()?;
                parser.expect("apply")?;
                apply = Some(parser.block()?);
                parser.expect("}")?;
            }
            Ok(ControlDecl { type_parameters, parameters, constructor, locals, apply })
        })?;
        Ok(self.finish(annotations, name, DeclarationKind::Control(Box::new(decl)), start))
    }

    fn at_apply(&mut self) -> bool {
        let at = self.at;
        let found = self.attempt(|parser| {
            parser.annotations()?;
            Ok(parser.is("apply") && (parser.peek_at(1).is("{") || parser.peek_at(1).is("@")))
        });
        self.at = at;
        found == Some(true) || matches!(self.peek().kind, Kind::End) || self.is("}")
    }
}
