//! One core: poll, then one packet at a time, then flush.
//!
//! A step is one poll, one packet or one flush, so that what the cores and the NICs do to the
//! caches interleaves as it would.

use std::collections::VecDeque;

use nicforge_platform::sim::{CoreCycles, Host, Lent, SimCore, SimCpu};
use nicforge_units::Time;

use super::core_time::spent_until;
use crate::packet_loop::PacketLoop;

/// What the core does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Poll,
    Packet(usize),
    Flush,
}

/// A core that runs an application over one receive queue.
pub struct CoreActor {
    /// Its time and accounting.
    pub core: Lent<SimCore>,
    /// What runs on it.
    pub software: PacketLoop<SimCpu>,
    next: Next,
    /// Packets of the last poll.
    polled: usize,
    /// Times of publishes to this core that it has not polled for yet, oldest first.
    published: VecDeque<Time>,
    /// Receive calls that brought packets.
    bursts: u64,
}

impl CoreActor {
    /// A core at the beginning of a run.
    pub fn new(core: Lent<SimCore>, software: PacketLoop<SimCpu>) -> CoreActor {
        CoreActor { core, software, next: Next::Poll, polled: 0, published: VecDeque::new(), bursts: 0 }
    }

    /// Brings the queue up, before the run.
    pub fn start(&mut self, cpu: &mut SimCpu) {
        self.software.start(cpu);
    }

    /// Something was published to this core, visible at `time`.
    pub fn notice(&mut self, time: Time) {
        // A core has one NIC, whose link delivers in order.
        debug_assert!(self.published.back().is_none_or(|last| *last <= time));
        self.published.push_back(time);
    }

    /// When a core that found nothing polls again: at the next publish.
    pub fn sleeps_until(&self) -> Time {
        self.published.front().copied().unwrap_or(Time::NEVER)
    }

    /// One step at `now`; returns the time of the next, or `None` when the core sleeps.
    // Not where actors are told apart: that, taken into one function with it, was slower.
    #[inline(never)]
    pub fn step(&mut self, host: &mut Lent<Host>, now: Time) -> Option<Time> {
        match self.next {
            Next::Poll => {
                self.core.idle_until(now);
                if !self.poll(host) {
                    // Without buffers frames may wait although the poll found nothing: it goes
                    // on polling until transmit completions bring some back.
                    let starved = self.software.is_starved();
                    return starved.then(|| self.core.now());
                }
                self.next = Next::Packet(0);
            }
            Next::Packet(index) => {
                let mut cpu = SimCpu::on(host, &mut self.core);
                self.software.packet(&mut cpu, index);
                self.next = match index + 1 < self.polled {
                    true => Next::Packet(index + 1),
                    false => Next::Flush,
                };
            }
            Next::Flush => {
                let mut cpu = SimCpu::on(host, &mut self.core);
                self.software.flush(&mut cpu);
                self.next = Next::Poll;
            }
        }
        Some(self.core.now())
    }

    fn poll(&mut self, host: &mut Lent<Host>) -> bool {
        let before = self.core.spent().clone();
        let buffers = self.software.buffers_in_rings();
        while self.published.front().is_some_and(|&time| time <= self.core.now()) {
            self.published.pop_front();
        }
        self.core.begin_burst();
        let mut cpu = SimCpu::on(host, &mut self.core);
        self.polled = self.software.poll(&mut cpu, 0);
        if self.polled == 0 {
            self.software.reclaim(&mut cpu);
            drop(cpu);
            // A poll that found no packet but moved buffers did work.
            if self.software.buffers_in_rings() == buffers {
                self.core.count_as_idle(&before);
            }
            return false;
        }
        self.bursts += 1;
        true
    }

    /// Receive calls that brought packets so far.
    pub fn bursts(&self) -> u64 {
        self.bursts
    }

    /// Receive calls until `now`: those that brought packets, and as many as fit into the time
    /// that was spent on empty ones.
    pub fn receive_calls(&self, now: Time) -> u64 {
        let config = self.core.config();
        let empty = config.frequency.time_for(config.empty_poll).as_ps();
        self.bursts + self.spent_until(now).idle_ps / empty.max(1)
    }

    /// Where its time went until `now`.
    pub fn spent_until(&self, now: Time) -> CoreCycles {
        spent_until(&self.core, now)
    }

    /// Packets of the last poll that are not handled yet.
    fn waiting(&self) -> usize {
        match self.next {
            Next::Packet(index) => self.polled - index,
            Next::Poll | Next::Flush => 0,
        }
    }

    /// Packets between poll and flush.
    pub fn in_hand(&self) -> u64 {
        (self.waiting() + self.software.to_flush()) as u64
    }

    /// Buffers that this core answers for: in its rings, its stack and its hands. Only the sum
    /// over all cores counts.
    pub fn buffers(&self) -> i64 {
        self.software.buffers(self.waiting())
    }

    /// What it waits for, for a run that is stuck.
    pub fn describe(&self) -> String {
        format!(
            "core at {}: next {:?}, {} in hand, {} taken, {} pushed",
            self.core.now(),
            self.next,
            self.in_hand(),
            self.software.taken(),
            self.software.pushed()
        )
    }
}
