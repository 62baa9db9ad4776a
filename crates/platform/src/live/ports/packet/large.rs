//! Frames that the kernel, or the NIC behind it, finishes: it computes their checksums and cuts segments.
//!
//! ```text
//!   short:  outgoing: … │ offload header │ frame │ …        many by one call
//!   long:   offload header │ headers │ payload where it lies  one by one call, copied by the kernel only
//! ```

use std::io::IoSlice;
use std::os::fd::AsFd;

use nicforge_units::Time;
use nicforge_wire::unfinished::TxOffload;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

use super::{BATCH, Message, PacketPort};
use crate::live::LiveError;
use crate::live::ports::{BegunFrame, HEADERS_MAX, Port, finish_and_send};

/// Longer ones are not worth to be copied to save a call.
const SHORT: usize = 4096;

impl PacketPort {
    /// Sends `frame`, for which `left` is still to be done.
    pub(super) fn send_begun(&mut self, frame: &[u8], left: TxOffload, now: Time) -> Result<(), LiveError> {
        let mut room = [0; HEADERS_MAX];
        let Some(begun) = BegunFrame::of(frame, left, &mut room) else {
            return finish_and_send(self, frame, left, now);
        };
        if begun.begun.l3_len > self.link.mtu {
            self.counters.above_mtu += 1;
            return Ok(());
        }
        if frame.len() <= SHORT { self.append(&begun) } else { self.send_alone(&begun) }
    }

    /// Behind what waits to be sent; nothing is joined to it.
    fn append(&mut self, frame: &BegunFrame<'_>) -> Result<(), LiveError> {
        if self.messages.len() == BATCH {
            self.flush()?;
        }
        self.seal();
        for part in [&frame.begun.header, frame.headers, frame.rest] {
            self.outgoing.extend_from_slice(part);
        }
        self.messages.push(Message { end: self.outgoing.len(), frames: 1, bytes: frame.bytes() as u64 });
        Ok(())
    }

    /// At once, after what waits to be sent.
    fn send_alone(&mut self, frame: &BegunFrame<'_>) -> Result<(), LiveError> {
        self.flush()?;
        let parts = [&frame.begun.header, frame.headers, frame.rest].map(IoSlice::new);
        let mut none = SendAncillaryBuffer::default();
        loop {
            match sendmsg(self.socket.as_fd(), &parts, &mut none, SendFlags::DONTWAIT) {
                Ok(_) => {
                    self.counters.went_out(frame.bytes() as u64);
                    return Ok(());
                }
                Err(Errno::INTR) => {}
                Err(cause) => {
                    self.counters.refused += 1;
                    return match cause {
                        // Too long for the interface.
                        Errno::MSGSIZE | Errno::INVAL => Ok(()),
                        _ => self.excuse(cause.into()),
                    };
                }
            }
        }
    }
}
