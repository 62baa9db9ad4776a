//! A pipeline that a packet path and controllers use at the same time.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use super::dma::{Ended, NicFields};
use super::outcome::Output;
use super::pipeline::Pipeline;

/// The port whose packets go to controllers.
pub type CpuPort = u32;

/// Packets that wait for controllers; more are dropped and counted.
const WAITING_MAX: usize = 4096;

/// A pipeline under a lock. The packet path takes the lock for one packet, a controller for one batch of changes or for
/// putting another program in its place: a packet sees all of a change or nothing, and waits instead of being lost.
#[derive(Clone)]
pub struct Shared {
    inner: Arc<Inner>,
}

struct Inner {
    pipeline: Mutex<Pipeline>,
    cpu_port: Option<CpuPort>,
    waiting: Mutex<VecDeque<Vec<u8>>>,
    /// Packets of controllers, where the packet path takes them itself.
    later: Mutex<VecDeque<Vec<u8>>>,
    later_count: AtomicUsize,
    lost: AtomicU64,
    cycles: AtomicU64,
    wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Shared {
    /// Shares a pipeline. Packets that leave by `cpu_port` wait for a controller.
    pub fn new(pipeline: Pipeline, cpu_port: Option<CpuPort>) -> Shared {
        Shared {
            inner: Arc::new(Inner {
                pipeline: Mutex::new(pipeline),
                cpu_port,
                waiting: Mutex::default(),
                later: Mutex::default(),
                later_count: AtomicUsize::new(0),
                lost: AtomicU64::new(0),
                cycles: AtomicU64::new(0),
                wake: OnceLock::new(),
            }),
        }
    }

    /// The pipeline, for one packet or one batch of changes.
    pub fn lock(&self) -> MutexGuard<'_, Pipeline> {
        // Whoever panicked with the lock has not left half of a change: changes are undone before an error returns.
        self.inner.pipeline.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Puts another program in place of the present one, between two packets.
    pub fn replace(&self, mut pipeline: Pipeline) {
        std::mem::swap(&mut *self.lock(), &mut pipeline);
        // Large tables are freed here, without the lock.
        drop(pipeline);
    }

    /// Cycles of the target that a packet takes; 0 where nobody set them.
    pub fn cycles(&self) -> u64 {
        self.inner.cycles.load(Ordering::Relaxed)
    }

    /// Sets the cycles of the target that a packet takes.
    pub fn set_cycles(&self, cycles: u64) {
        self.inner.cycles.store(cycles, Ordering::Relaxed);
    }

    /// The port whose packets go to controllers.
    pub fn cpu_port(&self) -> Option<CpuPort> {
        self.inner.cpu_port
    }

    /// Takes a packet through the program at a time in microseconds. `sink` gets what leaves by other ports than the
    /// controllers' one. Returns whether something waits for a controller.
    pub fn process(
        &self,
        packet: &[u8],
        port: u32,
        from_host: bool,
        microseconds: u64,
        sink: &mut dyn FnMut(Output<'_>),
    ) -> bool {
        self.process_nic(packet, &NicFields { port, ..NicFields::default() }, from_host, microseconds, sink).0
    }

    /// The same with all that FlexNIC's programs see. Returns how the packet ended, where nothing of it is left.
    pub fn process_nic(
        &self,
        packet: &[u8],
        fields: &NicFields,
        from_host: bool,
        microseconds: u64,
        sink: &mut dyn FnMut(Output<'_>),
    ) -> (bool, Ended) {
        let mut pipeline = self.lock();
        pipeline.set_time(microseconds);
        let mut wakes = false;
        pipeline.process_nic(packet, fields, from_host, &mut |output| {
            if output.port.is_some() && output.port == self.inner.cpu_port {
                self.keep(output.packet);
                wakes = true;
            } else {
                sink(output);
            }
        });
        wakes |= pipeline.has_digests();
        let ended = pipeline.ended();
        drop(pipeline);
        if wakes && let Some(wake) = self.inner.wake.get() {
            wake();
        }
        (wakes, ended)
    }

    fn keep(&self, packet: &[u8]) {
        let mut waiting = self.waiting();
        if waiting.len() < WAITING_MAX {
            waiting.push_back(packet.to_vec());
        } else {
            self.inner.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Vec<u8>>> {
        self.inner.waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Calls `wake` when packets or digests wait; only the first call counts.
    pub fn on_messages(&self, wake: impl Fn() + Send + Sync + 'static) {
        // A second server would steal the first one's messages.
        let _ = self.inner.wake.set(Box::new(wake));
    }

    /// Packets for controllers since the last call.
    pub fn take_packets(&self) -> Vec<Vec<u8>> {
        self.waiting().drain(..).collect()
    }

    /// Keeps a packet of a controller until the packet path takes it.
    pub fn leave_later(&self, packet: Vec<u8>) {
        let mut later = self.later();
        if later.len() < WAITING_MAX {
            later.push_back(packet);
            self.inner.later_count.store(later.len(), Ordering::Release);
        } else {
            self.inner.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A packet of a controller waits.
    pub fn has_later(&self) -> bool {
        self.inner.later_count.load(Ordering::Acquire) > 0
    }

    /// Packets of controllers since the last call.
    pub fn take_later(&self) -> Vec<Vec<u8>> {
        let mut later = self.later();
        self.inner.later_count.store(0, Ordering::Release);
        later.drain(..).collect()
    }

    fn later(&self) -> MutexGuard<'_, VecDeque<Vec<u8>>> {
        self.inner.later.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Packets for controllers that nobody fetched in time.
    pub fn packets_lost(&self) -> u64 {
        self.inner.lost.load(Ordering::Relaxed)
    }
}
