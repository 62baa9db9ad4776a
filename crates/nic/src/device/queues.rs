//! Receive queues that are closed and opened while others go on.

use std::ops::{Add, Range};

use nicforge_platform::Dma;

use super::{Nic, registers};
use crate::{DropCause, DropCounters, Lending, Waiting};

/// What a NIC knows of a receive queue, whatever its interface.
#[derive(Clone, Debug, Default)]
pub struct QueueState {
    /// Frames for it are dropped.
    pub closed: bool,
    /// Frames delivered since it last began.
    pub delivered: u64,
    /// Descriptors of it that named no buffer.
    pub bad: u64,
    /// Frames for it that were dropped since the run began, by cause.
    pub drops: DropCounters,
    /// Its entries waiting for software, and those there are, both summed over frames arriving for it
    /// since the run began.
    pub waiting: Waiting,
}

impl QueueState {
    /// A frame arrives, which finds the queue as full as `waiting` says.
    #[inline]
    pub(super) fn see(&mut self, waiting: Waiting) {
        self.waiting = self.waiting + waiting;
    }
}

fn count_bad(queues: &mut [QueueState], blamed: Range<u16>) {
    let range = usize::from(blamed.start)..usize::from(blamed.end);
    for state in queues.get_mut(range).into_iter().flatten() {
        state.bad += 1;
    }
}

impl<D: Dma> Nic<D> {
    /// Whose descriptor for `queue` named no buffer.
    pub(super) fn blamed(&self, queue: u16) -> Range<u16> {
        self.receive.recovery().map_or(queue..queue + 1, |half| half.blamed(queue))
    }

    /// From now on frames for `queue` are dropped as `queue_closed`, or no longer.
    pub fn set_closed(&mut self, queue: u16, closed: bool) {
        if let Some(state) = self.queues.get_mut(usize::from(queue)) {
            state.closed = closed;
        }
    }

    /// Whether frames for `queue` are dropped.
    pub fn is_closed(&self, queue: u16) -> bool {
        let state = self.queues.get(usize::from(queue));
        state.is_none_or(|state| state.closed)
    }

    /// A descriptor of one of `queues` named no buffer, as whoever plays a NIC behind this one found.
    pub fn blame(&mut self, queues: Range<u16>) {
        count_bad(&mut self.queues, queues);
    }

    /// A frame that was delivered to `queue` was dropped behind this NIC, before its software could
    /// take it.
    pub fn take_back(&mut self, queue: u16, cause: DropCause) {
        self.counters.delivered = self.counters.delivered.saturating_sub(1);
        match self.queues.get_mut(usize::from(queue)) {
            Some(state) => {
                state.delivered = state.delivered.saturating_sub(1);
                state.drops.count(cause.0);
            }
            None => self.unsteered.count(cause.0),
        }
    }

    /// Dropped frames by cause: those that had no queue yet, those that stages dropped on their way out, and each queue's.
    pub fn drops(&self) -> DropCounters {
        let of_queues = self.queues.iter().map(|state| &state.drops);
        [&self.unsteered, &self.stages.drops].into_iter().chain(of_queues).collect()
    }

    /// What is counted for each queue.
    pub fn queue_states(&self) -> &[QueueState] {
        &self.queues
    }

    /// Receive entries waiting for software, and those there are, summed over arriving frames.
    pub fn waiting_sum(&self) -> Waiting {
        self.queues.iter().map(|state| state.waiting).sum()
    }

    /// Whether frames for some queue are dropped.
    pub fn has_closed(&self) -> bool {
        self.queues.iter().any(|state| state.closed)
    }

    /// The queues of core `core`: one of each set.
    pub fn queues_of(&self, core: u16) -> impl Iterator<Item = u16> + use<D> {
        let sets = self.receive.sets().len() as u16;
        let each = self.receive.queues() / sets;
        (0..sets).map(move |set| set * each + core)
    }

    /// What core `core` borrowed and lent so far, where cores take each other's buffers.
    pub fn lending(&self, core: u16) -> Option<Lending> {
        let of = |queue| self.receive.lending(queue);
        self.queues_of(core).filter_map(of).reduce(Lending::add)
    }

    /// Receive entries that are no empty buffers, by set of queues. A ring that several queues share
    /// counts once.
    pub fn in_use(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let sets = self.receive.sets();
        let each = self.receive.queues() / sets.len() as u16;
        (0..).zip(sets).map(move |(set, &name)| {
            let queues = set * each..(set + 1) * each;
            let first = |queue: &u16| self.group(*queue).start == *queue;
            let entries = |queue| self.receive.waiting(queue).entries;
            (name, queues.filter(first).map(entries).sum())
        })
    }

    /// Frames delivered to `queue` since it last began.
    pub fn delivered_to(&self, queue: u16) -> u64 {
        let state = self.queues.get(usize::from(queue));
        state.map_or(0, |state| state.delivered)
    }

    /// Receive descriptors of `queue` that named no buffer, since it last began.
    pub fn bad_descriptors_of(&self, queue: u16) -> u64 {
        let state = self.queues.get(usize::from(queue));
        state.map_or(0, |state| state.bad)
    }

    /// The cores whose software writes register `index`.
    pub fn rung_by(&self, index: u32) -> Range<u16> {
        if index >= registers::TRANSMIT {
            let core = (index - registers::TRANSMIT) as u16;
            return core..core + 1;
        }
        if index >= registers::STEERING {
            return 0..0;
        }
        let each = self.receive.queues() / self.receive.sets().len() as u16;
        let index = index - registers::RECEIVE;
        let queues = self.receive.recovery().map_or(0..0, |half| half.rung_by(index));
        let set = queues.start / each;
        queues.start - set * each..queues.end - set * each
    }

    /// The cores `cores` restart with their queues of all sets and their transmit queues, see
    /// [`Recoverable::restart`](crate::Recoverable::restart). Returns all registers that belong to them.
    pub fn restart(&mut self, dma: &mut D, cores: Range<u16>) -> Option<Vec<u32>> {
        let sets = self.receive.sets().len() as u16;
        let each = self.receive.queues() / sets;
        let mut all = Vec::new();
        for set in 0..sets {
            let queues = set * each + cores.start..set * each + cores.end;
            let of_half = self.receive.recoverable()?.restart(dma, queues.clone())?;
            all.extend(of_half.into_iter().map(|index| registers::RECEIVE + index));
            for queue in queues {
                let state = &mut self.queues[usize::from(queue)];
                (state.delivered, state.bad) = (0, 0);
            }
        }
        for core in cores {
            self.transmit.restart(dma, usize::from(core));
            all.push(registers::TRANSMIT + u32::from(core));
        }
        Some(all)
    }

    /// The queues that share rings with `queue`, and it.
    fn group(&self, queue: u16) -> Range<u16> {
        self.receive.recovery().map_or(queue..queue + 1, |half| half.together(queue))
    }

    /// Buffers of core `from` that went out with packets for core `to`, less those that went the other way.
    pub fn lent(&self, from: u16, to: u16) -> i64 {
        // A core has a queue in each set, and lends within a set.
        let pairs = self.queues_of(from).zip(self.queues_of(to));
        self.receive.recovery().map_or(0, |half| pairs.map(|(from, to)| half.lent(from, to)).sum())
    }

    /// The cores that can only restart together with `core`.
    pub fn together(&self, core: u16) -> Range<u16> {
        let sets = self.receive.sets().len() as u16;
        let each = self.receive.queues() / sets;
        let groups = (0..sets).map(|set| {
            let group = self.group(set * each + core);
            group.start - set * each..group.end - set * each
        });
        let wider = |all: Range<u16>, group: Range<u16>| all.start.min(group.start)..all.end.max(group.end);
        groups.fold(core..core + 1, wider)
    }
}
