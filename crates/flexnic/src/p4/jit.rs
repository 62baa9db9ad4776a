//! Machine code from Cranelift for the same IR that the interpreter runs.
//!
//! Common operations on values of at most 64 bits become instructions. Everything else calls the interpreter for one
//! operation, so that both engines agree by construction.
#![allow(unsafe_code, reason = "calling generated code needs it; each block says why it is sound")]

mod arithmetic;
mod checksum;
mod helpers;
pub(super) mod packet;
mod slots;
mod translate;

use std::mem::ManuallyDrop;
use std::sync::Arc;

use cranelift_codegen::ir::{AbiParam, types};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module};

use super::ir::{Function, Ir, Terminator};
use super::machine::{Machine, Registers};

/// Why no code could be made.
#[derive(Debug, thiserror::Error)]
pub enum JitError {
    /// The machine is none that code is made for.
    #[error("no machine code for this machine: {0}")]
    Machine(String),
    /// The code generator failed.
    #[error("the code generator failed: {0}")]
    Backend(String),
}

fn backend(error: impl std::fmt::Display) -> JitError {
    JitError::Backend(error.to_string())
}

type Entry = unsafe extern "C" fn(*mut Registers, *mut Machine);

/// Code of a program.
pub(crate) struct Code {
    /// None of a function that does nothing.
    entries: Vec<Option<Entry>>,
    module: ManuallyDrop<JITModule>,
    /// The code holds addresses of operations.
    _ir: Arc<Ir>,
}

// SAFETY: after `compile` nobody writes to the code or to the module; running it changes only the machine it is given.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

impl Code {
    /// Runs one of the program's functions.
    #[inline]
    pub fn run(&self, number: usize, machine: &mut Machine) {
        let Some(entry) = self.entries[number] else { return };
        machine.enter();
        let machine: *mut Machine = machine;
        // SAFETY: `enter` has set the registers to the machine's own buffers; the code was made for this IR, stays
        // inside of them, and takes the machine apart only through these two pointers while the call lasts.
        unsafe { entry(&raw mut (*machine).registers, machine) }
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: nobody can run the code any more, and the module is not used after this.
        unsafe { ManuallyDrop::take(&mut self.module).free_memory() }
    }
}

/// Functions that code calls.
pub(crate) struct Helpers {
    pub execute: FuncId,
    pub apply: FuncId,
    pub exhausted: FuncId,
    pub reserve: FuncId,
}

/// Makes code of all functions of a program.
pub(crate) fn compile(ir: &Arc<Ir>) -> Result<Arc<Code>, JitError> {
    if cfg!(target_endian = "big") {
        return Err(JitError::Machine("it is big-endian".to_owned()));
    }
    let mut flags = settings::builder();
    flags.set("opt_level", "speed").map_err(backend)?;
    flags.set("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }).map_err(backend)?;
    let isa = cranelift_native::builder().map_err(|why| JitError::Machine(why.to_owned()))?;
    let isa = isa.finish(settings::Flags::new(flags)).map_err(backend)?;
    let mut builder = JITBuilder::with_isa(isa, cranelift_module::default_libcall_names());
    helpers::register(&mut builder);
    let mut module = JITModule::new(builder);
    let helpers = declare_helpers(&mut module)?;
    let mut context = module.make_context();
    let mut builder_context = FunctionBuilderContext::new();
    let too_short = ir.errors.iter().position(|error| &**error == "PacketTooShort").unwrap_or(1) as u64;
    let mut ids = Vec::new();
    for (number, function) in ir.functions.iter().enumerate() {
        context.func.signature.params = vec![AbiParam::new(types::I64); 2];
        let name = format!("function{number}");
        let id = module.declare_function(&name, Linkage::Local, &context.func.signature).map_err(backend)?;
        let builder = FunctionBuilder::new(&mut context.func, &mut builder_context);
        translate::function(builder, &mut module, &helpers, function, too_short);
        module.define_function(id, &mut context).map_err(backend)?;
        module.clear_context(&mut context);
        ids.push(id);
    }
    module.finalize_definitions().map_err(backend)?;
    let entries = ids.iter().zip(&ir.functions).map(|(id, function)| {
        let address = module.get_finalized_function(*id);
        // SAFETY: the function was defined above with this signature and the platform's calling convention.
        let entry = unsafe { std::mem::transmute::<*const u8, Entry>(address) };
        (!does_nothing(function)).then_some(entry)
    });
    Ok(Arc::new(Code { entries: entries.collect(), module: ManuallyDrop::new(module), _ir: ir.clone() }))
}

/// Controls with an empty body are frequent.
fn does_nothing(function: &Function) -> bool {
    matches!(&function.blocks[..], [block] if block.ops.is_empty() && block.end == Terminator::End)
}

fn declare_helpers(module: &mut JITModule) -> Result<Helpers, JitError> {
    let mut declare = |name: &str, parameters: usize, returns: bool| {
        let mut signature = module.make_signature();
        signature.params = vec![AbiParam::new(types::I64); parameters];
        if returns {
            signature.returns.push(AbiParam::new(types::I64));
        }
        module.declare_function(name, Linkage::Import, &signature).map_err(backend)
    };
    Ok(Helpers {
        execute: declare(helpers::EXECUTE, 2, false)?,
        apply: declare(helpers::APPLY, 4, true)?,
        exhausted: declare(helpers::EXHAUSTED, 1, false)?,
        reserve: declare(helpers::RESERVE, 2, false)?,
    })
}
