//! Declarations of types, constants, externs, functions and instances.

use super::{NameKind, Parsed, Parser};
use crate::p4::ast::{Annotation, Declaration, DeclarationKind, FieldDecl, Ident, Prototype, StructKind, TypeRef};
use crate::p4::source::Span;
use crate::p4::token::Kind;

impl Parser<'_> {
    /// A declaration at the top level.
    pub(super) fn declaration(&mut self) -> Parsed<Declaration> {
        let start = self.peek().span;
        let annotations = self.annotations()?;
        let token = self.peek();
        let Kind::Word(word) = &token.kind else {
            if self.at_type() {
                return self.typed_declaration(annotations, start);
            }
            return self.fail("a declaration");
        };
        match &**word {
            "const" | "action" | "table" | "value_set" => self.keyword_declaration(annotations, start),
            "typedef" | "type" if self.peek_is_typedef() => self.typedef(annotations, start),
            "struct" => self.struct_like(StructKind::Struct, annotations, start),
            "header" => self.struct_like(StructKind::Header, annotations, start),
            "header_union" => self.struct_like(StructKind::Union, annotations, start),
            "enum" => self.enum_declaration(annotations, start),
            "error" if self.peek_at(1).is("{") => self.names(annotations, start, DeclarationKind::Errors),
            "match_kind" if self.peek_at(1).is("{") => self.names(annotations, start, DeclarationKind::MatchKinds),
            "extern" => self.extern_declaration(annotations, start),
            "parser" => self.parser_declaration(annotations, start),
            "control" => self.control_declaration(annotations, start),
            "package" => self.package(annotations, start),
            "abstract" => {
                self.next();
                self.typed_declaration(annotations, start)
            }
            _ if self.at_type() => self.typed_declaration(annotations, start),
            // A generic function may return its type parameter, which is declared after it.
            _ if matches!(self.peek_at(1).kind, Kind::Word(_)) && self.peek_at(2).is("<") => {
                self.function(annotations, start)
            }
            _ => {
                let message = format!("expected a declaration, found `{word}`, which is no type");
                self.fail_at(token.span, message)
            }
        }
    }

    fn peek_is_typedef(&self) -> bool {
        self.is("typedef") || !self.peek_at(1).is("(")
    }

    /// A declaration inside a parser, control or block.
    pub(super) fn local_declaration(&mut self) -> Parsed<Declaration> {
        let start = self.peek().span;
        let annotations = self.annotations()?;
        if ["const", "action", "table", "value_set"].iter().any(|word| self.is(word)) {
            return self.keyword_declaration(annotations, start);
        }
        self.typed_declaration(annotations, start)
    }

    fn keyword_declaration(&mut self, annotations: Vec<Annotation>, start: Span) -> Parsed<Declaration> {
        match () {
            () if self.is("const") => self.constant(annotations, start),
            () if self.is("action") => self.action(annotations, start),
            () if self.is("table") => self.table(annotations, start),
            () => self.value_set(annotations, start),
        }
    }

    pub(super) fn finish(
        &self,
        annotations: Vec<Annotation>,
        name: Ident,
        kind: DeclarationKind,
        start: Span,
    ) -> Declaration {
        Declaration { annotations, name, kind, span: start.to(self.previous_span()) }
    }

    fn constant(&mut self, annotations: Vec<Annotation>, start: Span) -> Parsed<Declaration> {
        self.next();
        let ty = self.type_ref()?;
        let name = self.ident()?;
        self.expect("=")?;
        let value = self.expression()?;
        self.expect(";")?;
        self.declare(&name.name, NameKind::Other);
        Ok(self.finish(annotations, name, DeclarationKind::Constant { ty, value }, start))
    }

    fn typedef(&mut self, annotations: Vec<Annotation>, start: Span) -> Parsed<Declaration> {
        let is_new = self.next().is("type");
        let ty = self.type_ref()?;
        let name = self.ident()?;
        self.expect(";")?;
        self.declare(&name.name, NameKind::Type);
        Ok(self.finish(annotations, name, DeclarationKind::Typedef { ty, is_new }, start))
    }

    fn struct_like(&mut self, kind: StructKind, annotations: Vec<Annotation>, start: Span) -> Parsed<Declaration> {
        self.next();
        let name = self.ident()?;
        self.declare(&name.name, NameKind::Type);
        let (type_parameters, fields) = self.scoped(|parser| {
            let type_parameters = parser.type_parameters()?;
            parser.expect("{")?;
            let mut fields = Vec::new();
            while !parser.eat("}") {
                let annotations = parser.annotations()?;
                let ty = parser.type_ref()?;
                let name = parser.ident()?;
                parser.expect(";")?;
                fields.push(FieldDecl { annotations, ty, name });
            }
            Ok((type_parameters, fields))
        })?;
        Ok(self.finish(annotations, name, DeclarationKind::Struct { kind, type_parameters, fields }, start))
    }

    fn enum_declaration(&mut self, annotations: Vec<Annotation>, start: Span) -> Parsed<Declaration> {
        self.next();
        let underlying = if self.at_type() && !self.peek_at(1).is("{") { Some(self.type_ref()?) } else { None };
        let name = self.ident()?;
        self.expect("{")?;
        let members = self.list("}", |parser| {
            parser.annotations()?;
            let name = parser.ident()?;
            let value = if parser.eat("=") { Some(parser.expression()?) } else { None };
            Ok((name, value))
        })?;
        if members.is_empty() {
            return self.fail_at(name.span, format!("enum `{}` has no members", name.name));
        }
        self.declare(&name.name, NameKind::Type);
        Ok(self.finish(annotations, name, DeclarationKind::Enum { underlying, members }, start))
    }

    fn names(
        &mut self,
        annotations: Vec<Annotation>,
        start: Span,
        make: fn(Vec<Ident>) -> DeclarationKind,
    ) -> Parsed<Declaration> {
        let keyword = self.next().span;
        self.expect("{")?;
        let names = self.list("}", |parser| parser.ident())?;
        let name = Ident { name: "".into(), span: keyword };
        Ok(self.finish(annotations, name, make(names), start))
    }

    fn extern_declaration(&mut self, annotations: Vec<Annotation>, start: Span) -> Parsed<Declaration> {
        self.next();
        let is_object = matches!(self.peek().kind, Kind::Word(_))
            && (self.peek_at(1).is("{") || self.peek_at(1).is("<") && self.extern_object_follows());
        if !is_object {
            let prototype = self.scoped(|parser| parser.prototype())?;
            self.expect(";")?;
            let name = prototype.name.clone();
            self.declare(&name.name, NameKind::Other);
            return Ok(self.finish(annotations, name, DeclarationKind::ExternFunction(prototype), start));
        }
        let name = self.ident()?;
        self.declare(&name.name, NameKind::Type);
        let kind = self.scoped(|parser| {
            let type_parameters = parser.type_parameters()?;
            parser.expect("{")?;
            let mut methods = Vec::new();
            while !parser.eat("}") {
                parser.annotations()?;
                methods.push(parser.method(&name)?);
            }
            Ok(DeclarationKind::Extern { type_parameters, methods })
        })?;
        Ok(self.finish(annotations, name, kind, start))
    }

    /// After `name`: `<A, B> {`.
    fn extern_object_follows(&self) -> bool {
        let after = (2..).take_while(|offset| !matches!(self.peek_at(*offset).kind, Kind::End));
        let close = after.into_iter().find(|offset| self.peek_at(*offset).is(">"));
        close.is_some_and(|close| self.peek_at(close + 1).is("{"))
    }

    fn method(&mut self, owner: &Ident) -> Parsed<Prototype> {
        self.scoped(|parser| {
            let is_constructor = parser.is(&owner.name) && parser.peek_at(1).is("(");
            let mut prototype = if is_constructor {
                let name = parser.ident()?;
                let parameters = parser.parameters()?;
                Prototype { result: None, name, type_parameters: Vec::new(), parameters, is_abstract: false }
            } else {
                let is_abstract = parser.eat("abstract");
                Prototype { is_abstract, ..parser.prototype()? }
            };
            prototype.is_abstract |= parser.eat("abstract");
            parser.expect(";")?;
            Ok(prototype)
        })
    }

    /// `type name<A>(parameters)`. The result may be a type parameter, which stands after it.
    pub(super) fn prototype(&mut self) -> Parsed<Prototype> {
        if !self.at_type() && matches!(self.peek_at(1).kind, Kind::Word(_)) && self.peek_at(2).is("<") {
            let result = self.ident()?;
            self.declare(&result.name, NameKind::Type);
            let kind = crate::p4::ast::TypeKind::Named { name: result.clone(), global: false, arguments: Vec::new() };
            return self.prototype_after(TypeRef { kind, span: result.span });
        }
        let result = self.type_ref()?;
        self.prototype_after(result)
    }

    fn prototype_after(&mut self, result: TypeRef) -> Parsed<Prototype> {
        let name = self.ident()?;
        let type_parameters = self.type_parameters()?;
        let parameters = self.parameters()?;
        Ok(Prototype { result: Some(result), name, type_parameters, parameters, is_abstract: false })
    }

    fn function(&mut self, annotations: Vec<Annotation>, start: Span) -> Parsed<Declaration> {
        let (prototype, body) = self.scoped(|parser| {
            let prototype = parser.prototype()?;
            let body = parser.block_in_scope()?;
            Ok((prototype, body))
        })?;
        let name = prototype.name.clone();
        self.declare(&name.name, NameKind::Other);
        Ok(self.finish(annotations, name, DeclarationKind::Function(prototype, body), start))
    }

    /// A declaration that begins with a type: a function, an instance or a variable.
    fn typed_declaration(&mut self, annotations: Vec<Annotation>, start: Span) -> Parsed<Declaration> {
        let at = self.at;
        let ty = self.type_ref()?;
        if self.eat("(") {
            let arguments = self.arguments_after_open()?;
            let name = self.ident()?;
            let mut methods = Vec::new();
            if self.eat("=") {
                self.expect("{")?;
                while !self.eat("}") {
                    let start = self.peek().span;
                    let annotations = self.annotations()?;
                    self.eat("abstract");
                    methods.push(self.typed_declaration(annotations, start)?);
                }
            }
            self.expect(";")?;
            self.declare(&name.name, NameKind::Other);
            return Ok(self.finish(annotations, name, DeclarationKind::Instance { ty, arguments, methods }, start));
        }
        let is_function =
            matches!(self.peek().kind, Kind::Word(_)) && (self.peek_at(1).is("(") || self.peek_at(1).is("<"));
        self.at = at;
        if is_function { self.function(annotations, start) } else { self.variable_statement(annotations, start) }
    }

    fn variable_statement(&mut self, annotations: Vec<Annotation>, start: Span) -> Parsed<Declaration> {
        let mut declaration = self.variable(annotations, start)?;
        declaration.span = declaration.span.to(self.expect(";")?);
        Ok(declaration)
    }

    /// `T name = value` without `;`.
    pub(super) fn variable(&mut self, annotations: Vec<Annotation>, start: Span) -> Parsed<Declaration> {
        let ty = self.type_ref()?;
        let name = self.ident()?;
        let value = if self.eat("=") { Some(self.expression()?) } else { None };
        self.declare(&name.name, NameKind::Other);
        Ok(self.finish(annotations, name, DeclarationKind::Variable { ty, value }, start))
    }
}
