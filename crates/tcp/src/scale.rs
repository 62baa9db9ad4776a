//! How many fast-path cores the present load needs, by the rule of TAS: one more when all together are idle for less
//! than a fifth of a core, one less when they are for more than five quarters.

use nicforge_units::Time;

/// Looks between two decisions, so that the first one shows.
const LOOKS_BETWEEN: u32 = 10;
/// A core is added when fewer than this many are idle, all cores together.
const IDLE_LEAST: f64 = 0.2;
/// A core is given up when more than this many are idle.
const IDLE_MOST: f64 = 1.25;
/// What a new look counts in the mean of looks.
const NEW_LOOK: f64 = 1.0 / 8.0;

/// How often TAS looks.
pub const LOOK_EVERY: Time = Time::from_ms(10);

/// The number of cores at work.
#[derive(Clone, Debug)]
pub struct Scale {
    active: usize,
    most: usize,
    every: Time,
    looked: Time,
    /// Cores that were busy, a mean over looks.
    mean_busy: f64,
    looks: u32,
}

impl Scale {
    /// One core of `most`, since `now`. Looks are `every` so often.
    pub fn new(most: usize, every: Time, now: Time) -> Scale {
        Scale { active: 1, most, every, looked: now, mean_busy: 0.0, looks: 0 }
    }

    /// Cores at work.
    pub fn active(&self) -> usize {
        self.active
    }

    /// Another number of cores, whatever the load is.
    pub fn set(&mut self, active: usize) {
        (self.looks, self.active) = (0, active.clamp(1, self.most));
    }

    /// When to look; never where one core is all there is to decide on.
    pub fn due(&self) -> Time {
        if self.most > 1 { self.looked + self.every } else { Time::NEVER }
    }

    /// Until when cores without work may sleep before one is given up: they need not wake up to find that one is
    /// enough.
    pub fn wakes_at(&self) -> Time {
        if self.active > 1 { self.due() } else { Time::NEVER }
    }

    /// Looks: since the last time all cores together were busy for so long. Whether the number changes.
    pub fn look(&mut self, now: Time, busy: Time) -> bool {
        let elapsed = now.saturating_sub(self.looked).as_seconds();
        self.looked = now;
        if elapsed > 0.0 {
            self.mean_busy += (busy.as_seconds() / elapsed - self.mean_busy) * NEW_LOOK;
        }
        self.looks += 1;
        let idle = self.active as f64 - self.mean_busy;
        let wanted = if idle > IDLE_MOST { self.active - 1 } else { self.active + usize::from(idle < IDLE_LEAST) };
        let wanted = wanted.clamp(1, self.most);
        if self.looks < LOOKS_BETWEEN || wanted == self.active {
            return false;
        }
        self.set(wanted);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_come_with_load_and_go_without() {
        let (mut scale, mut now, mut changes) = (Scale::new(3, LOOK_EVERY, Time::ZERO), Time::ZERO, 0);
        let mut work = |looks: u32, busy: f64| {
            for _ in 0..looks {
                now = scale.due();
                changes += usize::from(scale.look(now, Time::from_seconds(LOOK_EVERY.as_seconds() * busy)));
            }
            (scale.active(), changes)
        };
        assert_eq!(work(100, 0.5), (1, 0));
        assert_eq!(work(100, 0.95), (2, 1), "one of two is idle enough");
        assert_eq!(work(100, 1.95), (3, 2));
        assert_eq!(work(100, 2.95), (3, 2), "there are no more");
        assert_eq!(work(200, 0.1), (1, 4));
    }

    #[test]
    fn one_core_is_never_looked_at() {
        assert_eq!(Scale::new(1, LOOK_EVERY, Time::ZERO).due(), Time::NEVER);
    }
}
