//! V-SINIC's driver (integrated NIC, sections 7.1 and 7.2).
//!
//! ```text
//!   posted: 3 ─ 4 ─ 5 ─ …   in the order in which packets will be bound to them
//!   taken from the front ─► whole packets: posted again with a new buffer
//!                        ─► zero copy, delayed copy: the header goes to the stack, the payload
//!                           stays; the virtual NIC is posted again once somebody has copied it
//! ```

use std::collections::VecDeque;

use nicforge_nic::{Segment, data_of, mbuf_room};
use nicforge_platform::{Addr, AddressSpace, Cpu};
use nicforge_units::Time;

use nicforge_wire::headers::{ETHERNET_HEADER_LEN, Ipv4View};

use crate::kernel::{
    Advice, Between, Deferred, DriverState, KernelDriver, KernelPlan, Received, Sending, SharedLock, SlabCache,
    TransmitBusy,
};
use crate::sinic::registers::{Tag, config, interrupt, rx_done};
use crate::sinic::{Attention, describe, flags};

/// Bytes of a UDP header (RFC 768).
const UDP_HEADER_LEN: usize = 8;
/// Where a TCP header says how long it is (RFC 9293, section 3.1).
const TCP_DATA_OFFSET: usize = 12;

/// A virtual NIC that waits for a packet.
#[derive(Clone, Copy, Debug)]
struct Posted {
    vnic: u16,
    mbuf: Addr,
    /// Bytes that it asks for.
    len: u32,
    /// When some core posted it: before, its registers speak of the packet before.
    at: Time,
}

/// The driver.
#[derive(Debug)]
pub struct Driver {
    attention: Attention,
    /// Posted virtual NICs, in the order of posting.
    posted: VecDeque<Posted>,
    /// Those that have no buffer.
    idle: Vec<u16>,
    /// Buffers for those whose payload is with the stack.
    spare: Vec<Addr>,
    vnics: usize,
    /// Bytes of a packet that one copy brings at most.
    copy: u32,
    /// Bytes of a packet that are copied first where payload stays: all headers.
    header: u32,
    /// Payload stays in the FIFO until a process reads it.
    leaves: bool,
    /// Bytes in the FIFO of packets whose payload is with the stack: of each virtual NIC, and all.
    held_by: Vec<u32>,
    held: u64,
    /// Packets in the FIFO that no virtual NIC has yet, as RxDone said last.
    unclaimed: u64,
    /// The FIFO's high watermark.
    mark: u64,
    per_poll: usize,
    /// Where discarded payload goes.
    waste: Addr,
    /// Around the lists above: any core may have copied the last of a packet.
    lists: SharedLock,
    oversized: u64,
}

impl Driver {
    pub(super) fn new(plan: &KernelPlan, vnics: u16, space: &mut AddressSpace) -> Driver {
        Driver {
            attention: Attention::new(plan, vnics.into(), space),
            lists: SharedLock::new(space, plan.cores),
            posted: VecDeque::new(),
            // Taken from the end.
            idle: (0..vnics).rev().collect(),
            spare: Vec::new(),
            vnics: vnics.into(),
            copy: 0,
            header: plan.sinic.header_copy.0 as u32,
            leaves: false,
            held_by: vec![0; vnics.into()],
            held: 0,
            unclaimed: 0,
            mark: 0,
            per_poll: 1,
            waste: space.data(plan.sinic.rx_max_copy.0, 64),
            oversized: 0,
        }
    }

    /// Packets that were longer than a buffer, and dropped.
    pub fn oversized(&self) -> u64 {
        self.oversized
    }

    fn conditions(&self) -> u64 {
        if self.leaves { interrupt::RX_DMA.mask() | interrupt::RX_HIGH.mask() } else { interrupt::RX_DMA.mask() }
    }

    /// Whether the FIFO is above its watermark, as far as the driver knows: RxHigh speaks only once,
    /// so it counts what it left there, and what waits behind.
    fn fills(&self) -> bool {
        self.held + self.unclaimed * u64::from(self.copy) > self.mark
    }

    fn post<C: Cpu>(&mut self, cpu: &mut C, vnic: u16, mbuf: Addr) {
        let len = if self.leaves && !self.fills() { self.header.min(self.copy) } else { self.copy };
        self.attention.window.begin_receive(cpu, vnic, data_of(mbuf), len);
        let at = cpu.now();
        self.posted.push_back(Posted { vnic, mbuf, len, at });
    }

    /// Posts virtual NICs that have no buffer.
    fn refill<C: Cpu>(&mut self, cpu: &mut C, pool: &mut SlabCache) {
        if self.idle.is_empty() {
            return;
        }
        let lists = self.lists;
        lists.take(cpu);
        while let Some(&vnic) = self.idle.last()
            && let Some(mbuf) = pool.take(cpu)
        {
            self.idle.pop();
            self.post(cpu, vnic, mbuf);
        }
        lists.give(cpu);
    }

    /// Copies the next `len` bytes of `vnic`'s packet to `to`.
    fn copy<C: Cpu>(&mut self, cpu: &mut C, vnic: u16, to: Addr, len: u32) {
        let mut copied = 0;
        while copied < len {
            let part = (len - copied).min(self.copy);
            let to = to + u64::from(copied);
            self.attention.window.begin_receive(cpu, vnic, to, part);
            // A device that is stuck has lost the packet; the stack's checksums tell.
            if self.attention.window.finish_receive(cpu, vnic).is_err() {
                return;
            }
            copied += part;
        }
    }

    /// Gets the next `len` bytes of `vnic`'s packet out of the FIFO.
    fn discard<C: Cpu>(&mut self, cpu: &mut C, vnic: u16, len: u32) {
        let mut left = len;
        while left > 0 {
            let part = left.min(self.copy);
            self.copy(cpu, vnic, self.waste, part);
            left -= part;
        }
    }

    /// `vnic`'s packet is out of the FIFO.
    fn is_free<C: Cpu>(&mut self, cpu: &mut C, vnic: u16) {
        self.held -= u64::from(std::mem::take(&mut self.held_by[usize::from(vnic)]));
        // The device serves them in the order of their posting, so that has to be one for all cores.
        let lists = self.lists;
        lists.take(cpu);
        match self.spare.pop() {
            Some(mbuf) => self.post(cpu, vnic, mbuf),
            None => self.idle.push(vnic),
        }
        lists.give(cpu);
    }

    /// The oldest posted virtual NIC with its RxDone, if its copy is complete.
    fn next_complete<C: Cpu>(&mut self, cpu: &mut C) -> Option<(Posted, u64)> {
        let posted = *self.posted.front()?;
        if posted.at > cpu.now() {
            return None;
        }
        let done = self.attention.window.read(cpu, Tag::RxDone, posted.vnic);
        self.unclaimed = rx_done::PACKETS.get(done);
        if !rx_done::COMPLETE.is_set(done) {
            return None;
        }
        self.posted.pop_front();
        Some((posted, done))
    }

    /// The oldest posted packet, if it is there.
    fn take<C: Cpu>(&mut self, cpu: &mut C, pool: &mut SlabCache, received: &mut Vec<Received>) -> bool {
        let Some((posted, done)) = self.next_complete(cpu) else {
            return false;
        };
        let Posted { vnic, mbuf, .. } = posted;
        cpu.work(self.attention.costs.rx_packet);
        describe(cpu, mbuf, done);
        let says = rx_done::COPY_LEN.get(done) as u32;
        let (mut len, mut left) = if rx_done::MORE.is_set(done) { (posted.len, says) } else { (says, 0) };
        // What takes this one's place.
        let fresh = pool.take(cpu);
        self.spare.extend(fresh);
        let leave = self.leaves && !self.is_pressed();
        let needed = if leave && left > 0 { headers_len(cpu.bytes(data_of(mbuf), len as usize), done) } else { None };
        // What the stack needs now: the headers, or everything.
        let now = needed.map_or(left, |needed| needed.saturating_sub(len).min(left));
        if now > 0 {
            if len + now > mbuf_room() {
                self.oversized += 1;
                self.discard(cpu, vnic, left);
                pool.give(cpu, mbuf);
                self.is_free(cpu, vnic);
                return true;
            }
            self.copy(cpu, vnic, data_of(mbuf) + u64::from(len), now);
            len += now;
            left -= now;
        }
        if left == 0 {
            self.is_free(cpu, vnic);
        } else {
            self.held_by[usize::from(vnic)] = len + left;
            self.held += u64::from(len + left);
        }
        received.push(Received {
            mbuf,
            head: Segment { at: data_of(mbuf), len },
            deferred: (left > 0).then_some(Deferred { handle: vnic.into(), len: left }),
            flags: flags(done),
        });
        true
    }
}

/// Bytes of the headers of a TCP or UDP packet over IPv4, of which `head` is the beginning. `None`
/// for others, and where the beginning does not tell: these are copied whole.
fn headers_len(head: &[u8], done: u64) -> Option<u32> {
    let ip = Ipv4View::new(head.get(ETHERNET_HEADER_LEN..)?).ok()?;
    let l4_at = ETHERNET_HEADER_LEN + ip.header_len();
    if rx_done::UDP_PACKET.is_set(done) {
        return Some((l4_at + UDP_HEADER_LEN) as u32);
    }
    let data_offset = head.get(l4_at + TCP_DATA_OFFSET)?;
    let is_tcp = rx_done::TCP_PACKET.is_set(done);
    is_tcp.then_some((l4_at + usize::from(data_offset >> 4) * 4) as u32)
}

impl DriverState for Driver {
    fn advice(&self) -> Advice {
        self.attention.advice()
    }

    /// The FIFO is above its watermark, or hardly a virtual NIC is left for further packets.
    fn is_pressed(&self) -> bool {
        self.leaves && (self.fills() || self.posted.len() * 2 < self.vnics)
    }

    fn buffers_held(&self) -> u64 {
        (self.posted.len() + self.spare.len()) as u64 + self.attention.buffers_held()
    }
}

impl<C: Cpu> KernelDriver<C> for Driver {
    fn start(&mut self, cpu: &mut C, pool: &mut SlabCache) {
        let window = self.attention.window;
        self.copy = (window.read(cpu, Tag::RxMaxCopy, 0) as u32).min(mbuf_room());
        self.mark = window.read(cpu, Tag::RxFifoMark, 0);
        self.per_poll = window.read(cpu, Tag::RxMaxIntr, 0).max(1) as usize;
        let config = self.attention.start(cpu);
        self.leaves = config::ZERO_COPY.is_set(config) || config::DELAY_COPY.is_set(config);
        self.refill(cpu, pool);
        self.attention.rest(cpu, self.conditions());
    }

    fn interrupt(&mut self, cpu: &mut C) -> bool {
        self.attention.interrupt(cpu, self.conditions())
    }

    fn poll(&mut self, cpu: &mut C, pool: &mut SlabCache, received: &mut Vec<Received>, budget: usize) -> bool {
        self.attention.reclaim(cpu, pool);
        self.refill(cpu, pool);
        // What completes from here on is an event again.
        let status = self.conditions();
        let window = self.attention.window;
        window.write(cpu, Tag::IntrStatus, 0, status);
        for _ in 0..budget.min(self.per_poll) {
            if !self.take(cpu, pool, received) {
                // Nobody says when there are buffers again.
                if self.posted.is_empty() && !self.idle.is_empty() {
                    return true;
                }
                cpu.work(self.attention.costs.burst);
                return self.attention.rest(cpu, status);
            }
        }
        true
    }

    fn transmit(
        &mut self,
        cpu: &mut C,
        pool: &mut SlabCache,
        frame: &Sending,
        core: usize,
    ) -> Result<(), TransmitBusy> {
        let received = self.conditions();
        self.attention.send(cpu, pool, frame, core, received)
    }

    fn copy_deferred(&mut self, cpu: &mut C, deferred: &mut Deferred, to: Addr, len: u32) {
        let vnic = deferred.handle as u16;
        let len = len.min(deferred.len);
        self.copy(cpu, vnic, to, len);
        deferred.len -= len;
        if deferred.len == 0 && len > 0 {
            self.is_free(cpu, vnic);
        }
    }

    fn drop_deferred(&mut self, cpu: &mut C, deferred: Deferred) {
        let vnic = deferred.handle as u16;
        self.discard(cpu, vnic, deferred.len);
        if deferred.len > 0 {
            self.is_free(cpu, vnic);
        }
    }

    fn between(&self, cpu: &mut C) -> Between {
        let window = self.attention.window;
        let posted = self.posted.iter();
        let here = posted.filter(|posted| window.has_whole_packet(cpu, posted.vnic));
        let left = self.held_by.iter().filter(|&&bytes| bytes > 0);
        Between { in_memory: here.count() as u64, deferred: left.count() as u64, dropped: self.oversized }
    }
}
