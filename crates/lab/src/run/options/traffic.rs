//! Options of traffic: one struct for each way in which frames arrive, have sizes and belong to flows.

use nicforge_options::{Allowed, choice, options};

choice! {
    /// How frames arrive.
    pub enum Arrival {
        /// One after the other, evenly.
        Constant = "constant",
        /// At random.
        Poisson = "poisson",
        /// Several back to back.
        Bursts = "bursts",
        /// When one before comes back.
        PingPong = "ping_pong",
        /// As a capture has them.
        Replay = "replay",
    }
}

options! {
    /// Traffic at a rate.
    pub struct Rate {
        /// Frame bytes offered over all ports; limited by the line rate.
        offered_gbps: f64 = 200.0, "Gbit/s", Allowed::Number(0.001, 10_000.0);
        /// What the generator's own NICs and software add to each latency, where latency is measured at the generator.
        generator_us: f64 = 0.0, "µs", Allowed::Number(0.0, 1e6);
    }
}

options! {
    /// Where traffic comes from.
    pub struct Arrivals {
        /// How frames arrive; `replay` plays the capture `pcap`.
        arrival: Arrival = Arrival::Constant, "", Arrival::ALLOWED;
    }
}

options! {
    /// Bursts.
    pub struct Bursts {
        /// Frames per burst, back to back.
        burst_packets: u32 = 32, "frames", Allowed::Whole(1, 1_000_000);
    }
}

options! {
    /// Ping-pong.
    pub struct PingPong {
        /// Frames in flight per port.
        in_flight: u32 = 1, "frames", Allowed::Whole(1, 65536);
        /// How long after it was sent a frame that did not come back is given up, and another is sent.
        request_timeout_us: f64 = 5000.0, "µs", Allowed::Number(1.0, 60_000_000.0),
            source "eRPC (NSDI 2019): retransmission after 5 ms, as its clients cannot know a drop sooner";
    }
}

choice! {
    /// How long frames are.
    pub enum PacketSizes {
        /// All alike.
        Fixed = "fixed",
        /// The simple IMIX.
        Imix = "imix",
        /// Small ones and large ones.
        Bimodal = "bimodal",
        /// As a file says.
        Empirical = "empirical",
    }
}

options! {
    /// Frames of a given size.
    pub struct PacketBytes {
        /// Frame size without FCS; with `bimodal` the large size.
        packet_bytes: u32 = 1500, "bytes", Allowed::Whole(60, 9216);
    }
}

options! {
    /// How long made-up frames are.
    pub struct Sizes {
        /// Distribution of frame sizes; `empirical` reads `size_file`.
        packet_sizes: PacketSizes = PacketSizes::Fixed, "", PacketSizes::ALLOWED;
    }
}

options! {
    /// Small frames and large ones.
    pub struct Bimodal {
        /// Share of small (64 B) frames.
        small_share: f64 = 0.5, "share", Allowed::Number(0.0, 1.0);
    }
}

options! {
    /// Sizes of a file.
    pub struct Empirical {
        /// File of `bytes weight` lines.
        size_file: Option<String> = None, "", Allowed::File;
    }
}

choice! {
    /// Which flow a packet belongs to.
    pub enum FlowChoices {
        /// Any, all equally likely.
        Uniform = "uniform",
        /// Some far likelier than others.
        Zipf = "zipf",
        /// Always the same.
        Single = "single",
        /// Each in turn.
        RoundRobin = "round_robin",
    }
}

options! {
    /// Flows.
    pub struct Flows {
        /// Distinct flows over all ports; each has a random 5-tuple.
        flows: u64 = 1_000_000, "flows", Allowed::Whole(1, 100_000_000);
    }
}

options! {
    /// Which flows packets belong to.
    pub struct Choices {
        /// Which flow the next packet belongs to.
        flow_choice: FlowChoices = FlowChoices::Uniform, "", FlowChoices::ALLOWED;
    }
}

options! {
    /// Zipf's distribution of flows.
    pub struct Zipf {
        /// Exponent s of the Zipf distribution.
        zipf_s: f64 = 0.99, "", Allowed::Number(0.0, 10.0);
    }
}

options! {
    /// Which queues packets are steered to.
    pub struct Shares {
        /// Share of packets steered to the first queue of each NIC; 0: as RSS spreads them.
        target_share: f64 = 0.0, "share", Allowed::Number(0.0, 1.0);
        /// Packets of the first queue of each NIC, the busiest, to those of its last, the idlest, 1 or more;
        /// shares of the queues between fall evenly. 0: as RSS spreads them.
        busiest_to_idlest: f64 = 0.0, "times", Allowed::Number(0.0, 1000.0);
    }
}

options! {
    /// The target's frames.
    pub struct TargetBytes {
        /// Frame size of packets of `target_share`; as of all others when unset.
        target_packet_bytes: Option<u32> = None, "bytes", Allowed::Whole(60, 9216), default "as all others";
    }
}

options! {
    /// The target's time.
    pub struct TargetTime {
        /// Time since traffic began at which the target's share and reads begin; before, all cores
        /// are alike.
        target_begins_ms: f64 = 0.0, "ms", Allowed::Number(0.0, 60_000.0);
    }
}

choice! {
    /// At which times a capture is played.
    pub enum Timing {
        /// Scaled.
        Scaled = "scaled",
        /// As recorded.
        Recorded = "recorded",
    }
}

options! {
    /// Captures.
    pub struct Capture {
        /// Capture to replay (pcap or pcapng), on each NIC.
        pcap: Option<String> = None, "", Allowed::File;
        /// Times of the capture: as recorded, or scaled so that the mean is `offered_gbps`.
        replay_timing: Timing = Timing::Scaled, "", Allowed::Choice(&["recorded", "scaled"]);
        /// How often the capture is played.
        replay_loops: u32 = 1, "times", Allowed::Whole(1, 1_000_000);
    }
}
