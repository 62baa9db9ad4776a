//! The NIC as a device of a world: the link that ends at it, register writes, and its way to memory.

use std::cell::RefCell;
use std::rc::Rc;

use nicforge_interfaces::kernel::Frame;
use nicforge_platform::sim::{DmaPort, Host as SimHost, Lent, MmioWrite};
use nicforge_units::Time;
use nicforge_wire::link::Link;
use nicforge_wire::traffic::Arrival;

use super::nic::{Event, Nic};
use crate::world::device::{Count, Device, Tally, WayOut};

/// A NIC that its host's programs share.
pub type SharedNic = Rc<RefCell<Nic>>;

/// A NIC that runs TCP, with its way to the host.
pub struct TasnicDevice {
    nic: SharedNic,
    port: Lent<DmaPort>,
    incoming: Link<Frame>,
    touched: bool,
}

impl TasnicDevice {
    /// The NIC at the end of a link.
    pub fn new(nic: SharedNic, port: Lent<DmaPort>, incoming: Link<Frame>) -> TasnicDevice {
        TasnicDevice { nic, port, incoming, touched: false }
    }

    fn take_frames(&mut self, now: Time) {
        while self.incoming.due() <= now {
            let at = self.incoming.due();
            let Some(frame) = self.incoming.take() else { return };
            self.nic.borrow_mut().arrive(&frame, at);
        }
    }
}

impl Device for TasnicDevice {
    fn due(&self) -> Time {
        self.nic.borrow().npu.due().min(self.incoming.due())
    }

    fn step(&mut self, host: &mut Lent<SimHost>, _out: &mut WayOut<'_>, now: Time) {
        self.touched = true;
        self.take_frames(now);
        self.nic.borrow_mut().run(host, &mut self.port, now);
    }

    fn post(&mut self, write: &MmioWrite) {
        self.touched = true;
        let mut nic = self.nic.borrow_mut();
        nic.npu.at(write.arrives, Event::Register(write.register.index, write.value));
    }

    fn receive(&mut self, _host: &mut Lent<SimHost>, frame: &Arrival<'_>, last_bit: Time) {
        self.nic.borrow_mut().arrive(&Frame::from(frame.bytes.to_vec()), last_bit);
    }

    fn send_here(&mut self, time: Time, frame: Frame) -> Option<Frame> {
        self.incoming.send(time, frame);
        None
    }

    fn take_sent(&mut self) -> Option<(Time, Frame)> {
        self.nic.borrow_mut().sent.pop_front()
    }

    fn is_touched(&self) -> bool {
        self.touched
    }

    fn take_touched(&mut self) -> bool {
        std::mem::take(&mut self.touched)
    }

    fn port(&mut self) -> &mut Lent<DmaPort> {
        &mut self.port
    }

    fn catch_up_to(&mut self, _host: &mut Lent<SimHost>, at: Time) -> Time {
        at
    }

    /// All ones: software reads none of its registers.
    fn answer(&mut self, _host: &mut Lent<SimHost>, _index: u32, at: Time) -> (u64, Time) {
        (u64::MAX, at)
    }

    fn tally(&mut self) -> Tally {
        let nic = self.nic.borrow();
        let count = |(frames, bytes)| Count { frames, bytes };
        Tally {
            arrived: count(nic.counters.arrived),
            sent: count(nic.counters.sent),
            received_inside: nic.inside() as u64,
            drops: nic.drops.clone(),
            ..Tally::default()
        }
    }

    fn lost_on_link(&self) -> u64 {
        self.incoming.counters().lost
    }

    fn bring_up(&mut self, _host: &mut Lent<SimHost>) {}

    fn take_all(&mut self, _host: &mut Lent<SimHost>) -> Time {
        let mut reached = Time::ZERO;
        while self.incoming.due() < Time::NEVER {
            reached = self.incoming.due();
            self.take_frames(reached);
        }
        reached
    }

    fn describe(&self) -> Option<String> {
        let nic = self.nic.borrow();
        let (due, inside) = (nic.npu.due(), nic.inside());
        Some(format!("TASNIC: next step {due}, {inside} events, operations and frames inside, {:?}", nic.counters))
    }
}
