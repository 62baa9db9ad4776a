//! Frames that come in one right after the other, where a device's work takes no time of its own: all go
//! to the host at once, so that nothing waits in the FIFO, and what they have in common is done once.

use nicforge_platform::Dma;
use nicforge_units::{Bytes, Time};
use nicforge_wire::rss::Toeplitz;

use super::arrival::{Parsed, parse};
use super::queues::{QueueState, blame};
use super::{Nic, NicCounters};
use crate::{Arriving, DropCause, DropCounters, HalfJob, PortId, ReceiveHalf, Steering};

/// A frame, and what the parser found out about it, if it has seen it.
pub type Incoming<'a> = (&'a [u8], Option<&'a Parsed>);

impl<R: ReceiveHalf> Nic<R> {
    /// As [`receive`](Nic::receive) for each of `frames`, or [`receive_parsed`](Nic::receive_parsed).
    #[inline]
    pub fn receive_burst<'a, D: Dma>(&mut self, dma: &mut D, frames: impl Iterator<Item = Incoming<'a>>, stamp: Time) {
        if !D::INSTANT || self.hairpin.is_some() {
            for (frame, parsed) in frames {
                match parsed {
                    Some(parsed) => self.receive_parsed(dma, frame, parsed, stamp),
                    None => self.receive(dma, frame, stamp),
                }
            }
            return;
        }
        let path = Path {
            steering: &mut self.steering,
            rss: &self.rss,
            queues: &mut self.queues,
            unsteered: &mut self.unsteered,
            from: (stamp, self.spec.port),
            fifo: self.spec.rx_fifo,
        };
        let counters = &mut self.counters;
        self.receive.with_half(Burst { path, counters, dma, frames });
    }
}

/// What a frame passes on its way to an interface's half.
struct Path<'n> {
    steering: &'n mut Steering,
    rss: &'n Toeplitz,
    queues: &'n mut [QueueState],
    unsteered: &'n mut DropCounters,
    /// When the first bit came in, and on which port.
    from: (Time, PortId),
    fifo: Bytes,
}

/// A burst on its way.
struct Burst<'n, D, I> {
    path: Path<'n>,
    counters: &'n mut NicCounters,
    dma: &'n mut D,
    frames: I,
}

impl<'a, D: Dma, I: Iterator<Item = Incoming<'a>>> HalfJob for Burst<'_, D, I> {
    #[inline(never)]
    fn run<R: ReceiveHalf>(self, half: &mut R) {
        let Burst { mut path, counters, dma, frames } = self;
        let (mut count, mut bytes, mut delivered) = (0, 0, 0);
        for (frame, parsed) in frames {
            count += 1;
            bytes += frame.len() as u64;
            let Some(arriving) = path.arriving(frame, parsed) else {
                continue;
            };
            let state = &mut path.queues[usize::from(arriving.queue)];
            state.see(half.waiting(arriving.queue));
            match half.receive(dma, &arriving) {
                Ok(()) => {
                    delivered += 1;
                    state.delivered += 1;
                }
                Err(cause) => path.lose(half, arriving.queue, cause),
            }
        }
        counters.frames += count;
        counters.bytes += bytes;
        counters.delivered += delivered;
    }
}

impl Path<'_> {
    /// The frame as the parser and steering leave it; `None` if it was dropped, which is counted.
    #[inline(always)]
    fn arriving<'a>(&mut self, frame: &'a [u8], parsed: Option<&Parsed>) -> Option<Arriving<'a>> {
        let whole = (frame, frame.len());
        if Bytes(frame.len() as u64) > self.fifo {
            self.unsteered.count(DropCause::LONGER_THAN_FIFO.0);
            return None;
        }
        let steering = (&mut *self.steering, self.rss);
        let arriving = match parsed {
            Some(parsed) => parsed.arriving(whole, self.from, steering),
            None => match parse(self.rss, frame, frame.len()) {
                Ok(parsed) => parsed.arriving(whole, self.from, steering),
                Err(error) => {
                    self.unsteered.count(error.name());
                    return None;
                }
            },
        };
        let state = &mut self.queues[usize::from(arriving.queue)];
        if state.closed {
            state.drops.count("queue_closed");
            return None;
        }
        Some(arriving)
    }

    #[cold]
    fn lose<R: ReceiveHalf>(&mut self, half: &R, queue: u16, cause: DropCause) {
        self.queues[usize::from(queue)].drops.count(cause.0);
        if cause == DropCause::BAD_DESCRIPTOR {
            blame(half, self.queues, queue);
        }
    }
}

#[cfg(test)]
mod tests;
