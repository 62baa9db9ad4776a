//! State of flows in the NIC's own memory: a write-back cache of lines of host memory, set-associative.

use std::collections::VecDeque;

use nicforge_platform::{Addr, Dma};
use nicforge_units::{Bytes, CACHE_LINE_BYTES, Time};

/// State of a flow that fits a line.
pub trait FlowState: Copy + Default {
    /// As it lies in host memory.
    fn encode(&self) -> [u64; 8];

    /// From host memory.
    fn decode(words: &[u64; 8]) -> Self;
}

/// Where a state is in the NIC's memory, until the next look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(usize);

/// Lines that may stand in for one another.
const WAYS: usize = 8;
/// No line.
const NONE: u64 = u64::MAX;

#[derive(Clone, Copy, Debug)]
struct Way<T> {
    line: u64,
    at: Addr,
    state: T,
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

/// The NIC's memory for state of flows.
#[derive(Debug)]
pub struct Contexts<T> {
    ways: Vec<Way<T>>,
    sets: u64,
    accesses: u64,
    /// Fetches that may be on their way at a time, and when those that are will be here.
    fetches: usize,
    on_their_way: VecDeque<Time>,
    /// What was counted so far.
    pub counters: ContextCounters,
}

impl<T: FlowState> Contexts<T> {
    /// Memory of `size` (at least one set of eight lines), of which up to `fetches` (at least 1)
    /// lines are fetched at a time.
    pub fn new(size: Bytes, fetches: usize) -> Contexts<T> {
        let sets = (size.0 / CACHE_LINE_BYTES / WAYS as u64).max(1);
        let empty = Way { line: NONE, at: Addr(0), state: T::default(), dirty: false, here: Time::ZERO, used: 0 };
        Contexts {
            ways: vec![empty; sets as usize * WAYS],
            sets,
            accesses: 0,
            fetches: fetches.max(1),
            on_their_way: VecDeque::new(),
            counters: ContextCounters::default(),
        }
    }

    /// Line `line`, which lies at `at` in host memory, and when it is here. A fetch waits while as many as may be are on
    /// their way, and all that comes after it.
    pub fn get<D: Dma>(&mut self, dma: &mut D, line: u64, at: Addr) -> (Place, Time) {
        self.accesses += 1;
        self.counters.lookups += 1;
        let first = (line % self.sets) as usize * WAYS;
        let set = &mut self.ways[first..first + WAYS];
        if let Some(place) = set.iter().position(|way| way.line == line) {
            set[place].used = self.accesses;
            return (Place(first + place), set[place].here.max(dma.now()));
        }
        self.counters.misses += 1;
        let oldest = (0..WAYS).min_by_key(|&place| set[place].used);
        let place = oldest.unwrap_or(0);
        let victim = set[place];
        if victim.line != NONE && victim.dirty {
            self.counters.evictions += 1;
            dma.write(victim.at, bytemuck::bytes_of(&victim.state.encode()));
        }
        while self.on_their_way.len() >= self.fetches
            && let Some(first) = self.on_their_way.pop_front()
        {
            dma.wait_until(first);
        }
        let mut words = [0u64; 8];
        let here = dma.read_ahead(at, bytemuck::bytes_of_mut(&mut words));
        self.on_their_way.push_back(here);
        set[place] = Way { line, at, state: T::decode(&words), dirty: false, here, used: self.accesses };
        (Place(first + place), here)
    }

    /// The state at `place`, as [`get`](Self::get) gave it.
    pub fn state(&self, place: Place) -> &T {
        &self.ways[place.0].state
    }

    /// The same, to change: host memory learns of it when the room is needed, or by
    /// [`write_back`](Self::write_back).
    pub fn state_mut(&mut self, place: Place) -> &mut T {
        let way = &mut self.ways[place.0];
        way.dirty = true;
        &mut way.state
    }

    /// Writes back all that host memory does not know yet.
    pub fn write_back<D: Dma>(&mut self, dma: &mut D) {
        for way in self.ways.iter_mut().filter(|way| way.dirty) {
            way.dirty = false;
            dma.write(way.at, bytemuck::bytes_of(&way.state.encode()));
        }
    }
}
