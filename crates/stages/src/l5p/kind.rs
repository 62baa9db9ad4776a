//! The stage in the registry: its options, and its table in host memory.

use nicforge_l5p::context::CONTEXT_BYTES;
use nicforge_l5p::engine::EngineConfig;
use nicforge_options::{Allowed, options};
use nicforge_platform::{AddressSpace, Ground};
use nicforge_units::{Bytes, Time};

use super::{L5p, L5pSpec};
use crate::{BuiltStage, StageError, StageKind, StagePlan};

options! {
    /// NICs that work on layer 5 of TCP streams which they do not terminate.
    pub struct L5pOptions {
        /// Contexts in the table in host memory: one per flow and direction.
        l5p_contexts: u64 = 65536, "contexts", Allowed::Whole(1, 1_048_576);
        /// Memory of each NIC for contexts, 208 bytes each.
        l5p_memory_kib: u64 = 4096, "KiB", Allowed::Whole(2, 4_194_304);
        /// Contexts that a NIC fetches from host memory at a time.
        l5p_fetches: usize = 8, "fetches", Allowed::Whole(1, 256);
        /// Behind a gap, NICs go on placing data of the message that they are in.
        l5p_places_ahead: bool = false, "", Allowed::Flag;
        /// Time that the engine adds to a packet's way.
        l5p_delay_ns: u64 = 0, "ns", Allowed::Whole(0, 1_000_000);
    }
}

/// Stage `l5p`.
#[derive(Clone, Copy, Debug)]
pub struct L5pKind;

impl StageKind for L5pKind {
    const NAME: &'static str = "l5p";
    const ABOUT: &'static str =
        "the NIC encrypts, decrypts, checks and places messages of TCP streams that software runs";
    type Options = L5pOptions;

    fn build<G: Ground>(
        options: &L5pOptions,
        _plan: &StagePlan,
        space: &mut AddressSpace,
    ) -> Result<BuiltStage<G>, StageError> {
        let table = space.data(options.l5p_contexts * CONTEXT_BYTES as u64, 64);
        Ok(BuiltStage::new(L5p::new(L5pSpec {
            table,
            contexts: options.l5p_contexts as u32,
            memory: Bytes(options.l5p_memory_kib * 1024),
            fetches: options.l5p_fetches,
            delay: Time::from_ns(options.l5p_delay_ns),
            engine: EngineConfig { places_ahead: options.l5p_places_ahead, ..EngineConfig::default() },
        })))
    }
}
