//! One worker's place: who works there, and what was counted there.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use nicforge_nic::DropCounters;
use nicforge_platform::live::LiveError;
use nicforge_platform::live::handover::Peer;
use nicforge_units::Time;

use super::message::{LINE_MAX, Reply, Said, Told};
use crate::live::device::Served;
use crate::live::worker::WorkerCounts;

/// A worker's process, and the line to it.
pub struct Member {
    /// The line.
    pub stream: UnixStream,
    /// The process.
    pub peer: Peer,
    inbox: Vec<u8>,
}

/// What came over the line.
pub enum Heard {
    /// Whole messages, oldest first; none is fine.
    Said(Vec<Said>),
    /// The other side closed it, or said what means nothing.
    Gone(&'static str),
}

impl Member {
    /// Who called on `stream`.
    pub fn new(stream: UnixStream) -> Result<Member, LiveError> {
        let peer = Peer::of(&stream)?;
        let set = stream.set_nonblocking(true);
        set.map_err(LiveError::of("a worker's socket"))?;
        Ok(Member { stream, peer, inbox: Vec::new() })
    }

    /// Takes what came in.
    pub fn listen(&mut self) -> Heard {
        let mut closed = false;
        let mut bytes = [0; 4096];
        while self.inbox.len() < LINE_MAX {
            match self.stream.read(&mut bytes) {
                Ok(0) => {
                    closed = true;
                    break;
                }
                Ok(count) => self.inbox.extend_from_slice(&bytes[..count]),
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => break,
                Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    closed = true;
                    break;
                }
            }
        }
        let mut said = Vec::new();
        while let Some(end) = self.inbox.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.inbox.drain(..=end).collect();
            match serde_json::from_slice(&line) {
                Ok(message) => said.push(message),
                Err(_) => return Heard::Gone("it says what means nothing"),
            }
        }
        if self.inbox.len() >= LINE_MAX {
            return Heard::Gone("it says too much at once");
        }
        // What it said before it went counts; that it went is heard next time.
        if closed && said.is_empty() { Heard::Gone("it is gone") } else { Heard::Said(said) }
    }

    /// Says `reply`; who does not take it will be found gone.
    pub fn say(&mut self, reply: &Reply) {
        let _ = self.stream.write_all(&line(reply));
    }
}

/// A message as it goes over the line.
pub fn line<T: serde::Serialize>(message: &T) -> Vec<u8> {
    // Numbers, texts and lists only: all of it has a form in JSON.
    let mut line = serde_json::to_vec(message).expect("a message has a form in JSON");
    line.push(b'\n');
    line
}

/// How far whoever has a place is.
pub enum State {
    /// Nobody is there.
    Free,
    /// Somebody is invited and prepares its tables; it touches no ring.
    Preparing(Member),
    /// Somebody brings up its queues.
    Joining(Member),
    /// Somebody works.
    Working(Member),
    /// Somebody said how it ended, with the buffers that it answers for.
    Ended(Member, i64),
}

impl State {
    /// Whoever is there.
    pub fn member(&mut self) -> Option<&mut Member> {
        match self {
            State::Free => None,
            State::Preparing(member) | State::Joining(member) | State::Working(member) | State::Ended(member, _) => {
                Some(member)
            }
        }
    }
}

/// One worker's place.
pub struct Place {
    /// Who is there.
    pub state: State,
    /// The order that is valid: even, for it is only odd while its queues restart.
    pub order: u64,
    /// Whether somebody was there before.
    pub used: bool,
    /// When whoever is there last said something, or was invited.
    pub heard: Time,
    /// For how long nobody worked there, as of the last look.
    away: Time,
    looked: Time,
    /// Of periods that are over.
    past: WorkerCounts,
    /// Of this one, as far as it was told.
    now: WorkerCounts,
}

impl Place {
    /// Nobody was there yet at `now`.
    pub fn new(now: Time) -> Place {
        Place {
            state: State::Free,
            order: 0,
            used: false,
            heard: now,
            away: Time::ZERO,
            looked: now,
            past: WorkerCounts::default(),
            now: WorkerCounts::default(),
        }
    }

    /// Whoever is there counted this since it followed the order that is valid.
    pub fn told(&mut self, counts: &Told) {
        self.now = counts.counts();
    }

    /// Its queues began anew. What was in them is lost, and so is what whoever worked there had in
    /// its hands or dropped and could not tell any more.
    pub fn restart(&mut self, done: Served) {
        let mut past = std::mem::take(&mut self.now);
        let known = done.served + past.drops.total() + past.kept;
        if known > done.delivered {
            // It told nonsense, or sent what it never got: what the device counted stands.
            past.drops = DropCounters::default();
            past.kept = 0;
            past.made = done.served.saturating_sub(done.delivered);
        }
        let known = done.served + past.drops.total() + past.kept;
        let lost = done.delivered.saturating_sub(known);
        if lost > 0 {
            past.drops.add("worker_lost", lost);
        }
        (past.taken, past.pushed) = (done.delivered, done.served);
        self.past = sum(&self.past, &past);
    }

    /// All counts of this place, at `now`.
    pub fn counts(&mut self, now: Time) -> WorkerCounts {
        let works = matches!(self.state, State::Working(_));
        let absent = matches!(self.state, State::Free | State::Preparing(_) | State::Joining(_));
        if absent {
            self.away += now.saturating_sub(self.looked);
        }
        self.looked = now;
        let counted = sum(&self.past, &self.now);
        WorkerCounts {
            absent,
            // An absent worker is not busy.
            idle: added(counted.idle, self.away),
            silent: if works { now.saturating_sub(self.heard) } else { Time::ZERO },
            ..counted
        }
    }
}

/// A process may tell any time.
fn added(a: Time, b: Time) -> Time {
    Time::from_ps(a.as_ps().saturating_add(b.as_ps()))
}

fn sum(a: &WorkerCounts, b: &WorkerCounts) -> WorkerCounts {
    let drops = [&a.drops, &b.drops].into_iter().collect();
    let mut app = a.app.clone();
    for &(name, count) in &b.app {
        match app.iter_mut().find(|(other, _)| *other == name) {
            Some((_, sum)) => *sum += count,
            None => app.push((name, count)),
        }
    }
    WorkerCounts {
        taken: a.taken + b.taken,
        pushed: a.pushed + b.pushed,
        kept: a.kept + b.kept,
        made: a.made + b.made,
        drops,
        transmit: (a.transmit.0 + b.transmit.0, a.transmit.1 + b.transmit.1),
        idle: added(a.idle, b.idle),
        absent: false,
        silent: Time::ZERO,
        app,
        // Those of who works there now.
        gauges: b.gauges.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_dead_workers_stay_and_their_gauges_go() {
        let of = |opened, free| WorkerCounts {
            app: vec![("flows_opened", opened)],
            gauges: vec![("external_ports_free", free)],
            ..WorkerCounts::default()
        };
        let mut place = Place::new(Time::ZERO);
        place.told(&Told::of(&of(3, 64_509)));
        place.restart(Served { delivered: 0, served: 0 });
        let between = place.counts(Time::from_ms(5));
        assert_eq!(between.idle, Time::from_ms(5), "nobody works there");
        assert_eq!((between.app, between.gauges), (vec![("flows_opened", 3)], vec![]));
        place.told(&Told::of(&of(2, 64_510)));
        let counts = place.counts(Time::ZERO);
        assert_eq!(counts.app, [("flows_opened", 5)]);
        assert_eq!(counts.gauges, [("external_ports_free", 64_510)]);
    }
}
