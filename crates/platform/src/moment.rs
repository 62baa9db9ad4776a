//! Moments in the lives of packets, of which a ground that traces takes note.

use nicforge_units::Time;

/// Which packet it is: no two of a port come in at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PacketKey {
    /// When its first bit came in.
    pub stamp: Time,
    /// The port it came in on; where it is sent, the port it leaves by.
    pub port: u8,
}

/// A moment in the life of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Its last bit came in; so many frames wait before it in the FIFO.
    Came {
        /// Frames.
        fifo: u64,
    },
    /// Steering chose a queue.
    Steered {
        /// The queue, counted within the NIC.
        queue: u16,
        /// Packets that wait in its ring.
        waiting: u64,
        /// Packets that the ring holds at most.
        of: u64,
    },
    /// It leaves the FIFO: its turn has come.
    Turn,
    /// It is behind the stages; the interface begins to write it to the host.
    Delivery,
    /// The interface has sent all writes.
    Delivered,
    /// A stage keeps it, answers it or sends it elsewhere.
    Diverted,
    /// The application begins with it, after `index` others of its burst.
    Handling {
        /// Others before it.
        index: usize,
    },
    /// The application has decided about it.
    Handled,
    /// The application keeps or consumes it: its way ends.
    Kept,
    /// Its descriptor is in the transmit ring of `port`.
    Pushed {
        /// That port.
        port: u8,
    },
    /// The NIC's turn for it: the engine begins to read its payload.
    Gathering {
        /// The transmit queue; none for what a stage or another NIC sends.
        queue: Option<u16>,
        /// When its descriptor was here.
        descriptor: Time,
    },
    /// It goes onto the wire.
    Sent {
        /// When all of its payload was here.
        gathered: Time,
        /// When its first bit leaves.
        first_bit: Time,
        /// When its last bit has left.
        last_bit: Time,
    },
    /// It is dropped, for this cause.
    Dropped(&'static str),
}

/// A moment of all packets of a core's burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BurstMoment {
    /// A receive call begins.
    Poll,
    /// It has brought packets.
    Polled {
        /// How many.
        packets: usize,
    },
    /// All are handled; the core begins to give them to transmit rings.
    Flush,
    /// It has told the NIC of those that it gave to a ring.
    Rung,
}
