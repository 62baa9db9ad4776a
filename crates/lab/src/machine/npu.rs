//! The section of a machine file that says that its NIC is a processor, and the numbers that it has.

use nicforge_options::{Allowed, ConfigError};
use nicforge_platform::sim::npu::{Firmware, FpcConfig, NpuConfig, NpuDma, NpuMemory};
use nicforge_units::Frequency;
use serde::Deserialize;

use super::hardware::GHZ;
use super::section::{BYTES, CYCLES, NS, Section, Source, sections};

const COUNT: Allowed = Allowed::Whole(1, 1 << 24);
/// Operations in flight.
const DMAS: Allowed = Allowed::Whole(1, 4096);

sections! {
    /// `[npu.core]`.
    CoreSection {
        islands: "islands", Allowed::Whole(2, 32), "islands of flow-processing cores (FPCs); one of them serves the others";
        fpcs: "FPCs", Allowed::Whole(12, 64), "FPCs of an island";
        threads: "threads", Allowed::Whole(1, 8), "hardware threads of an FPC";
        frequency_ghz: "GHz", GHZ, "clock";
        switch_cycles: "cycles", CYCLES, "switch to another thread";
    }

    /// `[npu.memory]`.
    MemorySection {
        cam_entries: "connections", Allowed::Whole(1, 256), "connections in an FPC's local memory, found by its CAM";
        lookup_entries: "connections", COUNT, "look-ups that a pre-processing FPC keeps in its local memory";
        cls_flows: "connections", COUNT, "connections in an island's CLS";
        emem_flows: "connections", COUNT, "connections in the SRAM cache of external memory";
        local_cycles: "cycles", CYCLES, "an FPC's local memory";
        cls_cycles: "cycles", CYCLES, "a command to CLS, from inside the island";
        ctm_cycles: "cycles", CYCLES, "a command to CTM, from inside the island";
        imem_cycles: "cycles", CYCLES, "a command to internal memory";
        emem_cycles: "cycles", CYCLES, "a command to external memory that finds its SRAM cache";
        dram_cycles: "cycles", CYCLES, "a command to external memory that goes to DRAM";
        command_cycles: "cycles", CYCLES, "how long a command occupies its memory";
        bulk_bytes: "bytes", BYTES, "bytes that a command moves at most";
        ctm_buffers: "packets", COUNT, "packet buffers of an island's CTM, half of them for reception";
        tx_credits: "events", COUNT, "transmit events in flight";
    }

    /// `[npu.dma]`.
    DmaSection {
        in_flight: "operations", DMAS, "DMA operations in flight in each direction";
        payload_rx: "operations", DMAS, "of them received payload";
        payload_tx: "operations", DMAS, "of them payload to send";
        arx: "operations", DMAS, "of them entries for applications";
        atx: "operations", DMAS, "of them entries from applications, and as many null entries";
        slow: "operations", DMAS, "of them of the slow path";
        read_op_ns: "ns", NS, "between the beginnings of two reads";
        write_op_ns: "ns", NS, "between the beginnings of two writes";
        per_kib_ns: "ns", NS, "moving a KiB between the engine and the NIC's memories";
        write_signal_ns: "ns", NS, "from a write's end on the link until the FPC knows of it";
        reorder_ns: "ns", NS, "between two packets that leave the reordering block";
        doorbell_poll_cycles: "cycles", CYCLES, "between two looks at an active context's doorbell";
    }

    /// `[npu.firmware]`.
    FirmwareSection {
        pre_rx_cycles: "cycles", CYCLES, "pre-processing of a received packet, beyond its memory commands";
        pre_tx_cycles: "cycles", CYCLES, "of a segment to send";
        pre_ac_cycles: "cycles", CYCLES, "of an application's event, or a retransmission";
        protocol_rx_cycles: "cycles", CYCLES, "protocol stage, for a received segment";
        protocol_tx_cycles: "cycles", CYCLES, "for a segment to send";
        protocol_ac_cycles: "cycles", CYCLES, "for an application's event, or a retransmission";
        post_rx_cycles: "cycles", CYCLES, "post-processing of a received segment";
        post_tx_cycles: "cycles", CYCLES, "of a segment to send";
        post_ac_cycles: "cycles", CYCLES, "of an application's event, or a retransmission";
        dma_cycles: "cycles", CYCLES, "a DMA manager, for issue and for completion each";
        context_cycles: "cycles", CYCLES, "an application context manager, for an entry";
        queue_cycles: "cycles", CYCLES, "the queue manager, for an update or a departure";
    }
}

/// `[npu.…]`: the NIC is a processor.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NpuFile {
    core: CoreSection,
    memory: MemorySection,
    dma: DmaSection,
    firmware: FirmwareSection,
}

impl NpuFile {
    /// Checks all numbers, keeps their rows, and makes the processor of them.
    pub(super) fn read(&self, source: &mut Source<'_>) -> Result<NpuConfig, ConfigError> {
        self.core.take("npu.core", source)?;
        self.memory.take("npu.memory", source)?;
        self.dma.take("npu.dma", source)?;
        self.firmware.take("npu.firmware", source)?;
        Ok(NpuConfig {
            core: FpcConfig {
                islands: self.core.islands.count(),
                fpcs: self.core.fpcs.count(),
                threads: self.core.threads.count(),
                clock: Frequency::from_ghz(self.core.frequency_ghz.get()),
                switch: self.core.switch_cycles.cycles(),
            },
            memory: self.memory.config(),
            dma: self.dma.config(),
            firmware: self.firmware.config(),
        })
    }
}

impl MemorySection {
    fn config(&self) -> NpuMemory {
        NpuMemory {
            cam_entries: self.cam_entries.count(),
            lookup_entries: self.lookup_entries.count(),
            cls_flows: self.cls_flows.count(),
            emem_flows: self.emem_flows.count(),
            local: self.local_cycles.cycles(),
            cls: self.cls_cycles.cycles(),
            ctm: self.ctm_cycles.cycles(),
            imem: self.imem_cycles.cycles(),
            emem: self.emem_cycles.cycles(),
            dram: self.dram_cycles.cycles(),
            command: self.command_cycles.cycles(),
            bulk: self.bulk_bytes.bytes().0,
            ctm_buffers: self.ctm_buffers.count(),
            tx_credits: self.tx_credits.count(),
        }
    }
}

impl DmaSection {
    fn config(&self) -> NpuDma {
        NpuDma {
            in_flight: self.in_flight.count(),
            payload_rx: self.payload_rx.count(),
            payload_tx: self.payload_tx.count(),
            arx: self.arx.count(),
            atx: self.atx.count(),
            slow: self.slow.count(),
            read_op: self.read_op_ns.ns(),
            write_op: self.write_op_ns.ns(),
            per_kib: self.per_kib_ns.ns(),
            write_signal: self.write_signal_ns.ns(),
            reorder: self.reorder_ns.ns(),
            doorbell_poll: self.doorbell_poll_cycles.cycles(),
        }
    }
}

impl FirmwareSection {
    fn config(&self) -> Firmware {
        Firmware {
            pre_rx: self.pre_rx_cycles.cycles(),
            pre_tx: self.pre_tx_cycles.cycles(),
            pre_ac: self.pre_ac_cycles.cycles(),
            protocol_rx: self.protocol_rx_cycles.cycles(),
            protocol_tx: self.protocol_tx_cycles.cycles(),
            protocol_ac: self.protocol_ac_cycles.cycles(),
            post_rx: self.post_rx_cycles.cycles(),
            post_tx: self.post_tx_cycles.cycles(),
            post_ac: self.post_ac_cycles.cycles(),
            dma: self.dma_cycles.cycles(),
            context: self.context_cycles.cycles(),
            queue: self.queue_cycles.cycles(),
        }
    }
}
