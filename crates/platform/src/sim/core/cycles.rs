//! Where a core's time went.

use crate::Part;

/// Where a core's time went, in picoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoreCycles {
    /// Work by [`Part`], stalls excluded.
    pub work_ps: [u64; Part::ALL.len()],
    /// Waiting for memory, by [`Part`].
    pub stall_ps: [u64; Part::ALL.len()],
    /// Empty polls.
    pub idle_ps: u64,
}

impl CoreCycles {
    /// What was spent since `earlier`.
    pub fn since(&self, earlier: &CoreCycles) -> CoreCycles {
        let since = |now: [u64; Part::ALL.len()], before: [u64; Part::ALL.len()]| {
            std::array::from_fn(|part| now[part] - before[part])
        };
        CoreCycles {
            work_ps: since(self.work_ps, earlier.work_ps),
            stall_ps: since(self.stall_ps, earlier.stall_ps),
            idle_ps: self.idle_ps - earlier.idle_ps,
        }
    }
}
