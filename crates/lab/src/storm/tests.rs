use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use nicforge_p4stage::flexnic::FlexNic;
use nicforge_platform::Register;
use nicforge_platform::sim::MmioWrite;
use nicforge_units::Time;
use nicforge_wire::traffic::Zipf;
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

use super::build::{Storm, build};
use super::job::Job;
use super::topology::{MACHINES, counter_of};
use super::tuple::{NAME_BYTES, Name, name_of};
use crate::machine::{Machine, parse_machine};
use crate::registry::Registry;
use crate::run::{RunIo, run_point};
use crate::settings::{Catalogue, Settings};

const SEED: u64 = 7;
const SPOUTS: u32 = 4;
const TUPLES: u64 = 1500;

fn machine() -> Machine {
    let text = include_str!("../../../../machines/xeon-e5-2430-x520.toml");
    parse_machine(text, Path::new("machines/xeon-e5-2430-x520.toml")).unwrap()
}

/// With the interface that runs programs.
fn catalogue() -> Arc<Catalogue> {
    Arc::new(Catalogue::new(Registry::shipped().interface::<FlexNic>()))
}

fn example(name: &str) -> String {
    format!("{}/../../examples/p4/flexnic/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Who brings tuples to their workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    /// Two threads.
    Threads,
    /// The NIC.
    Nic,
    /// Two cores that play it.
    Cores,
}

use Who::{Cores, Nic, Threads};

const ALL: [Who; 3] = [Threads, Nic, Cores];

/// Spouts end after some tuples; counts stay.
fn settings(who: Who, layout: &str) -> Settings {
    let settings = Settings::for_machine(&catalogue(), &machine())
        .with("workload", "flexstorm")
        .with("storm_layout", layout)
        .with("storm_users", 300)
        .with("storm_spout_tuples", TUPLES)
        .with("storm_spout_mps", 0.5)
        .with("storm_slot_ms", 1000.0)
        .with("storm_batch_ms", 0.05);
    let settings = match who {
        Threads => return settings,
        Nic => settings.with("interface", "flexnic"),
        Cores => settings.with("interface", "emulated").with("emulates", "flexnic").with("emulator_socket", "same"),
    };
    settings
        .with("storm_help", "nic")
        .with("flexnic_program", example("storm.p4"))
        .with("flexnic_entries", example(&format!("storm-{layout}-{{machine}}.toml")))
}

fn storm(settings: &Settings, until: Time) -> Storm {
    settings.check(&machine()).unwrap();
    let mut storm = build(&machine(), settings, SEED).unwrap();
    storm.world.capture_switch();
    storm.world.run_until(until).unwrap();
    storm
}

/// How often each user was told of by spouts.
fn told() -> BTreeMap<Name, u32> {
    let mut told = BTreeMap::new();
    for task in 1..=SPOUTS {
        let (zipf, mut random) = (Zipf::new(300, 1.0), Pcg64::seed_from_u64(SEED ^ u64::from(task) << 32));
        for _ in 0..TUPLES {
            *told.entry(name_of(zipf.draw(&mut random))).or_default() += 1;
        }
    }
    told
}

/// How often counters counted each.
fn counted(storm: &Storm) -> BTreeMap<Name, u32> {
    let mut counted = BTreeMap::new();
    for (host, software) in storm.world.hosts.iter().zip(&storm.software) {
        for worker in &software.workers {
            let worker = worker.borrow();
            let Job::Counter(counter) = &worker.job else { continue };
            let (at, slots) = counter.table();
            for user in host.machine.memory.slice(at, slots as usize * 128).chunks_exact(128) {
                let (name, parts) = user.split_at(NAME_BYTES);
                let name: Name = name.try_into().unwrap();
                let part = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
                let count: u32 = parts[..20].chunks_exact(4).map(part).sum();
                if count > 0 {
                    assert_eq!(counter_of(&name), worker.task);
                    assert_eq!(counted.insert(name, count), None);
                }
            }
        }
    }
    counted
}

fn sum(counts: &BTreeMap<Name, u32>) -> u64 {
    counts.values().map(|count| u64::from(*count)).sum()
}

/// Acknowledgements on the switch.
fn acknowledgements(storm: &mut Storm) -> u64 {
    let frames = storm.world.take_capture();
    frames.iter().filter(|frame| frame.bytes.len() == super::frame::ACK_BYTES).count() as u64
}

fn dropped(storm: &Storm, cause: &str) -> u64 {
    storm.world.all_drops().causes().iter().filter(|(known, _)| *known == cause).map(|(_, count)| count).sum()
}

#[test]
fn counts_are_those_of_the_spouts_with_and_without_help() {
    let runs = ALL.into_iter().flat_map(|who| [(who, "balanced"), (who, "grouped")]);
    for (who, layout) in runs {
        // One at a time, so slowly that windows are wide enough from the beginning.
        let settings = settings(who, layout).with("storm_batch", 1).with("storm_spout_mps", 0.1);
        let mut storm = storm(&settings, Time::from_ms(16));
        assert_eq!(dropped(&storm, "p4_drop"), 0, "acknowledgements that end in the NIC are none");
        assert!(counted(&storm) == told(), "{who:?} {layout}: {:?}", storm.world.all_drops());
        let from_others: u64 =
            storm.software.iter().flat_map(|host| &host.workers).map(|worker| worker.borrow().counts.from_others).sum();
        assert!(from_others > TUPLES);
        assert_eq!(acknowledgements(&mut storm), from_others, "{who:?} {layout}: each tuple of others is acknowledged");
    }
}

/// The network doubles frames: no tuple counts twice.
#[test]
fn doubled_tuples_count_once() {
    for who in ALL {
        let settings = settings(who, "balanced").with("storm_batch", 1).with("storm_spout_mps", 0.1);
        let storm = storm(&settings.with("link_duplicates", 0.1), Time::from_ms(16));
        assert!(counted(&storm) == told(), "{who:?}: {:?}", storm.world.all_drops());
        assert!(dropped(&storm, "duplicate") > 100, "{who:?}: {:?}", storm.world.all_drops());
    }
}

/// Over a bad link tuples are lost, and none is made up; the senders' windows close and open again.
#[test]
fn under_loss_each_tuple_counts_at_most_once() {
    for who in ALL {
        let settings =
            settings(who, "balanced").with("link_loss", 0.02).with("link_corrupted", 0.02).with("link_reordered", 0.02);
        let storm = storm(&settings, Time::from_ms(20));
        let (told, counted) = (told(), counted(&storm));
        assert!(counted.iter().all(|(name, count)| told.get(name).is_some_and(|told| told >= count)), "{who:?}");
        let (told, counted) = (sum(&told), sum(&counted));
        assert!(counted < told && counted > told / 2, "{who:?}: {counted} of {told}");
    }
}

/// Counters take longer than tuples come, and queues are short: what was acknowledged is counted, all else is dropped, and said.
#[test]
fn a_full_queue_acknowledges_nothing_and_loses_nothing_acknowledged() {
    for who in ALL {
        let settings = settings(who, "grouped")
            .with("storm_queue_entries", 16)
            .with("rx_entries", 64)
            .with("storm_work_cycles", 6000);
        let mut storm = storm(&settings, Time::from_ms(60));
        let (told, counted) = (sum(&told()), sum(&counted(&storm)));
        assert!(counted < told && counted > told / 10, "{who:?}: {counted} of {told}");
        let from_others: u64 =
            storm.software.iter().flat_map(|host| &host.workers).map(|worker| worker.borrow().counts.from_others).sum();
        let acknowledged = acknowledgements(&mut storm);
        assert_eq!(acknowledged, from_others, "{who:?}");
        let full = dropped(&storm, if who == Threads { "queue_full" } else { "no_descriptor" });
        assert!(full > 0, "{who:?}: {:?}", storm.world.all_drops());
    }
}

/// The software of one worker writes nonsense to its registers and over its queue. All others go on.
#[test]
fn a_hostile_worker_harms_no_other() {
    for who in [Nic, Cores] {
        harms_no_other(who);
    }
}

fn harms_no_other(who: Who) {
    let settings = settings(who, "balanced").with("storm_spout_tuples", 0);
    let mut storm = storm(&settings, Time::from_ms(1));
    let taken =
        |storm: &Storm, machine: usize, worker: usize| storm.software[machine].workers[worker].borrow().counts.taken;
    // The counters of all machines; that of the first is worker 1.
    let others = [(1, 2), (1, 3), (2, 1)];
    let before = others.map(|(machine, worker)| taken(&storm, machine, worker));
    let mut random = Pcg64::seed_from_u64(1);
    for step in 1..200 {
        let arrives = Time::from_us(1000 + 5 * step);
        for which in 0..4 {
            let register = Register { device: 0, index: which * 4 + 1 };
            let write = MmioWrite { arrives, register, value: random.next_u64() >> (random.next_u32() % 64) };
            storm.world.post(0, &write);
        }
        storm.world.run_until(arrives + Time::from_us(5)).unwrap();
    }
    storm.world.run_until(Time::from_ms(4)).unwrap();
    for ((machine, worker), before) in others.into_iter().zip(before) {
        let after = taken(&storm, machine, worker);
        assert!(after > before + 300, "{who:?}: counter {worker} of machine {machine}: {before}, {after}");
    }
    assert_eq!(storm.world.hosts.len(), MACHINES);
}

#[test]
fn a_run_measures_the_same_twice_and_the_nic_brings_more() {
    let rate = |who: Who| {
        let settings = settings(who, "balanced")
            .with("storm_spout_tuples", 0)
            .with("storm_spout_mps", 0.0)
            .with("storm_slot_ms", 1.0)
            .with("warmup_ms", 1.0)
            .with("window_ms", 2.0);
        let run = || run_point(&machine(), &settings, 1, &RunIo::default(), &mut |_, _| {}).unwrap();
        let point = run();
        assert_eq!(run(), point, "same seed, same run");
        let times = point.metrics.tuple_us.clone().unwrap();
        assert!(times.input > 0.0 && times.work > 0.0 && times.output > 0.0, "{times:?}");
        point.metrics.tuples_mps.unwrap()
    };
    let (software, nic) = (rate(Threads), rate(Nic));
    assert!(nic > software && software > 0.5, "{software} {nic}");
}
