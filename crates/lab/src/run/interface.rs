//! From settings to the halves of an interface, and what they are told.

use nicforge_interfaces::emulated::physical_rings;
use nicforge_interfaces::rx_bisect::{AxChoice, Consumption, Options, Topology};
use nicforge_interfaces::sh_ring_dynamic::Heuristic;
use nicforge_interfaces::{Built, Interfaces, Plan};
use nicforge_nic::{DriverCosts, DriverHalf, Pool, ReceiveHalf};
use nicforge_platform::sim::{Hardware, SimCpu, SimDma};
use nicforge_platform::{AddressSpace, Owner, Sim};
use nicforge_units::{BitRate, Time};

use super::RunError;
use crate::nicmem::NearMemory;
use crate::settings::{RingGroups, Settings};

/// Bits of a GiB.
const GIBIBYTE_BITS: f64 = 8.0 * (1u64 << 30) as f64;

/// Buffers that receive rings may hold for each core. With rxBisect full Bx rings of cores that
/// stall must leave buffers for the others (rxBisect paper, section 4.3).
pub(crate) fn receive_buffers(settings: &Settings) -> usize {
    match settings.interface.as_str() {
        "rx_bisect" => {
            let queues = (settings.cores / settings.nics).max(1);
            let rings = bisect(settings, 0).rings(queues);
            settings.ax_entries * rings.div_ceil(queues).max(1) + settings.bx_entries
        }
        // The emulated rings and the physical ones.
        "emulated" => {
            let emulated = Settings { interface: settings.emulates.clone(), ..settings.clone() };
            let queues = (settings.cores / settings.nics).max(1);
            let rings = (settings.rx_entries, settings.sharing);
            let bisect = bisect(settings, 0);
            let physical = physical_rings(&settings.emulates, queues, rings, &bisect);
            let entries: usize = physical.iter().map(|ring| ring.entries).sum();
            receive_buffers(&emulated) + entries.div_ceil(queues)
        }
        // Two sets of rings.
        "sh_ring_dynamic" => 2 * settings.rx_entries,
        // Two for each packet, in transmit rings too.
        _ if settings.splits_frames() => 2 * settings.rx_entries + settings.tx_entries,
        _ => settings.rx_entries,
    }
}

/// An interface's halves.
pub struct Halves {
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
) -> Result<Halves, RunError> {
    let &Given { interfaces, hardware, pool, near, costs } = given;
    let entry = interfaces.find(&settings.interface)?;
    let queues = settings.cores / settings.nics;
    let mut drivers = Vec::new();
    let mut nics = Vec::new();
    for (device, near) in near.iter().enumerate() {
        let plan = Plan {
            device: device as u8,
            owners: (0..queues).map(|queue| Owner((device * queues + queue) as u16)).collect(),
            rx_entries: settings.rx_entries,
            sharing: settings.sharing,
            list_batch: settings.list_batch,
            pool,
            descriptor_read: hardware.nic.descriptor_read,
            first_position: 0,
            costs,
            bisect: bisect(settings, seed),
            nicmem: near.options(settings),
            emulates: interfaces.find(&settings.emulates).ok(),
            emulator: Owner((settings.cores + device) as u16),
            emulator_fills: false,
        };
        let built: Built<Sim> = entry.build(&plan, space)?;
        nics.push(built.nic);
        drivers.extend(built.drivers);
    }
    Ok(Halves { nics, drivers })
}

/// What dynamic shRing's control core is told, where it is that.
pub fn heuristic(settings: &Settings) -> Option<Heuristic> {
    (settings.seen_by_drivers() == "sh_ring_dynamic").then(|| Heuristic {
        step: Time::from_seconds(settings.dynamic_step_ms / 1e3),
        window: settings.dynamic_window,
        throughput: BitRate::from_gbps(settings.dynamic_gbps),
        memory: BitRate::from_gbps(settings.dynamic_memory_gib_per_s * GIBIBYTE_BITS / 1e9),
        gap_ratio: settings.dynamic_gap_ratio,
        on_share: settings.dynamic_on_share,
        off_share: settings.dynamic_off_share,
    })
}

/// What rxBisect is told; other interfaces do not ask.
pub(crate) fn bisect(settings: &Settings, seed: u64) -> Options {
    let links = settings.ax_links.as_ref().and_then(RingGroups::one_group);
    let associations = settings.associations.as_ref().map(RingGroups::groups);
    Options {
        ax_rings: settings.ax_rings,
        links: links.unwrap_or_default().to_vec(),
        associations: associations.unwrap_or_default().to_vec(),
        association_sets: settings.association_sets,
        ax_entries: settings.ax_entries,
        bx_entries: settings.bx_entries,
        choice: AxChoice::named(&settings.ax_choice).unwrap_or_default(),
        own_first: settings.ax_own == "first",
        consumption: match settings.consumption.as_str() {
            "batched" => Consumption::Batched(Time::from_seconds(settings.consumption_timeout_us / 1e6)),
            _ => Consumption::Parallel,
        },
        seed,
    }
}

/// Frames that the receive rings of all NICs hold together; more where a NIC has others beside them.
pub fn ring_frames(settings: &Settings) -> usize {
    let queues = settings.cores / settings.nics;
    let of_each = match settings.seen_by_drivers() {
        // A frame needs a buffer of an allocation ring and an entry of a reception ring.
        "rx_bisect" => {
            let rings = topology(settings);
            let buffers = rings.ax.len() * settings.ax_entries;
            buffers.min(rings.bx.len() * settings.bx_entries)
        }
        "sh_ring" | "sh_ring_list" | "sh_ring_batched_list" => queues.div_ceil(settings.sharing) * settings.rx_entries,
        _ => queues * settings.rx_entries,
    };
    settings.nics * of_each
}

/// The rings of each NIC with rxBisect.
pub fn topology(settings: &Settings) -> Topology {
    Topology::of(settings.cores / settings.nics, &bisect(settings, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffers(change: impl FnOnce(&mut Settings)) -> usize {
        let mut settings = Settings { interface: "emulated".to_owned(), cores: 8, nics: 2, ..Settings::default() };
        change(&mut settings);
        receive_buffers(&settings)
    }

    /// Those of the emulated rings, and the physical ones' by what they stand for.
    #[test]
    fn an_emulated_nic_has_buffers_for_its_physical_rings() {
        // Four Ax rings of 128, a Bx ring of 1024, and a physical ring of 512 for four.
        assert_eq!(buffers(|_| ()), 128 + 1024 + 128);
        assert_eq!(buffers(|settings| settings.rx_entries = 8192), 1280);
        // Two Ax rings for four cores; sixteen, four for each.
        assert_eq!(buffers(|settings| settings.ax_rings = 2), 128 + 1024 + 64);
        assert_eq!(buffers(|settings| settings.ax_rings = 16), 512 + 1024 + 512);
        let of = |emulates: &str| {
            buffers(|settings| {
                settings.emulates = emulates.to_owned();
                settings.sharing = 2;
            })
        };
        assert_eq!([of("priv_ring"), of("sh_ring")], [1024 + 1024, 1024 + 512]);
        // Private rings and a shared one for two cores, and the same once more.
        assert_eq!(of("sh_ring_dynamic"), 2 * 1024 + 1024 + 512);
    }
}
