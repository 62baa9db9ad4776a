//! Frames that never were in host memory: those of the hairpin queue.

use std::collections::VecDeque;

use nicforge_platform::Dma;
use nicforge_units::{Bytes, Time};

use super::TransmitEngine;
use crate::TxOffload;
use crate::transmit::{Departure, Egress};

/// A frame on its way through the NIC alone.
#[derive(Debug)]
struct Internal {
    ready: Time,
    stamp: Time,
    bytes: Vec<u8>,
}

/// The hairpin queue, oldest frame first.
#[derive(Debug, Default)]
pub(super) struct InternalQueue(VecDeque<Internal>);

impl TransmitEngine {
    /// A frame shall go out, at `ready` at the earliest and behind those before it. It takes room in
    /// the internal buffer like all others.
    pub fn push_internal(&mut self, bytes: Vec<u8>, stamp: Time, ready: Time) {
        self.internal.0.push_back(Internal { ready, stamp, bytes });
    }

    /// Frames of the hairpin queue.
    pub fn internal_inside(&self) -> u64 {
        self.internal.0.len() as u64
    }

    /// When the next of them may go.
    pub fn internal_due(&self) -> Time {
        self.internal.0.front().map_or(Time::NEVER, |frame| frame.ready)
    }

    /// Sends the next of them, if it may go now; else says when that may be.
    pub(super) fn serve_internal<D: Dma, E: Egress>(&mut self, dma: &mut D, egress: &mut E) -> Result<(), Time> {
        let now = dma.now();
        let due = self.internal_due();
        if due > now {
            return Err(due);
        }
        self.release(now);
        let len = self.internal.0.front().map_or(0, |frame| frame.bytes.len());
        self.room_at(now, Bytes(len as u64))?;
        let Some(frame) = self.internal.0.pop_front() else {
            return Err(Time::NEVER);
        };
        let last_bit = self.occupy_wire(Bytes(len as u64), now);
        self.take_room(Bytes(len as u64), last_bit);
        egress.depart(Departure {
            port: self.port,
            queue: None,
            pieces: &[&frame.bytes, &[], &[]],
            left: TxOffload::default(),
            stamp: frame.stamp,
            last_bit,
        });
        Ok(())
    }
}
