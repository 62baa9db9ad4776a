//! Options of a run: who runs what on which cores.

mod co_runners;
mod measurement;
mod requests;
mod stages;
mod traffic;

use nicforge_options::{Allowed, choice, options};

pub use co_runners::{CoRunnerPlace, CoRunners, Copies, Copying};
pub use measurement::{Measure, Measurement, PrecisionOptions, TimelineOptions, Warmup, WindowOptions};
pub use requests::{HotArea, KeyChoice, KeyZipf, Pairs, Requests};
pub use stages::{StageOptions, StageProcessor};
pub use traffic::{
    Arrival, Arrivals, Bimodal, Bursts, Capture, Choices, Empirical, FlowChoices, Flows, PacketBytes, PacketSizes,
    PingPong, Rate, Shares, Sizes, TargetBytes, TargetTime, Timing, Zipf,
};

choice! {
    /// What runs.
    pub enum Workload {
        /// Frames sent at one server.
        Frames = "frames",
        /// Whole systems: one receives a stream.
        TcpReceive = "tcp_receive",
        /// One transmits a stream.
        TcpTransmit = "tcp_transmit",
        /// One serves files.
        WebServer = "web_server",
        /// One reads blocks.
        IscsiInitiator = "iscsi_initiator",
        /// One translates addresses between two others.
        NatGateway = "nat_gateway",
        /// Clients ask a server over TCP, which a service on a core of its own carries.
        RpcEcho = "rpc_echo",
        /// Workers on three machines exchange tuples.
        FlexStorm = "flexstorm",
    }
}

options! {
    /// What every run has.
    pub struct Run {
        /// What runs: frames sent at one server, whole systems with kernels and TCP on a link, RPCs over TCP as a service, or FlexStorm.
        workload: Workload = Workload::Frames, "", Workload::ALLOWED;
        /// The NIC-host interface, by registry name.
        interface: String = "priv_ring".to_owned(), "", Allowed::Named("interface");
    }
}

options! {
    /// What runs on the cores.
    pub struct Application {
        /// The application on every core.
        app: String = "nat".to_owned(), "", Allowed::Named("application");
    }
}

options! {
    /// Cores.
    pub struct Cores {
        /// Cores that run the application, divided evenly over the NICs; of whole systems, those of the
        /// one that is looked at, each with a process.
        cores: usize = 16, "cores", Allowed::Whole(1, 256), default "the machine's";
    }
}

options! {
    /// NICs.
    pub struct Nics {
        /// NICs in use.
        nics: usize = 2, "NICs", Allowed::Whole(1, 16), default "the machine's";
    }
}

options! {
    /// The last-level cache.
    pub struct Llc {
        /// LLC ways that DMA writes may allocate into (DDIO); 0 turns DDIO off.
        io_ways: usize = 2, "ways", Allowed::Whole(0, 16), default "the machine's";
    }
}

options! {
    /// The cores' clock.
    pub struct Clock {
        /// Core clock; the machine's when unset.
        cpu_ghz: Option<f64> = None, "GHz", Allowed::Number(0.1, 20.0), default "the machine's";
    }
}
