//! `flexkvs`: the key-value store of FlexNIC's paper (section 3), with memcached's binary protocol over UDP.
//!
//! ```text
//!  request.rs: parse ─┬─► serve.rs: GET, SET … ─► reply.rs: in the request's own buffer
//!  message.rs ────────┘
//!                        ├─ table.rs: block-chain hash table, a lock for each bucket
//!                        └─ log.rs: segments of each core, compaction; nic_log.rs: those that the NIC fills
//! ```
//!
//! All cores serve all keys. Steering decides which lines and locks they share: by flow any, by key none.
//!
//! Left out: opcodes of arithmetic, append, touch, statistics and authentication (`unknown command`); CAS, as in memcached
//! with `-C`; requests and replies of several datagrams. An expiry that is a date is taken for none, as runs have no date.

mod hash;
mod log;
mod message;
mod nic_log;
mod reply;
mod request;
mod serve;
mod table;
#[cfg(test)]
mod tests;

use nicforge_nic::{Packet, Verdict};
use nicforge_options::{Allowed, options};
use nicforge_platform::{AddressSpace, Cpu};
use nicforge_units::{Bytes, Cycles};
use nicforge_wire::headers::MemcachedStatus;
use nicforge_wire::traffic::RequestProtocol;

use crate::options::ValueOptions;
use crate::{AppConfig, AppError, AppKind, AppShape, Application, Place, SharedTables};
use log::{Segments, Writer};
use nic_log::NicLog;
use request::{Request, When};
use table::{ItemHeader, Table};

pub use hash::{crc32, lookup3};
pub use log::SEGMENT;
pub use table::item_bytes;

/// Items that a core moves with one request, while a segment is being compacted.
const MOVES: usize = 32;
/// Seconds up to which an expiry is a time from now (memcached, doc/protocol.txt).
const MONTH: u32 = 60 * 60 * 24 * 30;

options! {
    /// FlexKVS.
    pub struct FlexKvsOptions {
        embed value: ValueOptions;
        /// Buckets of the table; a power of two.
        flexkvs_buckets: u32 = 1 << 15, "buckets", Allowed::Whole(1, 1 << 28), source "FlexNIC paper, section 3.1";
        /// Log of all cores, in segments of 2 MiB.
        flexkvs_log_mib: u32 = 1024, "MiB", Allowed::Whole(2, 16_384), source "FlexNIC paper, section 3.1";
        /// Whether NICs take the headers off requests and append the pairs of SETs to the log, as
        /// examples/p4/flexkvs-dma.p4 does with interface `flexnic`; one NIC.
        flexkvs_nic_log: bool = false, "", Allowed::Flag, source "FlexNIC paper, section 3.2";
        /// Work for a request that came so, of that for one with its headers.
        flexkvs_message_work: u32 = 30, "%", Allowed::Whole(0, 100),
            source "FlexNIC paper, section 3.2: request processing shrinks from 500 lines to 150";
    }
}

/// The memory that all cores share.
#[derive(Clone, Debug)]
pub struct Store {
    table: Table,
    segments: Segments,
}

impl Store {
    /// Takes address space. The memory must be zero.
    pub fn allocate(options: &FlexKvsOptions, space: &mut AddressSpace) -> Store {
        let segments = Segments::allocate(space, Bytes(u64::from(options.flexkvs_log_mib) << 20));
        if options.flexkvs_nic_log {
            space.register(segments.log, segments.bytes() as usize);
        }
        let table = Table::allocate(space, options.flexkvs_buckets.next_power_of_two(), segments.log);
        Store { table, segments }
    }
}

/// The store on one core.
#[derive(Clone, Debug)]
pub struct FlexKvs {
    table: Table,
    writer: Writer,
    /// Whether it fills the pool of segments.
    fills: bool,
    buffer_room: u32,
    /// The segments that the NIC fills, where it does.
    nic_log: Option<NicLog>,
    /// Work for a request with its headers, and for a message.
    work: Cycles,
    message_work: Cycles,
    /// Key, value and extras of the request in hand: what the processor has in registers, stack and L1.
    key: Vec<u8>,
    value: Vec<u8>,
    flags: [u8; 4],
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    gets: u64,
    get_hits: u64,
    stores: u64,
    deletes: u64,
    others: u64,
    out_of_memory: u64,
    moved: u64,
    messages: u64,
}

/// The store's answer to a request, before it is a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The value is in `FlexKvs::value`.
    Value,
    /// Done, without anything to return.
    Done,
    /// The program's version.
    Version,
    Failed(MemcachedStatus),
}

impl FlexKvs {
    /// Serves what the NIC left of a request.
    fn message<C: Cpu>(&mut self, cpu: &mut C, packet: &mut Packet) -> Verdict {
        cpu.work(self.message_work);
        let hash = packet.mark as u32;
        let served = message::read(cpu, packet)
            .and_then(|(request, message)| Ok((request, self.serve_message(cpu, message, hash)?)));
        match served {
            Ok((request, outcome)) => {
                self.counts.messages += 1;
                self.answer(cpu, packet, &request, outcome)
            }
            Err(cause) => {
                self.counts.others += 1;
                Verdict::Drop(cause)
            }
        }
    }

    /// Sends the reply, and moves some items.
    fn answer<C: Cpu>(&mut self, cpu: &mut C, packet: &mut Packet, request: &Request, outcome: Outcome) -> Verdict {
        let replied = self.reply(cpu, packet, request, outcome);
        self.compact(cpu);
        match replied {
            Some(()) => Verdict::Transmit(packet.port),
            None => Verdict::Drop("no_reply_wanted"),
        }
    }
}

impl<C: Cpu> Application<C> for FlexKvs {
    fn store_pair(&mut self, cpu: &mut C, key: &[u8], value: &[u8]) {
        (self.key, self.value) = (key.to_vec(), value.to_vec());
        let hash = self.hash(key);
        let header = ItemHeader::new(hash, key.len() as u16, value.len() as u32, [0; 4], 0);
        let bucket = self.table.lock(cpu, hash);
        self.store_locked(cpu, bucket, header, When::Always, 0, 0);
        self.table.unlock(cpu, bucket);
    }

    /// Core 0 puts all segments into the pool.
    fn fill_shared(&mut self, cpu: &mut C) {
        if self.fills {
            self.writer.segments().fill(cpu);
        }
    }

    fn start(&mut self, cpu: &mut C) {
        if let Some(nic_log) = &mut self.nic_log {
            nic_log.register(cpu, self.writer.segments());
        }
    }

    /// It charges its work itself, as a message costs less.
    fn work(&self) -> Option<Cycles> {
        Some(Cycles(0))
    }

    /// Serves one request.
    fn packet(&mut self, cpu: &mut C, packet: &mut Packet) -> Verdict {
        if self.nic_log.is_some() && message::is_message(packet) {
            return self.message(cpu, packet);
        }
        cpu.work(self.work);
        let request = match Request::read(cpu, packet, self.buffer_room) {
            Ok(request) => request,
            Err(cause) => {
                self.counts.others += 1;
                return Verdict::Drop(cause);
            }
        };
        let outcome = self.serve(cpu, packet, &request);
        self.answer(cpu, packet, &request, outcome)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let counts = &self.counts;
        vec![
            ("gets", counts.gets),
            ("get_hits", counts.get_hits),
            ("stores", counts.stores),
            ("deletes", counts.deletes),
            ("other_requests", counts.others),
            ("out_of_memory", counts.out_of_memory),
            ("items_moved", counts.moved),
            ("messages", counts.messages),
        ]
    }
}

impl AppKind for FlexKvs {
    const NAME: &'static str = "flexkvs";
    const ABOUT: &'static str = "serves a key-value store with memcached's binary protocol over UDP";
    type Options = FlexKvsOptions;

    fn shape(_options: &Self::Options) -> AppShape {
        AppShape { requests: Some(RequestProtocol::Memcached), ..AppShape::default() }
    }

    fn share(config: &AppConfig, space: &mut AddressSpace) -> SharedTables {
        SharedTables { flexkvs: Some(Store::allocate(&config.values.read(), space)), ..SharedTables::default() }
    }

    fn build<C: Cpu>(
        config: &AppConfig,
        place: Place,
        _space: &mut AddressSpace,
        shared: &SharedTables,
    ) -> Result<Box<dyn Application<C>>, AppError> {
        let store = shared.flexkvs.clone();
        let store = store.ok_or(AppError::MissingTable { app: "flexkvs", table: "the table and the log" })?;
        let options: FlexKvsOptions = config.values.read();
        let nics = config.ports.0.len() as u64;
        if options.flexkvs_nic_log && nics != 1 {
            let (setting, range) = ("nics", "1 with flexkvs_nic_log");
            return Err(AppError::OutOfRange { setting, value: nics, range });
        }
        Ok(Box::new(FlexKvs {
            nic_log: options.flexkvs_nic_log.then(|| NicLog::new(place.core, place.cores)),
            work: config.work,
            message_work: Cycles(config.work.0 * u64::from(options.flexkvs_message_work) / 100),
            table: store.table,
            writer: Writer::new(store.segments),
            fills: place.core == 0,
            buffer_room: config.buffer_room,
            key: Vec::new(),
            value: Vec::new(),
            flags: [0; 4],
            counts: Counts::default(),
        }))
    }
}
