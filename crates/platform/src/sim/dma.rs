//! A device's way to host memory: [`Dma`] over a PCIe link and the memory system.
//!
//! ```text
//!   device → host ("out"): posted writes, read requests     host → device ("in"): read data
//! ```

use std::ops::Range;

use nicforge_units::{Bytes, CACHE_LINE_BYTES, Time};

use super::lent::{Agent, Lent, Turn};
use super::{Host, LinkConfig};
use crate::tracer::{Counts, Here};
use crate::{Addr, Dma, Gathered, Hint, Moment, PacketKey, Run, Vector};

/// What a device's DMA counted since its run began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DmaCounters {
    /// Read requests.
    pub reads: u64,
    /// Sum of their latencies, from issue to last byte, in picoseconds.
    pub read_time_ps: u64,
    /// Bytes sent to the host, headers included.
    pub out_bytes: u64,
    /// Bytes received from the host, headers included.
    pub in_bytes: u64,
    /// Bytes read from and written to the device's own memory.
    pub nicmem_bytes: u64,
    /// Interrupts raised.
    pub interrupts: u64,
}

/// One device's link and what is in flight on it.
pub struct DmaPort {
    config: LinkConfig,
    device: usize,
    /// When the last request with each tag was complete. Tags are used in turn.
    complete: Vec<Time>,
    next_tag: usize,
    /// A publish is never visible before an earlier one.
    last_visible: Time,
    /// Interrupts that nobody has taken yet.
    interrupts: Vec<(Vector, Time)>,
    counters: DmaCounters,
    /// The next write goes past the caches.
    past_caches: bool,
}

impl DmaPort {
    /// The way of device `device` to its host, over a link as `config` describes it.
    pub fn new(config: &LinkConfig, device: usize) -> DmaPort {
        DmaPort {
            device,
            complete: vec![Time::ZERO; config.tags],
            next_tag: 0,
            last_visible: Time::ZERO,
            interrupts: Vec::new(),
            counters: DmaCounters::default(),
            past_caches: false,
            config: config.clone(),
        }
    }

    /// Interrupts since the last call, and when each reaches the host: behind all that was written
    /// before it.
    pub fn take_interrupts(&mut self) -> std::vec::Drain<'_, (Vector, Time)> {
        self.interrupts.drain(..)
    }

    /// Whether there is any such interrupt.
    #[inline]
    pub fn has_interrupts(&self) -> bool {
        !self.interrupts.is_empty()
    }

    /// When the next request may be issued: at `now`, or once its tag is free.
    #[inline]
    fn tag_free(&self, now: Time) -> Time {
        self.complete[self.next_tag].max(now)
    }

    /// The request that has the next tag is complete at `done`.
    #[inline]
    fn complete(&mut self, done: Time) {
        self.complete[self.next_tag] = done;
        self.next_tag += 1;
        if self.next_tag == self.complete.len() {
            self.next_tag = 0;
        }
    }

    /// What was counted so far, on this side and on the link to `host`.
    pub fn counters(&self, host: &Host) -> DmaCounters {
        let link = &host.links[self.device];
        DmaCounters { out_bytes: link.out.bytes(), in_bytes: link.inward.bytes(), ..self.counters.clone() }
    }
}

/// [`Dma`] in virtual time: a device at work.
pub struct SimDma {
    host: Box<Host>,
    port: Box<DmaPort>,
    cursor: Time,
}

impl Agent for SimDma {
    type State = DmaPort;

    fn into_parts(self) -> (Box<Host>, Box<DmaPort>) {
        (self.host, self.port)
    }
}

impl SimDma {
    /// Accesses of the device behind `port`, from `now` on.
    #[inline]
    pub fn on<'a>(host: &'a mut Lent<Host>, port: &'a mut Lent<DmaPort>, now: Time) -> Turn<'a, SimDma> {
        Turn::begin(host, port, |host, port| SimDma { host, port, cursor: now })
    }

    /// What follows begins at `now`, whatever went before.
    #[inline]
    pub fn restart(&mut self, now: Time) {
        self.cursor = now;
    }

    /// Times an access of `len` bytes of the device's own memory, which no bus is needed for.
    fn time_nicmem(&mut self, len: u64) -> Time {
        self.port.counters.nicmem_bytes += len;
        self.cursor + self.host.nicmem.access()
    }

    /// Times a read of `len` bytes from the cursor on; returns when its last byte is here.
    fn time_read(&mut self, from: Addr, len: u64) -> Time {
        if self.host.hierarchy.is_perfect() {
            return self.cursor;
        }
        if self.host.nicmem.holds(from.line()) {
            return self.time_nicmem(len);
        }
        let cursor = self.cursor;
        let mut done = cursor;
        let mut at = from.0;
        let end = from.0 + len;
        let request_max = self.port.config.max_read_request.0;
        let half_way = Time::from_ps(self.port.config.read_round_trip.as_ps() / 2);
        let (link, port) = (&mut self.host.links[self.port.device], &mut *self.port);
        while at < end {
            // No request crosses a 4 KiB boundary (PCIe base specification 3.0, section 2.2.7).
            let until = (at + request_max).min((at / 4096 + 1) * 4096).min(end);
            let issued = port.tag_free(cursor);
            // The data that will come back is acknowledged on this side of the link.
            let packets = link.inward.packets(Bytes(until - at));
            let acknowledged = port.config.dllp * packets;
            let sent = link.out.send_with(issued, Bytes(0), acknowledged);
            let first = at / CACHE_LINE_BYTES;
            let lines = (until - 1) / CACHE_LINE_BYTES - first + 1;
            let at_memory = sent + half_way;
            let latency = self.host.hierarchy.device_read(first, lines, at_memory);
            let back = at_memory + latency + half_way;
            done = link.inward.send(back, Bytes(until - at));
            port.complete(done);
            port.counters.reads += 1;
            port.counters.read_time_ps += (done - issued).as_ps();
            at = until;
        }
        done
    }

    /// The tracer takes note of a packet.
    #[cold]
    #[inline(never)]
    fn trace(&mut self, key: PacketKey, moment: Moment) {
        let Host { tracer, hierarchy, .. } = &mut *self.host;
        let (port, at) = (&self.port, self.cursor);
        let here = Here::Device { number: port.device, landed: port.last_visible };
        let counts = || Counts { memory: hierarchy.quick_counters(), dma: port.counters.clone(), ..Counts::default() };
        if let Some(tracer) = tracer {
            tracer.packet(key, moment, (here, at), counts);
        }
    }

    /// The lines of about `len` bytes at `at`, which somebody may have made up.
    #[inline]
    fn lines_there(&self, at: Addr, len: usize) -> Option<Range<u64>> {
        let lines = at.line()..Addr(at.0.wrapping_add(len as u64)).line() + 1;
        (lines.start < lines.end && lines.end < self.host.hierarchy.lines()).then_some(lines)
    }

    /// Times a posted write; returns when memory has it. The cursor moves on to when the link
    /// has taken it.
    fn time_write(&mut self, to: Addr, len: u64) -> Time {
        if self.host.hierarchy.is_perfect() {
            return self.cursor;
        }
        if self.host.nicmem.holds(to.line()) {
            return self.time_nicmem(len);
        }
        let out = &mut self.host.links[self.port.device].out;
        self.cursor = out.send(self.cursor, Bytes(len));
        let first = to.line();
        let lines = (to + (len - 1)).line() - first + 1;
        let at_memory = self.cursor + self.port.config.write_latency;
        let [begins, ends] = [to, to + len].map(|end| (!end.0.is_multiple_of(CACHE_LINE_BYTES)).then_some(end.line()));
        for line in [begins, ends.filter(|_| ends != begins)].into_iter().flatten() {
            self.host.hierarchy.own_for_device(line, at_memory);
        }
        let wait = match std::mem::take(&mut self.port.past_caches) {
            false => self.host.hierarchy.device_write(first, lines, at_memory),
            true => self.host.hierarchy.device_write_past(first, lines, at_memory),
        };
        let slack = self.port.config.posted_slack;
        if wait > slack {
            self.host.links[self.port.device].out.hold_until(self.cursor + wait - slack);
        }
        at_memory + wait
    }

    /// The same for what is announced by it; returns when it is seen, which is not before what was written
    /// earlier.
    fn time_publish(&mut self, to: Addr, len: u64) -> Time {
        let landed = self.time_write(to, len);
        self.port.last_visible = self.port.last_visible.max(landed);
        self.port.last_visible
    }
}

impl Dma for SimDma {
    fn read(&mut self, from: Addr, into: &mut [u8]) {
        self.cursor = self.read_ahead(from, into);
    }

    fn read_ahead(&mut self, from: Addr, into: &mut [u8]) -> Time {
        into.copy_from_slice(self.host.memory.slice(from, into.len()));
        self.time_read(from, into.len() as u64)
    }

    fn gather<'a>(&'a mut self, front: &'a [u8], runs: [Run; 2], _scratch: &'a mut Vec<u8>) -> Gathered<'a> {
        let mut here = self.cursor;
        for run in runs.into_iter().filter(|run| run.len > 0) {
            here = here.max(self.time_read(run.at, run.len as u64));
        }
        let [first, second] = runs.map(|run| self.host.memory.slice(run.at, run.len));
        Gathered { pieces: [front, first, second], here }
    }

    fn write(&mut self, to: Addr, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.host.memory.slice_mut(to, bytes.len()).copy_from_slice(bytes);
        self.time_publish(to, bytes.len() as u64);
    }

    fn write_padded(&mut self, to: Addr, bytes: &[u8], head: usize) {
        self.host.memory.write_padded(to, bytes, head);
        self.time_publish(to, bytes.len() as u64);
    }

    #[inline(always)]
    fn publish(&mut self, to: Addr, bytes: &[u8]) {
        let visible = self.time_publish(to, bytes.len() as u64);
        for (line, entry) in (0..).zip(bytes.chunks(CACHE_LINE_BYTES as usize)) {
            let at = to + line * CACHE_LINE_BYTES;
            self.host.memory.publish(at, entry, visible);
        }
        // Entries of a ring lie one behind the other.
        self.host.memory.expect_publish(to + bytes.len() as u64);
    }

    fn interrupt(&mut self, vector: Vector) {
        let out = &mut self.host.links[self.port.device].out;
        self.cursor = out.send(self.cursor, Bytes(4));
        self.port.counters.interrupts += 1;
        let arrives = self.cursor + self.port.config.write_latency;
        let visible = self.port.last_visible.max(arrives);
        self.port.interrupts.push((vector, visible));
    }

    fn settle(&mut self) {
        if !self.host.hierarchy.is_perfect() {
            self.wait_until(self.port.last_visible + self.port.config.write_latency);
        }
    }

    fn wait_until(&mut self, time: Time) {
        self.cursor = self.cursor.max(time);
    }

    fn now(&self) -> Time {
        self.cursor
    }

    #[inline(always)]
    fn hint(&mut self, hint: Hint) {
        match hint {
            Hint::Frame { at, len } => {
                if let Some(lines) = self.lines_there(at, len) {
                    self.host.memory.expect_frame(lines.start);
                    self.host.hierarchy.expect_device_write(lines);
                }
            }
            Hint::NextFrame { at, len } => {
                if let Some(lines) = self.lines_there(at, len) {
                    self.host.hierarchy.expect_displaced(lines);
                }
            }
            Hint::PastCaches => self.port.past_caches = true,
            Hint::Read { at, len } => {
                let last = Addr(at.0.wrapping_add(len as u64));
                self.host.hierarchy.expect(at.line());
                self.host.hierarchy.expect(last.line());
            }
            Hint::Packet(key, moment) if self.host.tracer.is_some() => self.trace(key, moment),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
