//! Context queues from the NIC's side: entries to applications (ARX), entries from them (ATX), and their doorbells.

use std::collections::VecDeque;

use nicforge_platform::Addr;
use nicforge_tcp::fast::Bump;
use nicforge_tcp::queue::{ENTRY_LEN, Entry, FromApplication, ToApplication};
use nicforge_units::Time;

use super::nic::{Event, Job, Nic};
use super::transfer::Operation;
use super::work::{Kind, Slab, Work};
use crate::tas::queue::Place;

/// Descriptors for applications' entries: the pool bounds what applications can have under way.
const DESCRIPTORS: usize = 512;
/// The register of the slow path's doorbell; below it each context has two.
pub const SLOW_DOORBELL: u32 = 1 << 16;

/// The doorbell of a context: how many entries the application has written so far.
pub const fn written_register(context: usize) -> u32 {
    context as u32 * 2
}

/// How many entries for it the application has freed so far.
pub const fn freed_register(context: usize) -> u32 {
    context as u32 * 2 + 1
}

/// Both queues of an application's core.
#[derive(Clone, Debug)]
pub struct Context {
    to_application: Place,
    from_application: Place,
    /// Entries for the application: put so far, and freed so far as the doorbell says.
    put: u64,
    freed: u64,
    /// Of those put, entries on their way to memory.
    placing: u64,
    /// Entries that wait for room.
    waiting: VecDeque<u32>,
    /// Entries from it: written so far as the doorbell says, and taken so far.
    written: u64,
    taken: u64,
    /// Of those taken, entries that are not free in memory yet.
    unfreed: u64,
}

impl Context {
    /// Over two empty queues.
    pub fn new(to_application: Place, from_application: Place) -> Context {
        let waiting = VecDeque::new();
        Context {
            to_application,
            from_application,
            put: 0,
            freed: 0,
            placing: 0,
            waiting,
            written: 0,
            taken: 0,
            unfreed: 0,
        }
    }
}

/// An entry and the context that it is for.
pub type Notice = (usize, ToApplication);

/// All contexts.
#[derive(Debug)]
pub struct Contexts {
    all: Vec<Context>,
    /// Entries on their way to contexts.
    pub notices: Slab<Notice>,
    /// Descriptors for entries from applications.
    descriptors: usize,
    /// How often idle contexts' queues are looked at, in case a doorbell was lost.
    pub idle_every: Time,
}

impl Contexts {
    /// Of `all`.
    pub fn new(all: Vec<Context>, idle_every: Time) -> Contexts {
        Contexts { all, notices: Slab::default(), descriptors: DESCRIPTORS, idle_every }
    }

    /// Memory of the queue that application core `context` fills.
    #[cfg(test)]
    pub fn memory_of(&self, context: usize) -> (Addr, usize) {
        let place = self.all[context].from_application;
        (place.slot(0), place.entries() as usize * ENTRY_LEN)
    }
}

/// A counter's next value, whose low 32 bits are `low`; nothing for a doorbell that later ones have overtaken.
fn advance(counter: u64, low: u64) -> Option<u64> {
    let more = (low as u32).wrapping_sub(counter as u32);
    (more as i32 >= 0).then(|| counter + u64::from(more))
}

impl Nic {
    /// A register write has arrived.
    pub(super) fn write_register(&mut self, index: u32, value: u64) {
        if index == SLOW_DOORBELL {
            return self.take_commands();
        }
        let times = match (self.happens(self.options.tasnic_doorbell_loss), self.options.tasnic_doorbell_twice) {
            (true, _) => 0,
            (false, twice) => 1 + usize::from(self.happens(twice)),
        };
        for _ in 0..times {
            self.ring(index, value);
        }
    }

    fn ring(&mut self, index: u32, value: u64) {
        let number = index as usize / 2;
        let Some(context) = self.contexts.all.get_mut(number) else {
            self.counters.bad_entries += 1;
            return;
        };
        if index == freed_register(number) {
            let Some(freed) = advance(context.freed, value) else { return };
            if freed > context.put {
                self.counters.bad_entries += 1;
                return;
            }
            context.freed = freed;
            return self.place_waiting(number);
        }
        let Some(written) = advance(context.written, value) else { return };
        if written - context.taken > context.from_application.entries().into() {
            self.counters.bad_entries += 1;
            return;
        }
        context.written = written;
        let script = self.scripts.context();
        self.npu.put(self.pools.atx, 0, Job::Doorbell(number), script);
    }

    /// The ATX manager has seen the doorbell of context `number`.
    pub(super) fn take_entries(&mut self, number: usize) {
        loop {
            let context = &mut self.contexts.all[number];
            if context.taken == context.written || self.contexts.descriptors == 0 {
                return;
            }
            self.contexts.descriptors -= 1;
            let index = context.taken;
            context.taken += 1;
            context.unfreed += 1;
            let at = context.from_application.slot(index);
            self.issue(Operation::Take { context: number, index, at, bytes: [0; ENTRY_LEN], is_probe: false });
        }
    }

    /// An entry of an application is here.
    pub(super) fn took(&mut self, number: usize, index: u64, at: Addr, bytes: &[u8; ENTRY_LEN], is_probe: bool) {
        let entry = FromApplication::decode(bytes);
        if is_probe {
            let context = &mut self.contexts.all[number];
            if entry != Ok(None) && context.taken == index && context.written == index {
                // Its doorbell was lost; more of them may have been.
                context.written = index + 1;
                self.take_entries(number);
                self.probe(number);
            }
            return;
        }
        self.issue(Operation::Null { context: number, at });
        let flow = |entry: &FromApplication| {
            let flow = self.flows.get(entry.flow as usize)?;
            (usize::from(flow.state.post.context) == number && !flow.is_gone).then_some(entry.flow)
        };
        match entry {
            Ok(Some(entry)) if flow(&entry).is_some() => {
                let bump = Bump { rx: entry.rx_bump, tx: entry.tx_bump, close: entry.no_more_data };
                let (kind, flow, entry) = (Kind::Ac, entry.flow, entry.bump_seq);
                self.begin(Work { kind, flow, bump, entry, ..Work::default() });
            }
            _ => {
                self.counters.bad_entries += 1;
                self.descriptor_is_free();
            }
        }
    }

    /// A descriptor is back in the pool: contexts that waited for one go on.
    pub(super) fn descriptor_is_free(&mut self) {
        self.contexts.descriptors += 1;
        for number in 0..self.contexts.all.len() {
            self.take_entries(number);
        }
    }

    /// Looks into queues whose doorbell is silent.
    pub(super) fn look_at_idle_contexts(&mut self) {
        let next = self.npu.now() + self.contexts.idle_every;
        self.npu.at(next, Event::Idle);
        for number in 0..self.contexts.all.len() {
            self.probe(number);
            self.look_for_room(number);
        }
    }

    /// Entries wait for room in a queue that is full as far as its doorbell said: the next one that the application
    /// frees may be free.
    fn look_for_room(&mut self, number: usize) {
        let context = &self.contexts.all[number];
        // An entry that has not reached memory looks like a free one.
        if !context.waiting.is_empty() && context.placing == 0 {
            let (index, at) = (context.freed, context.to_application.slot(context.freed));
            self.issue(Operation::Look { context: number, index, at, bytes: [0; ENTRY_LEN] });
        }
    }

    /// That entry is here.
    pub(super) fn looked(&mut self, number: usize, index: u64, bytes: &[u8; ENTRY_LEN]) {
        let context = &mut self.contexts.all[number];
        if context.freed == index && index < context.put && ToApplication::decode(bytes) == Ok(None) {
            context.freed += 1;
            self.place_waiting(number);
            self.look_for_room(number);
        }
    }

    /// An entry of an application is free.
    pub(super) fn nulled(&mut self, number: usize) {
        self.contexts.all[number].unfreed -= 1;
    }

    /// An entry for an application has reached memory.
    pub(super) fn placed(&mut self, number: usize) {
        self.contexts.all[number].placing -= 1;
    }

    fn probe(&mut self, number: usize) {
        let context = &self.contexts.all[number];
        // An entry that is not free yet looks like the one that will come there.
        if context.taken == context.written && context.unfreed == 0 {
            let (index, at) = (context.taken, context.from_application.slot(context.taken));
            self.issue(Operation::Take { context: number, index, at, bytes: [0; ENTRY_LEN], is_probe: true });
        }
    }

    /// An application has to be told something.
    pub(super) fn notify(&mut self, context: usize, news: &ToApplication) {
        let number = self.contexts.notices.put((context, *news));
        let script = self.scripts.context();
        self.npu.put(self.pools.arx, 0, Job::Entry(number), script);
    }

    /// The ARX manager finds a place for an entry.
    pub(super) fn place_entry(&mut self, number: u32) {
        let Some(&mut (context, _)) = self.contexts.notices.get(number) else { return };
        if let Some(context) = self.contexts.all.get_mut(context) {
            context.waiting.push_back(number);
        }
        self.place_waiting(context);
    }

    /// As many entries as have room go to the application.
    fn place_waiting(&mut self, number: usize) {
        loop {
            let Some(context) = self.contexts.all.get_mut(number) else { return };
            if context.put - context.freed >= context.to_application.entries().into() {
                return;
            }
            let Some(waits) = context.waiting.pop_front() else { return };
            let at = context.to_application.slot(context.put);
            context.put += 1;
            context.placing += 1;
            if let Some((_, news)) = self.contexts.notices.take(waits) {
                self.issue(Operation::Entry { context: number, at, bytes: news.encode() });
            }
        }
    }
}
