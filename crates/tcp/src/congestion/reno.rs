//! NewReno's window: one segment per round trip, half at a loss (RFC 5681).

use super::{Ack, Congestion, Trouble, Window};

/// The state is the window itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reno;

impl Congestion for Reno {
    fn name(&self) -> &'static str {
        "reno"
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack) {
        let mut acked = ack.acked;
        if window.in_slow_start() {
            acked = window.slow_start(acked);
            if acked == 0 {
                return;
            }
        }
        window.avoid(window.size, acked);
    }

    fn threshold(&mut self, window: &Window, _trouble: Trouble) -> u32 {
        (window.size / 2).max(2)
    }
}
