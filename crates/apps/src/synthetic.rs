//! `synthetic`: random reads of a large array, then a route look-up or none; the payload is left
//! alone, read, or overwritten.
//!
//! The network function of papers/sh_ring and papers/rx_bisect, and without the look-up that of papers/nicmem, whose memory
//! appetite is a parameter. The reads of one packet are plain loads at pseudo-random 8-byte words, one after the
//! other, or several in flight, as a core has them that runs ahead.

use nicforge_nic::{Packet, Segment, Verdict};
use nicforge_platform::{Addr, AddressSpace, Cpu, Hint};
use nicforge_units::{Bytes, Time};

use crate::headers::{self, Headers};
use crate::l3fwd::Router;
use crate::options::{Payload, SyntheticOptions};
use crate::tables::{Random, mix};
use crate::{AppConfig, AppError, AppKind, AppShape, Application, Place, SharedTables};
use nicforge_wire::rewrite;

/// More reads than this are not in flight at a time.
pub const READS_IN_FLIGHT_MAX: u32 = 16;

/// The synthetic function on one core.
#[derive(Clone, Debug)]
pub struct Synthetic {
    pub(crate) router: Router,
    pub(crate) look_up: bool,
    pub(crate) array: Addr,
    pub(crate) words: u64,
    pub(crate) reads: u32,
    pub(crate) reads_in_flight: u32,
    pub(crate) more_reads: (u32, Time),
    pub(crate) payload: Payload,
    pub(crate) seed: u64,
    pub(crate) packets: u64,
    /// Depends on everything read, so that no read can be left out.
    pub(crate) digest: u64,
}

impl Synthetic {
    /// How many 8-byte words an array holds.
    pub(crate) fn words(array: Bytes) -> u64 {
        array.0 / 8
    }

    /// Reads `reads` words, of which none depends on another: as many together as there are in
    /// flight at a time.
    fn read<C: Cpu>(&mut self, cpu: &mut C, random: &mut Random, reads: u32) {
        let mut left = reads;
        while left > 0 {
            let together = left.min(self.reads_in_flight).clamp(1, READS_IN_FLIGHT_MAX);
            let mut words = [Addr(0); READS_IN_FLIGHT_MAX as usize];
            let words = &mut words[..together as usize];
            for word in &mut *words {
                *word = self.array + random.below(self.words) * 8;
                if together > 1 {
                    cpu.hint(Hint::Fetch { at: *word, len: 8 });
                }
            }
            for &mut word in words {
                self.digest ^= cpu.load::<u64>(word);
            }
            left -= together;
        }
    }

    fn touch_payload<C: Cpu>(&mut self, cpu: &mut C, packet: &mut Packet, headers: &Headers) {
        let pieces = payload(packet, headers);
        match self.payload {
            Payload::Untouched => {}
            Payload::Read => {
                for piece in pieces {
                    let mut words = cpu.bytes(piece.at, piece.len as usize).chunks_exact(8);
                    for word in &mut words {
                        let word = word.try_into().map_or(0, u64::from_ne_bytes);
                        self.digest = self.digest.wrapping_add(word);
                    }
                    for &byte in words.remainder() {
                        self.digest = self.digest.wrapping_add(u64::from(byte));
                    }
                }
            }
            Payload::Overwrite => {
                let value = mix(self.packets) as u8;
                for piece in pieces {
                    cpu.bytes_mut(piece.at, piece.len as usize).fill(value);
                }
                packet.offload.l4_checksum = true;
            }
        }
    }
}

impl<C: Cpu> Application<C> for Synthetic {
    /// Core 0 writes the routes.
    fn fill_shared(&mut self, cpu: &mut C) {
        self.router.start(cpu);
    }

    /// Handles one packet.
    fn packet(&mut self, cpu: &mut C, packet: &mut Packet) -> Verdict {
        self.packets += 1;
        let mut random = Random::new(self.seed ^ self.packets);
        let (more, from) = self.more_reads;
        let more = if cpu.now() >= from { more } else { 0 };
        self.read(cpu, &mut random, self.reads + more);
        let headers = match headers::read_checked(cpu, packet) {
            Ok(headers) => headers,
            Err(cause) => return Verdict::Drop(cause),
        };
        let way = if self.look_up { self.router.way(cpu, packet, &headers) } else { self.router.peer(packet) };
        let (out, macs) = match way {
            Ok(way) => way,
            Err(cause) => return Verdict::Drop(cause),
        };
        let frame = cpu.bytes_mut(packet.head.at, headers.window);
        rewrite::set_macs(frame, macs[0], macs[1]);
        self.touch_payload(cpu, packet, &headers);
        Verdict::Transmit(out)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("packets", self.packets)]
    }
}

impl AppKind for Synthetic {
    const NAME: &'static str = "synthetic";
    const ABOUT: &'static str = "reads an array at random, then looks up a route";
    const ROUTER: bool = true;
    type Options = SyntheticOptions;

    fn shape(options: &Self::Options) -> AppShape {
        AppShape { routes: true, more_accesses: options.target_accesses > 0, ..AppShape::default() }
    }

    fn share(config: &AppConfig, space: &mut AddressSpace) -> SharedTables {
        let shared = SharedTables::with_routes(config, space);
        let array = Bytes(u64::from(config.read::<SyntheticOptions>().array_mib) << 20);
        SharedTables { array: Some((space.paged(array.0), array)), ..shared }
    }

    fn build<C: Cpu>(
        config: &AppConfig,
        place: Place,
        _space: &mut AddressSpace,
        shared: &SharedTables,
    ) -> Result<Box<dyn Application<C>>, AppError> {
        let (array, size) = shared.array.ok_or(AppError::MissingTable { app: "synthetic", table: "the array" })?;
        let SyntheticOptions { look_up, reads, reads_in_flight, target_accesses, payload, .. } = config.read();
        Ok(Box::new(Synthetic {
            router: Router::new(config, place.core, shared),
            look_up,
            array,
            words: Synthetic::words(size),
            reads,
            reads_in_flight,
            more_reads: config.target_begins.map_or((0, Time::ZERO), |begins| (target_accesses, begins)),
            payload,
            seed: mix(config.seed ^ (place.core as u64) << 32),
            packets: 0,
            digest: 0,
        }))
    }
}

/// The packet's payload after its L4 header, padding excluded, in its two parts.
fn payload(packet: &Packet, headers: &Headers) -> [Segment; 2] {
    let start = u32::from(headers.summary.l4_offset) + headers.l4_header_len as u32;
    packet.span(start, headers.summary.l3_end)
}
