//! A NIC, its driver and a core in virtual time: what arrives is what a stack gets, what a stack
//! sends is what leaves, and every buffer comes back.

use std::collections::VecDeque;

use nicforge_nic::{DriverCosts, Pool, Segment, TxOffload, data_of};
use nicforge_platform::sim::{DeviceReader, Devices, DmaPort, Host, Lent, MmioWrite, SimCore, SimDma, test_hardware};
use nicforge_platform::{Addr, AddressSpace, Cpu, Owner, Register};
use nicforge_units::{BitRate, Bytes, Cycles, Time};

use super::{Nic, frame};
use crate::InterfaceError;
use crate::kernel::{KernelDriver, KernelNic, KernelPlan, Received, Sending, SlabCache, Slabs};
use crate::sinic::Options;

/// The device with its link, and the register writes on their way to it.
struct Device<N> {
    nic: N,
    port: Lent<DmaPort>,
    writes: VecDeque<MmioWrite>,
}

impl<N: KernelNic<SimDma>> Device<N> {
    /// The writes that arrive by `now`.
    fn deliver(&mut self, host: &mut Lent<Host>, now: Time) {
        while let Some(&write) = self.writes.front()
            && write.arrives <= now
        {
            self.writes.pop_front();
            let mut dma = SimDma::on(host, &mut self.port, write.arrives);
            self.nic.write_register(&mut *dma, write.register.index, write.value);
        }
    }
}

impl<N: KernelNic<SimDma>> Devices for Device<N> {
    fn write(&mut self, _host: &mut Lent<Host>, write: &MmioWrite) {
        self.writes.push_back(*write);
    }

    fn read(&mut self, host: &mut Lent<Host>, register: Register, at: Time) -> (u64, Time) {
        self.deliver(host, at);
        let mut dma = SimDma::on(host, &mut self.port, at);
        self.nic.read_register(&mut *dma, register.index)
    }
}

/// What `build` of an interface is.
pub type Build<D, N = Nic> = fn(&KernelPlan, &mut AddressSpace) -> Result<(N, D), InterfaceError>;

/// A UDP packet over IPv4 that says who it is, where it is long enough for that.
pub fn packet(number: u32, len: usize) -> Vec<u8> {
    let mut packet = frame(number, len);
    if len >= 64 {
        packet[12..14].copy_from_slice(&[0x08, 0]);
        packet[14..16].copy_from_slice(&[0x45, 0]);
        packet[16..18].copy_from_slice(&(len as u16 - 14).to_be_bytes());
        packet[20..22].fill(0);
        packet[23] = 17;
        packet[38..40].copy_from_slice(&(len as u16 - 34).to_be_bytes());
    }
    packet
}

/// One system; the stack is the test.
pub struct System<D, N = Nic> {
    host: Lent<Host>,
    core: Lent<SimCore>,
    device: Device<N>,
    pub driver: D,
    cache: SlabCache,
    slabs: Slabs,
    now: Time,
    polls: bool,
    seen_interrupts: u64,
    /// Packets that the stack has taken and not given back.
    pub hands: Vec<Received>,
    /// Where a reader wants payload.
    user: Addr,
}

const BUFFERS: usize = 700;

/// Entries of lists, where there are lists.
pub const LIST: usize = 16;

/// A plan with FIFOs of 32 KiB.
pub fn plan(options: &Options) -> KernelPlan {
    KernelPlan {
        device: 0,
        owner: Owner(0),
        cores: 1,
        rx_entries: LIST,
        tx_entries: LIST,
        rate: BitRate::from_gbps(10.0),
        wire_overhead: Bytes(24),
        rx_fifo: Bytes(32 << 10),
        tx_fifo: Bytes(32 << 10),
        interrupt_delay: Time::from_us(10),
        costs: DriverCosts::default(),
        write_wait: Cycles(0),
        sinic: options.clone(),
    }
}

impl<D: for<'a> KernelDriver<DeviceReader<'a>>, N: KernelNic<SimDma> + std::fmt::Debug> System<D, N> {
    /// A system that is up.
    pub fn new(options: &Options, build: Build<D, N>) -> System<D, N> {
        System::with_buffers(options, build, BUFFERS)
    }

    /// A system that is up, with so many packet buffers.
    pub fn with_buffers(options: &Options, build: Build<D, N>, buffers: usize) -> System<D, N> {
        let mut space = AddressSpace::default();
        let pool = Pool::new(&mut space, buffers);
        let slabs = Slabs::new(&mut space, pool, 1);
        let cache = SlabCache::new(&mut space, &slabs, Cycles(1));
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
        let core = Lent::new(SimCore::new(0, &hardware.core, write, read));
        let mut system = System {
            device: Device { nic, port: Lent::new(DmaPort::new(link, 0)), writes: VecDeque::new() },
            host: Lent::new(Host::new(&hardware, &space)),
            core,
            driver,
            cache,
            slabs,
            now: Time::ZERO,
            polls: false,
            seen_interrupts: 0,
            hands: Vec::new(),
            user,
        };
        system.on_core(|cpu, driver, cache| driver.start(cpu, cache));
        system
    }

    /// The core does something.
    fn on_core<T>(&mut self, step: impl FnOnce(&mut DeviceReader<'_>, &mut D, &mut SlabCache) -> T) -> T {
        self.core.idle_until(self.now);
        self.core.begin_burst();
        let mut cpu = DeviceReader::on(&mut self.host, &mut self.core, &mut self.device);
        let result = step(&mut cpu, &mut self.driver, &mut self.cache);
        drop(cpu);
        self.device.writes.extend(self.core.take_mmio());
        self.now = self.core.now();
        result
    }

    /// A frame comes in now; returns whether the FIFO took it.
    pub fn arrive(&mut self, frame: &[u8]) -> bool {
        self.device.deliver(&mut self.host, self.now);
        let mut dma = SimDma::on(&mut self.host, &mut self.device.port, self.now);
        self.device.nic.receive(&mut *dma, &mut frame.to_vec().into()).is_ok()
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
            self.poll(1);
            return true;
        }
        let written = self.device.writes.front().map_or(Time::NEVER, |w| w.arrives);
        let next = self.device.nic.due().min(written);
        if next > until {
            return false;
        }
        self.now = self.now.max(next);
        self.device.deliver(&mut self.host, self.now);
        let mut dma = SimDma::on(&mut self.host, &mut self.device.port, self.now);
        self.device.nic.advance(&mut *dma);
        true
    }

    /// The stack polls the driver for up to `budget` packets.
    pub fn poll(&mut self, budget: usize) {
        let mut received = Vec::new();
        self.polls = self.on_core(|cpu, driver, cache| driver.poll(cpu, cache, &mut received, budget));
        self.hands.append(&mut received);
        if self.driver.is_pressed() {
            self.fetch();
        }
    }

    /// What the stack has left in the NIC goes to its buffers.
    fn fetch(&mut self) {
        let mut hands = std::mem::take(&mut self.hands);
        self.on_core(|cpu, driver, _| {
            for packet in &mut hands {
                if let Some(mut deferred) = packet.deferred.take() {
                    let (to, len) = (packet.head.at + u64::from(packet.head.len), deferred.len);
                    driver.copy_deferred(cpu, &mut deferred, to, len);
                    packet.head.len += len;
                }
            }
        });
        self.hands = hands;
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
        let bytes = packet(number, lens.iter().sum::<u32>() as usize);
        self.on_core(|cpu, driver, cache| {
            let mbuf = cache.take(cpu).expect("there are enough buffers");
            let mut at = data_of(mbuf);
            cpu.bytes_mut(at, bytes.len()).copy_from_slice(&bytes);
            let pieces = lens.map(|len| {
                let piece = Segment { at, len };
                at = at + u64::from(len);
                piece
            });
            let sending = Sending { mbuf, pieces, offload: TxOffload::default() };
            let sent = driver.transmit(cpu, cache, &sending, 0).is_ok();
            if !sent {
                cache.give(cpu, mbuf);
            }
            sent
        })
    }

    /// Frames that left since the last call.
    pub fn sent(&mut self) -> Vec<Vec<u8>> {
        let port = self.device.nic.port();
        std::iter::from_fn(|| port.take_sent()).map(|(_, frame)| frame.into_bytes()).collect()
    }

    /// Nothing is inside any more, every buffer is where it should be, and the driver has done
    /// nothing wrong.
    pub fn check_quiet(&mut self) {
        self.pass(Time::from_ms(1));
        assert!(self.hands.is_empty());
        assert_eq!(self.device.nic.frames_inside(), 0);
        let between = self.on_core(|cpu, driver, _| driver.between(cpu));
        assert_eq!((between.in_memory, between.deferred), (0, 0));
        let counted = self.device.nic.counters();
        assert!(counted.iter().all(|&(_, count)| count == 0), "{counted:?}");
        let held = self.slabs.free() + self.cache.len() as u64 + self.driver.buffers_held();
        assert_eq!(held, self.slabs.count(), "buffers lost or made");
    }
}
