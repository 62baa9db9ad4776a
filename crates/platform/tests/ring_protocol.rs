//! The live ground's protocols under every order that the memory model allows (loom): the steps and
//! orderings of src/live, on loom's memory. Plain memory is relaxed words here, so that one that is
//! not ordered may show an old value. Each model has a broken twin that must fail, so that passing
//! means something.
//!
//! The models are written after the code, by hand: loom replaces the standard library's atomics, and
//! the words of a region are memory that several processes map, where no atomic of loom's can lie. So
//! they show that the protocols are right, and not that the code follows them: whoever changes an
//! ordering in src/live changes the model beside it. The table says which belongs to which.
//!
//! | model | code |
//! | --- | --- |
//! | `around` | `LiveCpu::mmio_write`, `Control::register_value`; `LiveDma::publish`, `LiveCpu::acquire` |
//! | `sleep` | `LiveDma::wake` and `LiveCpu::announce_sleep`; `Bell::ring` and `Bell::sleep` |
//! | `lock` | `LiveCpu::lock` and `unlock` |

use std::panic::{AssertUnwindSafe, catch_unwind};

use loom::sync::Arc;
use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use loom::thread;

/// Runs the model under every order; whether it held.
fn holds(model: impl Fn() + Sync + Send + 'static) -> bool {
    catch_unwind(AssertUnwindSafe(|| loom::model(model))).is_ok()
}

#[derive(Default)]
struct Ring {
    /// The frame, and the words of its completion but the last.
    buffer: AtomicU64,
    entry: AtomicU64,
    /// The word that announces the entry.
    done: AtomicU64,
    /// The doorbell.
    tail: AtomicU64,
}

/// A buffer goes to the device by a doorbell and comes back by a completion, twice around a ring of
/// one entry. The device must see what the driver left in the buffer, and the driver the frame.
fn around(announces: Ordering, rings: Ordering) -> bool {
    holds(move || {
        let ring = Arc::new(Ring::default());
        let device = ring.clone();
        let device = thread::spawn(move || {
            for turn in 1..=2 {
                while device.tail.load(Acquire) < turn {
                    thread::yield_now();
                }
                assert_eq!(device.buffer.load(Relaxed), turn, "what the driver left");
                device.buffer.store(turn + 100, Relaxed);
                device.entry.store(turn, Relaxed);
                device.done.store(turn, announces);
            }
        });
        for turn in 1..=2 {
            ring.buffer.store(turn, Relaxed);
            ring.tail.store(turn, rings);
            while ring.done.load(Acquire) < turn {
                thread::yield_now();
            }
            assert_eq!(ring.entry.load(Relaxed), turn);
            assert_eq!(ring.buffer.load(Relaxed), turn + 100, "the frame");
        }
        device.join().unwrap();
    })
}

#[test]
fn a_buffer_goes_around() {
    assert!(around(Release, Release));
}

#[test]
fn without_a_release_either_way_it_does_not() {
    assert!(!around(Relaxed, Release));
    assert!(!around(Release, Relaxed));
}

/// One announces sleep and looks once more; the other gives work and looks whether somebody sleeps.
/// If the one found nothing, the other must have seen it asleep, or nobody wakes it.
fn sleep(sleeper_fences: bool, waker_fences: bool) -> bool {
    holds(move || {
        let work = Arc::new(AtomicBool::new(false));
        let asleep = Arc::new(AtomicBool::new(false));
        let (its_work, its_sleep) = (work.clone(), asleep.clone());
        let waker = thread::spawn(move || {
            its_work.store(true, Release);
            if waker_fences {
                fence(SeqCst);
            }
            its_sleep.load(Relaxed) && its_sleep.swap(false, Relaxed)
        });
        asleep.store(true, Relaxed);
        if sleeper_fences {
            fence(SeqCst);
        }
        let sleeps = !work.load(Acquire);
        let woken = waker.join().unwrap();
        assert!(!sleeps || woken, "sleeps for ever");
    })
}

#[test]
fn no_side_sleeps_over_pending_work() {
    assert!(sleep(true, true));
}

#[test]
fn without_both_fences_somebody_may() {
    assert!(!sleep(false, true));
    assert!(!sleep(true, false));
}

/// Two workers count under the lock.
fn lock(takes: Ordering, gives: Ordering) -> bool {
    holds(move || {
        let lock = Arc::new(AtomicU64::new(0));
        let count = Arc::new(AtomicU64::new(0));
        let work = |mark: u64, lock: Arc<AtomicU64>, count: Arc<AtomicU64>| {
            move || {
                while lock.compare_exchange(0, mark, takes, Relaxed).is_err() {
                    thread::yield_now();
                }
                let before = count.load(Relaxed);
                count.store(before + 1, Relaxed);
                lock.store(0, gives);
            }
        };
        let other = thread::spawn(work(2, lock.clone(), count.clone()));
        work(1, lock.clone(), count.clone())();
        other.join().unwrap();
        assert_eq!(count.load(Relaxed), 2);
    })
}

#[test]
fn a_lock_orders_what_it_guards() {
    assert!(lock(Acquire, Release));
}

#[test]
fn a_lock_without_a_release_does_not() {
    assert!(!lock(Acquire, Relaxed));
}
