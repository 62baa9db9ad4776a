//! Compiled code (placeholder until the generator is in place).
use std::sync::Arc;

use super::ir::Ir;
use super::machine::Machine;

/// Why no code could be made.
#[derive(Debug, thiserror::Error)]
pub enum JitError {
    /// The code generator failed.
    #[error("no machine code: {0}")]
    Backend(String),
}

/// Code of a program.
pub struct Code;

impl Code {
    pub(crate) fn run(&self, _: usize, _: &mut Machine) {}
}

pub(crate) fn compile(_: &Ir) -> Result<Arc<Code>, JitError> {
    Err(JitError::Backend("not yet".into()))
}
