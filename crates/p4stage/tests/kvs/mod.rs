//! FlexKVS behind queues of interface `flexnic`, on plain memory.

use std::collections::BTreeMap;
use std::path::Path;

use nicforge_apps::{App, AppConfig, Apps, Place, PortMap};
use nicforge_flexnic::p4::{Shared, entries};
use nicforge_interfaces::{NicMemory, Plan};
use nicforge_nic::mock::spec;
use nicforge_nic::transmit::{Bridged, Departure, Egress};
use nicforge_nic::{DriverCosts, DriverHalf, Nic, NicSpec, Packet, Pool, PoolCache, Verdict};
use nicforge_options::Values;
use nicforge_p4stage::flexnic::{Driver, build};
use nicforge_platform::{Addr, AddressSpace, Cpu, Flat, FlatCpu, FlatDma, Owner};
use nicforge_units::{Bytes, Cycles, Time};
use nicforge_wire::{checksum, parse_frame};

pub const GET: u8 = 0;
pub const SET: u8 = 1;
/// Entries of the queue.
pub const ENTRIES: usize = 16;

/// Where a datagram's data begins.
const DATA_AT: usize = 42;

/// A key of 32 bytes.
pub fn key(number: u32) -> Vec<u8> {
    format!("{number:032}").into_bytes()
}

/// A request of one datagram.
#[derive(Clone, Debug)]
pub struct Request {
    pub opcode: u8,
    pub key: Vec<u8>,
    pub extras: Vec<u8>,
    pub value: Vec<u8>,
    pub cas: u64,
    /// A byte of the datagram that is spoilt on the way, and how.
    pub spoilt: Option<(usize, u8)>,
    /// By so much the header's length of the body is too large.
    pub body_off: u32,
    pub datagrams: u16,
}

impl Request {
    pub fn get(key: &[u8]) -> Request {
        let key = key.to_vec();
        Request {
            opcode: GET,
            key,
            extras: Vec::new(),
            value: Vec::new(),
            cas: 0,
            spoilt: None,
            body_off: 0,
            datagrams: 1,
        }
    }

    pub fn set(key: &[u8], value: &[u8]) -> Request {
        let extras = vec![0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0];
        Request { opcode: SET, extras, value: value.to_vec(), ..Request::get(key) }
    }

    /// With another opcode.
    pub fn quiet(self, opcode: u8) -> Request {
        Request { opcode, ..self }
    }

    fn frame(&self, number: u16) -> Vec<u8> {
        let body = self.extras.len() + self.key.len() + self.value.len();
        let mut data = number.to_be_bytes().to_vec();
        data.extend([0, 0]);
        data.extend(self.datagrams.to_be_bytes());
        data.extend([0, 0, 0x80, self.opcode]);
        data.extend((self.key.len() as u16).to_be_bytes());
        data.extend([self.extras.len() as u8, 0, 0, 0]);
        data.extend((body as u32 + self.body_off).to_be_bytes());
        data.extend(u32::from(number).wrapping_mul(0x9e37_79b9).to_be_bytes());
        data.extend(self.cas.to_be_bytes());
        for part in [&self.extras, &self.key, &self.value] {
            data.extend(part);
        }
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1, 1, 8, 0, 0x45, 0];
        frame.extend((28 + data.len() as u16).to_be_bytes());
        frame.extend([0, 1, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 203, 0, 113, 1, 0xc3, 0x50, 0x2b, 0xcb]);
        frame.extend((8 + data.len() as u16).to_be_bytes());
        frame.extend([0, 0]);
        frame.extend(&data);
        let summary = parse_frame(&frame).expect("a datagram");
        checksum::fill(&mut frame, &summary, true, true);
        if let Some((at, bits)) = self.spoilt {
            let at = DATA_AT + at % data.len();
            frame[at] ^= bits;
        }
        frame
    }
}

/// A core of a server.
struct Core {
    driver: Driver,
    cache: PoolCache,
    app: App<FlatCpu>,
}

/// A server.
pub struct Server {
    nic: Nic<FlatDma>,
    dma: FlatDma,
    program: Shared,
    cores: Vec<Core>,
    now: Time,
    asked: u16,
    /// A core that does not poll any more.
    stopped: Option<usize>,
    partitions: u32,
    /// What each register held when the NIC last looked.
    seen: BTreeMap<u32, u64>,
}

/// Nothing leaves by the wire: replies are looked at before.
struct NoWire;

impl Egress for NoWire {
    fn depart(&mut self, _departure: Departure<'_>) {
        panic!("a frame left");
    }

    fn bridge(&mut self, _bridged: Bridged) {
        panic!("a frame left by another port");
    }
}

fn file(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/p4").join(name).display().to_string()
}

impl Server {
    /// Without help from the NIC, with a log of so many MiB.
    pub fn plain(log_mib: u32) -> Server {
        Server::new(Values::default().with("flexkvs_log_mib", log_mib), 1)
    }

    /// The NIC takes headers off and appends to the log.
    pub fn helped(log_mib: u32) -> Server {
        Server::helped_on(1, log_mib)
    }

    /// The same on several cores.
    pub fn helped_on(cores: usize, log_mib: u32) -> Server {
        let values = Values::default().with("flexkvs_log_mib", log_mib).with("flexkvs_nic_log", true);
        Server::new(values.with("flexnic_program", &*file("flexkvs-dma.p4")), cores)
    }

    fn new(values: Values, cores: usize) -> Server {
        let values = values.with("flexkvs_buckets", 16).with("rx_entries", ENTRIES);
        let mut space = AddressSpace::default();
        let pool = Pool::new(&mut space, 4 * cores * ENTRIES);
        let plan = Plan {
            device: 0,
            owners: (0..cores as u16).map(Owner).collect(),
            first_position: 0,
            pool,
            descriptor_read: Bytes(512),
            costs: DriverCosts::default(),
            nicmem: NicMemory::default(),
            emulates: None,
            emulator: Owner(cores as u16),
            values: values.clone(),
            seed: 1,
            emulator_fills: false,
            kernel: None,
        };
        let (half, drivers) = build(&plan, &mut space, false).unwrap_or_else(|error| panic!("{error}"));
        let mut config = AppConfig::new("flexkvs", PortMap::one_armed(1));
        config.values = values;
        let apps = Apps::shipped();
        let shared = apps.share(&config, &mut space).expect("shared tables");
        let core = |(core, driver)| {
            let place = Place { core, cores };
            let app = apps.build::<Flat>(&config, place, &mut space, &shared).expect("an application");
            Core { driver, cache: PoolCache::new(&mut space, pool, 8, Cycles(0)), app }
        };
        let mut cores: Vec<Core> = drivers.into_iter().enumerate().map(core).collect();
        let mut dma = FlatDma::new(FlatCpu::new(space.end()));
        pool.start(&mut dma.cpu);
        for core in &mut cores {
            core.app.start(&mut dma.cpu);
        }
        for core in &mut cores {
            core.driver.start(&mut dma.cpu, &mut core.cache);
        }
        let program = half.program().clone();
        let spec = NicSpec { rx_fifo: Bytes(1 << 20), ..spec() };
        let nic = Nic::new(&spec, Box::new(half), &[], Addr(space.end()));
        let mut server = Server {
            nic,
            dma,
            program,
            cores,
            now: Time::ZERO,
            asked: 0,
            stopped: None,
            partitions: 0,
            seen: BTreeMap::new(),
        };
        server.ring();
        server
    }

    /// Software's register writes reach the NIC.
    fn ring(&mut self) {
        let writes: Vec<_> = self.dma.cpu.registers().collect();
        for (register, value) in writes {
            // As on the live ground: a register holds the last value written, and the NIC sees changes.
            if self.seen.insert(register.index, value) != Some(value) {
                self.nic.write_register(&mut self.dma, register.index, value);
            }
        }
    }

    /// Writes a register as software does.
    pub fn write_register(&mut self, index: u32, value: u64) {
        self.dma.cpu.mmio_write(nicforge_platform::Register { device: 0, index }, value);
        self.ring();
    }

    /// All requests come in before the core polls; the data of each reply.
    pub fn ask_all(&mut self, requests: &[Request]) -> Vec<Option<Vec<u8>>> {
        let first = self.asked;
        for request in requests {
            self.now += Time::from_us(10);
            self.dma.set_now(self.now);
            self.nic.receive(&mut self.dma, &request.frame(self.asked), self.now);
            self.nic.advance(&mut self.dma, &mut NoWire);
            self.asked = self.asked.wrapping_add(1);
        }
        let mut replies = vec![None; requests.len()];
        let stopped = self.stopped;
        for (_, core) in self.cores.iter_mut().enumerate().filter(|(number, _)| Some(*number) != stopped) {
            let mut packets: Vec<Packet> = Vec::new();
            core.driver.rx_burst(&mut self.dma.cpu, &mut core.cache, &mut packets, 2 * ENTRIES);
            for mut packet in packets {
                if let Verdict::Transmit(_) = core.app.packet(&mut self.dma.cpu, &mut packet) {
                    let frame = self.dma.cpu.bytes(packet.head.at, packet.head.len as usize).to_vec();
                    assert_eq!(frame[..14], [2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 0, 1, 8, 0]);
                    assert_eq!(frame[26..38], [203, 0, 113, 1, 192, 0, 2, 1, 0x2b, 0xcb, 0xc3, 0x50]);
                    let number = u16::from_be_bytes([frame[42], frame[43]]).wrapping_sub(first);
                    replies[usize::from(number)] = Some(frame[42..].to_vec());
                }
                core.cache.free(&mut self.dma.cpu, &packet);
            }
        }
        self.ring();
        replies
    }

    /// Core `core` takes no entries, and frees none, from now on.
    pub fn stop(&mut self, core: usize) {
        self.stopped = Some(core);
    }

    /// Register writes that the NIC refused.
    pub fn refused_writes(&self) -> u64 {
        self.nic.counters.bad_register_writes
    }

    /// The data of the reply to one request.
    pub fn ask(&mut self, request: &Request) -> Option<Vec<u8>> {
        self.ask_all(std::slice::from_ref(request)).remove(0)
    }

    /// Keys are partitioned anew: those with hashes up to `last` go to core 0, all others to core 1.
    pub fn partition(&mut self, last: u32) {
        self.partitions += 1;
        let entry = |low: u32, high: u32, queue: u32| {
            let priority = self.partitions;
            format!(
                "[[entry]]\ntable = \"cores\"\nmatch = {{ \"meta.hash\" = \"{low}..{high}\" }}\npriority = {priority}\n\
                 action = \"to_core\"\ndata = {{ queue = {queue} }}\n"
            )
        };
        let text = entry(0, last, 0) + &entry(last + 1, u32::MAX, 1);
        entries::load(&mut self.program.lock(), &text).unwrap_or_else(|error| panic!("{error}"));
    }

    /// GETs of a key keep their client's core from now on.
    pub fn read_by_all(&mut self, number: u32) {
        let hash = nicforge_apps::flexkvs::crc32(&key(number));
        let text = format!(
            "[[entry]]\ntable = \"read_by_all\"\nmatch = {{ \"meta.hash\" = {hash} }}\naction = \"NoAction\"\n"
        );
        entries::load(&mut self.program.lock(), &text).unwrap_or_else(|error| panic!("{error}"));
    }

    /// A counter of the application on one core.
    pub fn counter_of(&self, core: usize, name: &str) -> u64 {
        find(self.cores[core].app.counters(), name)
    }

    /// A counter of the application, over all cores.
    pub fn counter(&self, name: &str) -> u64 {
        self.cores.iter().map(|core| find(core.app.counters(), name)).sum()
    }

    /// A counter of the DMA engine.
    pub fn dma(&self, name: &str) -> u64 {
        find(self.nic.stages.counters(), name)
    }

    /// Frames dropped by this cause.
    pub fn dropped(&self, name: &str) -> u64 {
        find(self.nic.drops().causes().to_vec(), name)
    }

    /// All of host memory but what software writes itself.
    pub fn memory(&mut self) -> Vec<u8> {
        let log = Addr(64 << 20);
        self.dma.cpu.bytes(log, 1 << 20).to_vec()
    }
}

fn find(counters: Vec<(&'static str, u64)>, name: &str) -> u64 {
    counters.into_iter().find(|(other, _)| *other == name).map_or(0, |(_, value)| value)
}
