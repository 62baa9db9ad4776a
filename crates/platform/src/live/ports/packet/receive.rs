//! Frames on their way in: from the ring, or from the socket where they are longer than its slots.

use std::io;
use std::os::fd::AsFd;

use libc::{iovec, mmsghdr};
use nicforge_wire::headers::VLAN_TAG_LEN;
use nicforge_wire::offload::{OFFLOAD_HEADER_LEN, Offload};
use nicforge_wire::unfinished::TxOffload;

use super::ring::{FrameRing, Lies};
use super::tag::put_tag_in;
use super::{BATCH, PacketPort, SLOT};
use crate::live::LiveError;
use crate::live::ports::{hand_over, system};

/// Finishes what senders left to their NIC.
#[derive(Default)]
pub(super) struct Finisher {
    scratch: Vec<u8>,
    tagged: Vec<u8>,
}

impl Finisher {
    /// Hands the frame behind the offload header of `bytes` over, as it is if it has at most `longest` bytes and others can
    /// finish it; returns as how many frames, or why it cannot be read.
    fn hand_over(
        &mut self,
        bytes: &mut [u8],
        tag: Option<[u8; VLAN_TAG_LEN]>,
        longest: usize,
        each: &mut dyn FnMut(&[u8], TxOffload),
    ) -> Result<usize, &'static str> {
        let (header, frame) = bytes.split_first_chunk_mut::<OFFLOAD_HEADER_LEN>().ok_or("offload_header_missing")?;
        let offload = Offload::decode(header);
        let tagged = &mut self.tagged;
        let finished = match tag {
            None => hand_over(&offload, frame, longest, &mut self.scratch, each),
            Some(tag) => offload.finish(frame, &mut self.scratch, &mut |frame| {
                put_tag_in(tagged, frame, tag);
                each(tagged, TxOffload::default());
            }),
        };
        finished.map_err(|error| error.name())
    }
}

impl PacketPort {
    /// Receives up to `count` segments that lie in the socket.
    fn fill(&mut self, count: usize) -> Result<(), LiveError> {
        (self.next, _) = (0, self.waiting.clear());
        let mut parts: [iovec; BATCH] = std::array::from_fn(|_| iovec { iov_base: std::ptr::null_mut(), iov_len: 0 });
        // SAFETY: all zeros is a value of this plain structure.
        let mut headers: [mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        for (number, slot) in self.slots.chunks_exact_mut(SLOT).enumerate() {
            parts[number].iov_base = slot.as_mut_ptr().cast();
            parts[number].iov_len = slot.len();
            headers[number].msg_hdr.msg_iov = &raw mut parts[number];
            headers[number].msg_hdr.msg_iovlen = 1;
        }
        loop {
            // SAFETY: the headers point to `parts`, and those to `slots`, which live on and are used by nobody else until
            // the call is over.
            match unsafe { system::receive_messages(self.socket.as_fd(), &mut headers[..count]) } {
                Ok(received) => {
                    self.waiting.extend(headers[..received].iter().map(|header| header.msg_len as usize));
                    return Ok(());
                }
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // An error of the interface comes before the segments, once.
                Err(cause) => self.excuse(cause)?,
            }
        }
    }

    /// Hands the oldest frame over; returns as how many, or `None` if there is none.
    pub(super) fn take(
        &mut self,
        longest: usize,
        each: &mut dyn FnMut(&[u8], TxOffload),
    ) -> Result<Option<usize>, LiveError> {
        let Some(front) = self.ring.as_mut().and_then(FrameRing::front) else {
            return Ok(None);
        };
        let (lies, tag) = (front.lies, front.tag);
        let taken = match lies {
            Lies::Here => self.finisher.hand_over(front.bytes, tag, longest, each),
            Lies::Lost => Err("socket_full"),
            Lies::InSocket => {
                if self.next == self.waiting.len() {
                    let count = self.ring.as_ref().map_or(0, |ring| ring.in_socket(BATCH));
                    self.fill(count)?;
                }
                match self.waiting.get(self.next) {
                    Some(&len) => {
                        let slot = &mut self.slots[self.next * SLOT..][..len];
                        self.next += 1;
                        self.finisher.hand_over(slot, tag, longest, each)
                    }
                    None => Err("socket_full"),
                }
            }
        };
        if let Some(ring) = &mut self.ring {
            ring.release();
        }
        Ok(Some(taken.unwrap_or_else(|cause| {
            self.counters.lost(cause, 1);
            0
        })))
    }
}
