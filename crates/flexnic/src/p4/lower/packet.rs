//! Methods of `packet_in` and `packet_out`.

use super::Lower;
use super::expressions::{Value, is_union};
use super::fields::header_place;
use super::places::{Place, scalar_width};
use crate::p4::ast::{BinaryOp, StructKind};
use crate::p4::hir::{Call, Expr, ExprKind};
use crate::p4::ir::{Op, Operand, Slot};
use crate::p4::types::Type;

impl Lower<'_> {
    pub(super) fn packet_method(&mut self, method: &str, call: &Call, result: &Type) -> Value {
        let argument = |at: usize| call.arguments.get(at).and_then(|argument| argument.value.as_ref());
        match method {
            "extract" => self.extract(argument(0), argument(1), call),
            "lookahead" => return self.lookahead(call, result),
            "advance" => {
                if let Some(bits) = argument(0) {
                    let bits = self.scalar(bits);
                    self.op(Op::Advance { bits, error: self.error });
                    self.check_error();
                }
            }
            "length" => {
                let to = self.temporary(32);
                self.op(Op::PacketLength { to });
                return Value::Scalar(Operand::Slot(to));
            }
            "emit" => {
                if let Some(value) = argument(0)
                    && let Some(place) = self.place(value)
                {
                    self.emit(&place, value);
                }
            }
            _ => self.unsupported(call.span, &format!("packet method `{method}`")),
        }
        Value::Zero
    }

    fn extract(&mut self, header: Option<&Expr>, varbit_bits: Option<&Expr>, call: &Call) {
        let Some(header) = header else {
            // `extract<T>(_)` skips a header.
            let ty = call.type_arguments.first().map(|ty| self.concrete(ty)).unwrap_or(Type::Unknown);
            let place = self.allocate(&ty);
            self.op(Op::Extract { header: header_place(&place), varbit_bits: None, error: self.error });
            self.check_error();
            return;
        };
        let Some(target) = self.target(header) else { return };
        if !target.place.ty.is_header() {
            self.reporter
                .error(header.span, format!("`{}` cannot be extracted", target.place.ty))
                .help("extract a header");
            return;
        }
        let has_varbit = target.place.ty.bits(|_| 0) != target.place.ty.bits(|width| width.max(1));
        if varbit_bits.is_some() != has_varbit {
            let message = if has_varbit {
                "a header with a varbit needs its size as a second argument"
            } else {
                "only a header with a varbit takes a size"
            };
            self.reporter.error(call.span, message);
            return;
        }
        let varbit_bits = varbit_bits.map(|bits| self.scalar(bits));
        self.op(Op::Extract { header: header_place(&target.place), varbit_bits, error: self.error });
        self.check_error();
        if let Some((union, number)) = &target.union {
            self.invalidate_others(union, *number);
        }
        if let Some(stack) = stack_of_next(header)
            && let Some(stack) = self.place(stack)
        {
            let next = self.read(&stack.next());
            let next = self.binary_op(BinaryOp::Add, next, Operand::small(1, 32), false);
            self.write(&stack.next(), next);
        }
    }

    fn lookahead(&mut self, call: &Call, result: &Type) -> Value {
        let ty = if *result == Type::Void {
            call.type_arguments.first().map(|ty| self.concrete(ty)).unwrap_or(Type::Bit(1))
        } else {
            result.clone()
        };
        let place = self.allocate(&ty);
        let mut slots = Vec::new();
        self.scalars(&place, &mut slots);
        self.op(Op::Lookahead { to: slots, error: self.error });
        self.check_error();
        self.value_at(&place)
    }

    /// The scalars of a place in order; headers become valid.
    fn scalars(&mut self, place: &Place, slots: &mut Vec<Slot>) {
        if scalar_width(&place.ty).is_some() {
            slots.push(place.slot());
            return;
        }
        if place.ty.is_header() {
            self.write(&place.valid(), Operand::small(1, 1));
        }
        if matches!(place.ty, Type::Stack(..)) {
            for number in 0..place.count() {
                self.scalars(&place.element(number), slots);
            }
            return;
        }
        for number in 0..place.field_count() {
            self.scalars(&place.field(number), slots);
        }
    }

    fn emit(&mut self, place: &Place, at: &Expr) {
        match &place.ty {
            ty if ty.is_header() => self.op(Op::Emit { header: header_place(place) }),
            Type::Stack(..) => {
                for number in 0..place.count() {
                    self.emit(&place.element(number), at);
                }
            }
            ty if is_union(ty) || ty.struct_kind() == Some(StructKind::Struct) || matches!(ty, Type::Tuple(_)) => {
                for number in 0..place.field_count() {
                    self.emit(&place.field(number), at);
                }
            }
            ty => {
                let message = format!("`{ty}` cannot be emitted");
                self.reporter.error(at.span, message).help("emit headers, stacks, unions and structs of them");
            }
        }
    }
}

/// The stack of `stack.next` and `stack.next.member`.
fn stack_of_next(expr: &Expr) -> Option<&Expr> {
    match &expr.kind {
        ExprKind::Next(stack) => Some(stack),
        ExprKind::Field(base, _) => stack_of_next(base),
        _ => None,
    }
}
