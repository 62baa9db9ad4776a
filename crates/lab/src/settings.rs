//! Everything that one point of a scenario may set: the vocabulary of scenario files,
//! `--set`, `[[variant]]` and `[sweep]`.

/// The settings of one point, after defaults, variant, sweep and `--set` are applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The NIC-host interface, by registry name (`priv_ring`, …).
    pub interface: String,
    /// The application on every core (`l2fwd`, `l3fwd`, `nat`, `lb`, `synthetic`, `counter`).
    pub app: String,
    /// Cores that run it, divided evenly over the NICs.
    pub cores: usize,
    /// NICs in use.
    pub nics: usize,
    /// Receive ring entries per queue; a power of two.
    pub rx_entries: usize,
    /// Transmit ring entries per queue; a power of two.
    pub tx_entries: usize,
    /// LLC ways that DMA writes may allocate into.
    pub io_ways: usize,
    /// Frame bytes offered over all ports, Gbit/s; limited by the line rate.
    pub offered_gbps: f64,
    /// Frame size in bytes without FCS, when `packet_sizes` is `fixed`.
    pub packet_bytes: u32,
    /// `fixed`, `imix`, `bimodal` or `empirical` (then `size_file`).
    pub packet_sizes: String,
    /// For `bimodal`: share of small (64 B) frames.
    pub small_share: f64,
    /// For `empirical`: a file of `bytes weight` lines.
    pub size_file: Option<String>,
    /// `constant`, `poisson`, `bursts`, `ping_pong` or `replay`.
    pub arrival: String,
    /// For `bursts`: frames per burst, back to back.
    pub burst_packets: u32,
    /// For `ping_pong`: frames in flight per port.
    pub in_flight: u32,
    /// Distinct flows.
    pub flows: u64,
    /// `uniform`, `zipf`, `single` or `round_robin`.
    pub flow_choice: String,
    /// For `zipf`: the exponent s.
    pub zipf_s: f64,
    /// Share of packets steered to the first queue of each NIC (0: as RSS spreads them).
    pub target_share: f64,
    /// Whether flows are in the application's tables before traffic begins.
    pub preload_flows: bool,
    /// Capture to replay, when `arrival` is `replay`.
    pub pcap: Option<String>,
    /// For `replay`: `recorded` times or scaled to `offered_gbps`.
    pub replay_timing: String,
    /// For `replay`: how often the capture is played.
    pub replay_loops: u32,
    /// Entries of the flow table over all cores (`nat`, `lb`, `counter`).
    pub table_entries: u64,
    /// Back-end servers of `lb`.
    pub servers: u32,
    /// Routes of `l3fwd` and `synthetic`: a file, or absent for generated ones.
    pub routes_file: Option<String>,
    /// Generated routes when there is no file.
    pub routes: u32,
    /// Random reads per packet of `synthetic`.
    pub reads: u32,
    /// Size of the array that `synthetic` reads, MiB, shared by all cores.
    pub array_mib: u32,
    /// What `synthetic` does with the payload: `untouched`, `read` or `overwrite`.
    pub payload: String,
    /// Packets per receive call, at most 32.
    pub burst: usize,
    /// `window` or `no_drop_rate` (RFC 2544 search).
    pub measure: String,
    /// Simulated time before the window, ms.
    pub warmup_ms: f64,
    /// Simulated time of the window, ms.
    pub window_ms: f64,
    /// Co-runners on cores of their own: how many run STREAM triad.
    pub stream_cores: usize,
    /// Co-runners that run a random-access graph kernel.
    pub graph_cores: usize,
    /// Core clock in GHz; absent: the machine's.
    pub cpu_ghz: Option<f64>,
}
