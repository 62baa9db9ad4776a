//! System calls: copying between a process and its sockets, sleeping and waking.

use nicforge_nic::Segment;
use nicforge_platform::sim::DeviceReader;
use nicforge_platform::{Addr, Cpu, Part, copy};
use nicforge_units::Cycles;

use super::processor::Waiting;
use super::receive_queue::copy_next;
use super::{BEGUN, Call, Kernel, Outcome};

/// Bytes that one step of a call copies at most: a segment's.
const STEP_BYTES: u64 = 1460;

impl Kernel {
    /// One step of `core`'s process.
    pub(super) fn run(&mut self, core: usize, cpu: &mut DeviceReader<'_>) {
        let Some(call) = self.processors[core].call else {
            self.begin(core, cpu, BEGUN);
            return;
        };
        match call {
            Call::Send { connection, from, len, gives_way } => {
                let lock = self.connections[connection].lock;
                lock.hold(cpu, |cpu| {
                    self.send_some(core, cpu, connection, from, len, gives_way);
                });
            }
            Call::Receive { connection, to, len, all } => {
                let (lock, buffer) = (self.connections[connection].lock, Buffer { to, len, all });
                lock.hold(cpu, |cpu| self.receive_some(core, cpu, connection, buffer));
            }
            Call::Select => self.select(core, cpu),
            Call::Compute(cycles) => {
                cpu.enter(Part::App);
                cpu.work(cycles);
                cpu.enter(Part::Stack);
                self.begin(core, cpu, Outcome::Computed);
            }
            Call::Exit => self.processors[core].waiting = Waiting::Ever,
        }
    }

    /// The process makes its next call.
    fn begin(&mut self, core: usize, cpu: &mut DeviceReader<'_>, last: Outcome) -> Call {
        let processor = &mut self.processors[core];
        let call = processor.process.next(last);
        processor.call = Some(call);
        processor.moved = 0;
        processor.made = None;
        if !matches!(call, Call::Compute(_) | Call::Exit) {
            cpu.enter(Part::Stack);
            cpu.work(self.costs.system_call);
        }
        call
    }

    pub(super) fn copy_work(&self, bytes: u64) -> Cycles {
        Cycles((bytes as f64 / self.costs.copy_bytes_per_cycle) as u64)
    }

    fn send_some(
        &mut self,
        core: usize,
        cpu: &mut DeviceReader<'_>,
        number: usize,
        from: Addr,
        len: u64,
        gives_way: bool,
    ) {
        let connection = &mut self.connections[number];
        let processor = &mut self.processors[core];
        let room = connection.engine.writable() as u64;
        let left = (len - processor.moved).min(STEP_BYTES);
        let to = connection.send.room(cpu, &mut processor.pool, left.min(room));
        if to.len == 0 {
            if gives_way && connection.engine.readable() > 0 {
                let moved = processor.moved;
                connection.engine.end_call();
                self.flush(core, cpu, number);
                self.begin(core, cpu, Outcome::Sent(moved));
            } else {
                processor.waiting = Waiting::Writable(number);
            }
            return;
        }
        let count = u64::from(to.len);
        cpu.enter(Part::Copy);
        copy(cpu, from + processor.moved, to.at, to.len as usize);
        processor.moved += count;
        let done = processor.moved == len;
        cpu.work(self.copy_work(count));
        cpu.enter(Part::Stack);
        let connection = &mut self.connections[number];
        // Behind a whole segment that may not leave yet, nothing may.
        let queues = connection.held_back && connection.send.unsent() >= STEP_BYTES;
        connection.engine.put(to.len as usize, !done, cpu.now());
        connection.send.wrote(count);
        self.counters.written_bytes += count;
        if !queues {
            self.flush(core, cpu, number);
        }
        if done {
            self.begin(core, cpu, Outcome::Sent(len));
        }
    }

    /// Puts what `core`'s process writes next where it writes it from: it takes no time to make it
    /// up. `memory` is memory without an access of anybody.
    pub fn make_content<'a>(&mut self, core: usize, memory: impl FnOnce(Addr, usize) -> &'a mut [u8]) {
        let processor = &mut self.processors[core];
        let Some(Call::Send { connection: number, from, len, .. }) = processor.call else {
            return;
        };
        let connection = &self.connections[number];
        let place = connection.send.written();
        if processor.made != Some((number, place)) {
            let next = (len - processor.moved).min(STEP_BYTES) as usize;
            let there = memory(from + processor.moved, next);
            connection.way(number, true).fill(place, there);
            processor.made = Some((number, place));
        }
    }

    fn receive_some(&mut self, core: usize, cpu: &mut DeviceReader<'_>, number: usize, buffer: Buffer) {
        let readable = self.connections[number].engine.readable() as u64;
        let moved = self.processors[core].moved;
        let wanted = buffer.len - moved;
        if wanted > 0 && readable == 0 && (moved == 0 || buffer.all) {
            self.processors[core].waiting = Waiting::Readable(number);
            return;
        }
        if wanted > 0 && readable > 0 {
            let len = readable.min(wanted) as u32;
            let at = buffer.to + moved;
            self.read_packet(core, cpu, number, Segment { at, len });
        }
        let left = self.connections[number].engine.readable();
        let moved = self.processors[core].moved;
        if moved == buffer.len || left == 0 && !buffer.all {
            self.end_read(core, cpu, number);
            self.begin(core, cpu, Outcome::Received(moved));
        } else if left == 0 {
            self.end_read(core, cpu, number);
        }
    }

    /// The window has opened.
    fn end_read(&mut self, core: usize, cpu: &mut DeviceReader<'_>, number: usize) {
        self.connections[number].engine.end_read(cpu.now());
        self.flush(core, cpu, number);
    }

    /// Payload that is still in the NIC goes straight to the buffer of a read that is posted for it,
    /// within the soft interrupt: it does not wait until the process runs (section 7.2).
    pub(super) fn land(&mut self, core: usize, cpu: &mut DeviceReader<'_>, number: usize) {
        let plan = &self.connections[number].plan;
        let (owner, nic) = (plan.core, plan.nic);
        let Some(Call::Receive { connection, to, len, .. }) = self.processors[owner].call else {
            return;
        };
        if connection != number || self.drivers[nic].advice().delays_copy {
            return;
        }
        loop {
            let moved = self.processors[owner].moved;
            let connection = &mut self.connections[number];
            let room = (len - moved).min(connection.engine.readable() as u64) as u32;
            let next = connection.receive.next();
            let in_nic = next.is_some_and(|(payload, _)| payload.deferred.is_some());
            if room == 0 || !in_nic {
                return;
            }
            let at = to + moved;
            self.read_packet(core, cpu, number, Segment { at, len: room });
            self.connections[number].engine.end_read(cpu.now());
        }
    }

    /// Whether what [`land`](Self::land) brought ends the call of `owner`'s process.
    pub(super) fn landed_enough(&self, owner: usize) -> bool {
        let processor = &self.processors[owner];
        matches!(processor.call, Some(Call::Receive { len, all, .. })
            if processor.moved > 0 && (!all || processor.moved == len))
    }

    /// Copies what one packet has to `to`, for the process that reads the connection.
    fn read_packet(&mut self, core: usize, cpu: &mut DeviceReader<'_>, number: usize, to: Segment) {
        let connection = &mut self.connections[number];
        let driver = &mut *self.drivers[connection.plan.nic];
        let place = connection.receive.read();
        // TCP says that these bytes are there, so some packet has them.
        let Some((payload, skip)) = connection.receive.next() else {
            self.drops.count("bytes_not_found");
            return;
        };
        cpu.enter(Part::Copy);
        let (len, by_core) = copy_next(cpu, driver, payload, skip, to);
        let owner = connection.plan.core;
        let arrived = &mut self.processors[owner].arrived;
        arrived.push((number, place, Segment { at: to.at, len }));
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
            self.processors[core].pool.give(cpu, payload.mbuf);
        }
        self.processors[owner].moved += u64::from(len);
        self.counters.read_bytes += u64::from(len);
    }

    fn select(&mut self, core: usize, cpu: &mut DeviceReader<'_>) {
        let count = self.connections.len();
        let from = self.processors[core].select_from;
        let numbers = (0..count).map(|step| (from + step) % count);
        let ready = |number: &usize| {
            let connection = &self.connections[*number];
            connection.plan.core == core && connection.engine.readable() > 0
        };
        match numbers.into_iter().find(ready) {
            Some(number) => {
                self.processors[core].select_from = number + 1;
                self.begin(core, cpu, Outcome::Readable(number));
            }
            None => self.processors[core].waiting = Waiting::AnyReadable,
        }
    }
}

/// Where a process wants bytes.
struct Buffer {
    to: Addr,
    len: u64,
    all: bool,
}
