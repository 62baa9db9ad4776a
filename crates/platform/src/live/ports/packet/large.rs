//! Frames that the kernel, or the NIC behind it, finishes: it computes their checksums and cuts segments.
//!
//! ```text
//!   short:  outgoing: … │ offload header │ frame │ …        many by one call
//!   long:   offload header │ headers │ payload where it lies  one by one call, copied by the kernel only
//! ```

use std::io::IoSlice;
use std::os::fd::AsFd;

use nicforge_units::Time;
use nicforge_wire::unfinished::{Begun, TxOffload};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

use super::{BATCH, Message, PacketPort};
use crate::live::LiveError;
use crate::live::ports::{Port, finish_and_send};

/// Longer ones are not worth to be copied to save a call.
const SHORT: usize = 4096;
/// More headers no NIC is trusted with.
const HEADERS_MAX: usize = 256;

impl PacketPort {
    /// Sends `frame`, for which `left` is still to be done.
    pub(super) fn send_begun(&mut self, frame: &[u8], left: TxOffload, now: Time) -> Result<(), LiveError> {
        let mut headers = [0; HEADERS_MAX];
        let headers = &mut headers[..frame.len().min(HEADERS_MAX)];
        headers.copy_from_slice(&frame[..headers.len()]);
        let Some(begun) = left.begin(headers, frame.len()) else {
            return finish_and_send(self, frame, left, now);
        };
        if begun.l3_len > self.link.mtu {
            self.counters.above_mtu += 1;
            return Ok(());
        }
        if frame.len() <= SHORT {
            self.append(&begun, headers, &frame[headers.len()..])
        } else {
            self.send_alone(&begun, headers, &frame[headers.len()..])
        }
    }

    /// Behind what waits to be sent; nothing is joined to it.
    fn append(&mut self, begun: &Begun, headers: &[u8], rest: &[u8]) -> Result<(), LiveError> {
        if self.messages.len() == BATCH {
            self.flush()?;
        }
        self.seal();
        for part in [&begun.header, headers, rest] {
            self.outgoing.extend_from_slice(part);
        }
        self.messages.push(Message { end: self.outgoing.len(), frames: 1, bytes: (headers.len() + rest.len()) as u64 });
        Ok(())
    }

    /// At once, after what waits to be sent.
    fn send_alone(&mut self, begun: &Begun, headers: &[u8], rest: &[u8]) -> Result<(), LiveError> {
        self.flush()?;
        let parts = [&begun.header, headers, rest].map(IoSlice::new);
        let mut none = SendAncillaryBuffer::default();
        loop {
            match sendmsg(self.socket.as_fd(), &parts, &mut none, SendFlags::DONTWAIT) {
                Ok(_) => {
                    let bytes = headers.len() + rest.len();
                    self.counters.went_out(bytes as u64);
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
