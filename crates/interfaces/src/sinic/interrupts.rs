//! Interrupt conditions, mask and moderation (integrated NIC, sections 3.3 and A.3.3).

use nicforge_units::Time;

use super::registers::interrupt;

/// Conditions that may be coalesced; the others interrupt at once (A.3.3).
const DELAYED: u64 =
    interrupt::TX_DMA.mask() | interrupt::TX_PACKET.mask() | interrupt::RX_DMA.mask() | interrupt::RX_PACKET.mask();

/// The interrupt line is level-triggered: one interrupt is sent when a condition that the mask lets
/// through comes up, and another only after none did for a moment.
#[derive(Debug)]
pub struct Interrupts {
    status: u64,
    mask: u64,
    enabled: bool,
    delay: Time,
    due: Time,
    sent: bool,
}

impl Interrupts {
    /// None, and none enabled. Conditions that may be coalesced interrupt `delay` after the first.
    pub fn new(mask: u64, delay: Time) -> Interrupts {
        Interrupts { status: 0, mask, enabled: false, delay, due: Time::NEVER, sent: false }
    }

    /// Conditions come up.
    pub fn raise(&mut self, conditions: u64, now: Time) {
        self.status |= conditions;
        self.update(now);
    }

    /// Takes conditions back; returns what was there.
    pub fn clear(&mut self, conditions: u64, now: Time) -> u64 {
        let before = self.status;
        self.status &= !conditions;
        self.update(now);
        before
    }

    /// IntrMask.
    pub fn mask(&self) -> u64 {
        self.mask
    }

    /// Sets IntrMask.
    pub fn set_mask(&mut self, mask: u64, now: Time) {
        self.mask = mask;
        self.update(now);
    }

    /// Sets Config.IntEn.
    pub fn enable(&mut self, enabled: bool, now: Time) {
        self.enabled = enabled;
        self.update(now);
    }

    fn update(&mut self, now: Time) {
        let live = if self.enabled { self.status & self.mask } else { 0 };
        if live == 0 {
            self.due = Time::NEVER;
            self.sent = false;
        } else if !self.sent {
            let at_once = live & !DELAYED != 0;
            let due = if at_once { now } else { now + self.delay };
            self.due = self.due.min(due);
        }
    }

    /// When an interrupt is to be sent.
    pub fn due(&self) -> Time {
        self.due
    }

    /// It was sent.
    pub fn sent(&mut self) {
        self.due = Time::NEVER;
        self.sent = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RX: u64 = interrupt::RX_PACKET.mask();
    const HIGH: u64 = interrupt::RX_HIGH.mask();

    fn line() -> Interrupts {
        let mut line = Interrupts::new(RX | HIGH, Time::from_us(10));
        line.enable(true, Time::ZERO);
        line
    }

    #[test]
    fn the_delay_runs_from_the_first_condition_and_is_not_put_off() {
        let mut line = line();
        line.raise(RX, Time::from_us(1));
        line.raise(RX, Time::from_us(8));
        assert_eq!(line.due(), Time::from_us(11));
        line.sent();
        line.raise(RX, Time::from_us(12));
        assert_eq!(line.due(), Time::NEVER, "software has not looked yet");
        assert_eq!(line.clear(u64::MAX, Time::from_us(13)), RX);
        line.raise(RX, Time::from_us(14));
        assert_eq!(line.due(), Time::from_us(24));
    }

    #[test]
    fn uncoalesced_events_interrupt_at_once() {
        let mut line = line();
        line.raise(RX, Time::from_us(1));
        line.raise(HIGH, Time::from_us(2));
        assert_eq!(line.due(), Time::from_us(2));
    }

    #[test]
    fn the_mask_holds_back_and_lets_through_later() {
        let mut line = line();
        line.set_mask(0, Time::ZERO);
        line.raise(RX, Time::from_us(1));
        assert_eq!(line.due(), Time::NEVER);
        line.set_mask(RX, Time::from_us(5));
        assert_eq!(line.due(), Time::from_us(15));
        line.enable(false, Time::from_us(6));
        assert_eq!(line.due(), Time::NEVER);
    }
}
