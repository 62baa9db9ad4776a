//! The hairpin in the registry: its options, and the flows that it knows when a run begins.

use nicforge_options::{Allowed, options};
use nicforge_platform::{AddressSpace, Ground};
use nicforge_units::Bytes;

use super::{FlowAction, FlowMatch, FlowTable, Hairpin, HairpinSpec};
use crate::{BuiltStage, StageError, StageKind, StagePlan};

options! {
    /// NICs that handle flows without software.
    pub struct HairpinOptions {
        /// Memory of each NIC for state of these flows, a rule of 64 and a counter of 16 bytes each; the rest is in host
        /// memory.
        flow_memory_kib: u64 = 4096, "KiB", Allowed::Whole(1, 4_194_304);
        /// Rules that a NIC fetches from host memory at a time, and counters.
        flow_fetches: usize = 32, "fetches", Allowed::Whole(1, 256),
            source "Corundum, a NIC for 100 Gbit/s (FCCM 2020; fpga/common/rtl/mqnic_core.v): each queue manager, which \
                    keeps state in memory, has 32 operations in flight";
    }
}

/// Stage `hairpin`.
#[derive(Clone, Copy, Debug)]
pub struct HairpinKind;

impl StageKind for HairpinKind {
    const NAME: &'static str = "hairpin";
    const ABOUT: &'static str = "the NIC counts the packets of known flows and sends them out itself";
    type Options = HairpinOptions;

    fn build<G: Ground>(
        options: &HairpinOptions,
        plan: &StagePlan,
        space: &mut AddressSpace,
    ) -> Result<BuiltStage<G>, StageError> {
        let flows = plan.flows.clone();
        let table = FlowTable::allocate(space, flows.count());
        let stage = Hairpin::new(HairpinSpec {
            table,
            memory: Bytes(options.flow_memory_kib * 1024),
            fetches: options.flow_fetches,
            queue: plan.rx_entries,
            addresses: (plan.mac, plan.next_hop),
        });
        Ok(BuiltStage::new(stage).starting(move |cpu| {
            for number in 0..flows.count() {
                let flow = flows.flow(number);
                let [from, to] = [flow.source, flow.destination].map(|end| (end.ip().to_bits(), end.port()));
                // Forwarded as it is, as the software counter does.
                table.install(cpu, FlowMatch::new(from, to, flow.protocol), FlowAction::default())?;
            }
            Ok(())
        }))
    }
}
