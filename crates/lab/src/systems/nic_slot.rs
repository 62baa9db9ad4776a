//! A NIC with its way to the host and the link that ends at it.

use std::collections::VecDeque;

use nicforge_interfaces::kernel::{AnyKernelNic, Frame, KernelNic};
use nicforge_nic::DropCounters;
use nicforge_platform::Register;
use nicforge_platform::sim::{Devices, DmaPort, Host, LinkConfig, MmioWrite, SimDma};
use nicforge_units::Time;
use nicforge_wire::link::Link;

/// One NIC of a system.
pub struct NicSlot {
    /// The NIC.
    pub nic: AnyKernelNic,
    /// Its way to memory.
    pub dma: DmaPort,
    /// The link that ends here.
    pub incoming: Link<Frame>,
    /// Register writes on their way, in the order of their arrival.
    writes: VecDeque<MmioWrite>,
    /// The arrival of the first of them.
    first_write: Time,
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
    /// Whether anything happened here since the last look at what that means for others.
    touched: bool,
}

impl NicSlot {
    /// NIC `number` behind `link`, with `incoming` ending at it.
    pub fn new(nic: AnyKernelNic, link: &LinkConfig, number: usize, incoming: Link<Frame>) -> NicSlot {
        let due = nic.due().min(incoming.due());
        NicSlot {
            nic,
            dma: DmaPort::new(link, number),
            incoming,
            writes: VecDeque::new(),
            first_write: Time::NEVER,
            drops: DropCounters::default(),
            arrived: (0, 0),
            reached: Time::ZERO,
            due,
            touched: true,
        }
    }

    /// Whether frames may have been sent, or [`due`](Self::due) may have changed, since the last call
    /// of [`take_touched`](Self::take_touched).
    pub fn is_touched(&self) -> bool {
        self.touched
    }

    /// The same, which is known from then on.
    pub fn take_touched(&mut self) -> bool {
        std::mem::take(&mut self.touched)
    }

    /// When something happens here next.
    pub fn due(&self) -> Time {
        self.due
    }

    /// Things have happened up to `reached`: when is the next?
    fn settle(&mut self) {
        let first = self.first_write.min(self.incoming.due());
        let first = first.min(self.nic.due());
        self.due = first.max(self.reached);
        self.touched = true;
    }

    /// Something new happens here at `time`.
    fn expect(&mut self, time: Time) {
        self.due = self.due.min(time.max(self.reached));
        self.touched = true;
    }

    /// Does everything that is due when the first thing is.
    pub fn step_all(&mut self, host: &mut Host) {
        let now = self.due;
        while self.due == now {
            self.step(host);
        }
    }

    /// Does the one thing that is due first.
    fn step(&mut self, host: &mut Host) {
        let now = self.due;
        self.reached = now;
        let dma = &mut SimDma::new(host, &mut self.dma, now);
        if self.first_write <= now
            && let Some(write) = self.writes.pop_front()
        {
            let next = self.writes.front();
            self.first_write = next.map_or(Time::NEVER, |next| next.arrives);
            let register = write.register.index;
            self.nic.write_register(dma, register, write.value);
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
    pub fn send_here(&mut self, time: Time, frame: Frame) -> Option<Frame> {
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

    /// All that is on its way here arrives: nobody sends more. Returns when that is.
    pub fn take_all(&mut self, host: &mut Host) -> Time {
        while self.first_write.min(self.incoming.due()) < Time::NEVER {
            self.step(host);
        }
        self.reached
    }

    /// Brings the NIC up to `time`.
    fn catch_up(&mut self, host: &mut Host, time: Time) {
        while self.due() <= time {
            self.step(host);
        }
    }

    /// A core's register write is on its way. One core's writes come in order; another core's may
    /// be overtaken.
    pub fn post(&mut self, write: MmioWrite) {
        let before = self.writes.iter().rev();
        let later = before.take_while(|other| other.arrives > write.arrives);
        match later.count() {
            0 => self.writes.push_back(write),
            later => self.writes.insert(self.writes.len() - later, write),
        }
        self.first_write = self.first_write.min(write.arrives);
        self.expect(write.arrives);
    }
}

/// What goes on in other systems while a core waits for its NIC.
pub trait Elsewhere {
    /// Does the first thing that is due there before `before`, where frames that `slots` have sent
    /// arrive and from where frames come to them. Returns whether there was one.
    fn step(&mut self, slots: &mut [NicSlot], before: Time) -> bool;
}

/// There are no other systems, or none that may run.
pub struct Nobody;

impl Elsewhere for Nobody {
    fn step(&mut self, _slots: &mut [NicSlot], _before: Time) -> bool {
        false
    }
}

/// The NICs of one system, as its cores reach them.
pub struct NicSlots<'a> {
    /// The NICs.
    pub slots: &'a mut [NicSlot],
    /// The other systems.
    pub elsewhere: &'a mut dyn Elsewhere,
}

impl Devices for NicSlots<'_> {
    fn write(&mut self, _host: &mut Host, write: &MmioWrite) {
        if let Some(slot) = self.slots.get_mut(usize::from(write.register.device)) {
            slot.post(*write);
        }
    }

    fn read(&mut self, host: &mut Host, register: Register, at: Time) -> (u64, Time) {
        // Nothing answers for a device that is not there: all ones, as on a PCI bus.
        let device = usize::from(register.device);
        let Some(slot) = self.slots.get_mut(device) else {
            return (u64::MAX, at);
        };
        // Another core may have been ahead; the writes that come before this read have to be there.
        let at = at.max(slot.reached);
        slot.catch_up(host, at);
        slot.reached = at;
        let Some(most) = slot.nic.blocks(register.index) else {
            let mut dma = SimDma::new(host, &mut slot.dma, at);
            let answer = slot.nic.read_register(&mut dma, register.index);
            slot.settle();
            return answer;
        };
        // What comes in meanwhile may be what is waited for, and may not have been sent yet.
        let limit = at + most;
        while self.slots[device].nic.blocks(register.index).is_some() {
            let next = self.slots[device].due();
            if self.elsewhere.step(self.slots, next.min(limit)) {
                continue;
            }
            if next > limit {
                break;
            }
            self.slots[device].step(host);
        }
        let slot = &mut self.slots[device];
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
    use nicforge_wire::link::LinkPlan;

    use super::*;
    use crate::systems::attachment::Attachment;
    use crate::systems::system::kernel_plan;

    /// A SINIC that receives, whose link delays frames by `DELAY`.
    struct Bench {
        host: Host,
        slots: [NicSlot; 1],
        timeout: Time,
        /// A receive copy of 1000 bytes, and where it goes.
        data: u64,
        to: Addr,
    }

    const DELAY: Time = Time::from_us(2);

    impl Bench {
        fn new() -> Bench {
            let text = include_str!("../../../../machines/m5-10gbe.toml");
            let path = std::path::Path::new("machines/m5-10gbe.toml");
            let machine = crate::machine::parse_machine(text, path).unwrap();
            let machine = machine.integrated.as_ref().unwrap();
            let placement = machine.placement("OCC").unwrap();
            let attachment = Attachment::new(machine, placement, machine.frequency, machine.l2.size);
            let hardware = attachment.hardware;
            let mut space = AddressSpace::default();
            let to = space.data(4096, 64);
            let plan = kernel_plan(0, 1, &machine.nic, &machine.sinic, machine.driver);
            let (mut nic, _) = registry::build("sinic", &plan, &mut space).unwrap();
            nic.set_memory_end(Addr(space.end()));
            let wire = Link::new(&LinkPlan { delay: DELAY, ..LinkPlan::default() }, 1);
            let mut bench = Bench {
                host: Host::new(&hardware, &space),
                slots: [NicSlot::new(nic, &hardware.pcie, 0, wire)],
                timeout: machine.sinic.wait_timeout,
                data: rx_data::ADDR.of(to.0) | rx_data::LEN.of(1000),
                to,
            };
            bench.post(Tag::Config, config::RX_EN.mask(), Time::ZERO);
            bench.post(Tag::RxData, bench.data, Time::ZERO);
            bench
        }

        fn post(&mut self, tag: Tag, value: u64, arrives: Time) {
            self.slots[0].post(MmioWrite { arrives, register: tag.of(0, 0), value });
        }

        /// Reads RxWait at `at`; returns whether it is complete, and when.
        fn wait(&mut self, elsewhere: &mut dyn Elsewhere, at: Time) -> (bool, Time) {
            let slots = &mut self.slots;
            let mut nics = NicSlots { slots, elsewhere };
            let (value, given) = nics.read(&mut self.host, Tag::RxWait.of(0, 0), at);
            (rx_done::COMPLETE.is_set(value), given)
        }
    }

    #[test]
    fn a_blocked_register_answers_when_what_is_on_the_wire_comes_in() {
        let mut bench = Bench::new();
        bench.slots[0].send_here(Time::ZERO, vec![7; 200].into());
        let (complete, given) = bench.wait(&mut Nobody, Time::from_us(1));
        assert!(complete && given > DELAY, "{given}");
        assert!(given < DELAY + Time::from_us(1), "{given}");
        assert_eq!(bench.host.memory.slice(bench.to, 200), [7; 200]);
        // Nothing more comes.
        bench.post(Tag::RxData, bench.data, given);
        let late = bench.wait(&mut Nobody, given);
        assert_eq!(late, (false, given + bench.timeout));
    }

    #[test]
    fn a_blocked_register_answers_when_what_was_not_sent_before_comes_in() {
        let mut bench = Bench::new();
        // It is sent within the first time-out, and arrives in the second.
        let sends = Time::from_us(1) + bench.timeout - Time::from_us(1);
        let mut peer = Peer { sends: Some(sends) };
        let (complete, at) = bench.wait(&mut peer, Time::from_us(1));
        assert!(!complete && peer.sends.is_none());
        assert_eq!(at, Time::from_us(1) + bench.timeout);
        let (complete, given) = bench.wait(&mut Nobody, at);
        assert!(complete && given > sends + DELAY, "{given}");
        assert!(given < sends + DELAY + Time::from_ns(500), "{given}");
        assert_eq!(bench.host.memory.slice(bench.to, 100), [9; 100]);
        // The next is sent and arrives within one.
        bench.post(Tag::RxData, bench.data, given);
        let sends = given + Time::from_us(1);
        let mut peer = Peer { sends: Some(sends) };
        let (complete, given) = bench.wait(&mut peer, given);
        assert!(complete && given > sends + DELAY, "{given}");
        assert!(given < sends + DELAY + Time::from_ns(500), "{given}");
    }

    /// A system that sends one frame, when its time has come.
    struct Peer {
        sends: Option<Time>,
    }

    impl Elsewhere for Peer {
        fn step(&mut self, slots: &mut [NicSlot], before: Time) -> bool {
            let sends = self.sends.take_if(|sends| *sends < before);
            if let Some(time) = sends {
                slots[0].send_here(time, vec![9; 100].into());
            }
            sends.is_some()
        }
    }
}
