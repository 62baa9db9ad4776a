//! What an agent is about to do, said ahead of time, and where it is with a packet.

use crate::{Addr, BurstMoment, Moment, PacketKey};

/// What a core or a device is about to do. It only helps caches, real or modelled, or the machine that simulates: nothing in
/// memory changes, whatever the address. Grounds ignore hints that they cannot use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// A core reads `len` bytes at `at` soon: a prefetch instruction. A model charges it as a read that overlaps with
    /// others.
    Fetch {
        /// Where they begin.
        at: Addr,
        /// How many.
        len: usize,
    },
    /// The line at `at` is written soon; another agent may have read it last.
    Write(Addr),
    /// A core goes on when its stores so far are seen by all others. On x86 they are seen in order without that.
    StoreFence,
    /// A core looks at words `stride` bytes apart, from `from` to before `until`, until the lowest bit of one is not
    /// `bit`. Where transfers between caches take real time they run side by side.
    Words {
        /// The first word.
        from: Addr,
        /// Where the last one is before.
        until: Addr,
        /// Bytes from one to the next.
        stride: u64,
        /// The lowest bit of a word that is there.
        bit: u64,
    },
    /// A core looks at completions soon, and at the buffers that they name.
    Completions(Completions),
    /// A device writes a frame of about `len` bytes at `at` in a few frames.
    Frame {
        /// Where it begins.
        at: Addr,
        /// How long it is.
        len: usize,
    },
    /// The next frame that a device writes, of about `len` bytes, goes to `at`, which was a [`Frame`](Hint::Frame)
    /// hint before.
    NextFrame {
        /// Where it begins.
        at: Addr,
        /// How long it is.
        len: usize,
    },
    /// A device's next write goes to memory, past all caches, if the machine can do that.
    PastCaches,
    /// A device reads `len` bytes at `at` soon, which no agent changes any more.
    Read {
        /// Where they begin.
        at: Addr,
        /// How many.
        len: usize,
    },
    /// A packet has come to this moment: for a ground that traces.
    Packet(PacketKey, Moment),
    /// A core's burst has come to this moment: likewise.
    Burst(BurstMoment),
}

/// Three completions of a line each, one behind the other, whose last word announces them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completions {
    /// Where each lies.
    pub at: [Addr; 3],
    /// The lowest bit of each one's last word when it is there.
    pub bit: [u64; 3],
    /// The word that names a place.
    pub names: u64,
    /// The lines that the core accesses, counted from the one of that place.
    pub lines: [u64; 4],
}
