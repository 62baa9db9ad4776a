//! Tables.

use super::{NameKind, Parsed, Parser};
use crate::p4::ast::{
    ActionRef, Annotation, Declaration, DeclarationKind, Entry, Expr, ExprKind, KeyElement, TableDecl,
};
use crate::p4::source::Span;

impl Parser<'_> {
    pub(super) fn table(&mut self, annotations: Vec<Annotation>, start: Span) -> Parsed<Declaration> {
        self.next();
        let name = self.ident()?;
        self.expect("{")?;
        let mut table = TableDecl {
            keys: Vec::new(),
            actions: Vec::new(),
            default: None,
            entries: None,
            properties: Vec::new(),
            has_actions: false,
        };
        while !self.eat("}") {
            self.property(&mut table)?;
        }
        self.declare(&name.name, NameKind::Other);
        Ok(self.finish(annotations, name, DeclarationKind::Table(Box::new(table)), start))
    }

    fn property(&mut self, table: &mut TableDecl) -> Parsed<()> {
        self.annotations()?;
        let is_const = self.eat("const");
        let name = self.ident()?;
        self.expect("=")?;
        match &*name.name {
            "key" => {
                self.expect("{")?;
                while !self.eat("}") {
                    table.keys.push(self.key_element()?);
                }
                return Ok(());
            }
            "actions" => {
                self.expect("{")?;
                table.has_actions = true;
                while !self.eat("}") {
                    let annotations = self.annotations()?;
                    let action = self.expression()?;
                    self.expect(";")?;
                    table.actions.push(ActionRef { action, annotations });
                }
                return Ok(());
            }
            "entries" => {
                let is_empty = self.peek_at(1).is("}");
                if table.keys.is_empty() && !is_empty {
                    return self.fail_at(name.span, "the entries of a table stand after its keys".to_owned());
                }
                self.expect("{")?;
                let mut found = Vec::new();
                while !self.eat("}") {
                    found.push(self.entry()?);
                }
                if table.entries.is_some() {
                    return self.fail_at(name.span, "this table has two lists of entries".to_owned());
                }
                table.entries = Some((found, is_const));
                return Ok(());
            }
            _ => {}
        }
        let value = self.expression()?;
        self.expect(";")?;
        if &*name.name == "default_action" {
            if !table.has_actions {
                return self.fail_at(name.span, "the default action of a table stands after its actions".to_owned());
            }
            if table.default.is_some() {
                return self.fail_at(name.span, "this table has two default actions".to_owned());
            }
            table.default = Some((value, is_const));
        } else {
            table.properties.push((name, value, is_const));
        }
        Ok(())
    }

    fn key_element(&mut self) -> Parsed<KeyElement> {
        let value = self.expression()?;
        self.expect(":")?;
        let match_kind = self.ident()?;
        let annotations = self.annotations()?;
        self.expect(";")?;
        Ok(KeyElement { value, match_kind, annotations })
    }

    fn entry(&mut self) -> Parsed<Entry> {
        let start = self.peek().span;
        let mut annotations = self.annotations()?;
        let is_const = self.eat("const");
        let mut priority = None;
        if self.is("priority") && self.peek_at(1).is("=") {
            self.next();
            self.next();
            priority = Some(self.expression()?);
            self.expect(":")?;
        }
        let keys = self.set()?;
        self.expect(":")?;
        let action = self.entry_action()?;
        annotations.extend(self.annotations()?);
        let end = self.expect(";")?;
        Ok(Entry { keys, action, priority, annotations, is_const, span: start.to(end) })
    }

    fn entry_action(&mut self) -> Parsed<Expr> {
        let action = self.expression()?;
        match &action.kind {
            ExprKind::Call { .. } | ExprKind::Name { .. } => Ok(action),
            _ => self.fail_at(action.span, "expected an action".to_owned()),
        }
    }
}
