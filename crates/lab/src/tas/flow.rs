//! A connection as an application sees it: its rings, and messages on their way.

use std::collections::VecDeque;

use nicforge_nic::Segment;

use super::message::Message;
use super::records::SharedRecords;
use super::rings::{Mapped, Ring, SharedFlow};

/// A connection as the application sees it.
pub struct RpcFlow {
    pub rings: SharedFlow,
    pub records: Option<SharedRecords>,
    pub is_storage: bool,
    pub read_at: u32,
    pub write_at: u32,
    pub readable: u32,
    pub free: u32,
    pub asked: u64,
    pub answered: u64,
    /// What comes in, and what has to go out.
    pub coming: Message,
    pub going: VecDeque<Message>,
    /// Bytes read and written that the service was not told of.
    pub read: u32,
    pub wrote: u32,
    /// Entries about it so far.
    pub entries: u16,
    /// It writes no more, and the service knows.
    pub closes: bool,
    pub told: bool,
    pub peer_closed: bool,
}

impl RpcFlow {
    pub fn new(Mapped { rings, records, is_storage }: Mapped) -> RpcFlow {
        RpcFlow {
            rings,
            records,
            is_storage,
            read_at: 0,
            write_at: 0,
            readable: 0,
            free: rings.transmit.len,
            asked: 0,
            answered: 0,
            coming: Message::default(),
            going: VecDeque::new(),
            read: 0,
            wrote: 0,
            entries: 0,
            closes: false,
            told: false,
            peer_closed: false,
        }
    }

    /// There is something that the service has to know.
    pub fn has_news(&self) -> bool {
        self.read + self.wrote > 0 || self.closes && !self.told
    }

    /// Both ends have closed, and the peer has all bytes: nothing more will be said of it.
    pub fn is_over(&self) -> bool {
        self.told && self.peer_closed && self.free == self.rings.transmit.len
    }

    pub fn next_read(&mut self, len: u32) -> [Segment; 2] {
        let pieces = self.rings.receive.pieces(self.read_at, len);
        self.read_at = after(self.rings.receive, self.read_at, len);
        self.readable -= len;
        self.read += len;
        pieces
    }

    pub fn next_write(&mut self, len: u32) -> [Segment; 2] {
        let pieces = self.rings.transmit.pieces(self.write_at, len);
        self.write_at = after(self.rings.transmit, self.write_at, len);
        self.free -= len;
        self.wrote += len;
        pieces
    }
}

fn after(ring: Ring, place: u32, len: u32) -> u32 {
    (place + len) % ring.len
}
