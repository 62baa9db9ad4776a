//! Options of TCP on a NIC processor.

use nicforge_options::{Allowed, choice, options};

choice! {
    /// How the fast path is laid out on the processor.
    pub enum Layout {
        /// One FPC takes each event from beginning to end, and waits for its payload.
        RunToCompletion = "run_to_completion",
        /// Pre-processing, protocol, post-processing and DMA on FPCs of their own.
        Pipeline = "pipeline",
    }
}

choice! {
    /// Where payload of connections lies.
    pub enum Payload {
        /// In host memory, in rings of each connection's own.
        Host = "host",
        /// In host memory; received payload in buffers that all connections share.
        Shared = "shared",
        /// In the NIC's memory.
        Nic = "nic",
    }
}

options! {
    /// TCP on a NIC processor (TASNIC).
    pub struct TasnicOptions {
        /// Layout of the fast path on the NIC's processor.
        tasnic_layout: Layout = Layout::Pipeline, "", Layout::ALLOWED, source "TASNIC thesis, section 3.6.1";
        /// Threads of each FPC.
        tasnic_threads: usize = 8, "threads", Allowed::Whole(1, 8), source "TASNIC thesis, section 2.2.1";
        /// Pre-processing FPCs of each flow-group.
        tasnic_pre_fpcs: usize = 4, "FPCs", Allowed::Whole(1, 8), source "TASNIC thesis, section 3.6.4";
        /// Post-processing FPCs of each flow-group.
        tasnic_post_fpcs: usize = 4, "FPCs", Allowed::Whole(1, 8), source "TASNIC thesis, section 3.6.4";
        /// Flow-groups, each on an island of its own; a hash of addresses and ports chooses one.
        tasnic_flow_groups: usize = 4, "groups", Allowed::Whole(1, 31), source "TASNIC thesis, section 3.6.4";
        /// Where payload lies: in host memory, there with receive buffers that all connections share as rxBisect's cores do, or in the NIC's memory.
        tasnic_payload: Payload = Payload::Host, "", Payload::ALLOWED, source "TASNIC thesis, chapter 3: private buffers of each connection";
        /// How long the NIC answers for a connection after both ends have closed it.
        tasnic_linger_ms: f64 = 10.0, "ms", Allowed::Number(0.0, 100_000.0), source "FlexTOE: state is freed after 10 ms";
        /// Longest random delay of each stage: what a test of the pipeline's order adds.
        tasnic_jitter_us: f64 = 0.0, "µs", Allowed::Number(0.0, 1000.0);
        /// Every so many events all state in local memory and CLS is evicted; 0: never.
        tasnic_evict_every: u64 = 0, "events", Allowed::Whole(0, 1_000_000);
        /// Share of doorbells that are lost.
        tasnic_doorbell_loss: f64 = 0.0, "share", Allowed::Number(0.0, 0.9);
        /// Share of doorbells that come twice.
        tasnic_doorbell_twice: f64 = 0.0, "share", Allowed::Number(0.0, 0.9);
    }
}
