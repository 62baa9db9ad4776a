//! The emulating core's part: it plays the wrapped NIC, on packets of the physical rings.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use nicforge_nic::{Arriving, CompletionReader, DriverCosts, DropCause, PoolCache, ReceiveHalf};
use nicforge_platform::{Cpu, Dma, Ground, Part as Account};
use nicforge_units::Time;

use super::NicHalf;
use super::book::Book;
use super::core_dma::CoreDma;
use super::layout::Physical;
use super::served::{Served, unseen};
use super::whole::Whole;

/// Packets of a step, and buffers that the device is told of by one doorbell: a burst as
/// applications have it.
pub const BURST: usize = 32;

/// What the emulating core keeps between its steps.
#[derive(Debug)]
pub struct Emulator {
    rings: Vec<Served>,
    /// The ring of each completion that the device has written and that is not there to be seen yet, oldest
    /// first.
    announced: VecDeque<usize>,
    sets: Vec<RingSet>,
    costs: DriverCosts,
}

/// The physical rings of one set of queues.
#[derive(Debug)]
struct RingSet {
    rings: Range<usize>,
    /// Which of them has its turn.
    next: usize,
}

impl RingSet {
    /// Whose turn it is; then it is the next one's.
    fn turn(&mut self) -> usize {
        let number = self.next;
        self.next = if number + 1 == self.rings.end { self.rings.start } else { number + 1 };
        number
    }
}

/// A frame that the device delivered and the emulated NIC could not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Why.
    pub cause: DropCause,
    /// The queue that it was for.
    pub queue: u16,
    /// Its RSS hash.
    pub rss_hash: u32,
    /// When it came.
    pub stamp: Time,
}

/// What one step of the emulating core came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Packets that were passed on.
    pub passed: usize,
    /// Frames that were lost on the way.
    pub lost: Vec<Lost>,
    /// Physical rings whose packets wait for a doorbell, as the emulated NIC has no descriptor.
    pub stuck: usize,
    /// Whether it moved packets and there are more that need not wait.
    pub more: bool,
    /// Registers of the emulated NIC that were written what cannot be.
    pub refused: Vec<u32>,
    /// For each descriptor of the emulated NIC that named no buffer, whose it was.
    pub blamed: Vec<Range<u16>>,
}

impl Step {
    /// Packets that are off the physical rings.
    pub fn moved(&self) -> usize {
        self.passed + self.lost.len()
    }
}

impl Emulator {
    /// A core that serves `rings`, which count from their first positions. So many of them, one behind the
    /// other, are those of each set of queues.
    pub fn new(rings: Vec<(Physical, CompletionReader)>, of_sets: &[usize], costs: DriverCosts) -> Emulator {
        let served = |(physical, completions)| Served::new(physical, completions);
        let mut end = 0;
        let sets = of_sets.iter().map(|count| {
            let next = end;
            end += count;
            RingSet { rings: next..end, next }
        });
        Emulator {
            sets: sets.collect(),
            rings: rings.into_iter().map(served).collect(),
            announced: VecDeque::new(),
            costs,
        }
    }

    /// Ring `number` has descriptors up to `tail`.
    pub fn filled_to(&mut self, number: usize, tail: u64) {
        self.rings[number].filled_to(tail);
    }

    /// The core fills its rings with buffers of `pool`. From then on only the core adds buffers there.
    pub fn fill<C: Cpu>(&mut self, cpu: &mut C, pool: &mut PoolCache) {
        let rings = self.rings.iter_mut();
        rings.for_each(|served| served.fill(cpu, pool));
    }

    /// Buffers that the core put into its rings; as many stay there.
    pub fn holds(&self) -> u64 {
        self.rings.iter().map(Served::holds).sum()
    }

    /// All that lies in the rings that the core filled is its own, and stands in their descriptors,
    /// whatever was written there.
    pub fn claim<C: Cpu>(&self, cpu: &mut C, book: Option<&Book>) {
        self.rings.iter().for_each(|served| served.claim(cpu, book));
    }

    /// Forgets waiting packets for `queues`: their software is gone.
    pub fn forget(&mut self, queues: &Range<u16>) {
        for came in self.rings.iter_mut().flat_map(|served| &mut served.came) {
            came.take_if(|frame| queues.contains(&frame.queue));
        }
        self.try_again();
    }

    /// The device wrote a completion of ring `number`, for `frame` or without a frame.
    pub fn announced(&mut self, number: usize, frame: Option<&Arriving<'_>>) {
        self.announced.push_back(number);
        self.rings[number].came.push_back(frame.map(unseen));
    }

    /// A doorbell of the emulated NIC rang, which may have brought descriptors; nothing else does.
    fn try_again(&mut self) {
        for ring in &mut self.rings {
            ring.stuck = false;
        }
    }

    /// The oldest `count` completions of those that were announced can be seen now.
    fn see(&mut self, count: usize) {
        for ring in self.announced.drain(..count.min(self.announced.len())) {
            self.rings[ring].seen += 1;
        }
    }

    /// The set that has its turn, and until when its packets came that have: before all of another set, as
    /// drivers take them in this order.
    fn turn(&mut self) -> (usize, Time) {
        if self.sets.len() == 1 {
            return (0, Time::NEVER);
        }
        let (mut number, mut oldest, mut until) = (0, Time::NEVER, Time::NEVER);
        for (other, set) in self.sets.iter().enumerate() {
            let rings = self.rings[set.rings.clone()].iter();
            let came = rings.filter_map(Served::oldest_came).min();
            let came = came.unwrap_or(Time::NEVER);
            if came < oldest {
                (number, oldest, until) = (other, came, oldest);
            } else {
                until = until.min(came);
            }
        }
        if until < Time::NEVER {
            // Steering has left this set since: nothing is waited for any more.
            let rings = &mut self.rings[self.sets[number].rings.clone()];
            rings.iter_mut().for_each(|ring| ring.stuck = false);
        }
        (number, until)
    }

    /// Passes a burst on to `inner`, of packets from the rings in turn.
    fn pass_on<C: Cpu + 'static>(&mut self, way: &mut CoreDma<C>, played: &mut Played<C>, came_to: &mut Step) {
        for _ in 0..self.sets.len() {
            let (set, until) = self.turn();
            for _ in 0..self.sets[set].rings.len() {
                let served = &mut self.rings[self.sets[set].turn()];
                if served.can_move() {
                    served.serve(way, played, &self.costs, until, came_to);
                    if came_to.moved() == BURST {
                        return;
                    }
                }
            }
        }
    }
}

/// The NIC that a core plays.
pub struct Played<C: Cpu + 'static> {
    /// The part that runs on the core.
    pub nic: Part<C>,
    /// Who has which buffer, where a ledger says that.
    pub book: Option<Arc<Book>>,
}

/// The part of a NIC that cores play.
pub enum Part<C: Cpu + 'static> {
    /// The receive half.
    Half(Box<dyn ReceiveHalf<CoreDma<C>>>),
    /// All of it.
    Whole(Box<Whole<C>>),
}

impl<C: Cpu + 'static> Played<C> {
    /// Its receive half.
    pub fn half(&self) -> &dyn ReceiveHalf<CoreDma<C>> {
        match &self.nic {
            Part::Half(half) => &**half,
            Part::Whole(whole) => &*whole.nic.receive,
        }
    }

    /// The same, to change something.
    pub fn half_mut(&mut self) -> &mut dyn ReceiveHalf<CoreDma<C>> {
        match &mut self.nic {
            Part::Half(half) => &mut **half,
            Part::Whole(whole) => &mut *whole.nic.receive,
        }
    }

    /// Register `index` was written.
    fn write_register(&mut self, way: &mut CoreDma<C>, index: u32, value: u64) -> bool {
        match &mut self.nic {
            Part::Half(half) => half.write_register(way, index, value),
            Part::Whole(whole) => whole.nic.write_register(way, index, value),
        }
    }

    /// The queues whose software wrote the descriptor that named no buffer, for a frame of `queue`.
    pub fn blamed(&self, queue: u16) -> Range<u16> {
        self.half().recovery().map_or(queue..queue + 1, |half| half.blamed(queue))
    }
}

impl<G: Ground> NicHalf<G> {
    /// The emulating core fills the physical rings with buffers of `pool` and rings their doorbells, where
    /// that is its task (`Plan::emulator_fills`).
    pub fn fill(&mut self, way: &mut CoreDma<G::Player>, pool: &mut PoolCache) {
        self.emulator.fill(&mut way.cpu, pool);
    }

    /// What the emulating core put into physical rings lies there and is written down as its own, and
    /// nothing else is, whatever was written there meanwhile.
    pub fn claim(&self, way: &mut CoreDma<G::Player>) {
        let book = self.played.book.as_deref();
        if let Some(book) = book {
            book.disclaim(&mut way.cpu);
        }
        self.emulator.claim(&mut way.cpu, book);
    }

    /// One step of the emulating core: what the wrapped NIC has to do, and a burst of packets from
    /// the physical rings in turn. Since the last step `seen` more of the device's completions have
    /// become visible. The core does not look at a ring without any: its polls hit its own L1, whose
    /// hits are part of `work`.
    pub fn emulate(&mut self, way: &mut CoreDma<G::Player>, seen: usize) -> Step {
        let part = way.cpu.enter(Account::Driver);
        let mut came_to = Step::default();
        for (index, value) in self.bells.drain(..) {
            self.emulator.try_again();
            let known = self.played.write_register(way, index, value);
            came_to.refused.extend((!known).then_some(index));
        }
        if self.played.half().due() <= way.now() {
            self.played.half_mut().advance(way);
        }
        self.emulator.see(seen);
        self.emulator.pass_on(way, &mut self.played, &mut came_to);
        let rings = &self.emulator.rings;
        came_to.stuck = rings.iter().filter(|ring| ring.stuck).count();
        came_to.more = came_to.moved() > 0 && rings.iter().any(Served::can_move);
        way.cpu.enter(part);
        came_to
    }

    /// Doorbells of the emulated NIC rang since its core looked.
    pub fn rang(&self) -> bool {
        !self.bells.is_empty()
    }

    /// Physical rings that the emulating core serves.
    pub fn rings(&self) -> usize {
        self.emulator.rings.len()
    }

    /// Whether the packet of completion `number`, counted from the oldest that cannot be seen yet,
    /// will stand behind one that waits for a doorbell.
    pub fn will_wait(&self, number: usize) -> bool {
        let ring = self.emulator.announced.get(number);
        ring.is_some_and(|&ring| self.emulator.rings[ring].stuck)
    }

    /// When the emulating core has something to do even if no packet comes.
    pub fn emulation_due(&self) -> Time {
        self.played.half().due()
    }
}
