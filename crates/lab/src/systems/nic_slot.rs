//! A NIC with its way to the host and the link that ends at it.

use std::collections::VecDeque;

use nicforge_interfaces::kernel::{AnyKernelNic, KernelNic};
use nicforge_nic::DropCounters;
use nicforge_platform::Register;
use nicforge_platform::sim::{Devices, DmaPort, Host, LinkConfig, MmioWrite, SimDma};
use nicforge_units::Time;

use super::wire::Wire;

/// One NIC of a system.
pub struct NicSlot {
    /// The NIC.
    pub nic: AnyKernelNic,
    /// Its way to memory.
    pub dma: DmaPort,
    /// The link that ends here.
    pub incoming: Wire,
    /// Register writes on their way, in the order of their arrival.
    writes: VecDeque<MmioWrite>,
    /// Frames that it could not take, by cause.
    pub drops: DropCounters,
    /// Frames and bytes that came in.
    pub arrived: (u64, u64),
    /// The time up to which things have happened here. What became possible since may have been
    /// due before, but begins now.
    reached: Time,
}

impl NicSlot {
    /// NIC `number` behind `link`, with `incoming` ending at it.
    pub fn new(nic: AnyKernelNic, link: &LinkConfig, number: usize, incoming: Wire) -> NicSlot {
        NicSlot {
            nic,
            dma: DmaPort::new(link, number),
            incoming,
            writes: VecDeque::new(),
            drops: DropCounters::default(),
            arrived: (0, 0),
            reached: Time::ZERO,
        }
    }

    /// When something happens here next.
    pub fn due(&self) -> Time {
        let write = self
            .writes
            .front()
            .map_or(Time::NEVER, |write| write.arrives);
        let first = write.min(self.incoming.due()).min(self.nic.due());
        first.max(self.reached)
    }

    /// Does the one thing that is due first.
    pub fn step(&mut self, host: &mut Host) {
        let now = self.due();
        self.reached = now;
        let dma = &mut SimDma::new(host, &mut self.dma, now);
        let arrived = self
            .writes
            .front()
            .is_some_and(|write| write.arrives <= now);
        if arrived && let Some(write) = self.writes.pop_front() {
            self.nic
                .write_register(dma, write.register.index, write.value);
        } else if self.incoming.due() <= now {
            if let Some(frame) = self.incoming.take() {
                self.arrived.0 += 1;
                self.arrived.1 += frame.len() as u64;
                if let Err(cause) = self.nic.receive(dma, &frame) {
                    self.drops.count(cause.0);
                }
                self.nic.port().recycle(frame);
            }
        } else {
            self.nic.advance(dma);
        }
    }

    /// All register writes so far arrive: the run begins with a NIC that its driver has brought up.
    pub fn bring_up(&mut self, host: &mut Host) {
        if let Some(last) = self.writes.back() {
            let time = last.arrives;
            self.catch_up(host, time);
        }
    }

    /// Brings the NIC up to `time`.
    fn catch_up(&mut self, host: &mut Host, time: Time) {
        while self.due() <= time {
            self.step(host);
        }
    }

    /// A core's register write is on its way. One core's writes come in order.
    pub fn post(&mut self, write: MmioWrite) {
        self.writes.push_back(write);
    }
}

/// The NICs of one system, as its core reaches them.
pub struct NicSlots<'a>(pub &'a mut [NicSlot]);

impl Devices for NicSlots<'_> {
    fn write(&mut self, _host: &mut Host, write: &MmioWrite) {
        if let Some(slot) = self.0.get_mut(usize::from(write.register.device)) {
            slot.post(*write);
        }
    }

    fn read(&mut self, host: &mut Host, register: Register, at: Time) -> (u64, Time) {
        // Nothing answers for a device that is not there: all ones, as on a PCI bus.
        let Some(slot) = self.0.get_mut(usize::from(register.device)) else {
            return (u64::MAX, at);
        };
        slot.catch_up(host, at);
        slot.reached = slot.reached.max(at);
        let mut dma = SimDma::new(host, &mut slot.dma, at);
        slot.nic.read_register(&mut dma, register.index)
    }
}
