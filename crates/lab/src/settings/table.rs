//! The table of settings: each key declared once. The struct, its defaults, parsing,
//! checking, `nicforge list settings` and docs/settings.md all come from here.

use super::Allowed::{
    App, Choice, Emulated, File, Flag, Interface, Number, Placement, PowerOfTwo, RingNumbers, RingSets, Whole,
};
use super::conditions::*;
use super::field::SettingType;
use super::{Key, RingGroups};

macro_rules! settings {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident: $type:ty = $default:expr, $unit:literal, $allowed:expr
        $(, when $when:expr)* $(, unless $unless:expr)* $(, moot $moot:expr)*
        $(, with $with:expr)* $(, default $says:literal)? $(, source $source:literal)?;
    )*) => {
        /// The settings of one point, after defaults, variant, sweep and `--set` are applied.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Settings {
            $($(#[doc = $doc])+ pub $name: $type,)*
        }

        impl Default for Settings {
            fn default() -> Settings {
                Settings { $($name: $default,)* }
            }
        }

        /// All keys, in the order in which they are listed.
        pub static KEYS: &[Key] = &[
            $(Key {
                name: stringify!($name),
                unit: $unit,
                doc: concat!($($doc),+),
                allowed: $allowed,
                used_when: &[$($when),*],
                unused_when: &[$($unless),*],
                moot_when: &[$($moot),*],
                counts_with: &[$($with),*],
                default_says: concat!($($says)?),
                source: concat!($($source)?),
                get: |settings| settings.$name.to_value(),
                set: |settings, value| settings.$name.store(value),
            },)*
        ];
    };
}

settings! {
    /// What runs: frames sent at one server, or whole systems with kernels and TCP on a link.
    workload: String = "frames".into(), "", Choice(&[
        "frames",
        "tcp_receive",
        "tcp_transmit",
        "web_server",
        "iscsi_initiator",
        "nat_gateway",
    ]);
    /// The NIC-host interface, by registry name.
    interface: String = "priv_ring".into(), "", Interface;
    /// What interface `emulated` emulates, by a core for each NIC beside `cores`.
    emulates: String = "rx_bisect".into(), "", Emulated, when EMULATED,
        source "rxBisect paper, section 5";
    /// Where the cores that play NICs are: on the other socket, from where they use the same memory but
    /// none of its caches, or beside the cores that run the application.
    emulator_socket: String = "other".into(), "", Choice(&["same", "other"]), when EMULATED,
        source "rxBisect paper, section 5: on another node than the workers, figure 8";
    /// The application on every core.
    app: String = "nat".into(), "", App;
    /// Cores that run the application, divided evenly over the NICs; of whole systems, those of the
    /// one that is looked at, each with a process.
    cores: usize = 16, "cores", Whole(1, 256), default "the machine's";
    /// NICs in use.
    nics: usize = 2, "NICs", Whole(1, 16), default "the machine's";
    /// Entries of each receive ring: one per queue, or per `sharing` queues.
    rx_entries: usize = 1024, "entries", PowerOfTwo(2, 65536), moot BISECT,
        source "rxBisect paper, section 6: default ring size";
    /// Cores that share a receive ring.
    sharing: usize = 8, "cores", Whole(1, 256), when SHARED_RINGS,
        source "shRing paper, section 5.1";
    /// Packets for which a descriptor of the batched list has buffers.
    list_batch: usize = 4, "packets", PowerOfTwo(2, 4), when BATCHED_LIST,
        source "shRing paper, figure 5.2b";
    /// Time from one look of the control core to the next.
    dynamic_step_ms: f64 = 10.0, "ms", Number(0.01, 60_000.0), when DYNAMIC,
        source "shRing paper, section 5.1.6";
    /// Looks that the control core remembers.
    dynamic_window: usize = 16, "looks", Whole(1, 4096), when DYNAMIC,
        source "shRing paper, section 5.1.5";
    /// Sharing needs more frame bytes received than this, over all NICs.
    dynamic_gbps: f64 = 170.0, "Gbit/s", Number(0.0, 10_000.0), when DYNAMIC,
        source "shRing paper, section 5.1.6";
    /// Sharing needs more host memory read and written by the NICs than this.
    dynamic_memory_gib_per_s: f64 = 25.0, "GiB/s", Number(0.0, 10_000.0), when DYNAMIC,
        source "shRing paper, section 5.1.6";
    /// A core is overloaded when the cores' times between receive calls have a standard deviation
    /// of more than so many medians.
    dynamic_gap_ratio: f64 = 32.0, "medians", Number(0.0, 1e9), when DYNAMIC,
        source "shRing paper, section 5.1.6: the largest batch of a receive call";
    /// Rings are shared when more than this share of the window speaks for it.
    dynamic_on_share: f64 = 0.5, "share", Number(0.0, 1.0), when DYNAMIC,
        source "shRing paper, section 5.1.5: more than half";
    /// Rings are private again when at least this share of the window speaks against sharing.
    dynamic_off_share: f64 = 0.875, "share", Number(0.0, 1.0), when DYNAMIC,
        source "shRing paper, section 5.1.5: 7/8";
    /// Allocation rings of each NIC, linked to cores at even distances; 0: one for each of its queues.
    ax_rings: usize = 0, "rings", Whole(0, 256), when BISECT,
        source "rxBisect paper, section 4.2: one per core, or a few large ones of a few cores";
    /// The reception ring that each allocation ring of a NIC is linked to, whose core fills it: as many numbers as
    /// there are allocation rings, such as `0 0 4 4`.
    ax_links: Option<RingGroups> = None, "", RingNumbers, when BISECT,
        default "at even distances";
    /// The allocation rings that each reception ring of a NIC is associated with: a group for each, such as
    /// `0-1, 0-1, 2, 2` for four queues.
    associations: Option<RingGroups> = None, "", RingSets, when BISECT,
        default "those of its set";
    /// Disjoint sets that the queues of each NIC form: packets lie in buffers of their own set only, so
    /// that applications are kept apart.
    association_sets: usize = 1, "sets", Whole(1, 256), when BISECT,
        source "rxBisect paper, section 4.5: one set is the most flexible";
    /// Entries of each allocation ring.
    ax_entries: usize = 128, "entries", PowerOfTwo(2, 65536), when BISECT,
        source "rxBisect paper, section 4.2: small, such as 128";
    /// Reception ring entries per queue.
    bx_entries: usize = 1024, "entries", PowerOfTwo(2, 65536), when BISECT,
        source "rxBisect paper, section 4.5: enough for bursts at 100 Gbit/s";
    /// Which allocation ring lends a buffer when a core's own has none.
    ax_choice: String = "random".into(), "", Choice(&["random", "round_robin", "fullest"]),
        when BISECT, source "rxBisect paper, section 4.1";
    /// Which own descriptors come before those of others: all that a doorbell told of (`first`), for which a packet may
    /// wait a round trip, or only those that the NIC has read (`at_hand`).
    ax_own: String = "first".into(), "", Choice(&["first", "at_hand"]), when BISECT,
        source "rxBisect paper, section 4.4: availability is known from doorbells";
    /// When a notice of a lent buffer is written: at once, or with the next packet for its
    /// ring and at the latest after `consumption_timeout_us`.
    consumption: String = "parallel".into(), "", Choice(&["parallel", "batched"]), when BISECT,
        source "rxBisect paper, section 4.4";
    /// How long a notice waits for a packet.
    consumption_timeout_us: f64 = 10.0, "µs", Number(0.001, 100_000.0), when BISECT, when BATCHED;
    /// Where frames are cut into headers and payload, from their beginning; 0: where the headers end
    /// that the NIC has parsed. Applications drop what is cut within its headers (`headers_split`).
    split_at: usize = 0, "bytes", Whole(0, 2048), when SPLITTING;
    /// Whether headers come in receive completions instead of buffers.
    rx_inline: bool = false, "", Flag, when SPLITTING, source "nicmem paper, section 2.2.2";
    /// Whether transmit descriptors hold headers; with `nm_nfv` they always do.
    tx_inline: bool = false, "", Flag, source "nicmem paper, section 2.2.2";
    /// Memory that each NIC gives to software: for values of hot items and copies first, the rest for
    /// packets of interfaces that use it.
    nicmem_kib: u64 = 22_528, "KiB", Whole(0, 4_194_304),
        with ON_NICMEM, with HOT_IN_NICMEM, with COPIES_NICMEM, default "the machine's";
    /// Queues of each NIC whose payload goes there, the first ones.
    nicmem_queues: Option<usize> = None, "queues", Whole(0, 256), when ON_NICMEM,
        default "all queues";
    /// Transmit ring entries per queue.
    tx_entries: usize = 1024, "entries", PowerOfTwo(8, 65536),
        source "nicmem paper, set-up: default ring size";
    /// Packet buffers that each core's level of the pool keeps; one and a half times as many
    /// make it give some to the shared level.
    pool_cache: usize = 256, "buffers", Whole(0, 4096),
        source "DPDK user guide, testpmd: mbuf cache of 250, rounded";
    /// Which buffers the level of the pool that cores share gives out: those that it got first, or last.
    pool_order: String = "ring".into(), "", Choice(&["ring", "stack"]),
        source "DPDK programmer's guide, mempool handlers: ring is the default, stack another one";
    /// Bytes of frame that a packet buffer holds, rounded up to whole cache lines. Longer frames are
    /// dropped (`oversized_frame`).
    buffer_bytes: usize = 2048, "bytes", Whole(2048, 65_600),
        source "DPDK: RTE_MBUF_DEFAULT_DATAROOM";
    /// LLC ways that DMA writes may allocate into (DDIO); 0 turns DDIO off.
    io_ways: usize = 2, "ways", Whole(0, 16), default "the machine's";
    /// Core clock; the machine's when unset.
    cpu_ghz: Option<f64> = None, "GHz", Number(0.1, 20.0), default "the machine's";
    /// Where the NIC sits.
    placement: String = "STE".into(), "", Placement, when WHOLE_SYSTEMS,
        source "integrated NIC dissertation, section 5.1";
    /// Size of the second-level cache; the machine's when unset.
    cache_mib: Option<usize> = None, "MiB", PowerOfTwo(1, 1024), when WHOLE_SYSTEMS,
        default "the machine's";
    /// Whether the driver of a SINIC polls always instead of waiting for interrupts.
    driver_polls: bool = false, "", Flag, when WHOLE_SYSTEMS, when BY_REGISTERS,
        source "integrated NIC dissertation, appendix A.3.1: Config.Poll";
    /// Whether it receives by a thread, which takes turns with the process, instead of by soft
    /// interrupts.
    receive_thread: bool = false, "", Flag, when WHOLE_SYSTEMS, when BY_REGISTERS,
        source "integrated NIC dissertation, appendix A.3.1: Config.RxThread";
    /// Whether it transmits by a thread.
    transmit_thread: bool = false, "", Flag, when WHOLE_SYSTEMS, when BY_REGISTERS,
        source "integrated NIC dissertation, appendix A.3.1: Config.TxThread";
    /// Whether each core has a receive thread, for the connections of its own process; with
    /// `receive_thread` only.
    spread_receive: bool = false, "", Flag, when WHOLE_SYSTEMS, when BY_REGISTERS,
        source "integrated NIC dissertation, appendix A.3.1: Config.RSS";
    /// TCP connections, which a process uses in turn.
    streams: usize = 1, "connections", Whole(1, 256), when WHOLE_SYSTEMS, unless ISCSI;
    /// Bytes that a process reads or writes by one system call, at most.
    call_kib: usize = 16, "KiB", Whole(1, 1024), when WHOLE_SYSTEMS,
        source "netperf: default size of sends on Linux";
    /// Bytes of a socket's receive buffer, and of its send buffer.
    socket_kib: usize = 256, "KiB", Whole(4, 16384), when WHOLE_SYSTEMS;
    /// Reads that the initiator keeps outstanding.
    iscsi_outstanding: usize = 8, "reads", Whole(1, 1024), when ISCSI;
    /// Bytes of each of its reads.
    iscsi_read_kib: usize = 8, "KiB", Whole(1, 1024), when ISCSI,
        source "RFC 3720: default of MaxRecvDataSegmentLength";
    /// Directories of files that the web server has; SPECweb99 has more with more load.
    web_directories: usize = 16, "directories", Whole(1, 256), when ("workload", &["web_server"]);
    /// Delay of the link, beside the time that a frame's bits take.
    link_delay_us: f64 = 0.0, "µs", Number(0.0, 1e6), when WHOLE_SYSTEMS,
        source "integrated NIC dissertation, section 3.2";
    /// Share of frames that the link loses, in each direction.
    link_loss: f64 = 0.0, "share", Number(0.0, 0.9), when WHOLE_SYSTEMS;
    /// Share of frames that come twice.
    link_duplicates: f64 = 0.0, "share", Number(0.0, 1.0), when WHOLE_SYSTEMS;
    /// Share of frames that others overtake.
    link_reordered: f64 = 0.0, "share", Number(0.0, 1.0), when WHOLE_SYSTEMS;
    /// How much later those come.
    link_reordered_by_us: f64 = 20.0, "µs", Number(0.0, 1e6), when WHOLE_SYSTEMS;
    /// Packets per receive call.
    burst: usize = 32, "packets", Whole(1, 32);

    /// Frame bytes offered over all ports; limited by the line rate.
    offered_gbps: f64 = 200.0, "Gbit/s", Number(0.001, 10_000.0), moot PING_PONG, moot RECORDED;
    /// How frames arrive; `replay` plays the capture `pcap`.
    arrival: String = "constant".into(), "",
        Choice(&["constant", "poisson", "bursts", "ping_pong", "replay"]);
    /// Frames per burst, back to back.
    burst_packets: u32 = 32, "frames", Whole(1, 1_000_000), when BURSTS;
    /// Frames in flight per port.
    in_flight: u32 = 1, "frames", Whole(1, 65536), when PING_PONG;
    /// How long after it was sent a frame that did not come back is given up, and another is sent.
    request_timeout_us: f64 = 5000.0, "µs", Number(1.0, 60_000_000.0), when PING_PONG,
        source "eRPC (NSDI 2019): retransmission after 5 ms, as its clients cannot know a drop sooner";
    /// Frame size without FCS; with `bimodal` the large size.
    packet_bytes: u32 = 1500, "bytes", Whole(60, 9216),
        when ("packet_sizes", &["fixed", "bimodal"]), unless KVS, moot REPLAY;
    /// Distribution of frame sizes; `empirical` reads `size_file`.
    packet_sizes: String = "fixed".into(), "",
        Choice(&["fixed", "imix", "bimodal", "empirical"]), unless KVS, moot REPLAY;
    /// Share of small (64 B) frames.
    small_share: f64 = 0.5, "share", Number(0.0, 1.0), when ("packet_sizes", &["bimodal"]),
        unless KVS;
    /// File of `bytes weight` lines.
    size_file: Option<String> = None, "", File, when ("packet_sizes", &["empirical"]),
        unless KVS;
    /// Distinct flows over all ports; each has a random 5-tuple.
    flows: u64 = 1_000_000, "flows", Whole(1, 100_000_000), with MADE_UP, with OFFLOAD;
    /// Which flow the next packet belongs to.
    flow_choice: String = "uniform".into(), "",
        Choice(&["uniform", "zipf", "single", "round_robin"]), moot REPLAY;
    /// Exponent s of the Zipf distribution.
    zipf_s: f64 = 0.99, "", Number(0.0, 10.0), when ("flow_choice", &["zipf"]),
        moot REPLAY;
    /// Share of packets steered to the first queue of each NIC; 0: as RSS spreads them.
    target_share: f64 = 0.0, "share", Number(0.0, 1.0), unless KVS, moot REPLAY;
    /// Packets of the first queue of each NIC, the busiest, to those of its last, the idlest, 1 or more;
    /// shares of the queues between fall evenly. 0: as RSS spreads them.
    busiest_to_idlest: f64 = 0.0, "times", Number(0.0, 1000.0), unless KVS, moot REPLAY;
    /// Frame size of these packets; as of all others when unset.
    target_packet_bytes: Option<u32> = None, "bytes", Whole(60, 9216), unless KVS, with TARGET_SHARE,
        default "as all others";
    /// Random reads per packet that the core of the first queue of each NIC makes besides.
    target_accesses: u32 = 0, "reads", Whole(0, 100_000), when SYNTHETIC;
    /// Time since traffic began at which the target's share and reads begin; before, all cores
    /// are alike.
    target_begins_ms: f64 = 0.0, "ms", Number(0.0, 60_000.0), unless KVS,
        with TARGET_SHARE, with TARGET_READS;
    /// Whether flows are in the application's tables before traffic begins.
    preload_flows: bool = true, "", Flag, when FLOW_TABLE, moot REPLAY;
    /// Capture to replay (pcap or pcapng), on each NIC.
    pcap: Option<String> = None, "", File, when REPLAY;
    /// Times of the capture: as recorded, or scaled so that the mean is `offered_gbps`.
    replay_timing: String = "scaled".into(), "", Choice(&["recorded", "scaled"]), when REPLAY;
    /// How often the capture is played.
    replay_loops: u32 = 1, "times", Whole(1, 1_000_000), when REPLAY;

    /// Entries of the flow table over all cores.
    table_entries: u64 = 10_000_000, "entries", Whole(16, 100_000_000), when FLOW_TABLE,
        source "rxBisect paper, section 6: Applications";
    /// What NICs do without software: nothing, or count the packets of known flows, rewrite their
    /// addresses and send them out (hairpin).
    offload: String = "none".into(), "", Choice(&["none", "accel_nfv"]), when COUNTER,
        source "nicmem paper, section 2.4";
    /// Memory of each NIC for state of these flows, 64 bytes each; the rest is in host memory.
    flow_memory_kib: u64 = 4096, "KiB", Whole(1, 4_194_304), when COUNTER, when OFFLOAD;
    /// States of flows that a NIC fetches from host memory at a time.
    flow_fetches: usize = 8, "fetches", Whole(1, 256), when COUNTER, when OFFLOAD;
    /// Back-end servers.
    servers: u32 = 32, "servers", Whole(1, 65536), when ("app", &["lb"]),
        source "rxBisect paper, section 6: Applications";
    /// Routes, a file of `prefix/length port` lines, by which packets leave; generated when unset, and then
    /// each packet leaves by the port that it came in on.
    routes_file: Option<String> = None, "", File, when ROUTING, default "generated routes";
    /// How many IPv4 routes are generated when there is no `routes_file`, beside a default route of IPv6.
    routes: u32 = 16_000, "routes", Whole(1, 1_000_000), when ROUTING;
    /// Random reads per packet.
    reads: u32 = 2, "reads", Whole(0, 10_000), when SYNTHETIC;
    /// How many of them are in flight at a time; 1: each waits for the one before.
    reads_in_flight: u32 = 1, "reads", Whole(1, 16), when SYNTHETIC;
    /// Size of the array that is read, shared by all cores.
    array_mib: u32 = 40, "MiB", Whole(1, 1024), when SYNTHETIC;
    /// What is done with the payload.
    payload: String = "untouched".into(), "", Choice(&["untouched", "read", "overwrite"]),
        when SYNTHETIC;

    /// Keys of the key-value store over all NICs; each NIC has its own.
    kvs_keys: u64 = 800_000, "keys", Whole(1, 100_000_000), when KVS,
        source "nicmem paper, set-up of the key-value store: 800 K pairs";
    /// Size of keys.
    kvs_key_bytes: u32 = 128, "bytes", Whole(8, 4096), when KVS,
        source "nicmem paper, set-up of the key-value store";
    /// Size of values.
    kvs_value_bytes: u32 = 1024, "bytes", Whole(8, 8192), when KVS,
        source "nicmem paper, set-up of the key-value store";
    /// Share of PUTs.
    kvs_put_share: f64 = 0.05, "share", Number(0.0, 1.0), when KVS, moot REPLAY;
    /// Share of DELETEs; all other requests are GETs.
    kvs_delete_share: f64 = 0.0, "share", Number(0.0, 1.0), when KVS, moot REPLAY;
    /// Which key the next request is for; `flow_choice` says of which client it is.
    kvs_key_choice: String = "uniform".into(), "", Choice(&["uniform", "zipf", "hot_area"]), when KVS,
        moot REPLAY;
    /// Exponent s of the keys' Zipf distribution.
    kvs_zipf_s: f64 = 0.99, "", Number(0.0, 10.0), when KVS, when ("kvs_key_choice", &["zipf"]),
        moot REPLAY;
    /// Hot area: the first keys, as many as have values of this size in all over all NICs.
    kvs_hot_kib: u64 = 256, "KiB", Whole(0, 4_194_304), when KVS, with HOT_KEYS, with HOT_IN_NICMEM,
        source "nicmem paper, section 2.3: memory that the adapter exposes";
    /// Share of requests for keys in the hot area.
    hot_share: f64 = 0.5, "share", Number(0.0, 1.0), when KVS,
        when HOT_KEYS, moot REPLAY;
    /// Whether values of hot items are copied out of host memory into replies, or sent from memory
    /// of the NIC (nmKVS), of which the hot area takes its size.
    kvs_hot_values: String = "host".into(), "", Choice(&["host", "nicmem"]), when KVS,
        source "nicmem paper, section 2.2.2";
    /// Whether the hot area's keys are in memory of the NIC before traffic begins.
    kvs_hot_preload: bool = true, "", Flag, when KVS, when ("kvs_hot_values", &["nicmem"]);
    /// Keys that are in the store before traffic begins, the likeliest ones first.
    kvs_preload_keys: Option<u64> = None, "keys", Whole(0, 100_000_000), when KVS,
        default "all keys";
    /// Slots of the store's index over all cores; a pair that finds its bucket of eight full
    /// takes the place of the oldest in it.
    kvs_index_slots: u64 = 2_000_000, "slots", Whole(8, 1_000_000_000), when KVS;
    /// Circular logs of the store over all cores; new pairs overwrite the oldest.
    kvs_log_mib: u32 = 2048, "MiB", Whole(1, 65_536), when KVS;

    /// Co-runners that run STREAM triad, each on a core of its own.
    stream_cores: usize = 0, "cores", Whole(0, 256);
    /// Co-runners that run a random-access graph kernel, each on a core of its own.
    graph_cores: usize = 0, "cores", Whole(0, 256);

    /// A co-runner that copies a buffer over and over, on a core of its own: from where to where.
    copy: String = "none".into(), "", Choice(&["none", "host_to_host", "host_to_nicmem", "nicmem_to_host"]);
    /// Size of that buffer.
    copy_kib: u64 = 64, "KiB", Whole(1, 1_048_576), when COPIES;
    /// Where other co-runners run: on cores of the same socket, with the workers' LLC, or on the other
    /// socket, from where they use the same memory but none of its caches.
    co_runner_socket: String = "same".into(), "", Choice(&["same", "other"]),
        with STREAMS, with GRAPHS;

    /// What is measured: one window, or a search for the highest rate without loss (RFC 2544).
    measure: String = "window".into(), "", Choice(&["window", "no_drop_rate"]);
    /// Cores begin to poll this long after traffic begins, so that they meet full rings, as
    /// a server does whose flow tables and caches are cold when traffic begins.
    polling_starts_ms: f64 = 0.0, "ms", Number(0.0, 60_000.0);
    /// Simulated time before the window.
    warmup_ms: f64 = 5.0, "ms", Number(0.0, 60_000.0),
        with MADE_UP, with SEARCH, with WHOLE_SYSTEMS;
    /// Time from one entry of the report's time line to the next, from the beginning of traffic
    /// on; there is none when unset.
    timeline_ms: Option<f64> = None, "ms", Number(0.001, 60_000.0),
        when ("measure", &["window"]), default "no time line";
    /// Simulated time of the window.
    window_ms: f64 = 10.0, "ms", Number(0.001, 60_000.0), moot REPLAY;
}
