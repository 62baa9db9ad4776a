//! Flow contexts in the NIC's own memory: a write-back cache of the table's lines.

use std::collections::VecDeque;

use nicforge_platform::Dma;
use nicforge_units::{Bytes, CACHE_LINE_BYTES, Time};

use super::table::{FlowContext, FlowTable};

/// Lines that may stand in for one another.
const WAYS: usize = 8;
/// No line.
const NONE: u64 = u64::MAX;

#[derive(Clone, Copy, Debug)]
struct Way {
    line: u64,
    context: FlowContext,
    dirty: bool,
    /// When it came over the bus.
    here: Time,
    /// The access that used it last.
    used: u64,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextCounters {
    /// Lines asked for.
    pub lookups: u64,
    /// Of these, lines fetched from host memory.
    pub misses: u64,
    /// Lines written back to host memory to make room.
    pub evictions: u64,
}

/// The NIC's memory for flow contexts.
#[derive(Debug)]
pub struct Contexts {
    ways: Vec<Way>,
    sets: u64,
    accesses: u64,
    /// Fetches that may be on their way at a time, and when those that are will be here.
    fetches: usize,
    on_their_way: VecDeque<Time>,
    /// What was counted so far.
    pub counters: ContextCounters,
}

impl Contexts {
    /// Memory of `size` (at least one set of eight lines), of which up to `fetches` (at least 1)
    /// lines are fetched at a time.
    pub fn new(size: Bytes, fetches: usize) -> Contexts {
        let sets = (size.0 / CACHE_LINE_BYTES / WAYS as u64).max(1);
        let empty = Way { line: NONE, context: FlowContext::default(), dirty: false, here: Time::ZERO, used: 0 };
        Contexts {
            ways: vec![empty; sets as usize * WAYS],
            sets,
            accesses: 0,
            fetches: fetches.max(1),
            on_their_way: VecDeque::new(),
            counters: ContextCounters::default(),
        }
    }

    /// Line `line` of `table`, and when it is here. A fetch waits while as many as may be are on
    /// their way, and all that comes after it.
    pub fn get<D: Dma>(&mut self, dma: &mut D, table: &FlowTable, line: u64) -> (usize, Time) {
        self.accesses += 1;
        self.counters.lookups += 1;
        let first = (line % self.sets) as usize * WAYS;
        let set = &mut self.ways[first..first + WAYS];
        if let Some(place) = set.iter().position(|way| way.line == line) {
            set[place].used = self.accesses;
            return (first + place, set[place].here.max(dma.now()));
        }
        self.counters.misses += 1;
        let oldest = (0..WAYS).min_by_key(|&place| set[place].used);
        let place = oldest.unwrap_or(0);
        let victim = set[place];
        if victim.line != NONE && victim.dirty {
            self.counters.evictions += 1;
            let words = victim.context.encode();
            dma.write(table.address(victim.line), bytemuck::bytes_of(&words));
        }
        while self.on_their_way.len() >= self.fetches
            && let Some(first) = self.on_their_way.pop_front()
        {
            dma.wait_until(first);
        }
        let mut words = [0u64; 8];
        let here = dma.read_ahead(table.address(line), bytemuck::bytes_of_mut(&mut words));
        self.on_their_way.push_back(here);
        set[place] = Way { line, context: FlowContext::decode(&words), dirty: false, here, used: self.accesses };
        (first + place, here)
    }

    /// What is at `place`, as [`get`](Self::get) gave it.
    pub fn context(&self, place: usize) -> FlowContext {
        self.ways[place].context
    }

    /// Counts a frame of `bytes` for the flow at `place`.
    pub fn count(&mut self, place: usize, bytes: u64) {
        let way = &mut self.ways[place];
        way.context.packets += 1;
        way.context.bytes += bytes;
        way.dirty = true;
    }

    /// Writes back all that host memory does not know yet.
    pub fn write_back<D: Dma>(&mut self, dma: &mut D, table: &FlowTable) {
        for way in self.ways.iter_mut().filter(|way| way.dirty) {
            way.dirty = false;
            let words = way.context.encode();
            dma.write(table.address(way.line), bytemuck::bytes_of(&words));
        }
    }
}
