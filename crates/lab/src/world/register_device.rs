//! A NIC that software reads registers of, with its way to the host and the link that ends at it.

use std::collections::VecDeque;

use nicforge_interfaces::kernel::{Frame, KernelNic};
use nicforge_nic::DropCounters;
use nicforge_platform::sim::{DmaPort, Host, Lent, LinkConfig, MmioWrite, SimDma};
use nicforge_units::Time;
use nicforge_wire::link::Link;
use nicforge_wire::traffic::Arrival;

use super::device::{Count, Device, Tally, WayOut};

/// It acts when a register write or a frame of its link arrives, and when its own work is due.
pub struct RegisterDevice {
    /// The NIC.
    pub nic: Box<dyn KernelNic<SimDma>>,
    /// Its way to memory.
    pub dma: Lent<DmaPort>,
    /// The link that ends here.
    pub incoming: Link<Frame>,
    /// Register writes on their way, in the order of their arrival.
    writes: VecDeque<MmioWrite>,
    /// The arrival of the first of them.
    first_write: Time,
    /// Frames that it could not take, by cause.
    pub drops: DropCounters,
    /// Frames and bytes that came in.
    pub arrived: Count,
    /// The time up to which things have happened here. What became possible since may have been
    /// due before, but begins now.
    reached: Time,
    /// When something happens here next: kept, because it is asked for far more often than it
    /// changes.
    due: Time,
    /// Whether anything happened here since the last look at what that means for others.
    touched: bool,
}

impl RegisterDevice {
    /// NIC `number` behind `link`, with `incoming` ending at it.
    pub fn new(
        nic: Box<dyn KernelNic<SimDma>>,
        link: &LinkConfig,
        number: usize,
        incoming: Link<Frame>,
    ) -> RegisterDevice {
        let due = nic.due().min(incoming.due());
        RegisterDevice {
            nic,
            dma: Lent::new(DmaPort::new(link, number)),
            incoming,
            writes: VecDeque::new(),
            first_write: Time::NEVER,
            drops: DropCounters::default(),
            arrived: Count::default(),
            reached: Time::ZERO,
            due,
            touched: true,
        }
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

    /// Brings the NIC up to `time`.
    fn catch_up(&mut self, host: &mut Lent<Host>, time: Time) {
        while self.due <= time {
            self.step_first(host);
        }
    }
}

impl Device for RegisterDevice {
    fn due(&self) -> Time {
        self.due
    }

    /// Does everything that is due when the first thing is.
    fn step(&mut self, host: &mut Lent<Host>, _out: &mut WayOut<'_>, _now: Time) {
        let now = self.due;
        while self.due == now {
            self.step_first(host);
        }
    }

    fn receive(&mut self, _host: &mut Lent<Host>, frame: &Arrival<'_>, last_bit: Time) {
        self.send_here(last_bit, frame.bytes.to_vec().into());
    }

    fn send_here(&mut self, time: Time, frame: Frame) -> Option<Frame> {
        self.incoming.send(time, frame);
        self.expect(self.incoming.due());
        self.incoming.take_back()
    }

    fn take_sent(&mut self) -> Option<(Time, Frame)> {
        self.nic.port().take_sent()
    }

    fn recycle(&mut self, buffer: Frame) {
        self.nic.port().recycle(buffer);
    }

    fn is_touched(&self) -> bool {
        self.touched
    }

    fn take_touched(&mut self) -> bool {
        std::mem::take(&mut self.touched)
    }

    fn port(&mut self) -> &mut Lent<DmaPort> {
        &mut self.dma
    }

    #[cfg(test)]
    fn miscount(&mut self) {
        self.arrived.frames += 1;
    }

    fn lost_on_link(&self) -> u64 {
        self.incoming.counters().lost
    }

    fn bring_up(&mut self, host: &mut Lent<Host>) {
        if let Some(last) = self.writes.back() {
            let time = last.arrives;
            self.catch_up(host, time);
        }
    }

    fn take_all(&mut self, host: &mut Lent<Host>) -> Time {
        while self.first_write.min(self.incoming.due()) < Time::NEVER {
            self.step_first(host);
        }
        self.reached
    }

    fn catch_up_to(&mut self, host: &mut Lent<Host>, at: Time) -> Time {
        let at = at.max(self.reached);
        self.catch_up(host, at);
        self.reached = at;
        at
    }

    fn blocks(&self, index: u32) -> Option<Time> {
        self.nic.blocks(index)
    }

    /// At the time that it has come to, which may be later than `at`.
    fn answer(&mut self, host: &mut Lent<Host>, index: u32, _at: Time) -> (u64, Time) {
        let answer = self.nic.read_register(&mut *SimDma::on(host, &mut self.dma, self.reached), index);
        self.settle();
        answer
    }

    fn tally(&mut self) -> Tally {
        let (frames, bytes) = self.nic.port().counts();
        let mut errors = DropCounters::default();
        for (name, count) in self.nic.counters() {
            errors.add(name, count);
        }
        Tally {
            arrived: self.arrived,
            sent: Count { frames, bytes },
            received_inside: self.nic.received_inside(),
            drops: self.drops.clone(),
            errors,
        }
    }

    /// Does the one thing that is due first.
    fn step_first(&mut self, host: &mut Lent<Host>) {
        let now = self.due;
        self.reached = now;
        let mut turn = SimDma::on(host, &mut self.dma, now);
        let dma = &mut *turn;
        if self.first_write <= now
            && let Some(write) = self.writes.pop_front()
        {
            let next = self.writes.front();
            self.first_write = next.map_or(Time::NEVER, |next| next.arrives);
            let register = write.register.index;
            self.nic.write_register(dma, register, write.value);
        } else if self.incoming.due() <= now {
            if let Some(mut frame) = self.incoming.take() {
                self.arrived.frames += 1;
                self.arrived.bytes += frame.len() as u64;
                if let Err(cause) = self.nic.receive(dma, &mut frame) {
                    self.drops.count(cause.0);
                }
                self.incoming.give_back(frame);
            }
        } else {
            self.nic.advance(dma);
        }
        drop(turn);
        self.settle();
    }

    /// A core's register write is on its way. One core's writes come in order; another core's may
    /// be overtaken.
    fn post(&mut self, write: &MmioWrite) {
        let before = self.writes.iter().rev();
        let later = before.take_while(|other| other.arrives > write.arrives);
        match later.count() {
            0 => self.writes.push_back(*write),
            later => self.writes.insert(self.writes.len() - later, *write),
        }
        self.first_write = self.first_write.min(write.arrives);
        self.expect(write.arrives);
    }
}

#[cfg(test)]
mod tests;
