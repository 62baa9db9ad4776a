//! TLS over two of the project's TCP stacks, with the engine between each stack and the wire.

use nicforge_l5p::engine::EngineConfig;
use nicforge_l5p::registry;
use nicforge_l5p::tls::record::{Cipher, Version};
use nicforge_tcp::Config;
use nicforge_units::Time;

use crate::common::network::{Link, Net, time_of_wrap};
use crate::common::tls_end::TlsPair;
use crate::common::{Dice, seeds};

const SUITES: [(Version, Cipher); 6] = [
    (Version::Tls12, Cipher::Aes128Gcm),
    (Version::Tls12, Cipher::Aes256Gcm),
    (Version::Tls12, Cipher::ChaCha20Poly1305),
    (Version::Tls13, Cipher::Aes128Gcm),
    (Version::Tls13, Cipher::Aes256Gcm),
    (Version::Tls13, Cipher::ChaCha20Poly1305),
];

fn net(seed: u64, link: Link) -> Net<crate::common::tls_end::TlsEnd> {
    Net::new(seed, link, Config::default(), EngineConfig::default(), 100, Time::from_ms(1))
}

#[test]
fn a_clean_link_leaves_nothing_to_software() {
    for suite in SUITES {
        let mut pair = TlsPair::new(net(1, Link::clean()), suite, 1, 16_000, 0, 600);
        pair.run([40, 40]);
        for side in 0..2 {
            let counters = pair.end(side).reader.counters();
            assert_eq!((counters.partly_offloaded, counters.not_offloaded), (0, 0), "{suite:?} {counters:?}");
            let nic = pair.net.sides[side].port.counters(registry::find("tls").unwrap());
            assert_eq!((nic.tx_ooo, nic.rx_ooo, nic.rx_searches, nic.tx_refused), (0, 0, 0, 0));
        }
    }
}

/// Faults, versions, sizes, places of the first byte and upsets drawn from a seed.
fn draw(seed: u64, proves_resync: bool) -> TlsPair {
    let mut dice = Dice::new(seed);
    let link = Link::drawn(&mut dice);
    let mut config = Config { sack: dice.percent(80), ..Config::default() };
    config.receive.default = 16_384 << dice.below(4);
    config.send.default = 16_384 << dice.below(4);
    let now = match dice.below(3) {
        0 => time_of_wrap(seed, dice.below(2) as usize, dice.below(60_000) as u32),
        _ => Time::from_ms(1),
    };
    let contexts = if dice.percent(10) { dice.below(3) as usize } else { 100 };
    let engine = EngineConfig { proves_resync, ..EngineConfig::default() };
    let mut net = Net::new(seed, link, config, engine, contexts, now);
    net.answer_delay = Time::from_us([0, 100, 5000][dice.below(3) as usize]);
    let suite = SUITES[dice.below(6) as usize];
    let (largest, control) = ([40, 3000, 16_000][dice.below(3) as usize], [0, 10, 25][dice.below(3) as usize]);
    let plain = [0, 3000][dice.below(2) as usize];
    let mut pair = TlsPair::new(net, suite, seed, largest, control, plain);
    if dice.percent(40) {
        let side = dice.below(2) as usize;
        pair.end(side).upset_at = Some(dice.below(16));
    }
    pair
}

#[test]
fn faults_cost_speed_never_correctness() {
    let mut met = [0; 4];
    for seed in seeds(120) {
        let outcome = std::panic::catch_unwind(|| {
            let mut pair = draw(seed, false);
            pair.run([40, 20]);
            check_return(&mut pair);
            let counters = pair.net.sides[0].port.counters(registry::find("tls").unwrap());
            let in_software = pair.net.sides[0].port.port_counters().in_software_packets;
            [counters.tx_ooo, counters.rx_searches, counters.rx_resync_res_ok, in_software]
        });
        let counted = outcome.unwrap_or_else(|_| panic!("NICFORGE_SEED={seed}"));
        (0..4).for_each(|place| met[place] += counted[place]);
    }
    let is_one_seed = std::env::var("NICFORGE_SEED").is_ok();
    assert!(is_one_seed || met.iter().all(|count| *count > 50), "the swarm met {met:?}");
}

/// Found by the swarm: packets that a lost context had processed waited in TCP while a key update was read, and were taken
/// for the new key's.
#[test]
fn packets_of_a_context_lost_before_a_key_update_have_their_own_key() {
    let mut pair = draw(10_287, false);
    pair.run([40, 20]);
    check_return(&mut pair);
}

/// A megabyte's worth of records, unless `NICFORGE_TRANSFER_MIB` says how many.
fn transfer_records() -> u64 {
    let mebibytes = std::env::var("NICFORGE_TRANSFER_MIB").ok().and_then(|value| value.parse::<u64>().ok());
    mebibytes.unwrap_or(4) * 64
}

#[test]
fn a_large_transfer_survives_loss_and_says_what_it_cost() {
    let tls = registry::find("tls").unwrap();
    let records = transfer_records();
    for loss in [0, 10, 50] {
        let mut net = net(7, Link::lossy(loss));
        net.link.evict = 1;
        let mut pair = TlsPair::new(net, SUITES[3], 7, 16_384, 0, 0);
        pair.send_bulk();
        pair.run([records, 0]);
        let came = pair.end(1).reader.counters();
        let (sent, got) = (pair.net.sides[0].port.counters(tls), pair.net.sides[1].port.counters(tls));
        let port = pair.net.sides[1].port.port_counters();
        println!(
            "loss {} per 1000: records entirely {}, partly {}, not offloaded {}; recoveries {}, bytes read again {}; \
             searches {}, questions {}, returns {} after {} us in the mean, {} us at most",
            loss,
            came.offloaded,
            came.partly_offloaded,
            came.not_offloaded,
            sent.tx_ooo,
            sent.tx_dump_bytes,
            got.rx_searches,
            got.rx_resync_req_pkt,
            port.returns,
            (port.away.as_us() / port.returns.max(1) as f64).round(),
            port.away_most.as_us().round(),
        );
        assert_eq!(came.offloaded + came.partly_offloaded + came.not_offloaded, records);
        assert_eq!(sent.tx_refused + sent.tx_drop_no_sync_data, 0);
        assert!(sent.tx_dump_bytes <= sent.tx_ooo * 16_406, "a recovery reads no more than a record again");
        match loss {
            0 => assert_eq!((came.offloaded, sent.tx_ooo), (records, 0)),
            10 => assert!(came.offloaded > records / 4 && came.partly_offloaded > 0 && sent.tx_ooo > 0, "{came:?}"),
            _ => assert!(came.partly_offloaded + came.not_offloaded > records / 4 && sent.tx_ooo > 0, "{came:?}"),
        }
    }
}

#[test]
fn proving_costs_a_message_and_no_more() {
    for seed in seeds(40) {
        let outcome = std::panic::catch_unwind(|| {
            let mut pair = draw(seed, true);
            pair.run([40, 20]);
            check_return(&mut pair);
        });
        assert!(outcome.is_ok(), "NICFORGE_SEED={seed}");
    }
}

/// Without faults, offloading is back after a few records, each sent when the one before has come.
fn check_return(pair: &mut TlsPair) {
    let has_room = pair.net.sides.iter().all(|side| side.port.port_counters().no_room == 0);
    pair.net.link = Link { evict: 30, ..Link::clean() };
    pair.send_data_only();
    (0..8).for_each(|_| pair.run([1, 1]));
    let before = [0, 1].map(|side| pair.end(side).reader.counters().offloaded);
    pair.run([3, 3]);
    let after = [0, 1].map(|side| pair.end(side).reader.counters().offloaded);
    if has_room {
        assert_eq!([after[0] - before[0], after[1] - before[1]], [3, 3], "offloading is back");
    }
}
