//! System calls: copying between a process and its sockets, sleeping and waking.

use nicforge_interfaces::kernel::KernelDriver;
use nicforge_nic::Segment;
use nicforge_platform::{Addr, Cpu, Part};
use nicforge_units::Cycles;

use super::receive_queue::copy_next;
use super::{BEGUN, Call, Kernel, Outcome, Waiting};

/// Bytes that one step of a call copies at most: a segment's.
const STEP_BYTES: u64 = 1460;

impl Kernel {
    /// One step of the process.
    pub(super) fn run<C: Cpu>(&mut self, cpu: &mut C) {
        let call = match self.call {
            Some(call) => call,
            None => self.begin(cpu, BEGUN),
        };
        match call {
            Call::Send {
                connection,
                from,
                len,
            } => self.send_some(cpu, connection, from, len),
            Call::Receive {
                connection,
                to,
                len,
                all,
            } => self.receive_some(cpu, connection, Buffer { to, len, all }),
            Call::Select => self.select(cpu),
            Call::Compute(cycles) => {
                cpu.enter(Part::App);
                cpu.work(cycles);
                cpu.enter(Part::Stack);
                self.begin(cpu, Outcome::Computed);
            }
            Call::Exit => self.waiting = Waiting::Ever,
        }
    }

    /// The process makes its next call.
    fn begin<C: Cpu>(&mut self, cpu: &mut C, last: Outcome) -> Call {
        let call = self.process.next(last);
        self.call = Some(call);
        self.moved = 0;
        if !matches!(call, Call::Compute(_) | Call::Exit) {
            cpu.enter(Part::Stack);
            cpu.work(self.costs.system_call);
        }
        call
    }

    fn copy_work(&self, bytes: u64) -> Cycles {
        Cycles((bytes as f64 / self.costs.copy_bytes_per_cycle) as u64)
    }

    fn send_some<C: Cpu>(&mut self, cpu: &mut C, number: usize, from: Addr, len: u64) {
        let connection = &mut self.connections[number];
        let room = connection.engine.writable() as u64;
        let left = (len - self.moved).min(STEP_BYTES);
        let to = connection.send.room(left.min(room));
        if to.len == 0 {
            self.waiting = Waiting::Writable(number);
            return;
        }
        let count = u64::from(to.len);
        cpu.enter(Part::Copy);
        cpu.copy(from + self.moved, to.at, to.len as usize);
        cpu.work(self.copy_work(count));
        cpu.enter(Part::Stack);
        let connection = &mut self.connections[number];
        connection.engine.put(to.len as usize);
        connection.send.wrote(count);
        self.moved += count;
        self.counters.written_bytes += count;
        self.flush(cpu, number);
        if self.moved == len {
            self.begin(cpu, Outcome::Sent(len));
        }
    }

    fn receive_some<C: Cpu>(&mut self, cpu: &mut C, number: usize, buffer: Buffer) {
        let readable = self.connections[number].engine.readable() as u64;
        let wanted = buffer.len - self.moved;
        if wanted > 0 && readable == 0 && (self.moved == 0 || buffer.all) {
            self.waiting = Waiting::Readable(number);
            return;
        }
        if wanted > 0 && readable > 0 {
            let len = readable.min(wanted) as u32;
            let at = buffer.to + self.moved;
            self.read_packet(cpu, number, Segment { at, len });
        }
        let left = self.connections[number].engine.readable();
        if self.moved == buffer.len || left == 0 && !buffer.all {
            // The window has opened.
            self.flush(cpu, number);
            self.begin(cpu, Outcome::Received(self.moved));
        } else if left == 0 {
            self.flush(cpu, number);
        }
    }

    /// Payload that is still in the NIC goes straight to the buffer of a read that is posted for it,
    /// within the soft interrupt: it does not wait until the process runs (section 7.2).
    pub(super) fn land<C: Cpu>(&mut self, cpu: &mut C, number: usize) {
        let Some(Call::Receive {
            connection,
            to,
            len,
            ..
        }) = self.call
        else {
            return;
        };
        let nic = self.connections[number].plan.nic;
        if connection != number || self.drivers[nic].advice().delays_copy {
            return;
        }
        loop {
            let connection = &mut self.connections[number];
            let room = (len - self.moved).min(connection.engine.readable() as u64) as u32;
            let next = connection.receive.next();
            let in_nic = next.is_some_and(|(payload, _)| payload.deferred.is_some());
            if room == 0 || !in_nic {
                return;
            }
            let at = to + self.moved;
            self.read_packet(cpu, number, Segment { at, len: room });
        }
    }

    /// Whether what [`land`](Self::land) brought ends the call.
    pub(super) fn landed_enough(&self) -> bool {
        matches!(self.call, Some(Call::Receive { len, all, .. })
            if self.moved > 0 && (!all || self.moved == len))
    }

    /// Copies what one packet has to `to`.
    fn read_packet<C: Cpu>(&mut self, cpu: &mut C, number: usize, to: Segment) {
        let connection = &mut self.connections[number];
        let driver = &mut self.drivers[connection.plan.nic];
        let place = connection.receive.read();
        // TCP says that these bytes are there, so some packet has them.
        let Some((payload, skip)) = connection.receive.next() else {
            self.drops.count("bytes_not_found");
            return;
        };
        cpu.enter(Part::Copy);
        let (len, by_core) = copy_next(cpu, driver, payload, skip, to);
        self.arrived.push((place, Segment { at: to.at, len }));
        if by_core {
            let cycles = f64::from(len) / self.costs.copy_bytes_per_cycle;
            cpu.work(Cycles(cycles as u64));
        }
        cpu.enter(Part::Stack);
        connection.receive.advance(len.into());
        connection.engine.take(len as usize);
        while let Some(payload) = connection.receive.finished() {
            if let Some(deferred) = payload.deferred {
                driver.drop_deferred(cpu, deferred);
            }
            self.pool.give(cpu, payload.mbuf);
        }
        self.moved += u64::from(len);
        self.counters.read_bytes += u64::from(len);
    }

    fn select<C: Cpu>(&mut self, cpu: &mut C) {
        let count = self.connections.len();
        let numbers = (0..count).map(|step| (self.select_from + step) % count);
        let ready = |number: &usize| self.connections[*number].engine.readable() > 0;
        match numbers.into_iter().find(ready) {
            Some(number) => {
                self.select_from = number + 1;
                self.begin(cpu, Outcome::Readable(number));
            }
            None => self.waiting = Waiting::AnyReadable,
        }
    }
}

/// Where a process wants bytes.
struct Buffer {
    to: Addr,
    len: u64,
    all: bool,
}
