//! The checker: names, types, directions, compile-time values.
//!
//! It turns the syntax tree into the checked program ([`hir`](super::hir)) and reports what the specification forbids.

mod arguments;
mod blocks;
mod calls;
mod convert;
mod declarations;
mod expressions;
mod infer;
mod members;
mod operators;
mod statements;
mod structs;
mod tables;
mod types;

use std::collections::{BTreeSet, HashMap};

use super::ast::{Declaration, Ident};
use super::diagnostics::Reporter;
use super::hir::{Checked, Expr, ExprKind, VarId};
use super::source::{Name, Span};
use super::types::{Substitution, Type};

/// Checks a program. The result is complete only if no errors were reported.
pub(crate) fn check(program: &[Declaration], reporter: &mut Reporter) -> Checked {
    let mut checker = Checker {
        reporter,
        scopes: vec![HashMap::new()],
        program: Checked::default(),
        access: Vec::new(),
        match_kinds: BTreeSet::new(),
        inferred: Substitution::new(),
        next_type: 1,
        context: Context::default(),
    };
    for declaration in program {
        checker.top_level(declaration);
    }
    checker.program
}

/// The uses that a variable allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    ReadWrite,
    ReadOnly,
    /// Known when the program is put together: a constructor's parameter.
    CompileTime,
}

/// A function or an extern function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FunctionRef {
    Function(usize),
    Extern(usize),
}

/// A declared type that still needs arguments.
#[derive(Clone, Debug)]
enum TypeSymbol {
    Plain(Type),
    /// A generic struct: its parameters and itself over them.
    Generic(Vec<u32>, Type),
    Extern(usize),
    Block(usize),
    Package(usize),
}

#[derive(Clone, Debug)]
enum Symbol {
    Variable(VarId, Type),
    Constant(Expr),
    Type(TypeSymbol),
    Functions(Vec<FunctionRef>),
    Action(usize),
    Table(usize),
    ValueSet(usize),
}

/// The surroundings of the statement that is checked.
#[derive(Clone, Debug, Default)]
struct Context {
    /// Result of the function; none outside of one.
    result: Option<Type>,
    in_action: bool,
    in_parser: bool,
    in_control_apply: bool,
    in_loop: bool,
    in_package: bool,
    /// States of the parser.
    states: Vec<Name>,
}

struct Checker<'a> {
    reporter: &'a mut Reporter,
    scopes: Vec<HashMap<Name, (Symbol, Span)>>,
    program: Checked,
    access: Vec<Access>,
    match_kinds: BTreeSet<Name>,
    inferred: Substitution,
    /// Next number for declared types, type parameters and types to infer.
    next_type: u32,
    context: Context,
}

impl Checker<'_> {
    fn fresh(&mut self) -> u32 {
        self.next_type += 1;
        self.next_type
    }

    fn variable(&mut self, access: Access) -> VarId {
        self.access.push(access);
        VarId(self.access.len() as u32 - 1)
    }

    fn scoped<T>(&mut self, inside: impl FnOnce(&mut Self) -> T) -> T {
        self.scopes.push(HashMap::new());
        let result = inside(self);
        self.scopes.pop();
        result
    }

    fn declare(&mut self, name: &Ident, symbol: Symbol) {
        let depth = self.scopes.len() - 1;
        if let Some((old, span)) = self.scopes[depth].get_mut(&name.name) {
            if let (Symbol::Functions(all), Symbol::Functions(new)) = (old, &symbol) {
                all.extend(new);
                return;
            }
            let span = *span;
            self.reporter
                .error(name.span, format!("`{}` is declared twice", name.name))
                .see(span, "the first one is here");
            return;
        }
        self.scopes[depth].insert(name.name.clone(), (symbol, name.span));
    }

    fn find(&self, name: &str, global: bool) -> Option<&Symbol> {
        let scopes = if global { &self.scopes[..1] } else { &self.scopes[..] };
        scopes.iter().rev().find_map(|scope| scope.get(name)).map(|(symbol, _)| symbol)
    }

    /// The visible name that is most like `name`.
    fn similar(&self, name: &str) -> Option<Name> {
        let names = self.scopes.iter().flat_map(|scope| scope.keys());
        nearest(name, names)
    }

    fn error(&mut self, span: Span, message: impl Into<String>) -> &mut super::diagnostics::Problem {
        self.reporter.error(span, message)
    }

    /// An expression that has an error. Where none was reported for it, one is: nothing is left out silently.
    fn broken(&mut self, span: Span) -> Expr {
        if !self.reporter.has_errors() {
            self.reporter.error(span, "the type of this expression cannot be found");
        }
        Expr { kind: ExprKind::Broken, ty: Type::Unknown, span }
    }
}

/// The name that is most like `name`, if one is like it at all.
pub fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n Name>) -> Option<Name> {
    let mut scored: Vec<(usize, &Name)> = names.map(|other| (distance(name, other), other)).collect();
    scored.sort();
    let (score, found) = scored.first()?;
    (*score <= 1 + name.len() / 4).then(|| (*found).clone())
}

/// Edits between two names.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (diagonal + usize::from(x != y)).min(above + 1).min(row[j] + 1);
            diagonal = above;
        }
    }
    row[b.len()]
}
