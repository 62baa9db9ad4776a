//! Notes of what one thread does with some packets, from which [`followed`] makes their lives.
//!
//! Threads agree on the packets without a word: each looks at the time when a packet came in, which travels with it. Where
//! that turns out to choose too many, the device's thread halves the share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nicforge_units::Time;

use super::Clock;
use crate::tracer::{Counts, Event, Followed, Here, What, spread};
use crate::{BurstMoment, Moment, PacketKey};

/// Notes of a packet: about 15 on each thread.
const NOTES_EACH: usize = 32;

/// Which packets are noted, the same for all threads of a run.
#[derive(Debug)]
pub struct Sample {
    wanted: usize,
    /// Of the bits of a mixed time those that must be zero.
    mask: AtomicU64,
}

impl Sample {
    /// Until there are too many: all of them. Hardly ever do fewer than `wanted` remain.
    pub fn new(wanted: usize) -> Arc<Sample> {
        Arc::new(Sample { wanted, mask: AtomicU64::new(0) })
    }

    fn has(&self, key: PacketKey) -> bool {
        // Frames come at even distances often; a multiplication by an odd number spreads them (Knuth, section 6.4).
        let mixed = key.stamp.as_ps().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        mixed & self.mask.load(Ordering::Relaxed) == 0
    }

    /// So many are noted at most: of a half that is left to chance as many remain as are wanted.
    fn most(&self) -> usize {
        4 * self.wanted + 16
    }

    fn halve(&self) {
        let mask = self.mask.load(Ordering::Relaxed);
        self.mask.store(mask << 1 | 1, Ordering::Relaxed);
    }
}

/// The notes of a thread.
#[derive(Debug)]
pub struct Recorder {
    clock: Clock,
    sample: Arc<Sample>,
    /// The worker that it is; none for the device.
    worker: Option<usize>,
    notes: Vec<(PacketKey, Event)>,
    /// The receive call under way.
    polled: Vec<Event>,
    /// Packets of the burst, and whether each is in a ring whose doorbell has not rung.
    in_hand: Vec<(PacketKey, bool)>,
    /// Frames that came in, and how many of them are noted.
    came: u64,
    chosen: usize,
}

impl Recorder {
    /// Of the packets of `sample`, on the thread of `worker` or of the device.
    pub fn new(clock: Clock, sample: Arc<Sample>, worker: Option<usize>) -> Recorder {
        Recorder {
            clock,
            sample,
            worker,
            notes: Vec::new(),
            polled: Vec::new(),
            in_hand: Vec::new(),
            came: 0,
            chosen: 0,
        }
    }

    /// Packet `key` has come to `moment`.
    #[cold]
    pub(super) fn packet(&mut self, key: PacketKey, moment: Moment) {
        let comes = matches!(moment, Moment::Came { .. });
        self.came += u64::from(comes);
        if !self.sample.has(key) {
            return;
        }
        let event = self.event(What::Packet(moment), key.port);
        match moment {
            Moment::Handling { .. } => {
                self.in_hand.push((key, false));
                let polled = self.polled.iter().map(|event| (key, event.clone()));
                self.notes.extend(polled);
            }
            Moment::Pushed { .. } => {
                self.in_hand.iter_mut().filter(|(other, _)| *other == key).for_each(|(_, pushed)| *pushed = true);
            }
            _ => {}
        }
        self.notes.push((key, event));
        if comes {
            self.choose();
        }
        if self.notes.len() > self.sample.most() * NOTES_EACH {
            self.forget();
        }
    }

    /// The worker's burst has come to `moment`.
    #[cold]
    pub(super) fn burst(&mut self, moment: BurstMoment) {
        let event = self.event(What::Burst(moment), 0);
        match moment {
            BurstMoment::Poll => {
                self.in_hand.clear();
                self.polled.clear();
                self.polled.push(event);
            }
            BurstMoment::Polled { .. } => self.polled.push(event),
            BurstMoment::Flush => self.notes.extend(self.in_hand.iter().map(|(key, _)| (*key, event.clone()))),
            BurstMoment::Rung => {
                for (key, pushed) in &mut self.in_hand {
                    if std::mem::take(pushed) {
                        self.notes.push((*key, event.clone()));
                    }
                }
            }
        }
    }

    fn event(&self, what: What, port: u8) -> Event {
        let at = self.clock.now();
        let here = match self.worker {
            Some(worker) => Here::Core(worker),
            None => Here::Device { number: usize::from(port), landed: at },
        };
        Event { what, at, here, counts: Counts::default() }
    }

    /// One more is noted; where those are too many, half of them are forgotten.
    fn choose(&mut self) {
        self.chosen += 1;
        if self.chosen >= self.sample.most() {
            self.sample.halve();
            self.forget();
            self.chosen = self.notes.iter().filter(|(_, event)| is_arrival(event)).count();
        }
    }

    fn forget(&mut self) {
        let sample = &self.sample;
        self.notes.retain(|(key, _)| sample.has(*key));
    }
}

fn is_arrival(event: &Event) -> bool {
    matches!(event.what, What::Packet(Moment::Came { .. }))
}

/// The lives of the packets that `records` note together, and how many frames came in.
pub fn followed(records: Vec<Recorder>, wanted: usize) -> (Vec<Followed>, u64) {
    let came = records.iter().map(|record| record.came).sum();
    let notes: Vec<(PacketKey, Event)> = records.into_iter().flat_map(|record| record.notes).collect();
    let came_in = notes.iter().filter(|(_, event)| is_arrival(event));
    let mut lives: BTreeMap<Time, Followed> = came_in.map(|&(key, _)| (key.stamp, Followed::new(0, key))).collect();
    for (key, event) in notes {
        // A worker may still note what the device has forgotten.
        if let Some(life) = lives.get_mut(&key.stamp) {
            life.events.push(event);
        }
    }
    let mut lives: Vec<Followed> = lives.into_values().collect();
    for (number, life) in (0..).zip(&mut lives) {
        life.number = number;
        life.events.sort_by_key(|event| event.at);
    }
    (spread(lives, wanted), came)
}
