//! A NIC of rings with its way to the host, and the register writes on their way to it.

use std::any::Any;
use std::collections::VecDeque;

use nicforge_interfaces::emulated::{CoreDma, NicHalf};
use nicforge_interfaces::kernel::Frame;
use nicforge_nic::Nic;
use nicforge_nic::transmit::{Bridged, Internal};
use nicforge_platform::Sim;
use nicforge_platform::sim::{DmaPort, Host, Lent, MmioWrite, SimCpu, SimDma};
use nicforge_units::Time;
use nicforge_wire::link::Link;
use nicforge_wire::traffic::Arrival;

use super::device::{Count, Device, Tally, WayOut};

/// It acts when a register write or a frame of its link arrives, and when its own work is due.
pub struct RingDevice {
    /// The NIC.
    pub nic: Nic<SimDma>,
    /// Its way to the host.
    pub port: Lent<DmaPort>,
    /// The link that ends here, if another host is at its other end.
    incoming: Option<Link<Frame>>,
    /// Register writes on their way, by arrival; those of one instant in the order of posting.
    writes: VecDeque<Posted>,
    due: Time,
    /// Whether anything happened here since the last look at what that means for others.
    touched: bool,
    /// Frames that left for another host, each with the time when its last bit did.
    sent: VecDeque<(Time, Frame)>,
}

/// A register write on its way. It is copied from a [`MmioWrite`] that was stored field by field a moment ago: so
/// that the compiler does not load two of those as one, which would wait for all stores before them, they do not lie
/// side by side here.
#[derive(Clone, Copy)]
#[repr(C)]
struct Posted {
    value: u64,
    index: u32,
    arrives: Time,
}

impl RingDevice {
    /// An idle NIC that generators send frames to.
    pub fn new(nic: Nic<SimDma>, port: Lent<DmaPort>) -> RingDevice {
        RingDevice {
            nic,
            port,
            incoming: None,
            writes: VecDeque::new(),
            due: Time::NEVER,
            touched: false,
            sent: VecDeque::new(),
        }
    }

    /// The same NIC with `incoming` ending at it.
    pub fn at_link(self, incoming: Link<Frame>) -> RingDevice {
        RingDevice { incoming: Some(incoming), ..self }
    }

    /// The NIC that cores play behind this one, where they play all of one.
    pub fn whole(&self) -> Option<&Nic<CoreDma<SimCpu>>> {
        let half: &dyn Any = &*self.nic.receive;
        half.downcast_ref::<NicHalf<Sim>>()?.whole().map(|whole| &whole.nic)
    }

    /// A core that plays a NIC gives frames to this one.
    pub fn take_from_core(&mut self, frames: impl Iterator<Item = Bridged>) {
        for frame in frames {
            self.touched = true;
            self.bridge(frame);
        }
    }

    /// Counters of stages by name, also of those that cores play.
    pub fn stage_counters(&self) -> Vec<(&'static str, u64)> {
        let played = self.whole().map(|nic| nic.stages.counters());
        self.nic.stages.counters().into_iter().chain(played.into_iter().flatten()).collect()
    }

    /// Takes the frames of the link that have arrived by `now`.
    fn take_frames(&mut self, host: &mut Lent<Host>, now: Time) {
        while let Some(link) = self.incoming.as_mut().filter(|link| link.due() <= now) {
            let at = link.due();
            let Some(frame) = link.take() else {
                return;
            };
            self.receive(host, &Arrival { time: at, bytes: frame.bytes(), head: frame.len(), flow: None }, now);
        }
    }

    /// Register writes that have arrived by `now` take effect.
    fn take_writes(&mut self, host: &mut Lent<Host>, now: Time) {
        let mut dma = SimDma::on(host, &mut self.port, now);
        while let Some(&write) = self.writes.front()
            && write.arrives <= now
        {
            self.writes.pop_front();
            self.nic.write_register(&mut dma, write.index, write.value);
        }
    }

    /// Another device's stage sends a frame out of this one's port.
    pub fn bridge(&mut self, frame: Bridged) {
        let Bridged { port, bytes, stamp, ready } = frame;
        self.nic.transmit.push_internal(Internal { port, behind: 0, ready, stamp, bytes });
        self.due = self.due.min(self.nic.due());
    }
}

impl Device for RingDevice {
    fn due(&self) -> Time {
        let own = match self.writes.front() {
            Some(write) => write.arrives.min(self.due),
            None => self.due,
        };
        self.incoming.as_ref().map_or(own, |link| link.due().min(own))
    }

    fn step(&mut self, host: &mut Lent<Host>, out: &mut WayOut<'_>, now: Time) {
        self.touched = true;
        self.take_frames(host, now);
        let mut dma = SimDma::on(host, &mut self.port, now);
        while let Some(&write) = self.writes.front()
            && write.arrives <= now
        {
            self.writes.pop_front();
            self.nic.write_register(&mut dma, write.index, write.value);
        }
        // One thing after the other, as long as there is something to do at this time.
        loop {
            self.due = self.nic.advance(&mut dma, out);
            // The receive path has a cursor of its own.
            dma.restart(now);
            self.nic.receive_held(&mut dma);
            self.due = self.due.min(self.nic.due());
            if self.due > now {
                break;
            }
            dma.restart(now);
        }
        drop(dma);
        self.sent.append(&mut out.sent);
    }

    fn post(&mut self, write: &MmioWrite) {
        self.touched = true;
        self.writes.push_back(Posted { value: write.value, index: write.register.index, arrives: write.arrives });
        // Cores post in nearly the order of arrival.
        let mut place = self.writes.len() - 1;
        while place > 0 && self.writes[place - 1].arrives > write.arrives {
            self.writes.swap(place - 1, place);
            place -= 1;
        }
    }

    fn receive(&mut self, host: &mut Lent<Host>, frame: &Arrival<'_>, last_bit: Time) {
        let mut dma = SimDma::on(host, &mut self.port, last_bit);
        self.nic.receive_padded(&mut dma, frame.bytes, frame.head, frame.time);
        drop(dma);
        self.due = self.due.min(self.nic.due());
    }

    fn send_here(&mut self, time: Time, frame: Frame) -> Option<Frame> {
        if let Some(link) = &mut self.incoming {
            link.send(time, frame);
        }
        None
    }

    fn take_sent(&mut self) -> Option<(Time, Frame)> {
        self.sent.pop_front()
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

    fn catch_up_to(&mut self, host: &mut Lent<Host>, at: Time) -> Time {
        self.take_writes(host, at);
        at
    }

    /// All ones where there is no such register.
    fn answer(&mut self, host: &mut Lent<Host>, index: u32, at: Time) -> (u64, Time) {
        let mut dma = SimDma::on(host, &mut self.port, at);
        let read = self.nic.read_register(&mut dma, index);
        drop(dma);
        self.due = self.due.min(self.nic.due());
        self.touched = true;
        read.unwrap_or((u64::MAX, at))
    }

    fn tally(&mut self) -> Tally {
        let (received, out) = (&self.nic.counters, self.nic.transmit.counters());
        Tally {
            arrived: Count { frames: received.frames, bytes: received.bytes },
            sent: Count { frames: out.frames, bytes: out.bytes },
            received_inside: self.nic.held(),
            drops: self.nic.drops(),
            errors: out.refused.clone(),
        }
    }

    fn lost_on_link(&self) -> u64 {
        self.incoming.as_ref().map_or(0, |link| link.counters().lost)
    }

    fn bring_up(&mut self, host: &mut Lent<Host>) {
        if let Some(last) = self.writes.back() {
            let time = last.arrives;
            self.take_writes(host, time);
        }
    }

    fn take_all(&mut self, host: &mut Lent<Host>) -> Time {
        let mut reached = Time::ZERO;
        while let Some(due) = self.incoming.as_ref().map(Link::due).filter(|due| *due < Time::NEVER) {
            self.take_frames(host, due);
            reached = due;
        }
        reached
    }

    fn describe(&self) -> Option<String> {
        Some(format!(
            "NIC {}: next step {}, {} register writes on their way, {} frames to transmit",
            self.nic.port().0,
            self.due(),
            self.writes.len(),
            self.nic.transmit.inside()
        ))
    }

    fn rings(&self) -> Option<&RingDevice> {
        Some(self)
    }

    fn rings_mut(&mut self) -> Option<&mut RingDevice> {
        Some(self)
    }
}
