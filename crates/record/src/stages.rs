//! Stages of a NIC that runs TCP (`stages` of a point): where the time of each went, and which one is the limit.

use serde::{Deserialize, Serialize};

/// One stage of the pipeline, all flow-groups together, in the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StageFigures {
    /// Its name.
    pub stage: String,
    /// Cores of the NIC's processor that run it.
    pub cores: usize,
    /// Hardware threads of all of them.
    pub threads: usize,
    /// Events, millions a second.
    pub items_mps: f64,
    /// Computing for an event, ns.
    pub compute_ns: f64,
    /// Waiting for the NIC's memories, ns.
    pub memory_ns: f64,
    /// Waiting for another thread of the core, ns.
    pub core_wait_ns: f64,
    /// Waiting for a turn at the connection, or for payload, ns.
    pub blocked_ns: f64,
    /// Waiting for a thread before all that, ns.
    pub queued_ns: f64,
    /// Share of their time that the cores compute.
    pub cores_busy: f64,
    /// That of the busiest core.
    pub busiest_core: f64,
    /// Share of their time in which threads have an event.
    pub threads_busy: f64,
}

impl StageFigures {
    /// How near its limit it is: cores that compute all the time, or threads that all wait.
    pub fn load(&self) -> f64 {
        self.busiest_core.max(self.threads_busy)
    }
}
