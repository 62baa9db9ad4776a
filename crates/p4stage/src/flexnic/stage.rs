//! The program's ingress and egress, between the other stages and the DMA pipeline; it also sends what that answers.

use std::sync::{Arc, PoisonError};

use nicforge_nic::PortId;
use nicforge_nic::stage::{Frame, Services, Stage, Verdict};
use nicforge_platform::Dma;
use nicforge_units::Time;

use super::engine::EngineCounters;
use super::nic::Replies;
use crate::stage::P4Stage;

/// The stage of interface `flexnic`.
pub struct FlexStage {
    pub(super) program: P4Stage,
    /// Whether the program has an ingress and an egress.
    pub(super) has_ingress: bool,
    pub(super) has_egress: bool,
    /// Time that a packet takes where it has no ingress.
    pub(super) delay: Time,
    pub(super) replies: Replies,
    pub(super) counters: Arc<EngineCounters>,
}

impl<D: Dma> Stage<D> for FlexStage {
    fn ingress(&mut self, nic: &mut Services<'_, D>, frame: &mut Frame<'_>) -> Verdict {
        if self.has_ingress {
            return self.program.run(nic, frame, false);
        }
        nic.delay(self.delay);
        Verdict::Pass
    }

    fn egress(&mut self, nic: &mut Services<'_, D>, frame: &mut Frame<'_>) -> Verdict {
        self.program.run(nic, frame, true)
    }

    fn sees_egress(&self) -> bool {
        self.has_egress
    }

    fn due(&self) -> Time {
        let replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        if replies.is_empty() { Time::NEVER } else { Time::ZERO }
    }

    fn advance(&mut self, nic: &mut Services<'_, D>) {
        let mut replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        for (port, bytes, stamp) in replies.drain(..) {
            let ready = nic.ready();
            nic.injector.send_by(PortId(u8::try_from(port).unwrap_or(u8::MAX)), bytes, stamp, ready);
        }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = crate::counts::counters(self.program.shared());
        counters.extend(self.counters.named());
        counters
    }

    fn gauges(&self) -> Vec<(&'static str, u64)> {
        crate::counts::gauges(self.program.shared())
    }

    fn take_events(&mut self) -> Vec<String> {
        self.program.shared().lock().take_log()
    }
}
