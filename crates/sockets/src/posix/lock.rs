//! Locks in shared memory. A process that dies while it holds one does not stop the others.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::Pid;
use rustix::thread::futex;

const WAITERS: u32 = 1 << 31;
/// How long to sleep before looking whether the holder lives.
const PATIENCE_NS: i64 = 20_000_000;

thread_local! {
    static THREAD: Cell<u32> = const { Cell::new(0) };
}

/// A forked child's thread has another number.
pub fn forget_thread() {
    THREAD.set(0);
}

fn thread() -> u32 {
    let mut id = THREAD.get();
    if id == 0 {
        id = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        THREAD.set(id);
    }
    id
}

/// A held lock.
#[derive(Debug)]
pub struct Held<'a>(&'a AtomicU32);

/// Takes a lock; its holder keeps it for a copy, never while it waits for a peer.
pub fn lock(word: &AtomicU32) -> Held<'_> {
    let own = thread();
    if word.compare_exchange(0, own, Ordering::Acquire, Ordering::Relaxed).is_err() {
        wait_for(word, own);
    }
    Held(word)
}

#[cold]
fn wait_for(word: &AtomicU32, own: u32) {
    loop {
        let value = word.load(Ordering::Relaxed);
        let holder = value & !WAITERS;
        if holder == 0 {
            if word.compare_exchange(value, own | WAITERS, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return;
            }
            continue;
        }
        if value & WAITERS == 0
            && word.compare_exchange(value, value | WAITERS, Ordering::Relaxed, Ordering::Relaxed).is_err()
        {
            continue;
        }
        let patience = futex::Timespec { tv_sec: 0, tv_nsec: PATIENCE_NS };
        let waited = futex::wait(word, futex::Flags::empty(), holder | WAITERS, Some(&patience));
        let dead = Pid::from_raw(holder as i32)
            .is_none_or(|pid| rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH));
        if waited == Err(rustix::io::Errno::TIMEDOUT) && dead {
            let _ = word.compare_exchange(holder | WAITERS, WAITERS, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.0.swap(0, Ordering::Release) & WAITERS != 0 {
            let _ = futex::wake(self.0, futex::Flags::empty(), 1);
        }
    }
}
