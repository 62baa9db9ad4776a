//! Options of the applications.

use std::net::Ipv4Addr;

use nicforge_nic::NicmemOptions;
use nicforge_options::{Allowed, IPV4, choice, options};

options! {
    /// Tables of flows.
    pub struct FlowTableOptions {
        /// Whether flows are in the application's tables before traffic begins.
        preload_flows: bool = true, "", Allowed::Flag;
        /// Entries of the flow table over all cores.
        table_entries: u64 = 10_000_000, "entries", Allowed::Whole(16, 100_000_000),
            source "rxBisect paper, section 6: Applications";
    }
}

options! {
    /// Addresses that a NAT sends from.
    pub struct ExternalOptions {
        embed count: ExternalCount;
        /// The first external address; the others follow it.
        external_address: Ipv4Addr = Ipv4Addr::new(198, 19, 0, 0), "", Allowed::Form(&IPV4),
            source "RFC 2544, appendix C.2.2: the upper half of what benchmarks may use";
    }
}

options! {
    /// How many addresses a NAT sends from: a setting of scenarios, too.
    pub struct ExternalCount {
        /// How many external addresses.
        external_addresses: Option<u32> = None, "addresses", Allowed::Whole(1, 65_536),
            default "1 in live runs, else as many as `table_entries` need";
    }
}

options! {
    /// Fragments of packets whose flow matters.
    pub struct FragmentOptions {
        /// Whether NICs hold fragments that come before the first one of their packet (stage `fragments`).
        hold_fragments: bool = false, "", Allowed::Flag, source "RFC 4787, REQ-14";
    }
}

options! {
    /// Addresses of a balanced service.
    pub struct ServiceOptions {
        /// The address that is balanced; the balancer takes packets to any when it is unset.
        service: Option<Ipv4Addr> = None, "", Allowed::Form(&IPV4), default "all";
        /// The first server's address; the others follow it.
        server_address: Ipv4Addr = Ipv4Addr::new(10, 200, 0, 1), "", Allowed::Form(&IPV4);
    }
}

choice! {
    /// What NICs do without software.
    pub enum Offload {
        /// Nothing.
        None = "none",
        /// Count the packets of known flows, rewrite their addresses and send them out.
        AccelNfv = "accel_nfv",
    }
}

options! {
    /// The counter.
    pub struct CounterOptions {
        embed table: FlowTableOptions;
        /// What NICs do without software: nothing, or count the packets of known flows, rewrite their
        /// addresses and send them out (hairpin).
        offload: Offload = Offload::None, "", Offload::ALLOWED, source "nicmem paper, section 2.4";
    }
}

choice! {
    /// Which server a new flow gets.
    pub enum ServerChoice {
        /// Each server in turn.
        RoundRobin = "round_robin",
        /// The one that the flow's hash says, on every core and after its entry has expired (Maglev hashing).
        Consistent = "consistent",
    }
}

options! {
    /// The load balancer.
    pub struct LbOptions {
        embed table: FlowTableOptions;
        embed fragments: FragmentOptions;
        /// Back-end servers.
        servers: u32 = 32, "servers", Allowed::Whole(1, 65536), source "rxBisect paper, section 6: Applications";
        /// Which server a new flow gets: each in turn, or the one that the flow's hash says (Maglev), which stays the same
        /// when its core dies or its entry expires.
        lb_choice: ServerChoice = ServerChoice::RoundRobin, "", ServerChoice::ALLOWED;
        /// Weights of servers and who is down, a file of `address weight` lines; a live run follows its changes. A server
        /// with weight 0 gets no new flows; `down` in place of the weight moves its flows, too.
        servers_file: Option<String> = None, "", Allowed::File, default "none: all have weight 1";
    }
}

options! {
    /// Routes.
    pub struct RouteOptions {
        /// Routes, a file of `prefix/length port` lines, by which packets leave; generated when unset, and then
        /// each packet leaves by the port that it came in on.
        routes_file: Option<String> = None, "", Allowed::File, default "generated routes";
        /// How many IPv4 routes are generated when there is no `routes_file`, beside a default route of IPv6.
        routes: u32 = 16_000, "routes", Allowed::Whole(1, 1_000_000);
    }
}

choice! {
    /// What `synthetic` does with the payload.
    pub enum Payload {
        /// Nothing.
        Untouched = "untouched",
        /// Reads every byte.
        Read = "read",
        /// Overwrites every byte; the NIC is asked to compute the checksum.
        Overwrite = "overwrite",
    }
}

options! {
    /// The synthetic application.
    pub struct SyntheticOptions {
        embed route: RouteOptions;
        /// Whether a route is looked up; without, a packet leaves by the peer of the port that it came in on.
        look_up: bool = true, "", Allowed::Flag;
        /// Random reads per packet that the core of the first queue of each NIC makes besides.
        target_accesses: u32 = 0, "reads", Allowed::Whole(0, 100_000);
        /// Random reads per packet.
        reads: u32 = 2, "reads", Allowed::Whole(0, 10_000);
        /// How many of them are in flight at a time; 1: each waits for the one before.
        reads_in_flight: u32 = 1, "reads", Allowed::Whole(1, 16);
        /// Size of the array that is read, shared by all cores.
        array_mib: u32 = 40, "MiB", Allowed::Whole(1, 1024);
        /// What is done with the payload.
        payload: Payload = Payload::Untouched, "", Payload::ALLOWED;
    }
}

choice! {
    /// Where values of hot items are.
    pub enum HotValues {
        /// In host memory, copied into replies.
        Host = "host",
        /// In memory of the NIC, sent from there.
        Nicmem = "nicmem",
    }
}

options! {
    /// Values of a key-value store.
    pub struct ValueOptions {
        /// Size of values.
        kvs_value_bytes: u32 = 1024, "bytes", Allowed::Whole(8, 8192),
            source "nicmem paper, set-up of the key-value store";
    }
}

options! {
    /// The key-value store.
    pub struct KvsOptions {
        embed value: ValueOptions;
        /// Whether values of hot items are copied out of host memory into replies, or sent from memory
        /// of the NIC (nmKVS), of which the hot area takes its size.
        kvs_hot_values: HotValues = HotValues::Host, "", HotValues::ALLOWED, source "nicmem paper, section 2.2.2";
        /// Slots of the store's index over all cores; a pair that finds its bucket of eight full
        /// takes the place of the oldest in it.
        kvs_index_slots: u64 = 2_000_000, "slots", Allowed::Whole(8, 1_000_000_000);
        /// Circular logs of the store over all cores; new pairs overwrite the oldest.
        kvs_log_mib: u32 = 2048, "MiB", Allowed::Whole(1, 65_536);
    }
}

options! {
    /// The hot area of a key-value store.
    pub struct HotAreaOptions {
        /// Hot area: the first keys, as many as have values of this size in all over all NICs.
        kvs_hot_kib: u64 = 256, "KiB", Allowed::Whole(0, 4_194_304),
            source "nicmem paper, section 2.3: memory that the adapter exposes";
    }
}

choice! {
    /// How a store knows which items are hot.
    pub enum HotItemsFrom {
        /// The hot area's keys are known before traffic begins, and stay it.
        Given = "given",
        /// Items that were asked for often of late, as a sketch counts them.
        Sketch = "sketch",
    }
}

options! {
    /// Hot values in memory of NICs.
    pub struct HotOptions {
        embed memory: NicmemOptions;
        /// How a store knows which items are hot: a sketch counts requests and items take each other's places, or the hot
        /// area's keys are known before traffic begins (in simulation only).
        kvs_hot_items: HotItemsFrom = HotItemsFrom::Sketch, "", HotItemsFrom::ALLOWED;
    }
}

options! {
    /// Hot items that a sketch finds.
    pub struct HotSketchOptions {
        /// Whether the hot area's keys are in memory of the NIC before traffic begins.
        kvs_hot_preload: bool = true, "", Allowed::Flag;
    }
}
