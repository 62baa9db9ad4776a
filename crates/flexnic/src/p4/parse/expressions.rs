//! Expressions.

use super::{Failed, Parsed, Parser};
use crate::p4::ast::{Argument, BinaryOp, Expr, ExprKind, UnaryOp};
use crate::p4::token::Kind;

/// Operators of one chain: a longer one would exhaust the stack of later passes.
const CHAIN_MAX: usize = 400;

/// Binary operators by precedence, weakest first.
const LEVELS: [&[(&str, BinaryOp)]; 9] = [
    &[("||", BinaryOp::OrElse)],
    &[("&&", BinaryOp::AndAlso)],
    &[("==", BinaryOp::Equal), ("!=", BinaryOp::NotEqual)],
    &[("<=", BinaryOp::LessEqual), (">=", BinaryOp::GreaterEqual), ("<", BinaryOp::Less), (">", BinaryOp::Greater)],
    &[("|", BinaryOp::Or)],
    &[("^", BinaryOp::Xor)],
    &[("&", BinaryOp::And)],
    &[("<<", BinaryOp::ShiftLeft), (">>", BinaryOp::ShiftRight)],
    &[
        ("+", BinaryOp::Add),
        ("-", BinaryOp::Sub),
        ("|+|", BinaryOp::AddSat),
        ("|-|", BinaryOp::SubSat),
        ("++", BinaryOp::Concat),
    ],
];
const PRODUCTS: &[(&str, BinaryOp)] = &[("*", BinaryOp::Mul), ("/", BinaryOp::Div), ("%", BinaryOp::Mod)];

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parsed<Expr> {
        self.nested(|parser| {
            let condition = parser.binary(0)?;
            if !parser.eat("?") {
                return Ok(condition);
            }
            let yes = parser.expression()?;
            parser.expect(":")?;
            let no = parser.expression()?;
            let span = condition.span.to(no.span);
            Ok(Expr { kind: ExprKind::Conditional(Box::new(condition), Box::new(yes), Box::new(no)), span })
        })
    }

    /// `>` directly followed by `symbol`: how `>>` and `>>=` arrive.
    pub(super) fn joined(&self, symbol: &str) -> bool {
        let (first, second) = (self.peek(), self.peek_at(1));
        first.is(">") && second.is(symbol) && first.span.high == second.span.low
    }

    fn operator(&mut self, level: usize) -> Option<BinaryOp> {
        if self.joined(">") || self.joined(">=") {
            let is_shift = self.joined(">") && level == 7;
            if is_shift {
                self.next();
                self.next();
            }
            return is_shift.then_some(BinaryOp::ShiftRight);
        }
        let table = LEVELS.get(level).copied().unwrap_or(PRODUCTS);
        let found = table.iter().find(|(symbol, _)| self.is(symbol))?;
        self.next();
        Some(found.1)
    }

    fn binary(&mut self, level: usize) -> Parsed<Expr> {
        if level > LEVELS.len() {
            return self.unary();
        }
        let mut left = self.binary(level + 1)?;
        let mut length = 0;
        while let Some(operator) = self.operator(level) {
            let right = self.binary(level + 1)?;
            let span = left.span.to(right.span);
            left = Expr { kind: ExprKind::Binary(operator, Box::new(left), Box::new(right)), span };
            length += 1;
            if length > CHAIN_MAX {
                return self.fail_at(span, format!("more than {CHAIN_MAX} operators in one expression"));
            }
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let start = self.peek().span;
        let operator = match &self.peek().kind {
            Kind::Symbol("!") => UnaryOp::Not,
            Kind::Symbol("~") => UnaryOp::Complement,
            Kind::Symbol("-") => UnaryOp::Negate,
            Kind::Symbol("+") => UnaryOp::Plus,
            _ => return self.postfix(),
        };
        self.next();
        let operand = self.nested(|parser| parser.unary())?;
        let span = start.to(operand.span);
        Ok(Expr { kind: ExprKind::Unary(operator, Box::new(operand)), span })
    }

    fn postfix(&mut self) -> Parsed<Expr> {
        let mut expr = self.primary()?;
        for _ in 0..CHAIN_MAX {
            let Some(longer) = self.suffix(&expr)? else {
                return Ok(expr);
            };
            expr = longer;
        }
        self.fail_at(expr.span, format!("more than {CHAIN_MAX} suffixes in one expression"))
    }

    /// One member, index, slice or call after `base`.
    fn suffix(&mut self, base: &Expr) -> Parsed<Option<Expr>> {
        let kind = if self.eat(".") {
            ExprKind::Member(Box::new(base.clone()), self.member()?)
        } else if self.eat("[") {
            let first = self.expression()?;
            let kind = if self.eat(":") {
                ExprKind::Slice(Box::new(base.clone()), Box::new(first), Box::new(self.expression()?))
            } else {
                ExprKind::Index(Box::new(base.clone()), Box::new(first))
            };
            self.expect("]")?;
            kind
        } else if self.eat("(") {
            self.call(base, Vec::new())?
        } else if self.is("<") {
            let arguments = self.attempt(|parser| {
                parser.next();
                let arguments = parser.type_arguments_after_open()?;
                parser.expect("(")?;
                Ok(arguments)
            });
            match arguments {
                Some(arguments) => self.call(base, arguments)?,
                None => return Ok(None),
            }
        } else {
            return Ok(None);
        };
        let span = base.span.to(self.previous_span());
        Ok(Some(Expr { kind, span }))
    }

    fn call(&mut self, callee: &Expr, type_arguments: Vec<crate::p4::ast::TypeRef>) -> Parsed<ExprKind> {
        let arguments = self.list(")", |parser| parser.argument())?;
        Ok(ExprKind::Call { callee: Box::new(callee.clone()), type_arguments, arguments })
    }

    /// Arguments after an opening bracket, up to and with the closing one.
    pub(super) fn arguments_after_open(&mut self) -> Parsed<Vec<Argument>> {
        self.list(")", |parser| parser.argument())
    }

    fn argument(&mut self) -> Parsed<Argument> {
        let start = self.peek().span;
        let mut name = None;
        if matches!(self.peek().kind, Kind::Word(_)) && self.peek_at(1).is("=") {
            name = Some(self.ident()?);
            self.expect("=")?;
        }
        let value = if self.is("_") && (self.peek_at(1).is(",") || self.peek_at(1).is(")")) {
            self.next();
            None
        } else {
            Some(self.expression()?)
        };
        Ok(Argument { name, value, span: start.to(self.previous_span()) })
    }

    pub(super) fn primary(&mut self) -> Parsed<Expr> {
        let token = self.peek();
        let kind = match &token.kind {
            Kind::Number(number) => {
                self.next();
                ExprKind::Number(number.clone())
            }
            Kind::Text(text) => {
                self.next();
                ExprKind::Text(text.clone())
            }
            Kind::Symbol("(") => return self.bracketed(),
            Kind::Symbol("{") => self.braced()?,
            Kind::Symbol("...") => {
                self.next();
                ExprKind::Dots
            }
            Kind::Symbol(".") if !self.at_type() => {
                self.next();
                ExprKind::Name { name: self.ident()?, global: true }
            }
            Kind::Word(word) if matches!(&**word, "true" | "false" | "this") => {
                self.next();
                match &**word {
                    "this" => ExprKind::This,
                    word => ExprKind::Bool(word == "true"),
                }
            }
            _ if self.at_type() => {
                let ty = self.type_without_stack()?;
                if self.eat(".") {
                    ExprKind::TypeMember(ty, self.member()?)
                } else if self.is("(") {
                    ExprKind::Type(ty)
                } else {
                    let span = ty.span;
                    return self.fail_at(span, "a type stands where a value should".to_owned());
                }
            }
            Kind::Word(_) => ExprKind::Name { name: self.value_name()?, global: false },
            _ => return self.fail("an expression"),
        };
        Ok(Expr { kind, span: token.span.to(self.previous_span()) })
    }

    fn value_name(&mut self) -> Parsed<crate::p4::ast::Ident> {
        match &self.peek().kind {
            Kind::Word(word) if crate::p4::token::is_reserved(word) => self.fail("an expression"),
            _ => self.ident(),
        }
    }

    /// `(T) value` or `(value)`.
    fn bracketed(&mut self) -> Parsed<Expr> {
        let start = self.expect("(")?;
        if self.at_type() {
            let target = self.attempt(|parser| {
                let ty = parser.type_ref()?;
                parser.expect(")")?;
                Ok(ty)
            });
            if let Some(ty) = target {
                let value = self.nested(|parser| parser.unary())?;
                let span = start.to(value.span);
                return Ok(Expr { kind: ExprKind::Cast(ty, Box::new(value)), span });
            }
        }
        let inner = self.expression()?;
        let end = self.expect(")")?;
        Ok(Expr { kind: inner.kind, span: start.to(end) })
    }

    /// `{}`, `{#}`, `{a, b}`, `{name = a}`, each with a trailing `...`.
    fn braced(&mut self) -> Parsed<ExprKind> {
        self.expect("{")?;
        if self.eat("#") {
            self.expect("}")?;
            return Ok(ExprKind::Invalid);
        }
        let is_record = matches!(self.peek().kind, Kind::Word(_)) && self.peek_at(1).is("=");
        let (mut items, mut fields, mut dots) = (Vec::new(), Vec::new(), false);
        while !self.is("}") {
            if self.eat("...") {
                dots = true;
                self.eat(",");
                break;
            }
            if is_record {
                let name = self.ident()?;
                self.expect("=")?;
                fields.push((name, self.expression()?));
            } else {
                items.push(self.expression()?);
            }
            if !self.eat(",") {
                break;
            }
        }
        self.expect("}")?;
        Ok(if is_record { ExprKind::Record { fields, dots } } else { ExprKind::List { items, dots } })
    }

    /// One element of a set: `_`, `default`, a value, `a &&& b`, `a .. b`.
    pub(super) fn set_element(&mut self) -> Parsed<Expr> {
        let start = self.peek().span;
        for (word, kind) in [("_", ExprKind::Any), ("default", ExprKind::Default)] {
            if self.is(word) {
                self.next();
                return Ok(Expr { kind, span: start });
            }
        }
        let first = self.expression()?;
        let make = if self.eat("&&&") {
            ExprKind::Mask
        } else if self.eat("..") {
            ExprKind::Range
        } else {
            return Ok(first);
        };
        let second = self.expression()?;
        let span = start.to(second.span);
        Ok(Expr { kind: make(Box::new(first), Box::new(second)), span })
    }

    /// The elements of a set: one, or several in brackets.
    pub(super) fn set(&mut self) -> Parsed<Vec<Expr>> {
        if self.is("(") {
            let tuple = self.attempt(|parser| {
                parser.next();
                let elements = parser.list(")", |parser| parser.set_element())?;
                if parser.is(":") { Ok(elements) } else { Err(Failed) }
            });
            if let Some(elements) = tuple {
                return Ok(elements);
            }
        }
        Ok(vec![self.set_element()?])
    }
}
