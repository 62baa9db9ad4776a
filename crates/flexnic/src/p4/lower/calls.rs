//! Calls, inlined.

use super::assign::Target;
use super::expressions::{Value, has_call, is_union};
use super::objects::{BlockInstance, Bound, Object, ObjectRef};
use super::places::Place;
use super::{Binding, Flow, Lower};
use crate::p4::ast::{BinaryOp, Direction};
use crate::p4::hir::{Body, BuiltIn, Call, CallArgument, Callee, Expr, ExprKind, Local, Parameter};
use crate::p4::ir::Operand;
use crate::p4::types::{Substitution, Type};

/// A parameter's storage and where it is copied to at the end.
struct CopyOut {
    from: Place,
    to: Target,
}

impl Lower<'_> {
    pub(super) fn call(&mut self, call: &Call, result: &Type) -> Value {
        if self.too_large {
            return Value::Zero;
        }
        match &call.callee {
            Callee::Function(index) => self.call_function(*index, call, result),
            Callee::Action(index) => {
                let action = &self.program.actions[*index];
                self.inline(&action.parameters, &call.arguments, |lower| lower.statements(&action.body));
                Value::Zero
            }
            Callee::ExternFunction(index) => self.call_extern_function(*index, call, result),
            Callee::ExternMethod(object, method) => self.call_extern_method(object, *method, call, result),
            Callee::Block(object) => {
                self.apply_block(object, call);
                Value::Zero
            }
            Callee::Table(table) => {
                self.apply(*table);
                Value::Zero
            }
            Callee::BuiltIn(built_in, base) => self.built_in(*built_in, base, &call.arguments),
        }
    }

    fn call_function(&mut self, index: usize, call: &Call, result: &Type) -> Value {
        let function = &self.program.functions[index];
        let types: Vec<Type> = call.type_arguments.iter().map(|ty| self.concrete(ty)).collect();
        let numbers = function.signature.type_parameters.iter().copied();
        let inner: Substitution = numbers.zip(types).collect();
        let place = (*result != Type::Void && function.signature.result != Type::Void).then(|| self.allocate(result));
        let outer = self.types.clone();
        self.inline_with(&function.signature.parameters, &call.arguments, inner, |lower| {
            if let Some(place) = &place {
                lower.clear(place);
            }
            lower.flow.result = place.clone();
            lower.statements(&function.body);
        });
        self.types = outer;
        match place {
            Some(place) => self.value_at(&place),
            None => Value::Zero,
        }
    }

    pub(super) fn inline(
        &mut self,
        parameters: &[Parameter],
        arguments: &[CallArgument],
        body: impl FnOnce(&mut Self),
    ) {
        let types = self.types.clone();
        self.inline_with(parameters, arguments, types, body);
    }

    /// Copies arguments in, lowers the body, copies results out, also on `exit`.
    fn inline_with(
        &mut self,
        parameters: &[Parameter],
        arguments: &[CallArgument],
        inner: Substitution,
        body: impl FnOnce(&mut Self),
    ) {
        let mut values = Vec::new();
        for (number, argument) in arguments.iter().enumerate() {
            let later = arguments[number + 1..].iter().filter_map(|later| later.value.as_ref()).any(has_call);
            values.push(self.argument(argument, later));
        }
        let outer_types = std::mem::replace(&mut self.types, inner);
        let mut copies = Vec::new();
        for (parameter, value) in parameters.iter().zip(values) {
            if let Some(copy) = self.bind_parameter(parameter, value) {
                copies.push(copy);
            }
        }
        let (leave, exit) = (self.new_block(), self.new_block());
        let reject = self.new_block();
        let flow = Flow { exit, leave, reject, result: None, break_to: None, continue_to: None };
        let outer = std::mem::replace(&mut self.flow, flow);
        body(self);
        self.flow = outer;
        self.types = outer_types;
        self.continue_in(leave);
        let normal = self.new_block();
        for (start, to) in [(leave, normal), (exit, self.flow.exit), (reject, self.flow.reject)] {
            self.current = start;
            for copy in &copies {
                let value = self.value_at(&copy.from);
                self.store_target(&copy.to, value);
            }
            self.jump(to);
        }
        self.current = normal;
    }

    /// The value or place of an argument, evaluated before any parameter is written.
    fn argument(&mut self, argument: &CallArgument, later: bool) -> Option<Given> {
        let value = argument.value.as_ref()?;
        if let Some(object) = self.object_of(value) {
            return Some(Given::Object(object));
        }
        if matches!(argument.direction, Direction::Out | Direction::InOut) {
            let target = self.target(value)?;
            let old = if argument.direction == Direction::InOut {
                let old = self.read_bits(&target);
                Some(if later { self.kept(old) } else { old })
            } else {
                None
            };
            return Some(Given::Target(target, old));
        }
        let known = self.evaluate(value);
        let compile_time = argument.direction == Direction::None && matches!(argument.ty, Type::Integer | Type::Text);
        if compile_time {
            return Some(Given::Known(known));
        }
        let value = self.value(value);
        Some(Given::Value(if later { self.kept(value) } else { value }))
    }

    fn read_bits(&mut self, target: &Target) -> Value {
        let value = self.value_at(&target.place);
        match (target.bits, value) {
            (Some((low, width)), Value::Scalar(from)) => {
                let to = self.temporary(width);
                self.op(crate::p4::ir::Op::Slice { to, from, low });
                Value::Scalar(Operand::Slot(to))
            }
            (_, value) => value,
        }
    }

    fn bind_parameter(&mut self, parameter: &Parameter, given: Option<Given>) -> Option<CopyOut> {
        let variable = parameter.variable;
        match given {
            Some(Given::Object(object)) => {
                self.bindings.insert(variable, Binding::Object(object));
                None
            }
            Some(Given::Known(value)) => {
                self.bindings.insert(variable, Binding::Value(value));
                None
            }
            Some(Given::Value(value)) => {
                let place = self.storage(variable, &parameter.ty);
                self.store(&place, value);
                self.bindings.insert(variable, Binding::Place(place));
                None
            }
            Some(Given::Target(target, old)) => {
                let place = self.storage(variable, &parameter.ty);
                self.store(&place, old.unwrap_or(Value::Zero));
                self.bindings.insert(variable, Binding::Place(place.clone()));
                Some(CopyOut { from: place, to: target })
            }
            None => {
                let place = self.storage(variable, &parameter.ty);
                self.clear(&place);
                self.bindings.insert(variable, Binding::Place(place));
                None
            }
        }
    }

    /// The object that an expression names.
    pub(super) fn object_of(&mut self, expr: &Expr) -> Option<ObjectRef> {
        match &expr.kind {
            ExprKind::Variable(variable) => match self.bindings.get(variable) {
                Some(Binding::Object(object)) => Some(object.clone()),
                _ => None,
            },
            ExprKind::Construct(construct) => {
                let name = match &construct.ty {
                    Type::Object(of) => of.name.to_string(),
                    _ => String::new(),
                };
                Some(self.construct(construct, &name, &Default::default()))
            }
            _ => None,
        }
    }

    fn apply_block(&mut self, object: &Expr, call: &Call) {
        let Some(object) = self.object_of(object) else { return };
        let Object::Block(instance) = &*object else { return };
        let parameters = &self.program.blocks[instance.declaration].parameters;
        self.inline(parameters, &call.arguments, |lower| lower.block_body(&object));
    }

    /// The body of a parser or control whose parameters are bound.
    pub(super) fn block_body(&mut self, object: &ObjectRef) {
        let Object::Block(instance) = &**object else { return };
        self.bind_block(instance);
        let block = &self.program.blocks[instance.declaration];
        let outer = std::mem::replace(&mut self.path, instance.path.clone());
        for local in &block.locals {
            if let Local::Variable { variable, ty, value, .. } = local {
                let value = value.as_ref().map_or(Value::Zero, |value| self.value(value));
                let place = self.storage(*variable, ty);
                self.bindings.insert(*variable, Binding::Place(place.clone()));
                self.store(&place, value);
            }
        }
        match &block.body {
            Body::Control(statements) => self.statements(statements),
            Body::Parser(states) => self.parser_states(states),
            Body::None => {}
        }
        self.path = outer;
    }

    fn bind_block(&mut self, instance: &BlockInstance) {
        for (variable, bound) in &instance.constructor {
            let binding = match bound {
                Bound::Value(value) => Binding::Value(value.clone()),
                Bound::Object(object) => Binding::Object(object.clone()),
            };
            self.bindings.insert(*variable, binding);
        }
        for (variable, object) in &instance.instances {
            self.bindings.insert(*variable, Binding::Object(object.clone()));
        }
    }

    fn built_in(&mut self, built_in: BuiltIn, base: &Expr, arguments: &[CallArgument]) -> Value {
        if built_in == BuiltIn::IsValid {
            let Some(place) = self.place(base) else {
                return Value::Zero;
            };
            return Value::Scalar(self.is_valid(&place));
        }
        let Some(target) = self.target(base) else {
            return Value::Zero;
        };
        let place = &target.place;
        let count = arguments.first().and_then(|argument| argument.value.as_ref());
        let count = count.and_then(|count| self.known_number(count)).and_then(|count| u32::try_from(&count).ok());
        match built_in {
            BuiltIn::SetValid => self.write(&place.valid(), Operand::small(1, 1)),
            BuiltIn::SetInvalid => self.write(&place.valid(), Operand::small(0, 1)),
            BuiltIn::PushFront => self.push_front(place, count.unwrap_or(0)),
            BuiltIn::PopFront => self.pop_front(place, count.unwrap_or(0)),
            BuiltIn::IsValid => {}
        }
        if let Some((union, number)) = &target.union {
            match built_in {
                BuiltIn::SetInvalid => (0..union.field_count())
                    .for_each(|other| self.write(&union.field(other).valid(), Operand::small(0, 1))),
                _ => self.invalidate_others(union, *number),
            }
        }
        Value::Zero
    }

    /// A header is valid, or one of a union's headers is.
    pub(super) fn is_valid(&mut self, place: &Place) -> Operand {
        if !is_union(&place.ty) {
            return self.read(&place.valid());
        }
        let mut any = Operand::small(0, 1);
        for number in 0..place.field_count() {
            let valid = self.read(&place.field(number).valid());
            any = self.binary_op(BinaryOp::Or, any, valid, false);
        }
        any
    }

    fn push_front(&mut self, stack: &Place, by: u32) {
        let count = stack.count();
        for number in (by..count).rev() {
            self.copy(&stack.element(number), &stack.element(number - by));
        }
        for number in 0..by.min(count) {
            self.clear(&stack.element(number));
        }
        let next = self.read(&stack.next());
        let moved = self.binary_op(BinaryOp::Add, next, Operand::small(u64::from(by.min(count)), 32), false);
        let limit = Operand::small(u64::from(count), 32);
        let fits = self.binary_op(BinaryOp::LessEqual, moved.clone(), limit.clone(), false);
        let to = self.temporary(32);
        self.op(crate::p4::ir::Op::Select { to, condition: fits, yes: moved, no: limit });
        self.write(&stack.next(), Operand::Slot(to));
    }

    fn pop_front(&mut self, stack: &Place, by: u32) {
        let count = stack.count();
        for number in 0..count {
            if number.saturating_add(by) < count {
                self.copy(&stack.element(number), &stack.element(number + by));
            } else {
                self.clear(&stack.element(number));
            }
        }
        let next = self.read(&stack.next());
        let by = Operand::small(u64::from(by), 32);
        let moved = self.binary_op(BinaryOp::SubSat, next, by, false);
        self.write(&stack.next(), moved);
    }
}

/// An argument, evaluated.
enum Given {
    Value(Value),
    /// Where an `out` or `inout` argument goes, and its value before.
    Target(Target, Option<Value>),
    Known(Expr),
    Object(ObjectRef),
}
