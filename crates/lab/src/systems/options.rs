//! Options of whole systems.

use nicforge_options::{Allowed, Form, choice, options};
use nicforge_tcp::Config;
use nicforge_tcp::config::EcnMode;
use nicforge_tcp::congestion::Algorithm;
use nicforge_units::{BitRate, Bytes, Time};
use nicforge_wire::link::{Bottleneck, LinkPlan};

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

choice! {
    /// Congestion control.
    pub enum Congestion {
        /// CUBIC (RFC 9438).
        Cubic = "cubic",
        /// NewReno's window (RFC 5681).
        Reno = "reno",
        /// DCTCP (RFC 8257); asks for ECN.
        Dctcp = "dctcp",
        /// TIMELY: a rate from round-trip times.
        Timely = "timely",
        /// The receiver's window only.
        None = "none",
    }
}

choice! {
    /// How lost data is found and sent again.
    pub enum LossRecovery {
        /// Selective acknowledgments, RACK-TLP (RFC 2018, RFC 8985).
        Sack = "sack",
        /// Duplicate acknowledgments (RFC 6582).
        NewReno = "new_reno",
        /// Everything from the first lost byte on, and one out-of-order interval at the receiver.
        GoBackN = "go_back_n",
    }
}

options! {
    /// TCP of all kernels of a run.
    pub struct TcpOptions {
        /// Congestion control.
        congestion_control: Congestion = Congestion::Cubic, "", Congestion::ALLOWED,
            source "Linux since 2.6.19; 2.6.13 has BIC, from which CUBIC comes";
        /// How lost data is found and sent again.
        loss_recovery: LossRecovery = LossRecovery::Sack, "", LossRecovery::ALLOWED;
        /// Timestamps in every segment (RFC 7323).
        tcp_timestamps: bool = false, "", Allowed::Flag,
            source "integrated NIC dissertation, section 2.3.2: headers take 54 bytes";
        /// Explicit congestion notification (RFC 3168).
        tcp_ecn: bool = false, "", Allowed::Flag, source "Linux: asks for it only if told to";
        /// Congestion window of a new connection.
        tcp_initial_window: u32 = 3, "segments", Allowed::Whole(1, 100), source "RFC 3390";
        /// Every segment with data is acknowledged at once.
        tcp_ack_every_segment: bool = false, "", Allowed::Flag;
        /// Least retransmission timeout.
        tcp_rto_min_ms: f64 = 200.0, "ms", Allowed::Number(0.1, 60_000.0), source "Linux: TCP_RTO_MIN";
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
        /// Share of frames of which a bit flips.
        link_corrupted: f64 = 0.0, "share", Allowed::Number(0.0, 1.0);
        /// A switch's port shapes each direction to this rate.
        link_gbps: Option<f64> = None, "Gbit/s", Allowed::Number(0.001, 10_000.0), default "no switch";
    }
}

options! {
    /// A switch on the link.
    pub struct SwitchOptions {
        /// Bytes that wait at the switch's port; a frame that does not fit is dropped.
        link_queue_kib: usize = 256, "KiB", Allowed::Whole(2, 1 << 20);
        /// A packet that finds more than this waiting is marked, if its transport is ECN-capable.
        link_mark_kib: Option<usize> = None, "KiB", Allowed::Whole(1, 1 << 20), default "no marks";
    }
}

impl TcpOptions {
    /// What a stack is configured as.
    pub fn config(&self) -> Config {
        let go_back_n = self.loss_recovery == LossRecovery::GoBackN;
        let usual = if go_back_n { Config::paper() } else { Config::default() };
        let sack = self.loss_recovery == LossRecovery::Sack;
        Config {
            algorithm: self.congestion_control.algorithm(),
            sack,
            dsack: sack,
            tail_loss_probe: sack,
            timestamps: self.tcp_timestamps,
            window_scaling: true,
            ecn: if self.tcp_ecn { EcnMode::On } else { EcnMode::Passive },
            initial_window: self.tcp_initial_window,
            ack_every_segment: self.tcp_ack_every_segment,
            rto_min: Time::from_seconds(self.tcp_rto_min_ms * 1e-3),
            // NICs of whole systems take one segment at a time.
            segmentation_offload: false,
            ..usual
        }
    }
}

impl LinkOptions {
    /// The same link, on which every frame arrives once, whole and in order.
    pub fn without_faults(self) -> LinkOptions {
        LinkOptions { link_loss: 0.0, link_duplicates: 0.0, link_reordered: 0.0, link_corrupted: 0.0, ..self }
    }

    /// What a link does to frames; `switch` is the one on it, where there is one.
    pub fn plan(&self, switch: &SwitchOptions) -> LinkPlan {
        let us = |us: f64| Time::from_seconds(us * 1e-6);
        let kib = |kib: usize| Bytes((kib as u64) << 10);
        let bottleneck = self.link_gbps.map(|gbps| Bottleneck {
            rate: BitRate::from_gbps(gbps),
            queue: kib(switch.link_queue_kib),
            mark_above: switch.link_mark_kib.map(kib),
        });
        LinkPlan {
            delay: us(self.link_delay_us),
            bottleneck,
            loss: self.link_loss,
            duplicates: self.link_duplicates,
            reordered: self.link_reordered,
            reordered_by: us(self.link_reordered_by_us),
            corrupted: self.link_corrupted,
        }
    }
}

impl Congestion {
    /// The algorithm of the stack.
    pub fn algorithm(self) -> Algorithm {
        match self {
            Congestion::Cubic => Algorithm::Cubic,
            Congestion::Reno => Algorithm::Reno,
            Congestion::Dctcp => Algorithm::Dctcp,
            Congestion::Timely => Algorithm::Timely,
            Congestion::None => Algorithm::None,
        }
    }
}
