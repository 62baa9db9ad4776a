//! Which descriptor numbers of this process are ours.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use arc_swap::{ArcSwapOption, Guard};

use super::socket::Socket;

/// Numbers from here on are the kernel's.
const NUMBERS: usize = 1 << 20;

static SOCKETS: [ArcSwapOption<Socket>; NUMBERS] = [const { ArcSwapOption::const_empty() }; NUMBERS];
/// Whether a slot of `SOCKETS` is in use: what programs do with other descriptors costs one load more.
static OURS: [AtomicBool; NUMBERS] = [const { AtomicBool::new(false) }; NUMBERS];
/// Highest number that was ever ours.
static HIGHEST: AtomicI32 = AtomicI32::new(-1);
/// Descriptors of the library itself, which programs that close everything leave alone.
static PROTECTED: [AtomicI32; 4] = [const { AtomicI32::new(-1) }; 4];

/// A socket while a call uses it: another thread may close the number meanwhile.
pub type Held = Arc<Socket>;

/// The socket of a number, if it is ours.
#[inline]
pub fn get(number: i32) -> Option<Held> {
    if !OURS.get(number as usize)?.load(Ordering::Acquire) {
        return None;
    }
    Guard::into_inner(SOCKETS[number as usize].load())
}

/// Makes a number ours. Returns whether there is room for it.
pub fn set(number: i32, socket: Arc<Socket>) -> bool {
    let Some(slot) = SOCKETS.get(number as usize) else { return false };
    slot.store(Some(socket));
    HIGHEST.fetch_max(number, Ordering::AcqRel);
    OURS[number as usize].store(true, Ordering::Release);
    true
}

/// Makes a number the kernel's.
pub fn take(number: i32) -> Option<Arc<Socket>> {
    if !OURS.get(number as usize)?.swap(false, Ordering::AcqRel) {
        return None;
    }
    SOCKETS[number as usize].swap(None)
}

/// All numbers that are ours.
pub fn numbers() -> impl Iterator<Item = i32> {
    (0..=HIGHEST.load(Ordering::Acquire)).filter(|number| OURS[*number as usize].load(Ordering::Acquire))
}

/// Protects a descriptor of the library.
pub fn protect(number: i32) {
    for slot in &PROTECTED {
        if slot.compare_exchange(-1, number, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            return;
        }
    }
}

/// Protects it no longer.
pub fn unprotect(number: i32) {
    for slot in &PROTECTED {
        let _ = slot.compare_exchange(number, -1, Ordering::AcqRel, Ordering::Relaxed);
    }
}

/// Whether a number is the library's own.
#[inline]
pub fn protected(number: i32) -> bool {
    number >= 0 && PROTECTED.iter().any(|slot| slot.load(Ordering::Relaxed) == number)
}

/// The library's own numbers, in order.
pub fn protected_numbers() -> Vec<i32> {
    let mut numbers: Vec<i32> = PROTECTED.iter().map(|slot| slot.load(Ordering::Relaxed)).filter(|n| *n >= 0).collect();
    numbers.sort_unstable();
    numbers
}
