//! Which Ax and Bx rings one NIC has, and how they belong together (paper, section 4.1).

use super::Options;

/// A set of memory that a NIC may be shown: buffers of one domain are unknown in another. A declaration,
/// which only [`Topology`]'s check looks at: every buffer is of the plan's one pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryDomain(pub u16);

/// An allocation ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxRing {
    /// Entries, a power of two.
    pub entries: usize,
    /// Where its buffers lie.
    pub domain: MemoryDomain,
}

impl AxRing {
    /// One of `entries` in the one domain that there is unless more are declared.
    fn of(entries: usize) -> AxRing {
        let domain = MemoryDomain::default();
        AxRing { entries, domain }
    }
}

/// A reception ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BxRing {
    /// Entries, a power of two.
    pub entries: usize,
    /// Which buffers its driver knows.
    pub domain: MemoryDomain,
    /// The Ax rings whose buffers may hold its packets, by number.
    pub associated: Vec<usize>,
}

impl BxRing {
    /// One of `entries` in the one domain that there is unless more are declared.
    fn of(entries: usize, associated: Vec<usize>) -> BxRing {
        BxRing { entries, domain: MemoryDomain::default(), associated }
    }
}

/// All rings of one NIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Allocation rings.
    pub ax: Vec<AxRing>,
    /// Reception rings: one per queue.
    pub bx: Vec<BxRing>,
    /// Pairs of an Ax ring and the Bx ring that reports what was consumed from it. Each Ax ring
    /// has one.
    pub links: Vec<(usize, usize)>,
}

/// Why rings cannot belong together as wanted.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TopologyError {
    /// A queue without a Bx ring, or the other way round.
    #[error("{bx} Bx rings for {queues} queues: each queue has one")]
    Queues {
        /// Bx rings there are.
        bx: usize,
        /// Queues there are.
        queues: usize,
    },
    /// No buffer could ever hold a packet.
    #[error("Bx ring {bx} is associated with no Ax ring: name at least one, such as its core's")]
    EmptyAssociation {
        /// The Bx ring.
        bx: usize,
    },
    /// A ring is named that there is not.
    #[error("there is no {kind} ring {number}: there are {rings}, counted from 0")]
    Unknown {
        /// `Ax` or `Bx`.
        kind: &'static str,
        /// What was named.
        number: usize,
        /// How many there are.
        rings: usize,
    },
    /// An association names a ring twice.
    #[error("Bx ring {bx} is associated with Ax ring {ax} twice: name it once")]
    AssociatedTwice {
        /// The Bx ring.
        bx: usize,
        /// The Ax ring.
        ax: usize,
    },
    /// A ring has two links.
    #[error("Ax ring {ax} is linked to Bx rings {first} and {second}: notices go to one, remove a link")]
    LinkedTwice {
        /// The Ax ring.
        ax: usize,
        /// The link that came first.
        first: usize,
        /// The one too many.
        second: usize,
    },
    /// No Bx ring would report what was consumed.
    #[error("Ax ring {ax} is linked to no Bx ring: nobody would fill it again; link it to one")]
    NotLinked {
        /// The Ax ring.
        ax: usize,
    },
    /// Buffers that would never hold a packet.
    #[error(
        "no Bx ring is associated with Ax ring {ax}: nobody would use its buffers; associate one with it, or \
         have fewer Ax rings"
    )]
    NotAssociated {
        /// The Ax ring.
        ax: usize,
    },
    /// Packets would lie in memory that their reader does not know.
    #[error(
        "Ax ring {ax} is of memory domain {}, Bx ring {bx} of {}: rings that are {how} share one",
        ax_domain.0, bx_domain.0
    )]
    Domains {
        /// The Ax ring.
        ax: usize,
        /// Its domain.
        ax_domain: MemoryDomain,
        /// The Bx ring.
        bx: usize,
        /// Its domain.
        bx_domain: MemoryDomain,
        /// `associated` or `linked`.
        how: &'static str,
    },
}

/// Queues whose Bx rings are associated with the same Ax rings, and the empty buffers that those hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssociationSet {
    /// By number, rising.
    pub queues: Vec<usize>,
    /// By number, rising.
    pub ax: Vec<usize>,
    /// Entries of all these Ax rings.
    pub ax_entries: usize,
}

impl Topology {
    /// The rings that `options` ask for, for `queues` queues.
    pub fn of(queues: usize, options: &Options) -> Topology {
        let ax_rings = options.rings(queues);
        let (bx_entries, sets) = (options.bx_entries, options.association_sets);
        let mut topology = match &options.links[..] {
            [] => Topology::in_sets(queues, ax_rings, options.ax_entries, bx_entries, sets),
            links => Topology::linked(queues, links, options.ax_entries, bx_entries, sets),
        };
        topology.ax.resize(ax_rings, AxRing::of(options.ax_entries));
        if !options.associations.is_empty() {
            let with = |associated: &Vec<usize>| BxRing::of(bx_entries, associated.clone());
            topology.bx = options.associations.iter().map(with).collect();
        }
        topology
    }

    /// The sets that its queues form, by their first queues.
    pub fn association_sets(&self) -> Vec<AssociationSet> {
        let mut sets: Vec<AssociationSet> = Vec::new();
        for (queue, bx) in self.bx.iter().enumerate() {
            let mut ax = bx.associated.clone();
            ax.sort_unstable();
            match sets.iter_mut().find(|set| set.ax == ax) {
                Some(set) => set.queues.push(queue),
                None => sets.push(AssociationSet {
                    queues: vec![queue],
                    // Rings that there are not are refused by `check`.
                    ax_entries: ax.iter().filter_map(|&ax| self.ax.get(ax)).map(|ax| ax.entries).sum(),
                    ax,
                }),
            }
        }
        sets
    }

    /// An Ax and a Bx ring for each of `queues` cores, linked to each other; every Bx ring
    /// associated with all Ax rings, as one application has it (paper, section 4.5).
    pub fn per_core(queues: usize, ax_entries: usize, bx_entries: usize) -> Topology {
        Topology::in_sets(queues, queues, ax_entries, bx_entries, 1)
    }

    /// `ax_rings` Ax rings, linked to the Bx rings of cores at even distances; the cores are divided
    /// into `sets` sets of neighbours, and a Bx ring is associated with the Ax rings of its own set
    /// (paper, section 4.5: applications with disjoint sets work concurrently).
    pub fn in_sets(queues: usize, ax_rings: usize, ax_entries: usize, bx_entries: usize, sets: usize) -> Topology {
        // Where there are more rings than cores, cores get several.
        let link_of =
            |ring: usize| if ax_rings < queues { ring * queues / ax_rings.max(1) } else { ring % queues.max(1) };
        let links: Vec<usize> = (0..ax_rings).map(link_of).collect();
        Topology::linked(queues, &links, ax_entries, bx_entries, sets)
    }

    /// An Ax ring for each of `links`, which name the Bx rings that they are linked to.
    fn linked(queues: usize, links: &[usize], ax_entries: usize, bx_entries: usize, sets: usize) -> Topology {
        let set_of = |queue: usize| queue * sets / queues.max(1);
        let of_set = |queue: usize| {
            let own = (0..links.len()).filter(|&ring| set_of(links[ring]) == set_of(queue));
            BxRing::of(bx_entries, own.collect())
        };
        Topology {
            ax: vec![AxRing::of(ax_entries); links.len()],
            bx: (0..queues).map(of_set).collect(),
            links: links.iter().copied().enumerate().collect(),
        }
    }

    /// Checks that all rings belong together, for `queues` queues; returns the Bx ring that each
    /// Ax ring is linked to.
    ///
    /// # Errors
    /// The first thing that does not go together.
    pub fn check(&self, queues: usize) -> Result<Vec<usize>, TopologyError> {
        let rings = self.bx.len();
        if rings != queues {
            return Err(TopologyError::Queues { bx: rings, queues });
        }
        for (number, bx) in self.bx.iter().enumerate() {
            self.check_association(number, bx)?;
        }
        let mut linked = vec![None; self.ax.len()];
        for &(ax, bx) in &self.links {
            self.check_pair(ax, bx, "linked")?;
            if let Some(first) = linked[ax].replace(bx) {
                let second = bx;
                return Err(TopologyError::LinkedTwice { ax, first, second });
            }
        }
        let link_of = |(ax, bx): (usize, Option<usize>)| bx.ok_or(TopologyError::NotLinked { ax });
        let linked: Result<Vec<usize>, _> = linked.into_iter().enumerate().map(link_of).collect();
        let linked = linked?;
        let used = |ax: &usize| self.bx.iter().any(|bx| bx.associated.contains(ax));
        match (0..self.ax.len()).find(|ax| !used(ax)) {
            Some(ax) => Err(TopologyError::NotAssociated { ax }),
            None => Ok(linked),
        }
    }

    fn check_association(&self, number: usize, bx: &BxRing) -> Result<(), TopologyError> {
        if bx.associated.is_empty() {
            return Err(TopologyError::EmptyAssociation { bx: number });
        }
        for (index, &ax) in bx.associated.iter().enumerate() {
            self.check_pair(ax, number, "associated")?;
            if bx.associated[..index].contains(&ax) {
                return Err(TopologyError::AssociatedTwice { bx: number, ax });
            }
        }
        Ok(())
    }

    /// Both rings exist and are of one memory domain.
    fn check_pair(&self, ax: usize, bx: usize, how: &'static str) -> Result<(), TopologyError> {
        let unknown = |kind, number, rings| TopologyError::Unknown { kind, number, rings };
        let ax_ring = self.ax.get(ax);
        let ax_domain = ax_ring.ok_or(unknown("Ax", ax, self.ax.len()))?.domain;
        let bx_ring = self.bx.get(bx);
        let bx_domain = bx_ring.ok_or(unknown("Bx", bx, self.bx.len()))?.domain;
        if ax_domain == bx_domain {
            return Ok(());
        }
        Err(TopologyError::Domains { ax, ax_domain, bx, bx_domain, how })
    }
}
