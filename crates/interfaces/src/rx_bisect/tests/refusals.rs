//! Rings that cannot belong together.

use nicforge_nic::Pool;
use nicforge_platform::AddressSpace;

use super::{AxChoice, BATCHED, MemoryDomain, Options, Topology, TopologyError, build_with, options};
use crate::InterfaceError;
use crate::suite::Setup;

/// What becomes of three cores whose rings `change` changed.
fn build(change: impl FnOnce(&mut Topology)) -> Result<(), InterfaceError> {
    let mut topology = Topology::per_core(3, 8, 64);
    change(&mut topology);
    let mut space = AddressSpace::default();
    let pool = Pool::new(&mut space, 64);
    let setup = Setup { queues: 3, ..Setup::default() };
    let options = options(AxChoice::Random, BATCHED);
    build_with(&setup.plan(pool), &topology, &options, &mut space).map(|_| ())
}

#[track_caller]
fn refused(change: impl FnOnce(&mut Topology), why: TopologyError, says: &str) {
    match build(change).unwrap_err() {
        InterfaceError::Topology(error) => {
            assert_eq!(error, why);
            assert!(error.to_string().contains(says), "{error}");
        }
        error => panic!("{error}"),
    }
}

#[test]
fn each_with_its_reason() {
    assert!(build(|_| ()).is_ok());
    refused(
        |rings| rings.bx[1].associated.clear(),
        TopologyError::EmptyAssociation { bx: 1 },
        "Bx ring 1 is associated with no Ax ring",
    );
    refused(
        |rings| rings.links.push((1, 2)),
        TopologyError::LinkedTwice { ax: 1, first: 1, second: 2 },
        "remove a link",
    );
    refused(|rings| rings.links.truncate(2), TopologyError::NotLinked { ax: 2 }, "link it to one");
    refused(|rings| rings.bx[0].associated.push(2), TopologyError::AssociatedTwice { bx: 0, ax: 2 }, "name it once");
    refused(
        |rings| rings.bx[0].associated.push(3),
        TopologyError::Unknown { kind: "Ax", number: 3, rings: 3 },
        "no Ax ring 3",
    );
    refused(
        |rings| rings.links.push((0, 7)),
        TopologyError::Unknown { kind: "Bx", number: 7, rings: 3 },
        "no Bx ring 7",
    );
    refused(|rings| rings.bx.truncate(2), TopologyError::Queues { bx: 2, queues: 3 }, "2 Bx rings for 3 queues");
}

#[test]
fn rings_of_two_memory_domains() {
    let domains = |how| TopologyError::Domains {
        ax: 2,
        ax_domain: MemoryDomain(7),
        bx: if how == "linked" { 2 } else { 0 },
        bx_domain: MemoryDomain(0),
        how,
    };
    refused(|rings| rings.ax[2].domain = MemoryDomain(7), domains("associated"), "rings that are associated share one");
    let link_alone = |rings: &mut Topology| {
        rings.ax[2].domain = MemoryDomain(7);
        rings.bx.iter_mut().for_each(|bx| bx.associated = vec![0]);
    };
    refused(link_alone, domains("linked"), "domain 7, Bx ring 2 of 0");
    // An application with a domain of its own is fine.
    let apart = |rings: &mut Topology| {
        rings.ax[2].domain = MemoryDomain(7);
        rings.bx[2].domain = MemoryDomain(7);
        rings.bx[2].associated = vec![2];
        rings.bx[0].associated = vec![0, 1];
        rings.bx[1].associated = vec![0, 1];
    };
    assert!(build(apart).is_ok());
}

#[test]
fn sizes() {
    for entries in [0, 1, 3, 100] {
        let errors = [
            build(|rings| rings.ax[1].entries = entries).unwrap_err(),
            build(|rings| rings.bx[1].entries = entries).unwrap_err(),
        ];
        for (error, what) in errors.iter().zip(["ax_entries", "bx_entries"]) {
            let text = error.to_string();
            assert!(matches!(error, InterfaceError::RingSize { .. }), "{text}");
            assert!(text.contains(what), "{text}");
        }
    }
}

/// What a scenario says ring by ring, and where it says nothing, what the numbers say.
#[test]
fn rings_as_they_are_written() {
    let of = |change: fn(&mut Options)| {
        let mut options = options(AxChoice::Random, BATCHED);
        change(&mut options);
        Topology::of(4, &options)
    };
    let associated =
        |rings: &Topology| -> Vec<Vec<usize>> { rings.bx.iter().map(|bx| bx.associated.clone()).collect() };
    // Three rings of two cores, each of which is in another set.
    let linked = of(|options| {
        options.links = vec![3, 0, 3];
        options.association_sets = 2;
    });
    assert_eq!(linked.check(4), Ok(vec![3, 0, 3]));
    let (first, last) = (vec![1], vec![0, 2]);
    let sets = [first.clone(), first, last.clone(), last];
    assert_eq!(associated(&linked), sets);
    // Sets that overlap, over a ring for each core.
    let overlapping = of(|options| {
        options.associations = vec![vec![0, 1], vec![1, 2], vec![2, 3], vec![3]];
    });
    assert_eq!(overlapping.check(4), Ok(vec![0, 1, 2, 3]));
    assert_eq!(associated(&overlapping)[1], [1, 2]);
    assert_eq!(overlapping.association_sets().len(), 4);
    // A set is the same in whatever order it is written.
    let reordered = of(|options| {
        options.associations = vec![vec![0, 1], vec![1, 0], vec![3, 2], vec![2, 3]];
    });
    assert_eq!(reordered.association_sets().len(), 2);
    let unused = of(|options| options.associations = vec![vec![0, 1, 3]; 4]);
    let nobody = TopologyError::NotAssociated { ax: 2 };
    assert_eq!(unused.check(4), Err(nobody));
    // More or fewer rings than links.
    let more = of(|options| (options.ax_rings, options.links) = (3, vec![0, 1]));
    assert_eq!(more.check(4), Err(TopologyError::NotLinked { ax: 2 }));
    let fewer = of(|options| (options.ax_rings, options.links) = (1, vec![0, 1]));
    assert!(matches!(fewer.check(4), Err(TopologyError::Unknown { .. })));
    let short = of(|options| options.associations = vec![vec![0]]);
    let missing = TopologyError::Queues { bx: 1, queues: 4 };
    assert_eq!(short.check(4), Err(missing));
}
