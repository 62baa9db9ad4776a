//! A NIC processor in virtual time: FPCs whose threads hide memory latency, memories, DMA queues, reordering.
//!
//! ```text
//!  pool (a stage): queues of work ─► threads of FPCs ─► script: compute, command, compute, command … ─► done
//!     units.rs: memories with queues   cache.rs: where a connection's state is   dma.rs: quotas, priorities
//! ```
//!
//! A core runs one thread at a time and does not preempt it: a thread computes, issues a command to a memory, and swaps
//! out until that is complete. So a stage with one thread waits for memory, and one with eight computes meanwhile. What
//! work means is the caller's: it hears of marked steps and of the end of each script.

mod agenda;
mod cache;
mod config;
mod dma;
mod reorder;
#[cfg(test)]
mod tests;
mod units;

use std::collections::VecDeque;

use nicforge_units::{Cycles, Frequency, Time};

use agenda::{Agenda, What};

pub use cache::{Cam, Direct, StateCache, StateCounters};
pub use config::{Firmware, FpcConfig, NpuConfig, NpuDma, NpuMemory};
pub use dma::{DmaEngine, DmaKind};
pub use reorder::Reorder;
pub use units::{Command, Units};

/// A step of a script: a share of its instructions, then a memory command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// The command.
    pub command: Command,
    /// Not zero: the caller hears of the step before its command, and says when it goes on.
    pub mark: u8,
}

/// A step of a thread's work.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    /// Its steps, at least one.
    pub ops: &'static [Op],
    /// Instructions of all steps together; each has an equal share.
    pub cycles: Cycles,
}

/// A thread, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadId(u32);

/// An occurrence that the caller hears of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened<J, E> {
    /// A thread has computed a marked step and waits for [`Processor::proceed`].
    Mark {
        /// Which.
        thread: ThreadId,
        /// Its work.
        job: J,
        /// The step's mark.
        mark: u8,
    },
    /// A thread has done its work.
    Done {
        /// Of which pool.
        pool: usize,
        /// Its work.
        job: J,
    },
    /// An event of the caller's.
    Event(E),
}

/// Where a stage's time went, summed over its threads, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTime {
    /// Pieces of work done.
    pub items: u64,
    /// Computing.
    pub compute_ps: u64,
    /// Waiting for memory.
    pub memory_ps: u64,
    /// Waiting for another thread of the core.
    pub core_ps: u64,
    /// Waiting for what the caller makes it wait for: locks, DMA.
    pub blocked_ps: u64,
    /// Work waiting for a thread.
    pub queued_ps: u64,
}

/// A stage's cores, and which queues their threads serve.
#[derive(Clone, Debug)]
pub struct PoolPlan {
    /// Its name in reports.
    pub name: &'static str,
    /// The island of each of its cores.
    pub islands: Vec<usize>,
    /// For each thread of a core: the queues that it serves, as bits.
    pub threads: Vec<u8>,
}

struct Pool<J> {
    name: &'static str,
    /// Its first core, and how many it has.
    first_fpc: usize,
    fpcs: usize,
    threads: usize,
    queues: Vec<VecDeque<(J, Script, Time)>>,
    /// Idle threads by the queues that they serve.
    idle: Vec<(u8, VecDeque<u32>)>,
    time: StageTime,
}

struct Fpc {
    island: usize,
    free_at: Time,
    busy_ps: u64,
}

struct Thread<J> {
    pool: usize,
    fpc: usize,
    serves: u8,
    /// The queue that it takes from next, if several have work.
    turn: usize,
    work: Option<(J, Script)>,
    step: usize,
    /// Since when it is blocked.
    since: Time,
}

/// A processor at work: `J` is a piece of work, `E` an event of the caller's.
pub struct Processor<J, E> {
    clock: Frequency,
    switch: Time,
    agenda: Agenda<E>,
    fpcs: Vec<Fpc>,
    threads: Vec<Thread<J>>,
    pools: Vec<Pool<J>>,
    /// The memories.
    pub units: Units,
}

impl<J: Copy, E> Processor<J, E> {
    /// A processor with `pools`.
    pub fn new(config: &NpuConfig, pools: &[PoolPlan]) -> Processor<J, E> {
        let clock = config.core.clock;
        let islands = pools.iter().flat_map(|pool| &pool.islands).max().map_or(1, |last| last + 1);
        let mut processor = Processor {
            clock,
            switch: clock.time_for(config.core.switch),
            agenda: Agenda::default(),
            fpcs: Vec::new(),
            threads: Vec::new(),
            pools: Vec::new(),
            units: Units::new(&config.memory, islands.max(config.core.islands), clock),
        };
        pools.iter().for_each(|plan| processor.add(plan));
        processor
    }

    fn add(&mut self, plan: &PoolPlan) {
        let (number, first_fpc) = (self.pools.len(), self.fpcs.len());
        for &island in &plan.islands {
            self.fpcs.push(Fpc { island, free_at: Time::ZERO, busy_ps: 0 });
        }
        let mut idle: Vec<(u8, VecDeque<u32>)> = Vec::new();
        // One thread of each core before the second of any, so that little work is spread over all cores.
        for &serves in &plan.threads {
            for fpc in first_fpc..self.fpcs.len() {
                let thread = self.threads.len() as u32;
                let since = Time::ZERO;
                self.threads.push(Thread { pool: number, fpc, serves, turn: 0, work: None, step: 0, since });
                match idle.iter_mut().find(|(queues, _)| *queues == serves) {
                    Some((_, threads)) => threads.push_back(thread),
                    None => idle.push((serves, VecDeque::from([thread]))),
                }
            }
        }
        let queues = plan.threads.iter().fold(0, |all, serves| all | serves);
        self.pools.push(Pool {
            name: plan.name,
            first_fpc,
            fpcs: plan.islands.len(),
            threads: plan.threads.len() * plan.islands.len(),
            queues: (0..8 - queues.leading_zeros()).map(|_| VecDeque::new()).collect(),
            idle,
            time: StageTime::default(),
        });
    }

    /// Its time.
    pub fn now(&self) -> Time {
        self.agenda.now()
    }

    /// When something happens next.
    pub fn due(&self) -> Time {
        self.agenda.due()
    }

    /// `event` happens at `at`, or now if that is past.
    pub fn at(&mut self, at: Time, event: E) {
        self.agenda.push_event(at, event);
    }

    /// Gives `job` to a thread of `pool` that serves `queue`, or lets it wait for one.
    pub fn put(&mut self, pool: usize, queue: usize, job: J, script: Script) {
        let bit = 1 << queue;
        let idle = self.pools[pool].idle.iter_mut().find(|(serves, idle)| serves & bit != 0 && !idle.is_empty());
        match idle.and_then(|(_, idle)| idle.pop_front()) {
            Some(thread) => self.begin(thread, job, script),
            None => self.pools[pool].queues[queue].push_back((job, script, self.agenda.now())),
        }
    }

    fn begin(&mut self, thread: u32, job: J, script: Script) {
        let state = &mut self.threads[thread as usize];
        (state.work, state.step) = (Some((job, script)), 0);
        self.agenda.push(self.agenda.now(), What::Ready(thread));
    }

    /// The next occurrence, if it comes by `until`.
    pub fn next(&mut self, until: Time) -> Option<Happened<J, E>> {
        loop {
            match self.agenda.pop(until)? {
                What::Ready(thread) => self.compute(thread),
                What::Ran(thread) => {
                    if let Some(happened) = self.ran(thread) {
                        return Some(happened);
                    }
                }
                What::Finished(thread) => {
                    if let Some(happened) = self.finish(thread) {
                        return Some(happened);
                    }
                }
                What::Event(event) => {
                    if let Some(event) = self.agenda.take_event(event) {
                        return Some(Happened::Event(event));
                    }
                }
            }
        }
    }

    /// A thread has what it waited for, and takes its turn on its core.
    fn compute(&mut self, thread: u32) {
        let state = &self.threads[thread as usize];
        let Some((_, script)) = state.work else { return };
        let (count, all) = (script.ops.len() as u64, script.cycles.0);
        let share = all / count + u64::from((state.step as u64) < all % count);
        let takes = self.switch + self.clock.time_for(Cycles(share));
        let fpc = &mut self.fpcs[state.fpc];
        let now = self.agenda.now();
        let begins = fpc.free_at.max(now);
        fpc.free_at = begins + takes;
        fpc.busy_ps += takes.as_ps();
        let time = &mut self.pools[state.pool].time;
        time.core_ps += begins.saturating_sub(now).as_ps();
        time.compute_ps += takes.as_ps();
        self.agenda.push(begins + takes, What::Ran(thread));
    }

    fn ran(&mut self, thread: u32) -> Option<Happened<J, E>> {
        let now = self.agenda.now();
        let state = &mut self.threads[thread as usize];
        let (job, script) = state.work?;
        state.since = now;
        match script.ops[state.step].mark {
            0 => {
                self.proceed(ThreadId(thread), Time::ZERO);
                None
            }
            mark => Some(Happened::Mark { thread: ThreadId(thread), job, mark }),
        }
    }

    /// A thread goes on with the command of its step, which takes `longer` than usual.
    pub fn proceed(&mut self, thread: ThreadId, longer: Time) {
        let now = self.agenda.now();
        let state = &mut self.threads[thread.0 as usize];
        let Some((_, script)) = state.work else { return };
        let command = script.ops[state.step].command;
        let latency = self.units.access(command, self.fpcs[state.fpc].island, now) + longer;
        let time = &mut self.pools[state.pool].time;
        time.blocked_ps += now.saturating_sub(state.since).as_ps();
        time.memory_ps += latency.as_ps();
        state.step += 1;
        let what = if state.step == script.ops.len() { What::Finished(thread.0) } else { What::Ready(thread.0) };
        self.agenda.push(now + latency, what);
    }

    fn finish(&mut self, thread: u32) -> Option<Happened<J, E>> {
        let (job, pool) = {
            let state = &mut self.threads[thread as usize];
            (state.work.take()?.0, state.pool)
        };
        self.pools[pool].time.items += 1;
        match self.next_work(thread) {
            Some((job, script)) => self.begin(thread, job, script),
            None => {
                let serves = self.threads[thread as usize].serves;
                let idle = self.pools[pool].idle.iter_mut().find(|(queues, _)| *queues == serves);
                idle.into_iter().for_each(|(_, threads)| threads.push_back(thread));
            }
        }
        Some(Happened::Done { pool, job })
    }

    /// Work that waits in a queue of the thread, which takes its queues in turn.
    fn next_work(&mut self, thread: u32) -> Option<(J, Script)> {
        let now = self.agenda.now();
        let state = &mut self.threads[thread as usize];
        let pool = &mut self.pools[state.pool];
        let count = pool.queues.len();
        for step in 0..count {
            let queue = (state.turn + step) % count;
            if state.serves & (1 << queue) != 0
                && let Some((job, script, since)) = pool.queues[queue].pop_front()
            {
                state.turn = queue + 1;
                pool.time.queued_ps += now.saturating_sub(since).as_ps();
                return Some((job, script));
            }
        }
        None
    }

    /// The core of a thread, counted from the first one of pool `first`.
    pub fn core_of(&self, thread: ThreadId, first: usize) -> usize {
        self.threads[thread.0 as usize].fpc - self.pools[first].first_fpc
    }

    /// How much work waits in a queue of a pool.
    pub fn waiting(&self, pool: usize, queue: usize) -> usize {
        self.pools[pool].queues[queue].len()
    }

    /// Name, cores, threads and time of each pool.
    pub fn stages(&self) -> impl Iterator<Item = (&'static str, usize, usize, StageTime)> + '_ {
        self.pools.iter().map(|pool| (pool.name, pool.fpcs, pool.threads, pool.time))
    }

    /// The busiest core of each pool, in picoseconds of computing so far.
    pub fn busiest(&self, pool: usize) -> u64 {
        let Pool { first_fpc, fpcs, .. } = self.pools[pool];
        self.fpcs[first_fpc..first_fpc + fpcs].iter().map(|fpc| fpc.busy_ps).max().unwrap_or(0)
    }
}
