use nicforge_interfaces::describe::Software;
use nicforge_interfaces::sinic::registers::{Tag, rx_done};
use nicforge_units::Time;

use super::build::{Systems, build};
use super::measure::measure;
use super::process::AnyProcess;
use crate::LostError;
use crate::machine::{Machine, parse_machine};
use crate::run::RunError;
use crate::settings::Catalogue;
use crate::settings::Settings;

fn machine() -> Machine {
    let text = include_str!("../../../../machines/m5-10gbe.toml");
    let path = std::path::Path::new("machines/m5-10gbe.toml");
    parse_machine(text, path).unwrap()
}

/// The end that sends, of either kind of system, writes what the other one should write: TCP carries
/// it faithfully, and the run fails.
#[test]
fn bytes_that_the_peer_should_not_have_sent_fail_the_run() {
    let machine = machine();
    for (workload, sender) in [("tcp_receive", 1), ("tcp_transmit", 0), ("nat_gateway", 2)] {
        let settings = Settings::for_machine(&Catalogue::shipped(), &machine)
            .with("workload", workload)
            .with("interface", "v_sinic_zero_copy")
            .with("placement", "OCC")
            .with("streams", 2)
            .with("warmup_ms", 1.0)
            .with("window_ms", 1.0);
        for wrong in [false, true] {
            let systems = build(&machine, &settings, 1).unwrap();
            systems.systems[sender].kernel.borrow_mut().connections[1].plan.opens ^= wrong;
            match (wrong, measure(systems, &settings, &mut |_, _| {})) {
                (false, Ok(_)) => {}
                (true, Err(RunError::WrongBytes { bytes })) => assert!(bytes > 0),
                (_, other) => panic!("{workload}, {wrong}: {other:?}"),
            }
        }
    }
}

/// A frame that a NIC swallows is sent again by TCP: only counting shows it.
#[test]
fn a_frame_that_is_nowhere_fails_the_run() {
    let machine = machine();
    for interface in Catalogue::shipped().interfaces_of(Software::Kernel) {
        let settings = Settings::for_machine(&Catalogue::shipped(), &machine)
            .with("workload", "tcp_receive")
            .with("interface", interface)
            .with("warmup_ms", 1.0)
            .with("window_ms", 1.0);
        for system in [0, 1] {
            let mut systems = build(&machine, &settings, 1).unwrap();
            systems.world.hosts[system].devices[0].miscount();
            let result = measure(systems, &settings, &mut |_, _| {});
            assert!(matches!(result, Err(RunError::Lost(LostError::Frames { .. }))), "{interface}: {result:?}");
        }
    }
}

/// Both ends of a connection write and nobody reads: buffers fill up, and TCP's probes go on for
/// ever. Where one of them reads, nothing of the kind is said.
#[test]
fn two_processes_that_only_write_stand_still_for_ever() {
    let machine = machine();
    let settings = Settings::for_machine(&Catalogue::shipped(), &machine)
        .with("workload", "tcp_transmit")
        .with("interface", "conventional")
        .with("socket_kib", 16)
        .with("warmup_ms", 2.0)
        .with("window_ms", 2.0);
    for deaf in [false, true] {
        let systems = build(&machine, &settings, 1).unwrap();
        if deaf {
            systems.systems[1].kernel.borrow_mut().processors[0].process = writer(&machine, &settings);
        }
        let result = measure(systems, &settings, &mut |_, _| {});
        match (deaf, result) {
            (false, Ok(point)) => assert!(point.steadiness.is_steady()),
            (true, Err(stuck @ RunError::Stuck { .. })) => {
                assert!(stuck.to_string().contains("waiting Writable"), "{stuck}");
            }
            (_, other) => panic!("{deaf}: {other:?}"),
        }
    }
}

/// What runs at the far end where the near one reads.
fn writer(machine: &Machine, settings: &Settings) -> AnyProcess {
    let settings = settings.clone().with("workload", "tcp_receive");
    let systems = build(machine, &settings, 1).unwrap();
    let mut kernel = systems.systems[1].kernel.borrow_mut();
    std::mem::replace(&mut kernel.processors[0].process, AnyProcess::None)
}

/// The system that is looked at opens a connection at 200 us; at the other end an interrupt is
/// held back for 10 us before anybody looks. A core that waits for the answer from before it is
/// sent sees time-outs, and then the answer when it comes.
#[test]
fn a_wait_ends_with_a_frame_that_was_not_sent_when_it_began() {
    let machine = machine();
    let timeout = machine.integrated.as_ref().unwrap().sinic.wait_timeout;
    let settings = Settings::for_machine(&Catalogue::shipped(), &machine)
        .with("workload", "tcp_receive")
        .with("interface", "sinic")
        .with("placement", "OCC");
    let mut systems = build(&machine, &settings, 1).unwrap();
    let mut from = Time::from_us(205);
    systems.world.run_until(from).unwrap();
    let packets_out = |systems: &Systems, host: usize| systems.systems[host].kernel.borrow().counters.packets_out;
    assert_eq!([packets_out(&systems, 0), packets_out(&systems, 1)], [1, 0]);
    for _ in 0..40 {
        let (value, given) = systems.world.read_register(0, Tag::RxWait.of(0, 0), from);
        if rx_done::COMPLETE.is_set(value) {
            assert!(given < from + timeout, "{given}");
            assert!(given > Time::from_us(210), "{given}");
            assert_eq!(packets_out(&systems, 1), 1);
            return;
        }
        assert_eq!(given, from + timeout);
        from = given;
    }
    panic!("no answer came by {from}");
}
