//! Zipf-distributed ranks in constant time and memory: rejection-inversion (Hörmann and
//! Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions",
//! ACM TOMACS 6(3), 1996, section 3).

use rand_pcg::Pcg64;

use super::random::unit;

/// Ranks 1 to n with probability proportional to rank^-s.
#[derive(Clone, Copy, Debug)]
pub struct Zipf {
    count: f64,
    exponent: f64,
    /// Integral of the hat at the two ends.
    integral_first: f64,
    integral_last: f64,
    /// Below this distance from its rank a point is accepted at once.
    squeeze: f64,
}

impl Zipf {
    /// `count` is at least 1, `exponent` 0 to 10.
    pub fn new(count: u64, exponent: f64) -> Zipf {
        let count = count as f64;
        let mut zipf = Zipf { count, exponent, integral_first: 0.0, integral_last: 0.0, squeeze: 0.0 };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(count + 0.5);
        zipf.squeeze = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.hat(2.0));
        zipf
    }

    /// Draws a rank, from 0.
    pub fn draw(&self, random: &mut Pcg64) -> u64 {
        loop {
            let span = self.integral_first - self.integral_last;
            let area = self.integral_last + unit(random) * span;
            let point = self.inverse(area);
            // Comparisons instead of clamp: a NaN must become a rank, too.
            let rank = libm::floor(point + 0.5).max(1.0).min(self.count);
            if rank - point <= self.squeeze || area >= self.integral(rank + 0.5) - self.hat(rank) {
                return rank as u64 - 1;
            }
        }
    }

    /// What rank `x` weighs.
    pub(super) fn hat(&self, x: f64) -> f64 {
        libm::exp(-self.exponent * libm::log(x))
    }

    fn integral(&self, x: f64) -> f64 {
        let log = libm::log(x);
        expm1_over_x((1.0 - self.exponent) * log) * log
    }

    fn inverse(&self, area: f64) -> f64 {
        let t = (area * (1.0 - self.exponent)).max(-1.0);
        libm::exp(log1p_over_x(t) * area)
    }
}

/// (e^x - 1) / x, also near 0.
fn expm1_over_x(x: f64) -> f64 {
    if x.abs() > 1e-8 { libm::expm1(x) / x } else { 1.0 + x * 0.5 * (1.0 + x / 3.0) }
}

/// ln(1 + x) / x, also near 0.
fn log1p_over_x(x: f64) -> f64 {
    if x.abs() > 1e-8 { libm::log1p(x) / x } else { 1.0 - x * (0.5 - x / 3.0) }
}

#[cfg(test)]
mod tests {
    use super::super::random::generator;
    use super::*;

    #[test]
    fn frequencies_follow_the_law() {
        for exponent in [0.0, 0.5, 0.99, 1.0, 1.5, 3.0, 10.0] {
            let zipf = Zipf::new(50, exponent);
            let mut random = generator(7, 3);
            let draws = 200_000;
            let mut counts = [0u32; 50];
            for _ in 0..draws {
                counts[zipf.draw(&mut random) as usize] += 1;
            }
            let weight = |rank: usize| ((rank + 1) as f64).powf(-exponent);
            let total: f64 = (0..50).map(weight).sum();
            for (rank, &count) in counts.iter().enumerate() {
                let expected = f64::from(draws) * weight(rank) / total;
                let deviation = (f64::from(count) - expected).abs();
                assert!(deviation < 5.0 * expected.sqrt() + 5.0, "s {exponent} rank {rank}");
            }
        }
    }

    #[test]
    fn one_rank_and_many_ranks_stay_in_range() {
        let mut random = generator(7, 3);
        for count in [1, 2, 10_000_000] {
            let zipf = Zipf::new(count, 1.2);
            assert!((0..1000).all(|_| zipf.draw(&mut random) < count));
        }
    }
}
