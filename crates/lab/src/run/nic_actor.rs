//! One NIC with its link, and the register writes on their way to it.

use std::collections::VecDeque;

use nicforge_interfaces::emulated;
use nicforge_nic::Nic;
use nicforge_platform::Sim;
use nicforge_platform::sim::{DmaPort, Host, Lent, MmioWrite, SimDma};
use nicforge_units::Time;
use nicforge_wire::traffic::Arrival;

use super::sink::Sink;

/// A NIC as an actor: it acts when a register write arrives or when its own work is due.
pub struct NicActor {
    /// The device.
    pub nic: Nic<SimDma>,
    /// Its link.
    pub port: Lent<DmaPort>,
    /// Register writes on their way, by arrival; those of one instant in the order of posting.
    mailbox: VecDeque<Posted>,
    due: Time,
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

impl NicActor {
    /// An idle NIC.
    pub fn new(nic: Nic<SimDma>, port: Lent<DmaPort>) -> NicActor {
        NicActor { nic, port, mailbox: VecDeque::new(), due: Time::NEVER }
    }

    /// A core's register write is on its way.
    pub fn post(&mut self, write: &MmioWrite) {
        self.mailbox.push_back(Posted { value: write.value, index: write.register.index, arrives: write.arrives });
        // Cores post in nearly the order of arrival.
        let mut place = self.mailbox.len() - 1;
        while place > 0 && self.mailbox[place - 1].arrives > write.arrives {
            self.mailbox.swap(place - 1, place);
            place -= 1;
        }
    }

    /// When it acts next.
    pub fn next_step(&self) -> Time {
        match self.mailbox.front() {
            Some(write) => write.arrives.min(self.due),
            None => self.due,
        }
    }

    /// Acts at `now`.
    pub fn step(&mut self, host: &mut Lent<Host>, sink: &mut Sink, now: Time) {
        let mut dma = SimDma::on(host, &mut self.port, now);
        while let Some(&write) = self.mailbox.front()
            && write.arrives <= now
        {
            self.mailbox.pop_front();
            self.nic.write_register(&mut dma, write.index, write.value);
        }
        // One thing after the other, as long as there is something to do at this time.
        loop {
            self.due = self.nic.advance(&mut dma, sink);
            // The receive path has a cursor of its own.
            dma.restart(now);
            let turned = self.nic.transmit.internal_inside();
            self.nic.receive_held(&mut dma);
            self.due = self.due.min(self.nic.held_due());
            if turned == 0 {
                self.due = self.due.min(self.nic.transmit.internal_due());
            }
            if self.due > now {
                break;
            }
            dma.restart(now);
        }
    }

    /// Whether doorbells of a NIC that a core plays here wait for that core.
    pub fn rang(&mut self) -> bool {
        self.played().is_some_and(|half| half.rang())
    }

    /// The NIC that a core plays here, if one does.
    pub fn played(&mut self) -> Option<&mut emulated::NicHalf<Sim>> {
        emulated::played::<Sim>(&mut *self.nic.receive)
    }

    /// Frames may have been turned round; there were `before` of them, of which `due` knows.
    fn see_turned(&mut self, before: u64) {
        if before == 0 {
            self.due = self.due.min(self.nic.transmit.internal_due());
        }
    }

    /// A frame came in, its last bit at `now`.
    pub fn receive(&mut self, host: &mut Lent<Host>, frame: &Arrival<'_>, now: Time) {
        let mut dma = SimDma::on(host, &mut self.port, now);
        let turned = self.nic.transmit.internal_inside();
        self.nic.receive_padded(&mut dma, frame.bytes, frame.head, frame.time);
        drop(dma);
        self.due = self.due.min(self.nic.receive.due()).min(self.nic.held_due());
        self.see_turned(turned);
    }

    /// What it waits for, for a run that is stuck.
    pub fn describe(&self) -> String {
        format!(
            "NIC {}: next step {}, {} register writes on their way, {} frames to transmit",
            self.nic.port().0,
            self.next_step(),
            self.mailbox.len(),
            self.nic.transmit.inside()
        )
    }
}
