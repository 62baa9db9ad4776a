//! A frame as stages see it.

use std::borrow::Cow;

use nicforge_units::Time;
use nicforge_wire::{FrameError, FrameSummary, parse_headers};

use crate::{Arriving, PortId, RxFlags};

/// A frame on a device's path: its bytes, what the parser found in it, and what travels with it.
#[derive(Clone, Debug)]
pub struct Frame<'a> {
    bytes: Cow<'a, [u8]>,
    head: usize,
    headers: usize,
    summary: FrameSummary,
    /// When its first bit came in; of a frame that leaves: what its descriptor carried.
    pub arrival: Time,
    /// Its RSS hash; 0 of a frame that leaves.
    pub hash: u32,
    /// The queue that steering chose, or that it comes from.
    pub queue: u16,
    /// The port that it came in on, or leaves by.
    pub port: PortId,
    /// What the NIC verified, and what stages found out: 32 bits, in the completion.
    pub flags: RxFlags,
    /// A stage's word to the host: 64 bits, in the completion.
    pub mark: u64,
    /// Payload bytes of each frame that it stands for, or 0.
    pub segment: u16,
}

impl<'a> Frame<'a> {
    /// A frame that came in, in which the parser found `summary`.
    pub fn arrived(frame: &Arriving<'a>, summary: FrameSummary) -> Frame<'a> {
        Frame {
            bytes: Cow::Borrowed(frame.bytes),
            head: frame.head,
            headers: frame.headers,
            summary,
            arrival: frame.stamp,
            hash: frame.rss_hash,
            queue: frame.queue,
            port: frame.port,
            flags: frame.flags,
            mark: frame.mark,
            segment: frame.segment,
        }
    }

    /// A frame of queue `queue` that leaves by `port`.
    ///
    /// # Errors
    /// The parser cannot read it.
    pub fn leaving(bytes: Vec<u8>, port: PortId, queue: u16, stamp: Time) -> Result<Frame<'static>, FrameError> {
        let summary = parse_headers(&bytes, bytes.len())?;
        Ok(Frame {
            head: bytes.len(),
            headers: summary.headers_end(&bytes),
            bytes: Cow::Owned(bytes),
            summary,
            arrival: stamp,
            hash: 0,
            queue,
            port,
            flags: RxFlags::default(),
            mark: 0,
            segment: 0,
        })
    }

    /// Its bytes, without FCS.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What the parser found in it.
    pub fn summary(&self) -> &FrameSummary {
        &self.summary
    }

    /// Changes its bytes, which may become more or fewer, and parses it anew. The first change copies it.
    ///
    /// # Errors
    /// The parser cannot read what it became; the summary stays that of before.
    pub fn edit(&mut self, change: impl FnOnce(&mut Vec<u8>)) -> Result<(), FrameError> {
        let bytes = self.bytes.to_mut();
        change(bytes);
        self.head = bytes.len();
        self.summary = parse_headers(bytes, bytes.len())?;
        self.headers = self.summary.headers_end(bytes);
        Ok(())
    }

    /// The frame on its way to the host.
    pub fn arriving(&self) -> Arriving<'_> {
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
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes.into_owned()
    }
}
