//! A frame that was gathered: when software's buffers are done with, and when its last bit is out.

use nicforge_units::{Bytes, Time};

use super::TransmitEngine;

/// A descriptor whose frame was gathered.
pub(super) struct Sent {
    /// Its queue, and the position behind it there.
    pub number: usize,
    pub position: u64,
    /// When the frame is here.
    pub here: Time,
    /// Whether software gets a completion.
    pub report: bool,
}

impl TransmitEngine {
    /// The NIC is done with a descriptor's buffers once the frame is here, or `late`, once its last bit is sent.
    #[inline(always)]
    pub(super) fn account(&mut self, sent: Sent, last_bit: Time, late: bool) {
        let queue = &mut self.queues[sent.number];
        queue.sends_late |= late;
        let done = if late { last_bit } else { sent.here };
        queue.read_until = queue.read_until.max(done);
        if sent.report {
            let report = (queue.read_until, sent.number, sent.position);
            if queue.sends_late { self.late_reports.push_back(report) } else { self.reports.push_back(report) }
        }
    }

    /// A frame of `len` bytes that is here at `here` goes onto the wire; returns when its first bit and its last are.
    pub(super) fn occupy_wire(&mut self, len: Bytes, here: Time) -> (Time, Time) {
        let start = self.wire_free.max(here + self.pipeline);
        // Preamble, FCS and gap keep the wire busy but are no bits of the frame.
        self.wire_free = start + self.rate.time_for(len + self.overhead);
        self.counters.frames += 1;
        self.counters.bytes += len.0;
        (start, start + self.rate.time_for(len))
    }
}
