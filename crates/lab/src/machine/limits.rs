//! What machines the model can hold, for whoever writes a machine file.

use nicforge_platform::sim::Hierarchy;
use nicforge_units::CACHE_LINE_BYTES;

/// Most cores of a machine.
pub const CORES_MAX: usize = Hierarchy::CORES_MAX;
/// The largest cache; the simulation keeps 8 bytes and more for each of its lines.
pub const CACHE_KIB_MAX: u64 = 1 << 20;

/// The caches of so many `ways` next to `kib`, below and above: a power of two of sets and a whole number of KiB.
pub fn cache_sizes_kib(kib: u64, ways: u64) -> [u64; 2] {
    let way_bytes = ways * CACHE_LINE_BYTES;
    // From 16 sets on it is a whole number of KiB, whatever the ways.
    let sets = (kib * 1024 / way_bytes).max(16);
    let below = (sets + 1).next_power_of_two() / 2;
    [below, 2 * below].map(|sets| sets * way_bytes / 1024)
}

/// The nearest cache of so many `ways` that the model can hold.
pub fn nearest_cache_kib(kib: u64, ways: u64) -> u64 {
    let [below, above] = cache_sizes_kib(kib, ways);
    match above.abs_diff(kib) < below.abs_diff(kib) && above <= CACHE_KIB_MAX {
        true => above,
        false if below > CACHE_KIB_MAX => nearest_cache_kib(CACHE_KIB_MAX, ways),
        false => below,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_cache_is_one_that_a_machine_file_may_have() {
        for (kib, ways, nearest) in [
            (22528, 11, 22528),
            (491_520, 16, 524_288),
            (480_000, 11, 360_448),
            (3 << 20, 12, 786_432),
            (1, 16, 16),
            (48, 12, 48),
        ] {
            assert_eq!(
                nearest_cache_kib(kib, ways),
                nearest,
                "{kib} KiB, {ways} ways"
            );
            let sets = nearest * 1024 / (ways * CACHE_LINE_BYTES);
            assert!(sets.is_power_of_two() && nearest <= CACHE_KIB_MAX);
        }
    }
}
