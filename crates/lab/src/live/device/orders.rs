//! Orders to a running device: close queues, restart them, open them.

use std::ops::Range;
use std::sync::atomic::Ordering::Release;
use std::sync::mpsc::Sender;
use std::time::Duration;

use nicforge_nic::{Ledger, Nic};
use nicforge_platform::Register;
use nicforge_platform::live::{Control, LiveDma};
use nicforge_units::Time;

use super::played::played;
use super::{Device, Watched, WhenFull};

/// How long a live worker may keep the pool's lock before the device looks who it is.
const PATIENCE: Duration = Duration::from_millis(50);

/// How long frames wait in ports at most while workers restart; after that they are dropped.
const WAIT: Time = Time::from_ms(100);

/// What the device needs to take buffers back.
#[derive(Debug)]
pub struct Ownership {
    /// Who has which buffer, of each pool.
    pub ledgers: Vec<Ledger>,
    /// Workers there are.
    pub workers: usize,
    /// All who may have buffers: workers, and behind them cores that play NICs.
    pub holders: usize,
}

impl Ownership {
    /// Takes the locks of all pools, from workers that `goes` says are gone if need be; else says
    /// who does not give one back.
    fn lock(&self, control: &Control, goes: impl Fn(&usize) -> bool) -> Result<(), usize> {
        // What is no worker's mark is nonsense that somebody wrote.
        let may_lose = |mark: u64| match usize::try_from(mark - 1) {
            Ok(worker) if worker < self.workers => goes(&worker),
            _ => true,
        };
        for (taken, ledger) in self.ledgers.iter().enumerate() {
            if let Err(mark) = control.seize(ledger.pool().lock(), PATIENCE, may_lose) {
                self.unlock(control, taken);
                return Err(mark as usize - 1);
            }
        }
        Ok(())
    }

    /// Gives the locks of the first `taken` pools back.
    fn unlock(&self, control: &Control, taken: usize) {
        for ledger in &self.ledgers[..taken] {
            control.region().word(ledger.pool().lock()).store(0, Release);
        }
    }
}

/// An order to the device.
#[derive(Clone, Debug)]
pub enum Order {
    /// Frames for these workers are dropped from now on.
    Close(Range<usize>),
    /// These workers, which are closed and touch nothing any more, restart: their rings are empty
    /// and their buffers back in the pool. They are all that share rings. The second are all workers
    /// that are not there: if one of them has a lock, it has lost it.
    BeginAnew(Range<usize>, Vec<usize>),
    /// Frames for this worker come in again.
    Open(usize),
    /// Frames wait in ports that can, or come in again, because workers that live restart, or have restarted.
    Wait(bool),
}

/// What the device says when an order is carried out.
#[derive(Clone, Debug)]
pub enum Done {
    /// It is.
    Yes,
    /// Workers began anew; for each how many frames it had got and how many of its descriptors were
    /// dealt with.
    Anew(Vec<Served>),
    /// A worker that is not among them holds a pool's lock and does not give it back.
    Held(usize),
    /// The interface cannot begin a queue anew.
    Never,
}

/// What a worker's queues did since they last began.
#[derive(Clone, Copy, Debug, Default)]
pub struct Served {
    /// Frames delivered to it.
    pub delivered: u64,
    /// Descriptors of it that were dealt with.
    pub served: u64,
}

/// An order, and where to say that it is done.
pub type Ordered = (Order, Sender<Done>);

/// What `gone` and each of the others still owe each other goes to that one's account in `lent`; the
/// accounts of `gone` are closed.
fn settle(nic: &Nic<LiveDma>, gone: &Range<usize>, lent: &mut [i64]) {
    for (other, account) in lent.iter_mut().enumerate() {
        if gone.contains(&other) {
            *account = 0;
            continue;
        }
        for worker in gone.clone() {
            *account += nic.lent(worker as u16, other as u16);
        }
    }
}

impl Device {
    /// Carries out what was ordered meanwhile; whether there was anything.
    pub(super) fn follow_orders(&mut self) -> bool {
        let mut any = false;
        while let Ok((order, answer)) = self.orders.try_recv() {
            any = true;
            let done = match order {
                Order::Close(workers) => self.set_closed(workers, true),
                Order::Open(worker) => self.set_closed(worker..worker + 1, false),
                Order::BeginAnew(workers, absent) => self.restart(workers, &absent),
                Order::Wait(waits) => self.wait(waits),
            };
            // Who asked and went away needs no answer.
            let _ = answer.send(done);
        }
        any
    }

    /// Before the run: frames for all of `workers` workers are dropped until they are there. `false`
    /// where the interface cannot begin queues anew, so that a worker's death would be the end.
    pub fn close_all(&mut self, workers: usize) -> bool {
        self.set_closed(0..workers, true);
        !matches!(self.restart(0..workers, &[]), Done::Never)
    }

    fn wait(&mut self, waits: bool) -> Done {
        let can = waits && self.policy.when_full == WhenFull::Wait;
        self.waits_until = if can { self.way.cpu.dma.tick() + WAIT } else { Time::ZERO };
        Done::Yes
    }

    fn set_closed(&mut self, workers: Range<usize>, closed: bool) -> Done {
        for nic in &mut self.nics {
            for worker in workers.clone() {
                for queue in nic.queues_of(worker as u16) {
                    nic.set_closed(queue, closed);
                    if self.policy.spreads {
                        nic.steering.set_away(queue, closed);
                    }
                }
            }
        }
        Done::Yes
    }

    fn restart(&mut self, workers: Range<usize>, absent: &[usize]) -> Done {
        let Some(ownership) = &self.ownership else {
            return Done::Never;
        };
        let goes = |worker: &usize| workers.contains(worker) || absent.contains(worker);
        if let Err(holder) = ownership.lock(&self.control, goes) {
            return Done::Held(holder);
        }
        let mut all = vec![Served::default(); workers.len()];
        let cores = workers.start as u16..workers.end as u16;
        for nic in &mut self.nics {
            for (worker, counted) in workers.clone().zip(&mut all) {
                let queues = nic.queues_of(worker as u16);
                counted.delivered += queues.map(|queue| nic.delivered_to(queue)).sum::<u64>();
                counted.served += nic.transmit.served_of(worker);
            }
            self.lent.resize(ownership.workers, 0);
            settle(nic, &workers, &mut self.lent);
            let device = nic.port().0;
            let Some(registers) = nic.restart(&mut self.way.cpu.dma, cores.clone()) else {
                ownership.unlock(&self.control, ownership.ledgers.len());
                return Done::Never;
            };
            for watched in &mut self.registers {
                let Register { device: of, index } = watched.register;
                if of == device && registers.contains(&index) {
                    self.control.forget_register(watched.register);
                    *watched = Watched::new(watched.register);
                }
            }
        }
        let gone: Vec<usize> = workers.clone().collect();
        // Whoever is gone may have written anywhere before it went.
        for half in self.nics.iter_mut().filter_map(played) {
            half.claim(&mut self.way);
        }
        for ledger in &ownership.ledgers {
            ledger.reclaim(&mut self.way.cpu.cpu, &gone, ownership.holders);
        }
        for worker in workers {
            self.control.forget_worker(worker);
        }
        ownership.unlock(&self.control, ownership.ledgers.len());
        Done::Anew(all)
    }

    /// Descriptors of each worker that named no buffer or no memory, and transmit doorbells that cannot be.
    pub(super) fn count_nonsense(&self) -> Vec<u64> {
        let workers = self.ownership.as_ref().map_or(0, |ownership| ownership.workers);
        let of = |worker: usize| {
            let of_nic = self.nics.iter().map(|nic| {
                let queues = nic.queues_of(worker as u16);
                let received: u64 = queues.map(|queue| nic.bad_descriptors_of(queue)).sum();
                received + nic.transmit.bad_descriptors_of(worker)
            });
            of_nic.sum()
        };
        (0..workers).map(of).collect()
    }
}
