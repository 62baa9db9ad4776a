//! What happens when a peer shrinks a file whose pages are mapped here: the system raises SIGBUS at the
//! next access, which would end the process. For mappings that are watched the handler puts zeros in
//! their place instead, and remembers it.
//!
//! The handler only reads atomics and calls `mmap` and `sigaction`, all of which a handler may do.

use std::io;
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use libc::{c_int, c_void, siginfo_t};

/// Mappings that can be watched at once.
const PLACES: usize = 1024;

/// A watched mapping; `len` is 0 where there is none, and is written last.
struct Place {
    taken: AtomicBool,
    base: AtomicUsize,
    len: AtomicUsize,
    broken: AtomicBool,
}

static WATCHED: [Place; PLACES] = [const {
    Place {
        taken: AtomicBool::new(false),
        base: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        broken: AtomicBool::new(false),
    }
}; PLACES];

/// What the process did before about the signal; `None` where the handler could not be installed.
static BEFORE: OnceLock<Option<libc::sigaction>> = OnceLock::new();

/// A watched mapping.
#[derive(Debug)]
pub struct Watch(usize);

impl Watch {
    /// Watches `len` bytes at `base`.
    ///
    /// # Safety
    /// They are a mapping of whole pages that whoever calls may replace, and the watch is dropped before the
    /// mapping goes.
    ///
    /// # Errors
    /// Too many are watched, or the system refuses a handler.
    pub unsafe fn over(base: usize, len: usize) -> io::Result<Watch> {
        if BEFORE.get_or_init(install).is_none() {
            return Err(io::Error::other("the system takes no handler for SIGBUS"));
        }
        let free = |place: &Place| !place.taken.swap(true, Ordering::AcqRel);
        let number = WATCHED.iter().position(free).ok_or_else(|| io::Error::other("too many mappings of peers"))?;
        let place = &WATCHED[number];
        place.broken.store(false, Ordering::Relaxed);
        place.base.store(base, Ordering::Relaxed);
        place.len.store(len, Ordering::Release);
        Ok(Watch(number))
    }

    /// Whether pages of it were gone.
    pub fn is_broken(&self) -> bool {
        WATCHED[self.0].broken.load(Ordering::Relaxed)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let place = &WATCHED[self.0];
        place.len.store(0, Ordering::Release);
        place.taken.store(false, Ordering::Release);
    }
}

fn install() -> Option<libc::sigaction> {
    // SAFETY: all zeros is a value of this plain structure.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handle as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    let mut before = MaybeUninit::uninit();
    // SAFETY: both structures are valid, and the handler does only what one may.
    let result = unsafe { libc::sigaction(libc::SIGBUS, &action, before.as_mut_ptr()) };
    // SAFETY: the call succeeded, so it wrote what was there before.
    (result == 0).then(|| unsafe { before.assume_init() })
}

extern "C" fn handle(_signal: c_int, info: *mut siginfo_t, _context: *mut c_void) {
    // SAFETY: the system hands a valid structure over, and the address is set for this signal.
    let at = unsafe { (*info).si_addr() } as usize;
    for place in &WATCHED {
        let len = place.len.load(Ordering::Acquire);
        let base = place.base.load(Ordering::Relaxed);
        if len == 0 || at < base || at - base >= len {
            continue;
        }
        place.broken.store(true, Ordering::Relaxed);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        // SAFETY: the range is the watched mapping, whose owner lets it be replaced; it is used by raw
        // copies and atomics only, for which any bytes do.
        let placed = unsafe { libc::mmap(base as *mut c_void, len, protection, flags, -1, 0) };
        if placed != libc::MAP_FAILED {
            return;
        }
    }
    // Nothing of ours: the access is repeated, and what was there before deals with it.
    if let Some(Some(before)) = BEFORE.get() {
        // SAFETY: the structure is one that the system filled in.
        unsafe { libc::sigaction(libc::SIGBUS, before, std::ptr::null_mut()) };
    }
}
