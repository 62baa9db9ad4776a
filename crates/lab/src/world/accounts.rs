//! What came in, left, was dropped, and is inside; and that the sum is right.

use nicforge_interfaces::emulated::CoreDma;
use nicforge_nic::stage::Chain;
use nicforge_nic::{DropCounters, Nic, Waiting};
use nicforge_platform::Dma;
use nicforge_platform::sim::SimCpu;

use super::World;
use super::host::Host;
use super::program::Account;
use super::ring_device::RingDevice;
use crate::LostError;
use crate::run::RunError;

/// Frames that a NIC's own parts have on their way out or in.
fn turned<D: Dma>(nic: &Nic<D>) -> u64 {
    nic.transmit.internal_inside() + nic.stages.inward()
}

/// Frames that stages sent, and that they kept.
fn of_chain<D: Dma>(stages: &Chain<D>) -> (u64, u64) {
    (stages.injected(), stages.consumed())
}

impl World {
    /// The first host's NICs of rings.
    pub fn rings(&self) -> impl Iterator<Item = &RingDevice> {
        self.hosts[0].rings()
    }

    /// The NICs that cores play whole.
    fn wholes(&self) -> impl Iterator<Item = &Nic<CoreDma<SimCpu>>> {
        self.rings().filter_map(RingDevice::whole)
    }

    /// Frames that came in so far.
    pub fn arrived(&self) -> u64 {
        self.rings().map(|device| device.nic.counters.frames).sum()
    }

    /// What was dropped at the first host so far, wherever that was.
    pub fn drops(&self) -> DropCounters {
        self.hosts[0].drops()
    }

    /// The same at all hosts.
    pub fn all_drops(&self) -> DropCounters {
        let each: Vec<DropCounters> = self.hosts.iter().map(Host::drops).collect();
        each.iter().collect()
    }

    /// How full receive queues were, summed over arriving frames.
    pub fn waiting_sum(&self) -> Waiting {
        self.rings().map(|device| device.nic.waiting_sum()).sum()
    }

    /// Frames that were dropped so far, whatever the cause.
    pub fn dropped(&self) -> u64 {
        self.drops().total()
    }

    /// Frames lost between devices that cores play and their drivers.
    fn lost_in_emulation(&self) -> u64 {
        let cores = self.hosts[0].cores.iter();
        cores.flat_map(|core| core.program.queue_drops()).map(DropCounters::total).sum()
    }

    /// The sum of `count` over all programs.
    pub fn sum(&self, count: impl Fn(&Account) -> u64) -> u64 {
        self.hosts[0].accounts().map(|account| count(&account)).sum()
    }

    /// Frames that cores took out of receive rings so far.
    pub fn taken(&self) -> u64 {
        self.sum(|account| account.taken)
    }

    /// Frames that ended at applications so far.
    pub fn kept(&self) -> u64 {
        self.sum(|account| account.kept)
    }

    /// Frames that wait in NICs or receive rings for a core to take them.
    pub fn backlog(&self) -> u64 {
        let delivered: u64 = self.rings().map(|device| device.nic.counters.delivered).sum();
        let held: u64 = self.rings().map(|device| device.nic.held()).sum();
        // What a NIC that cores play took it has delivered, or holds, or it is no longer underway.
        let played: u64 = self.wholes().map(|nic| nic.counters.delivered + nic.held()).sum();
        let passed: u64 = self.wholes().map(|nic| nic.counters.frames).sum();
        held + (delivered + played - passed - self.taken() - self.lost_in_emulation())
    }

    /// Frames that are somewhere between the wires, place by place.
    pub fn inside(&self) -> u64 {
        let in_programs = self.sum(|account| account.in_hand);
        let pushed = self.sum(|account| account.pushed);
        let served: u64 = self.rings().map(|device| device.nic.transmit.served()).sum();
        let served = served + self.wholes().map(|nic| nic.transmit.served()).sum::<u64>();
        let own: u64 = self.rings().map(|device| turned(&device.nic)).sum();
        let turned = own + self.wholes().map(turned).sum::<u64>();
        self.backlog() + turned + in_programs + (pushed - served)
    }

    /// Frames that stages of NICs sent on their own, and those that they kept.
    fn of_stages(&self) -> (u64, u64) {
        let of_devices = self.rings().map(|device| of_chain(&device.nic.stages));
        let all = of_devices.chain(self.wholes().map(|nic| of_chain(&nic.stages)));
        all.fold((0, 0), |(sent, kept), (more_sent, more_kept)| (sent + more_sent, kept + more_kept))
    }

    /// Arrivals + frames of stages' own = departures + drops + frames that stages and applications kept + inside, and every buffer is in exactly one place.
    ///
    /// # Errors
    /// When one of them does not hold.
    pub fn check_conservation(&self, buffers: u64, shared: u64) -> Result<(), RunError> {
        let (arrived, left) = (self.arrived(), self.outside.sink.total());
        let (dropped, inside) = (self.dropped(), self.inside());
        let (sent, of_stages) = self.of_stages();
        let kept = of_stages + self.kept();
        if arrived + sent != left + dropped + inside + kept {
            return Err(LostError::Frames { arrived: arrived + sent, left: left + kept, dropped, inside }.into());
        }
        let in_programs: i64 = self.hosts[0].accounts().map(|account| account.buffers).sum();
        let held = shared.wrapping_add_signed(in_programs);
        if held != buffers {
            return Err(LostError::Buffers { buffers, held }.into());
        }
        Ok(())
    }
}
