//! The preprocessor: `#include`, `#define`, `#undef`, `#if` and its family, `#error`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::diagnostics::Reporter;
use super::include::{self, Included};
use super::lexer;
use super::source::{Name, SourceMap, Span};
use super::token::{Kind, Token};

mod condition;

/// Files may include each other this deep.
const INCLUDE_DEPTH_MAX: usize = 50;
/// Macros may expand each other this deep.
const EXPANSION_DEPTH_MAX: usize = 100;
/// Files that are read for one program.
const INCLUDES_MAX: usize = 1000;
/// Bound on the tokens of a program.
const TOKENS_MAX: usize = 1_000_000;

#[derive(Clone)]
struct Macro {
    parameters: Option<Vec<Name>>,
    body: Vec<Token>,
}

/// An `#if` that is open.
struct Conditional {
    span: Span,
    /// The lines between are read.
    live: bool,
    /// A branch has been taken, or none may be.
    done: bool,
    has_else: bool,
}

pub struct Preprocessor<'a> {
    pub sources: &'a mut SourceMap,
    pub reporter: &'a mut Reporter,
    pub search: &'a [PathBuf],
    macros: BTreeMap<Name, Macro>,
    output: Vec<Token>,
    depth: usize,
    includes: usize,
}

impl<'a> Preprocessor<'a> {
    pub fn new(sources: &'a mut SourceMap, reporter: &'a mut Reporter, search: &'a [PathBuf]) -> Self {
        Preprocessor { sources, reporter, search, macros: BTreeMap::new(), output: Vec::new(), depth: 0, includes: 0 }
    }

    /// Defines `NAME` or `NAME=VALUE`, as from a command line.
    pub fn define(&mut self, definition: &str) {
        let (name, value) = definition.split_once('=').unwrap_or((definition, "1"));
        let file = self.sources.add(format!("<definition of {name}>"), value.into());
        let body = lexer::tokens(file, value, self.reporter);
        self.macros.insert(Name::from(name), Macro { parameters: None, body });
    }

    /// Reads the main file and everything it includes; the last token is `End`.
    pub fn run(mut self, main: Included) -> Vec<Token> {
        let file = self.sources.add(main.name.clone(), main.text.clone());
        self.file(file, &main);
        let length = main.text.len() as u32;
        let span = Span { file, low: length.saturating_sub(1), high: length };
        self.output.push(Token { kind: Kind::End, span, starts_line: true });
        self.output
    }

    fn file(&mut self, file: u32, included: &Included) {
        let tokens = lexer::tokens(file, &included.text, self.reporter);
        let mut open: Vec<Conditional> = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            let live = open.iter().all(|conditional| conditional.live);
            if tokens[at].is("#") && tokens[at].starts_line {
                let length = tokens[at + 1..].iter().take_while(|token| !token.starts_line).count();
                let line = &tokens[at + 1..at + 1 + length];
                let span = line.last().map_or(tokens[at].span, |last| tokens[at].span.to(last.span));
                self.directive(line, span, live, &mut open, included);
                at += 1 + length;
            } else if live {
                let mut expanded = Vec::new();
                at = self.expand_at(&tokens, at, &mut expanded, &mut Vec::new(), true);
                self.output.extend(expanded);
                if self.output.len() > TOKENS_MAX {
                    let span = self.output[TOKENS_MAX].span;
                    self.reporter.error(span, format!("the program has more than {TOKENS_MAX} tokens"));
                    return;
                }
            } else {
                at += 1;
            }
        }
        if let Some(conditional) = open.last() {
            self.reporter.error(conditional.span, "this conditional does not end").help("close it with `#endif`");
        }
    }

    fn directive(&mut self, line: &[Token], span: Span, live: bool, open: &mut Vec<Conditional>, from: &Included) {
        let Some(Kind::Word(name)) = line.first().map(|token| token.kind.clone()) else {
            if live && !line.is_empty() && !matches!(line[0].kind, Kind::Number(_)) {
                self.reporter.error(span, "a preprocessor directive needs a name after `#`");
            }
            return;
        };
        let rest = &line[1..];
        match &*name {
            "if" | "ifdef" | "ifndef" => {
                let holds = live && self.condition(&name, rest, span);
                open.push(Conditional { span, live: holds, done: holds || !live, has_else: false });
            }
            "elif" => {
                let outer = open.iter().rev().skip(1).all(|conditional| conditional.live);
                let holds = outer && open.last().is_some_and(|last| !last.done) && self.condition("if", rest, span);
                self.other_branch(open, span, holds, false);
            }
            "else" => {
                let holds = open.last().is_some_and(|last| !last.done);
                self.other_branch(open, span, holds, true);
            }
            "endif" => {
                if open.pop().is_none() {
                    self.reporter.error(span, "`#endif` without `#if`");
                }
            }
            _ if !live => {}
            "define" => self.definition(rest, span),
            "undef" => match rest.first().map(|token| &token.kind) {
                Some(Kind::Word(name)) => drop(self.macros.remove(name)),
                _ => drop(self.reporter.error(span, "`#undef` needs a name")),
            },
            "include" => self.include(rest, span, from),
            "error" => drop(self.reporter.error(span, self.sources.slice(span))),
            "warning" => drop(self.reporter.warning(span, self.sources.slice(span))),
            "line" | "pragma" => {}
            other => drop(self.reporter.error(span, format!("unknown preprocessor directive `#{other}`"))),
        }
    }

    fn other_branch(&mut self, open: &mut [Conditional], span: Span, holds: bool, is_else: bool) {
        match open.last_mut() {
            Some(last) if !last.has_else => {
                last.live = holds;
                last.done |= holds;
                last.has_else = is_else;
            }
            Some(last) => drop(self.reporter.error(span, "a branch after `#else`").see(last.span, "of this `#if`")),
            None => drop(self.reporter.error(span, "a branch without `#if`")),
        }
    }

    fn condition(&mut self, directive: &str, rest: &[Token], span: Span) -> bool {
        if directive != "if" {
            let Some(Kind::Word(name)) = rest.first().map(|token| &token.kind) else {
                self.reporter.error(span, format!("`#{directive}` needs a name"));
                return false;
            };
            return self.macros.contains_key(name) == (directive == "ifdef");
        }
        // `defined` looks at names before they are expanded.
        let mut line = Vec::new();
        let mut at = 0;
        while at < rest.len() {
            if rest[at].is("defined") {
                let open = rest.get(at + 1).is_some_and(|token| token.is("("));
                let name = rest.get(at + 1 + usize::from(open));
                let known =
                    matches!(name.map(|token| &token.kind), Some(Kind::Word(name)) if self.macros.contains_key(name));
                line.push(condition::number(known, rest[at].span));
                at += if open { 4 } else { 2 };
            } else {
                at = self.expand_at(rest, at, &mut line, &mut Vec::new(), true);
            }
        }
        match condition::evaluate(&line) {
            Ok(value) => value != 0,
            Err(why) => {
                self.reporter.error(span, format!("this condition cannot be evaluated: {why}"));
                false
            }
        }
    }

    fn definition(&mut self, rest: &[Token], span: Span) {
        let Some((Kind::Word(name), name_span)) = rest.first().map(|token| (token.kind.clone(), token.span)) else {
            self.reporter.error(span, "`#define` needs a name");
            return;
        };
        let mut body = &rest[1..];
        let mut parameters = None;
        // Only a bracket that touches the name opens a list of parameters.
        if body.first().is_some_and(|token| token.is("(") && token.span.low == name_span.high) {
            let Some(close) = body.iter().position(|token| token.is(")")) else {
                self.reporter.error(span, "the list of parameters does not end").help("close it with `)`");
                return;
            };
            let names = body[1..close].iter().filter_map(|token| match &token.kind {
                Kind::Word(word) => Some(word.clone()),
                _ => None,
            });
            parameters = Some(names.collect());
            body = &body[close + 1..];
        }
        self.macros.insert(name, Macro { parameters, body: body.to_vec() });
    }

    fn include(&mut self, rest: &[Token], span: Span, from: &Included) {
        let (name, quoted) = match rest.first().map(|token| &token.kind) {
            Some(Kind::Text(name)) => (name.to_string(), true),
            Some(Kind::Symbol("<")) => {
                let last = rest.iter().position(|token| token.is(">")).unwrap_or(rest.len() - 1);
                let inside = Span { low: rest[0].span.high, high: rest[last].span.low, ..rest[0].span };
                (self.sources.slice(inside).trim().to_owned(), false)
            }
            _ => {
                self.reporter.error(span, "`#include` needs a file").help("#include <core.p4> or #include \"file.p4\"");
                return;
            }
        };
        self.includes += 1;
        if self.depth >= INCLUDE_DEPTH_MAX || self.includes > INCLUDES_MAX {
            let message =
                format!("files include each other more than {INCLUDE_DEPTH_MAX} deep, or {INCLUDES_MAX} times");
            self.reporter.error(span, message).help("put `#ifndef NAME` and `#define NAME` around a file");
            return;
        }
        match include::find(&name, quoted, from.folder.as_deref(), self.search) {
            Ok(included) => {
                let file = self.sources.add(included.name.clone(), included.text.clone());
                self.depth += 1;
                self.file(file, &included);
                self.depth -= 1;
            }
            Err(why) => {
                self.reporter
                    .error(span, why)
                    .help("core.p4, v1model.p4, pna.p4 and flexnic.p4 ship with the compiler; `-I DIR` adds a folder");
            }
        }
    }

    /// Expands the token at `at` into `output` and returns the position after what it used. A token of a macro's body
    /// takes the place of the macro's use.
    fn expand_at(
        &mut self,
        tokens: &[Token],
        at: usize,
        output: &mut Vec<Token>,
        active: &mut Vec<Name>,
        top: bool,
    ) -> usize {
        let token = &tokens[at];
        let Kind::Word(name) = &token.kind else {
            output.push(token.clone());
            return at + 1;
        };
        let Some(found) = self.macros.get(name).filter(|_| !active.contains(name)).cloned() else {
            output.push(token.clone());
            return at + 1;
        };
        if active.len() >= EXPANSION_DEPTH_MAX || output.len() > TOKENS_MAX {
            self.reporter.error(token.span, format!("macro `{name}` expands without end"));
            return at + 1;
        }
        let mut end = at + 1;
        let mut body = found.body.clone();
        if let Some(parameters) = &found.parameters {
            if !tokens.get(end).is_some_and(|next| next.is("(")) {
                output.push(token.clone());
                return at + 1;
            }
            let Some((arguments, after)) = arguments(tokens, end) else {
                self.reporter.error(token.span, format!("the arguments of macro `{name}` do not end"));
                return tokens.len();
            };
            end = after;
            if arguments.len() != parameters.len() && !(parameters.is_empty() && arguments.len() == 1) {
                let message = format!("macro `{name}` takes {} arguments, not {}", parameters.len(), arguments.len());
                self.reporter.error(token.span, message);
                return end;
            }
            body = self.substitute(&body, parameters, &arguments, active);
        }
        let body = paste(body);
        active.push(name.clone());
        let mut inner = 0;
        let mut expanded = Vec::new();
        while inner < body.len() {
            inner = self.expand_at(&body, inner, &mut expanded, active, false);
        }
        active.pop();
        let whole = if top { token.span.to(tokens[end - 1].span) } else { token.span };
        for mut token in expanded {
            if top {
                token.span = whole;
            }
            output.push(token);
        }
        end
    }

    fn substitute(
        &mut self,
        body: &[Token],
        parameters: &[Name],
        arguments: &[Vec<Token>],
        active: &mut Vec<Name>,
    ) -> Vec<Token> {
        let mut result = Vec::new();
        for (index, token) in body.iter().enumerate() {
            let parameter = match &token.kind {
                Kind::Word(word) => parameters.iter().position(|parameter| parameter == word),
                _ => None,
            };
            let Some(parameter) = parameter else {
                result.push(token.clone());
                continue;
            };
            let pasted = index > 0 && body[index - 1].is("##") || body.get(index + 1).is_some_and(|next| next.is("##"));
            if pasted {
                result.extend(arguments[parameter].iter().cloned());
                continue;
            }
            let mut at = 0;
            while at < arguments[parameter].len() {
                at = self.expand_at(&arguments[parameter], at, &mut result, active, false);
            }
        }
        result
    }
}

/// Arguments in brackets from `tokens[open]` on, and the position after the closing bracket.
fn arguments(tokens: &[Token], open: usize) -> Option<(Vec<Vec<Token>>, usize)> {
    let mut found = vec![Vec::new()];
    let mut depth = 0;
    for (offset, token) in tokens[open..].iter().enumerate() {
        if token.is("(") {
            depth += 1;
            if depth == 1 {
                continue;
            }
        } else if token.is(")") {
            depth -= 1;
            if depth == 0 {
                return Some((found, open + offset + 1));
            }
        } else if token.is(",") && depth == 1 {
            found.push(Vec::new());
            continue;
        }
        found.last_mut()?.push(token.clone());
    }
    None
}

/// Joins words around `##`.
fn paste(body: Vec<Token>) -> Vec<Token> {
    let mut result: Vec<Token> = Vec::new();
    let mut rest = body.into_iter();
    while let Some(token) = rest.next() {
        if !token.is("##") {
            result.push(token);
            continue;
        }
        let (Some(left), Some(right)) = (result.pop(), rest.next()) else { continue };
        let text = |token: &Token| match &token.kind {
            Kind::Word(word) => word.to_string(),
            Kind::Number(number) => number.value.to_string(),
            _ => String::new(),
        };
        let joined = Kind::Word(Name::from(text(&left) + &text(&right)));
        result.push(Token { kind: joined, ..left });
    }
    result
}
