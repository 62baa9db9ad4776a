//! Objects: what constructors make when the program is put together.

use std::rc::Rc;
use std::sync::Arc;

use num_traits::ToPrimitive;

use super::{Binding, Lower};
use crate::p4::hir::{Annotations, Body, Construct, Expr, ExprKind, Local, VarId};
use crate::p4::ir::{HashKind, ObjectInfo, ObjectKind};
use crate::p4::source::Name;
use crate::p4::types::{self, Type};

/// An object that exists once.
pub(crate) type ObjectRef = Rc<Object>;

/// An object.
#[derive(Debug)]
pub(crate) enum Object {
    /// Extern: name of its type, index among the program's objects.
    Extern {
        name: Name,
        index: usize,
    },
    Block(BlockInstance),
    Package {
        name: Name,
        arguments: Vec<ObjectRef>,
    },
    /// `packet_in` and `packet_out`.
    Packet,
    /// An argument that is no object, or one that is left out.
    Nothing,
}

/// An instance of a parser or control.
#[derive(Debug)]
pub(crate) struct BlockInstance {
    pub declaration: usize,
    /// Name for the control plane.
    pub path: String,
    pub constructor: Vec<(VarId, Bound)>,
    pub instances: Vec<(VarId, ObjectRef)>,
}

/// The argument of a constructor.
#[derive(Debug)]
pub(crate) enum Bound {
    Value(Expr),
    Object(ObjectRef),
}

impl Lower<'_> {
    /// Makes an instance and binds its name.
    pub(super) fn bind_instance(&mut self, local: &Local) {
        if let Local::Instance { variable, path, construct, annotations } = local {
            let object = self.construct(construct, path, annotations);
            self.bindings.insert(*variable, Binding::Object(object));
        }
    }

    pub(super) fn construct(&mut self, construct: &Construct, name: &str, annotations: &Annotations) -> ObjectRef {
        let Type::Object(of) = &construct.ty else {
            return Rc::new(Object::Nothing);
        };
        match of.kind {
            types::ObjectKind::Package => {
                let arguments = construct.arguments.iter().map(|argument| self.object_argument(argument)).collect();
                Rc::new(Object::Package { name: of.name.clone(), arguments })
            }
            types::ObjectKind::Extern => {
                let path = self.full_path(name);
                let index = self.ir.objects.len();
                let kind = self.extern_kind(&of.name, &of.arguments, construct);
                self.ir.objects.push(ObjectInfo { annotations: annotations.clone(), path: path.into(), kind });
                Rc::new(Object::Extern { name: of.name.clone(), index })
            }
            types::ObjectKind::Parser | types::ObjectKind::Control => {
                self.construct_block(of.declaration, construct, name)
            }
        }
    }

    fn object_argument(&mut self, argument: &Expr) -> ObjectRef {
        match self.constant_argument(argument) {
            Bound::Object(object) => object,
            Bound::Value(_) => Rc::new(Object::Nothing),
        }
    }

    fn constant_argument(&mut self, argument: &Expr) -> Bound {
        match &argument.kind {
            ExprKind::Construct(construct) => {
                // A block that is given to the architecture is called by its own name.
                let name = match &construct.ty {
                    Type::Object(of) => of.name.to_string(),
                    _ => String::new(),
                };
                Bound::Object(self.construct(construct, &name, &Arc::default()))
            }
            ExprKind::Variable(variable) => match self.bindings.get(variable).cloned() {
                Some(Binding::Object(object)) => Bound::Object(object),
                Some(Binding::Value(value)) => Bound::Value(value),
                _ => Bound::Value(argument.clone()),
            },
            _ => Bound::Value(self.evaluate(argument)),
        }
    }

    fn construct_block(&mut self, declaration: usize, construct: &Construct, name: &str) -> ObjectRef {
        let block = &self.program.blocks[declaration];
        let path = self.full_path(name);
        let mut constructor = Vec::new();
        for (parameter, argument) in block.constructor.iter().zip(&construct.arguments) {
            constructor.push((parameter.variable, self.constant_argument(argument)));
        }
        for (variable, bound) in &constructor {
            let binding = match bound {
                Bound::Value(value) => Binding::Value(value.clone()),
                Bound::Object(object) => Binding::Object(object.clone()),
            };
            self.bindings.insert(*variable, binding);
        }
        let outer = std::mem::replace(&mut self.path, path.clone());
        let mut instances = Vec::new();
        if !matches!(block.body, Body::None) {
            for local in &block.locals {
                if let Local::Instance { variable, path, construct, annotations } = local {
                    let object = self.construct(construct, path, annotations);
                    self.bindings.insert(*variable, Binding::Object(object.clone()));
                    instances.push((*variable, object));
                }
            }
        }
        self.path = outer;
        Rc::new(Object::Block(BlockInstance { declaration, path, constructor, instances }))
    }

    /// Name for the control plane: the enclosing block in front, unless `@name` begins with a dot.
    pub(super) fn full_path(&self, name: &str) -> String {
        match name.strip_prefix('.') {
            Some(global) => global.to_owned(),
            None if self.path.is_empty() => name.to_owned(),
            None => format!("{}.{name}", self.path),
        }
    }

    fn extern_kind(&mut self, name: &str, arguments: &[Type], construct: &Construct) -> ObjectKind {
        let number = |lower: &mut Self, at: usize| match construct
            .arguments
            .get(at)
            .map(|argument| lower.evaluate(argument).kind)
        {
            Some(ExprKind::Integer(value)) => value.to_u64().unwrap_or(0),
            _ => 0,
        };
        let size = number(self, 0);
        if matches!(name, "counter" | "Counter" | "meter" | "Meter" | "register" | "Register") && size > 1 << 28 {
            let span = construct.arguments[0].span;
            self.reporter.error(span, format!("{size} elements are more than this NIC's memory holds"));
            return ObjectKind::Other;
        }
        match name {
            "counter" | "Counter" => {
                let kind = number(self, 1);
                ObjectKind::Counter { size, packets: kind != 1, bytes: kind != 0 }
            }
            "direct_counter" | "DirectCounter" => ObjectKind::DirectCounter { packets: size != 1, bytes: size != 0 },
            "meter" | "Meter" => ObjectKind::Meter { size, bytes: number(self, 1) == 1 },
            "direct_meter" | "DirectMeter" => ObjectKind::DirectMeter { bytes: size == 1 },
            "register" | "Register" => {
                let element = arguments.first().cloned().unwrap_or(Type::Bit(32));
                let widths = self.flat_widths(&element);
                let initial = match construct.arguments.get(1).map(|value| self.evaluate(value).kind) {
                    Some(ExprKind::Integer(value)) => vec![super::evaluate::limbs(&value, widths[0])],
                    _ => Vec::new(),
                };
                ObjectKind::Register { size, widths, initial, element }
            }
            "Hash" => {
                let kinds =
                    [HashKind::Crc32, HashKind::Crc16, HashKind::Crc32, HashKind::Checksum16, HashKind::Identity];
                ObjectKind::Hash(kinds.get(size as usize).copied().unwrap_or(HashKind::Crc32))
            }
            "InternetChecksum" | "Checksum16" => ObjectKind::Checksum,
            "Random" => ObjectKind::Random { low: size, high: number(self, 1) },
            "Digest" => ObjectKind::Digest { element: arguments.first().cloned().unwrap_or(Type::Unknown) },
            "action_profile" | "ActionProfile" => ObjectKind::Profile { has_selector: false, size },
            "action_selector" | "ActionSelector" => ObjectKind::Profile { has_selector: true, size: number(self, 1) },
            _ => {
                let span = construct.arguments.first().map_or(Default::default(), |argument| argument.span);
                self.unsupported(span, &format!("extern `{name}`"));
                ObjectKind::Other
            }
        }
    }
}
