//! A transmit queue whose software is gone restarts.

use nicforge_platform::Dma;
use nicforge_units::Time;

use super::TransmitEngine;

impl TransmitEngine {
    /// Descriptors of queue `number` that were served since it last began.
    pub fn served_of(&self, number: usize) -> u64 {
        let queue = self.queues.get(number);
        queue.map_or(0, |queue| queue.served - queue.ring.first)
    }

    /// Descriptors of queue `number` that named no memory or too much of it, since it last began.
    pub fn bad_descriptors_of(&self, number: usize) -> u64 {
        self.queues.get(number).map_or(0, |queue| queue.bad)
    }

    /// Forgets what queue `number` holds: nothing of it is sent or reported any more, and its
    /// positions count from the beginning again. The ring's software has stopped.
    pub fn restart<D: Dma>(&mut self, dma: &mut D, number: usize) {
        let Some(queue) = self.queues.get_mut(number) else {
            return;
        };
        let first = queue.ring.first;
        self.served_before += queue.served - first;
        (queue.tail, queue.fetched, queue.served) = (first, first, first);
        queue.bad = 0;
        queue.waiting.clear();
        queue.inlined.clear();
        queue.sends_late = false;
        queue.not_before = Time::ZERO;
        self.busy.retain(|&other| other != number);
        self.reports.retain(|&(_, other, _)| other != number);
        self.late_reports.retain(|&(_, other, _)| other != number);
        dma.publish(queue.ring.done, &first.to_ne_bytes());
    }
}
