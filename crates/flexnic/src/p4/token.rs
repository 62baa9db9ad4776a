//! Tokens of P4-16 and of its preprocessor.

use num_bigint::BigInt;

use super::source::{Name, Span};

/// An integer literal with its optional width prefix (`8w255`, `4s7`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// Value.
    pub value: BigInt,
    /// Width in bits and whether it is signed; none for an `int` literal.
    pub width: Option<(u32, bool)>,
}

/// The kind of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Identifier or keyword.
    Word(Name),
    /// Integer literal.
    Number(Number),
    /// String literal, without quotes, escapes resolved.
    Text(Name),
    /// Operator or punctuation. `>` always stands alone, so that `>>` closes two lists of type arguments.
    Symbol(&'static str),
    /// End of input.
    End,
}

/// A token and where it stands.
#[derive(Clone, Debug)]
pub struct Token {
    /// Its kind.
    pub kind: Kind,
    /// Where it stands; for a token of a macro, where the macro is used.
    pub span: Span,
    /// It is the first one on its line.
    pub starts_line: bool,
}

impl Token {
    /// The token is this symbol or word.
    pub fn is(&self, text: &str) -> bool {
        match &self.kind {
            Kind::Word(word) => &**word == text,
            Kind::Symbol(symbol) => *symbol == text,
            _ => false,
        }
    }

    /// The token as a program writes it.
    pub fn written(&self) -> String {
        match &self.kind {
            Kind::Word(word) => word.to_string(),
            Kind::Number(number) => number.value.to_string(),
            Kind::Text(text) => format!("\"{text}\""),
            Kind::Symbol(symbol) => (*symbol).to_owned(),
            Kind::End => String::new(),
        }
    }

    /// How an error message calls it.
    pub fn describe(&self) -> String {
        match &self.kind {
            Kind::Word(word) => format!("`{word}`"),
            Kind::Number(number) => format!("number {}", number.value),
            Kind::Text(_) => "a string".to_owned(),
            Kind::Symbol(symbol) => format!("`{symbol}`"),
            Kind::End => "the end of the file".to_owned(),
        }
    }
}

/// Reserved words: they cannot name anything.
pub const RESERVED: [&str; 41] = [
    "abstract",
    "action",
    "bit",
    "bool",
    "break",
    "const",
    "continue",
    "control",
    "default",
    "else",
    "enum",
    "error",
    "exit",
    "extern",
    "false",
    "for",
    "header",
    "header_union",
    "if",
    "in",
    "inout",
    "int",
    "match_kind",
    "out",
    "package",
    "parser",
    "return",
    "select",
    "string",
    "struct",
    "switch",
    "table",
    "this",
    "transition",
    "true",
    "tuple",
    "typedef",
    "value_set",
    "varbit",
    "void",
    "_",
];

/// The word cannot be an identifier.
pub fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}
