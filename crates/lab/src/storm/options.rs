//! Options of FlexStorm.

use nicforge_options::{Allowed, choice, options};

choice! {
    /// Who brings tuples to their workers, acknowledges them and keeps windows.
    pub enum Help {
        /// Two threads of each machine.
        Software = "software",
        /// The NIC, by examples/p4/flexnic/storm.p4.
        Nic = "nic",
    }
}

choice! {
    /// Which worker runs where.
    pub enum Layout {
        /// Workers of each kind on all three machines.
        Balanced = "balanced",
        /// All counters on one machine, so that all tuples of spouts go there.
        Grouped = "grouped",
    }
}

options! {
    /// FlexStorm: the users who write most, counted on three machines.
    pub struct StormOptions {
        /// Who brings tuples to their workers: two threads of each machine, or the NIC (interface `flexnic`); `{machine}` in `flexnic_entries` is the
        /// machine's number.
        storm_help: Help = Help::Software, "", Help::ALLOWED, source "FlexNIC paper, section 4.1";
        /// Whether workers of each kind run on all machines, or all counters on one.
        storm_layout: Layout = Layout::Balanced, "", Layout::ALLOWED, source "FlexNIC paper, section 4.2";
        /// Users who write.
        storm_users: u64 = 20_000, "users", Allowed::Whole(1, 1 << 22), source "scaled with storm_slot_ms: as many of a window's tuples are of new users";
        /// Exponent of their Zipf distribution.
        storm_zipf_s: f64 = 1.0, "", Allowed::Number(0.0, 10.0), source "estimate: names of a day of tweets";
        /// Tuples of each spout a second, in millions; 0: as many as it can.
        storm_spout_mps: f64 = 0.0, "M/s", Allowed::Number(0.0, 100.0);
        /// Tuples of each spout in all; 0: it never ends.
        storm_spout_tuples: u64 = 0, "tuples", Allowed::Whole(0, 1 << 40);
        /// Entries of each worker's queues, in and out; with help of the NIC `rx_entries` and `tx_entries` count.
        storm_queue_entries: u64 = 4096, "entries", Allowed::PowerOfTwo(2, 1 << 15), source "FlexNIC supplement";
        /// How often counters tell the counts of a window, and begin a part of it anew.
        storm_slot_ms: f64 = 20.0, "ms", Allowed::Number(0.01, 1e6), source "FlexNIC paper, section 4: a minute; a simulated window is shorter";
        /// How often rankers tell the first users.
        storm_rank_ms: f64 = 2.0, "ms", Allowed::Number(0.01, 1e6), source "FlexNIC supplement: a second; scaled";
        /// Tuples that the multiplexer sends together, at most.
        storm_batch: usize = 64, "tuples", Allowed::Whole(1, 512), source "FlexNIC supplement: batches of Soft-FlexNIC";
        /// How long a tuple waits there for others, at most.
        storm_batch_ms: f64 = 10.0, "ms", Allowed::Number(0.0, 1e6), source "FlexNIC supplement";
        /// A worker's instructions for a tuple beyond its memory accesses.
        storm_work_cycles: u32 = 1290, "cycles", Allowed::Whole(0, 1_000_000), source "fitted to f-c2: 0.8 µs of a tuple in a worker's hands";
        /// Instructions of the network stack for a packet, in or out, without help.
        storm_stack_cycles: u32 = 250, "cycles", Allowed::Whole(0, 1_000_000), source "estimate: Extaris runs minimal code; Linux takes 2000 to 4000";
        /// Instructions of a thread for taking a tuple over from another, and for giving one to it.
        storm_semaphore_cycles: u32 = 100, "cycles", Allowed::Whole(0, 1_000_000), source "estimate: an uncontended sem_post or sem_wait";
    }
}
