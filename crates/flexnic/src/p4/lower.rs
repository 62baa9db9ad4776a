//! Lowering: the checked program becomes blocks of simple operations. Calls are inlined with copy-in and copy-out.

mod assign;
mod calls;
mod evaluate;
mod expressions;
mod externs;
mod fields;
mod objects;
mod packet;
mod parsers;
mod places;
mod statements;
mod tables;

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::diagnostics::Reporter;
use super::hir::{Checked, Expr, VarId};
use super::ir::{Block, BlockId, Function, Ir, Op, Operand, Slot, Terminator};
use super::source::Span;
use super::types::{Substitution, Type};

pub(crate) use objects::{Object, ObjectRef};
pub(crate) use places::Place;
pub(crate) use tables::prefix_mask;

/// A program that needs more operations, or words of the frame, is refused.
const OPS_MAX: usize = 400_000;
const WORDS_MAX: u32 = 1 << 20;

/// The meaning of a variable while its block is lowered.
#[derive(Clone)]
pub(crate) enum Binding {
    Place(Place),
    Value(Expr),
    Object(ObjectRef),
}

/// Where control goes.
#[derive(Clone, Debug, Default)]
struct Flow {
    exit: BlockId,
    leave: BlockId,
    result: Option<Place>,
    break_to: Option<BlockId>,
    continue_to: Option<BlockId>,
    reject: BlockId,
}

/// Places of the architecture that calls of its functions touch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hooks {
    /// v1model's standard metadata.
    pub standard_metadata: Option<Place>,
    /// The function being lowered runs in egress.
    pub in_egress: bool,
}

pub(crate) struct Lower<'a> {
    pub program: &'a Checked,
    pub reporter: &'a mut Reporter,
    pub ir: Ir,
    pub hooks: Hooks,
    /// Error of the parser.
    pub error: Slot,
    next_word: u32,
    ops: usize,
    function: Function,
    current: BlockId,
    bindings: HashMap<VarId, Binding>,
    storage: HashMap<VarId, Vec<(Type, Place)>>,
    types: Substitution,
    path: String,
    tables: BTreeMap<(String, usize), usize>,
    sets: BTreeMap<(String, usize), usize>,
    action_paths: BTreeMap<String, usize>,
    flow: Flow,
    too_large: bool,
}

impl<'a> Lower<'a> {
    pub fn new(program: &'a Checked, reporter: &'a mut Reporter) -> Lower<'a> {
        let mut lower = Lower {
            program,
            reporter,
            ir: Ir {
                errors: program.errors.clone(),
                controller_headers: program.controller_headers.clone(),
                ..Ir::default()
            },
            hooks: Hooks::default(),
            error: Slot { word: 0, width: 16, temporary: false },
            next_word: 1,
            ops: 0,
            function: Function::default(),
            current: 0,
            bindings: HashMap::new(),
            storage: HashMap::new(),
            types: Substitution::new(),
            path: String::new(),
            tables: BTreeMap::new(),
            sets: BTreeMap::new(),
            action_paths: BTreeMap::new(),
            flow: Flow::default(),
            too_large: false,
        };
        lower.ir.global_words = 1;
        lower.bind_globals();
        lower
    }

    /// Storage that stays from one function to the next.
    pub fn global(&mut self, ty: &Type) -> Place {
        let place = self.allocate(ty);
        self.ir.global_words = self.next_word as usize;
        place
    }

    /// Lowers the parser or control of an architecture with its parameters bound to storage or objects.
    pub fn block_function(&mut self, object: &ObjectRef, bindings: Vec<Binding>) {
        let Object::Block(instance) = &**object else { return };
        let block = &self.program.blocks[instance.declaration];
        self.function = Function { name: block.name.to_string(), blocks: Vec::new() };
        self.current = self.new_block();
        let end = self.new_block();
        self.flow = Flow { exit: end, leave: end, reject: end, ..Flow::default() };
        for (parameter, binding) in block.parameters.iter().zip(bindings) {
            self.bindings.insert(parameter.variable, binding);
        }
        let object = object.clone();
        self.block_body(&object);
        self.jump(end);
        let function = std::mem::take(&mut self.function);
        self.ir.functions.push(function);
    }

    pub fn finish(mut self) -> Ir {
        self.ir.frame_words = self.next_word as usize;
        self.ir
    }

    fn new_block(&mut self) -> BlockId {
        // Calls of empty functions make blocks only, and can double with each level as well.
        self.ops += 1;
        self.too_large |= self.ops > OPS_MAX;
        self.function.blocks.push(Block { ops: Vec::new(), end: Terminator::End });
        self.function.blocks.len() - 1
    }

    fn op(&mut self, op: Op) {
        self.ops += 1;
        if self.ops > OPS_MAX || self.next_word > WORDS_MAX {
            self.too_large = true;
        }
        if !self.too_large {
            self.function.blocks[self.current].ops.push(op);
        }
    }

    /// Reports that the program is too large, once.
    pub fn check_size(&mut self) {
        if self.too_large {
            let span = self.program.blocks.last().map_or(Span::default(), |block| block.span);
            let message =
                format!("the program needs more than {OPS_MAX} operations or {WORDS_MAX} words after inlining");
            self.reporter.error(span, message).help("call large functions, actions and controls in fewer places");
        }
    }

    fn end(&mut self, end: Terminator) {
        self.function.blocks[self.current].end = end;
    }

    fn jump(&mut self, to: BlockId) {
        self.end(Terminator::Jump(to));
    }

    /// Ends the present block with a jump and continues in `next`.
    fn continue_in(&mut self, next: BlockId) {
        self.jump(next);
        self.current = next;
    }

    fn branch(&mut self, condition: Operand, yes: BlockId, no: BlockId) {
        self.end(Terminator::Branch { condition, yes, no });
    }

    fn temporary(&mut self, width: u32) -> Slot {
        let slot = Slot { word: self.next_word, width, temporary: true };
        self.next_word = self.next_word.saturating_add(slot.words() as u32).min(WORDS_MAX + 1);
        slot
    }

    fn bind_globals(&mut self) {
        for local in &self.program.globals {
            self.bind_instance(local);
        }
    }

    /// The objects that `main` was given.
    pub fn main_arguments(&mut self) -> Option<(String, Vec<ObjectRef>)> {
        let main = self.program.main?;
        let Some(Binding::Object(object)) = self.bindings.get(&main).cloned() else {
            return None;
        };
        match &*object {
            Object::Package { name, arguments } => Some((name.to_string(), arguments.clone())),
            _ => None,
        }
    }

    /// Types of the parameters of a parser or control.
    pub fn parameter_types(&self, object: &ObjectRef) -> Vec<Type> {
        match &**object {
            Object::Block(instance) => {
                let block = &self.program.blocks[instance.declaration];
                block.parameters.iter().map(|parameter| parameter.ty.clone()).collect()
            }
            _ => Vec::new(),
        }
    }

    fn unsupported(&mut self, span: Span, what: &str) {
        self.reporter.error(span, format!("{what} is not supported"));
    }
}

/// An object without state of its own that stands for the packet.
pub(crate) fn packet_object() -> ObjectRef {
    Rc::new(Object::Packet)
}
