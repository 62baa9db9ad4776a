//! Status, mask, and the timer of section 3.3.

use nicforge_units::Time;

/// The NIC's status register, its interrupt mask, and the time of the next interrupt.
#[derive(Debug)]
pub struct Interrupts {
    status: u64,
    /// Events that the engines have worked ahead for: each counts from its time on. Software that
    /// saw one before what it announces is in memory would look in vain, and clear it.
    ahead: Vec<(Time, u64)>,
    /// The first time of these.
    first_ahead: Time,
    mask: u64,
    delay: Time,
    /// When an interrupt is due, whatever the mask says.
    at: Time,
    /// When one is due that the mask lets through: asked for far more often than it changes.
    due: Time,
}

impl Interrupts {
    /// None yet, and all masked. An interrupt follows its first event by `delay`.
    pub fn new(delay: Time) -> Interrupts {
        Interrupts {
            status: 0,
            ahead: Vec::new(),
            first_ahead: Time::NEVER,
            mask: 0,
            delay,
            at: Time::NEVER,
            due: Time::NEVER,
        }
    }

    /// Events since the driver cleared the register last.
    pub fn status(&self) -> u64 {
        self.status
    }

    /// When an interrupt is to be raised.
    #[inline]
    pub fn due(&self) -> Time {
        self.due
    }

    /// `event` happens at `time`.
    pub fn event(&mut self, time: Time, event: u64) {
        self.ahead.push((time, event));
        self.first_ahead = self.first_ahead.min(time);
        if event & self.mask != 0 {
            self.due = self.due.min(time + self.delay);
        }
    }

    /// What happened up to `now` is in the status.
    #[inline]
    pub fn reach(&mut self, now: Time) {
        if self.first_ahead <= now {
            self.take_ahead(now);
        }
    }

    fn take_ahead(&mut self, now: Time) {
        self.first_ahead = Time::NEVER;
        let mut number = 0;
        while let Some(&(time, event)) = self.ahead.get(number) {
            if time > now {
                self.first_ahead = self.first_ahead.min(time);
                number += 1;
                continue;
            }
            self.ahead.swap_remove(number);
            self.status |= event;
            if event & self.mask != 0 {
                self.at = self.at.min(time + self.delay);
            }
        }
        self.settle();
    }

    /// The status was read, which clears it.
    pub fn clear(&mut self) {
        self.status = 0;
        self.at = Time::NEVER;
        self.settle();
    }

    /// From `now` on `events` interrupt: those that have happened at once, as their delay is for those to come
    /// (M5: `devIntrChangeMask`).
    pub fn let_through(&mut self, events: u64, now: Time) {
        self.mask = events;
        self.at = if self.status & events == 0 { Time::NEVER } else { now };
        self.settle();
    }

    /// One is raised: the next event begins a new delay.
    pub fn raised(&mut self) {
        self.at = Time::NEVER;
        self.settle();
    }

    fn settle(&mut self) {
        let passed = |&&(_, event): &&(Time, u64)| event & self.mask != 0;
        let first = self.ahead.iter().filter(passed).map(|&(time, _)| time).min();
        self.due = first.map_or(self.at, |time| self.at.min(time + self.delay));
    }
}
