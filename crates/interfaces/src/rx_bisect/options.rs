//! Options of rxBisect, and what it says about itself.

use nicforge_options::{Allowed, Finding, choice, ensure, options};
use nicforge_units::Time;

use super::groups::{RING_NUMBERS, RING_SETS, RingGroups};
use super::{AxChoice, Consumption, Options, RxBisect, Sizing, Topology, sizing_warnings};
use crate::describe::{Around, Buffers, Describe, Queues, Shape, Supply};

choice! {
    /// Which own descriptors come before those of others.
    pub enum AxOwn {
        /// All that a doorbell told of, for which a packet may wait a round trip.
        First = "first",
        /// Only those that the NIC has read.
        AtHand = "at_hand",
    }
}

choice! {
    /// When a notice of a lent buffer is written.
    pub enum Notices {
        /// At once.
        Parallel = "parallel",
        /// With the next packet for its ring.
        Batched = "batched",
    }
}

options! {
    /// Allocation rings and reception rings.
    pub struct RxBisectOptions {
        /// Allocation rings of each NIC, linked to cores at even distances; 0: one for each of its queues.
        ax_rings: usize = 0, "rings", Allowed::Whole(0, 256),
            source "rxBisect paper, section 4.2: one per core, or a few large ones of a few cores";
        /// The reception ring that each allocation ring of a NIC is linked to, whose core fills it: as many numbers as
        /// there are allocation rings, such as `0 0 4 4`.
        ax_links: Option<RingGroups> = None, "", RING_NUMBERS, default "at even distances";
        /// The allocation rings that each reception ring of a NIC is associated with: a group for each, such as
        /// `0-1, 0-1, 2, 2` for four queues.
        associations: Option<RingGroups> = None, "", RING_SETS, default "those of its set";
        /// Disjoint sets that the queues of each NIC form: packets lie in buffers of their own set only, so
        /// that applications are kept apart.
        association_sets: usize = 1, "sets", Allowed::Whole(1, 256),
            source "rxBisect paper, section 4.5: one set is the most flexible";
        /// Entries of each allocation ring.
        ax_entries: usize = 128, "entries", Allowed::PowerOfTwo(2, 65536),
            source "rxBisect paper, section 4.2: small, such as 128";
        /// Reception ring entries per queue.
        bx_entries: usize = 1024, "entries", Allowed::PowerOfTwo(2, 65536),
            source "rxBisect paper, section 4.5: enough for bursts at 100 Gbit/s";
        /// Which allocation ring lends a buffer when a core's own has none.
        ax_choice: AxChoice = AxChoice::Random, "", AxChoice::ALLOWED, source "rxBisect paper, section 4.1";
        /// Which own descriptors come before those of others: all that a doorbell told of (`first`), for which a packet
        /// may wait a round trip, or only those that the NIC has read (`at_hand`).
        ax_own: AxOwn = AxOwn::First, "", AxOwn::ALLOWED,
            source "rxBisect paper, section 4.4: availability is known from doorbells";
        /// When a notice of a lent buffer is written: at once, or with the next packet for its
        /// ring and at the latest after `consumption_timeout_us`.
        consumption: Notices = Notices::Parallel, "", Notices::ALLOWED, source "rxBisect paper, section 4.4";
        /// How long a notice waits for a packet; with `consumption` batched.
        consumption_timeout_us: f64 = 10.0, "µs", Allowed::Number(0.001, 100_000.0);
    }
}

impl RxBisectOptions {
    /// What the interface is built from; `seed` decides what the random choice draws.
    pub fn to_build(&self, seed: u64) -> Options {
        let links = self.ax_links.as_ref().and_then(RingGroups::one_group);
        let associations = self.associations.as_ref().map(RingGroups::groups);
        Options {
            ax_rings: self.ax_rings,
            links: links.unwrap_or_default().to_vec(),
            associations: associations.unwrap_or_default().to_vec(),
            association_sets: self.association_sets,
            ax_entries: self.ax_entries,
            bx_entries: self.bx_entries,
            choice: self.ax_choice,
            own_first: self.ax_own == AxOwn::First,
            consumption: match self.consumption {
                Notices::Batched => Consumption::Batched(Time::from_seconds(self.consumption_timeout_us / 1e6)),
                Notices::Parallel => Consumption::Parallel,
            },
            seed,
        }
    }

    /// The rings of each NIC.
    pub fn topology(&self, queues: usize) -> Topology {
        Topology::of(queues, &self.to_build(0))
    }

    /// Whether rings are said one by one.
    fn is_written(&self) -> bool {
        self.associations.is_some() || self.ax_links.is_some()
    }

    /// What is said ring by ring belongs together.
    fn check_written(&self, queues: usize) -> Result<(), Finding> {
        let both = self.associations.is_some() && self.association_sets > 1;
        ensure(!both, &["associations", "association_sets"], || {
            (
                "associations and association_sets both say which rings belong together".to_string(),
                "set one of them".to_string(),
            )
        })?;
        let topology = self.topology(queues);
        let keys = &["associations", "ax_links", "ax_rings", "association_sets", "cores", "nics"];
        topology.check(queues).map(|_| ()).map_err(|error| Finding {
            keys,
            wrong: error.to_string(),
            right: format!(
                "each NIC has {queues} Bx rings, one for each of its cores, and {} Ax rings, counted from 0",
                topology.ax.len()
            ),
        })
    }

    /// Each association set has an allocation ring.
    fn check_sets(&self, queues: usize) -> Result<(), Finding> {
        let rings = self.to_build(0).rings(queues);
        // Rings lie at even distances and sets are neighbours, so some numbers do not go together
        // though there are rings enough.
        let each_has_rings = |sets: usize| {
            let topology = Topology::in_sets(queues, rings, 1, 1, sets);
            let found = topology.association_sets();
            found.len() == sets && found.iter().all(|set| !set.ax.is_empty())
        };
        let keys = &["association_sets", "ax_rings", "cores", "nics"];
        // A NIC that terminates TCP itself has no queues.
        ensure(queues == 0 || each_has_rings(self.association_sets), keys, || {
            let fewer = (1..self.association_sets).rev().find(|&sets| each_has_rings(sets));
            (
                format!(
                    "{} association sets for {queues} queues and {rings} allocation rings of each NIC: \
                     one would have none",
                    self.association_sets
                ),
                format!("set association_sets to {}", fewer.unwrap_or(1)),
            )
        })
    }

    /// Rings or queues that do not come out even over what they are divided between.
    fn about_uneven_sets(&self, queues: usize) -> Vec<String> {
        if self.is_written() {
            return Vec::new();
        }
        let (topology, sets) = (self.topology(queues), self.association_sets);
        let rings = topology.ax.len();
        let mut notes = Vec::new();
        let of_sets = topology.association_sets();
        let uneven = |counts: &[usize]| counts.iter().any(|count| *count != counts[0]);
        let by_set = [
            ("queues", of_sets.iter().map(|set| set.queues.len()).collect::<Vec<_>>()),
            ("Ax rings", of_sets.iter().map(|set| set.ax.len()).collect()),
        ];
        // One ring for each queue is as uneven as the queues, and need not be said again.
        if let Some((what, counts)) = by_set.iter().find(|(_, counts)| uneven(counts)) {
            let counts: Vec<String> = counts.iter().map(usize::to_string).collect();
            let all = if *what == "queues" { queues } else { rings };
            notes.push(format!(
                "{all} {what} of each NIC do not come out even over association_sets = {sets}: its sets have {}",
                counts.join(", ")
            ));
        }
        if rings > queues && !rings.is_multiple_of(queues) {
            let each = rings / queues;
            notes.push(format!(
                "ax_rings = {rings} do not come out even over {queues} queues of each NIC: some cores fill {} of them, \
                 the others {each}",
                each + 1
            ));
        }
        notes
    }
}

impl Describe for RxBisect {
    const NAME: &'static str = "rx_bisect";
    const ABOUT: &'static str = "small allocation rings that large reception rings share";
    const PLAYED: Result<(), &'static str> = Ok(());
    type Options = RxBisectOptions;

    fn shape(options: &RxBisectOptions, queues: &Queues<'_>) -> Shape {
        let (ax_entries, bx_entries) = (options.ax_entries, options.bx_entries);
        let (rings, queues) = (options.to_build(0).rings(queues.each), queues.each.max(1));
        let topology = options.topology(queues);
        let held = topology.ax.len() * ax_entries;
        let supplies = topology.association_sets().into_iter();
        Shape {
            // A frame needs a buffer of an allocation ring and an entry of a reception ring.
            frames: held.min(topology.bx.len() * bx_entries),
            // Full Bx rings of cores that stall must leave buffers for the others (paper, section 4.3).
            buffers: Buffers { receive: ax_entries * rings.div_ceil(queues).max(1) + bx_entries, more_in_transmit: 0 },
            // Only allocation rings hold empty buffers (paper, section 4.2).
            empty: held,
            ready: Some(held),
            smallest: ax_entries.min(bx_entries),
            sharing: None,
            split: None,
            supplies: supplies.map(|set| Supply { queues: set.queues, entries: set.ax_entries }).collect(),
            registers: queues + rings.max(queues),
            played: false,
            control: None,
        }
    }

    fn check(options: &RxBisectOptions, queues: &Queues<'_>) -> Result<(), Finding> {
        if options.is_written() {
            return options.check_written(queues.each);
        }
        options.check_sets(queues.each)
    }

    fn advice(options: &RxBisectOptions, around: &Around<'_>) -> Vec<String> {
        let topology = options.topology(around.queues.each);
        let mut notes = sizing_warnings(&Sizing {
            nics: around.queues.nics,
            queues: topology.bx.len(),
            ax_rings: topology.ax.len(),
            sets: options.association_sets,
            written: options.is_written().then_some(&topology),
            ax_entries: options.ax_entries,
            bx_entries: options.bx_entries,
            burst_entries: around.burst_entries,
            entries_min: around.entries_min,
            emulated: around.played,
            // The mean: what fills the cache is frames of all kinds.
            frame: around.frame,
            io_capacity: around.io_capacity,
        });
        notes.extend(options.about_uneven_sets(around.queues.each));
        notes
    }
}
