//! From text to tokens.

use num_bigint::BigInt;
use num_traits::Num;

use super::diagnostics::Reporter;
use super::source::{Name, Span};
use super::token::{Kind, Number, Token};

/// Symbols, longest first. `>` is single on purpose: the parser joins `>` `>` to a shift.
const SYMBOLS: [&str; 55] = [
    "|+|=", "|-|=", "<<=", "&&&", "|+|", "|-|", "...", "<<", "<=", ">=", "==", "!=", "&&", "||", "++", "+=", "-=",
    "*=", "/=", "%=", "&=", "|=", "^=", "..", "##", "<", ">", "=", "!", "&", "|", "^", "~", "+", "-", "*", "/", "%",
    "(", ")", "[", "]", "{", "}", ",", ";", ":", "?", ".", "@", "#", "$", "`", "\\", "'",
];

/// All tokens of one file; bad characters and literals are reported and left out.
pub fn tokens(file: u32, text: &str, reporter: &mut Reporter) -> Vec<Token> {
    let mut lexer = Lexer { file, text, bytes: text.as_bytes(), at: 0, starts_line: true, reporter };
    let mut found = Vec::new();
    while lexer.skip_space() {
        let low = lexer.at;
        let starts_line = std::mem::take(&mut lexer.starts_line);
        if let Some(kind) = lexer.next_kind() {
            found.push(Token { kind, span: lexer.span(low), starts_line });
        } else {
            lexer.starts_line |= starts_line;
        }
    }
    found
}

struct Lexer<'a> {
    file: u32,
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    starts_line: bool,
    reporter: &'a mut Reporter,
}

impl Lexer<'_> {
    fn span(&self, low: usize) -> Span {
        Span { file: self.file, low: low as u32, high: self.at as u32 }
    }

    /// Skips space, comments and continued lines; false at the end of the text.
    fn skip_space(&mut self) -> bool {
        while let Some(&byte) = self.bytes.get(self.at) {
            let rest = &self.bytes[self.at..];
            if byte == b'\n' {
                self.starts_line = true;
                self.at += 1;
            } else if byte.is_ascii_whitespace() {
                self.at += 1;
            } else if rest.starts_with(b"\\\n") {
                self.at += 2;
            } else if rest.starts_with(b"\\\r\n") {
                self.at += 3;
            } else if rest.starts_with(b"//") {
                self.at = self.text[self.at..].find('\n').map_or(self.bytes.len(), |length| self.at + length);
            } else if rest.starts_with(b"/*") {
                let low = self.at;
                match self.text[self.at + 2..].find("*/") {
                    Some(length) => self.at += length + 4,
                    None => {
                        self.at = self.bytes.len();
                        let span = Span { file: self.file, low: low as u32, high: low as u32 + 2 };
                        self.reporter.error(span, "this comment does not end").help("close it with `*/`");
                    }
                }
            } else {
                return true;
            }
        }
        false
    }

    fn next_kind(&mut self) -> Option<Kind> {
        let byte = self.bytes[self.at];
        if byte == b'"' {
            return self.text_literal();
        }
        if byte.is_ascii_digit() {
            return self.number();
        }
        if byte.is_ascii_alphabetic() || byte == b'_' {
            return Some(Kind::Word(Name::from(self.word())));
        }
        for symbol in SYMBOLS {
            if self.bytes[self.at..].starts_with(symbol.as_bytes()) {
                self.at += symbol.len();
                return Some(Kind::Symbol(symbol));
            }
        }
        let low = self.at;
        let character = self.text[low..].chars().next()?;
        self.at += character.len_utf8();
        let span = self.span(low);
        self.reporter.error(span, format!("unexpected character {character:?}"));
        None
    }

    fn word(&mut self) -> &str {
        let low = self.at;
        while self.bytes.get(self.at).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
            self.at += 1;
        }
        &self.text[low..self.at]
    }

    fn text_literal(&mut self) -> Option<Kind> {
        let low = self.at;
        self.at += 1;
        let mut value = String::new();
        let mut characters = self.text[self.at..].char_indices();
        while let Some((offset, character)) = characters.next() {
            match character {
                '"' => {
                    self.at += offset + 1;
                    return Some(Kind::Text(Name::from(value)));
                }
                '\n' => break,
                '\\' => match characters.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, 't')) => value.push('\t'),
                    Some((_, other)) => value.push(other),
                    None => break,
                },
                other => value.push(other),
            }
        }
        self.at = self.text[low..].find('\n').map_or(self.bytes.len(), |length| low + length);
        let span = Span { file: self.file, low: low as u32, high: low as u32 + 1 };
        self.reporter.error(span, "this string does not end").help("close it with `\"` on the same line");
        None
    }

    fn number(&mut self) -> Option<Kind> {
        let low = self.at;
        let word = self.word().replace('_', "");
        let span = self.span(low);
        match parse_number(&word) {
            Ok(number) => Some(Kind::Number(number)),
            Err(why) => {
                self.reporter
                    .error(span, format!("`{word}` is not a number: {why}"))
                    .help("write 10, 0x1F, 0b101, 0o17, 8w255 (unsigned, 8 bits) or 8s127 (signed)");
                Some(Kind::Number(Number { value: BigInt::ZERO, width: None }))
            }
        }
    }
}

/// Widest type; a wider one is a mistake and would only exhaust memory.
pub const WIDTH_MAX: u32 = 1 << 14;

/// Parses `[width w|s] [0x|0b|0o|0d] digits`.
pub fn parse_number(word: &str) -> Result<Number, String> {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let (width, rest) = match word.as_bytes().get(digits) {
        Some(sign @ (b'w' | b's')) => {
            let width: u32 = word[..digits].parse().map_err(|_| "its width is too large".to_owned())?;
            if width > WIDTH_MAX {
                return Err(format!("its width is over {WIDTH_MAX} bits"));
            }
            (Some((width, *sign == b's')), &word[digits + 1..])
        }
        _ => (None, word),
    };
    let (radix, body) = match rest.as_bytes().get(..2) {
        Some(b"0x" | b"0X") => (16, &rest[2..]),
        Some(b"0b" | b"0B") => (2, &rest[2..]),
        Some(b"0o" | b"0O") => (8, &rest[2..]),
        Some(b"0d" | b"0D") => (10, &rest[2..]),
        _ => (10, rest),
    };
    let value = BigInt::from_str_radix(body, radix).map_err(|_| format!("bad digits in base {radix}"))?;
    if body.len() > 2 * WIDTH_MAX as usize {
        return Err("it has too many digits".to_owned());
    }
    Ok(Number { value, width })
}
