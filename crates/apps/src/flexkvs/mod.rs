//! `flexkvs`: the key-value store of FlexNIC's paper (section 3), with memcached's binary protocol over UDP.
//!
//! ```text
//!  request.rs: parse ─► mod.rs: GET, SET … ─► reply.rs: in the request's own buffer
//!                        ├─ table.rs: block-chain hash table, a lock for each bucket
//!                        └─ log.rs: segments of each core, compaction
//! ```
//!
//! All cores serve all keys. Steering decides which lines and locks they share: by flow any, by key none.
//!
//! Left out: opcodes of arithmetic, append, touch, statistics and authentication (`unknown command`); CAS, as in memcached
//! with `-C`; requests and replies of several datagrams. An expiry that is a date is taken for none, as runs have no date.

mod log;
mod lookup3;
mod reply;
mod request;
mod table;
#[cfg(test)]
mod tests;

use nicforge_nic::{Packet, Verdict};
use nicforge_options::{Allowed, options};
use nicforge_platform::{AddressSpace, Cpu};
use nicforge_units::Bytes;
use nicforge_wire::headers::MemcachedStatus;
use nicforge_wire::traffic::RequestProtocol;

use crate::options::ValueOptions;
use crate::{AppConfig, AppError, AppKind, AppShape, Application, Place, SharedTables};
use log::{Segments, Writer};
use request::{Operation, Request, When};
use table::{ItemHeader, ItemId, Table};

pub use log::SEGMENT;
pub use lookup3::lookup3;
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
    fn serve<C: Cpu>(&mut self, cpu: &mut C, packet: &Packet, request: &Request) -> Outcome {
        let key = packet.span(request.key_at(), request.value_at());
        self.key.clear();
        for piece in key {
            self.key.extend_from_slice(cpu.bytes(piece.at, piece.len as usize));
        }
        let hash = lookup3(&self.key, 0);
        match request.operation {
            Operation::Get { .. } => self.get(cpu, hash),
            Operation::Store(when) => self.store(cpu, packet, request, hash, when),
            Operation::Delete => self.delete(cpu, request, hash),
            Operation::Noop => Outcome::Done,
            Operation::Version => Outcome::Version,
            Operation::Unknown => Outcome::Failed(MemcachedStatus::UnknownCommand),
            Operation::Invalid => Outcome::Failed(MemcachedStatus::Invalid),
        }
    }

    fn get<C: Cpu>(&mut self, cpu: &mut C, hash: u32) -> Outcome {
        self.counts.gets += 1;
        let now = seconds(cpu);
        let bucket = self.table.lock(cpu, hash);
        let found = self.table.find(cpu, bucket, hash, &self.key).filter(|found| is_alive(&found.header, now));
        if let Some(found) = &found {
            self.flags = found.header.flags;
            self.value.clear();
            self.value.extend_from_slice(cpu.bytes(found.value.at, found.value.len as usize));
        }
        self.table.unlock(cpu, bucket);
        match found {
            Some(_) => {
                self.counts.get_hits += 1;
                Outcome::Value
            }
            None => Outcome::Failed(MemcachedStatus::NotFound),
        }
    }

    fn store<C: Cpu>(&mut self, cpu: &mut C, packet: &Packet, request: &Request, hash: u32, when: When) -> Outcome {
        self.counts.stores += 1;
        let extras = packet.span(request.extras_at(), request.key_at());
        let mut bytes = [0; 8];
        let mut filled = 0;
        for piece in extras {
            let part = cpu.bytes(piece.at, piece.len as usize);
            bytes[filled..filled + part.len()].copy_from_slice(part);
            filled += part.len();
        }
        let [a, b, c, d, expiry @ ..] = bytes;
        self.value.clear();
        for piece in packet.span(request.value_at(), request.value_at() + request.value_len) {
            self.value.extend_from_slice(cpu.bytes(piece.at, piece.len as usize));
        }
        let now = seconds(cpu);
        let expires = match u32::from_be_bytes(expiry) {
            0 => 0,
            soon if soon <= MONTH => now.saturating_add(soon).max(1),
            _ => 0,
        };
        let header = ItemHeader::new(hash, request.key_len, request.value_len, [a, b, c, d], expires);
        let bucket = self.table.lock(cpu, hash);
        let outcome = self.store_locked(cpu, bucket, header, when, request.cas, now);
        self.table.unlock(cpu, bucket);
        outcome
    }

    /// Stores the pair in hand, in a locked bucket.
    fn store_locked<C: Cpu>(
        &mut self,
        cpu: &mut C,
        bucket: table::Locked,
        header: ItemHeader,
        when: When,
        cas: u64,
        now: u32,
    ) -> Outcome {
        let found = self.table.find(cpu, bucket, header.hash, &self.key);
        let alive = found.as_ref().is_some_and(|found| is_alive(&found.header, now));
        let refused = match (alive, when) {
            (true, When::Missing) => Some(MemcachedStatus::Exists),
            (false, When::There) => Some(MemcachedStatus::NotFound),
            // No pair has a CAS.
            (true, _) if cas != 0 => Some(MemcachedStatus::Exists),
            (false, _) if cas != 0 => Some(MemcachedStatus::NotFound),
            _ => None,
        };
        if let Some(status) = refused {
            return Outcome::Failed(status);
        }
        let Some(item) = self.append(cpu, header) else {
            self.counts.out_of_memory += 1;
            return Outcome::Failed(MemcachedStatus::OutOfMemory);
        };
        match found {
            Some(old) => {
                self.table.replace(cpu, bucket, &old, item);
                self.free(cpu, &old);
            }
            None => self.table.insert(cpu, bucket, header.hash, item),
        }
        Outcome::Done
    }

    /// Writes an item with the key and the value in hand to the log.
    fn append<C: Cpu>(&mut self, cpu: &mut C, header: ItemHeader) -> Option<ItemId> {
        let size = header.size();
        let offset = self.writer.append(cpu, size)?;
        let at = self.writer.segments().log + offset;
        cpu.store(at, header);
        let body = cpu.bytes_mut(at + table::ITEM_HEADER, self.key.len() + self.value.len());
        let (key, value) = body.split_at_mut(self.key.len());
        key.copy_from_slice(&self.key);
        value.copy_from_slice(&self.value);
        Some(ItemId::at(offset))
    }

    fn delete<C: Cpu>(&mut self, cpu: &mut C, request: &Request, hash: u32) -> Outcome {
        self.counts.deletes += 1;
        let now = seconds(cpu);
        let bucket = self.table.lock(cpu, hash);
        let found = self.table.find(cpu, bucket, hash, &self.key);
        let outcome = match &found {
            Some(found) if is_alive(&found.header, now) && request.cas != 0 => Outcome::Failed(MemcachedStatus::Exists),
            Some(found) => {
                let was_alive = is_alive(&found.header, now);
                self.table.remove(cpu, bucket, found);
                self.free(cpu, found);
                if was_alive { Outcome::Done } else { Outcome::Failed(MemcachedStatus::NotFound) }
            }
            None => Outcome::Failed(MemcachedStatus::NotFound),
        };
        self.table.unlock(cpu, bucket);
        outcome
    }

    fn free<C: Cpu>(&self, cpu: &mut C, found: &table::Found) {
        if let Some(offset) = found.item.offset() {
            self.writer.segments().free(cpu, offset, found.header.size());
        }
    }

    /// Moves some items out of a segment of which most is freed.
    fn compact<C: Cpu>(&mut self, cpu: &mut C) {
        for _ in 0..MOVES {
            let Some(offset) = self.writer.candidate(cpu) else {
                return;
            };
            let at = self.writer.segments().log + offset;
            let header: ItemHeader = cpu.load(at);
            let item = ItemId::at(offset);
            let bucket = self.table.lock(cpu, header.hash);
            if self.table.names(cpu, bucket, item) {
                let (key, value) = (usize::from(header.key_len), header.value_len as usize);
                let body = cpu.bytes(at + table::ITEM_HEADER, key + value);
                self.key.clear();
                self.key.extend_from_slice(&body[..key]);
                self.value.clear();
                self.value.extend_from_slice(&body[key..]);
                let found = self.table.find(cpu, bucket, header.hash, &self.key);
                let moved = self.append(cpu, header);
                let (Some(found), Some(moved)) = (found, moved) else {
                    // Without a free segment it stays where it is.
                    self.table.unlock(cpu, bucket);
                    return;
                };
                self.table.replace(cpu, bucket, &found, moved);
                self.counts.moved += 1;
            }
            self.table.unlock(cpu, bucket);
            self.writer.pass(header.size());
        }
    }
}

/// Seconds of the run.
fn seconds<C: Cpu>(cpu: &C) -> u32 {
    (cpu.now().as_ps() / 1_000_000_000_000) as u32
}

fn is_alive(header: &ItemHeader, now: u32) -> bool {
    header.expires == 0 || now < header.expires
}

impl<C: Cpu> Application<C> for FlexKvs {
    fn store_pair(&mut self, cpu: &mut C, key: &[u8], value: &[u8]) {
        (self.key, self.value) = (key.to_vec(), value.to_vec());
        let hash = lookup3(key, 0);
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

    /// Serves one request.
    fn packet(&mut self, cpu: &mut C, packet: &mut Packet) -> Verdict {
        let request = match Request::read(cpu, packet, self.buffer_room) {
            Ok(request) => request,
            Err(cause) => {
                self.counts.others += 1;
                return Verdict::Drop(cause);
            }
        };
        let outcome = self.serve(cpu, packet, &request);
        let replied = self.reply(cpu, packet, &request, outcome);
        self.compact(cpu);
        match replied {
            Some(()) => Verdict::Transmit(packet.port),
            None => Verdict::Drop("no_reply_wanted"),
        }
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
        Ok(Box::new(FlexKvs {
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
