//! The end of a bench: everything is taken, and every buffer must come to light.

use std::collections::BTreeSet;

use nicforge_nic::Packet;
use nicforge_platform::Addr;
use nicforge_units::Time;

use super::bench::{GUARD, GUARD_BYTES, HEADERS, buffers_of};
use super::frames::{FRAME_LEN_MIN, frame};
use super::{Bench, Ground};

impl<G: Ground> Bench<G> {
    /// Everything published is visible, everybody takes all there is, and frees it.
    pub fn drain(&mut self) {
        // What was held back is written in the first, and visible after the second.
        // A queue that gets buffers may let frames for another go on: a round without a find does
        // not say that there is nothing.
        let mut idle = 0;
        while idle < 2 {
            self.pass(Time::from_ms(1));
            self.pass(Time::from_ms(1));
            idle += 1;
            for queue in 0..self.drivers.len() {
                while self.poll(queue, 32) > 0 {
                    self.release_all();
                    idle = 0;
                }
            }
        }
        assert_eq!(self.outstanding(), 0, "{}: frames left behind", self.interface);
        self.check_guards();
    }

    /// The memory around the pool is as it was.
    pub fn check_guards(&mut self) {
        for guard in self.guards {
            let untouched = self.ground.peek(guard, GUARD_BYTES).iter().all(|&byte| byte == GUARD);
            assert!(untouched, "{}: written outside the pool", self.interface);
        }
    }

    /// Takes the system apart: every buffer of the pool comes to light exactly once.
    pub fn audit(mut self) {
        self.drain();
        let mut found = BTreeSet::new();
        let mut stock = Vec::new();
        for (core, cache) in self.caches.iter_mut().enumerate() {
            while let Some(mbuf) = cache.take(&mut *self.ground.core(core)) {
                note(&mut found, mbuf, self.interface);
                stock.push(mbuf);
            }
            // Those on nicmem stay out: then rings of second choice have their turn too.
            while let Some(near) = cache.nicmem()
                && let Some(mbuf) = near.take(&mut *self.ground.core(core))
            {
                note(&mut found, mbuf, self.interface);
            }
        }
        assert_eq!(found.len() as u64 + self.in_rings(), self.buffers() as u64);
        // A frame brings ring buffers out, for as many of the stock that take their place.
        let each = if self.splits() { 2 } else { 1 };
        for turn in 0..4 * self.buffers() {
            let queue = turn % self.drivers.len();
            self.switch((turn / self.drivers.len()) as u16);
            if found.len() == self.buffers() {
                return;
            }
            if stock.len() < each {
                break;
            }
            for fresh in stock.drain(stock.len() - each..) {
                self.caches[queue].give(&mut *self.ground.core(queue), fresh);
            }
            let len = FRAME_LEN_MIN + HEADERS;
            let packet = self.bring_out(queue, frame(queue as u32, self.sent, len));
            for mbuf in buffers_of(&packet) {
                let free = stock.contains(&mbuf);
                assert!(!free, "{}: {mbuf:?} is in two places", self.interface);
                found.insert(mbuf);
                if self.pool.number_of(mbuf).is_some() {
                    stock.push(mbuf);
                }
            }
            // What the driver did not need went back to the core at once.
            let cache = &mut self.caches[queue];
            while let Some(mbuf) = cache.take(&mut *self.ground.core(queue)) {
                found.insert(mbuf);
                stock.push(mbuf);
            }
            while let Some(near) = cache.nicmem()
                && let Some(mbuf) = near.take(&mut *self.ground.core(queue))
            {
                found.insert(mbuf);
            }
        }
        let (found, all) = (found.len(), self.buffers());
        panic!("{}: {found} of {all} buffers came to light", self.interface);
    }

    /// Whether each frame takes two buffers.
    pub(super) fn splits(&self) -> bool {
        let splits = ["split", "nm_nfv", "nm_nfv_minus"].contains(&self.interface);
        splits && !self.rx_inline
    }

    fn bring_out(&mut self, queue: usize, frame: Vec<u8>) -> Packet {
        let outcome = self.receive(queue as u32, &frame);
        assert_eq!(outcome, Ok(()), "{}", self.interface);
        self.pass(Time::from_us(10));
        self.pass(Time::from_us(10));
        let mut packets = Vec::new();
        let cache = &mut self.caches[queue];
        self.drivers[queue].rx_burst(&mut *self.ground.core(queue), cache, &mut packets, 1);
        self.ring();
        packets.pop().expect("the frame that was just delivered")
    }
}

fn note(found: &mut BTreeSet<Addr>, mbuf: Addr, interface: &str) {
    assert!(found.insert(mbuf), "{interface}: {mbuf:?} twice in the pool");
}
