//! Options of whole systems.

use nicforge_options::{Allowed, Form, options};

/// A place that the machine gives its NICs; checked when the machine is known.
const PLACEMENT: Allowed = Allowed::Form(&Form {
    says: "a place of the machine, in quotes",
    parse: |text| (!text.is_empty()).then(|| text.to_owned()),
});

options! {
    /// The system that is looked at.
    pub struct SystemOptions {
        /// Where the NIC sits.
        placement: String = "STE".to_owned(), "", PLACEMENT,
            source "integrated NIC dissertation, section 5.1";
        /// Size of the second-level cache; the machine's when unset.
        cache_mib: Option<usize> = None, "MiB", Allowed::PowerOfTwo(1, 1024), default "the machine's";
    }
}

options! {
    /// Connections.
    pub struct Streams {
        /// TCP connections, which a process uses in turn.
        streams: usize = 1, "connections", Allowed::Whole(1, 256);
    }
}

options! {
    /// Sockets.
    pub struct Sockets {
        /// Bytes that a process reads or writes by one system call, at most.
        call_kib: usize = 16, "KiB", Allowed::Whole(1, 1024), source "netperf: default size of sends on Linux";
        /// Bytes of a socket's receive buffer, and of its send buffer.
        socket_kib: usize = 256, "KiB", Allowed::Whole(4, 16384);
    }
}

options! {
    /// The iSCSI initiator.
    pub struct Iscsi {
        /// Reads that the initiator keeps outstanding.
        iscsi_outstanding: usize = 8, "reads", Allowed::Whole(1, 1024);
        /// Bytes of each of its reads.
        iscsi_read_kib: usize = 8, "KiB", Allowed::Whole(1, 1024),
            source "RFC 3720: default of MaxRecvDataSegmentLength";
    }
}

options! {
    /// The web server.
    pub struct Web {
        /// Directories of files that the web server has; SPECweb99 has more with more load.
        web_directories: usize = 16, "directories", Allowed::Whole(1, 256);
    }
}

options! {
    /// Links between systems.
    pub struct LinkOptions {
        /// Delay of the link, beside the time that a frame's bits take.
        link_delay_us: f64 = 0.0, "µs", Allowed::Number(0.0, 1e6),
            source "integrated NIC dissertation, section 3.2";
        /// Share of frames that the link loses, in each direction.
        link_loss: f64 = 0.0, "share", Allowed::Number(0.0, 0.9);
        /// Share of frames that come twice.
        link_duplicates: f64 = 0.0, "share", Allowed::Number(0.0, 1.0);
        /// Share of frames that others overtake.
        link_reordered: f64 = 0.0, "share", Allowed::Number(0.0, 1.0);
        /// How much later those come.
        link_reordered_by_us: f64 = 20.0, "µs", Allowed::Number(0.0, 1e6);
    }
}
