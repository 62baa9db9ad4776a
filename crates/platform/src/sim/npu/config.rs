//! Numbers of a NIC processor. They come from a machine file; nothing here has a default.

use nicforge_units::{Cycles, Frequency, Time};

/// A NIC processor: islands of flow-processing cores (FPCs), memories, DMA engines, reordering.
#[derive(Clone, Debug, PartialEq)]
pub struct NpuConfig {
    /// The cores.
    pub core: FpcConfig,
    /// The memories.
    pub memory: NpuMemory,
    /// DMA engines, and reordering.
    pub dma: NpuDma,
    /// Instructions of the firmware's stages.
    pub firmware: Firmware,
}

/// Islands and their cores.
#[derive(Clone, Debug, PartialEq)]
pub struct FpcConfig {
    /// General-purpose islands.
    pub islands: usize,
    /// Cores of each.
    pub fpcs: usize,
    /// Hardware threads of a core; they are not preempted.
    pub threads: usize,
    /// Clock.
    pub clock: Frequency,
    /// Cycles of a switch to another thread.
    pub switch: Cycles,
}

/// Sizes of memories, and the time of a command to each.
#[derive(Clone, Debug, PartialEq)]
pub struct NpuMemory {
    /// Connections in the local memory of a core, found by its CAM.
    pub cam_entries: usize,
    /// Look-ups that a pre-processing core keeps in its local memory.
    pub lookup_entries: usize,
    /// Connections in an island's CLS.
    pub cls_flows: usize,
    /// Connections in the SRAM cache of external memory.
    pub emem_flows: usize,
    /// A core's local memory.
    pub local: Cycles,
    /// Cluster local scratch, from inside its island.
    pub cls: Cycles,
    /// Cluster target memory, from inside its island.
    pub ctm: Cycles,
    /// Internal memory.
    pub imem: Cycles,
    /// External memory, in its SRAM cache.
    pub emem: Cycles,
    /// External memory, in DRAM.
    pub dram: Cycles,
    /// Cycles for which a command of at most `bulk` bytes occupies its memory.
    pub command: Cycles,
    /// Bytes that a command moves at most.
    pub bulk: u64,
    /// Packets that CTM buffers of an island hold, half of them received ones.
    pub ctm_buffers: usize,
    /// Transmit events in flight.
    pub tx_credits: usize,
}

/// The DMA engine: a queue in each direction; and the block that reorders.
#[derive(Clone, Debug, PartialEq)]
pub struct NpuDma {
    /// Operations in flight in each direction.
    pub in_flight: usize,
    /// Of received payload.
    pub payload_rx: usize,
    /// Of payload to send.
    pub payload_tx: usize,
    /// Of entries for applications.
    pub arx: usize,
    /// Of entries from applications.
    pub atx: usize,
    /// Of the slow path.
    pub slow: usize,
    /// Between the beginnings of two reads.
    pub read_op: Time,
    /// Between the beginnings of two writes.
    pub write_op: Time,
    /// Moving a KiB between the engine and the NIC's memories.
    pub per_kib: Time,
    /// From a write's beginning until its completion is signalled, beside the bus.
    pub write_signal: Time,
    /// Between two packets that leave the reordering block.
    pub reorder: Time,
    /// Between two looks at an active context's doorbell.
    pub doorbell_poll: Cycles,
}

/// Instructions for an event in each stage, beyond its memory commands.
#[derive(Clone, Debug, PartialEq)]
pub struct Firmware {
    /// Pre-processing of a received packet: checks, header summary, look-up, swapped headers.
    pub pre_rx: Cycles,
    /// Of a segment to send: buffer, Ethernet and IP headers.
    pub pre_tx: Cycles,
    /// Of an application's event, or a retransmission.
    pub pre_ac: Cycles,
    /// The protocol stage, for a received segment.
    pub protocol_rx: Cycles,
    /// For a segment to send.
    pub protocol_tx: Cycles,
    /// For an application's event, or a retransmission.
    pub protocol_ac: Cycles,
    /// Post-processing of a received segment: acknowledgment, statistics, descriptors.
    pub post_rx: Cycles,
    /// Of a segment to send.
    pub post_tx: Cycles,
    /// Of an application's event, or a retransmission.
    pub post_ac: Cycles,
    /// A DMA manager, for each of issue and completion.
    pub dma: Cycles,
    /// An application context manager, for an entry.
    pub context: Cycles,
    /// The queue manager, for an update or a departure.
    pub queue: Cycles,
}
