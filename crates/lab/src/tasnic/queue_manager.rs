//! Whose turn it is: flows that may send, each at its rate (Carousel), as far as there are buffers.

use std::collections::VecDeque;

use nicforge_tcp::rate::Carousel;
use nicforge_units::Time;

/// News of post-processing about a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Update {
    /// Which.
    pub flow: u32,
    /// Sequence numbers that it may send.
    pub sendable: u32,
    /// Departures that this counts.
    pub departed: u64,
    /// Later news of a flow have higher ones: post-processing works out of order.
    pub version: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    latest: Update,
    /// Departures so far.
    begun: u64,
    /// Payload of a segment.
    mss: u32,
    /// Bytes per second; 0 is unlimited.
    rate: u32,
    /// It waits for its turn among flows without a rate.
    waits: bool,
}

impl Known {
    /// Bytes that are not on their way through the pipeline.
    fn pending(&self) -> u32 {
        let ahead = (self.begun - self.latest.departed) * u64::from(self.mss);
        u64::from(self.latest.sendable).saturating_sub(ahead) as u32
    }
}

/// The queue manager.
#[derive(Debug)]
pub struct QueueManager {
    carousel: Carousel,
    /// Flows without a rate, which pass the wheel by.
    ready: VecDeque<u32>,
    flows: Vec<Known>,
    /// Buffers for segments.
    credits: usize,
    /// When the wheel has to turn, as far as it was asked for.
    asked: Time,
}

impl QueueManager {
    /// Without flows, and with so many buffers.
    pub fn new(credits: usize) -> QueueManager {
        let (carousel, ready) = (Carousel::new(0), VecDeque::new());
        QueueManager { carousel, ready, flows: Vec::new(), credits, asked: Time::NEVER }
    }

    /// Flow `number` begins, whose segments carry up to `mss` bytes.
    pub fn add(&mut self, number: u32, mss: u32) {
        let number = number as usize;
        if number >= self.flows.len() {
            self.flows.resize(number + 1, Known::default());
            self.carousel.grow(number + 1);
        }
        // It may still stand in the line from its number's last flow.
        let waits = self.flows[number].waits;
        self.flows[number] = Known { mss, waits, ..Known::default() };
    }

    /// The slow path sets a flow's rate.
    pub fn set_rate(&mut self, flow: u32, rate: u32) {
        if let Some(known) = self.flows.get_mut(flow as usize) {
            known.rate = rate;
        }
    }

    /// Takes news of a flow, unless it has later ones.
    pub fn update(&mut self, update: &Update, now: Time) {
        let Some(known) = self.flows.get_mut(update.flow as usize) else { return };
        if update.version > known.latest.version {
            known.latest = *update;
        }
        if known.pending() > 0 {
            self.offer(update.flow, now);
        }
    }

    fn offer(&mut self, flow: u32, now: Time) {
        let known = &mut self.flows[flow as usize];
        if known.rate > 0 {
            self.carousel.offer(flow, now);
        } else if !std::mem::replace(&mut known.waits, true) {
            self.ready.push_back(flow);
        }
    }

    fn next(&mut self, now: Time) -> Option<u32> {
        if let Some(flow) = self.carousel.take(now) {
            return Some(flow);
        }
        let flow = self.ready.pop_front()?;
        self.flows[flow as usize].waits = false;
        Some(flow)
    }

    /// The next flow that sends a segment now. It takes a buffer.
    pub fn depart(&mut self, now: Time) -> Option<u32> {
        while self.credits > 0 {
            let flow = self.next(now)?;
            let known = &mut self.flows[flow as usize];
            let bytes = known.pending().min(known.mss);
            if bytes == 0 {
                continue;
            }
            known.begun += 1;
            self.credits -= 1;
            self.carousel.sent(flow, bytes, known.rate, now);
            if known.pending() > 0 {
                self.offer(flow, now);
            }
            return Some(flow);
        }
        None
    }

    /// A segment's buffer is free.
    pub fn give_back(&mut self) {
        self.credits += 1;
    }

    /// When the wheel has to turn, if it was not asked for yet.
    pub fn ask(&mut self, now: Time) -> Option<Time> {
        let due = self.carousel.due();
        let sooner = self.credits > 0 && due < Time::NEVER && due > now && due < self.asked;
        sooner.then(|| {
            self.asked = due;
            due
        })
    }

    /// The wheel turns.
    pub fn wheel_turned(&mut self) {
        self.asked = Time::NEVER;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn departures_follow_the_latest_news_and_count_what_is_on_its_way() {
        let mut manager = QueueManager::new(8);
        manager.add(0, 1000);
        let news = |sendable, departed, version| Update { flow: 0, sendable, departed, version };
        manager.update(&news(2500, 0, 1), Time::ZERO);
        let departures = std::iter::from_fn(|| manager.depart(Time::from_us(1))).count();
        assert_eq!(departures, 3);
        // The third departure left 500 bytes more; older news come later.
        manager.update(&news(500, 3, 9), Time::from_us(2));
        manager.update(&news(0, 3, 8), Time::from_us(2));
        assert_eq!(manager.depart(Time::from_us(3)), Some(0));
        assert_eq!(manager.depart(Time::from_us(3)), None);
    }

    #[test]
    fn without_buffers_flows_wait() {
        let mut manager = QueueManager::new(1);
        manager.add(0, 1000);
        manager.update(&Update { flow: 0, sendable: 5000, departed: 0, version: 1 }, Time::ZERO);
        assert_eq!((manager.depart(Time::from_us(1)), manager.depart(Time::from_us(1))), (Some(0), None));
        manager.give_back();
        assert_eq!(manager.depart(Time::from_us(1)), Some(0));
    }
}
