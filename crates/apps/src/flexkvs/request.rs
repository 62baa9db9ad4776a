//! From a datagram to a request of memcached's binary protocol.

use nicforge_nic::Packet;
use nicforge_platform::Cpu;
use nicforge_wire::headers::{
    MAGIC_REQUEST, MEMCACHED_HEADER_LEN, MEMCACHED_PORT, MemcachedView, memcached_opcode as opcode,
};

use crate::udp_service::Datagram;

/// The longest key (memcached, doc/protocol.txt).
const KEY_MAX: u16 = 250;

/// The condition under which a SET, ADD or REPLACE stores the pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Nothing.
    Always,
    /// It must not be there.
    Missing,
    /// It must be there.
    There,
}

/// The operation that a client requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The value, with the key if `with_key`.
    Get {
        /// Whether the reply repeats the key.
        with_key: bool,
    },
    /// Store the pair.
    Store(When),
    /// Remove the pair.
    Delete,
    /// Nothing.
    Noop,
    /// The server's version.
    Version,
    /// Something that the server does not know.
    Unknown,
    /// Something that it knows, with lengths that do not fit.
    Invalid,
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The datagram that it came in.
    pub datagram: Datagram,
    /// What is asked for.
    pub operation: Operation,
    /// Whether the usual outcome has no reply: a missing key of a GET, the success of everything else.
    pub quiet: bool,
    /// Bytes of extras.
    pub extras_len: u8,
    /// Bytes of key.
    pub key_len: u16,
    /// Bytes of value.
    pub value_len: u32,
    /// The CAS that the pair must have; 0: any.
    pub cas: u64,
}

impl Request {
    /// Where extras begin in the frame.
    pub fn extras_at(&self) -> u32 {
        self.datagram.at + MEMCACHED_HEADER_LEN as u32
    }

    /// Where the key begins.
    pub fn key_at(&self) -> u32 {
        self.extras_at() + u32::from(self.extras_len)
    }

    /// Where the value begins.
    pub fn value_at(&self) -> u32 {
        self.key_at() + u32::from(self.key_len)
    }

    /// Reads the packet's headers. An error is the name of a drop: what is no request of one datagram has no reply.
    pub fn read<C: Cpu>(cpu: &mut C, packet: &mut Packet, buffer_room: u32) -> Result<Request, &'static str> {
        let datagram = Datagram::read(cpu, packet, MEMCACHED_PORT, MEMCACHED_HEADER_LEN, buffer_room)?;
        let bytes = cpu.bytes(packet.head.at + u64::from(datagram.at), MEMCACHED_HEADER_LEN);
        let view = MemcachedView::new(bytes).map_err(|_| "bad_request")?;
        let body = u64::from(view.body_len());
        let before_value = u64::from(view.extras_len()) + u64::from(view.key_len());
        let is_whole = body + MEMCACHED_HEADER_LEN as u64 == u64::from(datagram.len);
        if view.datagram() != (0, 1) {
            return Err("several_datagrams");
        }
        if view.magic() != MAGIC_REQUEST || !is_whole || before_value > body {
            return Err("bad_request");
        }
        let mut request = Request {
            datagram,
            operation: Operation::Unknown,
            quiet: false,
            extras_len: view.extras_len(),
            key_len: view.key_len(),
            value_len: (body - before_value) as u32,
            cas: view.cas(),
        };
        (request.operation, request.quiet) = operation(view.opcode());
        if !request.is_well_formed() {
            request.operation = Operation::Invalid;
        }
        Ok(request)
    }

    /// Whether its parts are those that the operation has.
    fn is_well_formed(&self) -> bool {
        let (extras, has_key, has_value) = match self.operation {
            Operation::Get { .. } | Operation::Delete => (0, true, false),
            Operation::Store(_) => (8, true, true),
            Operation::Noop | Operation::Version => (0, false, false),
            Operation::Unknown | Operation::Invalid => return true,
        };
        self.extras_len == extras
            && (self.key_len > 0) == has_key
            && self.key_len <= KEY_MAX
            && (has_value || self.value_len == 0)
    }
}

fn operation(code: u8) -> (Operation, bool) {
    let get = |with_key| Operation::Get { with_key };
    match code {
        opcode::GET => (get(false), false),
        opcode::GET_QUIET => (get(false), true),
        opcode::GET_KEY => (get(true), false),
        opcode::GET_KEY_QUIET => (get(true), true),
        opcode::SET => (Operation::Store(When::Always), false),
        opcode::SET_QUIET => (Operation::Store(When::Always), true),
        opcode::ADD => (Operation::Store(When::Missing), false),
        opcode::ADD_QUIET => (Operation::Store(When::Missing), true),
        opcode::REPLACE => (Operation::Store(When::There), false),
        opcode::REPLACE_QUIET => (Operation::Store(When::There), true),
        opcode::DELETE => (Operation::Delete, false),
        opcode::DELETE_QUIET => (Operation::Delete, true),
        opcode::NOOP => (Operation::Noop, false),
        opcode::VERSION => (Operation::Version, false),
        _ => (Operation::Unknown, false),
    }
}
