//! Draws from a weighted table in constant time (Walker's alias method, Vose 1991).

use rand_core::RngCore;
use rand_pcg::Pcg64;

/// A weighted table of indices.
#[derive(Clone, Debug)]
pub(super) struct AliasTable {
    /// Per column: stay when the coin (32 bits) is below, else go to the alias.
    columns: Vec<(u64, u32)>,
}

impl AliasTable {
    /// From weights, which must be above 0 and finite, and at least one; else `None`.
    pub(super) fn new(weights: &[f64]) -> Option<AliasTable> {
        let total: f64 = weights.iter().sum();
        let valid = weights.iter().all(|&weight| weight > 0.0) && total.is_finite();
        if weights.is_empty() || !valid || u32::try_from(weights.len()).is_err() {
            return None;
        }
        let mean = total / weights.len() as f64;
        let mut filled: Vec<f64> = weights.iter().map(|weight| weight / mean).collect();
        let mut columns = vec![(1u64 << 32, 0u32); weights.len()];
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..weights.len()).partition(|&index| filled[index] < 1.0);
        while let (Some(&under), Some(&over)) = (small.last(), large.last()) {
            small.pop();
            columns[under] = ((filled[under] * 4_294_967_296.0) as u64, over as u32);
            filled[over] -= 1.0 - filled[under];
            if filled[over] < 1.0 {
                large.pop();
                small.push(over);
            }
        }
        // What is left over is full except for rounding, and keeps its threshold of 2^32.
        Some(AliasTable { columns })
    }

    /// Draws an index.
    pub(super) fn draw(&self, random: &mut Pcg64) -> usize {
        let bits = random.next_u64();
        let column = (((bits >> 32) * self.columns.len() as u64) >> 32) as usize;
        let (threshold, alias) = self.columns[column];
        if bits & 0xffff_ffff < threshold { column } else { alias as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::generator;
    use super::*;

    #[test]
    fn draws_follow_the_weights() {
        let weights = [7.0, 4.0, 1.0];
        let table = AliasTable::new(&weights).unwrap();
        let mut random = generator(1, 0);
        let mut counts = [0u32; 3];
        for _ in 0..120_000 {
            counts[table.draw(&mut random)] += 1;
        }
        for (count, weight) in counts.into_iter().zip(weights) {
            assert!((f64::from(count) - weight * 10_000.0).abs() < 500.0);
        }
    }

    #[test]
    fn weights_that_are_no_shares_are_refused() {
        for weights in [&[][..], &[0.0], &[1.0, -1.0], &[f64::NAN], &[f64::INFINITY]] {
            assert!(AliasTable::new(weights).is_none());
        }
    }
}
