//! The two ends of the in-memory port: a device that makes frames up and a worker that takes them.

use nicforge_interfaces::{Built, Halves, Interfaces, Plan};
use nicforge_nic::{
    DriverCosts, DriverHalf, Nic, NicSpec, Packet, Pool, PoolCache, PortId, ReceiveHalf, TxOffload, registers,
};
use nicforge_options::Values;
use nicforge_platform::live::{Bell, Control, LiveCpu, LiveDma, Shape};
use nicforge_platform::{Addr, AddressSpace, Live, Owner, Register};
use nicforge_units::{BitRate, Bytes, Cycles, Time};

pub const ENTRIES: usize = 256;
pub const BURST: usize = 32;
/// Flows, whose frames come in turn.
const FLOWS: u16 = BURST as u16;
const NO_LIMIT: Bytes = Bytes(1 << 50);

/// The same in both processes.
pub struct Layout {
    pub space: AddressSpace,
    pub shape: Shape,
    pub pool: Pool,
    pub cache: PoolCache,
    pub nic: Box<dyn ReceiveHalf<LiveDma>>,
    pub driver: Box<dyn DriverHalf<LiveCpu>>,
}

/// One queue of `interface` in shared memory.
pub fn lay_out(interface: &str) -> Layout {
    let mut space = AddressSpace::default();
    let pool = Pool::new(&mut space, 4 * ENTRIES);
    let plan = Plan {
        device: 0,
        owners: vec![Owner(0)],
        pool,
        descriptor_read: Bytes(512),
        first_position: 0,
        costs: DriverCosts::default(),
        emulates: None,
        emulator: Owner::NOBODY,
        emulator_fills: false,
        kernel: None,
        values: Values::default()
            .with("rx_entries", ENTRIES)
            .with("sharing", 1)
            .with("ax_entries", ENTRIES)
            .with("bx_entries", ENTRIES),
        seed: 1,
        nicmem: Default::default(),
    };
    let entry = Interfaces::shipped().find(interface).unwrap();
    let Halves::<Live> { nic, mut drivers } = entry.build(&plan, &mut space).and_then(Built::rings).unwrap();
    let cache = PoolCache::new(&mut space, pool, 256, Cycles(0));
    Layout {
        shape: Shape { devices: 1, workers: 1, banks: vec![(registers::RECEIVE, 8)] },
        space,
        pool,
        cache,
        nic,
        driver: drivers.remove(0),
    }
}

/// The software.
pub struct Worker {
    cpu: LiveCpu,
    driver: Box<dyn DriverHalf<LiveCpu>>,
    cache: PoolCache,
    packets: Vec<Packet>,
    taken: u64,
}

impl Worker {
    /// With its queue filled.
    pub fn new(layout: Layout, control: Control, bell: Bell) -> Worker {
        let Layout { mut cache, mut driver, .. } = layout;
        let mut cpu = LiveCpu::new(control, bell, 0).device_polls();
        driver.start(&mut cpu, &mut cache);
        Worker { cpu, driver, cache, packets: Vec::with_capacity(BURST), taken: 0 }
    }

    /// Takes a burst and frees it.
    #[inline]
    pub fn turn(&mut self) {
        let Worker { cpu, cache, packets, .. } = self;
        self.driver.rx_burst(cpu, cache, packets, BURST);
        if packets.is_empty() {
            return std::hint::spin_loop();
        }
        self.taken += packets.len() as u64;
        for packet in packets.drain(..) {
            cache.free(cpu, &packet);
        }
        cpu.tell_taken(self.taken);
    }
}

/// The device with frames of its own.
pub struct Device {
    nic: Nic<LiveDma>,
    dma: LiveDma,
    control: Control,
    frames: Vec<Vec<u8>>,
    next: usize,
    registers: Vec<(Register, u64)>,
    started: bool,
}

impl Device {
    /// Frames have `len` bytes.
    pub fn new(layout: Layout, control: Control, bell: Bell, len: usize) -> Device {
        let nic = Nic::new(&spec(), layout.nic, &[], Addr(layout.space.end()));
        layout.pool.start(&mut LiveCpu::new(control.clone(), bell, 0));
        let registers = control.registers(0).map(|register| (register, 0));
        Device {
            registers: registers.collect(),
            dma: LiveDma::new(control.clone(), &layout.space).workers_poll(),
            frames: frames(len),
            nic,
            control,
            next: 0,
            started: false,
        }
    }

    /// As a live run's: what was taken, then the doorbells, then frames as far as there is room.
    /// Returns how many packets were taken.
    pub fn round(&mut self) -> u64 {
        let stamp = self.dma.tick();
        let taken = self.control.taken_by(0);
        for (register, seen) in &mut self.registers {
            let value = self.control.register_value(*register);
            if value != *seen {
                *seen = value;
                self.started = true;
                self.nic.write_register(&mut self.dma, register.index, value);
            }
        }
        let inside = self.nic.counters.delivered - taken;
        let room = (ENTRIES as u64 / 2).saturating_sub(inside);
        let count = room.min(BURST as u64) * u64::from(self.started);
        let (before, from) = self.frames.split_at(self.next);
        for frame in from.iter().chain(before).take(count as usize) {
            self.nic.receive_unfinished(&mut self.dma, frame, TxOffload::default(), stamp);
        }
        self.next = (self.next + count as usize) % self.frames.len();
        self.dma.wake();
        taken
    }
}

/// A frame of `len` bytes of each flow.
pub fn frames(len: usize) -> Vec<Vec<u8>> {
    (0..FLOWS).map(|flow| frame(len, flow)).collect()
}

/// A UDP frame of `len` bytes of flow `flow`, checksums right.
fn frame(len: usize, flow: u16) -> Vec<u8> {
    let mut frame = vec![0u8; len];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    let ip = &mut frame[14..];
    ip[..10].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17]);
    ip[2..4].copy_from_slice(&(len as u16 - 14).to_be_bytes());
    ip[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    ip[20..22].copy_from_slice(&(1_000 + flow).to_be_bytes());
    ip[22..24].copy_from_slice(&53u16.to_be_bytes());
    ip[24..26].copy_from_slice(&(len as u16 - 34).to_be_bytes());
    let summary = nicforge_wire::parse_frame(&frame).unwrap();
    nicforge_wire::checksum::fill(&mut frame, &summary, true, true);
    frame
}

fn spec() -> NicSpec {
    NicSpec {
        port: PortId(0),
        rate: BitRate::from_bits_per_second(1_000_000_000_000_000),
        wire_overhead: Bytes(0),
        rx_fifo: NO_LIMIT,
        rx_pipeline: Time::ZERO,
        tx_pipeline: Time::ZERO,
        tx_buffer: NO_LIMIT,
        tx_resume_room: Bytes(0),
        tx_deschedule_reads: 0.0,
        descriptor_read: Bytes(512),
    }
}

/// Both ends in turn on one core, without anybody else: for counting instructions.
pub fn alternate(interface: &str, len: usize, packets: u64) {
    let layout = lay_out(interface);
    let control = Control::new(&layout.space, &layout.shape).unwrap();
    let bell = Bell::new().unwrap();
    let mut device = Device::new(layout, control.clone(), bell.clone(), len);
    let mut worker = Worker::new(lay_out(interface), control, bell);
    while device.round() < packets {
        worker.turn();
    }
}
