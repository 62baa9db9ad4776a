//! The shared suite of interfaces (`interfaces/src/suite`), as far as it applies to TCP on the NIC.

use std::path::Path;

use nicforge_units::Time;

use super::{count, machine, rate, run, settings};
use crate::tas::build::{Carried, Rpcs, build};
use crate::tasnic::contexts::written_register;
use crate::tasnic::nic::Event;
use crate::world::device::Device;
use crate::world::program::{Here, Next, Notice, Program};

/// Where a property is held on one of the grounds: a file from `crates` on and a test in it, or why it does not apply.
enum Ground {
    By(&'static str, &'static str),
    Not(&'static str),
}
use Ground::{By, Not};

const HERE: &str = "lab/src/tasnic/tests/suite.rs";
const BESIDE: (&str, &str) = ("lab/src/tasnic/tests/beside.rs", "the_pipeline_sends_what_the_stack_sends");
const SWARM: (&str, &str) =
    ("lab/src/tasnic/tests/swarm.rs", "streams_are_intact_whatever_the_order_in_which_stages_end");
const CARD: &str = "cli/tests/live/card.rs";
const GROUPS: &str = "sockets/src/transport/groups/tests.rs";
const HOSTILE: &str = "sockets/tests/hostile.rs";
/// The device's thread has sockets of the service's before it, and no registers.
const NO_REGISTERS: &str = "live, doorbells are wake-ups of the service's thread and carry no value";
const SEGMENTS: &str = "segments are bounded by the MSS, which fits a CTM buffer of 2 KiB";

/// Each property, in the simulator (the pipeline) and live (the stack on the device's thread).
const TABLE: [(&str, Ground, Ground); 18] = [
    (
        "flows_keep_their_order_and_their_bytes",
        By(SWARM.0, SWARM.1),
        By(CARD, "the_kernel_and_the_card_exchange_streams_both_ways"),
    ),
    (
        "the_smallest_ring_wraps_many_times",
        By(HERE, "context_queues_of_every_size_carry_streams"),
        By(GROUPS, "a_devices_thread_serves_connections_alone"),
    ),
    (
        "rings_pass_position_2_to_the_32",
        By(BESIDE.0, BESIDE.1),
        By("tcp/tests/pair.rs", "a_faulty_link_delays_streams_but_never_changes_them"),
    ),
    (
        "buffers_come_back_from_any_core",
        By("lab/src/tasnic/tests/payload.rs", "streams_are_intact_wherever_payload_lies"),
        Not("live, payload lies in rings of each connection's own"),
    ),
    (
        "descriptors_that_name_no_buffer",
        By("lab/src/tasnic/tests.rs", "a_hostile_application_harms_nobody_else"),
        By(HOSTILE, "entries_about_others_flows_are_refused_and_counted"),
    ),
    (
        "doorbells_that_go_back_or_too_far",
        By(HERE, "doorbells_that_cannot_be_meant_are_counted_and_harm_nobody"),
        Not(NO_REGISTERS),
    ),
    (
        "registers_that_there_are_not",
        By(HERE, "doorbells_that_cannot_be_meant_are_counted_and_harm_nobody"),
        Not(NO_REGISTERS),
    ),
    (
        "register_writes_at_random",
        By("lab/src/tasnic/tests.rs", "a_hostile_application_harms_nobody_else"),
        By(HOSTILE, "random_entries_harm_only_their_author"),
    ),
    (
        "a_full_ring_drops_and_recovers",
        By(HERE, "a_full_fifo_drops_and_streams_go_on"),
        By(GROUPS, "a_devices_thread_serves_connections_alone"),
    ),
    (
        "without_buffers_nothing_is_lost",
        By("lab/src/tasnic/tests/closing.rs", "a_closed_window_is_probed"),
        By("tcp/tests/pair.rs", "a_faulty_link_delays_streams_but_never_changes_them"),
    ),
    (
        "an_oversized_frame_costs_no_entry",
        Not(SEGMENTS),
        Not("live, joined segments of 64 KiB are taken whole, and a port has none that is longer"),
    ),
    (
        "large_buffers_hold_jumbo_frames",
        Not(SEGMENTS),
        Not("live, joined segments of 64 KiB are taken whole, whatever the MTU"),
    ),
    (
        "a_queue_without_buffers_drops",
        Not("a connection has its rings before it opens; a frame of none is the slow path's"),
        Not("a connection has its rings before it opens"),
    ),
    (
        "the_largest_rings_hold_what_arrives",
        By(HERE, "context_queues_of_every_size_carry_streams"),
        By(GROUPS, "a_devices_thread_serves_connections_alone"),
    ),
    (
        "any_steps_in_any_order",
        By(BESIDE.0, BESIDE.1),
        By("sockets/tests/fuzzed.rs", "calls_in_any_order_give_errors_that_posix_knows"),
    ),
    (
        "every_ring_size_under_random_stalls",
        By(HERE, "context_queues_of_every_size_carry_streams"),
        Not("live, a context queue has one size"),
    ),
    (
        "a_stage_changes_what_host_and_wire_receive",
        By("lab/src/tasnic/tests/extensions.rs", "a_p4_program_stands_before_and_behind_tcp"),
        Not("a card that runs TCP takes no stages live, and says so"),
    ),
    (
        "a_queue_restarts",
        By(HERE, "an_application_that_stops_harms_nobody_else"),
        By(CARD, "an_application_that_crashes_leaves_all_other_streams_intact"),
    ),
];

/// The properties that a file of the suite lists.
fn properties(text: &str) -> Vec<String> {
    let list = text.split("for_all! {").nth(1).and_then(|rest| rest.split('}').next()).unwrap();
    list.split(',').map(|name| name.trim().to_string()).filter(|name| !name.is_empty()).collect()
}

#[test]
fn each_property_of_the_suite_has_its_test_or_a_reason() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let files = ["delivery", "hostile", "limits", "properties", "stages", "restart"];
    let read = |file: &str| std::fs::read_to_string(crates.join("interfaces/src/suite").join(file)).unwrap();
    let listed: Vec<String> = files.iter().flat_map(|file| properties(&read(&format!("{file}.rs")))).collect();
    let named: Vec<&str> = TABLE.iter().map(|(name, ..)| *name).collect();
    assert_eq!(named, listed);
    assert_eq!(read("mod.rs").matches("::CHECKS").count(), files.len(), "a file of the suite is not looked at");
    for (property, sim, live) in &TABLE {
        for ground in [sim, live] {
            match ground {
                By(file, test) => {
                    let text = std::fs::read_to_string(crates.join(file)).unwrap();
                    assert!(text.contains(&format!("fn {test}(")), "{property}: no {test} in {file}");
                }
                Not(reason) => assert!(reason.len() > 20, "{property}"),
            }
        }
    }
}

/// From two entries, over stages of random delay; the largest hold all that there is.
#[test]
fn context_queues_of_every_size_carry_streams() {
    for bits in [1, 2, 3, 5, 8, 15] {
        let settings = settings()
            .with("rpc_connections", 8)
            .with("rpc_in_flight", 4)
            .with("rpc_bytes", 2000)
            .with("rpc_app_cores", 2)
            .with("tas_queue_entries", 1 << bits)
            .with("tasnic_jitter_us", 2.0);
        let point = run(&settings);
        assert!(rate(&point) > 0.02, "{bits}: {:?}", point.metrics);
        assert_eq!((count(&point, "bad_entries"), count(&point, "went_back")), (0, 0), "{bits}");
    }
}

fn answers(rpcs: &Rpcs, core: usize) -> u64 {
    rpcs.software[1].apps[core].borrow().results.answered
}

/// Values that no queue of 16 entries can have meant, and registers that there are not.
#[test]
fn doorbells_that_cannot_be_meant_are_counted_and_harm_nobody() {
    let settings = settings().with("rpc_connections", 4).with("rpc_app_cores", 2).with("tas_queue_entries", 16);
    let mut rpcs = build(&machine(), &settings, 1).unwrap();
    let Carried::Nic { nic, .. } = &rpcs.software[0].carried else { panic!("no NIC") };
    let nic = std::rc::Rc::clone(nic);
    rpcs.world.run_until(Time::from_us(500)).unwrap();
    let registers = [0, 1].map(|context| [written_register(context), written_register(context) + 1]).concat();
    for (step, value) in [1_u64 << 20, (1 << 31) - 1, 1 << 30, 100_000].into_iter().enumerate() {
        let bad = nic.borrow().counters.bad_entries;
        for register in registers.iter().chain(&[99, 0x8000, u32::MAX]) {
            nic.borrow_mut().npu.at(Time::ZERO, Event::Register(*register, value));
        }
        // Those that go back are late ones, which later ones have overtaken.
        for register in &registers {
            nic.borrow_mut().npu.at(Time::ZERO, Event::Register(*register, u64::from(u32::MAX)));
        }
        let before = [answers(&rpcs, 0), answers(&rpcs, 1)];
        rpcs.world.run_until(Time::from_us(600 + 100 * step as u64)).unwrap();
        assert_eq!(nic.borrow().counters.bad_entries, bad + 7, "{value}");
        assert!((0..2).all(|core| answers(&rpcs, core) > before[core]), "{value}");
    }
    nic.borrow().check().unwrap();
}

/// Clients' port is faster than the NIC's reception, and everybody sends all that the windows take.
#[test]
fn a_full_fifo_drops_and_streams_go_on() {
    let settings = settings()
        .with("rpc_free_clients", true)
        .with("rpc_connections", 256)
        .with("rpc_bytes", 16_000)
        .with("rpc_answer_bytes", 32)
        .with("tas_buffer_kib", 16)
        .with("tcp_rto_min_ms", 1.0)
        .with("window_ms", 6.0);
    let point = run(&settings);
    assert!(point.metrics.drops.get("fifo_full").is_some_and(|drops| *drops > 100), "{:?}", point.metrics);
    assert!(rate(&point) > 0.05, "{:?}", point.metrics);
}

/// An application's core that does nothing more, as after a crash.
struct Stopped;

impl Program for Stopped {
    fn step(&mut self, here: &mut Here<'_>) -> Next {
        here.begin_round();
        Next::Event
    }

    fn notice(&mut self, _devices: &mut [Box<dyn Device>], _notice: Notice) -> Option<Time> {
        None
    }
}

#[test]
fn an_application_that_stops_harms_nobody_else() {
    let settings = settings()
        .with("rpc_connections", 8)
        .with("rpc_in_flight", 8)
        .with("rpc_bytes", 4000)
        .with("rpc_app_cores", 2)
        .with("tas_queue_entries", 8);
    let mut rpcs = build(&machine(), &settings, 1).unwrap();
    rpcs.world.run_until(Time::from_us(700)).unwrap();
    // The slow path has the first core.
    rpcs.world.hosts[0].cores[1].program = Box::new(Stopped);
    let mut before = answers(&rpcs, 1);
    for step in 1..=5 {
        rpcs.world.run_until(Time::from_ms(2 * step)).unwrap();
        let now = answers(&rpcs, 1);
        assert!(now > before + 50, "{step}: {before} {now}");
        before = now;
    }
    let Carried::Nic { nic, .. } = &rpcs.software[0].carried else { panic!("no NIC") };
    nic.borrow().check().unwrap();
    assert_eq!(rpcs.software[1].apps[1].borrow().results.wrong, 0);
}
