//! A NIC, its driver and a core in virtual time: what arrives is what a stack gets, what a stack
//! sends is what leaves, and every buffer comes back.

use std::collections::VecDeque;

use nicforge_nic::{DriverCosts, Pool, PoolCache, Segment, TxOffload, data_of};
use nicforge_platform::sim::{
    Devices, DmaPort, Host, MmioWrite, SimCore, SimCpu, SimDma, test_hardware,
};
use nicforge_platform::{Addr, AddressSpace, Cpu, Owner, Register};
use nicforge_units::{BitRate, Bytes, Cycles, Time};

use super::{Nic, frame};
use crate::InterfaceError;
use crate::kernel::{KernelDriver, KernelNic, KernelPlan, Received, Sending};
use crate::sinic::Options;

/// The device with its link, and the register writes on their way to it.
struct Device {
    nic: Nic,
    port: DmaPort,
    writes: VecDeque<MmioWrite>,
}

impl Device {
    /// The writes that arrive by `now`.
    fn deliver(&mut self, host: &mut Host, now: Time) {
        while let Some(&write) = self.writes.front()
            && write.arrives <= now
        {
            self.writes.pop_front();
            let mut dma = SimDma::new(host, &mut self.port, write.arrives);
            self.nic
                .write_register(&mut dma, write.register.index, write.value);
        }
    }
}

impl Devices for Device {
    fn write(&mut self, _host: &mut Host, write: &MmioWrite) {
        self.writes.push_back(*write);
    }

    fn read(&mut self, host: &mut Host, register: Register, at: Time) -> (u64, Time) {
        self.deliver(host, at);
        let mut dma = SimDma::new(host, &mut self.port, at);
        self.nic.read_register(&mut dma, register.index)
    }
}

/// What `build` of an interface is.
pub type Build<D> = fn(&KernelPlan, &mut AddressSpace) -> Result<(Nic, D), InterfaceError>;

/// One system; the stack is the test.
pub struct System<D> {
    host: Host,
    core: SimCore,
    device: Device,
    pub driver: D,
    cache: PoolCache,
    pool: Pool,
    buffers: usize,
    now: Time,
    polls: bool,
    seen_interrupts: u64,
    /// Packets that the stack has taken and not given back.
    pub hands: Vec<Received>,
    /// Where a reader wants payload.
    user: Addr,
}

const BUFFERS: usize = 700;

/// A plan with FIFOs of 32 KiB.
pub fn plan(options: &Options) -> KernelPlan {
    KernelPlan {
        device: 0,
        owner: Owner(0),
        rx_entries: 0,
        tx_entries: 0,
        rate: BitRate::from_gbps(10.0),
        wire_overhead: Bytes(24),
        rx_fifo: Bytes(32 << 10),
        tx_fifo: Bytes(32 << 10),
        interrupt_delay: Time::from_us(10),
        costs: DriverCosts::default(),
        sinic: options.clone(),
    }
}

impl<D: KernelDriver> System<D> {
    /// A system that is up.
    pub fn new(options: &Options, build: Build<D>) -> System<D> {
        System::with_buffers(options, build, BUFFERS)
    }

    /// A system that is up, with so many packet buffers.
    pub fn with_buffers(options: &Options, build: Build<D>, buffers: usize) -> System<D> {
        let mut space = AddressSpace::default();
        let pool = Pool::new(&mut space, buffers);
        let cache = PoolCache::new(&mut space, pool, 4, Cycles(1));
        let user = space.data(4096, 64);
        let (mut nic, driver) = build(&plan(options), &mut space).unwrap();
        nic.set_memory_end(Addr(space.end()));
        let mut hardware = test_hardware();
        hardware.cores = 1;
        hardware.l2.size = Bytes(64 << 10);
        hardware.llc.size = Bytes(11 * 64 * 1024);
        // On the die.
        hardware.pcie.rate = BitRate::from_gbps(1000.0);
        hardware.pcie.read_round_trip = Time::from_ns(10);
        hardware.pcie.write_latency = Time::from_ns(5);
        let link = &hardware.pcie;
        let (write, read) = (Time::from_ns(5), Time::from_ns(10));
        let core = SimCore::new(0, &hardware.core, write, read);
        let mut system = System {
            device: Device {
                nic,
                port: DmaPort::new(link, 0),
                writes: VecDeque::new(),
            },
            host: Host::new(&hardware, &space),
            core,
            driver,
            cache,
            pool,
            buffers,
            now: Time::ZERO,
            polls: false,
            seen_interrupts: 0,
            hands: Vec::new(),
            user,
        };
        pool.start(&mut SimCpu::new(&mut system.host, &mut system.core));
        system.on_core(|cpu, driver, cache| driver.start(cpu, cache));
        system
    }

    /// The core does something.
    fn on_core<T>(&mut self, step: impl FnOnce(&mut SimCpu<'_>, &mut D, &mut PoolCache) -> T) -> T {
        self.core.idle_until(self.now);
        self.core.begin_burst();
        let mut cpu = SimCpu::with_devices(&mut self.host, &mut self.core, &mut self.device);
        let result = step(&mut cpu, &mut self.driver, &mut self.cache);
        self.device.writes.extend(self.core.take_mmio());
        self.now = self.core.now();
        result
    }

    /// A frame comes in now; returns whether the FIFO took it.
    pub fn arrive(&mut self, frame: &[u8]) -> bool {
        self.device.deliver(&mut self.host, self.now);
        let mut dma = SimDma::new(&mut self.host, &mut self.device.port, self.now);
        self.device.nic.receive(&mut dma, frame).is_ok()
    }

    /// One thing happens, by `until`; returns whether anything did.
    fn happen(&mut self, until: Time) -> bool {
        let interrupts = self.device.port.counters(&self.host).interrupts;
        if self.seen_interrupts < interrupts {
            self.seen_interrupts = interrupts;
            self.polls |= self.on_core(|cpu, driver, _| driver.interrupt(cpu));
            return true;
        }
        if self.polls {
            let mut received = Vec::new();
            self.polls =
                self.on_core(|cpu, driver, cache| driver.poll(cpu, cache, &mut received, 1));
            self.hands.append(&mut received);
            return true;
        }
        let written = self
            .device
            .writes
            .front()
            .map_or(Time::NEVER, |w| w.arrives);
        let next = self.device.nic.due().min(written);
        if next > until {
            return false;
        }
        self.now = self.now.max(next);
        self.device.deliver(&mut self.host, self.now);
        let mut dma = SimDma::new(&mut self.host, &mut self.device.port, self.now);
        self.device.nic.advance(&mut dma);
        true
    }

    /// Time passes; interrupts are taken and the driver polls.
    pub fn pass(&mut self, time: Time) {
        let until = self.now + time;
        for _ in 0..100_000 {
            if !self.happen(until) {
                self.now = self.now.max(until);
                return;
            }
            if self.polls && self.now > until {
                // The core is busy for longer than that.
                return;
            }
        }
        panic!("never done at {}: {:?}", self.now, self.device.nic);
    }

    /// The stack takes packet `index` of those in its hands: returns its bytes and gives back
    /// everything.
    pub fn take(&mut self, index: usize, pieces: u32) -> Vec<u8> {
        let packet = self.hands.remove(index);
        let user = self.user;
        self.on_core(|cpu, driver, cache| {
            let head = packet.head;
            let mut bytes = cpu.bytes(head.at, head.len as usize).to_vec();
            if let Some(mut deferred) = packet.deferred {
                while deferred.len > 0 {
                    let len = deferred.len.div_ceil(pieces.max(1)).min(deferred.len);
                    driver.copy_deferred(cpu, &mut deferred, user, len);
                    bytes.extend_from_slice(cpu.bytes(user, len as usize));
                }
            }
            cache.give(cpu, packet.mbuf);
            bytes
        })
    }

    /// The stack does not want packet `index`.
    pub fn drop(&mut self, index: usize) {
        let packet = self.hands.remove(index);
        self.on_core(|cpu, driver, cache| {
            if let Some(deferred) = packet.deferred {
                driver.drop_deferred(cpu, deferred);
            }
            cache.give(cpu, packet.mbuf);
        });
    }

    /// Bytes of packet `index` that are in host memory.
    pub fn head(&mut self, index: usize) -> Vec<u8> {
        let head = self.hands[index].head;
        self.host.memory.slice(head.at, head.len as usize).to_vec()
    }

    /// Sends frame `number` in pieces of these lengths; `false` when the NIC is busy.
    pub fn send(&mut self, number: u32, lens: [u32; 3]) -> bool {
        let bytes = frame(number, lens.iter().sum::<u32>() as usize);
        self.on_core(|cpu, driver, cache| {
            let mbuf = cache.take(cpu).expect("there are enough buffers");
            let mut at = data_of(mbuf);
            cpu.bytes_mut(at, bytes.len()).copy_from_slice(&bytes);
            let pieces = lens.map(|len| {
                let piece = Segment { at, len };
                at = at + u64::from(len);
                piece
            });
            let sending = Sending {
                mbuf,
                pieces,
                offload: TxOffload::default(),
            };
            let sent = driver.transmit(cpu, cache, &sending).is_ok();
            if !sent {
                cache.give(cpu, mbuf);
            }
            sent
        })
    }

    /// Frames that left since the last call.
    pub fn sent(&mut self) -> Vec<Vec<u8>> {
        let port = self.device.nic.port();
        std::iter::from_fn(|| port.take_sent())
            .map(|(_, frame)| frame)
            .collect()
    }

    /// Nothing is inside any more, every buffer is where it should be, and the driver has done
    /// nothing wrong.
    pub fn check_quiet(&mut self) {
        self.pass(Time::from_ms(1));
        assert!(self.hands.is_empty());
        assert_eq!(self.device.nic.frames_inside(), 0);
        let counted = self.device.nic.counters();
        assert!(counted.iter().all(|&(_, count)| count == 0), "{counted:?}");
        let pool = self.pool;
        let shared = self.on_core(|cpu, _, _| pool.available(cpu));
        let held = shared + self.cache.len() as u64 + self.driver.buffers_held();
        assert_eq!(held, self.buffers as u64, "buffers lost or made");
    }
}

/// Frames that come while the stack holds all buffers wait in the FIFO until it gives some back.
pub fn starve<D: KernelDriver>(options: &Options, build: Build<D>) {
    let mut system = System::with_buffers(options, build, 8);
    for number in 0..20 {
        assert!(system.arrive(&frame(number, 1000)));
        system.pass(Time::from_us(20));
    }
    let mut next = 0;
    while next < 20 {
        assert!(!system.hands.is_empty(), "{next}: stuck without buffers");
        assert_eq!(system.take(0, 1), frame(next, 1000));
        next += 1;
        system.pass(Time::from_us(50));
    }
    system.check_quiet();
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum Step {
    Arrive(usize),
    /// The stack takes its oldest packet, or some other; payload in so many pieces.
    Take(usize, u32),
    Drop(usize),
    Send([u32; 3]),
    Pass(u64),
}

/// Steps of all kinds.
pub fn step() -> impl proptest::strategy::Strategy<Value = Step> {
    use proptest::prelude::*;
    let len = prop_oneof![4usize..200, 1400usize..1515];
    prop_oneof![
        5 => len.prop_map(Step::Arrive),
        4 => (any::<usize>(), 1u32..4).prop_map(|(index, pieces)| Step::Take(index, pieces)),
        1 => any::<usize>().prop_map(Step::Drop),
        3 => [4u32..100, 0u32..700, 0u32..700].prop_map(Step::Send),
        3 => (0u64..20_000).prop_map(Step::Pass),
    ]
}

/// Runs `steps`: every frame that the FIFO took comes to the stack once, whole and in order, and
/// every frame that was sent leaves once, whole and in order.
pub fn run<D: KernelDriver>(options: &Options, build: Build<D>, steps: &[Step]) {
    let mut system = System::new(options, build);
    let (mut arrived, mut sent) = (0, 0);
    let mut inside: VecDeque<Vec<u8>> = VecDeque::new();
    // What each packet in the stack's hands must be.
    let mut expected: Vec<Vec<u8>> = Vec::new();
    let mut sending: VecDeque<Vec<u8>> = VecDeque::new();
    for number in 0..steps.len() + 1_000 {
        match steps.get(number) {
            Some(&Step::Arrive(len)) => {
                let frame = frame(arrived, len);
                arrived += 1;
                if system.arrive(&frame) {
                    inside.push_back(frame);
                }
            }
            Some(&Step::Take(index, pieces)) if !system.hands.is_empty() => {
                let index = index % system.hands.len();
                assert_eq!(system.take(index, pieces), expected.remove(index));
            }
            Some(&Step::Drop(index)) if !system.hands.is_empty() => {
                let index = index % system.hands.len();
                system.drop(index);
                expected.remove(index);
            }
            Some(&Step::Send(lens)) => {
                if system.send(sent, lens) {
                    sending.push_back(frame(sent, lens.iter().sum::<u32>() as usize));
                }
                sent += 1;
            }
            Some(&Step::Pass(ns)) => system.pass(Time::from_ns(ns)),
            Some(_) => {}
            None if system.hands.is_empty() => system.pass(Time::from_us(20)),
            None => assert_eq!(system.take(0, 1), expected.remove(0)),
        }
        while expected.len() < system.hands.len() {
            let next = inside.pop_front().expect("no more came out than went in");
            let head = system.head(expected.len());
            assert_eq!(head, next[..head.len()], "in the order of arrival");
            expected.push(next);
        }
        if number > steps.len() && inside.is_empty() && system.hands.is_empty() {
            break;
        }
    }
    assert!(inside.is_empty(), "{} never came out", inside.len());
    system.check_quiet();
    let left: VecDeque<Vec<u8>> = system.sent().into();
    assert_eq!(left, sending);
}
