//! A frame as stages see it.

use std::borrow::Cow;

use nicforge_units::Time;
use nicforge_wire::{FrameError, FrameSummary, parse_headers};

use super::Leaving;
use crate::{Arriving, PortId, RxFlags, TxOffload};

/// A frame on a device's path: its bytes, what the parser found in it, and what travels with it.
#[derive(Clone, Debug)]
pub struct Frame<'a> {
    bytes: Cow<'a, [u8]>,
    head: usize,
    headers: usize,
    summary: FrameSummary,
    queue: u16,
    /// A stage chose the queue.
    is_steered: bool,
    is_edited: bool,
    /// When its first bit came in; of a frame that leaves, what its descriptor carried.
    pub arrival: Time,
    /// Its RSS hash; 0 of a frame that leaves.
    pub hash: u32,
    /// The port that it came in on, or leaves by.
    pub port: PortId,
    /// Verdicts of the NIC's checksum unit (bits 0 to 7) and of stages (from bit 8); the completion carries all 32 bits.
    pub flags: RxFlags,
    /// 64 bits between a stage and the host: in the completion of a frame that comes in, and from the transmit
    /// descriptor of one that leaves.
    pub mark: u64,
    /// Payload bytes of each frame that it stands for, or 0.
    pub segment: u16,
    /// Of a frame that leaves: what others still do to it behind the wire.
    pub left: TxOffload,
}

impl<'a> Frame<'a> {
    /// A frame that came in, in which the parser found `summary`.
    pub(crate) fn arrived(frame: &Arriving<'a>, summary: FrameSummary) -> Frame<'a> {
        Frame {
            bytes: Cow::Borrowed(frame.bytes),
            head: frame.head,
            headers: frame.headers,
            summary,
            queue: frame.queue,
            is_steered: false,
            is_edited: false,
            arrival: frame.stamp,
            hash: frame.rss_hash,
            port: frame.port,
            flags: frame.flags,
            mark: frame.mark,
            segment: frame.segment,
            left: TxOffload::default(),
        }
    }

    /// A frame that leaves.
    ///
    /// # Errors
    /// The parser cannot read it.
    pub(crate) fn leaving(leaving: Leaving) -> Result<Frame<'static>, Box<Leaving>> {
        let summary = match parse_headers(&leaving.bytes, leaving.bytes.len()) {
            Ok(summary) => summary,
            Err(_) => return Err(Box::new(leaving)),
        };
        Ok(Frame {
            head: leaving.bytes.len(),
            headers: summary.headers_end(&leaving.bytes),
            summary,
            queue: leaving.queue.unwrap_or_default(),
            is_steered: true,
            is_edited: false,
            arrival: leaving.stamp,
            hash: 0,
            port: leaving.port,
            flags: RxFlags::default(),
            mark: leaving.mark,
            segment: leaving.left.segment,
            left: leaving.left,
            bytes: Cow::Owned(leaving.bytes),
        })
    }

    /// Its bytes, without FCS.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The parser's summary.
    pub fn summary(&self) -> &FrameSummary {
        &self.summary
    }

    /// The queue that steering chose, or that it comes from; 0 of a frame that another stage sent.
    pub fn queue(&self) -> u16 {
        self.queue
    }

    /// Sends the frame to this queue. Without it, a frame that stages changed is steered anew.
    pub fn steer(&mut self, queue: u16) {
        self.queue = queue;
        self.is_steered = true;
    }

    /// Changes its bytes, which may become more or fewer, and parses it anew. The first change copies it.
    ///
    /// # Errors
    /// The parser cannot read what it became; the summary stays that of before.
    pub fn edit(&mut self, change: impl FnOnce(&mut Vec<u8>)) -> Result<(), FrameError> {
        let bytes = self.bytes.to_mut();
        change(bytes);
        self.head = bytes.len();
        self.is_edited = true;
        self.headers = self.headers.min(bytes.len());
        self.summary = parse_headers(bytes, bytes.len())?;
        self.headers = self.summary.headers_end(bytes);
        Ok(())
    }

    /// Changes bytes that are no headers, such as a payload that is decrypted in place: lengths stay, so nothing is
    /// parsed again. The first change copies the frame.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let from = self.headers;
        self.head = self.bytes.len();
        self.is_edited = true;
        &mut self.bytes.to_mut()[from..]
    }

    /// Whether steering is to choose its queue again.
    pub(crate) fn wants_queue(&self) -> bool {
        self.is_edited && !self.is_steered
    }

    /// Steering chose `queue`, by `hash`.
    pub(crate) fn steered(&mut self, hash: u32, queue: u16) {
        (self.hash, self.queue) = (hash, queue);
    }

    /// The frame on its way to the host.
    pub(crate) fn arriving(&self) -> Arriving<'_> {
        Arriving {
            bytes: &self.bytes,
            head: self.head,
            headers: self.headers,
            stamp: self.arrival,
            rss_hash: self.hash,
            flags: self.flags,
            mark: self.mark,
            segment: self.segment,
            port: self.port,
            queue: self.queue,
        }
    }

    /// Takes its bytes.
    pub(crate) fn take_bytes(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes).into_owned()
    }

    /// The frame behind the stages, where it may leave at `ready`.
    pub(crate) fn behind_stages(self, queue: Option<u16>, ready: Time) -> Leaving {
        Leaving {
            port: self.port,
            queue,
            stamp: self.arrival,
            mark: self.mark,
            left: self.left,
            bytes: self.bytes.into_owned(),
            ready,
            behind: 0,
        }
    }
}
