//! Two ends of a cable within this program.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use nicforge_units::Time;

use super::{Port, PortCounters};
use crate::live::LiveError;

/// Frames that fit into the cable each way.
const CABLE_FRAMES: usize = 4096;

type Lane = Arc<Mutex<VecDeque<Vec<u8>>>>;

/// One end.
pub struct PairPort {
    incoming: Lane,
    outgoing: Lane,
    counters: PortCounters,
}

/// Both ends of a new cable.
pub fn pair() -> (PairPort, PairPort) {
    let lanes: [Lane; 2] = Default::default();
    let end = |incoming: usize| PairPort {
        incoming: lanes[incoming].clone(),
        outgoing: lanes[1 - incoming].clone(),
        counters: PortCounters::default(),
    };
    (end(0), end(1))
}

impl PairPort {
    /// Frames that this end sent and the other has not taken yet.
    pub fn untaken(&self) -> usize {
        let lane = self.outgoing.lock().unwrap_or_else(PoisonError::into_inner);
        lane.len()
    }
}

impl Port for PairPort {
    fn receive(&mut self, budget: usize, each: &mut dyn FnMut(&[u8])) -> Result<usize, LiveError> {
        let mut taken = {
            // A panic elsewhere leaves whole frames in the lane.
            let mut lane = self.incoming.lock().unwrap_or_else(PoisonError::into_inner);
            let count = lane.len().min(budget);
            lane.drain(..count).collect::<Vec<_>>()
        };
        for frame in &mut taken {
            each(frame);
        }
        self.counters.received += taken.len() as u64;
        Ok(taken.len())
    }

    fn send(&mut self, frame: &[u8], _now: Time) -> Result<(), LiveError> {
        let mut lane = self.outgoing.lock().unwrap_or_else(PoisonError::into_inner);
        if lane.len() < CABLE_FRAMES {
            lane.push_back(frame.to_vec());
            self.counters.went_out(frame.len() as u64);
        } else {
            self.counters.refused += 1;
        }
        Ok(())
    }

    fn counters(&self) -> &PortCounters {
        &self.counters
    }

    fn counters_mut(&mut self) -> &mut PortCounters {
        &mut self.counters
    }
}
