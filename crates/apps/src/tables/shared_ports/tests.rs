//! No port is out twice, and who may have how many.

use std::collections::BTreeSet;

use nicforge_platform::FlatCpu;
use nicforge_wire::headers::ip_protocol::{ICMP, TCP, UDP};
use proptest::prelude::*;

use super::*;

const ANY: &[Parity] = &[Parity::Any];

/// The ports of `addresses` addresses as each core has them.
fn cores<const CORES: usize>(addresses: u32, percent: u32) -> ([CorePorts; CORES], FlatCpu) {
    let mut space = AddressSpace::default();
    let shared = SharedPorts::allocate(&mut space, 1 << 24, addresses);
    let of = |core| CorePorts::new(shared.clone(), core, CORES, percent);
    (std::array::from_fn(of), FlatCpu::new(space.end()))
}

#[test]
fn ports_come_in_no_order() {
    let ([mut core], mut cpu) = cores(1, 50);
    let mut random = Unforeseen::new(7, 0);
    let ports: Vec<u16> = (0..1000).map(|_| core.take(&mut cpu, &mut random, TCP, 0, ANY).unwrap().port).collect();
    let steps: BTreeSet<i32> = ports.windows(2).map(|pair| i32::from(pair[1]) - i32::from(pair[0])).collect();
    assert!(steps.len() > 900, "{} different steps", steps.len());
    assert!(ports.iter().filter(|&&port| port < 33_280).count() > 400);
}

#[test]
fn parity_is_kept_while_there_is_a_port_of_it() {
    let ([mut core], mut cpu) = cores(1, 50);
    let mut random = Unforeseen::new(1, 0);
    let mut take = |parities| core.take(&mut cpu, &mut random, UDP, 0, parities);
    for _ in 0..32_256 {
        assert_eq!(take(&[Parity::Like(5)]).unwrap().port % 2, 1);
    }
    assert_eq!(take(&[Parity::Like(5)]), None);
    assert_eq!(take(&[Parity::Like(5), Parity::Any]).unwrap().port % 2, 0);
}

/// One core takes all but what the others keep, which they find, and each protocol has all ports.
#[test]
fn a_core_has_what_others_do_not_keep() {
    let ([mut first, mut second, mut third], mut cpu) = cores(1, 25);
    let mut random = Unforeseen::new(1, 0);
    let keeps = 64_512 / 3 / 4;
    let mut seen = BTreeSet::new();
    while let Some(external) = first.take(&mut cpu, &mut random, TCP, 0, ANY) {
        assert!(seen.insert(external.port));
    }
    assert_eq!(seen.len(), 64_512 - 2 * keeps);
    for core in [&mut second, &mut third] {
        while let Some(external) = core.take(&mut cpu, &mut random, TCP, 0, ANY) {
            assert!(seen.insert(external.port));
        }
        assert_eq!(core.taken(), [keeps as u32, 0, 0]);
    }
    assert!(second.take(&mut cpu, &mut random, ICMP, 0, ANY).is_some());
    // What the first one gives back, others may have.
    let port = (1024..).find(|&port| first.owns(&mut cpu, 0, 0, port)).unwrap();
    let external = External { address: 1 << 24, port };
    second.give(&mut cpu, TCP, external);
    assert_eq!(third.take(&mut cpu, &mut random, TCP, 0, ANY), None, "it was not the second one's to give");
    first.give(&mut cpu, TCP, external);
    assert_eq!(third.take(&mut cpu, &mut random, TCP, 0, ANY), Some(external));
}

#[test]
fn who_takes_the_place_of_a_core_frees_its_ports() {
    let ([mut first, mut second], mut cpu) = cores(2, 50);
    let mut random = Unforeseen::new(1, 0);
    let mut all = 0;
    second.reserve(&mut cpu, TCP, External { address: 1 << 24, port: 8080 });
    while first.take(&mut cpu, &mut random, TCP, 1, ANY).is_some() {
        all += 1;
    }
    for _ in 0..100 {
        second.take(&mut cpu, &mut random, TCP, 0, ANY).unwrap();
    }
    for _ in 0..3 {
        let mut heir = CorePorts::new(first.shared.clone(), 0, 2, 50);
        heir.start(&mut cpu);
        let mut again = 0;
        while heir.take(&mut cpu, &mut random, TCP, 0, ANY).is_some() {
            again += 1;
        }
        assert_eq!(again, all);
    }
    assert!(!first.owns(&mut cpu, 0, 0, 8080));
}

proptest! {
    #[test]
    fn no_port_is_out_twice_and_all_come_back(takes in prop::collection::vec((any::<bool>(), 0usize..2), 1..400)) {
        let (mut cores, mut cpu) = cores::<2>(2, 50);
        let mut random = Unforeseen::new(3, 0);
        let mut out: Vec<(usize, External)> = Vec::new();
        for (take, core) in takes {
            if take {
                let address = u32::from(out.len() % 2 == 1);
                let external = cores[core].take(&mut cpu, &mut random, UDP, address, ANY).unwrap();
                prop_assert!(out.iter().all(|(_, other)| *other != external));
                prop_assert_eq!(external.address, (1 << 24) + address);
                let place = cores[core].shared.owners.place(1, address, external.port).unwrap();
                prop_assert_eq!(place.owner(cpu.load(place.at)), Some(core));
                out.push((core, external));
            } else if !out.is_empty() {
                let (core, external) = out.swap_remove(out.len() / 2);
                cores[core].give(&mut cpu, UDP, external);
            }
            let taken: u32 = cores.iter().map(|core| core.taken()[1]).sum();
            prop_assert_eq!(taken as usize, out.len());
        }
    }
}
