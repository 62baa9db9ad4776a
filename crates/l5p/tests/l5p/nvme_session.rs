//! Host and target over a wire with faults: blocks come through, digests are right, data is placed.

use std::collections::BTreeMap;

use nicforge_l5p::engine::EngineConfig;
use nicforge_l5p::host::{HostBuffers, Piece};
use nicforge_l5p::nvme::connection::ConnectionError;
use nicforge_l5p::nvme::initiator::{InitiatorConfig, RequestError};
use nicforge_l5p::nvme::pdu::Digests;
use nicforge_l5p::nvme::target::TargetConfig;
use nicforge_l5p::nvme::wire::Status;
use nicforge_l5p::registry;

use crate::common::duplex::Pair;
use crate::common::storage::check_wire;
use crate::common::{Dice, Faults, drawn, quiet, seeds};

const BLOCK: usize = 512;

fn configs(digests: Digests, success: bool) -> (InitiatorConfig, TargetConfig) {
    let host = InitiatorConfig { digests, depth: 8, block_bytes: 512, in_capsule_max: 4096, offloads: true };
    let target = TargetConfig {
        digests,
        data_bytes_max: 3000,
        sends_success: success,
        transfer_bytes_max: 1 << 17,
        depth: 64,
        offloads: true,
    };
    (host, target)
}

/// Writes and reads at random, and compares with a plain array.
fn exercise(pair: &mut Pair, requests: usize) -> Result<(), ConnectionError> {
    let mut model = pair.target.end.store.bytes().to_vec();
    let mut reads: BTreeMap<u16, (Piece, Vec<u8>)> = BTreeMap::new();
    let mut busy: BTreeMap<u16, std::ops::Range<u64>> = BTreeMap::new();
    let (mut begun, mut stuck) = (0, 0);
    while begun < requests || !busy.is_empty() || !pair.host.is_idle() || !pair.target.is_idle() {
        stuck += 1;
        assert!(stuck < 400_000, "nothing moves: {:?} {:?}", pair.host.rx, pair.target.rx);
        if begun < requests && pair.host.end.is_ready() && pair.dice.percent(30) {
            let blocks = pair.dice.range(1, 40) as u64;
            let lba = pair.dice.below(4096 - blocks);
            let free = busy.values().all(|range| range.end <= lba || lba + blocks <= range.start);
            if free {
                let bytes = blocks as usize * BLOCK;
                let place = lba as usize * BLOCK..lba as usize * BLOCK + bytes;
                let content = pair.dice.bytes(bytes);
                let is_write = pair.dice.percent(50);
                let buffer = pair.host.memory.place(&content);
                let host = &mut pair.host;
                let result = if is_write {
                    host.end.write(&mut host.memory, lba, buffer)
                } else {
                    host.end.read(&mut host.memory, lba, buffer)
                };
                match result {
                    Ok(id) => {
                        begun += 1;
                        stuck = 0;
                        busy.insert(id, lba..lba + blocks);
                        if is_write {
                            model[place].copy_from_slice(&content);
                        } else {
                            reads.insert(id, (buffer, model[place].to_vec()));
                        }
                    }
                    Err(error) => assert_eq!(error, RequestError::Busy(8)),
                }
            }
        }
        pair.step()?;
        while let Some(done) = pair.host.end.next_done() {
            assert_eq!(done.status, Status::SUCCESS);
            busy.remove(&done.id);
            if let Some((buffer, want)) = reads.remove(&done.id) {
                assert!(pair.host.memory.view(buffer).unwrap() == want, "read of command {}", done.id);
            }
        }
    }
    assert!(pair.target.end.store.bytes() == model);
    Ok(())
}

#[test]
fn a_clean_session_copies_nothing_and_computes_no_digest_in_software() {
    let digests = Digests { header: true, data: true };
    let (host, target) = configs(digests, true);
    let mut pair = Pair::new(1, quiet(1448), host, target, EngineConfig::default());
    exercise(&mut pair, 40).unwrap();
    for (counters, wire) in
        [(pair.host.end.connection.counters, &pair.host.wire), (pair.target.end.connection.counters, &pair.target.wire)]
    {
        assert_eq!((counters.copied_bytes, counters.digests_in_software), (0, 0));
        assert!(counters.digests_offloaded > 20);
        assert!(check_wire(wire, digests) > 20);
    }
    let nic = pair.host.nic.counters(registry::find("nvme_tcp").unwrap());
    assert_eq!(nic.rx_setup, nic.rx_teardown);
    assert!(nic.rx_placed_bytes > 10_000);
}

#[test]
fn faults_cost_speed_never_correctness() {
    for seed in seeds(60) {
        let mut dice = Dice::new(seed);
        let faults = drawn(&mut dice);
        let faults = Faults { mss: faults.mss.max(100), ..faults };
        let digests = Digests { header: dice.percent(50), data: dice.percent(50) };
        let (host, target) = configs(digests, dice.percent(50));
        let config = EngineConfig { places_ahead: dice.percent(50), ..EngineConfig::default() };
        let outcome = std::panic::catch_unwind(move || {
            let mut pair = Pair::new(seed, faults, host, target, config);
            exercise(&mut pair, 25).unwrap();
            check_wire(&pair.host.wire, digests);
            check_wire(&pair.target.wire, digests);
        });
        assert!(outcome.is_ok(), "NICFORGE_SEED={seed} {faults:?} {digests:?}");
    }
}

#[test]
fn placing_ahead_saves_copies_under_loss() {
    let digests = Digests { header: true, data: true };
    let (host, mut target) = configs(digests, true);
    target.data_bytes_max = 1 << 16;
    let faults = Faults { loss: 2, ..quiet(1448) };
    let copied = |places_ahead| {
        let config = EngineConfig { places_ahead, ..EngineConfig::default() };
        let mut pair = Pair::new(3, faults, host, target, config);
        exercise(&mut pair, 150).unwrap();
        pair.host.end.connection.counters.copied_bytes
    };
    let (without, with) = (copied(false), copied(true));
    assert!(with < without, "{with} of {without} bytes are copied still");
}

#[test]
fn a_damaged_stream_ends_in_an_error_or_a_failed_command_never_in_wrong_blocks() {
    let digests = Digests { header: true, data: true };
    for seed in seeds(30) {
        let (host, target) = configs(digests, true);
        let mut pair = Pair::new(seed, quiet(1448), host, target, EngineConfig::default());
        // TCP's checksum would catch it; digests are for what it misses.
        pair.target.damage = Some(23);
        let mut reads = BTreeMap::new();
        for _ in 0..4000 {
            if pair.host.end.is_ready() && pair.dice.percent(20) {
                let buffer = pair.host.memory.place(&[0xee; 4 * BLOCK]);
                if let Ok(id) = pair.host.end.read(&mut pair.host.memory, 0, buffer) {
                    reads.insert(id, buffer);
                }
            }
            if pair.step().is_err() {
                break;
            }
            while let Some(done) = pair.host.end.next_done() {
                let buffer = reads.remove(&done.id).unwrap();
                let content = pair.host.memory.view(buffer).unwrap();
                assert!(done.status != Status::SUCCESS || content == [0; 4 * BLOCK]);
            }
        }
    }
}
