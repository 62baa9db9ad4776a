//! How a device's run goes on, round by round, from the first frame to the last.

use std::sync::atomic::Ordering;

use nicforge_platform::live::LiveError;
use nicforge_units::Time;

use super::too_long::note_of_mtus;
use super::{Device, Phase, SLEEP};
use crate::live::Shared;
use crate::live::threads::Idle;

/// Empty rounds before the device sleeps: about as long as a wake-up takes.
const ROUNDS_BEFORE_SLEEP: u32 = 100;
/// How often the device publishes its counts.
const TELL_EVERY: Time = Time::from_ms(50);
/// Without anything to do for this long all that was inside has gone out.
const QUIET_AFTER: Time = Time::from_ms(20);

/// Where a run is between two rounds.
#[derive(Debug)]
pub struct Course {
    /// Rounds without anything to do, one after another.
    pub empty: u32,
    told: Time,
    last_busy: Time,
}

/// What a round was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There was something to do.
    Busy,
    /// There was nothing.
    Idle,
    /// There was nothing, and nothing more will come.
    Over,
}

impl Device {
    /// Works until the phase is [`Phase::Ending`] and nothing is left to do.
    pub(in crate::live) fn run(&mut self, shared: &Shared) -> Result<(), LiveError> {
        let mut course = self.begin(shared);
        loop {
            match self.step(&mut course, shared)? {
                Step::Busy => {}
                Step::Idle if course.empty > ROUNDS_BEFORE_SLEEP && self.sleeps() => {
                    self.sleep(SLEEP)?;
                }
                Step::Idle => std::hint::spin_loop(),
                Step::Over => return self.end(shared),
            }
        }
    }

    /// Whether it sleeps when there is nothing to do.
    pub(in crate::live) fn sleeps(&self) -> bool {
        self.policy.idle != Idle::Spin
    }

    /// Before the first round.
    pub(in crate::live) fn begin(&mut self, shared: &Shared) -> Course {
        let links = self.ports.iter().map(|port| port.link());
        let mtus = links.enumerate().filter_map(|(port, link)| Some((port, link?.mtu)));
        let note = note_of_mtus(&mtus.collect::<Vec<_>>());
        note.into_iter().for_each(|note| shared.tell(note));
        Course { empty: 0, told: Time::ZERO, last_busy: self.way.cpu.dma.tick() }
    }

    /// One round, and what the phase makes of it.
    pub(in crate::live) fn step(&mut self, course: &mut Course, shared: &Shared) -> Result<Step, LiveError> {
        let phase = &shared.phase;
        let now = self.way.cpu.dma.tick();
        let in_phase = Phase::of(phase);
        self.steer(now, shared);
        let busy = self.round(in_phase == Phase::Running)?;
        if now >= course.told + TELL_EVERY {
            self.tell(shared)?;
            course.told = now;
        }
        if busy {
            (course.empty, course.last_busy) = (0, now);
            return Ok(Step::Busy);
        }
        let quiet = now.saturating_sub(course.last_busy) >= QUIET_AFTER;
        match in_phase {
            Phase::Ending => return Ok(Step::Over),
            Phase::Draining if quiet => {
                // Somebody may have gone on to the end meanwhile; then that counts.
                let (draining, quiet) = (Phase::Draining as u8, Phase::Quiet as u8);
                let _ = phase.compare_exchange(draining, quiet, Ordering::AcqRel, Ordering::Acquire);
            }
            Phase::Running if quiet && self.ports.iter().all(|port| port.is_over()) => {
                phase.store(Phase::Quiet as u8, Ordering::Release);
            }
            _ => {}
        }
        course.empty += 1;
        Ok(Step::Idle)
    }

    /// After the last round.
    pub(in crate::live) fn end(&mut self, shared: &Shared) -> Result<(), LiveError> {
        for port in &mut self.ports {
            port.finish()?;
        }
        self.tell(shared)
    }
}
