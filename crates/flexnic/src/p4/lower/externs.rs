//! Functions and methods of the architectures.

use num_traits::ToPrimitive;

use super::expressions::{Value, part_count, part_type};
use super::places::scalar_width;
use super::{Lower, Object};
use crate::p4::ast::Direction;
use crate::p4::dma::Direction as FlexDirection;
use crate::p4::hir::{Call, Expr, ExprKind};
use crate::p4::ir::{Datum, ExternFunction, ExternOp, HashKind, ObjectInfo, ObjectKind, Op, Operand, Slot};
use crate::p4::source::Name;
use crate::p4::types::Type;

/// Port that means drop in v1model.
pub(crate) const DROP_PORT: u64 = 511;

impl Lower<'_> {
    /// Widths of the scalars of a type.
    pub(super) fn flat_widths(&self, ty: &Type) -> Vec<u32> {
        let ty = self.concrete(ty);
        match scalar_width(&ty) {
            Some(width) => vec![width],
            None => (0..part_count(&ty)).flat_map(|number| self.flat_widths(&part_type(&ty, number))).collect(),
        }
    }

    /// The scalars of a value in order.
    pub(super) fn flatten(&mut self, value: &Value, ty: &Type, into: &mut Vec<Datum>) {
        if let Some(width) = scalar_width(ty) {
            let value = match value {
                Value::Scalar(operand) => operand.clone(),
                Value::Place(place) => self.read(place),
                _ => super::evaluate::constant_operand(&num_bigint::BigInt::ZERO, width),
            };
            into.push(Datum { value, varbit: matches!(ty.representation(), Type::Varbit(_)) });
            return;
        }
        for number in 0..part_count(ty) {
            let part = self.part(value, number);
            self.flatten(&part, &part_type(ty, number), into);
        }
    }

    fn input(&mut self, expr: &Expr) -> Vec<Datum> {
        let ty = self.concrete(&expr.ty);
        let value = self.value(expr);
        let mut data = Vec::new();
        self.flatten(&value, &ty, &mut data);
        data
    }

    pub(super) fn call_extern_function(&mut self, index: usize, call: &Call, result: &Type) -> Value {
        let name = self.program.extern_functions[index].name.clone();
        let argument = |at: usize| call.arguments.get(at).and_then(|argument| argument.value.as_ref());
        match &*name {
            "verify" => {
                let (Some(check), Some(error)) = (argument(0), argument(1)) else { return Value::Zero };
                let (check, error) = (self.scalar(check), self.scalar(error));
                self.require_or(check, error);
                return Value::Zero;
            }
            "static_assert" => {
                let holds = argument(0).is_some_and(|check| matches!(self.evaluate(check).kind, ExprKind::Bool(true)));
                if !holds {
                    let text = argument(1).map(|text| self.evaluate(text).kind);
                    let text = if let Some(ExprKind::Text(text)) = text { format!(": {text}") } else { String::new() };
                    self.reporter.error(call.span, format!("a static assertion does not hold{text}"));
                }
                return Value::Scalar(Operand::small(1, 1));
            }
            "mark_to_drop" => {
                self.mark_to_drop(argument(0));
                return Value::Zero;
            }
            _ => {}
        }
        let number = |lower: &Self, at: usize| {
            argument(at).and_then(|argument| lower.known_number(argument)).and_then(|value| value.to_u64()).unwrap_or(0)
        };
        let from_egress = self.hooks.in_egress;
        let list = |lower: &Self, at: usize| Some(number(lower, at) as u8);
        let hash = |lower: &Self, at: usize| hash_kind(number(lower, at));
        let function = match &*name {
            "random" => ExternFunction::Random,
            "digest" => return self.digest_call(call, argument(1), result),
            "hash" => ExternFunction::Hash(hash(self, 1)),
            "verify_checksum" => ExternFunction::VerifyChecksum { kind: hash(self, 3), with_payload: false },
            "verify_checksum_with_payload" => {
                ExternFunction::VerifyChecksum { kind: hash(self, 3), with_payload: true }
            }
            "update_checksum" => ExternFunction::UpdateChecksum { kind: hash(self, 3), with_payload: false },
            "update_checksum_with_payload" => {
                ExternFunction::UpdateChecksum { kind: hash(self, 3), with_payload: true }
            }
            "clone" | "clone3" => ExternFunction::Clone { from_egress, list: None },
            "clone_preserving_field_list" => ExternFunction::Clone { from_egress, list: list(self, 2) },
            "resubmit" => ExternFunction::Resubmit(None),
            "resubmit_preserving_field_list" => ExternFunction::Resubmit(list(self, 0)),
            "recirculate" => ExternFunction::Recirculate(None),
            "recirculate_preserving_field_list" => ExternFunction::Recirculate(list(self, 0)),
            "truncate" => ExternFunction::Truncate,
            "assert" => ExternFunction::Assert,
            "assume" => ExternFunction::Assume,
            "log_msg" => ExternFunction::LogMessage(self.text(argument(0))),
            "drop_packet" => ExternFunction::DropPacket,
            "send_to_port" => ExternFunction::SendToPort,
            "mirror_packet" => ExternFunction::MirrorPacket,
            "add_entry" => ExternFunction::AddEntry { action: self.text(argument(0)) },
            "allocate_flow_id" => ExternFunction::AllocateFlowId,
            "set_entry_expire_time" => ExternFunction::SetEntryExpireTime,
            "restart_expire_timer" => ExternFunction::RestartExpireTimer,
            other => match verb(other) {
                Some(verb) => verb,
                None => {
                    self.unsupported(call.span, &format!("the function `{name}` of an architecture"));
                    return Value::Zero;
                }
            },
        };
        self.extern_op(function, None, call, result)
    }

    fn digest_call(&mut self, call: &Call, data: Option<&Expr>, result: &Type) -> Value {
        let object = data.map(|data| self.digest_object(&data.ty));
        self.extern_op(ExternFunction::Digest, object, call, result)
    }

    /// v1model has no digest objects: controllers know a digest by the type of its data.
    fn digest_object(&mut self, ty: &Type) -> usize {
        let element = self.concrete(ty);
        let path = match &element {
            Type::Struct(of) if of.id != 0 => of.name.clone(),
            _ => Name::from(format!("digest_{}", self.ir.objects.len())),
        };
        let known = self.ir.objects.iter().position(|object| {
            object.path == path && matches!(&object.kind, ObjectKind::Digest { element: of } if *of == element)
        });
        known.unwrap_or_else(|| {
            self.ir.objects.push(ObjectInfo {
                annotations: Default::default(),
                path,
                kind: ObjectKind::Digest { element },
            });
            self.ir.objects.len() - 1
        })
    }

    fn text(&self, argument: Option<&Expr>) -> Name {
        match argument.map(|argument| self.evaluate(argument).kind) {
            Some(ExprKind::Text(text)) => text,
            _ => Name::from(""),
        }
    }

    /// The field of standard metadata that tells of a wrong checksum.
    fn checksum_error(&mut self) -> Option<Slot> {
        let metadata = self.hooks.standard_metadata.as_ref()?;
        let number = metadata.ty.fields().iter().position(|field| &*field.name == "checksum_error")?;
        Some(metadata.field(number).slot())
    }

    fn mark_to_drop(&mut self, argument: Option<&Expr>) {
        let place = match argument {
            Some(argument) => self.place(argument),
            None => self.hooks.standard_metadata.clone(),
        };
        let Some(place) = place else { return };
        for (name, value) in [("egress_spec", DROP_PORT), ("mcast_grp", 0)] {
            if let Some(number) = place.ty.fields().iter().position(|field| &*field.name == name) {
                let field = place.field(number);
                let width = field.slot().width;
                self.store(&field, Value::Scalar(Operand::small(value, width)));
            }
        }
    }

    pub(super) fn call_extern_method(&mut self, object: &Expr, method: usize, call: &Call, result: &Type) -> Value {
        let Type::Object(of) = &object.ty else {
            return Value::Zero;
        };
        let name = self.program.externs[of.declaration].methods[method].name.clone();
        if self.is_packet(object) {
            return self.packet_method(&name, call, result);
        }
        let Some(instance) = self.object_of(object) else { return Value::Zero };
        let Object::Extern { name: kind, index } = &*instance else {
            return Value::Zero;
        };
        let function = match (&**kind, &*name) {
            ("counter" | "Counter", "count") => ExternFunction::CounterCount,
            // The table counts its hits.
            ("direct_counter" | "DirectCounter", "count") => return Value::Zero,
            ("meter", "execute_meter") | ("Meter", "execute") => ExternFunction::MeterExecute,
            ("direct_meter", "read") | ("DirectMeter", "execute") => ExternFunction::DirectMeterRead,
            ("register" | "Register", "read") => ExternFunction::RegisterRead,
            ("register" | "Register", "write") => ExternFunction::RegisterWrite,
            ("Hash", "get_hash") => match self.ir.objects[*index].kind {
                ObjectKind::Hash(kind) => ExternFunction::Hash(kind),
                _ => return Value::Zero,
            },
            ("Checksum16", "get") => ExternFunction::Hash(HashKind::Checksum16),
            ("InternetChecksum", "clear") => ExternFunction::ChecksumClear,
            ("InternetChecksum", "add") => ExternFunction::ChecksumAdd,
            ("InternetChecksum", "subtract") => ExternFunction::ChecksumSubtract,
            ("InternetChecksum", "get") => ExternFunction::ChecksumGet,
            ("InternetChecksum", "get_state") => ExternFunction::ChecksumState,
            ("InternetChecksum", "set_state") => ExternFunction::ChecksumSetState,
            ("Random", "read") => ExternFunction::Random,
            ("Digest", "pack") => ExternFunction::Digest,
            (kind, name) => {
                self.unsupported(call.span, &format!("method `{name}` of extern `{kind}`"));
                return Value::Zero;
            }
        };
        self.extern_op(function, Some(*index), call, result)
    }

    /// Inputs are all arguments but `out`; outputs are those that are written and the result.
    fn extern_op(&mut self, function: ExternFunction, object: Option<usize>, call: &Call, result: &Type) -> Value {
        let (mut inputs, mut targets, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
        for argument in &call.arguments {
            let Some(value) = &argument.value else {
                inputs.push(Vec::new());
                continue;
            };
            if argument.direction != Direction::Out {
                let data = if argument.ty == Type::Text { Vec::new() } else { self.input(value) };
                inputs.push(data);
            }
            if matches!(argument.direction, Direction::Out | Direction::InOut) {
                let Some(target) = self.target(value) else { continue };
                let ty = self.concrete(&value.ty);
                let place = self.allocate(&ty);
                let old = self.value_at(&target.place);
                if target.bits.is_none() {
                    self.store(&place, old);
                }
                self.output_slots(&place, &mut outputs);
                targets.push((target, place));
            }
        }
        if matches!(function, ExternFunction::VerifyChecksum { .. }) {
            outputs.extend(self.checksum_error());
        }
        let place = (*result != Type::Void).then(|| self.allocate(result));
        if let Some(place) = &place {
            self.output_slots(place, &mut outputs);
        }
        self.op(Op::Extern(ExternOp { function, object, inputs, outputs }));
        for (target, place) in targets {
            let value = self.value_at(&place);
            self.store_target(&target, value);
        }
        place.map_or(Value::Zero, |place| self.value_at(&place))
    }

    fn output_slots(&mut self, place: &super::Place, outputs: &mut Vec<Slot>) {
        if scalar_width(&place.ty).is_some() {
            outputs.push(place.slot());
            return;
        }
        for number in 0..part_count(&place.ty) {
            let part =
                if matches!(place.ty, Type::Stack(..)) { place.element(number as u32) } else { place.field(number) };
            self.output_slots(&part, outputs);
        }
    }
}

/// Verbs of flexnic.p4.
fn verb(name: &str) -> Option<ExternFunction> {
    Some(match name {
        "set_mark" => ExternFunction::SetMark,
        "set_flags" => ExternFunction::SetFlags,
        "set_queue" => ExternFunction::SetQueue,
        "dma" => ExternFunction::Dma(None),
        "dma_write" => ExternFunction::Dma(Some(FlexDirection::ToMemory)),
        "dma_read" => ExternFunction::Dma(Some(FlexDirection::FromMemory)),
        "refuse" => ExternFunction::Refuse,
        "discard" => ExternFunction::DropPacket,
        "consume" => ExternFunction::Consume,
        "send_to" => ExternFunction::SendToPort,
        "copy_to" => ExternFunction::CopyTo,
        _ => return None,
    })
}

/// Members of v1model's `HashAlgorithm` in their order.
fn hash_kind(number: u64) -> HashKind {
    match number {
        0 | 1 => HashKind::Crc32,
        2 | 3 => HashKind::Crc16,
        4 => HashKind::Random,
        5 => HashKind::Identity,
        6 => HashKind::Checksum16,
        _ => HashKind::Xor16,
    }
}
