//! `kvs` with hot items in memory of the NIC (nmKVS), with the NIC's transmit engine behind it:
//! every reply has the value that its key had when it was asked for, whatever is written while
//! the reply waits in the transmit ring.

mod places;

use std::collections::BTreeMap;

use nicforge_apps::{App, AppConfig, Apps, Place, PortMap, Verdict};
use nicforge_nic::stage::Chain;
use nicforge_nic::transmit::{Bridged, Departure, Egress, TransmitDriver, TransmitEngine, TxRing};
use nicforge_nic::{
    Application, DriverCosts, NicSpec, Nicmem, Packet, Pool, PoolCache, PortId, RxFlags, Segment, TxOffload, data_of,
    registers,
};
use nicforge_platform::{Addr, AddressSpace, Cpu, Dma, Flat, FlatCpu, Register, Vector};
use nicforge_units::{BitRate, Bytes, Cycles, Time};
use nicforge_wire::headers::{KVS_HEADER_LEN, KVS_PORT, KvsOperation, KvsStatus, KvsView, key_hash};
use proptest::prelude::*;

use crate::support::{decode, udp};

const DOORBELL: Register = Register { device: 0, index: registers::TRANSMIT };
const VALUE_BYTES: usize = 200;
const KEYS: u8 = 6;

/// The device's way to plain memory.
struct Device {
    memory: FlatCpu,
    now: Time,
}

impl Dma for Device {
    fn read(&mut self, from: Addr, into: &mut [u8]) {
        self.now = self.read_ahead(from, into);
    }
    fn read_ahead(&mut self, from: Addr, into: &mut [u8]) -> Time {
        into.copy_from_slice(self.memory.bytes(from, into.len()));
        self.now + Time::from_ns(500)
    }
    fn write(&mut self, to: Addr, bytes: &[u8]) {
        self.memory.bytes_mut(to, bytes.len()).copy_from_slice(bytes);
    }
    fn publish(&mut self, to: Addr, bytes: &[u8]) {
        self.write(to, bytes);
    }
    fn interrupt(&mut self, _vector: Vector) {}
    fn wait_until(&mut self, time: Time) {
        self.now = self.now.max(time);
    }
    fn now(&self) -> Time {
        self.now
    }
}

#[derive(Default)]
struct Wire(Vec<Vec<u8>>);

impl Egress for Wire {
    fn depart(&mut self, departure: Departure<'_>) {
        self.0.push(departure.pieces.concat());
    }

    fn bridge(&mut self, _frame: Bridged) {}
}

/// One core with its store and its transmit ring, and the NIC's half of it.
struct Bench {
    app: App<FlatCpu>,
    device: Device,
    driver: TransmitDriver,
    cache: PoolCache,
    engine: TransmitEngine,
    wire: Wire,
    /// Replies that wait for the doorbell.
    outgoing: Vec<Packet>,
    /// What each request, by its tag, must be answered with.
    expected: BTreeMap<u64, Option<Vec<u8>>>,
    values: BTreeMap<u8, Vec<u8>>,
    tag: u64,
}

fn spec() -> NicSpec {
    NicSpec {
        port: PortId(0),
        rate: BitRate::from_gbps(100.0),
        wire_overhead: Bytes(24),
        rx_fifo: Bytes(4096),
        rx_pipeline: Time::from_ns(100),
        tx_pipeline: Time::from_ns(100),
        tx_buffer: Bytes(1 << 14),
        tx_resume_room: Bytes(1 << 12),
        tx_deschedule_reads: 1.0,
        descriptor_read: Bytes(128),
    }
}

impl Bench {
    /// A store with `hot` places, whose items a sketch finds.
    fn new(hot: u64) -> Bench {
        Bench::of(hot, "sketch")
    }

    fn of(hot: u64, hot_items: &str) -> Bench {
        let mut space = AddressSpace::default();
        let bytes = hot * 256;
        let mut nicmem = Nicmem::new(&mut space, 0, bytes);
        let memory = nicmem.alloc_nicmem(Application::default(), bytes).unwrap();
        let mut config = AppConfig::new("kvs", PortMap::one_armed(1))
            .with("kvs_index_slots", 1_000)
            .with("kvs_log_mib", 1)
            .with("kvs_value_bytes", VALUE_BYTES as u32)
            .with("kvs_hot_items", hot_items);
        config.hot.push(memory);
        let shared = Apps::shipped().share(&config, &mut space).unwrap();
        let app = Apps::shipped().build::<Flat>(&config, Place { core: 0, cores: 1 }, &mut space, &shared).unwrap();
        let pool = Pool::new(&mut space, 128);
        let ring = TxRing::new(&mut space, 16).unwrap();
        let mut driver = TransmitDriver::new(&mut space, ring, DOORBELL, DriverCosts::default());
        driver.register_memory(memory);
        let cache = PoolCache::new(&mut space, pool, 32, Cycles(0));
        let mut engine = TransmitEngine::new(&spec(), &[ring], Addr(space.end()));
        engine.set_keys(nicmem.keys());
        let mut cpu = FlatCpu::new(space.end());
        pool.start(&mut cpu);
        Bench {
            app,
            device: Device { memory: cpu, now: Time::ZERO },
            driver,
            cache,
            engine,
            wire: Wire::default(),
            outgoing: Vec::new(),
            expected: BTreeMap::new(),
            values: BTreeMap::new(),
            tag: 0,
        }
    }

    fn request(&mut self, operation: KvsOperation, key: u8, value: &[u8]) {
        let key = [key; 16];
        let mut payload = vec![0; KVS_HEADER_LEN];
        let mut view = KvsView::new(&mut payload[..]).unwrap();
        view.set_operation(operation);
        view.set_lengths(key.len() as u16, value.len() as u16);
        view.set_hash(key_hash(&key));
        view.set_tag(self.tag);
        payload.extend_from_slice(&key);
        payload.extend_from_slice(value);
        let frame = udp(("192.0.2.1", 999), ("203.0.113.1", KVS_PORT), &payload);
        let mbuf = self.cache.take(&mut self.device.memory).expect("more than the ring holds");
        let at = data_of(mbuf);
        self.device.memory.bytes_mut(at, frame.len()).copy_from_slice(&frame);
        let mut packet = Packet {
            mark: 0,
            mbuf,
            tail: Addr(0),
            references: Addr(0),
            head: Segment { at, len: frame.len() as u32 },
            rest: Segment::default(),
            port: PortId(0),
            rss_hash: 0,
            flags: RxFlags::default(),
            offload: TxOffload::default(),
            stamp: Time::ZERO,
        };
        let verdict = self.app.packet(&mut self.device.memory, &mut packet);
        assert_eq!(verdict, Verdict::Transmit(PortId(0)));
        self.outgoing.push(packet);
        self.tag += 1;
    }

    fn get(&mut self, key: u8) {
        self.expected.insert(self.tag, self.values.get(&key).cloned());
        self.request(KvsOperation::Get, key, &[]);
    }

    fn put(&mut self, key: u8, len: usize) {
        let value: Vec<u8> = (0..len).map(|place| (self.tag as usize * 7 + place / 16) as u8).collect();
        self.values.insert(key, value.clone());
        self.request(KvsOperation::Put, key, &value);
    }

    fn delete(&mut self, key: u8) {
        self.values.remove(&key);
        self.request(KvsOperation::Delete, key, &[]);
    }

    /// Takes back what was sent, and gives the NIC what waits; what finds no room is dropped.
    fn flush(&mut self) {
        self.driver.reclaim(&mut self.device.memory, &mut self.cache);
        let last = self.outgoing.len();
        for (number, packet) in std::mem::take(&mut self.outgoing).iter().enumerate() {
            if self.driver.push(&mut self.device.memory, packet, number + 1 == last).is_err() {
                self.cache.free(&mut self.device.memory, packet);
            }
        }
        self.driver.ring_doorbell(&mut self.device.memory);
        let tail = self.device.memory.mmio_read(DOORBELL);
        assert!(self.engine.doorbell(&mut self.device, 0, tail));
    }

    /// The NIC does one thing, such as to send a frame. Whether there was anything.
    fn nic(&mut self) -> bool {
        let began = self.device.now;
        let next = self.engine.advance(&mut self.device, &mut self.wire, &mut Chain::new(PortId(0)));
        // What it read is no longer waited for.
        self.device.now = began;
        if next == Time::NEVER {
            return false;
        }
        self.device.now = began.max(next);
        self.judge();
        true
    }

    fn judge(&mut self) {
        for frame in self.wire.0.drain(..) {
            assert_eq!(decode(&frame).unwrap().l4_right, Some(true));
            let reply = &frame[42..];
            let view = KvsView::new(reply).unwrap();
            let Some(expected) = self.expected.remove(&view.tag()) else {
                continue;
            };
            let status = match expected {
                Some(_) => KvsStatus::Done,
                None => KvsStatus::Missing,
            };
            assert_eq!(view.status(), Some(status), "request {}", view.tag());
            let value = &reply[KVS_HEADER_LEN..];
            assert_eq!(value, expected.unwrap_or_default(), "request {}", view.tag());
        }
    }

    fn drain(&mut self) {
        self.flush();
        while self.nic() {}
        self.flush();
    }

    fn counter(&self, name: &str) -> u64 {
        let counters = self.app.counters();
        counters.iter().find(|(other, _)| *other == name).unwrap().1
    }
}

#[test]
fn a_value_on_its_way_is_not_overwritten() {
    let mut bench = Bench::new(2);
    bench.put(1, VALUE_BYTES);
    bench.get(1);
    bench.flush();
    // The NIC has not sent anything yet.
    bench.put(1, VALUE_BYTES);
    bench.get(1);
    assert_eq!((bench.counter("hot_lent"), bench.counter("hot_copied")), (1, 1));
    bench.drain();
    // All is sent: the stable buffer is brought up to date by the next GET, and then sent.
    bench.get(1);
    bench.get(1);
    assert_eq!((bench.counter("hot_lent"), bench.counter("hot_copied")), (3, 1));
    assert_eq!(bench.counter("hot_refreshed"), 2);
    bench.drain();
    assert!(bench.expected.is_empty());
}

#[test]
fn a_reply_that_is_dropped_lets_go_of_its_value() {
    let mut bench = Bench::new(2);
    bench.put(1, VALUE_BYTES);
    // More than the ring of 16 takes.
    (0..40).for_each(|_| bench.get(1));
    bench.drain();
    bench.put(1, VALUE_BYTES);
    bench.get(1);
    assert_eq!((bench.counter("hot_copied"), bench.counter("hot_refreshed")), (0, 2));
}

#[test]
fn often_asked_items_move_into_nicmem_and_others_stay_out() {
    let mut bench = Bench::new(2);
    for key in 0..KEYS {
        bench.put(key, VALUE_BYTES);
    }
    // Keys 0 and 1 come first and find free places; then 4 and 5 are asked for.
    for round in 0..60 {
        for key in if round < 5 { [0, 1] } else { [4, 5] } {
            bench.get(key);
        }
        bench.drain();
    }
    assert_eq!(bench.counter("hot_moved_out"), 2);
    let before = bench.counter("hot_lent");
    for key in [4, 5] {
        bench.get(key);
    }
    assert_eq!(bench.counter("hot_lent"), before + 2);
    // Asked for once, 2 and 3 move nobody.
    for key in [2, 3] {
        bench.get(key);
    }
    assert_eq!((bench.counter("hot_lent"), bench.counter("hot_moved_out")), (before + 2, 2));
}

#[derive(Clone, Debug)]
enum Step {
    Get(u8),
    Put(u8, usize),
    Delete(u8),
    Flush,
    Nic(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..KEYS).prop_map(Step::Get),
        4 => (0..KEYS, prop_oneof![Just(VALUE_BYTES), 0..300usize])
            .prop_map(|(key, len)| Step::Put(key, len)),
        1 => (0..KEYS).prop_map(Step::Delete),
        3 => Just(Step::Flush),
        3 => (1..20u8).prop_map(Step::Nic),
    ]
}

proptest! {
    /// Core and NIC take turns as they like; places are short, so that items move in and out.
    #[test]
    fn no_reply_mixes_values_or_has_another(
        hot in 1..5u64,
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let mut bench = Bench::new(hot);
        for step in steps {
            match step {
                Step::Get(key) => bench.get(key),
                Step::Put(key, len) => bench.put(key, len),
                Step::Delete(key) => bench.delete(key),
                Step::Flush => bench.flush(),
                Step::Nic(times) => (0..times).for_each(|_| { bench.nic(); }),
            }
            if bench.outgoing.len() == 32 {
                bench.flush();
            }
        }
        bench.drain();
        // Nobody refers to anything any more: whatever was written goes out from nicmem again.
        let copied = bench.counter("hot_copied");
        for key in 0..KEYS {
            bench.put(key, VALUE_BYTES);
            bench.get(key);
            bench.drain();
        }
        prop_assert_eq!(bench.counter("hot_copied"), copied);
    }
}
