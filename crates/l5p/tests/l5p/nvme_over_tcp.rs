//! NVMe/TCP host and target over two of the project's TCP stacks, digests and placement on the NICs.

use nicforge_l5p::engine::EngineConfig;
use nicforge_l5p::host::FlatMemory;
use nicforge_l5p::nvme::initiator::{Initiator, InitiatorConfig};
use nicforge_l5p::nvme::pdu::Digests;
use nicforge_l5p::nvme::target::{Target, TargetConfig};
use nicforge_l5p::registry;
use nicforge_tcp::Config;
use nicforge_units::Time;

use crate::common::network::{Link, Net};
use crate::common::nvme_end::{NvmeEnd, Role};
use crate::common::{Dice, seeds};

const DIGESTS: Digests = Digests { header: true, data: true };

fn pair(
    seed: u64,
    link: Link,
    engine: EngineConfig,
    contexts: usize,
    digests: Digests,
    requests: usize,
) -> Net<NvmeEnd> {
    let mut net = Net::new(seed, link, Config::default(), engine, contexts, Time::from_ms(1));
    let starts = net.connect();
    let host = InitiatorConfig { digests, depth: 8, block_bytes: 512, in_capsule_max: 4096, offloads: true };
    let target = TargetConfig {
        digests,
        data_bytes_max: 1 << 15,
        sends_success: seed.is_multiple_of(2),
        transfer_bytes_max: 1 << 17,
        depth: 64,
        offloads: true,
    };
    let mut memory = FlatMemory::default();
    let initiator = Initiator::new(host, starts[0], starts[1], &mut memory).unwrap();
    net.sides[0].end = Some(NvmeEnd::host(initiator, memory, seed, requests, 64));
    net.sides[1].end = Some(NvmeEnd::target(Target::new(target, NvmeEnd::store(), starts[1], starts[0])));
    net
}

fn check(net: &Net<NvmeEnd>) {
    let [host, target] = net.sides.each_ref().map(|side| &side.end.as_ref().unwrap().role);
    let (Role::Host(host), Role::Target(target)) = (host, target) else { panic!("who is who") };
    assert!(target.store.bytes() == host.model, "the blocks are what was written");
}

#[test]
fn a_clean_link_leaves_no_copy_and_no_digest_to_software() {
    let mut net = pair(1, Link::clean(), EngineConfig::default(), 10, DIGESTS, 60);
    net.run();
    check(&net);
    for side in &mut net.sides {
        let counters = side.end.as_mut().unwrap().connection().counters;
        assert_eq!((counters.copied_bytes, counters.digests_in_software), (0, 0));
        assert!(counters.digests_offloaded > 60);
        let nic = side.port.counters(registry::find("nvme_tcp").unwrap());
        assert!(nic.rx_placed_bytes > 100_000 && nic.rx_setup == nic.rx_teardown, "{nic:?}");
    }
}

#[test]
fn faults_cost_speed_never_correctness() {
    let nvme = registry::find("nvme_tcp").unwrap();
    let mut met = [0; 4];
    for seed in seeds(60) {
        let outcome = std::panic::catch_unwind(|| {
            let mut dice = Dice::new(seed);
            let link = Link::drawn(&mut dice);
            let engine = EngineConfig {
                places_ahead: dice.percent(50),
                proves_resync: dice.percent(50),
                ..EngineConfig::default()
            };
            let digests = Digests { header: dice.percent(60), data: dice.percent(60) };
            let contexts = if dice.percent(10) { dice.below(3) as usize } else { 10 };
            let mut net = pair(seed, link, engine, contexts, digests, 40);
            net.run();
            check(&net);
            let counters = net.sides[0].port.counters(nvme);
            [counters.tx_ooo, counters.rx_ooo, counters.rx_resync_res_ok, counters.rx_placed_bytes]
        });
        let counted = outcome.unwrap_or_else(|_| panic!("NICFORGE_SEED={seed}"));
        (0..4).for_each(|place| met[place] += counted[place]);
    }
    let is_one_seed = std::env::var("NICFORGE_SEED").is_ok();
    assert!(is_one_seed || met.iter().all(|count| *count > 20), "the swarm met {met:?}");
}
