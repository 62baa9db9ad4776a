//! What each core has for itself: its process, its packet buffers, the NICs that interrupt it, and
//! what others have left for it. With one core that is everything but the connections.

use std::collections::VecDeque;

use nicforge_interfaces::kernel::{Received, Sending, SlabCache};
use nicforge_nic::Segment;
use nicforge_units::Time;

use super::{AnyProcess, Call};

/// What a process waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    /// Nothing: it runs.
    No,
    /// Something to read on this connection.
    Readable(usize),
    /// Something to read on any connection.
    AnyReadable,
    /// Room in this connection's send buffer.
    Writable(usize),
    /// It has ended.
    Ever,
}

/// A packet that another core received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handed {
    /// From when on it is here.
    pub at: Time,
    /// The NIC that it came by.
    pub nic: usize,
    /// What it is.
    pub packet: Received,
    /// Whether it came when there was no other, and so with an interrupt.
    pub interrupts: bool,
}

/// One core's part of the kernel.
pub struct Processor {
    /// Buffers of packets.
    pub pool: SlabCache,
    /// What runs on it.
    pub process: AnyProcess,
    pub(super) call: Option<Call>,
    /// Bytes that the current call has moved.
    pub(super) moved: u64,
    pub(super) waiting: Waiting,
    /// Another core has brought what the process waits for, at this time.
    pub(super) woken: Option<Time>,
    /// The connection that a select looks at first.
    pub(super) select_from: usize,
    /// Interrupts on their way, by NIC.
    interrupts: Vec<VecDeque<Time>>,
    pub(super) polling: Vec<bool>,
    pub(super) polled: usize,
    /// The NIC whose turn is next.
    pub(super) poll_from: usize,
    /// Frames that the driver had no room for, or that wait for the thread that sends, by NIC, each
    /// with the time from which it is there.
    pub(super) queues: Vec<VecDeque<(Time, Sending)>>,
    /// From when on the thread that sends has a turn coming, by NIC.
    pub(super) sends_from: Vec<Time>,
    pub(super) received: Vec<Received>,
    /// Packets that other cores have left, the oldest first.
    pub(super) handed: VecDeque<Handed>,
    /// What came to the process in this step: the connection, the place in its stream, and where it
    /// is.
    pub(super) arrived: Vec<(usize, u64, Segment)>,
    /// The connection, and the place in its stream whose content stands where the process writes from.
    pub(super) made: Option<(usize, u64)>,
}

impl Processor {
    /// One of a system with `nics` NICs, which runs `process`.
    pub fn new(pool: SlabCache, process: AnyProcess, nics: usize) -> Processor {
        Processor {
            pool,
            process,
            call: None,
            moved: 0,
            waiting: Waiting::No,
            woken: None,
            select_from: 0,
            interrupts: vec![VecDeque::new(); nics],
            polling: vec![false; nics],
            polled: 0,
            poll_from: 0,
            queues: vec![VecDeque::new(); nics],
            sends_from: vec![Time::NEVER; nics],
            received: Vec::new(),
            handed: VecDeque::new(),
            arrived: Vec::new(),
            made: None,
        }
    }

    /// NIC `nic` interrupts at `time`.
    pub(super) fn interrupt(&mut self, nic: usize, time: Time) {
        self.interrupts[nic].push_back(time);
    }

    /// The first NIC that has interrupted by `now`.
    pub(super) fn interrupted_by(&self, now: Time) -> Option<usize> {
        let raised = |times: &VecDeque<Time>| times.front().is_some_and(|&time| time <= now);
        self.interrupts.iter().position(raised)
    }

    /// Its interrupt is taken.
    pub(super) fn taken(&mut self, nic: usize) {
        self.interrupts[nic].pop_front();
    }

    /// The next NIC in turn that is polled.
    pub(super) fn polled_next(&self) -> Option<usize> {
        let (before, after) = self.polling.split_at_checked(self.poll_from)?;
        let polled = |polling: &[bool]| polling.iter().position(|&polled| polled);
        let later = polled(after).map(|nic| self.poll_from + nic);
        later.or_else(|| polled(before))
    }

    /// A NIC whose sending thread has frames, and no news yet that there is no room for them.
    pub(super) fn thread_may_send(&self, now: Time) -> Option<usize> {
        self.sends_from.iter().position(|&from| from <= now)
    }

    /// When something that others do is here, interrupts above all.
    pub(super) fn due(&self) -> Time {
        let interrupts = self.interrupts.iter().filter_map(VecDeque::front).copied();
        let handed = self.handed.front().map(|handed| handed.at);
        let all = interrupts.chain(self.sends_from.iter().copied());
        let first = all.chain(handed).chain(self.woken).min();
        first.unwrap_or(Time::NEVER)
    }

    /// Packets that it holds: unsent, and handed over.
    pub(super) fn packets_held(&self) -> usize {
        let queued: usize = self.queues.iter().map(VecDeque::len).sum();
        queued + self.handed.len()
    }
}
