//! State of flows in the NIC's own memory: a write-back cache of a table in host memory, set-associative.

use std::collections::VecDeque;

use nicforge_platform::{Addr, Dma};
use nicforge_units::{Bytes, Time};

/// State of a flow.
pub trait FlowState: Clone + Default {
    /// Bytes that it takes in host memory and in the NIC's.
    const BYTES: usize;

    /// Writes it as it lies in host memory, in [`BYTES`](Self::BYTES) bytes.
    fn encode(&self, into: &mut [u8]);

    /// Reads it from host memory; zeros are a state that was never written.
    fn decode(bytes: &[u8]) -> Self;
}

/// Where a state is in the NIC's memory, until the next look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(usize);

/// States that may stand in for one another.
const WAYS: usize = 8;
/// No state.
const NONE: u64 = u64::MAX;

#[derive(Clone, Debug)]
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

/// Counters of a context cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextCounters {
    /// States asked for.
    pub lookups: u64,
    /// Of these, states fetched from host memory.
    pub misses: u64,
    /// States written back to host memory to make room.
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
    /// Where states are encoded.
    buffer: Vec<u8>,
    /// The counters so far.
    pub counters: ContextCounters,
}

impl<T: FlowState> Contexts<T> {
    /// Memory of `size` (at least one set of eight states), of which up to `fetches` (at least 1) are fetched at a time.
    pub fn new(size: Bytes, fetches: usize) -> Contexts<T> {
        let sets = (size.0 / T::BYTES.max(1) as u64 / WAYS as u64).max(1);
        let empty: Way<T> =
            Way { line: NONE, at: Addr(0), state: T::default(), dirty: false, here: Time::ZERO, used: 0 };
        Contexts {
            ways: vec![empty; sets as usize * WAYS],
            sets,
            accesses: 0,
            fetches: fetches.max(1),
            on_their_way: VecDeque::new(),
            buffer: vec![0; T::BYTES],
            counters: ContextCounters::default(),
        }
    }

    /// State number `line` of the table, which lies at `at` in host memory, and when it is here. While as many fetches as
    /// may be are on their way, the device waits.
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
        let victim = &set[place];
        if victim.line != NONE && victim.dirty {
            self.counters.evictions += 1;
            victim.state.encode(&mut self.buffer);
            dma.write(victim.at, &self.buffer);
        }
        while self.on_their_way.len() >= self.fetches
            && let Some(first) = self.on_their_way.pop_front()
        {
            dma.wait_until(first);
        }
        let here = dma.read_ahead(at, &mut self.buffer);
        self.on_their_way.push_back(here);
        set[place] = Way { line, at, state: T::decode(&self.buffer), dirty: false, here, used: self.accesses };
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
            way.state.encode(&mut self.buffer);
            dma.write(way.at, &self.buffer);
        }
    }
}
