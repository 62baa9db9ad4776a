//! From settings to the halves of an interface.

use nicforge_interfaces::emulated::EmulatedOptions;
use nicforge_interfaces::sh_ring_dynamic::Heuristic;
use nicforge_interfaces::{Halves, Interfaces, Plan};
use nicforge_nic::{DriverCosts, DriverHalf, Pool, ReceiveHalf, TransmitOptions};
use nicforge_options::Values;
use nicforge_platform::sim::{Hardware, SimCpu, SimDma};
use nicforge_platform::{AddressSpace, Owner, Sim};
use nicforge_units::Bytes;

use super::RunError;
use crate::nicmem::NearMemory;
use crate::settings::Settings;

/// Buffers that receive rings may hold for each core.
pub(crate) fn receive_buffers(settings: &Settings) -> usize {
    let buffers = settings.shape().map(|shape| shape.buffers).unwrap_or_default();
    buffers.receive + buffers.more_in_transmit * settings.read::<TransmitOptions>().tx_entries
}

/// What one NIC's interface is built beside.
pub(crate) struct Surroundings {
    /// The NIC's number.
    pub device: usize,
    /// The core that plays it, if one does.
    pub emulator: Owner,
    /// Whether that core puts buffers into physical rings itself.
    pub emulator_fills: bool,
    /// The core of its first queue.
    pub first_core: usize,
    /// Its queues.
    pub queues: usize,
    /// Bytes of descriptors that it fetches by one read.
    pub descriptor_read: Bytes,
    /// What the driver's instructions cost.
    pub costs: DriverCosts,
    /// Decides what random choices draw.
    pub seed: u64,
}

/// What the interface of a NIC is built from.
pub(crate) fn plan_of(
    settings: &Settings,
    interfaces: &Interfaces,
    around: &Surroundings,
    pool: Pool,
    near: &NearMemory,
) -> Plan {
    let owner = |queue| Owner((around.first_core + queue) as u16);
    Plan {
        device: around.device as u8,
        owners: (0..around.queues).map(owner).collect(),
        pool,
        descriptor_read: around.descriptor_read,
        first_position: 0,
        costs: around.costs,
        nicmem: near.of_interface(),
        emulates: interfaces.find(&settings.read::<EmulatedOptions>().emulates).ok(),
        emulator: around.emulator,
        values: Values::clone(settings),
        seed: around.seed,
        emulator_fills: around.emulator_fills,
        kernel: None,
    }
}

/// An interface's halves on all NICs.
pub struct AllHalves {
    /// One for each NIC.
    pub nics: Vec<Box<dyn ReceiveHalf<SimDma>>>,
    /// One for each queue of all NICs.
    pub drivers: Vec<Box<dyn DriverHalf<SimCpu>>>,
}

/// What an interface is built from beside settings.
pub struct Given<'a> {
    /// The interfaces that there are.
    pub interfaces: &'a Interfaces,
    /// The machine.
    pub hardware: &'a Hardware,
    /// Where receive buffers come from.
    pub pool: Pool,
    /// Memory of each NIC.
    pub near: &'a [NearMemory],
    /// What a driver's instructions cost.
    pub costs: DriverCosts,
}

/// The halves of the interface of `settings`.
pub fn interface(
    settings: &Settings,
    given: &Given<'_>,
    seed: u64,
    space: &mut AddressSpace,
) -> Result<AllHalves, RunError> {
    let &Given { interfaces, hardware, pool, near, costs } = given;
    let entry = interfaces.find(&settings.interface())?;
    let (cores, queues) = (settings.cores(), settings.queues());
    let mut drivers = Vec::new();
    let mut nics = Vec::new();
    for (device, near) in near.iter().enumerate() {
        let around = Surroundings {
            device,
            emulator: Owner((cores + device) as u16),
            emulator_fills: false,
            first_core: device * queues,
            queues,
            descriptor_read: hardware.nic.descriptor_read,
            costs,
            seed,
        };
        let plan = plan_of(settings, interfaces, &around, pool, near);
        let halves: Halves<Sim> = entry.build(&plan, space)?.rings()?;
        nics.push(halves.nic);
        drivers.extend(halves.drivers);
    }
    Ok(AllHalves { nics, drivers })
}

/// What a control core decides by, where the interface has one.
pub fn heuristic(settings: &Settings) -> Option<Heuristic> {
    settings.shape()?.control
}

/// Frames that the receive rings of all NICs hold together; more where a NIC has others beside them.
pub fn ring_frames(settings: &Settings) -> usize {
    settings.nics() * settings.shape().map_or(0, |shape| shape.frames)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffers(settings: Settings) -> usize {
        receive_buffers(&settings)
    }

    fn emulated() -> Settings {
        Settings::default().with("interface", "emulated").with("cores", 8).with("nics", 2)
    }

    /// Those of the emulated rings, and the physical ones' by what they stand for.
    #[test]
    fn an_emulated_nic_has_buffers_for_its_physical_rings() {
        // Four Ax rings of 128, a Bx ring of 1024, and a physical ring of 512 for four.
        assert_eq!(buffers(emulated()), 128 + 1024 + 128);
        assert_eq!(buffers(emulated().with("rx_entries", 8192)), 1280);
        // Two Ax rings for four cores; sixteen, four for each.
        assert_eq!(buffers(emulated().with("ax_rings", 2)), 128 + 1024 + 64);
        assert_eq!(buffers(emulated().with("ax_rings", 16)), 512 + 1024 + 512);
        let of = |emulates: &str| buffers(emulated().with("emulates", emulates).with("sharing", 2));
        assert_eq!([of("priv_ring"), of("sh_ring")], [1024 + 1024, 1024 + 512]);
        // Private rings and a shared one for two cores, and the same once more.
        assert_eq!(of("sh_ring_dynamic"), 2 * 1024 + 1024 + 512);
    }
}
