//! The paper's advice on sizes (section 4.5), as warnings: nothing here is refused.

use std::collections::{BTreeMap, BTreeSet};

use nicforge_units::Bytes;

use super::{BxRing, Topology};

/// What the advice depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizing<'a> {
    /// NICs in use.
    pub nics: usize,
    /// Queues of each NIC.
    pub queues: usize,
    /// Ax rings of each NIC.
    pub ax_rings: usize,
    /// Association sets that they are divided into.
    pub sets: usize,
    /// The rings, where somebody said ring by ring which belong together; else the numbers above say it.
    pub written: Option<&'a Topology>,
    /// Entries of each Ax ring.
    pub ax_entries: usize,
    /// Entries of each Bx ring.
    pub bx_entries: usize,
    /// Entries that absorb a burst at the port's rate.
    pub burst_entries: usize,
    /// Entries of the smallest ring that such NICs have.
    pub entries_min: usize,
    /// Whether a core plays each NIC: physical rings then hold as many buffers again, for each set
    /// rounded up to a power of two, and the device writes to both in turn (paper, section 5).
    pub emulated: bool,
    /// Bytes of a frame.
    pub frame: Bytes,
    /// Bytes of the last-level cache that DMA writes may allocate into; 0 when they may not.
    pub io_capacity: Bytes,
}

impl Sizing<'_> {
    fn topology(&self) -> Topology {
        if let Some(written) = self.written {
            return written.clone();
        }
        Topology::in_sets(self.queues, self.ax_rings, self.ax_entries, self.bx_entries, self.sets)
    }

    /// The Ax rings of each set of one NIC.
    fn rings_of_sets(&self) -> Vec<usize> {
        let sets = self.topology().association_sets().into_iter();
        sets.map(|set| set.ax.len()).collect()
    }

    /// Cores all of whose buffers one other core puts in.
    fn dependent_on_one(&self) -> usize {
        let topology = self.topology();
        let linked: BTreeMap<usize, usize> = topology.links.iter().copied().collect();
        let others = |(queue, bx): &(usize, &BxRing)| {
            let allocators: BTreeSet<_> = bx.associated.iter().map(|ax| linked.get(ax)).collect();
            allocators.len() == 1 && !allocators.contains(&Some(queue))
        };
        topology.bx.iter().enumerate().filter(others).count()
    }

    /// The smallest larger number of Ax rings with which no core is of that kind and no set without any.
    fn rings_for_two_allocators(&self) -> usize {
        let larger = self.ax_rings + 1..=self.queues;
        let enough = larger
            .map(|ax_rings| Sizing { ax_rings, ..*self })
            .find(|sizing| sizing.dependent_on_one() == 0 && !sizing.rings_of_sets().contains(&0));
        // A ring for each queue leaves no core of a set without.
        enough.map_or(self.queues, |sizing| sizing.ax_rings)
    }

    /// Section 4.3: the others go on "as long as there is at least one underloaded core with an Ax ring".
    fn hangs_on_one_core(&self) -> Option<String> {
        let cores = self.dependent_on_one();
        (cores > 0).then(|| {
            let right = match self.written {
                Some(_) => "associate each with Ax rings of two cores, or of its own".to_string(),
                None => format!("use at least {} Ax rings", self.rings_for_two_allocators()),
            };
            format!(
                "{cores} of each NIC's {} cores have no buffers but those that one other core puts in: as soon \
                 as that one is overloaded, they receive nothing; {right} (rxBisect, section 4.3)",
                self.queues,
            )
        })
    }

    /// Bytes of all empty buffers of all NICs if Ax rings had `entries`, a power of two.
    fn working_set(&self, entries: usize) -> u64 {
        let physical: usize =
            if self.emulated { self.rings_of_sets().into_iter().map(usize::next_power_of_two).sum() } else { 0 };
        (self.nics * (self.ax_rings + physical) * entries) as u64 * self.frame.0
    }

    /// Condition 1, which counts the rings of all NICs.
    fn outgrows_cache(&self) -> Option<String> {
        let (entries, capacity) = (self.ax_entries, self.io_capacity.0);
        let working_set = self.working_set(entries);
        if capacity == 0 || working_set <= capacity {
            return None;
        }
        let smaller = (0..usize::BITS).map(|bits| 1 << bits).take_while(|&size| size < entries);
        let right = match smaller.filter(|&size| self.working_set(size) <= capacity).last() {
            Some(entries) => format!("at most {entries} entries fit"),
            None => "not even one entry each fits: use fewer Ax rings".to_string(),
        };
        let with = if self.emulated { ", with those in physical rings," } else { "" };
        Some(format!(
            "{} of {entries} buffers of {} B{with} are {working_set} B, more than the {capacity} B of \
             cache that the NICs may write into: packets will reach DRAM before software; {right} \
             (rxBisect, section 4.5, condition 1)",
            in_words(self.nics * self.ax_rings),
            self.frame.0,
        ))
    }
}

/// What the paper advises against, each with what would be right.
pub fn sizing_warnings(sizing: &Sizing<'_>) -> Vec<String> {
    let Sizing { ax_entries, bx_entries, burst_entries, entries_min, .. } = *sizing;
    let mut warnings = Vec::from_iter(sizing.outgrows_cache());
    // Condition 2 counts the rings of one NIC, where a burst finds the buffers of its own set.
    let ax_rings = sizing.rings_of_sets().into_iter().min().unwrap_or(0);
    if ax_rings * ax_entries < bx_entries {
        let hold = if ax_rings == 1 { "holds" } else { "hold" };
        let needed = bx_entries.div_ceil(ax_rings.max(1)).next_power_of_two();
        warnings.push(format!(
            "{} of {ax_entries} {hold} fewer buffers than one Bx ring of {bx_entries} has \
             entries: a burst that the Bx ring could absorb may find no buffer; use Ax rings of at \
             least {needed} (rxBisect, section 4.5, condition 2)",
            in_words(ax_rings)
        ));
    }
    if bx_entries < ax_entries {
        warnings.push(format!(
            "Bx rings of {bx_entries} are smaller than Ax rings of {ax_entries}: a burst ends at the Bx ring \
             while buffers lie idle; use Bx rings of at least {ax_entries} (rxBisect, section 4.5)"
        ));
    }
    warnings.extend(sizing.hangs_on_one_core());
    warnings.extend(burst_warning("Bx rings", bx_entries, burst_entries));
    if ax_entries < entries_min {
        warnings.push(format!(
            "Ax rings of {ax_entries} are smaller than such NICs have: use at least {entries_min} (rxBisect, \
             section 4.5)"
        ));
    }
    warnings
}

fn in_words(ax_rings: usize) -> String {
    match ax_rings {
        1 => "1 Ax ring".to_string(),
        rings => format!("{rings} Ax rings"),
    }
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

#[cfg(test)]
mod tests;
