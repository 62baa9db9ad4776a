//! The newest counts of a live run, for all who show them.

use std::sync::{Arc, Mutex, PoisonError};

use nicforge_lab::live::Snapshot;

/// What a run says, and pages read. Neither waits for the other: nobody holds it for longer than a copy of a pointer.
#[derive(Clone, Default)]
pub struct Shared(Arc<Mutex<Arc<Snapshot>>>);

impl Shared {
    /// From now on it says what `now` does.
    pub fn show(&self, now: &Snapshot) {
        let now = Arc::new(now.clone());
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// What it says.
    pub fn now(&self) -> Arc<Snapshot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
