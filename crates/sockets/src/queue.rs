//! Context queues: one producer, one consumer, no shared index.
//!
//! The producer writes an entry where it finds a free one and its kind last; the consumer takes it and writes zero
//! back, which frees the entry.

use std::sync::atomic::Ordering;

use crate::layout::{Entry, Kind, QUEUE_ENTRIES};

/// An entry's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// What it says.
    pub kind: Kind,
    /// The flow that it is about.
    pub flow: u32,
    /// Movement of the receive ring, bytes.
    pub rx_bump: u32,
    /// Movement of the transmit ring, bytes.
    pub tx_bump: u32,
    /// Key or opaque value.
    pub word: u64,
    /// Flags of an ARX entry.
    pub flags: u32,
}

impl Message {
    /// A message with nothing but its kind.
    pub fn new(kind: Kind, flow: u32) -> Message {
        Message { kind, flow, rx_bump: 0, tx_bump: 0, word: 0, flags: 0 }
    }
}

/// The queue has no free entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// The writing end.
#[derive(Debug, Default)]
pub struct Producer {
    next: usize,
    sequence: u32,
}

impl Producer {
    /// Writes one entry.
    #[inline]
    pub fn push(&mut self, queue: &[Entry], message: Message) -> Result<(), Full> {
        let entry = &queue[self.next];
        if entry.kind.load(Ordering::Acquire) != 0 {
            return Err(Full);
        }
        entry.rx_bump.store(message.rx_bump, Ordering::Relaxed);
        entry.tx_bump.store(message.tx_bump, Ordering::Relaxed);
        entry.flow.store(message.flow, Ordering::Relaxed);
        entry.sequence.store(self.sequence, Ordering::Relaxed);
        entry.low.store(message.word as u32, Ordering::Relaxed);
        entry.high.store((message.word >> 32) as u32, Ordering::Relaxed);
        entry.flags.store(message.flags, Ordering::Relaxed);
        entry.kind.store(message.kind as u32, Ordering::Release);
        self.next = (self.next + 1) % QUEUE_ENTRIES;
        self.sequence = self.sequence.wrapping_add(1);
        Ok(())
    }
}

/// The reading end.
#[derive(Debug, Default)]
pub struct Consumer {
    next: usize,
}

/// What the reading end found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Nothing.
    Empty,
    /// An entry.
    Message(Message),
    /// An entry of a kind that does not exist.
    Unknown(u32),
}

impl Consumer {
    /// Whether an entry waits.
    #[inline]
    pub fn ready(&self, queue: &[Entry]) -> bool {
        queue[self.next].kind.load(Ordering::Acquire) != 0
    }

    /// Takes one entry and frees it.
    #[inline]
    pub fn take(&mut self, queue: &[Entry]) -> Taken {
        let entry = &queue[self.next];
        let number = entry.kind.load(Ordering::Acquire);
        if number == 0 {
            return Taken::Empty;
        }
        let word = u64::from(entry.low.load(Ordering::Relaxed)) | u64::from(entry.high.load(Ordering::Relaxed)) << 32;
        let taken = Kind::of(number).map_or(Taken::Unknown(number), |kind| {
            Taken::Message(Message {
                kind,
                flow: entry.flow.load(Ordering::Relaxed),
                rx_bump: entry.rx_bump.load(Ordering::Relaxed),
                tx_bump: entry.tx_bump.load(Ordering::Relaxed),
                word,
                flags: entry.flags.load(Ordering::Relaxed),
            })
        });
        entry.kind.store(0, Ordering::Release);
        self.next = (self.next + 1) % QUEUE_ENTRIES;
        taken
    }
}
