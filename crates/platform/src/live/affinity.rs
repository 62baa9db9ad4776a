//! Which cores threads may run on.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::LiveError;

/// The cores that this thread may run on, by number.
pub fn allowed() -> Result<Vec<usize>, LiveError> {
    let set = sched_getaffinity(None).map_err(LiveError::of("asking for cores"))?;
    let cores = 0..CpuSet::MAX_CPU;
    Ok(cores.filter(|&core| set.is_set(core)).collect())
}

/// From now on this thread runs on core `core` only.
pub fn stand_on(core: usize) -> Result<(), LiveError> {
    let mut set = CpuSet::new();
    if core < CpuSet::MAX_CPU {
        set.set(core);
    }
    sched_setaffinity(None, &set).map_err(LiveError::of(format!("pinning to core {core}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_stays_where_it_is_put() {
        let all = allowed().unwrap();
        for &core in &all {
            let after = std::thread::spawn(move || {
                stand_on(core).unwrap();
                allowed().unwrap()
            });
            assert_eq!(after.join().unwrap(), [core]);
        }
        assert_eq!(allowed().unwrap(), all, "others are left alone");
        assert!(stand_on(usize::MAX).is_err());
    }
}
