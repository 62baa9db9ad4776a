//! Sums that a host with a NIC of rings keeps to the end of a run: no frame and no buffer is lost.

use nicforge_nic::{Nic, Pool};
use nicforge_platform::Dma;
use nicforge_platform::sim::SimCpu;

use super::host::Host;
use super::ring_device::RingDevice;
use crate::LostError;

/// Frames of a NIC.
#[derive(Clone, Copy, Debug)]
struct Frames {
    /// From the wire, from rings, and of the NIC's own.
    arrived: u64,
    /// To the host, to the wire, and kept by stages.
    left: u64,
    dropped: u64,
    inside: u64,
}

impl Frames {
    fn of<D: Dma>(nic: &Nic<D>) -> Frames {
        let out = nic.transmit.counters();
        Frames {
            arrived: nic.counters.frames + nic.transmit.served() + nic.stages.injected(),
            left: nic.counters.delivered + out.frames + nic.stages.consumed(),
            dropped: nic.drops().total() + out.refused.total(),
            inside: nic.held() + nic.transmit.internal_inside() + nic.stages.inward(),
        }
    }

    /// Those of a device, with the NIC that a core plays behind it.
    fn of_device(device: &RingDevice) -> Frames {
        let own = Frames::of(&device.nic);
        let Some(whole) = device.whole() else { return own };
        let played = Frames::of(whole);
        // Both count what one gives to the other: frames in and out.
        let (given, taken) = (device.nic.counters.delivered, whole.counters.frames);
        Frames {
            arrived: own.arrived + played.arrived - taken,
            left: own.left + played.left - given - whole.transmit.counters().frames,
            dropped: own.dropped + played.dropped,
            inside: own.inside + played.inside + given - taken,
        }
    }
}

impl Host {
    /// Whether all frames of its first NIC are somewhere, and all buffers of its `pool`.
    ///
    /// # Errors
    /// [`LostError`].
    pub fn check_sums(&mut self, pool: &Pool) -> Result<(), LostError> {
        if let Some(device) = self.rings().next() {
            let Frames { arrived, left, dropped, inside } = Frames::of_device(device);
            if arrived != left + dropped + inside {
                return Err(LostError::Frames { arrived, left, dropped, inside });
            }
        }
        let in_programs: i64 = self.accounts().map(|account| account.buffers).sum();
        let mut cpu = SimCpu::on(&mut self.machine, &mut self.cores[0].sim);
        let held = pool.available(&mut *cpu).wrapping_add_signed(in_programs);
        drop(cpu);
        let buffers = pool.count() as u64;
        if held == buffers { Ok(()) } else { Err(LostError::Buffers { buffers, held }) }
    }
}
