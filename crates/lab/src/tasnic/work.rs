//! Events and their results, as they travel through the pipeline.

use nicforge_platform::sim::npu::ThreadId;
use nicforge_tcp::conn::Placement;
use nicforge_tcp::fast::{Bump, Summary};
use nicforge_tcp::queue::ToApplication;
use nicforge_tcp::segment::Header;

/// The four kinds of event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A frame came from the wire.
    #[default]
    Rx,
    /// An application read or wrote.
    Ac,
    /// The queue manager says that a flow may send.
    Tx,
    /// The slow path says that a flow timed out.
    Retx,
}

/// An event on its way, with what the stages leave for each other.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// Its kind.
    pub kind: Kind,
    /// Its connection, once it is known.
    pub flow: u32,
    /// It goes no further: pre-processing found that it is the slow path's, or nobody's.
    pub is_over: bool,
    /// The frame that came.
    pub frame: Vec<u8>,
    /// Its number at the wire.
    pub arrival: u64,
    /// Digest of its header.
    pub summary: Summary,
    /// The clock that it echoes.
    pub echo: Option<u32>,
    /// Where in the frame its payload begins.
    pub payload_at: u32,
    /// Bytes that the application read and wrote.
    pub bump: Bump,
    /// Entries about its connection that the application wrote before.
    pub entry: u16,
    /// Its turn at its connection.
    pub ticket: u64,
    /// Its number on the way out: the protocol stage's order in the flow-group.
    pub order: u64,
    /// The thread that waits for its payload, where one FPC does all.
    pub thread: Option<ThreadId>,
    /// The result of the protocol stage.
    pub outcome: Outcome,
    /// The frame to send, without payload at first.
    pub out: Vec<u8>,
}

/// The result of the protocol stage, for post-processing: a snapshot of the connection.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The header of an acknowledgment or a segment.
    pub header: Option<Header>,
    /// Received payload that has to be stored.
    pub store: Option<Placement>,
    /// Payload to send: where it lies in the transmit ring, and its length.
    pub fetch: Option<(u32, u32)>,
    /// Bytes of records that the NIC reads again: before those that it sends, behind those that it stores.
    pub again: u32,
    /// News for the application.
    pub notify: Option<ToApplication>,
    /// Sequence numbers that may be sent.
    pub sendable: u32,
    /// TX events of the connection that the protocol stage has taken so far.
    pub departed: u64,
    /// Counts the connection's events at the protocol stage.
    pub version: u64,
}

/// Pieces of work by number, which are used again.
#[derive(Debug)]
pub struct Slab<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Keeps `item`; returns its number.
    pub fn put(&mut self, item: T) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.slots[number as usize] = Some(item);
                number
            }
            None => {
                self.slots.push(Some(item));
                (self.slots.len() - 1) as u32
            }
        }
    }

    /// Item `number`.
    pub fn get(&mut self, number: u32) -> Option<&mut T> {
        self.slots.get_mut(number as usize)?.as_mut()
    }

    /// Takes item `number` out.
    pub fn take(&mut self, number: u32) -> Option<T> {
        let item = self.slots.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(item)
    }

    /// Items in it.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
