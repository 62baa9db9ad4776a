//! Follows some packets through a host: what happened to each when, and what the model had counted by then.
//!
//! NICs and software say by hints where they are with a packet. The tracer chooses packets as they come in, and copies
//! the counters of the agent at each of their moments. Between two moments of an agent's turn no other agent acts, so
//! the difference is the packet's own. Nothing of the model changes.

use std::collections::BTreeMap;

use nicforge_units::Time;

use crate::sim::{CoreCycles, DmaCounters, MemoryCounters};
use crate::{BurstMoment, Moment, PacketKey};

/// Who is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Here {
    /// A device, and when all that it has written so far is in memory.
    Device {
        /// Its number.
        number: usize,
        /// That time.
        landed: Time,
    },
    /// A core.
    Core(usize),
}

/// What the model has counted up to a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Of the memory system.
    pub memory: MemoryCounters,
    /// Of the device, if that is at work.
    pub dma: DmaCounters,
    /// Of the core, if that is at work.
    pub core: CoreCycles,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// To the packet alone.
    Packet(Moment),
    /// To its burst.
    Burst(BurstMoment),
    /// All that the device wrote of it is in memory.
    Landed,
    /// The doorbell of its burst arrives at the device.
    Bell,
}

/// A moment in the life of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub what: What,
    /// When.
    pub at: Time,
    /// Who was at work.
    pub here: Here,
    /// What was counted by then.
    pub counts: Counts,
}

/// A packet that was followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followed {
    /// How many came in before it since the tracer began.
    pub number: u64,
    /// Which it is.
    pub key: PacketKey,
    /// What happened, in order.
    pub events: Vec<Event>,
    /// The port and the core whose ring has it for sending.
    out: Option<(u8, usize)>,
}

impl Followed {
    /// Packet `key`, of which nothing is known yet.
    pub fn new(number: u64, key: PacketKey) -> Followed {
        Followed { number, key, events: Vec::new(), out: None }
    }
}

/// Of `all`, which are at even distances, `wanted` that still are.
pub fn spread(all: Vec<Followed>, wanted: usize) -> Vec<Followed> {
    let count = all.len();
    let is_kept = |place: usize| count <= wanted || (place + 1) * wanted / count > place * wanted / count;
    let each = all.into_iter().enumerate().filter(|(place, _)| is_kept(*place));
    each.map(|(_, packet)| packet).collect()
}

/// Whether packet `number` is the one of its 2^`halvings` neighbours. Of each pair of those that a halving less would
/// choose, one is left, now the first and now the second: packets at even distances could all be of one port.
fn is_chosen(number: u64, halvings: u32) -> bool {
    (0..halvings).all(|bit| (number >> bit) & 1 == u64::from(coin(number >> bit >> 1, bit)))
}

/// A coin that falls the same way each time: the last step of SplitMix64 over both numbers.
fn coin(pair: u64, halving: u32) -> bool {
    let mut mixed = pair.wrapping_add(u64::from(halving + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) & 1 == 1
}

/// A core's burst: its moments so far, and which followed packets are in it.
#[derive(Clone, Debug, Default)]
struct Burst {
    polled: Vec<Event>,
    packets: Vec<PacketKey>,
}

/// Follows one packet of every 2^`halvings`.
#[derive(Clone, Debug)]
pub struct Tracer {
    wanted: usize,
    halvings: u32,
    came: u64,
    chooses: bool,
    open: BTreeMap<PacketKey, Followed>,
    ended: Vec<Followed>,
    bursts: Vec<Burst>,
    /// The packet that a device begins to send: what becomes of it follows at once.
    gathers: Option<PacketKey>,
}

impl Tracer {
    /// Follows `wanted` packets, evenly spread over all that come in from now on.
    pub fn new(wanted: usize) -> Tracer {
        Tracer {
            wanted,
            halvings: 0,
            came: 0,
            chooses: true,
            open: BTreeMap::new(),
            ended: Vec::new(),
            bursts: Vec::new(),
            gathers: None,
        }
    }

    /// Chooses no more.
    pub fn close(&mut self) {
        self.chooses = false;
    }

    /// Whether a packet that it follows is still on its way.
    pub fn follows(&self) -> bool {
        !self.open.is_empty()
    }

    /// Packets that came in since it began.
    pub fn came(&self) -> u64 {
        self.came
    }

    /// Those that it followed, in the order in which they came in.
    pub fn into_packets(self) -> Vec<Followed> {
        let mut all: Vec<Followed> = self.open.into_values().chain(self.ended).collect();
        all.sort_by_key(|packet| packet.number);
        spread(all, self.wanted)
    }

    /// Packet `key` has come to `moment`.
    pub fn packet(
        &mut self,
        key: PacketKey,
        moment: Moment,
        (here, at): (Here, Time),
        counts: impl FnOnce() -> Counts,
    ) {
        if matches!((moment, here), (Moment::Came { .. }, Here::Device { .. })) {
            self.choose(key);
        }
        let Some(key) = self.find(key, moment) else {
            return;
        };
        let core = match here {
            Here::Core(core) => Some(core),
            Here::Device { .. } => None,
        };
        if let (Moment::Handling { .. }, Some(core)) = (moment, core) {
            self.join_burst(key, core);
        }
        let Some(packet) = self.open.get_mut(&key) else {
            return;
        };
        packet.events.push(Event { what: What::Packet(moment), at, here, counts: counts() });
        match (moment, here) {
            (Moment::Delivered, Here::Device { landed, .. }) => {
                packet.events.push(Event { what: What::Landed, at: landed, here, counts: Counts::default() });
            }
            (Moment::Pushed { port }, Here::Core(core)) => packet.out = Some((port, core)),
            _ => {}
        }
        let sent = matches!((moment, here), (Moment::Sent { .. }, Here::Device { .. }));
        if sent || matches!(moment, Moment::Dropped(_) | Moment::Kept) {
            self.ended.extend(self.open.remove(&key));
        }
    }

    /// The burst of `core` has come to `moment`; a doorbell that it rang last arrives at `bell`.
    pub fn burst(&mut self, core: usize, moment: BurstMoment, at: Time, (counts, bell): (Counts, Time)) {
        let event = Event { what: What::Burst(moment), at, here: Here::Core(core), counts };
        let burst = self.burst_of(core);
        match moment {
            BurstMoment::Poll => *burst = Burst { polled: vec![event], packets: Vec::new() },
            BurstMoment::Polled { .. } => burst.polled.push(event),
            BurstMoment::Flush | BurstMoment::Rung => {
                for key in burst.packets.clone() {
                    self.tell(key, &event, bell);
                }
            }
        }
    }

    /// Packet `key` of a burst comes to the burst's `event`, if its own way is that far.
    fn tell(&mut self, key: PacketKey, event: &Event, bell: Time) {
        let Some(packet) = self.open.get_mut(&key) else {
            return;
        };
        let last = packet.events.last().map(|event| event.what);
        match (event.what, last) {
            (What::Burst(BurstMoment::Flush), _) => packet.events.push(event.clone()),
            (What::Burst(BurstMoment::Rung), Some(What::Packet(Moment::Pushed { .. }))) => {
                packet.events.push(event.clone());
                packet.events.push(Event { what: What::Bell, at: bell, counts: Counts::default(), ..event.clone() });
            }
            _ => {}
        }
    }

    fn burst_of(&mut self, core: usize) -> &mut Burst {
        if self.bursts.len() <= core {
            self.bursts.resize_with(core + 1, Burst::default);
        }
        &mut self.bursts[core]
    }

    fn join_burst(&mut self, key: PacketKey, core: usize) {
        let burst = self.burst_of(core);
        burst.packets.push(key);
        let polled = burst.polled.clone();
        if let Some(packet) = self.open.get_mut(&key) {
            packet.events.extend(polled);
        }
    }

    /// A packet came in: it is followed if it is its turn.
    fn choose(&mut self, key: PacketKey) {
        if !self.chooses {
            return;
        }
        let number = self.came;
        self.came += 1;
        if !is_chosen(number, self.halvings) {
            return;
        }
        self.open.insert(key, Followed::new(number, key));
        if self.open.len() + self.ended.len() == 2 * self.wanted {
            self.halvings += 1;
            let halvings = self.halvings;
            self.open.retain(|_, packet| is_chosen(packet.number, halvings));
            self.ended.retain(|packet| is_chosen(packet.number, halvings));
        }
    }

    /// The followed packet that `key` means at `moment`.
    fn find(&mut self, key: PacketKey, moment: Moment) -> Option<PacketKey> {
        match (moment, self.gathers.take()) {
            (Moment::Gathering { queue, .. }, _) => {
                self.gathers = self.find_to_send(key, queue);
                self.gathers
            }
            // These follow at once.
            (Moment::Sent { .. } | Moment::Dropped(_) | Moment::Diverted, Some(gathered)) => Some(gathered),
            (Moment::Sent { .. }, None) => None,
            _ => self.open.contains_key(&key).then_some(key),
        }
    }

    /// The same where a packet is sent, from `queue`; the key has the port it leaves by. A core has put it into a ring
    /// of that port, or a stage has it.
    fn find_to_send(&self, key: PacketKey, queue: Option<u16>) -> Option<PacketKey> {
        let of_stamp = PacketKey { stamp: key.stamp, port: 0 }..=PacketKey { stamp: key.stamp, port: u8::MAX };
        let is_it = |packet: &&Followed| match (packet.out, queue) {
            (Some(out), Some(queue)) => out == (key.port, usize::from(queue)),
            (Some((port, _)), None) => port == key.port,
            (None, Some(_)) => false,
            (None, None) => packet.events.last().is_some_and(|event| event.what == What::Packet(Moment::Diverted)),
        };
        self.open.range(of_stamp).map(|(_, packet)| packet).find(is_it).map(|packet| packet.key)
    }
}

#[cfg(test)]
mod tests;
