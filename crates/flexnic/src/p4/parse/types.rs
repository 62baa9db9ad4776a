//! Types and parameters.

use super::{NameKind, Parsed, Parser};
use crate::p4::ast::{Direction, Ident, Parameter, TypeKind, TypeRef};
use crate::p4::token::Kind;

/// Keywords that begin a type.
const TYPE_KEYWORDS: [&str; 10] =
    ["void", "bool", "error", "match_kind", "string", "int", "bit", "varbit", "tuple", "list"];

impl Parser<'_> {
    /// The next tokens begin a type.
    pub(super) fn at_type(&self) -> bool {
        let token = self.peek();
        match &token.kind {
            Kind::Word(word) if &**word == "list" && !self.peek_at(1).is("<") => self.is_type_name(word),
            Kind::Word(word) => TYPE_KEYWORDS.contains(&&**word) || self.is_type_name(word),
            Kind::Symbol(".") => match &self.peek_at(1).kind {
                Kind::Word(word) => self.is_global_type_name(word),
                _ => false,
            },
            _ => false,
        }
    }

    pub(super) fn type_ref(&mut self) -> Parsed<TypeRef> {
        self.nested(|parser| {
            let mut ty = parser.type_without_stack()?;
            while parser.is("[") {
                parser.next();
                let size = parser.expression()?;
                let end = parser.expect("]")?;
                let span = ty.span.to(end);
                ty = TypeRef { kind: TypeKind::Stack(Box::new(ty), Box::new(size)), span };
            }
            Ok(ty)
        })
    }

    /// A type before which no index can follow: `T` of the constructor call `T(...)`.
    pub(super) fn type_without_stack(&mut self) -> Parsed<TypeRef> {
        let start = self.peek().span;
        let Kind::Word(word) = &self.peek().kind else {
            if self.eat(".") {
                return self.named_type(true);
            }
            return self.fail("a type");
        };
        let kind = match &**word {
            "void" => TypeKind::Void,
            "bool" => TypeKind::Bool,
            "error" => TypeKind::Error,
            "match_kind" => TypeKind::MatchKind,
            "string" => TypeKind::Text,
            "_" => TypeKind::Any,
            "int" | "bit" | "varbit" => return self.sized_type(),
            "tuple" => {
                self.next();
                self.expect("<")?;
                TypeKind::Tuple(self.type_arguments_after_open()?)
            }
            "list" if self.peek_at(1).is("<") => {
                self.next();
                self.next();
                let item = self.type_ref()?;
                self.expect(">")?;
                TypeKind::List(Box::new(item))
            }
            _ => return self.named_type(false),
        };
        if !matches!(kind, TypeKind::Tuple(_) | TypeKind::List(_)) {
            self.next();
        }
        Ok(TypeRef { kind, span: start.to(self.previous_span()) })
    }

    fn sized_type(&mut self) -> Parsed<TypeRef> {
        let keyword = self.next();
        let mut width = None;
        if self.eat("<") {
            width = Some(Box::new(self.width()?));
            self.expect(">")?;
        }
        let kind = match width {
            width if keyword.is("bit") => TypeKind::Bit(width),
            None if keyword.is("int") => TypeKind::Integer,
            Some(width) if keyword.is("int") => TypeKind::Int(width),
            Some(width) => TypeKind::Varbit(width),
            None => return self.fail("`<` and the largest width of a varbit"),
        };
        Ok(TypeRef { kind, span: keyword.span.to(self.previous_span()) })
    }

    /// A width is a number, a name or an expression in brackets, so that `>` ends it.
    fn width(&mut self) -> Parsed<crate::p4::ast::Expr> {
        self.primary()
    }

    fn named_type(&mut self, global: bool) -> Parsed<TypeRef> {
        let name = self.ident()?;
        let known = if global { self.is_global_type_name(&name.name) } else { self.is_type_name(&name.name) };
        if !known {
            let message = format!("there is no type `{}` here", name.name);
            return self.fail_at(name.span, message);
        }
        let mut arguments = Vec::new();
        if self.eat("<") {
            arguments = self.type_arguments_after_open()?;
        }
        let span = name.span.to(self.previous_span());
        Ok(TypeRef { kind: TypeKind::Named { name, global, arguments }, span })
    }

    pub(super) fn type_arguments_after_open(&mut self) -> Parsed<Vec<TypeRef>> {
        self.list(">", |parser| parser.type_ref())
    }

    /// `<A, B>` of a declaration; the names are declared in the present scope.
    pub(super) fn type_parameters(&mut self) -> Parsed<Vec<Ident>> {
        if !self.eat("<") {
            return Ok(Vec::new());
        }
        let names = self.list(">", |parser| parser.ident())?;
        self.declare_types(&names);
        Ok(names)
    }

    /// `(parameters)`; the names are declared in the present scope.
    pub(super) fn parameters(&mut self) -> Parsed<Vec<Parameter>> {
        self.expect("(")?;
        let found = self.list(")", |parser| parser.parameter())?;
        for parameter in &found {
            self.declare(&parameter.name.name, NameKind::Other);
        }
        Ok(found)
    }

    fn parameter(&mut self) -> Parsed<Parameter> {
        let annotations = self.annotations()?;
        let direction = if self.eat("in") {
            Direction::In
        } else if self.eat("out") {
            Direction::Out
        } else if self.eat("inout") {
            Direction::InOut
        } else {
            Direction::None
        };
        let ty = self.type_ref()?;
        let name = self.ident()?;
        let default = if self.eat("=") { Some(self.expression()?) } else { None };
        Ok(Parameter { annotations, direction, ty, name, default })
    }
}
