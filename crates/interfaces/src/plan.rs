//! What an interface is built from: the same for all.

use nicforge_nic::{Application, COMPLETION_BYTES, DriverCosts, KeyTable, Pool};
use nicforge_options::Values;
use nicforge_platform::{CONTROL_BYTES, Owner, SpaceError};
use nicforge_units::Bytes;

use crate::describe::{Queues, Shape};
use crate::kernel::KernelPlan;
use crate::{InterfaceEntry, rx_bisect};

/// More completions than this do not fit into control memory.
const RING_ENTRIES_MAX: usize = (CONTROL_BYTES / COMPLETION_BYTES) as usize;

/// Bytes of descriptors that NICs have room for from one read, at most.
pub const DESCRIPTOR_READ_MAX: usize = 1024;

/// The queues of one NIC, and what they have to work with.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The NIC's device number in register addresses.
    pub device: u8,
    /// The core behind each queue.
    pub owners: Vec<Owner>,
    /// Ring positions count from here: 0, or a multiple of twice every ring's size (tests bring
    /// rings to their 2^32nd position with it).
    pub first_position: u64,
    /// Where receive buffers come from.
    pub pool: Pool,
    /// Bytes of descriptors that the NIC fetches by one read.
    pub descriptor_read: Bytes,
    /// What the driver's instructions cost.
    pub costs: DriverCosts,
    /// Memory of the NIC, where software has some.
    pub nicmem: NicMemory,
    /// The interface that is emulated, where one is.
    pub emulates: Option<InterfaceEntry>,
    /// The core that plays this NIC, if one does.
    pub emulator: Owner,
    /// What the scenario says; an interface reads its own options from it.
    pub values: Values,
    /// Decides what random choices draw.
    pub seed: u64,
    /// Whether that core puts buffers into physical rings itself, as other software comes and goes; else
    /// the cores that it serves do, before they begin.
    pub emulator_fills: bool,
    /// What a whole device needs, where the host runs a kernel.
    pub kernel: Option<KernelPlan>,
}

/// Memory of a NIC, as an interface needs to know it.
#[derive(Clone, Debug, Default)]
pub struct NicMemory {
    /// Packet buffers there; without them all payload goes to host memory.
    pub pool: Option<Pool>,
    /// The keys that the NIC knows.
    pub keys: KeyTable,
    /// Whose the queues are.
    pub application: Application,
}

/// Why an interface cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum InterfaceError {
    /// Ring sizes must be powers of two within limits.
    #[error("{what} of {entries}: ring sizes are powers of two from 2 to {RING_ENTRIES_MAX}")]
    RingSize {
        /// Which ring.
        what: &'static str,
        /// What was asked for.
        entries: usize,
    },
    /// What a descriptor of the batched list has room for.
    #[error("list_batch of {0}: descriptors of the batched list have 2 or 4 buffers")]
    ListBatch(usize),
    /// A shared ring needs a core that uses it.
    #[error("sharing of 0: at least 1 core uses each ring")]
    NoSharing,
    /// There is no such interface.
    #[error("no interface named {0:?}; `nicforge list interfaces` names them")]
    Unknown(String),
    /// Rings that cannot belong together.
    #[error(transparent)]
    Topology(#[from] rx_bisect::TopologyError),
    /// No core can play its NIC.
    #[error("{wanted:?} cannot be emulated: {why}; {} can", crate::emulated::played_by_cores().join(", "))]
    NotEmulated {
        /// What was to be emulated.
        wanted: String,
        /// Why it cannot be.
        why: &'static str,
    },
    /// There is no core for it.
    #[error("no core is there to play the NIC: use the emulated interface itself")]
    NoEmulator,
    /// Options of SINIC that cannot be had.
    #[error(transparent)]
    Sinic(#[from] crate::sinic::OptionsError),
    /// A whole device, and no kernel to drive it.
    #[error("its driver is part of a kernel: use it with a workload of whole systems")]
    NeedsKernel,
    /// Receive rings, and a kernel that drives whole devices.
    #[error("a loop polls its rings: use it with workload = \"frames\" or \"rpc_echo\"")]
    NeedsPacketLoop,
    /// No room for the rings.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// An error of the interface's own.
    #[error(transparent)]
    Own(#[from] Box<dyn std::error::Error + Send + Sync>),
}

impl Plan {
    /// What a whole device is built from.
    ///
    /// # Errors
    /// The host runs no kernel.
    pub fn kernel(&self) -> Result<&KernelPlan, InterfaceError> {
        self.kernel.as_ref().ok_or(InterfaceError::NeedsKernel)
    }

    /// The rings that interface `entry`, which builds on no other, has by this plan.
    pub fn shape_of(&self, entry: &InterfaceEntry) -> Shape {
        let queues = Queues { nics: 1, each: self.owners.len(), inner: None };
        entry.description.shape(&self.values, &queues)
    }

    /// Checks a ring size.
    pub fn check_ring(what: &'static str, entries: usize) -> Result<(), InterfaceError> {
        if !entries.is_power_of_two() || !(2..=RING_ENTRIES_MAX).contains(&entries) {
            return Err(InterfaceError::RingSize { what, entries });
        }
        Ok(())
    }
}
