use std::path::Path;

use nicforge_units::Time;

use crate::machine::{Machine, parse_machine};
use crate::run::{PointRun, RunError, RunIo, run_point};
use crate::settings::{Catalogue, Settings};

fn machine() -> Machine {
    let text = include_str!("../../../../machines/xeon-4216-cx5.toml");
    parse_machine(text, Path::new("machines/xeon-4216-cx5.toml")).unwrap()
}

fn settings() -> Settings {
    Settings::for_machine(&Catalogue::shipped(), &machine())
        .with("workload", "rpc_echo")
        .with("warmup_ms", 1.0)
        .with("window_ms", 2.0)
}

/// The flow-groups of a host's service.
fn groups(software: &super::build::Software) -> &[super::program::SharedService] {
    let super::build::Carried::Service { groups, .. } = &software.carried else { panic!("no service") };
    groups
}

fn crew(software: &super::build::Software) -> &super::crew::SharedCrew {
    let super::build::Carried::Service { crew, .. } = &software.carried else { panic!("no service") };
    crew
}

fn run(settings: &Settings) -> Result<PointRun, RunError> {
    settings.check(&machine()).unwrap();
    run_point(&machine(), settings, 1, &RunIo::default(), &mut |_, _| {})
}

/// That each answer is what was asked, and that frames and buffers add up, is checked inside.
#[test]
fn one_rpc_at_a_time_is_bounded_by_its_round_trip() {
    let point = run(&settings()).unwrap();
    let (rate, latency) = (point.metrics.rpc_mps.unwrap(), point.metrics.latency_us.clone().unwrap());
    assert!(latency.p50 > 2.0 && latency.p50 < 50.0, "{latency:?}");
    assert!((rate * latency.mean - 1.0).abs() < 0.1, "one in flight: {rate} M/s at {latency:?}");
    assert_eq!(run(&settings()).unwrap(), point, "same seed, same run");
}

#[test]
fn more_requests_in_flight_bring_more_answers_until_a_core_is_busy() {
    let rate = |in_flight: usize| {
        let settings = settings().with("rpc_connections", 8).with("rpc_in_flight", in_flight);
        let point = run(&settings).unwrap();
        let busy = point.cores.iter().filter_map(|core| core.busy_fraction).fold(0.0, f64::max);
        (point.metrics.rpc_mps.unwrap(), busy)
    };
    let (one, many) = (rate(1), rate(16));
    assert!(many.0 > 1.5 * one.0, "{one:?} {many:?}");
    assert!(one.1 < 0.9 && many.1 > 0.9, "{one:?} {many:?}");
}

#[test]
fn answers_are_right_over_a_bad_link_and_with_queues_of_two_entries() {
    for recovery in ["sack", "go_back_n"] {
        let settings = settings()
            .with("rpc_connections", 4)
            .with("rpc_in_flight", 4)
            .with("rpc_bytes", 1000)
            .with("rpc_app_cores", 2)
            .with("tas_queue_entries", 2)
            .with("loss_recovery", recovery)
            .with("tcp_rto_min_ms", 1.0)
            .with("link_loss", 0.01)
            .with("link_duplicates", 0.01)
            .with("link_reordered", 0.02)
            .with("link_corrupted", 0.01)
            .with("window_ms", 20.0);
        let point = run(&settings).unwrap();
        assert!(point.metrics.rpc_mps.unwrap() > 0.001, "{recovery}: {:?}", point.metrics);
    }
}

#[test]
fn every_interface_with_a_ring_carries_it() {
    for interface in ["priv_ring", "in_place", "rx_bisect", "sh_ring", "sh_ring_list", "sh_ring_dynamic", "split"] {
        let point = run(&settings().with("interface", interface).with("rpc_bytes", 1400)).unwrap();
        assert!(point.metrics.rpc_mps.unwrap() > 0.01, "{interface}: {:?}", point.metrics);
    }
}

/// One application core of the server writes nonsense over its context queue: entries of unknown types, of connections
/// that are not its own or do not exist, bytes that it does not have. Connections of the other core go on.
#[test]
fn a_hostile_application_harms_nobody_else() {
    use rand_core::{RngCore, SeedableRng};

    let settings = settings().with("rpc_connections", 4).with("rpc_app_cores", 2).with("tas_queue_entries", 16);
    let mut rpcs = super::build::build(&machine(), &settings, 1).unwrap();
    rpcs.world.run_until(Time::from_us(500)).unwrap();
    let (at, len) = groups(&rpcs.software[0])[0].borrow().memory_of(0);
    let mut random = rand_pcg::Pcg64::seed_from_u64(1);
    let answers = |rpcs: &super::build::Rpcs, core: usize| rpcs.software[1].apps[core].borrow().results.answered;
    let before = [answers(&rpcs, 0), answers(&rpcs, 1)];
    for step in 0..1000 {
        for slot in rpcs.world.hosts[0].machine.memory.slice_mut(at, len).chunks_exact_mut(32) {
            random.fill_bytes(slot);
            // Half of them are entries of the right type with small numbers.
            if random.next_u32() % 2 == 0 {
                slot.fill(0);
                slot[random.next_u32() as usize % 16] = random.next_u32() as u8;
                slot[8] = (random.next_u32() % 6) as u8;
                slot[28] = 2;
            }
        }
        rpcs.world.run_until(Time::from_us(501 + step)).unwrap();
    }
    rpcs.world.run_until(Time::from_ms(3)).unwrap();
    let service = groups(&rpcs.software[0])[0].borrow();
    assert!(service.counters.bad_entries > 1000, "{:?}", service.counters);
    // What the hostile core sends to the first client's connections is its own affair.
    let client = rpcs.software[1].apps[1].borrow();
    assert_eq!((client.bad_entries, client.results.wrong), (0, 0));
    drop(client);
    let after = [answers(&rpcs, 0), answers(&rpcs, 1)];
    assert!(after[1] > before[1] + 50, "{before:?} {after:?}");
}

#[test]
fn fast_path_cores_come_with_load_and_carry_more() {
    let loaded = |fast: usize| {
        let settings = settings()
            .with("rpc_connections", 64)
            .with("rpc_in_flight", 4)
            .with("rpc_app_cores", 8)
            .with("tas_fast_cores", fast)
            .with("warmup_ms", 6.0);
        run(&settings).unwrap()
    };
    let (one, four) = (loaded(1), loaded(4));
    let rate = |point: &PointRun| point.metrics.rpc_mps.unwrap();
    assert!(rate(&four) > 2.0 * rate(&one), "{:?} {:?}", one.metrics, four.metrics);
    let steps: Vec<&str> = four.switches.iter().map(|switch| switch.set.as_str()).collect();
    assert_eq!(steps[..2], ["2 fast-path cores", "3 fast-path cores"], "{steps:?}");
    assert_eq!(loaded(4), four, "same seed, same run");
}

#[test]
fn without_load_one_fast_path_core_works() {
    let point = run(&settings().with("rpc_connections", 8).with("tas_fast_cores", 4)).unwrap();
    assert!(point.metrics.rpc_mps.unwrap() > 0.1, "{:?}", point.metrics);
    assert!(point.switches.is_empty(), "{:?}", point.switches);
    let idle = point.cores[1..4].iter().filter_map(|core| core.busy_fraction);
    assert_eq!(idle.collect::<Vec<_>>(), [0.0; 3], "{:?}", point.cores);
}

/// Flow-groups change hands under traffic, over and over: no answer is lost or wrong, none stands still.
#[test]
fn nothing_is_lost_when_cores_come_and_go() {
    let settings = settings()
        .with("rpc_connections", 32)
        .with("rpc_in_flight", 2)
        .with("rpc_app_cores", 2)
        .with("tas_fast_cores", 3)
        .with("tas_decide_us", 1e6)
        .with("tcp_rto_min_ms", 200.0);
    let mut rpcs = super::build::build(&machine(), &settings, 1).unwrap();
    let answers = |rpcs: &super::build::Rpcs| -> u64 {
        rpcs.software[1].apps.iter().map(|app| app.borrow().results.answered).sum()
    };
    let mut before = 0;
    for step in 1..200u64 {
        let now = Time::from_us(20 * step);
        rpcs.world.run_until(now).unwrap();
        for software in &rpcs.software {
            let active = 1 + (step as usize * 7 / 3) % 3;
            crew(software).borrow_mut().go_on_with(active, now);
        }
        if step > 20 && step.is_multiple_of(10) {
            assert!(answers(&rpcs) > before + 100, "{before} answers at {now:?}");
            before = answers(&rpcs);
        }
    }
    let wrong: u64 = rpcs.software[1].apps.iter().map(|app| app.borrow().results.wrong).sum();
    let dropped: u64 = rpcs.software.iter().flat_map(groups).map(|group| group.borrow().drops.total()).sum();
    assert_eq!((wrong, dropped), (0, 0));
    let received = crew(&rpcs.software[0]).borrow().received.clone();
    assert!(received.iter().all(|count| *count > 1000), "all three cores worked: {received:?}");
}

#[test]
fn a_kernel_on_the_applications_cores_costs_more_than_a_service() {
    let rate = |carrier: &str| {
        let settings = settings().with("rpc_connections", 16).with("rpc_app_cores", 2).with("rpc_server", carrier);
        run(&settings.with("rpc_free_clients", true)).unwrap().metrics.rpc_mps.unwrap()
    };
    let (linux, tas) = (rate("linux"), rate("tas"));
    assert!(linux > 0.02 && linux < tas / 2.0, "{linux} {tas}");
}

#[test]
fn messages_longer_than_the_rings_pass_in_pieces() {
    let settings = settings().with("rpc_bytes", 300_000).with("rpc_answer_bytes", 32);
    for carrier in ["linux", "tas"] {
        let point = run(&settings.clone().with("rpc_server", carrier)).unwrap();
        assert!(point.metrics.bandwidth_gbps.unwrap() > 0.5, "{carrier}: {:?}", point.metrics);
    }
}
