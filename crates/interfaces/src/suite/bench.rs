//! One NIC half and its drivers, with everything that goes in and out accounted for.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use nicforge_nic::{
    Application, Arriving, DriverHalf, DropCause, DropCounters, Nicmem, Packet, Pool, PoolCache, PortId, ReceiveHalf,
    Recoverable, RxFlags,
};
use nicforge_platform::{Addr, AddressSpace, Cpu, Dma};
use nicforge_units::{Cycles, Time};

use super::frames::{frame, number_of, stamp};
use super::ground::{CpuOf, DmaOf};
use super::{Ground, Setup, build};
use crate::emulated::Lost;
use crate::{Halves, Plan};

/// What the NIC and stages say of every frame, in all 32 bits: its stack left to it to compute a checksum and to cut.
const FLAGS: RxFlags = RxFlags::L3_BAD.with(RxFlags::L4_BAD).with(RxFlags::L4_BEGUN).with(RxFlags(0xc35a_9600));
const SEGMENT: u16 = 0xa5c3;
/// What a stage says of every frame.
const MARK: u64 = 0xda01_2345_6789_abcd;

pub(super) const GUARD_BYTES: usize = 16 << 10;
pub(super) const GUARD: u8 = 0xa5;

/// A bench for interface `interface`. Flow `f` is steered to queue `f % queues`.
pub struct Bench<G: Ground> {
    pub interface: &'static str,
    pub ground: G,
    pub nic: Box<dyn ReceiveHalf<DmaOf<G>>>,
    pub drivers: Vec<Box<dyn DriverHalf<CpuOf<G>>>>,
    pub caches: Vec<PoolCache>,
    pub pool: Pool,
    /// The buffers on nicmem, if there are any.
    pub near: Option<Pool>,
    /// Register writes of the drivers so far.
    pub rung: Vec<(u32, u64)>,
    /// Packets in the cores' hands, each with what its buffer must hold.
    pub hands: Vec<(Packet, Vec<u8>)>,
    /// Frames delivered and not yet taken, by flow and in order.
    pub(super) waiting: BTreeMap<u32, VecDeque<Vec<u8>>>,
    /// Frames that got lost behind the device, to be taken out of `waiting`.
    pub(super) lost: Vec<Lost>,
    pub sent: u64,
    pub taken: u64,
    pub drops: DropCounters,
    pub(super) guards: [Addr; 2],
    /// The set of queues that steering uses.
    set: u16,
    /// Whether headers come in completions.
    pub(super) rx_inline: bool,
    /// The core that plays the NIC makes no step but those that a test asks for.
    pub emulator_rests: bool,
}

impl<G: Ground> Bench<G> {
    /// A bench whose queues are up.
    pub fn new(interface: &'static str, setup: &Setup) -> Bench<G> {
        let mut bench = Bench::down(interface, setup);
        bench.start();
        bench
    }

    /// A bench whose queues have no buffers yet.
    pub fn down(interface: &'static str, setup: &Setup) -> Bench<G> {
        let (name, setup) = setup.around(interface);
        let mut bench = Bench::built(name, &setup, |plan, space| build(name, plan, space).unwrap());
        bench.interface = interface;
        bench
    }

    /// As [`down`](Self::down), with halves that `build` makes.
    pub fn built(
        interface: &'static str,
        setup: &Setup,
        build: impl FnOnce(&Plan, &mut AddressSpace) -> Halves<G::On>,
    ) -> Bench<G> {
        let mut space = AddressSpace::default();
        let near_bytes = setup.near_buffers(interface) * setup.room as u64;
        let mut nicmem = Nicmem::new(&mut space, 0, near_bytes);
        let below = space.data(GUARD_BYTES as u64, 4096);
        let pool = Pool::with_room(&mut space, setup.buffers(interface), setup.room);
        let above = space.data(GUARD_BYTES as u64, 4096);
        let near = nicmem.alloc_nicmem(Application::default(), near_bytes);
        let near = near.ok().map(|memory| Pool::over_nicmem(&mut space, memory, setup.room as u64));
        let plan = setup.plan_with(pool, near, nicmem.keys());
        let Halves { nic, drivers } = build(&plan, &mut space);
        let mut cache = |pool| PoolCache::new(&mut space, pool, setup.cache, Cycles(1));
        let caches = (0..setup.queues).map(|_| match near {
            Some(near) => cache(pool).with_nicmem(cache(near)),
            None => cache(pool),
        });
        let caches = caches.collect();
        // One core more, which plays the NIC where an interface wants that.
        let mut ground = G::new(&space, setup.queues + 1);
        let mut core = ground.core(0);
        pool.start(&mut *core);
        near.iter().for_each(|near| near.start(&mut *core));
        for guard in [below, above] {
            core.bytes_mut(guard, GUARD_BYTES).fill(GUARD);
        }
        drop(core);
        Bench {
            interface,
            ground,
            nic,
            drivers,
            caches,
            pool,
            near,
            rung: Vec::new(),
            hands: Vec::new(),
            waiting: BTreeMap::new(),
            lost: Vec::new(),
            sent: 0,
            taken: 0,
            drops: DropCounters::default(),
            guards: [below, above],
            set: 0,
            rx_inline: setup.rx_inline,
            emulator_rests: false,
        }
    }

    /// What software that comes and goes needs of the NIC.
    pub fn recovery(&self) -> &dyn Recoverable {
        self.nic.recovery().expect("an interface whose queues restart")
    }

    /// `queues` restart, as their software is gone.
    pub fn restart(&mut self, queues: Range<u16>) -> Option<Vec<u32>> {
        let mut device = self.ground.device();
        self.nic.recoverable()?.restart(&mut *device, queues)
    }

    /// Brings all queues up.
    pub fn start(&mut self) {
        for queue in 0..self.drivers.len() {
            let mut core = self.ground.core(queue);
            self.drivers[queue].start(&mut *core, &mut self.caches[queue]);
        }
        self.ring();
        self.check();
    }

    /// A frame of `flow` arrives; returns what became of it.
    pub fn send(&mut self, flow: u32, len: usize) -> Result<(), DropCause> {
        let frame = frame(flow, self.sent, len);
        let outcome = self.receive(flow, &frame);
        self.sent += 1;
        match outcome {
            Ok(()) => self.waiting.entry(flow).or_default().push_back(frame),
            Err(cause) => self.drops.count(cause.0),
        }
        self.check();
        outcome
    }

    /// Steering uses another set of queues from now on, where the interface has several.
    pub fn switch(&mut self, set: u16) {
        self.set = set % self.nic.sets().len() as u16;
    }

    fn queue_of(&self, flow: u32) -> u16 {
        let cores = self.drivers.len() as u16;
        self.set * cores + (flow % u32::from(cores)) as u16
    }

    /// As [`send`](Self::send), unaccounted.
    pub fn receive(&mut self, flow: u32, frame: &[u8]) -> Result<(), DropCause> {
        let arriving = Arriving {
            mark: MARK,
            bytes: frame,
            head: frame.len(),
            headers: frame.len().min(HEADERS),
            stamp: stamp(number_of(frame)),
            rss_hash: flow,
            flags: FLAGS,
            segment: SEGMENT,
            port: PortId(0),
            queue: self.queue_of(flow),
        };
        let mut device = self.ground.device();
        let began = device.now();
        let outcome = self.nic.receive(&mut *device, &arriving);
        let took = device.now() - began;
        drop(device);
        self.pass(took);
        outcome
    }

    /// A frame arrives; its fate is not checked.
    pub fn send_unchecked(&mut self, flow: u32, len: usize) {
        let _ = self.receive(flow, &frame(flow, self.sent, len));
    }

    /// A core takes all packets and frees them unchecked.
    pub fn poll_unchecked(&mut self, queue: usize) {
        let mut packets = Vec::new();
        let mut core = self.ground.core(queue);
        let cache = &mut self.caches[queue];
        self.drivers[queue].rx_burst(&mut *core, cache, &mut packets, 32);
        for packet in packets {
            cache.free(&mut *core, &packet);
        }
        drop(core);
        for (index, value) in self.ground.register_writes() {
            self.write_register(index, value);
        }
    }

    /// Core `queue` takes up to `max` packets into its hands; returns how many came.
    pub fn poll(&mut self, queue: usize, max: usize) -> usize {
        let mut packets = Vec::new();
        let mut core = self.ground.core(queue);
        let cache = &mut self.caches[queue];
        self.drivers[queue].rx_burst(&mut *core, cache, &mut packets, max);
        drop(core);
        assert!(packets.len() <= max, "{}: more than asked for", self.interface);
        self.ring();
        for packet in &packets {
            self.take(queue, packet);
        }
        self.check();
        packets.len()
    }

    /// The packet is the next of its flow, byte for byte, in an exclusive buffer.
    fn take(&mut self, queue: usize, packet: &Packet) {
        let name = self.interface;
        let mut bytes = self.ground.peek(packet.head.at, packet.head.len as usize);
        bytes.extend(self.ground.peek(packet.rest.at, packet.rest.len as usize));
        let flow = packet.rss_hash;
        assert_eq!(flow as usize % self.drivers.len(), queue, "{name}: wrong queue");
        let expected = self.waiting.get_mut(&flow).and_then(VecDeque::pop_front);
        assert_eq!(Some(&bytes), expected.as_ref(), "{name}: flow {flow}, loss or disorder");
        assert_eq!(packet.stamp, stamp(number_of(&bytes)), "{name}: stamp");
        assert_eq!(packet.flags, FLAGS, "{name}: flags");
        assert_eq!(packet.mark, MARK, "{name}: mark");
        let offload = packet.offload;
        assert_eq!((offload.l4_checksum, offload.segment), (true, SEGMENT), "{name}");
        for mbuf in buffers_of(packet) {
            assert!(self.is_buffer(mbuf), "{name}: no buffer of a pool");
            let mut held = self.hands.iter().flat_map(|(held, _)| buffers_of(held));
            assert!(held.all(|held| held != mbuf), "{name}: a buffer that is still in use was given out");
        }
        self.hands.push((*packet, bytes));
        self.taken += 1;
    }

    /// A core frees packet `index` of those in hand, whose buffer must be unchanged.
    pub fn release(&mut self, index: usize, core: usize) {
        let (packet, bytes) = self.hands.swap_remove(index);
        let mut now = self.ground.peek(packet.head.at, packet.head.len as usize);
        now.extend(self.ground.peek(packet.rest.at, packet.rest.len as usize));
        assert_eq!(now, bytes, "{}: a buffer changed in the core's hands", self.interface);
        let cache = &mut self.caches[core];
        cache.free(&mut *self.ground.core(core), &packet);
        self.check();
    }

    /// The cores free all that they hold, each in turn.
    pub fn release_all(&mut self) {
        while let Some(last) = self.hands.len().checked_sub(1) {
            self.release(last, last % self.caches.len());
        }
    }

    /// The drivers' register writes reach the NIC.
    pub fn ring(&mut self) {
        for (index, value) in self.ground.register_writes() {
            self.ring_one(index, value);
        }
        let refused = self.emulate();
        assert_eq!(refused, 0, "{}: a register refuses its value", self.interface);
    }

    /// A register write that the device must take.
    fn ring_one(&mut self, index: u32, value: u64) {
        let mut device = self.ground.device();
        let known = self.nic.write_register(&mut *device, index, value);
        let name = self.interface;
        assert!(known, "{name}: register {index} refuses {value}");
        self.rung.push((index, value));
    }

    /// Writes a register of the NIC; `false` where it is refused.
    pub fn write_register(&mut self, index: u32, value: u64) -> bool {
        let known = self.nic.write_register(&mut *self.ground.device(), index, value);
        known && self.emulate() == 0
    }

    /// Only the NIC acts for `time`.
    pub fn pass(&mut self, time: Time) {
        self.ground.pass(time);
        for _ in 0..1_000 {
            let mut device = self.ground.device();
            if self.nic.due() > device.now() {
                drop(device);
                self.emulate();
                return;
            }
            self.nic.advance(&mut *device);
        }
        panic!("{}: the NIC half is never done", self.interface);
    }

    /// Frames that were delivered and not yet taken.
    pub fn outstanding(&self) -> usize {
        self.waiting.values().map(VecDeque::len).sum()
    }

    /// Every frame and every buffer is in exactly one place.
    pub fn check(&mut self) {
        self.settle();
        let name = self.interface;
        let inside = self.outstanding() as u64;
        assert_eq!(self.sent, self.taken + inside + self.drops.total(), "{name}: arrivals = taken + waiting + drops");
        let counted: u64 = self.drivers.iter().map(|driver| driver.taken()).sum();
        assert_eq!(counted, self.taken, "{name}: the drivers' own count");
        let stacks: usize = self.caches.iter().map(PoolCache::len).sum();
        let hands: u64 = self.hands.iter().map(|(held, _)| held.buffers()).sum();
        let held = self.in_rings() + stacks as u64 + hands;
        let shared = |pool: Pool| pool.available(&mut *self.ground.core(0));
        let shared: u64 = pools(self.pool, self.near).map(shared).sum();
        let buffers = self.buffers() as u64;
        assert_eq!(held + shared, buffers, "{name}: buffers lost or made");
    }

    /// Buffers of all pools.
    pub fn buffers(&self) -> usize {
        pools(self.pool, self.near).map(|pool| pool.count()).sum()
    }

    fn is_buffer(&self, mbuf: Addr) -> bool {
        pools(self.pool, self.near).any(|pool| pool.number_of(mbuf).is_some())
    }

    /// Buffers in rings.
    pub fn in_rings(&self) -> u64 {
        let held: i64 = self.drivers.iter().map(|driver| driver.buffers_held()).sum();
        u64::try_from(held).expect("no more came out than went in") + self.nic.holds()
    }

    /// Addresses that are no buffers: in front of, behind and within the pool, and absurd ones.
    pub fn no_buffers(&self) -> Vec<Addr> {
        let [below, above] = self.guards;
        let inside = self.pool.buffer(0);
        let absurd = [Addr(0), Addr(u64::MAX), Addr(u64::MAX - 300), Addr(1 << 63)];
        [below, below + 64, above, inside + 8, inside + 64].into_iter().chain(absurd).collect()
    }
}

/// Bytes of a frame that count as headers.
pub(super) const HEADERS: usize = 54;

/// The buffers of a packet.
pub(super) fn buffers_of(packet: &Packet) -> impl Iterator<Item = Addr> {
    let tail = Some(packet.tail).filter(|&tail| tail != Addr(0));
    std::iter::once(packet.mbuf).chain(tail)
}

fn pools(pool: Pool, near: Option<Pool>) -> impl Iterator<Item = Pool> {
    std::iter::once(pool).chain(near)
}
