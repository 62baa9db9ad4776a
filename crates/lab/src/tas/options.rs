//! Options of RPCs over TCP, and of the service that carries them.

use nicforge_options::{Allowed, choice, options};

choice! {
    /// Where a host's TCP runs.
    pub enum Carrier {
        /// On the application's cores, in a Linux-like kernel.
        Linux = "linux",
        /// On cores of its own (TAS).
        Tas = "tas",
        /// On the NIC's processor (TASNIC).
        Tasnic = "tasnic",
    }
}

choice! {
    /// Which direction of the link loses, doubles, reorders and damages frames.
    pub enum FaultsToward {
        /// Both.
        Both = "both",
        /// Frames to the server.
        Server = "server",
        /// Frames to the clients.
        Clients = "clients",
    }
}

options! {
    /// Remote procedure calls: clients ask, a server answers.
    pub struct RpcOptions {
        /// Bytes of a request.
        rpc_bytes: u32 = 64, "bytes", Allowed::Whole(16, 1 << 28);
        /// Bytes of an answer.
        rpc_answer_bytes: Option<u32> = None, "bytes", Allowed::Whole(16, 1 << 28), default "those of a request";
        /// Connections.
        rpc_connections: usize = 1, "connections", Allowed::Whole(1, 20_000);
        /// Handshakes of clients at a time, at most: as one ends, another begins.
        rpc_opening: usize = 256, "handshakes", Allowed::Whole(1, 20_000),
            source "estimate: a SYN, an acknowledgment and a request of each fit a receive ring, and the slow path's queue";
        /// Requests of each connection that wait for their answers.
        rpc_in_flight: u32 = 1, "requests", Allowed::Whole(1, 1024);
        /// Requests of a connection, after which the client closes it and another opens; 0: it stays open.
        rpc_requests: u64 = 0, "requests", Allowed::Whole(0, 1 << 40);
        /// The server's own work for a request.
        rpc_work_cycles: u32 = 0, "cycles", Allowed::Whole(0, 1_000_000), source "TASNIC thesis, figure 5.2: 250 and 1000";
        /// Where the server's TCP runs: in a Linux-like kernel, on cores of its own (TAS), or on the NIC's processor (TASNIC).
        rpc_server: Carrier = Carrier::Tas, "", Carrier::ALLOWED;
        /// Where the clients' TCP runs.
        rpc_clients: Option<Carrier> = None, "", Carrier::ALLOWED, default "where the server's runs";
        /// Clients cost nothing: their host has a perfect memory and no work to do. Their TCP is a service's.
        rpc_free_clients: bool = false, "", Allowed::Flag;
        /// Which direction of the link loses, doubles, reorders and damages frames.
        rpc_link_faults: FaultsToward = FaultsToward::Both, "", FaultsToward::ALLOWED;
        /// Clients that cost nothing look at frames at most this often, as hosts do whose interrupts are moderated, and acknowledge what came meanwhile at once.
        rpc_client_moderation_us: f64 = 0.0, "µs", Allowed::Number(0.0, 1000.0);
        /// The clients' own work for an answer.
        rpc_client_work_cycles: u32 = 0, "cycles", Allowed::Whole(0, 1_000_000);
        /// The server costs nothing, as clients may; then figures are of the clients' host.
        rpc_free_server: bool = false, "", Allowed::Flag;
        /// Cores of each host that run the application; connections are shared out among them.
        rpc_app_cores: usize = 1, "cores", Allowed::Whole(1, 64);
    }
}

options! {
    /// TCP as a service.
    pub struct TasOptions {
        /// Fast-path cores of each host, at most: RSS splits flows among them, and they come and go with the load.
        tas_fast_cores: usize = 1, "cores", Allowed::Whole(1, 32);
        /// How often the service decides how many fast-path cores it needs.
        tas_decide_us: f64 = 100.0, "µs", Allowed::Number(1.0, 1e6),
            source "TAS: 10 ms; a simulated window is shorter";
        /// Instructions of the fast path for a segment, in or out, beyond its memory accesses.
        tas_segment_cycles: u32 = 300, "cycles", Allowed::Whole(0, 100_000),
            source "estimate: header checks, look-up, connection state; about 350 instructions";
        /// Instructions for an entry of a context queue, at either end.
        tas_entry_cycles: u32 = 60, "cycles", Allowed::Whole(0, 100_000), source "estimate";
        /// Instructions of the application's library for a call.
        tas_call_cycles: u32 = 120, "cycles", Allowed::Whole(0, 100_000), source "estimate";
        /// Entries of each context queue.
        tas_queue_entries: u32 = 1024, "entries", Allowed::PowerOfTwo(2, 32768),
            source "FlexTOE: 1 MiB and 512 KiB of 32-byte entries; fewer fit a cache";
        /// Bytes of each connection's payload buffers, each way.
        tas_buffer_kib: u32 = 8, "KiB", Allowed::PowerOfTwo(4, 16384), source "FlexTOE: 8 KiB each way by default";
    }
}

impl RpcOptions {
    /// Where the server's TCP runs.
    pub fn server(&self) -> Carrier {
        if self.rpc_free_server { Carrier::Tas } else { self.rpc_server }
    }

    /// Where the clients' TCP runs.
    pub fn clients(&self) -> Carrier {
        match (self.rpc_free_clients, self.rpc_clients) {
            (true, _) => Carrier::Tas,
            (false, clients) => clients.unwrap_or(self.rpc_server),
        }
    }

    /// Whether TCP of any host runs at `carrier`.
    pub fn uses(&self, carrier: Carrier) -> bool {
        self.server() == carrier || self.clients() == carrier
    }
}
