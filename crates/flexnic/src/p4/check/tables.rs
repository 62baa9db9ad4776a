//! Tables.

use num_traits::ToPrimitive;

use super::declarations::control_name;
use super::{Checker, Symbol};
use crate::p4::ast::{self, Argument, Declaration, Direction, KeyElement, TableDecl};
use crate::p4::hir::{Entry, Expr, ExprKind, Key, MatchKind, Table, TableAction};
use crate::p4::source::{Name, Span};
use crate::p4::types::{Substitution, Type};

/// An action as a table uses it.
struct ActionUse {
    action: usize,
    arguments: Vec<Argument>,
    called: bool,
    span: Span,
}

impl Checker<'_> {
    pub(super) fn table(&mut self, declaration: &Declaration, written: &TableDecl) {
        let name = &declaration.name;
        // Keys are computed when the table is applied, so they may apply other tables.
        let outer = std::mem::replace(&mut self.context.in_control_apply, true);
        let keys: Vec<Key> = written.keys.iter().filter_map(|key| self.key(key)).collect();
        self.context.in_control_apply = outer;
        let mut table = Table {
            annotations: declaration.annotations.clone().into(),
            name: name.name.clone(),
            path: control_name(&declaration.annotations, &name.name),
            keys,
            actions: Vec::new(),
            default: None,
            default_is_const: false,
            entries: Vec::new(),
            entries_are_const: written.entries.as_ref().is_some_and(|(_, is_const)| *is_const),
            largest_priority_wins: true,
            priority_delta: 1,
            size: None,
            attached: Vec::new(),
            span: name.span,
        };
        if table.keys.iter().filter(|key| key.match_kind == MatchKind::Lpm).count() > 1 {
            self.error(name.span, "a table has at most one lpm key");
        }
        if !written.has_actions {
            self.error(name.span, format!("table `{}` has no list of actions", name.name));
        }
        for action in &written.actions {
            self.table_action(action, &mut table);
        }
        self.default_action(written, &mut table);
        for property in &written.properties {
            self.property(property, &mut table);
        }
        for entry in written.entries.iter().flat_map(|(entries, _)| entries) {
            if let Some(entry) = self.entry(entry, &table) {
                table.entries.push(entry);
            }
        }
        self.program.tables.push(table);
        self.declare(name, Symbol::Table(self.program.tables.len() - 1));
    }

    fn key(&mut self, key: &KeyElement) -> Option<Key> {
        let match_kind = match &*key.match_kind.name {
            "exact" => MatchKind::Exact,
            "lpm" => MatchKind::Lpm,
            "ternary" => MatchKind::Ternary,
            "range" => MatchKind::Range,
            "optional" => MatchKind::Optional,
            "selector" => MatchKind::Selector,
            _ => {
                let similar = super::nearest(&key.match_kind.name, self.match_kinds.iter());
                let known = self.match_kinds.contains(&key.match_kind.name);
                let text = if known { "is not supported" } else { "does not exist" };
                let message = format!("match kind `{}` {text}", key.match_kind.name);
                let problem = self.error(key.match_kind.span, message);
                if let Some(similar) = similar.filter(|_| !known) {
                    problem.help(format!("there is `{similar}`"));
                }
                return None;
            }
        };
        if !self.match_kinds.contains(&key.match_kind.name) {
            self.error(key.match_kind.span, format!("match kind `{}` is not declared", key.match_kind.name))
                .help("the architecture's file declares it");
        }
        let value = self.expr(&key.value, None);
        let fits = match value.ty.representation() {
            Type::Unknown => return None,
            Type::Bit(_) | Type::Int(_) => true,
            Type::Bool | Type::Error | Type::Enum(_) => {
                matches!(match_kind, MatchKind::Exact | MatchKind::Optional | MatchKind::Selector | MatchKind::Ternary)
            }
            _ => false,
        };
        if !fits {
            let message = format!("a key of type `{}` cannot be matched as {}", value.ty, key.match_kind.name);
            let problem = self.error(value.span, message);
            if value.ty == Type::Integer {
                problem.help("give the literal a width: 8w1");
            }
            return None;
        }
        if key_name(&key.value) == UNNAMED && !key.annotations.iter().any(|annotation| &*annotation.name == "name") {
            self.error(value.span, "the control plane has no name for this key")
                .help("add @name(\"...\") after the match kind");
        }
        let given = key.annotations.iter().find(|annotation| &*annotation.name == "name");
        let given = given.and_then(|annotation| annotation.values.first());
        let name = given.cloned().unwrap_or_else(|| Name::from(key_name(&key.value)));
        Some(Key { value, match_kind, name, annotations: key.annotations.clone().into() })
    }

    /// The action that a reference names, and its arguments.
    fn action_use(&mut self, expr: &ast::Expr) -> Option<ActionUse> {
        let (callee, arguments, called) = match &expr.kind {
            ast::ExprKind::Call { callee, arguments, .. } => (&**callee, arguments.clone(), true),
            _ => (expr, Vec::new(), false),
        };
        let ast::ExprKind::Name { name, global } = &callee.kind else {
            self.error(expr.span, "expected the name of an action");
            return None;
        };
        match self.find(&name.name, *global) {
            Some(Symbol::Action(action)) => Some(ActionUse { action: *action, arguments, called, span: expr.span }),
            _ => {
                let actions: Vec<Name> = self.program.actions.iter().map(|action| action.name.clone()).collect();
                let similar = super::nearest(&name.name, actions.iter());
                let problem = self.reporter.error(name.span, format!("there is no action `{}` here", name.name));
                if let Some(similar) = similar {
                    problem.help(format!("there is `{similar}`"));
                }
                None
            }
        }
    }

    fn table_action(&mut self, written: &ast::ActionRef, table: &mut Table) {
        let Some(used) = self.action_use(&written.action) else { return };
        if table.actions.iter().any(|known| known.action == used.action) {
            self.error(used.span, "this action stands twice in the list");
            return;
        }
        let parameters = self.program.actions[used.action].parameters.clone();
        let directed: Vec<_> = parameters.iter().filter(|p| p.direction != Direction::None).cloned().collect();
        let name = self.program.actions[used.action].name.clone();
        if used.arguments.len() > directed.len() {
            self.error(used.span, format!("the control plane gives the data of `{name}`, not the list of actions"))
                .help("only parameters with a direction get arguments here");
            return;
        }
        let Some(bound) = self.arguments(&name, &directed, &Substitution::new(), &used.arguments, used.span) else {
            return;
        };
        let bound = bound.into_iter().filter_map(|argument| argument.value).collect();
        let has = |wanted: &str| written.annotations.iter().any(|annotation| &*annotation.name == wanted);
        let (default_only, table_only) = (has("defaultonly"), has("tableonly"));
        let annotations = written.annotations.clone().into();
        table.actions.push(TableAction { action: used.action, bound, annotations, default_only, table_only });
    }

    /// Position of an action in the table's list and its data.
    fn action_with_data(&mut self, expr: &ast::Expr, table: &Table) -> Option<(usize, Vec<Expr>)> {
        let used = self.action_use(expr)?;
        let name = self.program.actions[used.action].name.clone();
        let Some(position) = table.actions.iter().position(|known| known.action == used.action) else {
            self.error(used.span, format!("action `{name}` is not in the list of actions of `{}`", table.name));
            return None;
        };
        let parameters = self.program.actions[used.action].parameters.clone();
        let directed = parameters.iter().filter(|p| p.direction != Direction::None).count();
        let mut data: Vec<_> = parameters.into_iter().skip(directed).collect();
        for parameter in &mut data {
            parameter.direction = Direction::In;
        }
        // A default action repeats the arguments for directed parameters, if it has any.
        let arguments = if used.arguments.len() > data.len() && used.arguments.len() >= directed {
            self.same_bound(&used, &table.actions[position].bound, directed)?
        } else {
            used.arguments.clone()
        };
        if !used.called && !data.is_empty() {
            self.error(used.span, format!("action `{name}` needs {} arguments here", data.len()));
            return None;
        }
        let values = self.arguments(&name, &data, &Substitution::new(), &arguments, used.span)?;
        let values: Vec<Expr> = values.into_iter().filter_map(|argument| argument.value).collect();
        for value in &values {
            if !self.is_constant(value) {
                self.error(value.span, "the data of an action must be known at compile time here");
                return None;
            }
        }
        Some((position, values))
    }

    /// Checks that the first arguments are those that the list of actions binds, and returns the others.
    fn same_bound(&mut self, used: &ActionUse, bound: &[Expr], directed: usize) -> Option<Vec<Argument>> {
        for (argument, known) in used.arguments.iter().zip(bound) {
            let value = argument.value.as_ref().map(|value| self.expr_of(value, &known.ty));
            let same = value.is_some_and(|value| same_expression(&value, known));
            if !same {
                self.error(argument.span, "this argument differs from the one in the list of actions");
                return None;
            }
        }
        Some(used.arguments[directed..].to_vec())
    }

    fn default_action(&mut self, written: &TableDecl, table: &mut Table) {
        if let Some((expr, is_const)) = &written.default {
            table.default = self.action_with_data(expr, table);
            table.default_is_const = *is_const;
            if let Some((position, _)) = &table.default
                && table.actions[*position].table_only
            {
                self.error(expr.span, "a `@tableonly` action cannot be the default");
            }
            return;
        }
        // Without a default action the table runs core.p4's NoAction.
        if let Some(Symbol::Action(action)) = self.find("NoAction", true) {
            let action = *action;
            if !self.program.actions[action].parameters.is_empty() {
                self.error(table.span, "the action `NoAction` must have no parameters to be a table's default");
                return;
            }
            let known = table.actions.iter().position(|known| known.action == action);
            let position = known.unwrap_or_else(|| {
                table.actions.push(TableAction {
                    action,
                    bound: Vec::new(),
                    annotations: [ast::Annotation {
                        name: "defaultonly".into(),
                        values: Vec::new(),
                        text: "@defaultonly".into(),
                    }]
                    .into(),
                    default_only: true,
                    table_only: false,
                });
                table.actions.len() - 1
            });
            table.default = Some((position, Vec::new()));
        } else {
            self.error(table.span, "a table without a default action needs core.p4's action `NoAction`")
                .help("add `#include <core.p4>`, or a `default_action`");
        }
    }

    fn property(&mut self, property: &(ast::Ident, ast::Expr, bool), table: &mut Table) {
        let (name, value, _) = property;
        let checked = self.expr(value, None);
        if matches!(checked.kind, ExprKind::Broken) {
            return;
        }
        match &*name.name {
            "size" => match &checked.kind {
                ExprKind::Integer(size) if size.to_u64().is_some_and(|size| size < 1 << 32) => {
                    table.size = size.to_u64()
                }
                _ => drop(self.error(value.span, "the size of a table is a number from 0 to 2^32 - 1")),
            },
            "largest_priority_wins" => match checked.kind {
                ExprKind::Bool(wins) => table.largest_priority_wins = wins,
                _ => drop(self.error(value.span, "`largest_priority_wins` is true or false")),
            },
            "counters" | "meters" | "implementation" | "psa_implementation" | "pna_implementation"
            | "pna_direct_counter" | "pna_direct_meter" => {
                if matches!(checked.ty, Type::Object(_)) {
                    table.attached.push((name.name.clone(), checked));
                } else {
                    self.error(value.span, format!("property `{}` is an extern object", name.name));
                }
            }
            "priority_delta" => match checked.kind {
                ExprKind::Integer(delta) if delta.to_i64().is_some_and(|delta| (1..1 << 32).contains(&delta)) => {
                    table.priority_delta = delta.to_i64().unwrap_or(1);
                }
                _ => drop(self.error(value.span, "`priority_delta` is a positive number")),
            },
            "support_timeout"
            | "idle_timeout_with_auto_delete"
            | "add_on_miss"
            | "psa_idle_timeout"
            | "pna_idle_timeout"
            | "default_idle_timeout_for_data_plane_added_entries" => {
                table.attached.push((name.name.clone(), checked));
            }
            _ => {
                self.reporter
                    .warning(name.span, format!("table property `{}` is not known and has no effect", name.name));
            }
        }
    }

    fn entry(&mut self, written: &ast::Entry, table: &Table) -> Option<Entry> {
        if table.keys.is_empty() {
            self.error(written.span, "a table without keys has no entries");
            return None;
        }
        let types: Vec<Type> = table.keys.iter().map(|key| key.value.ty.clone()).collect();
        let keys = self.key_set(&written.keys, &types);
        if keys.len() != table.keys.len() {
            return None;
        }
        for (element, key) in keys.iter().zip(&table.keys) {
            let fits = match element.kind {
                ExprKind::Mask(..) => matches!(key.match_kind, MatchKind::Ternary | MatchKind::Lpm),
                ExprKind::Range(..) => key.match_kind == MatchKind::Range,
                ExprKind::Any => key.match_kind != MatchKind::Exact,
                _ => true,
            };
            if !fits {
                let kind = key.match_kind;
                self.error(element.span, format!("this does not fit a key that is matched as {kind:?}").to_lowercase());
                return None;
            }
        }
        let (action, arguments) = self.action_with_data(&written.action, table)?;
        if table.actions[action].default_only {
            self.error(written.span, "a `@defaultonly` action cannot stand in an entry");
        }
        let annotated = written.annotations.iter().find(|annotation| &*annotation.name == "priority");
        let mut priority = annotated.and_then(|annotation| annotation.values.first()?.parse().ok());
        if let Some(expr) = &written.priority {
            priority = self.constant_number(expr, "a priority").map(|value| value as i64);
        }
        let needs = |kind: MatchKind| matches!(kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional);
        if written.priority.is_some() && !table.keys.iter().any(|key| needs(key.match_kind)) {
            self.error(written.span, "a table whose keys are matched exactly or by prefix has no priorities");
        }
        for (element, key) in keys.iter().zip(&table.keys) {
            if let (ExprKind::Mask(_, mask), MatchKind::Lpm) = (&element.kind, key.match_kind)
                && let (ExprKind::Integer(mask), Type::Bit(width)) = (&mask.kind, key.value.ty.representation())
                && !is_prefix(mask, width)
            {
                self.error(element.span, "the mask of an lpm key must be a prefix").help("ones, then zeroes");
            }
        }
        let annotated = priority.is_some() && written.priority.is_none();
        Some(Entry { annotated, keys, action, arguments, priority, is_const: written.is_const, span: written.span })
    }
}

/// Stands for the name of a key that has none.
const UNNAMED: &str = "?";

/// The name of a key without `@name`: its text.
fn key_name(expr: &ast::Expr) -> String {
    match &expr.kind {
        ast::ExprKind::Name { name, .. } => name.name.to_string(),
        ast::ExprKind::Member(base, member) => format!("{}.{}", key_name(base), member.name),
        ast::ExprKind::Index(base, index) => match &index.kind {
            ast::ExprKind::Number(number) => format!("{}[{}]", key_name(base), number.value),
            _ => format!("{}[]", key_name(base)),
        },
        ast::ExprKind::Slice(base, high, low) => match (&high.kind, &low.kind) {
            (ast::ExprKind::Number(high), ast::ExprKind::Number(low)) => {
                format!("{}[{}:{}]", key_name(base), high.value, low.value)
            }
            _ => key_name(base),
        },
        ast::ExprKind::Call { callee, .. } => match &callee.kind {
            ast::ExprKind::Member(base, method) if &*method.name == "isValid" => format!("{}.$valid$", key_name(base)),
            _ => format!("{}()", key_name(callee)),
        },
        ast::ExprKind::Cast(_, value) => key_name(value),
        ast::ExprKind::Binary(ast::BinaryOp::And, left, _) => key_name(left),
        ast::ExprKind::Binary(..) => UNNAMED.to_owned(),
        _ => "key".to_owned(),
    }
}

fn same_expression(a: &Expr, b: &Expr) -> bool {
    match (&a.kind, &b.kind) {
        (ExprKind::Integer(a), ExprKind::Integer(b)) => a == b,
        (ExprKind::Bool(a), ExprKind::Bool(b)) => a == b,
        (ExprKind::Variable(a), ExprKind::Variable(b)) => a == b,
        (ExprKind::Field(a, i), ExprKind::Field(b, j)) => i == j && same_expression(a, b),
        (ExprKind::Index(a, i), ExprKind::Index(b, j)) => same_expression(a, b) && same_expression(i, j),
        (ExprKind::Slice(a, h, l), ExprKind::Slice(b, m, n)) => h == m && l == n && same_expression(a, b),
        (ExprKind::Cast(a), ExprKind::Cast(b)) => same_expression(a, b),
        _ => false,
    }
}

/// A mask of ones followed by zeroes.
fn is_prefix(mask: &num_bigint::BigInt, width: u32) -> bool {
    let zeroes = mask.trailing_zeros().unwrap_or(u64::from(width));
    let ones = u64::from(width).saturating_sub(zeroes);
    *mask == ((num_bigint::BigInt::from(1) << ones) - 1) << zeroes
}
