//! Which core gets the packets of which flow group: greedily, the heaviest group first to the core with the least.

/// The core of each group of `weights`, of `cores` cores (at least 1). Among equals the first group and the first core come first.
pub fn greedy(weights: &[u64], cores: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|&group| (std::cmp::Reverse(weights[group]), group));
    let mut loads = vec![0u64; cores.max(1)];
    let mut chosen = vec![0; weights.len()];
    for group in order {
        let core = (0..loads.len()).min_by_key(|&core| (loads[core], core)).unwrap_or_default();
        loads[core] = loads[core].saturating_add(weights[group]);
        chosen[group] = core;
    }
    chosen
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_heaviest_groups_have_cores_of_their_own() {
        assert_eq!(greedy(&[1, 9, 5, 4, 1], 2), [0, 0, 1, 1, 1]);
        assert!(greedy(&[], 4).is_empty());
        assert_eq!(greedy(&[3, 3], 1), [0, 0]);
    }

    proptest! {
        /// No core has more than another by more than one group's weight.
        #[test]
        fn loads_differ_by_one_group_at_most(weights in prop::collection::vec(0u64..1000, 0..60), cores in 1usize..8) {
            let mut loads = vec![0; cores];
            for (group, core) in greedy(&weights, cores).into_iter().enumerate() {
                loads[core] += weights[group];
            }
            let heaviest = weights.iter().max().copied().unwrap_or(0);
            let (most, least) = (loads.iter().max().unwrap(), loads.iter().min().unwrap());
            prop_assert!(most - least <= heaviest);
        }
    }
}
