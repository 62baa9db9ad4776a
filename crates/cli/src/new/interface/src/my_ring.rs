//! Interface `my_ring`: a private ring per queue whose completions overwrite its descriptors. Change it into yours.
//!
//! ```text
//!   driver ── descriptors ─► ring in control memory ── read in batches ─► NIC
//!   driver ── doorbell: the ring's tail ────────────────────────────────► NIC
//!   driver ◄─ the same entry, written over ◄── one per frame ──────────── NIC
//! ```
//!
//! | word | written by the driver | written over it by the NIC |
//! | --- | --- | --- |
//! | 0 | address of the buffer's metadata | frame length (low 32 bits), RSS hash (high 32) |
//! | 1 | bytes of room for a frame | arrival of the first bit, ps |
//! | 2 | 0 | flags (low 8 bits), port (next 8), bytes of each frame of a segment (next 16) |
//! | 3 | 0 | 1: done |

use nicforge::interfaces::describe::{Around, Describe, Queues as QueuesOf, Shape};
use nicforge::interfaces::options::RxRing;
use nicforge::interfaces::priv_ring::{Fetcher, Ring};
use nicforge::interfaces::{Built, Interface, InterfaceError, KnownGround, Plan};
use nicforge::nic::{
    Arriving, Completion, DriverCosts, DriverHalf, DropCause, Fit, Packet, Pool, PoolCache, Queues, ReceiveHalf,
    RxFlags, Waiting,
};
use nicforge::options::{Allowed, Finding, ensure, options};
use nicforge::platform::bytemuck::{Pod, Zeroable};
use nicforge::platform::{Addr, AddressSpace, Cpu, Dma, Part, Register, publish_entry};
use nicforge::units::Time;

options! {
    /// A ring, and how often the driver rings.
    pub struct MyRingOptions {
        embed ring: RxRing;
        /// New buffers that a doorbell tells the NIC of, at least.
        my_ring_doorbell: usize = 1, "buffers", Allowed::Whole(1, 1024);
    }
}

impl Describe for MyRing {
    const NAME: &'static str = "my_ring";
    const ABOUT: &'static str = "a private ring whose completions overwrite its descriptors";
    type Options = MyRingOptions;

    fn shape(options: &MyRingOptions, queues: &QueuesOf<'_>) -> Shape {
        Shape::of_rings(queues, options.ring.rx_entries, 1)
    }

    fn check(options: &MyRingOptions, _queues: &QueuesOf<'_>) -> Result<(), Finding> {
        let most = options.ring.rx_entries / 2;
        ensure(options.my_ring_doorbell <= most, &["my_ring_doorbell", "rx_entries"], || {
            ("half of the ring would wait for a doorbell".to_owned(), format!("set my_ring_doorbell to at most {most}"))
        })
    }

    fn advice(options: &MyRingOptions, around: &Around<'_>) -> Vec<String> {
        let small = options.ring.rx_entries < around.burst_entries;
        let text = format!("rings of my_ring drop in bursts: use rx_entries of at least {}", around.burst_entries);
        Vec::from_iter(small.then_some(text))
    }
}

/// An entry as the driver writes it: an empty buffer.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[bytemuck(crate = "nicforge::platform::bytemuck")]
#[repr(C)]
struct Descriptor {
    mbuf: Addr,
    room: u64,
    reserved: u64,
    done: u64,
}

const ENTRY_BYTES: u64 = size_of::<Descriptor>() as u64;
/// Offset of the word that says whether an entry is a completion.
const DONE: u64 = 24;

/// An entry as the NIC writes it; with `len` 0 the entry named no buffer.
fn completion(frame: &Arriving<'_>, len: u32) -> [u64; 4] {
    let port = u64::from(frame.port.0) << 32 | u64::from(frame.segment) << 40;
    // The mark's highest bit makes way for the one that says that this is a completion.
    let flags = u64::from(frame.flags.0) | port | frame.mark >> 63 << 56;
    [u64::from(len) | u64::from(frame.rss_hash) << 32, frame.stamp.as_ps(), flags, frame.mark << 1 | 1]
}

/// What an entry says that the NIC has written.
fn decode(words: [u64; 4]) -> Completion {
    Completion {
        len: words[0] as u32,
        rss_hash: (words[0] >> 32) as u32,
        stamp: Time::from_ps(words[1]),
        flags: RxFlags(words[2] as u32),
        port: (words[2] >> 32) as u8,
        segment: (words[2] >> 40) as u16,
        mark: words[3] >> 1 | words[2] >> 56 << 63,
        ..Completion::default()
    }
}

/// One ring, as the NIC sees it.
struct Queue {
    ring: Ring<Descriptor>,
    buffers: Fetcher<Descriptor>,
}

/// The NIC's half: it sees host memory only through `Dma`.
struct NicHalf {
    queues: Vec<Queue>,
    pool: Pool,
}

impl Queues for NicHalf {
    fn queues(&self) -> u16 {
        self.queues.len() as u16
    }

    fn waiting(&self, queue: u16) -> Waiting {
        let buffers = &self.queues[usize::from(queue)].buffers;
        Waiting { entries: buffers.used_up(), of: buffers.entries() }
    }
}

impl<D: Dma> ReceiveHalf<D> for NicHalf {
    fn receive(&mut self, dma: &mut D, frame: &Arriving<'_>) -> Result<(), DropCause> {
        let Queue { ring, buffers } = &mut self.queues[usize::from(frame.queue)];
        let Some((here, descriptor)) = buffers.peek(dma) else {
            return Err(DropCause::NO_DESCRIPTOR);
        };
        let len = frame.bytes.len();
        let fit = self.pool.fit(dma, &frame.own(), descriptor.mbuf, descriptor.room, len);
        if fit == Fit::TooLong {
            return Err(DropCause::OVERSIZED);
        }
        dma.wait_until(here);
        let entry = ring.descriptor(u64::from(buffers.pop()));
        if fit == Fit::NoBuffer {
            publish_entry(dma, entry, completion(frame, 0));
            return Err(DropCause::BAD_DESCRIPTOR);
        }
        frame.write_to(dma, descriptor.mbuf, None);
        publish_entry(dma, entry, completion(frame, len as u32));
        Ok(())
    }

    fn write_register(&mut self, dma: &mut D, index: u32, value: u64) -> bool {
        let queue = self.queues.get_mut(index as usize);
        queue.is_some_and(|queue| queue.buffers.doorbell(dma, value))
    }
}

/// The driver's half, one for each queue: it sees memory and registers only through `Cpu`.
struct Driver {
    entries: Ring<Descriptor>,
    doorbell: Register,
    /// The buffer in each entry, 8 bytes each: the NIC writes over the address.
    buffers: Addr,
    /// Descriptors written so far; entries taken back.
    tail: u64,
    consumed: u64,
    taken: u64,
    /// The tail that the NIC was told last, and how far it must move before the next doorbell.
    rung: u64,
    doorbell_every: u64,
    costs: DriverCosts,
}

impl Driver {
    /// Puts an empty buffer into the entry at the tail.
    fn post<C: Cpu>(&mut self, cpu: &mut C, mbuf: Addr, room: u32) {
        let index = self.entries.index(self.tail);
        cpu.store(self.entries.descriptor(index), Descriptor { mbuf, room: room.into(), reserved: 0, done: 0 });
        cpu.store(self.buffers + index * 8, mbuf.0);
        self.tail += 1;
    }

    /// Tells the NIC of all entries up to the tail.
    fn ring<C: Cpu>(&mut self, cpu: &mut C) {
        cpu.mmio_write(self.doorbell, self.tail);
        self.rung = self.tail;
    }

    /// The oldest entry, if the NIC has written it.
    fn peek<C: Cpu>(&mut self, cpu: &mut C) -> Option<Completion> {
        let entry = self.entries.descriptor(self.entries.index(self.consumed));
        (cpu.acquire(entry + DONE) != 0).then(|| decode(cpu.load(entry)))
    }
}

impl<C: Cpu> DriverHalf<C> for Driver {
    fn start(&mut self, cpu: &mut C, pool: &mut PoolCache) {
        for _ in 0..self.entries.entries {
            let Some(mbuf) = pool.take(cpu) else { break };
            self.post(cpu, mbuf, pool.pool().room());
        }
        self.ring(cpu);
    }

    fn rx_burst(&mut self, cpu: &mut C, pool: &mut PoolCache, packets: &mut Vec<Packet>, max: usize) {
        let part = cpu.enter(Part::Driver);
        let before = self.tail;
        for _ in 0..max {
            let Some(completion) = self.peek(cpu) else { break };
            // Without a buffer to put in its place the frame stays in the ring.
            let Some(fresh) = pool.take(cpu) else { break };
            cpu.work(self.costs.rx_packet);
            let received = Addr(cpu.load::<u64>(self.buffers + self.entries.index(self.consumed) * 8));
            self.consumed += 1;
            self.post(cpu, fresh, pool.pool().room());
            if completion.len == 0 {
                pool.give(cpu, received);
            } else {
                self.taken += 1;
                packets.push(completion.packet(cpu, received));
            }
        }
        if self.tail != before {
            cpu.work(self.costs.burst);
        }
        if self.tail - self.rung >= self.doorbell_every {
            self.ring(cpu);
        }
        cpu.enter(part);
    }

    fn taken(&self) -> u64 {
        self.taken
    }

    fn buffers_held(&self) -> i64 {
        (self.tail - self.consumed) as i64
    }
}

/// The interface.
pub struct MyRing;

impl Interface for MyRing {
    fn build<G: KnownGround>(plan: &Plan, space: &mut AddressSpace) -> Result<Built<G>, InterfaceError> {
        let options: MyRingOptions = plan.values.read();
        Plan::check_ring("rx_entries", options.ring.rx_entries)?;
        let entries = options.ring.rx_entries as u64;
        let (mut queues, mut drivers) = (Vec::new(), Vec::new());
        for (queue, &owner) in plan.owners.iter().enumerate() {
            let base = space.control(entries * ENTRY_BYTES, owner)?;
            let ring = Ring::at(base, entries, plan.first_position);
            queues.push(Queue { ring, buffers: Fetcher::new(ring, plan.descriptor_read) });
            drivers.push(Driver {
                entries: ring,
                doorbell: Register { device: plan.device, index: queue as u32 },
                buffers: space.data(entries * 8, 64),
                tail: ring.first,
                consumed: ring.first,
                taken: 0,
                rung: ring.first,
                doorbell_every: options.my_ring_doorbell as u64,
                costs: plan.costs,
            });
        }
        Ok(Built::new(NicHalf { queues, pool: plan.pool }, drivers))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_passes_the_shared_suite() {
        nicforge::interfaces::suite::check::<super::MyRing>();
    }
}
