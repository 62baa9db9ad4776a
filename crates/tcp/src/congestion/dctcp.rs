//! DCTCP (RFC 8257): reduces the window by the fraction of marked bytes.

use super::{Ack, Congestion, Trouble, Window};
use crate::seq::Seq;

/// The fraction is counted in 1/1024.
const ONE: u32 = 1024;
/// Weight of a new observation: 1/16.
const GAIN_SHIFT: u32 = 4;

/// DCTCP's estimate of the extent of congestion.
#[derive(Clone, Copy, Debug)]
pub struct Dctcp {
    /// Estimated fraction of marked bytes, in 1/1024.
    alpha: u32,
    delivered: u32,
    marked: u32,
    round_end: Option<Seq>,
    loss_window: u32,
}

impl Default for Dctcp {
    fn default() -> Dctcp {
        // RFC 8257 section 3.3: 1 makes the first reaction that of a loss.
        Dctcp { alpha: ONE, delivered: 0, marked: 0, round_end: None, loss_window: 0 }
    }
}

impl Dctcp {
    /// The estimate, in 1/1024.
    pub fn alpha(&self) -> u32 {
        self.alpha
    }
}

impl Congestion for Dctcp {
    fn name(&self) -> &'static str {
        "dctcp"
    }

    fn observe(&mut self, _window: &mut Window, ack: &Ack) {
        self.delivered = self.delivered.saturating_add(ack.acked);
        self.marked = self.marked.saturating_add(if ack.marked { ack.acked } else { 0 });
        if self.round_end.is_some_and(|end| ack.una.before(end)) {
            return;
        }
        if self.delivered > 0 {
            let fraction = (u64::from(self.marked) * u64::from(ONE) / u64::from(self.delivered)) as u32;
            self.alpha = self.alpha - (self.alpha >> GAIN_SHIFT) + (fraction >> GAIN_SHIFT);
            // A remainder smaller than one step would keep alpha above zero for ever.
            if self.alpha < 1 << GAIN_SHIFT && fraction == 0 {
                self.alpha = 0;
            }
            self.alpha = self.alpha.min(ONE);
        }
        (self.delivered, self.marked, self.round_end) = (0, 0, Some(ack.next));
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack) {
        super::Reno.grow(window, ack);
    }

    fn threshold(&mut self, window: &Window, trouble: Trouble) -> u32 {
        self.loss_window = window.size;
        if trouble != Trouble::Marked {
            // RFC 8257 section 3.5: losses count as for any TCP.
            return (window.size / 2).max(2);
        }
        let cut = (u64::from(window.size) * u64::from(self.alpha)) >> 11;
        (window.size - cut as u32).max(2)
    }

    fn trouble(&mut self, window: &Window, trouble: Trouble) {
        if matches!(trouble, Trouble::Recovery | Trouble::Timeout) {
            self.loss_window = window.size;
        }
    }

    fn wants_ecn(&self) -> bool {
        true
    }
}
