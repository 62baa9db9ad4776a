//! The stage in front of every interface on every ground, in both directions, and what a frame costs.

use std::path::Path;
use std::rc::Rc;

use nicforge_flexnic::p4::Program;
use nicforge_flexnic::p4::target::{self, Target};
use nicforge_interfaces::suite::{InFront, PORT, Received, in_front};
use nicforge_nic::mock::{CountingHalf, spec, udp_frame};
use nicforge_nic::stage::Stage;
use nicforge_nic::transmit::{Bridged, Departure, Egress};
use nicforge_nic::{Nic, RxFlags, registers};
use nicforge_options::{Options, Values};
use nicforge_p4stage::{P4Kind, P4Options};
use nicforge_platform::{Addr, AddressSpace, Dma, Flat, FlatCpu, FlatDma, Ground};
use nicforge_stages::{BuiltStage, StageError, StageKind, StagePlan};
use nicforge_units::Time;
use nicforge_wire::headers::MacAddress;

fn file(name: &str) -> Option<String> {
    Some(Path::new(env!("CARGO_MANIFEST_DIR")).join(name).display().to_string())
}

fn options(program: &str, entries: Option<&str>, interpret: bool) -> P4Options {
    let mut options = P4Options::of(&Values::default());
    options.p4_program = file(program);
    options.p4_entries = entries.and_then(file);
    options.p4_interpret = interpret;
    options
}

fn try_build<G: Ground>(options: &P4Options) -> Result<BuiltStage<G>, StageError> {
    let plan = StagePlan {
        port: PORT,
        first_register: registers::STAGES,
        mac: MacAddress([2, 0, 0, 0, 0, 1]),
        next_hop: MacAddress([2, 0, 0, 0, 0, 2]),
        queues: 2,
        rx_entries: 64,
        flows: Rc::new(()),
        values: Values::default(),
    };
    P4Kind::build(options, &plan, &mut AddressSpace::default())
}

fn build<G: Ground>(options: &P4Options) -> Box<dyn Stage<G::Dma>> {
    try_build::<G>(options).unwrap_or_else(|error| panic!("{error}")).stage
}

struct Ports {
    interpret: bool,
}

impl InFront for Ports {
    fn stage<G: Ground>(&self) -> Box<dyn Stage<G::Dma>> {
        build::<G>(&options("tests/p4/ports.p4", Some("tests/p4/mirror.toml"), self.interpret))
    }
}

#[test]
fn it_passes_the_shared_suite() {
    for interpret in [false, true] {
        let router = options("../../examples/p4/router.p4", Some("../../examples/p4/nic-routes.toml"), interpret);
        nicforge_stages::suite::check_with::<P4Kind>(&router);
        let ports = options("tests/p4/ports.p4", Some("tests/p4/mirror.toml"), interpret);
        nicforge_stages::suite::check_with::<P4Kind>(&ports);
    }
}

/// The frame as the program's egress leaves it, where it goes out by the NIC's own port.
fn signed(payload: usize, source_port: u16) -> Vec<u8> {
    let mut frame = udp_frame(payload, source_port);
    frame[6..12].copy_from_slice(&[10, 0, 0, 0, 0, 1]);
    frame
}

fn programs_decide(interpret: bool) {
    let each = |payload: usize| (1..9).map(|port| udp_frame(payload, port)).collect::<Vec<_>>();
    in_front(&Ports { interpret }, &each(100), &each(60), |interface, ground, exchange| {
        let place = format!("{interface} on {ground}");
        let found = |port: u16| -> Vec<&Received> {
            exchange.received.iter().filter(|received| received.bytes[34..36] == port.to_be_bytes()).collect()
        };
        for port in [1, 2, 6, 7, 8] {
            let frames: Vec<_> = found(port).iter().map(|received| received.bytes.clone()).collect();
            let from_host = if port == 8 { vec![udp_frame(60, port)] } else { vec![] };
            let all: Vec<_> = [vec![udp_frame(100, port)], from_host].concat();
            assert_eq!(frames, all, "{place}: port {port} to the host");
        }
        let said = found(2)[0];
        assert_eq!((said.mark, said.queue), (0xfedc_ba98_7654_3210, 1), "{place}");
        assert_eq!(said.flags.0 & RxFlags(!0xff).0, 0xabcd_ef00, "{place}");
        assert!(said.flags.contains(RxFlags::L4_GOOD), "{place}: the NIC's own verdict stays");
        let others = [1, 6, 7].map(|port| found(port)[0]);
        assert!(others.iter().all(|packet| packet.mark == 0 && packet.flags.0 >> 8 == 0), "{place}");

        // Out by the own port: turned round (4), and what software sent.
        let left = [signed(100, 4), signed(60, 1), signed(60, 2), signed(60, 4), signed(60, 6), signed(60, 7)];
        assert_eq!(exchange.left, left, "{place}");
        // By the other port: sent there (5), and the copies of 6.
        let mut bridged = exchange.bridged.clone();
        bridged.sort();
        let mut copies = [udp_frame(100, 5), udp_frame(100, 6), udp_frame(60, 5), udp_frame(60, 6)];
        copies.sort();
        assert_eq!(bridged, copies, "{place}");
        assert_eq!(exchange.drops, [("p4_drop", 2)], "{place}");
        let count = |name: &str| exchange.counters.iter().find(|(known, _)| *known == name).map(|(_, count)| *count);
        assert_eq!(count("p4_received"), Some(16), "{place}");
        assert_eq!(count("p4_myingress_by_port_hits"), Some(12), "{place}");
        assert_eq!(count("p4_myingress_by_port_misses"), Some(4), "{place}");
        assert_eq!(count("p4_parser_packettooshort"), Some(0), "{place}");
    });
}

#[test]
fn compiled_programs_decide_on_frames_of_both_directions() {
    programs_decide(false);
}

#[test]
fn interpreted_programs_decide_on_frames_of_both_directions() {
    programs_decide(true);
}

#[derive(Default)]
struct Wire {
    last_bit: Option<Time>,
}

impl Egress for Wire {
    fn depart(&mut self, departure: Departure<'_>) {
        self.last_bit = Some(departure.last_bit);
    }

    fn bridge(&mut self, _frame: Bridged) {}
}

/// When a frame that the program sends back has left.
fn turn_round(stage: Box<dyn Stage<FlatDma>>) -> Time {
    let (mut dma, mut wire) = (FlatDma::new(FlatCpu::new(AddressSpace::default().end())), Wire::default());
    let mut nic = Nic::new(&spec(), Box::new(CountingHalf::default()), &[], Addr(0));
    nic.stages.push(stage);
    let start = dma.now();
    nic.receive(&mut dma, &udp_frame(100, 4), start);
    for _ in 0..100 {
        let next = nic.advance(&mut dma, &mut wire);
        if let Some(left) = wire.last_bit {
            return left;
        }
        dma.set_now(next);
    }
    panic!("the frame stays inside");
}

/// A frame takes the cycles of the target that `explain` tells: at a tenth of the clock ten times as long.
#[test]
fn a_frame_costs_the_cycles_of_the_target() {
    let program = Program::compile(Path::new(&file("tests/p4/ports.p4").unwrap()), &Default::default());
    let program = program.unwrap_or_else(|errors| panic!("{errors}"));
    let layout = target::place(&program, &Target::default()).unwrap_or_else(|refusal| panic!("{refusal}"));
    let took = [1000, 100].map(|mhz| {
        let mut options = options("tests/p4/ports.p4", None, false);
        let (_folder, path) = target_file("clock_mhz = 1000", &format!("clock_mhz = {mhz}"));
        options.p4_target = Some(path);
        turn_round(build::<Flat>(&options))
    });
    let more = took[1].saturating_sub(took[0]);
    // Cycles at 100 MHz less those at 1000 MHz.
    assert_eq!(more, Time::from_ns(9 * layout.cycles), "{} cycles", layout.cycles);
}

/// The target of the tests, changed at one place.
fn target_file(from: &str, to: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("target.toml");
    let text = std::fs::read_to_string(file("tests/p4/target.toml").unwrap()).unwrap();
    assert!(text.contains(from));
    std::fs::write(&path, text.replace(from, to)).unwrap();
    let path = path.display().to_string();
    (folder, path)
}

#[test]
fn a_program_that_does_not_fit_the_target_is_refused_with_the_chain() {
    let (_folder, path) = target_file("stages = 16", "stages = 1");
    let mut options = options("../../examples/p4/router.p4", None, false);
    options.p4_target = Some(path);
    let error = match try_build::<Flat>(&options) {
        Ok(_) => panic!("two tables in a chain fit on one stage"),
        Err(error) => error.to_string(),
    };
    assert!(error.contains("routes") && error.contains("next_hops"), "{error}");
}
