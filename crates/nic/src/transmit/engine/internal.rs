//! Frames that never were in host memory: those that stages send.

use std::collections::VecDeque;

use nicforge_platform::{Dma, Hint, Moment, PacketKey};
use nicforge_units::{Bytes, Time};

use super::TransmitEngine;
use crate::stage::{Chain, Leaving};
use crate::transmit::{Bridged, Departure, Egress};
use crate::{PortId, TxOffload};

/// A frame on its way through the NIC alone.
#[derive(Debug)]
pub struct Internal {
    /// It leaves by this port.
    pub port: PortId,
    /// It passes the stages before this one on its way to the wire.
    pub behind: usize,
    /// It leaves no earlier.
    pub ready: Time,
    /// Carried to the wire for measurement.
    pub stamp: Time,
    /// The frame.
    pub bytes: Vec<u8>,
}

/// The queue of such frames, oldest first.
#[derive(Debug)]
pub struct InternalQueue {
    frames: VecDeque<Internal>,
    /// When the engine looks at it again.
    due: Time,
}

impl Default for InternalQueue {
    fn default() -> InternalQueue {
        InternalQueue { frames: VecDeque::new(), due: Time::NEVER }
    }
}

impl InternalQueue {
    /// A frame shall go out, at its time at the earliest and behind those before it.
    pub fn push(&mut self, frame: Internal) {
        if self.frames.is_empty() {
            self.due = frame.ready;
        }
        self.frames.push_back(frame);
    }

    /// The oldest one.
    pub(crate) fn pop(&mut self) -> Option<Internal> {
        self.frames.pop_front()
    }

    /// Frames in it.
    pub fn waiting(&self) -> u64 {
        self.frames.len() as u64
    }
}

impl TransmitEngine {
    /// A frame shall go out, at its time at the earliest and behind those before it. It takes room in the internal
    /// buffer like all others.
    pub fn push_internal(&mut self, frame: Internal) {
        self.internal.push(frame);
    }

    /// The queue of frames that never were in host memory.
    pub(crate) fn internal(&mut self) -> &mut InternalQueue {
        &mut self.internal
    }

    /// Frames that never were in host memory and wait for the wire.
    pub fn internal_inside(&self) -> u64 {
        self.internal.waiting()
    }

    /// When the engine looks at them again; `Time::NEVER` when there are none.
    pub fn internal_due(&self) -> Time {
        self.internal.due
    }

    /// Sends the next of them, if it may go now; else says when that may be.
    pub(super) fn serve_internal<D: Dma, E: Egress>(
        &mut self,
        dma: &mut D,
        egress: &mut E,
        chain: &mut Chain<D>,
    ) -> Result<(), Time> {
        self.internal.due = Time::NEVER;
        let Some(frame) = self.internal.frames.front() else {
            return Err(Time::NEVER);
        };
        let (now, ready, len) = (dma.now(), frame.ready, Bytes(frame.bytes.len() as u64));
        self.release(now);
        if let Err(next) = if ready > now { Err(ready) } else { self.room_at(now, len) } {
            self.internal.due = next;
            return Err(next);
        }
        let Some(Internal { port, behind, stamp, bytes, .. }) = self.internal.frames.pop_front() else {
            return Err(Time::NEVER);
        };
        self.internal.due = self.internal.frames.front().map_or(Time::NEVER, |next| next.ready);
        let key = PacketKey { stamp, port: self.port.0 };
        dma.hint(Hint::Packet(key, Moment::Gathering { queue: None, descriptor: ready }));
        let leaving =
            Leaving { bytes, port, queue: None, stamp, mark: 0, left: TxOffload::default(), ready: now, behind };
        let passed = match behind {
            0 => Some(leaving),
            _ => chain.egress(dma, &mut self.internal, leaving),
        };
        let moment = match passed {
            Some(leaving) => {
                let len = Bytes(leaving.bytes.len() as u64);
                self.depart(leaving, len, egress)
            }
            None => Moment::Diverted,
        };
        dma.hint(Hint::Packet(key, moment));
        Ok(())
    }

    /// A frame that has passed all stages goes onto the wire, or to the NIC of another port. It takes `room` bytes of
    /// the internal buffer until then.
    pub(super) fn depart<E: Egress>(&mut self, leaving: Leaving, room: Bytes, egress: &mut E) -> Moment {
        let Leaving { bytes, port, queue, stamp, left, ready, .. } = leaving;
        if port != self.port {
            self.take_room(room, ready);
            egress.bridge(Bridged { port, bytes, stamp, ready });
            return Moment::Diverted;
        }
        let (first_bit, last_bit) = self.occupy_wire(Bytes(bytes.len() as u64), ready);
        self.take_room(room, last_bit);
        egress.depart(Departure { port, queue, pieces: &[&bytes, &[], &[]], left, stamp, last_bit });
        Moment::Sent { gathered: ready, first_bit, last_bit }
    }
}
