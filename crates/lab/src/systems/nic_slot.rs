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
    /// When something happens here next: kept, because it is asked for far more often than it
    /// changes.
    due: Time,
}

impl NicSlot {
    /// NIC `number` behind `link`, with `incoming` ending at it.
    pub fn new(nic: AnyKernelNic, link: &LinkConfig, number: usize, incoming: Wire) -> NicSlot {
        let due = nic.due().min(incoming.due());
        NicSlot {
            nic,
            dma: DmaPort::new(link, number),
            incoming,
            writes: VecDeque::new(),
            drops: DropCounters::default(),
            arrived: (0, 0),
            reached: Time::ZERO,
            due,
        }
    }

    /// When something happens here next.
    pub fn due(&self) -> Time {
        self.due
    }

    /// Things have happened up to `reached`: when is the next?
    fn settle(&mut self) {
        let write = self
            .writes
            .front()
            .map_or(Time::NEVER, |write| write.arrives);
        let first = write.min(self.incoming.due()).min(self.nic.due());
        self.due = first.max(self.reached);
    }

    /// Something new happens here at `time`.
    fn expect(&mut self, time: Time) {
        self.due = self.due.min(time.max(self.reached));
    }

    /// Does the one thing that is due first.
    pub fn step(&mut self, host: &mut Host) {
        let now = self.due;
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
            if let Some(mut frame) = self.incoming.take() {
                self.arrived.0 += 1;
                self.arrived.1 += frame.len() as u64;
                if let Err(cause) = self.nic.receive(dma, &mut frame) {
                    self.drops.count(cause.0);
                }
                self.incoming.give_back(frame);
            }
        } else {
            self.nic.advance(dma);
        }
        self.settle();
    }

    /// The peer sends a frame, whose last bit leaves it at `time`. Gives back a buffer that it may
    /// use again, if there is one.
    pub fn send_here(&mut self, time: Time, frame: Vec<u8>) -> Option<Vec<u8>> {
        self.incoming.send(time, frame);
        self.expect(self.incoming.due());
        self.incoming.take_back()
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
        self.expect(write.arrives);
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
        let Some(most) = slot.nic.blocks(register.index) else {
            let mut dma = SimDma::new(host, &mut slot.dma, at);
            let answer = slot.nic.read_register(&mut dma, register.index);
            slot.settle();
            return answer;
        };
        // What comes in meanwhile may be what is waited for.
        let limit = at + most;
        while slot.nic.blocks(register.index).is_some() && slot.due() <= limit {
            slot.step(host);
        }
        let mut dma = SimDma::new(host, &mut slot.dma, slot.reached);
        let (value, given) = slot.nic.read_register(&mut dma, register.index);
        slot.settle();
        (value, given.min(limit))
    }
}

#[cfg(test)]
mod tests {
    use nicforge_interfaces::kernel::registry;
    use nicforge_interfaces::sinic::registers::{Tag, config, rx_data, rx_done};
    use nicforge_platform::{Addr, AddressSpace};

    use super::*;
    use crate::systems::attachment::Attachment;
    use crate::systems::system::kernel_plan;
    use crate::systems::wire::WirePlan;

    /// A packet that is on the wire ends a read of RxWait; nothing but the time-out ends another.
    #[test]
    fn a_blocked_register_answers_when_what_is_waited_for_comes_in() {
        let text = include_str!("../../../../machines/m5-10gbe.toml");
        let path = std::path::Path::new("machines/m5-10gbe.toml");
        let machine = crate::machine::parse_machine(text, path).unwrap();
        let machine = machine.integrated.as_ref().unwrap();
        let placement = machine.placement("OCC").unwrap();
        let hardware =
            Attachment::new(machine, placement, machine.frequency, machine.l2.size).hardware;
        let mut space = AddressSpace::default();
        let to = space.data(4096, 64);
        let plan = kernel_plan(0, &machine.nic, &machine.sinic, machine.driver);
        let (mut nic, _) = registry::build("sinic", &plan, &mut space).unwrap();
        nic.set_memory_end(Addr(space.end()));
        let delay = Time::from_us(2);
        let plan = WirePlan {
            delay,
            loss: 0.0,
            duplicates: 0.0,
            reordered: 0.0,
            reordered_by: Time::ZERO,
        };
        let mut host = Host::new(&hardware, &space);
        let slot = NicSlot::new(nic, &hardware.pcie, 0, Wire::new(&plan, 1));
        let mut slots = [slot];
        let post = |slots: &mut [NicSlot], tag: Tag, value| {
            slots[0].post(MmioWrite {
                arrives: Time::ZERO,
                register: tag.of(0, 0),
                value,
            });
        };
        post(&mut slots, Tag::Config, config::RX_EN.mask());
        let data = rx_data::ADDR.of(to.0) | rx_data::LEN.of(1000);
        post(&mut slots, Tag::RxData, data);
        slots[0].send_here(Time::ZERO, vec![7; 200]);
        let at = Time::from_us(1);
        let wait = Tag::RxWait.of(0, 0);
        let (value, given) = NicSlots(&mut slots).read(&mut host, wait, at);
        assert!(rx_done::COMPLETE.is_set(value));
        assert!(given > delay && given < delay + Time::from_us(1), "{given}");
        assert_eq!(host.memory.slice(to, 200), [7; 200]);
        slots[0].post(MmioWrite {
            arrives: given,
            register: Tag::RxData.of(0, 0),
            value: data,
        });
        let (value, late) = NicSlots(&mut slots).read(&mut host, wait, given);
        assert!(!rx_done::COMPLETE.is_set(value));
        assert_eq!(late, given + machine.sinic.wait_timeout);
    }
}
