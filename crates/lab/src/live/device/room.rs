//! How many frames may come in before too many wait for software: the others wait in the port.

use nicforge_nic::Nic;
use nicforge_platform::Dma;
use nicforge_platform::live::LiveDma;
use nicforge_units::Time;

use super::Device;

/// How long frames wait for workers of which none takes any.
const STALLED_AFTER: Time = Time::from_ms(10);
/// A worker that takes nothing for so long, while frames wait for it and others do take some, is stopped or
/// hangs: nobody waits for it any more. Longer than a busy machine keeps a thread from running.
const STOPPED_AFTER: Time = Time::from_ms(100);

/// Frames that wait for one worker.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    /// Frames.
    frames: u64,
    /// What it took so far, and when it last took any, or nothing waited.
    taken: u64,
    at: Time,
}

/// Frames that wait for workers.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// By worker.
    waiting: Vec<Waiting>,
    /// When any of them last took some.
    taken_at: Time,
    now: Time,
}

impl Backlog {
    /// Worker `number` got `delivered` frames since it began, and took `taken` of them, as it says.
    fn look(&mut self, number: usize, delivered: u64, taken: u64) {
        if self.waiting.len() <= number {
            self.waiting.resize(number + 1, Waiting::default());
        }
        let waiting = &mut self.waiting[number];
        // What workers say is not to be trusted, so it may be more than there was.
        waiting.frames = delivered.saturating_sub(taken);
        if taken != waiting.taken {
            self.taken_at = self.now;
        }
        if taken != waiting.taken || waiting.frames == 0 {
            (waiting.taken, waiting.at) = (taken, self.now);
        }
    }

    fn has_stopped(&self, waiting: &Waiting) -> bool {
        self.now.saturating_sub(waiting.at) > STOPPED_AFTER
    }

    /// Whether frames wait for worker `number` for which nobody else has to wait.
    fn is_beside(&self, number: usize) -> bool {
        let stopped = |waiting: &Waiting| self.has_stopped(waiting);
        self.waiting.get(number).is_some_and(stopped) && !self.waiting.iter().all(stopped)
    }

    /// Frames that wait, and that others have to wait for: where they can wait for ever, for all workers.
    fn frames(&self, for_ever: bool) -> usize {
        let each = self.waiting.iter().enumerate();
        let counts = each.filter(|(number, _)| for_ever || !self.is_beside(*number));
        let frames = counts.fold(0u64, |sum, (_, waiting)| sum.saturating_add(waiting.frames));
        usize::try_from(frames).unwrap_or(usize::MAX)
    }
}

impl Device {
    /// Looks at what waits for each worker.
    pub(super) fn look_at_workers(&mut self) {
        self.backlog.now = self.way.cpu.dma.now();
        let Some(first) = self.nics.first() else {
            return;
        };
        let workers = first.receive.queues() / first.receive.sets().len() as u16;
        for worker in 0..workers {
            let queues =
                |nic: &Nic<LiveDma>| -> u64 { nic.queues_of(worker).map(|queue| nic.delivered_to(queue)).sum() };
            let delivered = self.nics.iter().map(queues).sum();
            let number = usize::from(worker);
            self.backlog.look(number, delivered, self.control.taken_by(number));
        }
    }

    /// Frames that may come in at NIC `number` before too many wait for software, or one of its
    /// queues has no entry for the next: rings that are shared may wait for one slow worker.
    pub(super) fn room(&mut self, number: usize) -> usize {
        // A file waits for whoever hangs, so that none of its frames is lost.
        let for_ever = self.ports[number].is_patient();
        let inside = self.backlog.frames(for_ever);
        let mut room = self.policy.window.saturating_sub(inside);
        // With nothing inside, nobody will free what a partly used descriptor holds.
        if inside > 0 {
            room = room.min(self.free(&self.nics[number], for_ever));
        }
        self.held |= room == 0;
        room
    }

    /// Frames for which every queue of `nic` has an entry whose worker others wait for.
    fn free(&self, nic: &Nic<LiveDma>, for_ever: bool) -> usize {
        let each = nic.receive.queues() / nic.receive.sets().len() as u16;
        let counts = |queue: &u16| {
            let waits = for_ever || !self.backlog.is_beside(usize::from(queue % each));
            waits && !nic.is_closed(*queue)
        };
        let queues = (0..nic.receive.queues()).filter(counts);
        let free = queues.map(|queue| nic.receive.free(queue));
        free.min().unwrap_or(u64::MAX) as usize
    }

    /// Whether frames have waited for long enough: one worker that stalls must not hold up all.
    /// Now and then some come in all the same, and meet what full rings do.
    pub(super) fn gives_up(&mut self) -> bool {
        let now = self.way.cpu.dma.now();
        let stalls = self.held && now.saturating_sub(self.backlog.taken_at) > STALLED_AFTER;
        if stalls {
            self.backlog.taken_at = now;
        }
        stalls
    }
}
