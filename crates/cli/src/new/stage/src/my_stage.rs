//! Stage `my_stage`: a token bucket that drops frames above a rate. Change it into yours.

use nicforge::nic::DropCause;
use nicforge::nic::stage::{Frame, Services, Stage, Verdict};
use nicforge::options::{Allowed, options};
use nicforge::platform::{AddressSpace, Cycles, Dma, Ground, Time};
use nicforge::stages::{BuiltStage, StageError, StageKind, StagePlan};

options! {
    /// The rate that passes.
    pub struct MyStageOptions {
        /// Frames above this rate are dropped, as `over_rate`.
        my_stage_mpps: f64 = 10.0, "Mpps", Allowed::Number(0.000_001, 10_000.0);
    }
}

/// Frames that may come at once.
const BURST: u64 = 32;

struct Limiter {
    /// Time that one frame takes at the rate.
    each: Time,
    /// When a frame may come that finds no burst left.
    next: Time,
    passed: u64,
}

impl<D: Dma> Stage<D> for Limiter {
    fn ingress(&mut self, nic: &mut Services<'_, D>, _frame: &mut Frame<'_>) -> Verdict {
        nic.work(Cycles(20));
        let now = nic.now();
        if self.next > now + self.each * BURST {
            return Verdict::Drop(DropCause("over_rate"));
        }
        self.next = self.next.max(now) + self.each;
        self.passed += 1;
        Verdict::Pass
    }

    fn sees_egress(&self) -> bool {
        false
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("my_stage_passed", self.passed)]
    }
}

/// The stage.
pub struct MyStage;

impl StageKind for MyStage {
    const NAME: &'static str = "my_stage";
    const ABOUT: &'static str = "drops frames above a rate";
    type Options = MyStageOptions;

    fn build<G: Ground>(
        options: &MyStageOptions,
        _plan: &StagePlan,
        _space: &mut AddressSpace,
    ) -> Result<BuiltStage<G>, StageError> {
        let each = Time::from_seconds(1e-6 / options.my_stage_mpps);
        Ok(BuiltStage::new(Limiter { each, next: Time::ZERO, passed: 0 }))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_passes_the_shared_suite() {
        nicforge::stages::suite::check::<super::MyStage>();
    }
}
