//! Statements.

use super::expressions::{Value, has_call};
use super::{Binding, Flow, Lower};
use crate::p4::ast::BinaryOp;
use crate::p4::hir::{ActionCase, Expr, ExprKind, Statement, SwitchCase};
use crate::p4::ir::{BlockId, Operand, Terminator};
use crate::p4::types::Type;

impl Lower<'_> {
    pub(super) fn statements(&mut self, statements: &[Statement]) {
        for statement in statements {
            if self.too_large {
                return;
            }
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Assign { target, operator, value } => self.assign(target, *operator, value),
            Statement::Call(call) => {
                self.call(call, &Type::Void);
            }
            Statement::If { condition, then, otherwise } => {
                let condition = self.scalar(condition);
                let (yes, no, done) = (self.new_block(), self.new_block(), self.new_block());
                self.branch(condition, yes, no);
                self.inside(yes, then, done);
                self.inside(no, otherwise, done);
                self.current = done;
            }
            Statement::Switch { value, cases } => self.switch(value, cases),
            Statement::SwitchAction { table, cases } => self.switch_action(*table, cases),
            Statement::Block(inside) => self.statements(inside),
            Statement::Declare { variable, ty, value, .. } => {
                let value = value.as_ref().map(|value| self.value(value));
                let place = self.storage(*variable, ty);
                self.bindings.insert(*variable, Binding::Place(place.clone()));
                self.store(&place, value.unwrap_or(Value::Zero));
            }
            Statement::Return(value) => {
                if let Some(value) = value {
                    let value = self.value(value);
                    if let Some(result) = self.flow.result.clone() {
                        self.store(&result, value);
                    }
                }
                self.leave_to(self.flow.leave);
            }
            Statement::Exit => self.leave_to(self.flow.exit),
            Statement::Break => self.leave_to(self.flow.break_to.unwrap_or(self.flow.leave)),
            Statement::Continue => self.leave_to(self.flow.continue_to.unwrap_or(self.flow.leave)),
            Statement::For { start, condition, update, body } => {
                self.statements(start);
                self.for_loop(condition, update, body);
            }
            Statement::ForIn { target, over, body } => self.for_in(target, over, body),
        }
    }

    /// Jumps away; what follows is never run.
    pub(super) fn leave_to(&mut self, to: BlockId) {
        self.jump(to);
        self.current = self.new_block();
    }

    fn inside(&mut self, block: BlockId, statements: &[Statement], done: BlockId) {
        self.current = block;
        self.statements(statements);
        self.jump(done);
    }

    /// Counts a round of a loop.
    pub(super) fn tick(&mut self, exhausted: BlockId) {
        let next = self.new_block();
        self.end(Terminator::Tick { next, exhausted });
        self.current = next;
    }

    fn for_loop(&mut self, condition: &Expr, update: &[Statement], body: &[Statement]) {
        let (head, round, step, done) = (self.new_block(), self.new_block(), self.new_block(), self.new_block());
        self.continue_in(head);
        self.tick(self.flow.exit);
        let condition = self.scalar(condition);
        self.branch(condition, round, done);
        self.current = round;
        self.loop_body(body, done, step);
        self.continue_in(step);
        self.statements(update);
        self.jump(head);
        self.current = done;
    }

    fn loop_body(&mut self, body: &[Statement], done: BlockId, step: BlockId) {
        let outer = self.flow.clone();
        self.flow = Flow { break_to: Some(done), continue_to: Some(step), ..outer.clone() };
        self.statements(body);
        self.flow = outer;
    }

    fn for_in(&mut self, target: &Expr, over: &Expr, body: &[Statement]) {
        let ty = self.concrete(&target.ty);
        if let ExprKind::Variable(variable) = &target.kind
            && !self.bindings.contains_key(variable)
        {
            let place = self.storage(*variable, &ty);
            self.bindings.insert(*variable, Binding::Place(place));
        }
        let Some(place) = self.place(target) else { return };
        if let ExprKind::Range(first, last) = &over.kind {
            self.for_range(&place, first, last, body);
            return;
        }
        let list = self.value(over);
        let count = match (&list, &over.ty) {
            (Value::Items(items), _) => items.len(),
            (_, Type::Stack(_, count)) => *count as usize,
            _ => 0,
        };
        // A list has few elements; the body stands once for each.
        let list = self.kept(list);
        let done = self.new_block();
        for number in 0..count {
            let item = self.part(&list, number);
            self.store(&place, item);
            let step = self.new_block();
            self.loop_body(body, done, step);
            self.continue_in(step);
        }
        self.continue_in(done);
    }

    /// `for (x in first .. last)`; the end is tested before the step, so that the last value of a type can be reached.
    fn for_range(&mut self, place: &super::Place, first: &Expr, last: &Expr, body: &[Statement]) {
        let signed = super::places::is_signed(&place.ty);
        let first = self.scalar(first);
        let last = self.scalar(last);
        let Value::Scalar(last) = self.kept(Value::Scalar(last)) else { return };
        let counter = self.allocate(&place.ty);
        let (round, step, next, done) = (self.new_block(), self.new_block(), self.new_block(), self.new_block());
        self.write(&counter, first);
        let value = self.read(&counter);
        let enter = self.binary_op(BinaryOp::LessEqual, value, last.clone(), signed);
        self.branch(enter, round, done);
        self.current = round;
        self.tick(self.flow.exit);
        let value = self.read(&counter);
        self.write(place, value);
        self.loop_body(body, done, step);
        self.continue_in(step);
        let value = self.read(&counter);
        let more = self.binary_op(BinaryOp::Less, value, last, signed);
        self.branch(more, next, done);
        self.current = next;
        let value = self.read(&counter);
        let width = value.width();
        let one = super::evaluate::constant_operand(&num_bigint::BigInt::from(1), width);
        let value = self.binary_op(BinaryOp::Add, value, one, signed);
        self.write(&counter, value);
        self.jump(round);
        self.current = done;
    }

    fn switch(&mut self, value: &Expr, cases: &[SwitchCase]) {
        let ty = self.concrete(&value.ty);
        let value = self.scalar(value);
        let done = self.new_block();
        let bodies: Vec<BlockId> = cases.iter().map(|_| self.new_block()).collect();
        let otherwise = cases.iter().position(|case| case.is_default).map_or(done, |at| bodies[at]);
        let value = match self.kept(Value::Scalar(value)) {
            Value::Scalar(value) => value,
            _ => return,
        };
        for (case, body) in cases.iter().zip(&bodies) {
            for label in &case.labels {
                debug_assert!(!has_call(label));
                let label = self.scalar(label);
                let equal = self.equal(&Value::Scalar(value.clone()), &Value::Scalar(label), &ty);
                let next = self.new_block();
                self.branch(equal, *body, next);
                self.current = next;
            }
        }
        self.jump(otherwise);
        for (case, body) in cases.iter().zip(bodies) {
            self.inside(body, &case.body, done);
        }
        self.current = done;
    }

    fn switch_action(&mut self, table: usize, cases: &[ActionCase]) {
        let (_, action) = self.apply(table);
        let actions: Vec<usize> = self.program.tables[table].actions.iter().map(|action| action.action).collect();
        let done = self.new_block();
        let bodies: Vec<BlockId> = cases.iter().map(|_| self.new_block()).collect();
        let otherwise = cases.iter().position(|case| case.is_default).map_or(done, |at| bodies[at]);
        let mut jumps = Vec::new();
        for (case, body) in cases.iter().zip(&bodies) {
            for label in &case.actions {
                if let Some(position) = actions.iter().position(|action| action == label) {
                    jumps.push((position as u64, *body));
                }
            }
        }
        self.end(Terminator::Switch { value: Operand::Slot(action), cases: jumps, otherwise });
        for (case, body) in cases.iter().zip(bodies) {
            self.inside(body, &case.body, done);
        }
        self.current = done;
    }
}
