//! What machines the model can hold, for authors of machine files.

use nicforge_options::ConfigError;
use nicforge_platform::sim::{Hardware, Hierarchy};
use nicforge_units::CACHE_LINE_BYTES;

use super::hardware::PlainFile;
use super::section::Source;

/// Most cores of a machine.
pub const CORES_MAX: usize = Hierarchy::CORES_MAX;
/// The largest cache; the simulation keeps 8 bytes and more for each of its lines.
pub const CACHE_KIB_MAX: u64 = 1 << 20;
/// Memory that a machine can be modelled with, at least.
const MEMORY_LEAST: u64 = 4 << 30;

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
    if above.abs_diff(kib) < below.abs_diff(kib) && above <= CACHE_KIB_MAX {
        above
    } else if below > CACHE_KIB_MAX {
        nearest_cache_kib(CACHE_KIB_MAX, ways)
    } else {
        below
    }
}

/// Checks numbers that are wrong only together.
pub(super) fn check(source: &Source<'_>, file: &PlainFile, hardware: &Hardware) -> Result<(), ConfigError> {
    let ways = hardware.llc.ways;
    if hardware.io_ways > ways {
        let wrong = format!("the LLC has {ways} ways, not {}", hardware.io_ways);
        return source.refuse(&file.llc.io_ways, wrong, format!("use 0 to {ways}"));
    }
    // The internal buffer never has more room than when it is empty.
    let [room, buffer] = [hardware.nic.tx_resume_room, hardware.nic.tx_buffer].map(|bytes| bytes.0 / 1024);
    if room > buffer {
        let wrong = format!("tx_buffer_kib is {buffer}: there is never room of {room} KiB in it");
        return source.refuse(&file.nic.tx_resume_room_kib, wrong, format!("use 1 to {buffer}"));
    }
    check_core(source, file)?;
    check_memory(source, file, hardware)
}

/// First-level cache and TLB have a power of two of sets, of 8 and of 12 ways.
fn check_core(source: &Source<'_>, file: &PlainFile) -> Result<(), ConfigError> {
    let l1 = file.core.l1_kib.count();
    if l1 > 0 && !l1.is_power_of_two() {
        let wrong = format!("{l1} KiB in 8 ways of 64-byte lines are not a power of two of sets");
        return source.refuse(&file.core.l1_kib, wrong, "use 32 KiB, or 0 for none");
    }
    let pages = file.core.tlb_pages.count();
    if pages > 0 && !(pages.is_multiple_of(12) && (pages / 12).is_power_of_two()) {
        let wrong = format!("{pages} pages in 12 ways are not a power of two of sets");
        return source.refuse(&file.core.tlb_pages, wrong, "use 1536 pages, or 0 for none");
    }
    Ok(())
}

/// Tables and buffers of every application, with their defaults, lie in memory that an L2 can tell apart.
fn check_memory(source: &Source<'_>, file: &PlainFile, hardware: &Hardware) -> Result<(), ConfigError> {
    let mut larger = hardware.clone();
    while Hierarchy::bytes_max(&larger) < MEMORY_LEAST {
        larger.l2.size = larger.l2.size * 2;
    }
    if larger.l2 == hardware.l2 {
        return Ok(());
    }
    let (most, ways) = (Hierarchy::bytes_max(hardware) >> 20, hardware.l2.ways);
    let wrong = format!("with so small an L2 of {ways} ways only {most} MiB of memory are modelled");
    source.refuse(&file.l2.size_kib, wrong, format!("use {} KiB or more", larger.l2.size.0 / 1024))
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
            assert_eq!(nearest_cache_kib(kib, ways), nearest, "{kib} KiB, {ways} ways");
            let sets = nearest * 1024 / (ways * CACHE_LINE_BYTES);
            assert!(sets.is_power_of_two() && nearest <= CACHE_KIB_MAX);
        }
    }
}
