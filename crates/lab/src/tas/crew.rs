//! Which fast-path core serves which flow-group, and how many cores the present load needs, by TAS's rule.
//!
//! A flow-group is what RSS puts into one receive queue: its flows, its queues and its part of the stack stay together,
//! and only one core serves them at a time. Few cores serve several groups each. A group changes hands when its core
//! begins a new round, so nothing is half done then.

use std::cell::RefCell;
use std::rc::Rc;

use nicforge_record::Switch;
use nicforge_tcp::scale::Scale;
use nicforge_units::Time;

use crate::world::program::Wake;

/// A crew that all fast-path cores of a host belong to.
pub type SharedCrew = Rc<RefCell<Crew>>;

/// The fast-path cores of a host.
#[derive(Debug)]
pub struct Crew {
    /// By flow-group: the core that serves it.
    serves: Vec<usize>,
    scale: Scale,
    /// By core: how long it was busy since the last look.
    busy: Vec<Time>,
    /// By core: packets that it took.
    pub received: Vec<u64>,
    /// How many cores there were, from when on.
    pub switches: Vec<Switch>,
    /// Who wakes whom.
    wakes: Vec<(usize, Wake)>,
}

impl Crew {
    /// At most `most` cores, one at first, for as many flow-groups. Decisions fall `every` so often.
    pub fn new(most: usize, every: Time) -> Crew {
        Crew {
            serves: vec![0; most],
            scale: Scale::new(most, every, Time::ZERO),
            busy: vec![Time::ZERO; most],
            received: vec![0; most],
            switches: Vec::new(),
            wakes: Vec::new(),
        }
    }

    /// The flow-groups that `core` serves in the round that it begins at `now`. Those that others shall serve change
    /// hands.
    pub fn begin_round(&mut self, core: usize, now: Time) -> Vec<usize> {
        for group in 0..self.serves.len() {
            let wanted = group % self.scale.active();
            if self.serves[group] == core && wanted != core {
                self.serves[group] = wanted;
                self.wake(core, wanted, now);
            }
        }
        (0..self.serves.len()).filter(|&group| self.serves[group] == core).collect()
    }

    /// Something came for the flow-group whose own core is `core`, which serves nothing: whoever does shall look.
    pub fn pass_on(&mut self, core: usize, now: Time) {
        self.wake(core, self.serves[core], now);
    }

    /// `core` was busy from `began` to `now`.
    pub fn was_busy(&mut self, core: usize, began: Time, now: Time) {
        self.busy[core] += now.saturating_sub(began);
    }

    /// When cores without work look at the latest.
    pub fn wakes_at(&self) -> Time {
        self.scale.wakes_at()
    }

    /// Adds a core or gives one up, if it is time and the load says so. `core` is the one that looks.
    pub fn look(&mut self, core: usize, now: Time) {
        if now < self.scale.due() {
            return;
        }
        let busy = self.busy.iter().fold(Time::ZERO, |sum, busy| sum + *busy);
        self.busy.fill(Time::ZERO);
        if self.scale.look(now, busy) {
            self.tell(core, now);
        }
    }

    /// From `now` on `active` cores work, whatever the load is.
    #[cfg(test)]
    pub fn go_on_with(&mut self, active: usize, now: Time) {
        self.scale.set(active);
        self.tell(0, now);
    }

    /// Core `by` has decided how many cores work: all look whose groups are whose now.
    fn tell(&mut self, by: usize, now: Time) {
        let set = format!("{} fast-path cores", self.scale.active());
        self.switches.push(Switch { ms: now.as_seconds() * 1e3, set });
        for core in 0..self.serves.len() {
            self.wake(by, core, now);
        }
    }

    /// `by` wakes `core`, unless it is itself.
    fn wake(&mut self, by: usize, core: usize, at: Time) {
        if by != core {
            self.wakes.push((by, Wake { core, at }));
        }
    }

    /// The cores that `by` has woken.
    pub fn take_wakes(&mut self, by: usize, into: &mut Vec<Wake>) {
        let own = self.wakes.extract_if(.., |(who, _)| *who == by);
        into.extend(own.map(|(_, wake)| wake));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_change_hands_when_their_core_begins_a_round() {
        let (mut crew, now) = (Crew::new(4, Time::from_us(100)), Time::from_us(7));
        assert_eq!(crew.begin_round(0, now), [0, 1, 2, 3]);
        crew.go_on_with(2, now);
        assert_eq!(crew.begin_round(1, now), [] as [usize; 0], "core 0 has not let go");
        assert_eq!(crew.begin_round(0, now), [0, 2]);
        assert_eq!(crew.begin_round(1, now), [1, 3]);
        let mut wakes = Vec::new();
        crew.take_wakes(0, &mut wakes);
        assert!(wakes.contains(&Wake { core: 1, at: now }), "{wakes:?}");
    }
}
