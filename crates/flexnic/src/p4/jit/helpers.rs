//! Functions that compiled code calls.

use cranelift_jit::JITBuilder;

use crate::p4::interpret;
use crate::p4::ir::Op;
use crate::p4::machine::Machine;

pub(super) const EXECUTE: &str = "nicforge_p4_execute";
pub(super) const APPLY: &str = "nicforge_p4_apply";
pub(super) const EXHAUSTED: &str = "nicforge_p4_exhausted";
pub(super) const RESERVE: &str = "nicforge_p4_reserve";

pub(super) fn register(builder: &mut JITBuilder) {
    builder.symbol(EXECUTE, execute as *const u8);
    builder.symbol(APPLY, apply as *const u8);
    builder.symbol(EXHAUSTED, exhausted as *const u8);
    builder.symbol(RESERVE, reserve as *const u8);
}

/// Does one operation as the interpreter does.
unsafe extern "C" fn execute(machine: *mut Machine, op: *const Op) {
    // SAFETY: the code passes the machine that it was given, and the address of an operation of the IR that the code
    // keeps alive; the caller of the code holds no other reference to the machine.
    let (machine, op) = unsafe { (&mut *machine, &*op) };
    interpret::execute(op, machine);
}

/// Looks up keys; returns the action in the low half and whether an entry was hit above it.
unsafe extern "C" fn apply(machine: *mut Machine, table: u64, keys: *const u64, words: u64) -> u64 {
    // SAFETY: as above; `keys` points to `words` words on the code's stack.
    let (machine, keys) = unsafe { (&mut *machine, std::slice::from_raw_parts(keys, words as usize)) };
    interpret::apply_words(machine, table as usize, keys)
}

/// Too many steps in loops.
unsafe extern "C" fn exhausted(machine: *mut Machine) {
    // SAFETY: as above.
    unsafe { (*machine).exhausted = true }
}

/// Makes room for more output.
unsafe extern "C" fn reserve(machine: *mut Machine, bits: u64) {
    // SAFETY: as above.
    unsafe { (*machine).reserve_output(bits) }
}
