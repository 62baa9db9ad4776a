//! `kvs`: a key-value store as MICA is one (Lim et al., "MICA: A Holistic Approach to Fast
//! In-Memory Key-Value Storage", NSDI 2014).
//!
//! ```text
//!  request.rs: parse ─► store.rs: GET, PUT, DELETE ─► reply.rs: in the request's own buffer
//!                        ├─ index.rs: buckets of tagged slots, lossy
//!                        ├─ log.rs: circular, lossy
//!                        └─ hot.rs: values in memory of the NIC; sketch.rs: which ones
//! ```
//!
//! Each core owns the keys of one partition. With several NICs each serves keys of its own: a
//! partition is one of as many as the NIC has queues. A request that reaches another core is
//! answered with `Misdirected` and counted; nothing is done for it. What is no request is dropped
//! under its cause. Replies leave where the request came in.

mod hot;
mod index;
mod log;
mod reply;
mod request;
mod sketch;
mod store;
#[cfg(test)]
mod tests;

use nicforge_nic::{Packet, Segment, Verdict};
use nicforge_platform::{AddressSpace, Cpu};
use nicforge_units::{Bytes, CACHE_LINE_BYTES, Cycles};
use nicforge_wire::headers::{KvsOperation, KvsStatus, key_hash, partition_of};

use nicforge_wire::traffic::RequestProtocol;

use crate::copy::copy_work;
use crate::options::{HotItemsFrom, HotOptions, HotValues, KvsOptions};
use crate::{AppConfig, AppError, AppKind, AppShape, Application, Place, SharedTables};
use hot::{HotItems, Lent};
use request::Request;
use store::{Partition, Value};

pub use hot::hot_place_bytes;
pub use index::{BUCKET_SLOTS, index_keeps};
pub use log::item_bytes;

/// The store on one core.
#[derive(Clone, Debug)]
pub struct Kvs {
    partition: Partition,
    /// Its number, out of so many.
    number: u16,
    of: u16,
    /// Bytes of frame that packet buffers hold.
    buffer_room: u32,
    /// Key and value of the request in hand: what the processor has in registers, stack and L1.
    key: Vec<u8>,
    value: Vec<u8>,
    /// Or the reply's value, where it is sent from memory of the NIC.
    lent: Option<Lent>,
    /// Instructions of a copy loop for each line.
    copy_line: Cycles,
    counts: Counts,
}

#[derive(Clone, Debug, Default)]
struct Counts {
    gets: u64,
    get_hits: u64,
    puts: u64,
    deletes: u64,
    too_large: u64,
    misdirected: u64,
}

impl Kvs {
    fn allocate(config: &AppConfig, core: usize, cores: usize, space: &mut AddressSpace) -> Result<Kvs, AppError> {
        let share = |whole: u64| whole.div_ceil(cores.max(1) as u64);
        let queues = (cores / config.ports.0.len().max(1)).max(1);
        let of = u16::try_from(queues).map_err(|_| AppError::OutOfRange {
            setting: "cores",
            value: cores as u64,
            range: "at most 65535 for each port",
        })?;
        let KvsOptions { value, kvs_index_slots, kvs_log_mib, .. } = config.read();
        let slots = share(kvs_index_slots);
        if slots == 0 || slots > 1 << 35 {
            return Err(AppError::OutOfRange {
                setting: "kvs_index_slots",
                value: kvs_index_slots,
                range: "at least 1, and at most 2^35 for each core",
            });
        }
        let log = Bytes(share(u64::from(kvs_log_mib) << 20));
        let hot = config.hot.get(core / queues).and_then(|memory| {
            let each = memory.len / queues as u64 / CACHE_LINE_BYTES * CACHE_LINE_BYTES;
            let at = memory.at + each * (core % queues) as u64;
            let hot = HotItems::allocate(space, at, each, value.kvs_value_bytes)?.with_copy_line(config.copy_line);
            let given = config.read::<HotOptions>().kvs_hot_items == HotItemsFrom::Given;
            Some(if given { hot } else { hot.with_sketch(space) })
        });
        Ok(Kvs {
            partition: Partition::allocate(space, slots, log).with_hot(hot),
            number: (core % queues) as u16,
            of,
            buffer_room: config.buffer_room,
            key: Vec::new(),
            value: Vec::new(),
            lent: None,
            copy_line: config.copy_line,
            counts: Counts::default(),
        })
    }

    /// Does what is asked for; leaves the reply's value in `self.value` or `self.lent`.
    fn serve<C: Cpu>(&mut self, cpu: &mut C, packet: &Packet, request: &Request) -> KvsStatus {
        let hash = request.hash;
        // The bucket is on its way while the rest of the request is read.
        self.partition.prefetch_bucket(cpu, hash);
        let key = packet.span(request.key_at(), request.value_at());
        gather(cpu, &key, &mut self.key);
        self.partition.prefetch_items(cpu, hash, &self.key);
        match request.operation {
            KvsOperation::Get => {
                self.counts.gets += 1;
                let Some(found) = self.partition.get(cpu, hash, &self.key) else {
                    return KvsStatus::Missing;
                };
                match found {
                    Value::Lent(lent) => self.lent = Some(lent),
                    Value::InLog(value) if value.len > reply::value_room(request, self.buffer_room) => {
                        self.counts.too_large += 1;
                        return KvsStatus::TooLarge;
                    }
                    Value::InLog(value) => {
                        gather(cpu, &[value], &mut self.value);
                        // Out of the log to the stack, and from there into the reply.
                        cpu.work(copy_work(2 * value.len, self.copy_line));
                    }
                }
                self.counts.get_hits += 1;
                KvsStatus::Done
            }
            KvsOperation::Put => {
                self.counts.puts += 1;
                let value = packet.span(request.value_at(), request.end());
                gather(cpu, &value, &mut self.value);
                cpu.work(copy_work(self.value.len() as u32, self.copy_line));
                let stored = self.partition.put(cpu, hash, &self.key, &self.value);
                self.value.clear();
                match stored {
                    Ok(()) => KvsStatus::Done,
                    Err(store::TooLarge) => {
                        self.counts.too_large += 1;
                        KvsStatus::TooLarge
                    }
                }
            }
            KvsOperation::Delete => {
                self.counts.deletes += 1;
                if self.partition.delete(cpu, hash, &self.key) { KvsStatus::Done } else { KvsStatus::Missing }
            }
        }
    }

    /// Makes a stored pair hot without a request, while there is room.
    pub fn preload_hot<C: Cpu>(&mut self, cpu: &mut C, key: &[u8]) {
        let hash = key_hash(key);
        if partition_of(hash, self.of) == self.number {
            self.partition.preload_hot(cpu, hash, key);
        }
    }
}

impl<C: Cpu> Application<C> for Kvs {
    fn store_pair(&mut self, cpu: &mut C, key: &[u8], value: &[u8]) {
        let hash = key_hash(key);
        if partition_of(hash, self.of) == self.number {
            // A pair that is too large is missing when it is asked for, and counted there.
            let _ = self.partition.put(cpu, hash, key, value);
        }
    }

    /// Serves one request.
    fn packet(&mut self, cpu: &mut C, packet: &mut Packet) -> Verdict {
        let request = match request::parse(cpu, packet, self.buffer_room) {
            Ok(request) => request,
            Err(cause) => return Verdict::Drop(cause),
        };
        self.value.clear();
        self.lent = None;
        let status = if partition_of(request.hash, self.of) == self.number {
            self.serve(cpu, packet, &request)
        } else {
            self.counts.misdirected += 1;
            KvsStatus::Misdirected
        };
        match self.lent {
            Some(lent) => reply::lend(cpu, packet, &request, lent),
            None => reply::build(cpu, packet, &request, status, &self.value),
        }
        Verdict::Transmit(packet.port)
    }

    /// What was counted, by name.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        let counts = &self.counts;
        let hot = self.partition.hot().map(|hot| hot.counts.clone());
        let hot = hot.unwrap_or_default();
        vec![
            ("gets", counts.gets),
            ("get_hits", counts.get_hits),
            ("puts", counts.puts),
            ("deletes", counts.deletes),
            ("too_large", counts.too_large),
            ("misdirected", counts.misdirected),
            ("index_evictions", self.partition.index_evictions()),
            ("log_laps", self.partition.log_laps()),
            ("log_restarts", self.partition.restarts()),
            ("hot_lent", hot.lent),
            ("hot_copied", hot.copied),
            ("hot_refreshed", hot.refreshed),
            ("hot_moved_in", hot.moved_in),
            ("hot_moved_out", hot.moved_out),
        ]
    }
}

impl AppKind for Kvs {
    const NAME: &'static str = "kvs";
    const ABOUT: &'static str = "serves a key-value store: GET, PUT and DELETE over UDP";
    type Options = crate::options::KvsOptions;

    fn shape(options: &Self::Options) -> AppShape {
        AppShape {
            requests: Some(RequestProtocol::Kvs),
            values_in_nicmem: options.kvs_hot_values == HotValues::Nicmem,
            ..AppShape::default()
        }
    }

    fn build<C: Cpu>(
        config: &AppConfig,
        place: Place,
        space: &mut AddressSpace,
        _shared: &SharedTables,
    ) -> Result<Box<dyn Application<C>>, AppError> {
        Ok(Box::new(Kvs::allocate(config, place.core, place.cores, space)?))
    }
}

/// Puts the bytes of all pieces into `into`.
#[inline]
fn gather<C: Cpu>(cpu: &mut C, pieces: &[Segment], into: &mut Vec<u8>) {
    into.clear();
    for piece in pieces {
        into.extend_from_slice(cpu.bytes(piece.at, piece.len as usize));
    }
}
