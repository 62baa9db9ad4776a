//! A NIC of rings with its way to the host, and the register writes on their way to it.

use std::collections::VecDeque;

use nicforge_interfaces::kernel::Frame;
use nicforge_nic::Nic;
use nicforge_nic::transmit::{Bridged, Egress, Internal};
use nicforge_platform::sim::{DmaPort, Host, Lent, MmioWrite, SimDma};
use nicforge_units::Time;
use nicforge_wire::link::Link;
use nicforge_wire::traffic::Arrival;

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
    /// Whether a core read a register since the last look at what that means.
    was_read: bool,
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
        RingDevice { nic, port, incoming: None, writes: VecDeque::new(), due: Time::NEVER, was_read: false }
    }

    /// The same NIC with `incoming` ending at it.
    pub fn at_link(self, incoming: Link<Frame>) -> RingDevice {
        RingDevice { incoming: Some(incoming), ..self }
    }

    /// A core's register write is on its way.
    pub fn post(&mut self, write: &MmioWrite) {
        self.writes.push_back(Posted { value: write.value, index: write.register.index, arrives: write.arrives });
        // Cores post in nearly the order of arrival.
        let mut place = self.writes.len() - 1;
        while place > 0 && self.writes[place - 1].arrives > write.arrives {
            self.writes.swap(place - 1, place);
            place -= 1;
        }
    }

    /// When it acts next.
    pub fn due(&self) -> Time {
        let own = match self.writes.front() {
            Some(write) => write.arrives.min(self.due),
            None => self.due,
        };
        self.incoming.as_ref().map_or(own, |link| link.due().min(own))
    }

    /// A host at the other end of the link sends `frame`, whose last bit leaves it at `time`.
    pub fn send_here(&mut self, time: Time, frame: Frame) {
        if let Some(link) = &mut self.incoming {
            link.send(time, frame);
        }
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

    /// Acts at `now`.
    pub fn step(&mut self, host: &mut Lent<Host>, egress: &mut impl Egress, now: Time) {
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
            self.due = self.nic.advance(&mut dma, egress);
            // The receive path has a cursor of its own.
            dma.restart(now);
            self.nic.receive_held(&mut dma);
            self.due = self.due.min(self.nic.due());
            if self.due > now {
                break;
            }
            dma.restart(now);
        }
    }

    /// A frame came in, its last bit at `now`.
    pub fn receive(&mut self, host: &mut Lent<Host>, frame: &Arrival<'_>, now: Time) {
        let mut dma = SimDma::on(host, &mut self.port, now);
        self.nic.receive_padded(&mut dma, frame.bytes, frame.head, frame.time);
        drop(dma);
        self.due = self.due.min(self.nic.due());
    }

    /// Another device's stage sends a frame out of this one's port.
    pub fn bridge(&mut self, frame: Bridged) {
        let Bridged { port, bytes, stamp, ready } = frame;
        self.nic.transmit.push_internal(Internal { port, behind: 0, ready, stamp, bytes });
        self.due = self.due.min(self.nic.due());
    }

    /// A core reads register `index`; the read arrives at `at`. Returns the value, all ones where there is none, and when
    /// the NIC gives it.
    pub fn read_register(&mut self, host: &mut Lent<Host>, index: u32, at: Time) -> (u64, Time) {
        let mut dma = SimDma::on(host, &mut self.port, at);
        let read = self.nic.read_register(&mut dma, index);
        drop(dma);
        self.due = self.due.min(self.nic.due());
        self.was_read = true;
        read.unwrap_or((u64::MAX, at))
    }

    /// Whether a core read a register since the last call.
    pub fn take_read(&mut self) -> bool {
        std::mem::take(&mut self.was_read)
    }

    /// What it waits for, for a run that is stuck.
    pub fn describe(&self) -> String {
        format!(
            "NIC {}: next step {}, {} register writes on their way, {} frames to transmit",
            self.nic.port().0,
            self.due(),
            self.writes.len(),
            self.nic.transmit.inside()
        )
    }
}
