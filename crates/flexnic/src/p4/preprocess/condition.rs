//! Integer expressions of `#if`.

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use crate::p4::source::Span;
use crate::p4::token::{Kind, Number, Token};

/// Conditions may nest this deep.
const DEPTH_MAX: usize = 100;

/// A token that is 0 or 1.
pub fn number(value: bool, span: Span) -> Token {
    let number = Number { value: BigInt::from(u8::from(value)), width: None };
    Token { kind: Kind::Number(number), span, starts_line: false }
}

/// The value of an expression; names that are no macros count as 0.
pub fn evaluate(tokens: &[Token]) -> Result<i64, String> {
    let mut reader = Reader { tokens, at: 0, depth: 0 };
    let value = reader.binary(0)?;
    if reader.at < tokens.len() {
        return Err(format!("{} is left over", tokens[reader.at].describe()));
    }
    Ok(value)
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn eat(&mut self, symbol: &str) -> bool {
        let found = self.tokens.get(self.at).is_some_and(|token| token.is(symbol));
        self.at += usize::from(found);
        found
    }

    fn operator(&mut self, level: usize) -> Option<&'static str> {
        const LEVELS: [&[&str]; 7] =
            [&["||"], &["&&"], &["|", "^", "&"], &["==", "!="], &["<=", ">=", "<", ">"], &["+", "-"], &["*", "/", "%"]];
        LEVELS.get(level)?.iter().copied().find(|symbol| self.eat(symbol))
    }

    fn binary(&mut self, level: usize) -> Result<i64, String> {
        if level == 7 {
            return self.unary();
        }
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = self.operator(level) {
            let right = self.binary(level + 1)?;
            left = match operator {
                "||" => i64::from(left != 0 || right != 0),
                "&&" => i64::from(left != 0 && right != 0),
                "|" => left | right,
                "^" => left ^ right,
                "&" => left & right,
                "==" => i64::from(left == right),
                "!=" => i64::from(left != right),
                "<=" => i64::from(left <= right),
                ">=" => i64::from(left >= right),
                "<" => i64::from(left < right),
                ">" => i64::from(left > right),
                "+" => left.wrapping_add(right),
                "-" => left.wrapping_sub(right),
                "*" => left.wrapping_mul(right),
                "/" => left.checked_div(right).ok_or("division by zero")?,
                _ => left.checked_rem(right).ok_or("division by zero")?,
            };
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<i64, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err("it nests too deep".to_owned());
        }
        let value = if self.eat("!") {
            i64::from(self.unary()? == 0)
        } else if self.eat("-") {
            self.unary()?.wrapping_neg()
        } else if self.eat("(") {
            let value = self.binary(0)?;
            if !self.eat(")") {
                return Err("a `)` is missing".to_owned());
            }
            value
        } else {
            let token = self.tokens.get(self.at).ok_or("it ends too early")?;
            self.at += 1;
            match &token.kind {
                Kind::Number(number) => number.value.to_i64().ok_or("a number is too large")?,
                Kind::Word(_) => 0,
                _ => return Err(format!("{} stands where a value should", token.describe())),
            }
        };
        self.depth -= 1;
        Ok(value)
    }
}
