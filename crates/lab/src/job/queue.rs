//! Jobs taken by a few threads in order; results by index, in any order of completion.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Runs `job(0) … job(count - 1)` on `threads` threads. Returns all results in order, or the
/// error of the lowest failed job; after a failure no further job starts.
pub fn in_order<T: Send, E: Send>(
    count: usize,
    threads: usize,
    job: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let finished: Mutex<Vec<(usize, Result<T, E>)>> = Mutex::new(Vec::with_capacity(count));
    let work = || {
        while !failed.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                break;
            }
            let result = job(index);
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            // A poisoned lock means that another job panicked; the scope passes that on.
            if let Ok(mut finished) = finished.lock() {
                finished.push((index, result));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(count) {
            scope.spawn(work);
        }
        work();
    });
    let mut finished = finished.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    finished.sort_by_key(|(index, _)| *index);
    finished.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_for_any_number_of_threads() {
        for threads in [1, 2, 7, 100] {
            let squares = in_order(20, threads, |index| Ok::<_, ()>(index * index)).unwrap();
            assert_eq!(squares, (0..20).map(|index| index * index).collect::<Vec<_>>());
        }
        assert!(in_order(0, 4, Ok::<_, ()>).unwrap().is_empty());
    }

    #[test]
    fn the_lowest_failure_is_returned_and_stops_the_rest() {
        let ran = AtomicUsize::new(0);
        let result = in_order(1000, 1, |index| {
            ran.fetch_add(1, Ordering::Relaxed);
            if index == 3 { Err(index) } else { Ok(index) }
        });
        assert_eq!(result, Err(3));
        assert_eq!(ran.load(Ordering::Relaxed), 4);
    }
}
