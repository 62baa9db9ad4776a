//! TCP's fast path on a NIC processor (TASNIC): a pipeline of stages on FPCs, applications behind context queues.
//!
//! ```text
//!  wire ─► mac.rs ─► pre ─► reordering ─► protocol ─► post ─► DMA ─► out in order ─► wire, entries for applications
//!             stages.rs │     (npu)      fast::receive …   │    transfer.rs
//!  contexts.rs: doorbells, entries ─► pre (AC)             └► queue_manager.rs ─► pre (TX)
//!  slow.rs: connections, rates, timeouts (RETX), on a host core; slow_queues.rs: its way to the NIC; closing.rs: their end
//!  extensions.rs: stages before and behind, on FPCs that are free
//!  witness.rs: beside all that, checks the order of what leaves
//! ```
//!
//! `nic.rs` says what follows what, `scripts.rs` what each stage costs, `pools.rs` which FPCs do it. The processor itself
//! is `nicforge_platform::sim::npu`; the protocol is `nicforge_tcp::fast`, the same as everywhere.

pub(crate) mod build;
mod closing;
mod contexts;
mod device;
mod extensions;
pub(crate) mod figures;
mod flow;
mod mac;
mod nic;
pub mod options;
mod pools;
mod queue_manager;
mod records;
mod scripts;
mod slow;
mod slow_queues;
mod stages;
#[cfg(test)]
mod tests;
mod transfer;
mod witness;
mod work;

pub(crate) use device::SharedNic;
pub(crate) use slow::SharedSlow;
