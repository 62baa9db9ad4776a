//! Small calls of the application side.

use super::output::Push;
use super::{Connection, State};
use crate::congestion::Algorithm;
use crate::fast::FlowFlags;

impl Connection {
    /// Whether an error waits to be taken.
    pub fn has_error(&self) -> bool {
        self.error.is_some()
    }

    /// Whether the stream of the peer ended with a FIN, or the connection was closed in order.
    pub fn is_peer_done(&self) -> bool {
        self.flow.has(FlowFlags::PEER_CLOSED)
    }

    /// Whether there is enough room that writing is worth while: a third of the buffer.
    pub fn has_room(&self) -> bool {
        let queued = self.flow.post.tx_size - self.flow.tx_free();
        let unsent = self.flow.protocol.tx_avail;
        self.flow.tx_free() >= queued / 2 && self.flow.tx_free() > 0 && unsent < self.tuning.not_sent_low_water
    }

    /// The application wants to hear when there is room again.
    pub fn wait_for_space(&mut self) {
        self.tx.wants_space = true;
    }

    /// Whether the wish for room has come true; true once per wish.
    pub(crate) fn space_came(&mut self) -> bool {
        let came = self.tx.wants_space && (self.has_room() || self.state == State::Closed);
        self.tx.wants_space &= !came;
        came
    }

    /// The byte written last is urgent (RFC 6093).
    pub fn mark_urgent(&mut self) {
        self.tx.urgent = Some(self.next() + self.flow.protocol.tx_avail);
        self.push(Push::Everything);
    }

    /// Whether urgent data has not been read.
    pub fn is_urgent(&self) -> bool {
        let read = self.expected() - self.flow.rx_waiting();
        self.rx.urgent.is_some_and(|end| end.after(read))
    }

    /// Sends small segments at once, from now on and what is held back now.
    pub fn set_no_delay(&mut self, on: bool) {
        self.tuning.no_delay = on;
        if on {
            self.push(Push::Everything);
        }
    }

    /// Holds partial segments, or lets them go.
    pub fn set_cork(&mut self, on: bool) {
        self.tuning.cork = on;
        if !on {
            self.push(if self.tuning.no_delay { Push::Everything } else { Push::Usual });
        }
    }

    /// Acknowledges at once for a while, or goes back to delayed acknowledgments.
    pub fn set_quick_ack(&mut self, on: bool) {
        self.ack.interactive = !on;
        if on && self.ack.scheduled {
            self.ack_now();
        }
    }

    /// Payload of a full segment.
    pub fn segment_size(&self) -> u32 {
        self.full_segment()
    }

    /// Changes the congestion control; the window stays.
    pub fn set_algorithm(&mut self, algorithm: Algorithm) {
        self.tuning.algorithm = algorithm;
        self.control = algorithm.start();
    }
}
