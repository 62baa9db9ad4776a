//! The DMA engine's queues: so many operations in flight in each direction, a quota for each kind, and priorities.

use std::collections::VecDeque;

use nicforge_units::Time;

use super::NpuDma;

/// The freight of a DMA operation. The order is that of priorities, the highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DmaKind {
    /// Of the slow path, to the host.
    Slow,
    /// An entry for an application.
    Arx,
    /// A null entry that frees an application's entry.
    AtxNull,
    /// Received payload.
    PayloadRx,
    /// An application's entry.
    Atx,
    /// Payload to send.
    PayloadTx,
}

const TO_HOST: [DmaKind; 4] = [DmaKind::Slow, DmaKind::Arx, DmaKind::AtxNull, DmaKind::PayloadRx];
const FROM_HOST: [DmaKind; 2] = [DmaKind::Atx, DmaKind::PayloadTx];
const KINDS: usize = 6;

impl DmaKind {
    fn is_to_host(self) -> bool {
        TO_HOST.contains(&self)
    }
}

#[derive(Clone, Debug)]
struct Queue<T> {
    quota: usize,
    in_flight: usize,
    waiting: VecDeque<T>,
}

/// Operations that wait for the engine, and how many it works at.
#[derive(Clone, Debug)]
pub struct DmaEngine<T> {
    config: NpuDma,
    kinds: Vec<Queue<T>>,
    /// Operations in flight, and when the next may begin: to the host, from the host.
    in_flight: [usize; 2],
    free_at: [Time; 2],
    /// Operations so far.
    pub operations: u64,
}

impl<T> DmaEngine<T> {
    /// An idle engine.
    pub fn new(config: &NpuDma) -> DmaEngine<T> {
        let quotas = [config.slow, config.arx, config.atx, config.payload_rx, config.atx, config.payload_tx];
        let queue = |quota| Queue { quota, in_flight: 0, waiting: VecDeque::new() };
        DmaEngine {
            kinds: quotas.map(queue).into_iter().collect(),
            config: config.clone(),
            in_flight: [0; 2],
            free_at: [Time::ZERO; 2],
            operations: 0,
        }
    }

    /// An operation wants to begin.
    pub fn request(&mut self, kind: DmaKind, operation: T) {
        self.kinds[kind as usize].waiting.push_back(operation);
    }

    /// The next operation that may begin, and when; the caller carries it out.
    pub fn begin(&mut self, now: Time) -> Option<(DmaKind, T, Time)> {
        let ways: [&[DmaKind]; 2] = [&TO_HOST, &FROM_HOST];
        for (way, kinds) in ways.into_iter().enumerate() {
            if self.in_flight[way] == self.config.in_flight {
                continue;
            }
            for &kind in kinds {
                let queue = &mut self.kinds[kind as usize];
                if queue.in_flight < queue.quota
                    && let Some(operation) = queue.waiting.pop_front()
                {
                    queue.in_flight += 1;
                    self.in_flight[way] += 1;
                    self.operations += 1;
                    let at = self.free_at[way].max(now);
                    let every = if kind.is_to_host() { self.config.write_op } else { self.config.read_op };
                    self.free_at[way] = at + every;
                    return Some((kind, operation, at));
                }
            }
        }
        None
    }

    /// An operation is complete.
    pub fn complete(&mut self, kind: DmaKind) {
        let way = usize::from(!kind.is_to_host());
        self.kinds[kind as usize].in_flight -= 1;
        self.in_flight[way] -= 1;
    }

    /// Operations that wait or are in flight.
    pub fn inside(&self) -> usize {
        let waiting: usize = self.kinds.iter().map(|queue| queue.waiting.len()).sum();
        waiting + self.in_flight.iter().sum::<usize>()
    }

    /// How long moving `bytes` between the engine and the NIC's memories takes.
    pub fn moving(&self, bytes: u64) -> Time {
        Time::from_ps(self.config.per_kib.as_ps() * bytes / 1024)
    }

    /// From a write's end on the bus until its completion is signalled.
    pub fn write_signal(&self) -> Time {
        self.config.write_signal
    }
}

const _: () = assert!(DmaKind::PayloadTx as usize + 1 == KINDS);
