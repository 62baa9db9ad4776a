//! The poll-mode packet loop as a program: poll, then one packet at a time, then flush.
//!
//! A step is one poll, one packet or one flush, so that what the cores and the NICs do to the caches interleaves as it
//! would.

use nicforge_apps::tables::LookUp;
use nicforge_nic::DropCounters;
use nicforge_platform::Addr;
use nicforge_platform::sim::SimCpu;
use nicforge_units::CACHE_LINE_BYTES;
use nicforge_wire::parse_headers;

use super::program::{Account, Here, Next, Program};
use crate::packet_loop::PacketLoop;

/// How many packets before its own a packet's header is prefetched. A packet later it is the bucket that its look-up begins
/// with, then the entry, then what makes room for that. In between other cores have their steps: earlier than that, it would
/// have left the caches again.
const AHEAD: usize = 3;

/// What the core does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Poll,
    Packet(usize),
    Flush,
}

/// An application over one receive queue.
pub struct PacketProgram {
    software: PacketLoop<SimCpu>,
    does: Does,
    /// Packets of the last poll.
    polled: usize,
    /// The look-up whose bucket this process prefetched last.
    look_up: Option<LookUp>,
    /// The entry that this process prefetched last.
    entry: Option<Addr>,
    /// Receive calls that brought packets.
    bursts: u64,
}

impl PacketProgram {
    /// `software` at the beginning of a run, its queue up.
    pub fn new(software: PacketLoop<SimCpu>) -> PacketProgram {
        PacketProgram { software, does: Does::Poll, polled: 0, look_up: None, entry: None, bursts: 0 }
    }

    /// Whether the poll brought packets.
    fn poll(&mut self, here: &mut Here<'_>) -> bool {
        let before = here.core.spent().clone();
        let buffers = self.software.buffers_in_rings();
        while here.published.front().is_some_and(|&time| time <= here.core.now()) {
            here.published.pop_front();
        }
        here.core.begin_burst();
        let mut cpu = here.cpu();
        self.polled = self.software.poll(&mut cpu, 0);
        if self.polled > 0 {
            self.bursts += 1;
            return true;
        }
        self.software.reclaim(&mut cpu);
        drop(cpu);
        // A poll that found no packet but moved buffers did work.
        if self.software.buffers_in_rings() == buffers {
            here.core.count_as_idle(&before);
        }
        false
    }

    /// Prefetches the header of packet `index` of those polled, and for those before it what comes after that, in this process.
    /// The model charges nothing for it. All places are found before the first is prefetched: then the waits for the
    /// translations of their addresses overlap.
    #[inline]
    fn look_ahead(&mut self, here: &Here<'_>, index: usize) {
        let (machine, core) = (&here.machine, here.core.number());
        let (look_up, entry) = (self.look_up, self.entry);
        let before = index.checked_sub(1).filter(|&before| before < self.polled);
        self.look_up = before.and_then(|before| self.first_look_up(here, before));
        self.entry = look_up.and_then(|look_up| look_up.entry(machine.line(look_up.bucket)?));
        if index < self.polled {
            machine.memory.expect(self.software.polled(index).head.at.line());
        }
        for place in [self.look_up.map(|look_up| look_up.bucket), self.entry].into_iter().flatten() {
            machine.expect_access(core, place);
        }
        for place in [look_up.map(|look_up| look_up.bucket), entry].into_iter().flatten() {
            machine.hierarchy.expect_fetch(core, place.line());
        }
    }

    /// The application's first look-up for packet `index` of those polled.
    #[inline]
    fn first_look_up(&self, here: &Here<'_>, index: usize) -> Option<LookUp> {
        let packet = self.software.polled(index);
        let window = packet.head.len.min(CACHE_LINE_BYTES as u32) as usize;
        let bytes = here.machine.memory.get(packet.head.at, window)?;
        let summary = parse_headers(bytes, packet.len() as usize).ok()?;
        self.software.app.first_look_up(&summary, packet.port)
    }

    /// Packets of the last poll that are not handled yet.
    fn waiting(&self) -> usize {
        match self.does {
            Does::Packet(index) => self.polled - index,
            Does::Poll | Does::Flush => 0,
        }
    }

    fn in_hand(&self) -> u64 {
        (self.waiting() + self.software.to_flush()) as u64
    }
}

impl Program for PacketProgram {
    // A function of its own: taken into the world's step it was slower.
    #[inline(never)]
    fn step(&mut self, here: &mut Here<'_>) -> Next {
        match self.does {
            Does::Poll => {
                here.core.idle_until(here.now);
                if !self.poll(here) {
                    // Without buffers frames may wait although the poll found nothing: the core polls on until
                    // transmit completions bring some back.
                    return if self.software.is_starved() { Next::Again } else { Next::Event };
                }
                (0..AHEAD).for_each(|index| self.look_ahead(here, index));
                self.does = Does::Packet(0);
            }
            Does::Packet(index) => {
                self.look_ahead(here, index + AHEAD);
                self.software.packet(&mut here.cpu(), index);
                self.does = if index + 1 < self.polled { Does::Packet(index + 1) } else { Does::Flush };
            }
            Does::Flush => {
                self.software.flush(&mut here.cpu());
                self.does = Does::Poll;
            }
        }
        Next::Again
    }

    fn account(&self) -> Account {
        let (transmit_used, transmit_entries) = self.software.transmit_occupancy();
        Account {
            taken: self.software.taken(),
            pushed: self.software.pushed(),
            kept: self.software.kept(),
            in_hand: self.in_hand(),
            buffers: self.software.buffers(self.waiting()),
            bursts: self.bursts,
            transmit_used,
            transmit_entries,
            refused_buffers: self.software.pool().refused(),
            ..Account::default()
        }
    }

    fn drops(&self) -> DropCounters {
        self.software.drops.clone()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.software.app.counters()
    }

    fn polls_rings(&self) -> bool {
        true
    }

    fn describe(&self) -> Option<String> {
        let (taken, pushed) = (self.software.taken(), self.software.pushed());
        Some(format!("next {:?}, {} in hand, {taken} taken, {pushed} pushed", self.does, self.in_hand()))
    }
}
