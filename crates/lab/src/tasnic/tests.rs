mod beside;
mod closing;
mod extensions;
mod opening;
mod payload;
mod records;
mod suite;
mod swarm;

use std::path::Path;
use std::sync::Arc;

use nicforge_record::StageFigures;

use crate::machine::{Machine, parse_machine};
use crate::run::{PointRun, RunIo, run_point};
use crate::settings::{Catalogue, Settings};

fn machine() -> Machine {
    let text = include_str!("../../../../machines/xeon-6138-nfp4000.toml");
    parse_machine(text, Path::new("machines/xeon-6138-nfp4000.toml")).unwrap()
}

fn settings() -> Settings {
    settings_of(&Catalogue::shipped())
}

/// The same of a catalogue with more kinds of stage.
fn settings_of(catalogue: &Arc<Catalogue>) -> Settings {
    Settings::for_machine(catalogue, &machine())
        .with("workload", "rpc_echo")
        .with("rpc_server", "tasnic")
        .with("loss_recovery", "go_back_n")
        .with("congestion_control", "none")
        .with("tcp_timestamps", true)
        .with("warmup_ms", 1.0)
        .with("window_ms", 2.0)
}

fn run(settings: &Settings) -> PointRun {
    settings.check(&machine()).unwrap();
    run_point(&machine(), settings, 1, &RunIo::default(), &mut |_, _| {}).unwrap()
}

fn rate(point: &PointRun) -> f64 {
    point.metrics.rpc_mps.unwrap()
}

fn stage<'a>(point: &'a PointRun, name: &str) -> &'a StageFigures {
    point.stages.iter().find(|stage| stage.stage == name).unwrap()
}

fn count(point: &PointRun, name: &str) -> u64 {
    point.metrics.stages[name]
}

/// That each answer is what was asked is checked inside.
#[test]
fn one_rpc_at_a_time_takes_a_round_trip_through_both_pipelines() {
    let point = run(&settings());
    let latency = point.metrics.latency_us.clone().unwrap();
    assert!(latency.p50 > 10.0 && latency.p50 < 40.0, "{latency:?}");
    assert!((rate(&point) * latency.mean - 1.0).abs() < 0.1, "one in flight: {latency:?}");
    assert_eq!(run(&settings()), point, "same seed, same run");
}

/// Table 5.2's steps: each comes out of the processor's structure.
#[test]
fn each_step_of_the_layout_carries_more() {
    let base = settings()
        .with("rpc_free_clients", true)
        .with("rpc_connections", 64)
        .with("rpc_bytes", 2048)
        .with("rpc_app_cores", 4)
        .with("tasnic_flow_groups", 1)
        .with("tasnic_pre_fpcs", 1)
        .with("tasnic_post_fpcs", 1);
    let whole = run(&base.clone().with("tasnic_layout", "run_to_completion").with("tasnic_threads", 1));
    let pipeline = run(&base.clone().with("tasnic_threads", 1));
    let threads = run(&base.clone());
    let replicated = base.with("tasnic_pre_fpcs", 4).with("tasnic_post_fpcs", 4);
    let groups = run(&replicated.clone().with("tasnic_flow_groups", 4));
    let replicated = run(&replicated);
    let rates = [&whole, &pipeline, &threads, &replicated, &groups].map(rate);
    assert!(rates.windows(2).all(|pair| pair[1] > 1.2 * pair[0]), "{rates:?}");
    // One thread waits, eight compute; then the one protocol core is the limit.
    let post = stage(&pipeline, "post");
    assert!(post.threads_busy > 0.95 && post.busiest_core < 0.6, "{post:?}");
    assert!(stage(&threads, "post").busiest_core > 0.95);
    assert!(stage(&replicated, "protocol").busiest_core > 0.95);
    assert!(stage(&groups, "protocol").busiest_core < 0.9);
}

/// On a clean link nothing is ever sent twice or dropped, whatever the order in which stages end.
#[test]
fn stages_of_random_delay_lose_nothing() {
    for jitter in [0.0, 0.3, 5.0] {
        let settings = settings()
            .with("rpc_connections", 40)
            .with("rpc_in_flight", 4)
            .with("rpc_bytes", 2500)
            .with("tasnic_jitter_us", jitter)
            .with("tas_buffer_kib", 16);
        let point = run(&settings);
        assert!(rate(&point) > 0.05, "{jitter}: {:?}", point.metrics);
        assert_eq!((count(&point, "went_back"), point.metrics.drops.len()), (0, 0), "{jitter}: {:?}", point.metrics);
        assert!(jitter > 1.0 || count(&point, "events_retx") == 0, "{jitter}: {:?}", point.metrics);
    }
}

/// The peer's TCP is another: on cores, and in a kernel with selective acknowledgments.
#[test]
fn other_stacks_talk_to_it() {
    for clients in ["tas", "linux"] {
        let base = settings().with("rpc_clients", clients).with("rpc_connections", 8).with("rpc_bytes", 3000);
        let point = run(&base);
        assert!(rate(&point) > 0.02, "{clients}: {:?}", point.metrics);
        assert_eq!(point.metrics.stages["went_back"], 0, "{clients}");
    }
}

/// An application that writes nonsense over its context queue, and rings nonsense: the other core's connections go on.
#[test]
fn a_hostile_application_harms_nobody_else() {
    use crate::tas::build::{Carried, build};
    use nicforge_units::Time;
    use rand_core::{RngCore, SeedableRng};

    let settings = settings().with("rpc_connections", 4).with("rpc_app_cores", 2).with("tas_queue_entries", 16);
    let mut rpcs = build(&machine(), &settings, 1).unwrap();
    rpcs.world.run_until(Time::from_us(500)).unwrap();
    let Carried::Nic { nic, .. } = &rpcs.software[0].carried else { panic!("no NIC") };
    let nic = std::rc::Rc::clone(nic);
    let (at, len) = nic.borrow().contexts.memory_of(0);
    let mut random = rand_pcg::Pcg64::seed_from_u64(1);
    let answers = |rpcs: &crate::tas::build::Rpcs, core: usize| rpcs.software[1].apps[core].borrow().results.answered;
    let before = answers(&rpcs, 1);
    for step in 0..500 {
        for slot in rpcs.world.hosts[0].machine.memory.slice_mut(at, len).chunks_exact_mut(32) {
            random.fill_bytes(slot);
            if random.next_u32() % 2 == 0 {
                slot.fill(0);
                slot[random.next_u32() as usize % 16] = random.next_u32() as u8;
                slot[28] = 2;
            }
        }
        let register = super::contexts::written_register(0) + random.next_u32() % 2;
        let bell = super::nic::Event::Register(register, u64::from(random.next_u32() % 64));
        nic.borrow_mut().npu.at(Time::ZERO, bell);
        rpcs.world.run_until(Time::from_us(501 + step)).unwrap();
    }
    rpcs.world.run_until(Time::from_ms(3)).unwrap();
    assert!(nic.borrow().counters.bad_entries > 10, "{:?}", nic.borrow().counters);
    assert!(answers(&rpcs, 1) > before + 50);
    assert_eq!(rpcs.software[1].apps[1].borrow().results.wrong, 0);
}
