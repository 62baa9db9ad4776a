//! The NIC's table of memory keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nicforge_platform::Addr;

use crate::DropCause;

/// Who holds memory of a NIC and owns its queues: a process, a tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Application(pub u16);

/// What a descriptor names a piece of a NIC's memory by: the slot in the NIC's table (low bits)
/// and how often the slot was given out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key(pub u32);

impl Key {
    /// Not the NIC's memory but the host's.
    pub const HOST: Key = Key(0);
}

/// Why the NIC does not touch what a descriptor names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The key was never given out, or to another application than the ring's.
    ForeignKey,
    /// The memory was given back.
    UseAfterFree,
    /// Not all of it lies in the piece that the key is for.
    OutOfBounds,
    /// It is memory of the NIC, and there is no key.
    NoKey,
}

impl Refusal {
    /// The name that it is counted under.
    pub const fn cause(self) -> DropCause {
        DropCause(match self {
            Refusal::ForeignKey => "nicmem_foreign_key",
            Refusal::UseAfterFree => "nicmem_use_after_free",
            Refusal::OutOfBounds => "nicmem_out_of_bounds",
            Refusal::NoKey => "nicmem_no_key",
        })
    }
}

const SLOT_BITS: u32 = 10;
/// Pieces that a NIC tells apart at a time.
const SLOTS: usize = 1 << SLOT_BITS;
/// How often a slot is given out: what a key has room for.
const TURNS_MAX: u64 = (1 << (32 - SLOT_BITS)) - 1;

/// One slot. Software writes it before it uses the key, and no descriptor names the memory after
/// it was given back, but those that are refused: so the words need no order among themselves.
#[derive(Debug, Default)]
struct Slot {
    /// How often it was given out, and whether it is now (lowest bit).
    turn: AtomicU64,
    application: AtomicU64,
    begin: AtomicU64,
    end: AtomicU64,
}

/// What a NIC knows of whose its memory is. Clones are the same table; it is shared between the
/// device and whoever hands memory out. The default is that of a NIC without such memory.
#[derive(Clone, Debug, Default)]
pub struct KeyTable {
    slots: Arc<[Slot]>,
    begin: u64,
    end: u64,
}

impl KeyTable {
    /// The table of a NIC whose memory is the `len` bytes at `at`.
    pub(super) fn new(at: Addr, len: u64) -> KeyTable {
        let slots = if len > 0 { SLOTS } else { 0 };
        KeyTable { slots: (0..slots).map(|_| Slot::default()).collect(), begin: at.0, end: at.0 + len }
    }

    /// A new key for `len` bytes at `at`; `None` when there is none left.
    pub(super) fn issue(&self, application: Application, at: Addr, len: u64) -> Option<Key> {
        let mut turns = self.slots.iter().map(|slot| slot.turn.load(Ordering::Acquire));
        let number = turns.position(|turn| turn & 1 == 0 && turn >> 1 < TURNS_MAX)?;
        let slot = &self.slots[number];
        let turn = (slot.turn.load(Ordering::Acquire) >> 1) + 1;
        slot.application.store(application.0.into(), Ordering::Relaxed);
        slot.begin.store(at.0, Ordering::Relaxed);
        slot.end.store(at.0 + len, Ordering::Relaxed);
        slot.turn.store(turn << 1 | 1, Ordering::Release);
        Some(Key((turn << SLOT_BITS) as u32 | number as u32))
    }

    /// `key` is worth nothing any more.
    pub(super) fn revoke(&self, key: Key) {
        let slot = &self.slots[key.0 as usize % SLOTS];
        let turn = slot.turn.load(Ordering::Acquire);
        slot.turn.store(turn & !1, Ordering::Release);
    }

    /// Whether any of the bytes from `at` to before `end` is memory of this NIC.
    #[inline]
    pub fn overlaps(&self, at: Addr, end: Addr) -> bool {
        at.0 < self.end && end.0 > self.begin
    }

    /// Whether a ring of `application` may name the `len` bytes at `at` by `key`, which is not
    /// [`Key::HOST`].
    ///
    /// # Errors
    /// Why not.
    #[inline]
    pub fn check(&self, application: Application, key: Key, at: Addr, len: u64) -> Result<(), Refusal> {
        let wanted = u64::from(key.0 >> SLOT_BITS);
        let Some(slot) = self.slots.get(key.0 as usize % SLOTS) else {
            return Err(Refusal::ForeignKey);
        };
        let turn = slot.turn.load(Ordering::Acquire);
        if turn != wanted << 1 | 1 {
            let was_given = wanted > 0 && wanted <= turn >> 1;
            return Err(if was_given { Refusal::UseAfterFree } else { Refusal::ForeignKey });
        }
        if slot.application.load(Ordering::Relaxed) != u64::from(application.0) {
            return Err(Refusal::ForeignKey);
        }
        let begin = slot.begin.load(Ordering::Relaxed);
        let end = slot.end.load(Ordering::Relaxed);
        if at.0 >= begin && at.0 <= end && len <= end - at.0 { Ok(()) } else { Err(Refusal::OutOfBounds) }
    }
}
