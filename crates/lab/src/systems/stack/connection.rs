//! A connection: TCP's engine, the bytes of both directions, the socket's place in memory.

use nicforge_interfaces::kernel::SharedLock;
use nicforge_platform::{Addr, AddressSpace, Cpu};
use nicforge_tcp::Config;
use nicforge_units::{CACHE_LINE_BYTES, Time};

use super::engine::{Endpoint, Engine};
use super::receive_queue::ReceiveQueue;
use super::send_buffer::SendBuffer;
use crate::systems::process::Way;

/// Lines of a socket's state that each packet of it reads and changes: `struct tcp_sock` has more,
/// of which the fast path uses about so many.
const CONTROL_LINES: u64 = 4;

/// Connections are opened when all NICs are surely up: a lost first segment costs a second.
const OPENS_AT: Time = Time::from_us(200);

/// Payload of a full segment: what IPv4 and TCP headers leave.
fn segment_bytes(plan: &ConnectionPlan) -> u64 {
    const HEADERS: u64 = 40;
    const TIMESTAMPS: u64 = 12;
    plan.mtu as u64 - HEADERS - if plan.tcp.timestamps { TIMESTAMPS } else { 0 }
}

/// What a connection is made from.
#[derive(Clone, Debug)]
pub struct ConnectionPlan {
    /// This end.
    pub local: Endpoint,
    /// The other end.
    pub remote: Endpoint,
    /// Whether this end opens it.
    pub opens: bool,
    /// Whether small segments wait for acknowledgements (RFC 896).
    pub nagle: bool,
    /// Bytes of each of its buffers.
    pub buffer_bytes: u64,
    /// What TCP is configured as.
    pub tcp: Config,
    /// Largest IP packet.
    pub mtu: usize,
    /// For its first sequence number.
    pub seed: u64,
    /// The NIC that it goes through.
    pub nic: usize,
    /// The core whose process has it.
    pub core: usize,
}

/// One connection.
pub struct Connection {
    /// What it is made from.
    pub plan: ConnectionPlan,
    /// TCP.
    pub engine: Engine,
    /// What came in.
    pub receive: ReceiveQueue,
    /// What goes out.
    pub send: SendBuffer,
    /// Its state in memory.
    control: Addr,
    /// When TCP has something to send, if it is let.
    pub due: Time,
    /// TCP was let and sent nothing, though there is something: it waits for its peer.
    pub held_back: bool,
    /// Around all of it, where several cores come by.
    pub lock: SharedLock,
}

impl Connection {
    /// As `plan` says: listening, or with its first segment due; on a system with `cores` cores.
    pub fn new(plan: &ConnectionPlan, cores: usize, space: &mut AddressSpace) -> Connection {
        let window = plan.buffer_bytes as u32;
        let mut engine = Engine::new(plan.local, plan.mtu, window, plan.tcp.clone(), plan.nagle, plan.seed);
        if plan.opens {
            engine.connect(plan.local, plan.remote, OPENS_AT)
        } else {
            engine.listen(plan.local.port)
        }
        Connection {
            engine,
            receive: ReceiveQueue::default(),
            send: SendBuffer::new(segment_bytes(plan)),
            control: space.data(CONTROL_LINES * CACHE_LINE_BYTES, CACHE_LINE_BYTES),
            due: if plan.opens { OPENS_AT } else { Time::NEVER },
            held_back: false,
            lock: SharedLock::new(space, cores),
            plan: plan.clone(),
        }
    }

    /// What it carries from here, or to here.
    pub fn way(&self, number: usize, from_here: bool) -> Way {
        Way { connection: number, from_opener: self.plan.opens == from_here }
    }

    /// A packet of this connection reads and changes its state.
    pub fn touch<C: Cpu>(&self, cpu: &mut C) {
        for line in 0..CONTROL_LINES {
            let at = self.control + line * CACHE_LINE_BYTES;
            let count: u64 = cpu.load(at);
            cpu.store(at, count.wrapping_add(1));
        }
    }
}
