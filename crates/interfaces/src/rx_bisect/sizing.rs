//! The paper's advice on sizes (section 4.5), as warnings: nothing here is refused.

use nicforge_units::Bytes;

/// What the advice depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizing {
    /// NICs in use.
    pub nics: usize,
    /// Ax rings of each NIC.
    pub ax_rings: usize,
    /// Association sets that they are divided into.
    pub sets: usize,
    /// Entries of each Ax ring.
    pub ax_entries: usize,
    /// Entries of each Bx ring.
    pub bx_entries: usize,
    /// Entries that absorb a burst at the port's rate.
    pub burst_entries: usize,
    /// Entries of the smallest ring that such NICs have.
    pub entries_min: usize,
    /// Whether a core plays each NIC: a physical ring then holds as many buffers again, and the
    /// device writes to both in turn (paper, section 5).
    pub emulated: bool,
    /// Bytes of a frame.
    pub frame: Bytes,
    /// Bytes of the last-level cache that DMA writes may allocate into; 0 when they may not.
    pub io_capacity: Bytes,
}

/// What the paper advises against, each with what would be right.
pub fn sizing_warnings(sizing: &Sizing) -> Vec<String> {
    let Sizing {
        nics,
        ax_rings,
        sets,
        ax_entries,
        bx_entries,
        burst_entries,
        entries_min,
        emulated,
        frame,
        io_capacity,
    } = *sizing;
    let mut warnings = Vec::new();
    // Condition 1 counts the rings of all NICs, condition 2 those of one.
    let (times, with) = match emulated {
        false => (1, ""),
        true => (2, ", with as many in physical rings,"),
    };
    let one_each = (times * nics * ax_rings) as u64 * frame.0;
    let working_set = one_each * ax_entries as u64;
    if io_capacity.0 > 0 && working_set > io_capacity.0 {
        let fits = io_capacity.0 / one_each.max(1);
        let right = match largest_power(fits) {
            Some(entries) => format!("at most {entries} entries fit"),
            None => "not even one entry each fits: use fewer Ax rings".to_string(),
        };
        warnings.push(format!(
            "{} Ax rings of {ax_entries} buffers of {} B{with} are {working_set} B, more than the {} B of \
             cache that the NICs may write into: packets will reach DRAM before software; {right} \
             (rxBisect, section 4.5, condition 1)",
            nics * ax_rings,
            frame.0,
            io_capacity.0
        ));
    }
    // A burst finds the buffers of its own set.
    let ax_rings = ax_rings / sets.max(1);
    if ax_rings * ax_entries < bx_entries {
        let needed = bx_entries.div_ceil(ax_rings.max(1)).next_power_of_two();
        warnings.push(format!(
            "{ax_rings} Ax rings of {ax_entries} hold fewer buffers than one Bx ring of {bx_entries} has \
             entries: a burst that the Bx ring could absorb may find no buffer; use Ax rings of at \
             least {needed} (rxBisect, section 4.5, condition 2)"
        ));
    }
    if bx_entries < ax_entries {
        warnings.push(format!(
            "Bx rings of {bx_entries} are smaller than Ax rings of {ax_entries}: a burst ends at the Bx ring \
             while buffers lie idle; use Bx rings of at least {ax_entries} (rxBisect, section 4.5)"
        ));
    }
    warnings.extend(burst_warning("Bx rings", bx_entries, burst_entries));
    if ax_entries < entries_min {
        warnings.push(format!(
            "Ax rings of {ax_entries} are smaller than such NICs have: use at least {entries_min} (rxBisect, \
             section 4.5)"
        ));
    }
    warnings
}

/// What speaks against `rings` of `entries` where bursts at the port's rate need `needed` (rxBisect,
/// section 4.5; shRing, section 5.1 has the same for shared rings).
pub fn burst_warning(rings: &str, entries: usize, needed: usize) -> Option<String> {
    (entries < needed).then(|| {
        format!(
            "{rings} of {entries} entries cannot absorb a burst at the port's rate, whoever has buffers left: \
             use at least {needed} (the machine's nic.burst_entries)"
        )
    })
}

/// The largest power of two up to `most`.
fn largest_power(most: u64) -> Option<u64> {
    most.checked_ilog2().map(|bits| 1 << bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two NICs with 8 cores each and 4 MiB of I/O ways: 16 x 128 x 1500 B = 3.07 MB fit.
    fn sound() -> Sizing {
        Sizing {
            nics: 2,
            ax_rings: 8,
            sets: 1,
            ax_entries: 128,
            bx_entries: 1024,
            burst_entries: 1024,
            entries_min: 64,
            emulated: false,
            frame: Bytes(1500),
            io_capacity: Bytes(4 << 20),
        }
    }

    #[track_caller]
    fn warns(sizing: &Sizing, says: &[&str]) {
        let warnings = sizing_warnings(sizing);
        assert_eq!(warnings.len(), says.len(), "{warnings:?}");
        for (warning, says) in warnings.iter().zip(says) {
            assert!(warning.contains(says), "{warning}");
        }
    }

    #[test]
    fn what_the_paper_advises_is_not_warned_of() {
        warns(&sound(), &[]);
    }

    #[test]
    fn rings_of_all_nics_share_the_cache() {
        let larger = Sizing {
            ax_entries: 256,
            ..sound()
        };
        warns(&larger, &["at most 128 entries fit"]);
        let one_nic = Sizing { nics: 1, ..larger };
        warns(&one_nic, &[]);
        let no_ddio = Sizing {
            io_capacity: Bytes(0),
            ..larger
        };
        warns(&no_ddio, &[]);
        let tiny = Sizing {
            io_capacity: Bytes(1500),
            ..sound()
        };
        warns(&tiny, &["use fewer Ax rings"]);
    }

    /// 6.1 MB with the physical rings: half of it fits.
    #[test]
    fn physical_rings_take_cache_as_well() {
        let played = Sizing {
            emulated: true,
            ..sound()
        };
        let says = "with as many in physical rings, are 6144000 B";
        warns(&played, &[says]);
        warns(&played, &["at most 64 entries fit"]);
        let half = Sizing {
            ax_rings: 4,
            ax_entries: 128,
            bx_entries: 512,
            burst_entries: 512,
            ..played
        };
        warns(&half, &[]);
    }

    #[test]
    fn a_burst_finds_buffers_on_its_own_nic() {
        let smaller = Sizing {
            ax_entries: 64,
            ..sound()
        };
        warns(&smaller, &["at least 128"]);
        // Twice the rings, but on another NIC, do not help.
        let more_nics = Sizing { nics: 4, ..smaller };
        warns(&more_nics, &["at least 128"]);
        let few_cores = Sizing {
            ax_rings: 3,
            ..sound()
        };
        warns(&few_cores, &["at least 512"]);
        let in_halves = Sizing { sets: 2, ..sound() };
        warns(&in_halves, &["4 Ax rings of 128 hold fewer"]);
    }

    #[test]
    fn a_reception_ring_holds_more_than_one_core_allocates() {
        let swapped = Sizing {
            bx_entries: 64,
            burst_entries: 64,
            ..sound()
        };
        warns(&swapped, &["at least 128"]);
    }

    #[test]
    fn rings_that_no_burst_fits_are_warned_of() {
        let tiny = Sizing {
            ax_entries: 8,
            bx_entries: 8,
            ..sound()
        };
        warns(
            &tiny,
            &[
                "Bx rings of 8 entries cannot absorb a burst at the port's rate",
                "smaller than such NICs have: use at least 64",
            ],
        );
    }

    #[test]
    fn no_rings_at_all_are_no_reason_to_panic() {
        let nothing = Sizing {
            ax_rings: 0,
            ..sound()
        };
        assert_eq!(sizing_warnings(&nothing).len(), 1);
    }
}
