use nicforge_nic::{
    Allocation, Application, Arriving, DropCause, Key, Nicmem, Pool, PortId, Queues, ReceiveHalf, RxFlags, mbuf_room,
};
use nicforge_platform::{AddressSpace, Cpu, Owner};
use nicforge_units::{Bytes, Time};
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

use super::layout::{Buffer, PRIMARY, SECONDARY, ring};
use super::nic::Queue;
use super::*;
use crate::priv_ring::layout::Ring;
use crate::suite::{Bench, Flat, Ground, Setup, Sim};

/// Random traffic and stalls; returns how many frames were spilled.
fn exercise<G: Ground>(interface: &'static str, setup: &Setup, seed: u64) -> u64 {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut bench: Bench<G> = Bench::new(interface, setup);
    while bench.taken < 600 {
        for _ in 0..random.next_u32() % 24 {
            let len = 14 + random.next_u32() % 2_034;
            // Rings may be full; whatever else is dropped the bench does not forgive.
            if let Err(cause) = bench.send(random.next_u32() % 6, len as usize) {
                assert_eq!(cause, DropCause::NO_DESCRIPTOR);
            }
        }
        bench.pass(Time::from_ns(random.next_u64() % 3_000));
        let core = random.next_u32() as usize % setup.queues;
        bench.poll(core, 1 + random.next_u32() as usize % 32);
        while bench.hands.len() > random.next_u32() as usize % 40 {
            let index = random.next_u32() as usize % bench.hands.len();
            bench.release(index, random.next_u32() as usize % setup.queues);
        }
    }
    bench.release_all();
    let spilled = bench.nic.spilled();
    bench.audit();
    spilled
}

#[test]
fn nothing_is_lost_with_any_amount_of_nicmem_and_any_way_to_split() {
    let shares = [0.0, 0.05, 0.3, 1.0, 3.0];
    let splits = [Split::Headers, Split::At(64), Split::At(1), Split::At(4096)];
    for (number, share) in shares.into_iter().enumerate() {
        for (seed, split) in splits.into_iter().enumerate() {
            for rx_inline in [false, true] {
                let setup = Setup { rx_entries: 32, nicmem_share: share, split, rx_inline, ..Setup::default() };
                let seed = (number * 10 + seed) as u64;
                exercise::<Sim>("nm_nfv", &setup, seed);
                exercise::<Flat>("split", &setup, seed);
            }
        }
    }
}

#[test]
fn frames_spill_only_while_nicmem_is_short() {
    let with = |nicmem_share| Setup { nicmem_share, cache: 2, ..Setup::default() };
    // All rings' worth, and what the cores have in hand.
    assert_eq!(exercise::<Sim>("nm_nfv", &with(3.0), 1), 0);
    assert!(exercise::<Sim>("nm_nfv", &with(0.25), 1) > 0);
    // Without any there is no ring of first choice to spill from.
    assert_eq!(exercise::<Sim>("nm_nfv", &with(0.0), 1), 0);
}

/// One queue whose descriptors a test writes itself.
struct Raw {
    ground: Flat,
    half: NicHalf,
    rings: [Ring<Buffer>; 2],
    tails: [u64; 2],
    pool: Pool,
    nicmem: Nicmem,
    ours: Allocation,
    theirs: Allocation,
}

const US: Application = Application(3);
const THEM: Application = Application(4);

fn raw() -> Raw {
    let mut space = AddressSpace::default();
    let mut nicmem = Nicmem::new(&mut space, 0, 8 * u64::from(mbuf_room()));
    let ours = nicmem.alloc_nicmem(US, 4 * u64::from(mbuf_room())).unwrap();
    let theirs = nicmem.alloc_nicmem(THEM, 2 * u64::from(mbuf_room())).unwrap();
    let pool = Pool::new(&mut space, 8);
    let rings = [PRIMARY, SECONDARY].map(|_| ring(&mut space, 8, 2, 0));
    let (writer, _) = inlining_completion_ring(&mut space, 16, Owner(0), false).unwrap();
    let options = Options { split: Split::At(64), keys: nicmem.keys(), application: US, ..Options::default() };
    let queue = Queue::new(rings, 2, Bytes(512), writer);
    Raw {
        ground: Flat::new(&space, 1),
        half: NicHalf::new(vec![queue], pool, &options),
        rings,
        tails: [0; 2],
        pool,
        nicmem,
        ours,
        theirs,
    }
}

impl Raw {
    fn give(&mut self, side: usize, payload: Buffer) {
        let headers = Buffer::new(self.pool.buffer(0), mbuf_room(), Key::HOST);
        for buffer in [headers, payload] {
            let at = self.rings[side].descriptor(self.tails[side]);
            self.ground.core(0).store(at, buffer);
            self.tails[side] += 1;
        }
        let (device, frames) = (&mut *self.ground.device(), self.tails[side] / 2);
        assert!(self.half.write_register(device, side as u32, frames));
    }

    fn receive(&mut self, len: usize) -> Result<(), DropCause> {
        let arriving = Arriving {
            mark: 0,
            bytes: &vec![0xff; len],
            head: len,
            headers: 42,
            stamp: Time::ZERO,
            rss_hash: 0,
            flags: RxFlags::default(),
            segment: 0,
            port: PortId(0),
            queue: 0,
        };
        self.half.receive(&mut *self.ground.device(), &arriving)
    }
}

#[test]
fn memory_that_the_queues_owner_does_not_hold_is_refused_and_untouched() {
    let mut raw = raw();
    let (ours, theirs) = (raw.ours, raw.theirs);
    let room = mbuf_room();
    let freed = raw.nicmem.alloc_nicmem(US, u64::from(mbuf_room())).unwrap();
    raw.nicmem.dealloc_nicmem(US, freed.at).unwrap();
    let last = ours.at + (ours.len - 64);
    for (at, key, cause) in [
        (theirs.at, theirs.key, "nicmem_foreign_key"),
        (theirs.at, ours.key, "nicmem_out_of_bounds"),
        (last, ours.key, "nicmem_out_of_bounds"),
        (freed.at, freed.key, "nicmem_use_after_free"),
        // Without a key it would be a buffer in host memory, and is none.
        (ours.at, Key::HOST, "bad_descriptor"),
    ] {
        raw.give(PRIMARY, Buffer::new(at, room, key));
        let (writes, published) = (raw.ground.device.calls.writes, raw.ground.device.calls.publishes);
        assert_eq!(raw.receive(1_500), Err(DropCause(cause)));
        assert_eq!(raw.ground.device.calls.writes, writes, "{cause}: something was written");
        // Software learns of it, so that the entry comes back.
        assert_eq!(raw.ground.device.calls.publishes, published + 1, "{cause}");
    }
    raw.give(PRIMARY, Buffer::new(ours.at, room, ours.key));
    assert_eq!(raw.receive(1_500), Ok(()));
    assert_eq!(raw.ground.peek(ours.at, 1_500 - 64), [0xff; 1_500 - 64]);
    let untouched = raw.ground.peek(theirs.at, theirs.len as usize);
    assert!(untouched.iter().all(|&byte| byte == 0));
}

#[test]
fn the_secondary_ring_has_its_turn_when_the_primary_is_dry() {
    let mut raw = raw();
    let near = Buffer::new(raw.ours.at, mbuf_room(), raw.ours.key);
    let far = Buffer::new(raw.pool.buffer(1), mbuf_room(), Key::HOST);
    raw.give(SECONDARY, far);
    raw.give(PRIMARY, near);
    raw.give(SECONDARY, far);
    assert_eq!(raw.half.waiting(0).entries, 8 - 3);
    for (number, spilled) in [(0, 0), (1, 1), (2, 2)] {
        assert_eq!(raw.receive(100 + number), Ok(()));
        assert_eq!(raw.half.spilled(), spilled);
    }
    assert_eq!(raw.receive(100), Err(DropCause::NO_DESCRIPTOR));
    raw.give(PRIMARY, near);
    assert_eq!(raw.receive(100), Ok(()));
    assert_eq!(raw.half.spilled(), 2);
}
