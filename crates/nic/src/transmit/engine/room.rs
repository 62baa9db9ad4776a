//! Room in the internal buffer: taken from the issue of a frame's read until its last bit is sent.

use nicforge_units::{Bytes, Time};

use super::TransmitEngine;

impl TransmitEngine {
    /// Gives back the room of what was sent.
    pub(super) fn release(&mut self, now: Time) {
        while let Some(&(sent, len)) = self.taken_until.front()
            && sent <= now
        {
            self.taken = self.taken - len;
            self.taken_until.pop_front();
        }
    }

    /// Whether the internal buffer has room for `len` bytes now; else when it has.
    pub(super) fn room_at(&self, now: Time, len: Bytes) -> Result<(), Time> {
        let mut taken = self.taken;
        let mut at = now;
        for &(sent, bytes) in &self.taken_until {
            if taken + len <= self.buffer_size {
                break;
            }
            taken = taken - bytes;
            at = sent;
        }
        if at > now { Err(at) } else { Ok(()) }
    }

    /// Bytes in the internal buffer until `last_bit`.
    pub(super) fn take_room(&mut self, bytes: Bytes, last_bit: Time) {
        self.taken += bytes;
        self.taken_until.push_back((last_bit, bytes));
    }
}
