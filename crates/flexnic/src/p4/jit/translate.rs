//! Blocks and operations become Cranelift's.

use std::collections::HashMap;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, MemFlags, StackSlotData, StackSlotKind, Value, types};
use cranelift_frontend::{FunctionBuilder, Switch, Variable};
use cranelift_jit::JITModule;
use cranelift_module::{FuncId, Module};

use super::{Helpers, slots};
use crate::p4::ir::{Function, Index, Op, Operand, Slot, Terminator, words};
use crate::p4::machine::Registers;

/// Words that are copied or cleared one by one; more take a call.
pub(super) const UNROLL_MAX: usize = 64;

pub(super) struct Translator<'a, 'b> {
    pub b: FunctionBuilder<'a>,
    pub module: &'b mut JITModule,
    pub helpers: &'b Helpers,
    pub registers: Value,
    pub machine: Value,
    pub frame: Value,
    pub packet: Value,
    pub packet_bits: Value,
    temporaries: HashMap<u32, Variable>,
    /// All headers of the function have whole bytes.
    pub bytewise: bool,
    /// Number of the error `PacketTooShort`.
    pub too_short: u64,
}

fn offset(word: u32) -> i32 {
    word as i32 * 8
}

pub(super) fn mask(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

pub(super) const TRUSTED: MemFlags = MemFlags::trusted();

/// Translates a function.
pub(super) fn function(
    mut b: FunctionBuilder<'_>,
    module: &mut JITModule,
    helpers: &Helpers,
    function: &Function,
    too_short: u64,
) {
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let (registers, machine) = (b.block_params(entry)[0], b.block_params(entry)[1]);
    let field = |b: &mut FunctionBuilder<'_>, at: usize| b.ins().load(types::I64, TRUSTED, registers, at as i32);
    let frame = field(&mut b, std::mem::offset_of!(Registers, frame));
    let packet = field(&mut b, std::mem::offset_of!(Registers, packet));
    let packet_bits = field(&mut b, std::mem::offset_of!(Registers, packet_bits));
    let all = function.blocks.iter().flat_map(|block| &block.ops);
    let bytewise = all.clone().all(|op| match op {
        Op::Extract { header, .. } | Op::Emit { header } => header.layout.fixed_bits.is_multiple_of(8),
        _ => true,
    });
    let mut t = Translator {
        b,
        module,
        helpers,
        registers,
        machine,
        frame,
        packet,
        packet_bits,
        temporaries: HashMap::new(),
        bytewise,
        too_short,
    };
    let blocks: Vec<ir::Block> = function.blocks.iter().map(|_| t.b.create_block()).collect();
    t.b.ins().jump(blocks[0], &[]);
    for (block, target) in function.blocks.iter().zip(&blocks) {
        t.b.switch_to_block(*target);
        for op in &block.ops {
            t.op(op);
        }
        t.terminator(&block.end, &blocks);
    }
    t.b.seal_all_blocks();
    t.b.finalize();
}

impl Translator<'_, '_> {
    pub fn register(&mut self, at: usize) -> Value {
        self.b.ins().load(types::I64, TRUSTED, self.registers, at as i32)
    }

    pub fn set_register(&mut self, at: usize, value: Value) {
        self.b.ins().store(TRUSTED, value, self.registers, at as i32);
    }

    pub fn constant(&mut self, value: u64) -> Value {
        self.b.ins().iconst(types::I64, value as i64)
    }

    fn variable(&mut self, slot: Slot) -> Variable {
        let b = &mut self.b;
        *self.temporaries.entry(slot.word).or_insert_with(|| b.declare_var(types::I64))
    }

    fn in_register(slot: Slot) -> bool {
        slot.temporary && slot.width <= 64
    }

    pub fn load_word(&mut self, word: u32) -> Value {
        self.b.ins().load(types::I64, TRUSTED, self.frame, offset(word))
    }

    pub fn store_word(&mut self, word: u32, value: Value) {
        self.b.ins().store(TRUSTED, value, self.frame, offset(word));
    }

    /// One word of a value.
    pub fn limb(&mut self, operand: &Operand, number: usize) -> Value {
        match operand {
            Operand::Constant(constant) => self.constant(constant.limbs.get(number).copied().unwrap_or(0)),
            Operand::Slot(slot) if Self::in_register(*slot) => {
                let variable = self.variable(*slot);
                self.b.use_var(variable)
            }
            Operand::Slot(slot) => self.load_word(slot.word + number as u32),
        }
    }

    pub fn small(&mut self, operand: &Operand) -> Value {
        self.limb(operand, 0)
    }

    /// Writes a value whose bits above the width are zero.
    pub fn write(&mut self, slot: Slot, value: Value) {
        if Self::in_register(slot) {
            let variable = self.variable(slot);
            self.b.def_var(variable, value);
        } else {
            self.store_word(slot.word, value);
        }
    }

    pub fn write_masked(&mut self, slot: Slot, value: Value) {
        let value = if slot.width >= 64 { value } else { self.b.ins().band_imm(value, mask(slot.width) as i64) };
        self.write(slot, value);
    }

    fn call(&mut self, function: FuncId, arguments: &[Value]) -> Option<Value> {
        let function = self.module.declare_func_in_func(function, self.b.func);
        let call = self.b.ins().call(function, arguments);
        self.b.inst_results(call).first().copied()
    }

    pub fn call_reserve(&mut self, bits: u64) {
        let bits = self.constant(bits);
        self.call(self.helpers.reserve, &[self.machine, bits]);
    }

    /// Lets the interpreter do the operation. Values that live in registers go through the frame.
    pub fn by_helper(&mut self, op: &Op) {
        let (reads, writes) = slots::of(op);
        for slot in reads.into_iter().filter(|slot| Self::in_register(*slot)) {
            let value = self.small(&Operand::Slot(slot));
            self.store_word(slot.word, value);
        }
        let address = self.constant(std::ptr::from_ref(op) as u64);
        self.call(self.helpers.execute, &[self.machine, address]);
        for slot in writes.into_iter().filter(|slot| Self::in_register(*slot)) {
            let value = self.load_word(slot.word);
            self.write(slot, value);
        }
    }

    fn op(&mut self, op: &Op) {
        let done = match op {
            Op::Note(_) => true,
            Op::Copy { to, from } => self.copy(*to, from),
            Op::Load { to, from, index } => self.load(*to, *from, index),
            Op::Store { to, index, from } => self.store(*to, index, from),
            Op::Unary { operator, to, from } => self.unary(*operator, *to, from),
            Op::Binary { operator, to, left, right, signed } => self.binary(*operator, *to, left, right, *signed),
            Op::Resize { to, from, signed } => self.resize(*to, from, *signed),
            Op::Slice { to, from, low } => self.slice(*to, from, *low),
            Op::Insert { to, low, from } => self.insert(*to, *low, from),
            Op::Concat { to, left, right } => self.concat(*to, left, right),
            Op::Select { to, condition, yes, no } => self.select(*to, condition, yes, no),
            Op::Clear { word, words } => self.clear(*word, *words),
            Op::Extract { header, varbit_bits: None, error } => self.extract(header, *error),
            Op::Lookahead { to, error } => self.lookahead(to, *error),
            Op::Advance { bits, error } => self.advance(bits, *error),
            Op::PacketLength { to } => {
                let bytes = self.b.ins().ushr_imm(self.packet_bits, 3);
                self.write_masked(*to, bytes);
                true
            }
            Op::Emit { header } => self.emit(header),
            Op::Apply { table, keys, hit, action } => self.apply(*table, keys, *hit, *action),
            Op::Extern(op) => self.checksum(op),
            Op::Extract { .. } | Op::InSet { .. } => false,
        };
        if !done {
            self.by_helper(op);
        }
    }

    fn copy(&mut self, to: Slot, from: &Operand) -> bool {
        if to.words() > UNROLL_MAX {
            return false;
        }
        // All words are read before the first is written: the places may overlap.
        let limbs: Vec<Value> = (0..to.words()).map(|number| self.limb(from, number)).collect();
        if to.width <= 64 {
            self.write(to, limbs[0]);
        } else {
            for (number, limb) in limbs.into_iter().enumerate() {
                self.store_word(to.word + number as u32, limb);
            }
        }
        true
    }

    /// Byte offset of an element, and whether the index is inside of the stack.
    pub fn element(&mut self, index: &Index) -> (Value, Value) {
        let number = self.small(&index.value);
        let inside = self.b.ins().icmp_imm(IntCC::UnsignedLessThan, number, i64::from(index.count));
        let zero = self.constant(0);
        let number = self.b.ins().select(inside, number, zero);
        (self.b.ins().imul_imm(number, i64::from(index.stride) * 8), inside)
    }

    fn load(&mut self, to: Slot, from: Slot, index: &Index) -> bool {
        if to.words() > UNROLL_MAX || index.value.width() > 64 {
            return false;
        }
        let (bytes, inside) = self.element(index);
        let base = self.b.ins().iadd(self.frame, bytes);
        let zero = self.constant(0);
        for number in 0..to.words() as u32 {
            let value = self.b.ins().load(types::I64, TRUSTED, base, offset(from.word + number));
            let value = self.b.ins().select(inside, value, zero);
            if to.width <= 64 {
                self.write(to, value);
            } else {
                self.store_word(to.word + number, value);
            }
        }
        true
    }

    fn store(&mut self, to: Slot, index: &Index, from: &Operand) -> bool {
        if to.words() > UNROLL_MAX || index.value.width() > 64 {
            return false;
        }
        let limbs: Vec<Value> = (0..to.words()).map(|number| self.limb(from, number)).collect();
        let (bytes, inside) = self.element(index);
        let (write, done) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(inside, write, &[], done, &[]);
        self.b.switch_to_block(write);
        let base = self.b.ins().iadd(self.frame, bytes);
        for (number, limb) in limbs.into_iter().enumerate() {
            self.b.ins().store(TRUSTED, limb, base, offset(to.word + number as u32));
        }
        self.b.ins().jump(done, &[]);
        self.b.switch_to_block(done);
        true
    }

    fn clear(&mut self, word: u32, count: u32) -> bool {
        if count as usize > UNROLL_MAX {
            return false;
        }
        let zero = self.constant(0);
        for number in 0..count {
            self.store_word(word + number, zero);
        }
        true
    }

    fn apply(&mut self, table: usize, keys: &[Operand], hit: Slot, action: Slot) -> bool {
        let count: usize = keys.iter().map(|key| words(key.width())).sum();
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, (count.max(1) * 8) as u32, 3);
        let stack = self.b.create_sized_stack_slot(data);
        let mut at = 0;
        for key in keys {
            for number in 0..words(key.width()) {
                let value = self.limb(key, number);
                self.b.ins().stack_store(value, stack, at);
                at += 8;
            }
        }
        let address = self.b.ins().stack_addr(types::I64, stack, 0);
        let (table, count) = (self.constant(table as u64), self.constant(count as u64));
        let Some(result) = self.call(self.helpers.apply, &[self.machine, table, address, count]) else {
            return false;
        };
        let number = self.b.ins().band_imm(result, i64::from(u32::MAX));
        self.write(action, number);
        let flag = self.b.ins().ushr_imm(result, 32);
        self.write(hit, flag);
        true
    }

    fn terminator(&mut self, end: &Terminator, blocks: &[ir::Block]) {
        match end {
            Terminator::End => {
                self.b.ins().return_(&[]);
            }
            Terminator::Jump(next) => {
                self.b.ins().jump(blocks[*next], &[]);
            }
            Terminator::Branch { condition, yes, no } => {
                let condition = self.small(condition);
                self.b.ins().brif(condition, blocks[*yes], &[], blocks[*no], &[]);
            }
            Terminator::Switch { value, cases, otherwise } => {
                let value = self.small(value);
                let mut switch = Switch::new();
                for (label, block) in cases {
                    switch.set_entry(u128::from(*label), blocks[*block]);
                }
                switch.emit(&mut self.b, value, blocks[*otherwise]);
            }
            Terminator::Tick { next, exhausted } => {
                let at = std::mem::offset_of!(Registers, ticks);
                let ticks = self.register(at);
                let (more, none) = (self.b.create_block(), self.b.create_block());
                self.b.ins().brif(ticks, more, &[], none, &[]);
                self.b.switch_to_block(none);
                self.call(self.helpers.exhausted, &[self.machine]);
                self.b.ins().jump(blocks[*exhausted], &[]);
                self.b.switch_to_block(more);
                let ticks = self.b.ins().iadd_imm(ticks, -1);
                self.set_register(at, ticks);
                self.b.ins().jump(blocks[*next], &[]);
            }
        }
    }
}
