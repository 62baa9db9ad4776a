//! The hardware numbers that the model runs on. They come from a machine file, where each
//! stands with its unit and source; nothing here has a default.

use nicforge_units::{BitRate, ByteRate, Bytes, Cycles, Frequency, Time};

/// A whole machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Hardware {
    /// How many cores it has.
    pub cores: usize,
    /// The cores.
    pub core: CoreConfig,
    /// The private L2 of each core.
    pub l2: CacheConfig,
    /// The shared last-level cache.
    pub llc: CacheConfig,
    /// Load-to-use latency of a line that the L2 of another core has, and of making a line one's own that others
    /// have as well.
    pub other_l2: Time,
    /// How many LLC ways DMA writes may allocate into (DDIO); 0 turns DDIO off.
    pub io_ways: usize,
    /// Where the LLC has ages of two bits: of lines that come while more come than fit, one of so many stays
    /// for longer. 0: the least recently used line makes room.
    pub llc_one_young_in: u32,
    /// Main memory.
    pub dram: DramConfig,
    /// Cores of another socket, which use this one's memory.
    pub other_socket: OtherSocket,
    /// How many NICs it has, each on a link of its own.
    pub nics: usize,
    /// The link between each NIC and the host.
    pub pcie: LinkConfig,
    /// Each NIC.
    pub nic: NicConfig,
}

/// Another socket, as far as this one notices it: its cores' misses come over a link of their own
/// and take this socket's memory bandwidth, and nothing of its caches.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherSocket {
    /// How many cores it has; 0 when there is no such socket.
    pub cores: usize,
    /// What the link between the sockets adds to a memory access.
    pub latency: Time,
}

/// A core.
#[derive(Clone, Debug, PartialEq)]
pub struct CoreConfig {
    /// Clock.
    pub frequency: Frequency,
    /// Memory-level parallelism of independent accesses (prefetches, stores): how many overlap.
    pub mlp_independent: f64,
    /// Memory-level parallelism of streaming accesses (sequential lines).
    pub mlp_streaming: f64,
    /// Lines that the L2 streamer pulls in after a demand miss on the first line of a run.
    pub l2_streamer_lines: usize,
    /// Capacity of the first-level data cache, of 8 ways; 0: its hits are those within a burst alone.
    pub l1: Bytes,
    /// Whether a miss of the L2 also brings the other line of its 128 bytes.
    pub l2_pair_line: bool,
    /// Pages of 4 KiB that the second-level TLB knows; 0: no address needs a page walk.
    pub tlb_pages: usize,
    /// How long the system takes the core away each time.
    pub pause: Time,
    /// How often it does; 0: never.
    pub pause_every: Time,
    /// What an atomic read-modify-write costs beyond its memory access.
    pub atomic: Cycles,
    /// What one empty poll of a receive ring costs.
    pub empty_poll: Cycles,
    /// Extra work of the driver for one received packet, beyond its memory accesses.
    pub rx_packet: Cycles,
    /// Extra work of the driver for one transmitted packet.
    pub tx_packet: Cycles,
    /// Extra work of the driver for one burst, receive and transmit together.
    pub burst: Cycles,
    /// Extra work of taking a buffer from, or giving one to, the per-core cache of the pool.
    pub pool: Cycles,
    /// Lines of a device's memory that gather writes before they go over the link.
    pub write_combining_buffers: usize,
    /// Instructions of a copy loop for each line, beyond its memory accesses.
    pub copy_line: Cycles,
}

/// A set-associative cache.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheConfig {
    /// Capacity.
    pub size: Bytes,
    /// Ways, at most 16.
    pub ways: usize,
    /// Load-to-use latency of a hit.
    pub hit: Time,
}

/// Main memory behind one memory controller.
#[derive(Clone, Debug, PartialEq)]
pub struct DramConfig {
    /// Channels.
    pub channels: usize,
    /// What all channels together deliver for mixed reads and writes.
    pub peak: ByteRate,
    /// What a miss takes when memory is idle, beyond the look-up in the LLC: a load then takes
    /// [`CacheConfig::hit`] of the LLC and this.
    pub idle_latency: Time,
    /// How strongly latency grows with load: mean queue, in service times, at half load.
    pub queueing: f64,
}

/// A PCIe link, both directions alike.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Usable rate per direction, TLP headers included.
    pub rate: BitRate,
    /// Largest payload of a write or completion TLP.
    pub max_payload: Bytes,
    /// Largest read request.
    pub max_read_request: Bytes,
    /// Header, sequence number, CRC and framing of one TLP, in bytes on the link.
    pub tlp_overhead: Bytes,
    /// Acknowledgement and credit update for one received packet, sent in the other direction.
    pub dllp: Bytes,
    /// Read requests in flight.
    pub tags: usize,
    /// A read's round trip on an idle link, to the first byte, without the memory access.
    pub read_round_trip: Time,
    /// A posted write's way from device to memory on an idle link.
    pub write_latency: Time,
    /// How far memory may fall behind posted writes before the link stops: what the root complex
    /// buffers.
    pub posted_slack: Time,
    /// A core's register write on its way to the device.
    pub mmio_write: Time,
    /// A core's register read, there and back.
    pub mmio_read: Time,
}

/// A NIC, apart from its interface.
#[derive(Clone, Debug, PartialEq)]
pub struct NicConfig {
    /// Each port's rate.
    pub port: BitRate,
    /// Bytes of preamble, start delimiter, frame check sequence and gap per frame.
    pub wire_overhead: Bytes,
    /// MAC receive FIFO.
    pub rx_fifo: Bytes,
    /// Internal transmit buffer into which payload is gathered.
    pub tx_buffer: Bytes,
    /// Room that there must be before other rings are served after one filled the buffer.
    pub tx_resume_room: Bytes,
    /// How long a transmit ring is not served after it filled the internal buffer, in its own
    /// latest read latencies (nicmem, section 2.1.3).
    pub tx_deschedule_reads: f64,
    /// Fixed latency of the receive pipeline (parse, steering).
    pub rx_pipeline: Time,
    /// Fixed latency of the transmit pipeline.
    pub tx_pipeline: Time,
    /// Bytes of descriptors fetched by one read.
    pub descriptor_read: Bytes,
    /// Entries that a ring needs to absorb the bursts of the port's rate; advice only.
    pub burst_entries: usize,
    /// The smallest ring that such NICs have; advice only.
    pub ring_entries_min: usize,
    /// Memory that it gives to software (nicmem, section 2.2.1); 0: none.
    pub nicmem: Bytes,
    /// How long its own access to that memory takes.
    pub nicmem_access: Time,
}
