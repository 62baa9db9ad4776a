//! A core whose driver does as ever, and whose descriptors and doorbells are wrong all the same: they are
//! changed on their way into the region, so that they lie where the interface's own code puts them.

use std::any::TypeId;

use nicforge_apps::l2fwd::L2Fwd;
use nicforge_apps::{self as apps, AppEntry, AppGround, AppKind};
use nicforge_interfaces::{
    self as interfaces, Built, Interface, InterfaceEntry, InterfaceError, KnownGround, Plan, Played,
};
use nicforge_interfaces::{emulated, in_place, nm_nfv, priv_ring, rx_bisect, sh_ring, sh_ring_dynamic};
use nicforge_nic::{Ledger, registers};
use nicforge_platform::bytemuck::{Pod, bytes_of_mut};
use nicforge_platform::live::{DeviceCpu, LiveCpu, LiveDma};
use nicforge_platform::{Addr, AddressSpace, Cpu, Ground, Register, forward_cpu};
use nicforge_stages::hairpin::HairpinKind;
use nicforge_stages::{self as stages, StageEntry, StageGround, StageKind};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// Buffers begin where none does.
    Askew,
    /// Buffers lie beyond the region.
    Outside,
    /// Buffers have no room.
    NoRoom,
    /// Buffers are those of worker 1.
    Foreign,
    /// What comes next in a list is no descriptor.
    Next,
    /// Doorbells ring for far more than the ring has.
    Doorbell,
}

impl Lie {
    pub const ALL: [Lie; 6] = [Lie::Askew, Lie::Outside, Lie::NoRoom, Lie::Foreign, Lie::Next, Lie::Doorbell];

    /// Whether it is one on `interface`.
    pub fn is_for(self, interface: &str) -> bool {
        match self {
            Lie::Next => interface.ends_with("list"),
            // Who shares a ring may give each other's buffers.
            Lie::Foreign => !interface.starts_with("sh_ring"),
            _ => true,
        }
    }

    /// Why the queue is closed.
    pub fn reason(self, shares: bool) -> &'static str {
        match self {
            Lie::Doorbell if shares => "a shared doorbell announced descriptors that cannot be",
            Lie::Doorbell => "worker 0 is lost: a doorbell of its rings for what cannot be",
            _ => "of its descriptors name no buffer",
        }
    }
}

pub struct Liar {
    pub cpu: LiveCpu,
    pub lie: Lie,
    /// Whose buffers are which.
    pub ledger: Ledger,
}

impl Liar {
    /// A buffer that worker 1 has.
    fn foreign(&mut self) -> Addr {
        let pool = self.ledger.pool();
        let mut numbers = 0..pool.count() as u64;
        let of_other = |cpu: &mut LiveCpu, number| {
            let holder: u16 = cpu.load(self.ledger.at + number * 2);
            holder == Ledger::mark(1)
        };
        let found = numbers.find(|&number| of_other(&mut self.cpu, number));
        pool.buffer(found.expect("worker 1 has buffers"))
    }

    /// All descriptors begin with an address, then the room in 4 bytes or more; in lists the index of what
    /// comes next is at 12.
    fn falsify(&mut self, descriptor: &mut [u8]) {
        let named = u64::from_ne_bytes(descriptor[..8].try_into().unwrap());
        let address = match self.lie {
            Lie::Askew => named + 8,
            Lie::Outside => named + (1 << 40),
            Lie::Foreign => self.foreign().0,
            _ => named,
        };
        descriptor[..8].copy_from_slice(&address.to_ne_bytes());
        match self.lie {
            // The highest byte may say who wrote it.
            Lie::NoRoom => descriptor[8..11].fill(0),
            Lie::Next => descriptor[12..16].fill(0xff),
            _ => {}
        }
    }
}

impl Cpu for Liar {
    forward_cpu!(cpu: load acquire release atomic lock unlock bytes);
    forward_cpu!(cpu: bytes_mut hint mmio_read work enter now);

    fn store<T: Pod>(&mut self, at: Addr, mut value: T) {
        let descriptors = [
            TypeId::of::<priv_ring::RxDescriptor>(),
            TypeId::of::<in_place::Descriptor>(),
            TypeId::of::<nm_nfv::Buffer>(),
            TypeId::of::<sh_ring::Descriptor>(),
            TypeId::of::<sh_ring::BatchDescriptor>(),
        ];
        if descriptors.contains(&TypeId::of::<T>()) {
            self.falsify(bytes_of_mut(&mut value));
        }
        self.cpu.store(at, value);
    }

    fn mmio_write(&mut self, register: Register, value: u64) {
        let lies = self.lie == Lie::Doorbell && register.index < registers::STEERING;
        let value = if lies { value + (1 << 40) } else { value };
        self.cpu.mmio_write(register, value);
    }
}

/// The live ground, on which software lies.
#[derive(Clone, Copy)]
pub struct Lying;

impl Ground for Lying {
    type Cpu = Liar;
    type Reader<'a> = Liar;
    type Dma = LiveDma;
    type Player = DeviceCpu;
}

/// How the interface called `name` is built on ground `G`.
fn build<G: KnownGround>(name: &str) -> fn(&Plan, &mut AddressSpace) -> Result<Built<G>, InterfaceError> {
    match name {
        "emulated" => emulated::Emulated::build,
        "in_place" => in_place::InPlace::build,
        "nm_nfv" => nm_nfv::NmNfv::build,
        "nm_nfv_minus" => nm_nfv::NmNfvMinus::build,
        "priv_ring" => priv_ring::PrivRing::build,
        "rx_bisect" => rx_bisect::RxBisect::build,
        "sh_ring" => sh_ring::ShRing::build,
        "sh_ring_list" => sh_ring::ShRingList::build,
        "sh_ring_batched_list" => sh_ring::ShRingBatchedList::build,
        "sh_ring_dynamic" => sh_ring_dynamic::ShRingDynamic::build,
        _ => nm_nfv::SplitRings::build,
    }
}

impl KnownGround for Lying {
    fn builder(entry: &InterfaceEntry) -> Option<interfaces::Build<Lying>> {
        Some(build(entry.name()))
    }

    fn played_builder(entry: &InterfaceEntry) -> Option<interfaces::Build<Played<Lying>>> {
        Some(build(entry.name()))
    }
}

impl StageGround for Lying {
    fn builder(_entry: &StageEntry) -> stages::Build<Lying> {
        |plan, space| HairpinKind::build(&plan.values.read(), plan, space)
    }
}

impl AppGround for Lying {
    fn builder(_entry: &AppEntry) -> apps::Build<Lying> {
        L2Fwd::build
    }
}
