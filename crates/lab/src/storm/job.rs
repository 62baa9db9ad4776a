//! Tasks: spouts tell users who wrote, counters count, rankers and the aggregator know those who wrote most.

use nicforge_apps::flexkvs::lookup3;
use nicforge_platform::{Addr, AddressSpace, Cpu, Part};
use nicforge_units::{CACHE_LINE_BYTES, Cycles, Time};
use nicforge_wire::traffic::Zipf;
use rand_core::SeedableRng;
use rand_pcg::Pcg64;

use super::options::StormOptions;
use super::topology::{AGGREGATOR, Kind, counter_of, kind_of, ranker_of};
use super::tuple::{NAME_BYTES, Name, Tuple, USERS, name_of};

/// Parts of a counter's window.
const PARTS: usize = 5;
/// Of a user a counter keeps a line with the name and one with the parts.
const USER_BYTES: u64 = NAME_BYTES as u64 + CACHE_LINE_BYTES;
/// What spouts read: as many tweets of one line in turn.
const TWEETS: u64 = 1 << 16;

/// The task of a worker.
#[derive(Debug)]
pub enum Job {
    /// See [`Kind::Spout`].
    Spout(Spout),
    /// See [`Kind::Counter`].
    Counter(Counter),
    /// See [`Kind::Ranker`] and [`Kind::Aggregator`].
    Ranker(Ranker),
}

fn ms(ms: f64) -> Time {
    Time::from_seconds(ms * 1e-3)
}

impl Job {
    /// Task `task`.
    pub fn new(task: u32, options: &StormOptions, space: &mut AddressSpace, seed: u64) -> Job {
        let work = Cycles(options.storm_work_cycles.into());
        match kind_of(task) {
            Kind::Spout => Job::Spout(Spout {
                task,
                work,
                zipf: Zipf::new(options.storm_users, options.storm_zipf_s),
                random: Pcg64::seed_from_u64(seed ^ u64::from(task) << 32),
                tweets: space.data(TWEETS * CACHE_LINE_BYTES, 4096),
                given: 0,
                most: match options.storm_spout_tuples {
                    0 => u64::MAX,
                    most => most,
                },
                interval: match options.storm_spout_mps {
                    0.0 => Time::ZERO,
                    rate => Time::from_seconds(1e-6 / rate),
                },
                next: Time::ZERO,
            }),
            Kind::Counter => Job::Counter(Counter::new(task, options, space)),
            Kind::Ranker | Kind::Aggregator => Job::Ranker(Ranker {
                task,
                work,
                at: space.data((USERS * NAME_BYTES) as u64, 64),
                first: Vec::new(),
                every: ms(options.storm_rank_ms),
                next: ms(options.storm_rank_ms),
            }),
        }
    }

    /// Takes a tuple.
    pub fn take<C: Cpu>(&mut self, cpu: &mut C, tuple: &Tuple) {
        cpu.enter(Part::App);
        match self {
            // Nobody sends to spouts.
            Job::Spout(_) => {}
            Job::Counter(counter) => tuple.users().for_each(|(name, _)| counter.count(cpu, &name)),
            Job::Ranker(ranker) => tuple.users().for_each(|user| ranker.rank(cpu, user)),
        }
    }

    /// The next tuple that it has for others.
    pub fn give<C: Cpu>(&mut self, cpu: &mut C) -> Option<Tuple> {
        if self.due() > cpu.now() {
            return None;
        }
        cpu.enter(Part::App);
        match self {
            Job::Spout(spout) => Some(spout.give(cpu)),
            Job::Counter(counter) => counter.give(cpu),
            Job::Ranker(ranker) => ranker.give(cpu),
        }
    }

    /// When it has one, if it takes none before.
    pub fn due(&self) -> Time {
        match self {
            Job::Spout(spout) if spout.given >= spout.most => Time::NEVER,
            Job::Spout(spout) => spout.next,
            Job::Counter(counter) if counter.told.is_some() => Time::ZERO,
            Job::Counter(counter) => counter.next,
            Job::Ranker(ranker) if ranker.task == AGGREGATOR => Time::NEVER,
            Job::Ranker(ranker) => ranker.next,
        }
    }
}

/// A source of tuples.
#[derive(Debug)]
pub struct Spout {
    task: u32,
    work: Cycles,
    zipf: Zipf,
    random: Pcg64,
    tweets: Addr,
    given: u64,
    most: u64,
    interval: Time,
    next: Time,
}

impl Spout {
    fn give<C: Cpu>(&mut self, cpu: &mut C) -> Tuple {
        cpu.work(self.work);
        cpu.bytes(self.tweets + self.given % TWEETS * CACHE_LINE_BYTES, NAME_BYTES);
        self.given += 1;
        self.next += self.interval;
        let name = name_of(self.zipf.draw(&mut self.random));
        Tuple::new(counter_of(&name), self.task, cpu.now(), &[(name, 1)])
    }
}

/// Counts of users in a window of five parts.
#[derive(Debug)]
pub struct Counter {
    task: u32,
    work: Cycles,
    /// An open hash table of users.
    at: Addr,
    slots: u64,
    used: u64,
    /// Users with counts, by their slots.
    active: Vec<u64>,
    /// While it tells counts: how many it told, and those of them that stay active.
    told: Option<(usize, Vec<u64>)>,
    part: usize,
    every: Time,
    next: Time,
    /// Names for which the table had no room.
    pub refused: u64,
}

impl Counter {
    fn new(task: u32, options: &StormOptions, space: &mut AddressSpace) -> Counter {
        // Twice as many as there are users on average.
        let slots = options.storm_users.next_power_of_two().max(16);
        Counter {
            task,
            work: Cycles(options.storm_work_cycles.into()),
            at: space.data(slots * USER_BYTES, 64),
            slots,
            used: 0,
            active: Vec::new(),
            told: None,
            part: 0,
            every: ms(options.storm_slot_ms),
            next: ms(options.storm_slot_ms),
            refused: 0,
        }
    }

    fn user(&self, slot: u64) -> Addr {
        self.at + slot * USER_BYTES
    }

    fn name<C: Cpu>(&self, cpu: &mut C, slot: u64) -> Name {
        let mut name = [0; NAME_BYTES];
        name.copy_from_slice(cpu.bytes(self.user(slot), NAME_BYTES));
        name
    }

    /// The slot of `name`; a new one if it has none and there is room.
    fn slot_of<C: Cpu>(&mut self, cpu: &mut C, name: &Name) -> Option<u64> {
        // The low bits chose the counter.
        let first = u64::from(lookup3(name, 1)) % self.slots;
        for slot in (0..self.slots).map(|step| (first + step) % self.slots) {
            let there = self.name(cpu, slot);
            if there == *name {
                return Some(slot);
            }
            if there[0] == 0 {
                self.used += 1;
                cpu.bytes_mut(self.user(slot), NAME_BYTES).copy_from_slice(name);
                return Some(slot);
            }
        }
        None
    }

    fn count<C: Cpu>(&mut self, cpu: &mut C, name: &Name) {
        cpu.work(self.work);
        let Some(slot) = self.slot_of(cpu, name) else {
            self.refused += 1;
            return;
        };
        let at = self.user(slot) + NAME_BYTES as u64;
        let mut parts: [u32; PARTS] = cpu.load(at);
        if parts == [0; PARTS] {
            self.active.push(slot);
        }
        parts[self.part] = parts[self.part].saturating_add(1);
        cpu.store(at, parts);
    }

    /// Tells one user's count, and empties the part that counts next.
    fn give<C: Cpu>(&mut self, cpu: &mut C) -> Option<Tuple> {
        let (told, mut stay) = self.told.take().unwrap_or_default();
        let Some(&slot) = self.active.get(told) else {
            self.active = stay;
            self.part = (self.part + 1) % PARTS;
            self.next += self.every;
            return None;
        };
        cpu.work(self.work);
        let (name, at) = (self.name(cpu, slot), self.user(slot) + NAME_BYTES as u64);
        let mut parts: [u32; PARTS] = cpu.load(at);
        let count = parts.iter().fold(0, |sum: u32, part| sum.saturating_add(*part));
        parts[(self.part + 1) % PARTS] = 0;
        cpu.store(at, parts);
        if parts != [0; PARTS] {
            stay.push(slot);
        }
        self.told = Some((told + 1, stay));
        Some(Tuple::new(ranker_of(&name), self.task, cpu.now(), &[(name, count)]))
    }

    /// Where its table lies, and its slots.
    #[cfg(test)]
    pub fn table(&self) -> (Addr, u64) {
        (self.at, self.slots)
    }
}

/// The users with the highest counts.
#[derive(Debug)]
pub struct Ranker {
    task: u32,
    work: Cycles,
    at: Addr,
    /// Highest first.
    pub first: Vec<(Name, u32)>,
    every: Time,
    next: Time,
}

impl Ranker {
    fn rank<C: Cpu>(&mut self, cpu: &mut C, user: (Name, u32)) {
        cpu.work(self.work);
        // The names are compared, and the place that changes is written.
        cpu.bytes(self.at, USERS * NAME_BYTES);
        cpu.store(self.at, u64::from(user.1));
        self.first.retain(|(name, _)| *name != user.0);
        self.first.push(user);
        self.first.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
        self.first.truncate(USERS);
    }

    fn give<C: Cpu>(&mut self, cpu: &mut C) -> Option<Tuple> {
        self.next += self.every;
        if self.first.is_empty() {
            return None;
        }
        cpu.work(self.work);
        Some(Tuple::new(AGGREGATOR, self.task, cpu.now(), &self.first))
    }
}
