//! No congestion control: for links that cannot lose, and as the paper's comparison.

use super::{Ack, Congestion, Trouble, Window};

/// Leaves the window at its largest.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unlimited;

impl Congestion for Unlimited {
    fn name(&self) -> &'static str {
        "none"
    }

    fn observe(&mut self, window: &mut Window, _ack: &Ack) {
        window.size = window.most;
    }

    fn grow(&mut self, window: &mut Window, _ack: &Ack) {
        window.size = window.most;
    }

    fn threshold(&mut self, window: &Window, _trouble: Trouble) -> u32 {
        window.most
    }
}
