//! SYN cookies (RFC 4987 section 3.6): a SYN-ACK that needs no memory.
//!
//! The sequence number carries the MSS class, a period and an authenticator; the low bits of the timestamps option
//! carry window scale, SACK and ECN, so that only peers without timestamps lose them.

use nicforge_units::Time;

use super::FourTuple;
use super::secret::Secret;
use crate::conn::rtt::micros;
use crate::options::Options;
use crate::seq::Seq;

/// MSS classes: a peer's value is rounded down to one of them.
const MSS_CLASSES: [u16; 8] = [88, 536, 1220, 1300, 1400, 1440, 1460, 8960];
/// Length of a period; a cookie holds for two of them.
const PERIOD: Time = Time::from_ms(64_000);
const PERIODS: u32 = 32;
/// Bits of the clock that carry options.
const OPTION_BITS: u32 = 0x3f;
const NO_SCALE: u32 = 15;

fn period(now: Time) -> u32 {
    (micros(now) / micros(PERIOD)) as u32
}

/// The sequence number of a SYN-ACK.
pub fn make(secret: &Secret, tuple: &FourTuple, irs: Seq, mss: u16, now: Time) -> Seq {
    let class = MSS_CLASSES.iter().rposition(|class| *class <= mss).unwrap_or(0) as u32;
    let period = period(now);
    Seq(class << 29 | (period % PERIODS) << 24 | secret.cookie(tuple, irs, period, class))
}

/// The MSS in a cookie that is ours and not old.
pub fn check(secret: &Secret, tuple: &FourTuple, irs: Seq, cookie: Seq, now: Time) -> Option<u16> {
    let class = cookie.0 >> 29;
    let current = period(now);
    let age = current.wrapping_sub(cookie.0 >> 24 & (PERIODS - 1)) % PERIODS;
    let then = current.checked_sub(age).filter(|_| age <= 1)?;
    let right = secret.cookie(tuple, irs, then, class) == cookie.0 & 0xff_ffff;
    right.then(|| MSS_CLASSES[class as usize])
}

/// The clock value that carries options, not later than `clock`.
pub fn clock_with(clock: u32, options: &Options, ecn: bool) -> u32 {
    let scale = options.window_scale.map_or(NO_SCALE, u32::from);
    let bits = scale | u32::from(options.sack_permitted) << 4 | u32::from(ecn) << 5;
    let value = clock & !OPTION_BITS | bits;
    if value.wrapping_sub(clock) as i32 > 0 { value.wrapping_sub(OPTION_BITS + 1) } else { value }
}

/// What an echoed clock value carries: window scale, SACK, ECN.
pub fn options_in(echo: u32) -> (Option<u8>, bool, bool) {
    let scale = echo & 15;
    let scale = (scale != NO_SCALE).then_some(scale as u8);
    (scale, echo & 16 != 0, echo & 32 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuple(port: u16) -> FourTuple {
        FourTuple { local: [10, 0, 0, 1].into(), remote: [10, 0, 0, 2].into(), local_port: 80, remote_port: port }
    }

    #[test]
    fn a_cookie_holds_for_its_connection_and_two_periods() {
        let secret = Secret::new([7; 16]);
        let now = Time::from_ms(1_000_000);
        let cookie = make(&secret, &tuple(5), Seq(99), 1460, now);
        assert_eq!(check(&secret, &tuple(5), Seq(99), cookie, now), Some(1460));
        assert_eq!(check(&secret, &tuple(5), Seq(99), cookie, now + PERIOD), Some(1460));
        assert_eq!(check(&secret, &tuple(5), Seq(99), cookie, now + PERIOD * 2), None);
        assert_eq!(check(&secret, &tuple(6), Seq(99), cookie, now), None);
        assert_eq!(check(&secret, &tuple(5), Seq(98), cookie, now), None);
        assert_eq!(check(&secret, &tuple(5), Seq(99), cookie + 1, now), None);
    }

    #[test]
    fn options_travel_in_the_clock() {
        for clock in [0u32, 1, 63, 64, 1_000_007] {
            let options = Options { window_scale: Some(9), sack_permitted: true, ..Options::default() };
            let value = clock_with(clock, &options, true);
            assert!(clock.wrapping_sub(value) <= 128);
            assert_eq!(options_in(value), (Some(9), true, true));
            assert_eq!(options_in(clock_with(clock, &Options::default(), false)), (None, false, false));
        }
    }
}
