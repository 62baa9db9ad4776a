//! The grounds that an application runs on: plain memory, the simulation, shared memory of live runs.

use std::ops::DerefMut;

use nicforge_nic::{HEADROOM_BYTES, METADATA_BYTES, Packet};
use nicforge_platform::sim::{Host, Lent, SimCore, SimCpu, Turn, test_hardware};
use nicforge_platform::{self as platform, Addr, AddressSpace, Cpu, FlatCpu};
use nicforge_units::{Bytes, Time};

use crate::{App, AppConfig, AppGround, Apps, Place, Verdict};

/// Room for the largest frame of the captures.
pub const BUFFER: u64 = 1 << 17;

/// What the core is on the ground of `G`.
pub type CpuOf<G> = <<G as Ground>::On as platform::Ground>::Cpu;

/// What a test needs of a ground with one core.
pub trait Ground {
    /// The core at work.
    type Core<'a>: DerefMut<Target = CpuOf<Self>>
    where
        Self: 'a;
    /// The ground itself.
    type On: AppGround;

    /// Zeroed memory for `space`.
    fn new(space: &AddressSpace) -> Self;
    /// The core begins a step.
    fn core(&mut self) -> Self::Core<'_>;
    /// It is `time`, at least.
    fn set_now(&mut self, time: Time);
}

impl Ground for FlatCpu {
    type Core<'a> = &'a mut FlatCpu;
    type On = platform::Flat;

    fn new(space: &AddressSpace) -> FlatCpu {
        FlatCpu::new(space.end())
    }

    fn core(&mut self) -> &mut FlatCpu {
        self
    }

    fn set_now(&mut self, time: Time) {
        FlatCpu::set_now(self, time);
    }
}

/// The simulation, with caches so small that tables do not fit.
pub struct Sim {
    host: Lent<Host>,
    core: Lent<SimCore>,
}

impl Ground for Sim {
    type Core<'a> = Turn<'a, SimCpu>;
    type On = platform::Sim;

    fn new(space: &AddressSpace) -> Sim {
        let mut hardware = test_hardware();
        hardware.cores = 1;
        hardware.l2.size = Bytes(64 << 10);
        hardware.llc.size = Bytes(11 * 64 * 1024);
        let link = &hardware.pcie;
        Sim {
            host: Lent::new(Host::new(&hardware, space)),
            core: Lent::new(SimCore::new(0, &hardware.core, link.mmio_write, link.mmio_read)),
        }
    }

    fn core(&mut self) -> Turn<'_, SimCpu> {
        self.core.begin_burst();
        SimCpu::on(&mut self.host, &mut self.core)
    }

    fn set_now(&mut self, time: Time) {
        self.core.idle_until(time);
    }
}

#[cfg(target_os = "linux")]
impl Ground for nicforge_platform::live::LiveCpu {
    type Core<'a> = &'a mut Self;
    type On = platform::Live;

    fn new(space: &AddressSpace) -> Self {
        use nicforge_platform::live::{Bell, Control, LiveCpu, Shape};
        let shape = Shape { devices: 1, workers: 1, banks: Vec::new() };
        let control = Control::new(space, &shape).expect("shared memory");
        let mut cpu = LiveCpu::new(control, Bell::new().expect("an eventfd"), 0);
        cpu.set_time(Time::ZERO);
        cpu
    }

    fn core(&mut self) -> &mut Self {
        self
    }

    fn set_now(&mut self, time: Time) {
        self.set_time(time);
    }
}

/// An application on a ground.
pub struct On<G: Ground> {
    /// The application on the core at work.
    pub app: App<CpuOf<G>>,
    /// On the other cores.
    others: Vec<App<CpuOf<G>>>,
    /// Memory and core.
    pub ground: G,
    /// A buffer for one packet.
    pub mbuf: Addr,
}

impl<G: Ground> On<G> {
    /// The application of `apps` that `config` names, started at `place`.
    ///
    /// # Panics
    /// It cannot be built.
    pub fn new(apps: &Apps, config: &AppConfig, place: Place) -> On<G> {
        On::several(apps, config, &[place])
    }

    /// The same on several cores over one memory, which take turns; the first one begins.
    ///
    /// # Panics
    /// It cannot be built, or there is no place.
    pub fn several(apps: &Apps, config: &AppConfig, places: &[Place]) -> On<G> {
        let mut space = AddressSpace::default();
        let mbuf = space.data(METADATA_BYTES + HEADROOM_BYTES + BUFFER, 64);
        let shared = apps.share(config, &mut space).expect("a known name");
        let mut build = |place: &Place| {
            let built = apps.build::<G::On>(config, *place, &mut space, &shared);
            built.unwrap_or_else(|error| panic!("{}: {error}", config.name))
        };
        let mut all: Vec<_> = places.iter().map(&mut build).collect();
        let mut ground = G::new(&space);
        all.iter_mut().for_each(|app| app.start(&mut *ground.core()));
        On { app: all.remove(0), others: all, ground, mbuf }
    }

    /// The core at work and number `other` of the others change places.
    pub fn change(&mut self, other: usize) {
        std::mem::swap(&mut self.app, &mut self.others[other]);
    }

    /// Writes the parts of a frame to where `packet` has them, and hands it to the application. Returns the verdict, the
    /// packet and the frame's bytes afterwards.
    pub fn handle(&mut self, packet: Packet, parts: [&[u8]; 2]) -> (Verdict, Packet, Vec<u8>) {
        let mut packet = packet;
        let mut cpu = self.ground.core();
        let at = [packet.head.at, packet.rest.at];
        for (at, bytes) in at.into_iter().zip(parts) {
            if !bytes.is_empty() {
                cpu.bytes_mut(at, bytes.len()).copy_from_slice(bytes);
            }
        }
        let verdict = self.app.packet(&mut *cpu, &mut packet);
        let mut part = |at: Addr, len: u32| match len {
            0 => Vec::new(),
            len => cpu.bytes(at, len as usize).to_vec(),
        };
        let mut out = part(packet.head.at, packet.head.len);
        out.extend(part(packet.rest.at, packet.rest.len));
        (verdict, packet, out)
    }
}
