//! Where a connection's state is: local memory behind a CAM, CLS, external memory's SRAM, DRAM. A state is in one of
//! local memory and CLS, never in both.

use super::{Command, NpuMemory};

/// A fully associative cache of few connections, as a CAM with its LRU order makes it.
#[derive(Clone, Debug)]
pub struct Cam {
    /// The latest first.
    entries: Vec<u32>,
    most: usize,
}

impl Cam {
    /// Of `most` entries.
    pub fn new(most: usize) -> Cam {
        Cam { entries: Vec::with_capacity(most), most }
    }

    /// Looks `flow` up and makes it the latest. Returns whether it was there, and who had to go.
    pub fn take(&mut self, flow: u32) -> (bool, Option<u32>) {
        if let Some(place) = self.entries.iter().position(|entry| *entry == flow) {
            self.entries[..=place].rotate_right(1);
            return (true, None);
        }
        let evicted = if self.entries.len() == self.most { self.entries.pop() } else { None };
        self.entries.insert(0, flow);
        (false, evicted)
    }

    /// Throws everything out.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
}

/// A direct-mapped cache of connections.
#[derive(Clone, Debug)]
pub struct Direct(Vec<Option<u32>>);

impl Direct {
    /// Of `entries` places.
    pub fn new(entries: usize) -> Direct {
        Direct(vec![None; entries.max(1)])
    }

    /// Puts `key` at its place; returns whether it was there.
    pub fn put(&mut self, key: u32) -> bool {
        let place = key as usize % self.0.len();
        self.0[place].replace(key) == Some(key)
    }

    /// Takes `key` out; returns whether it was there.
    pub fn remove(&mut self, key: u32) -> bool {
        let place = key as usize % self.0.len();
        if self.0[place] == Some(key) {
            self.0[place] = None;
            return true;
        }
        false
    }

    /// Throws everything out.
    pub fn clear(&mut self) {
        self.0.fill(None);
    }
}

/// Counts of look-ups by where they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateCounters {
    /// In local memory.
    pub local: u64,
    /// In CLS.
    pub cls: u64,
    /// In external memory's cache.
    pub emem: u64,
    /// In DRAM.
    pub dram: u64,
}

/// The caches of a protocol core, before external memory.
#[derive(Clone, Debug)]
pub struct StateCache {
    local: Cam,
    cls: Direct,
    /// Look-ups.
    pub counters: StateCounters,
}

impl StateCache {
    /// Empty caches.
    pub fn new(memory: &NpuMemory) -> StateCache {
        StateCache {
            local: Cam::new(memory.cam_entries),
            cls: Direct::new(memory.cls_flows),
            counters: StateCounters::default(),
        }
    }

    /// Brings `flow` into local memory; `emem` is external memory's cache, which all islands share. Returns the command
    /// that fetches it.
    pub fn look_up(&mut self, flow: u32, emem: &mut Direct) -> Command {
        let (hit, evicted) = self.local.take(flow);
        if hit {
            self.counters.local += 1;
            return Command::Local;
        }
        let in_cls = self.cls.remove(flow);
        if let Some(evicted) = evicted {
            self.cls.put(evicted);
        }
        if in_cls {
            self.counters.cls += 1;
            Command::Cls
        } else if emem.put(flow) {
            self.counters.emem += 1;
            Command::Emem
        } else {
            self.counters.dram += 1;
            Command::Dram
        }
    }

    /// Everything goes back to external memory.
    pub fn evict_all(&mut self) {
        self.local.clear();
        self.cls.clear();
    }
}
