//! What the device counted.

use nicforge_nic::{DropCounters, NicCounters};
use nicforge_platform::live::ports::{Link, PortCounters};

/// What one NIC and its port counted.
#[derive(Clone, Debug, Default)]
pub struct NicCounts {
    /// The NIC's own counters.
    pub nic: NicCounters,
    /// Its drops, by cause; those of the port among them.
    pub drops: DropCounters,
    /// The port's.
    pub port: PortCounters,
    /// The interface behind it, if there is one.
    pub link: Option<Link>,
    /// Descriptors that it dealt with.
    pub served: u64,
}

impl NicCounts {
    /// Frames that came in, those that the port could not read among them.
    pub fn arrived(&self) -> u64 {
        let unreadable = self.port.unreadable.iter().map(|(_, count)| count);
        self.nic.frames + unreadable.sum::<u64>()
    }
}

/// What the device counted.
#[derive(Clone, Debug, Default)]
pub struct DeviceCounts {
    /// By port.
    pub nics: Vec<NicCounts>,
    /// By worker, where they are processes: descriptors since it began that meant nothing.
    pub nonsense: Vec<u64>,
}
