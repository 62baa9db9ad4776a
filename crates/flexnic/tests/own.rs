//! The crate's own programs and packet tests: every construct, without a download, in both engines.

use std::path::Path;

use nicforge_flexnic::p4::{Engine, Options, Program, entries, stf};

#[track_caller]
fn check(name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/p4");
    for engine in [Engine::Interpreter, Engine::Compiled] {
        let file = |end: &str| folder.join(format!("{name}.{end}"));
        let report = stf::run_file(&file("p4"), &file("stf"), &Options::default(), engine);
        assert!(report.passed(), "{engine:?}: {name}: {}", report.failures.join("\n"));
        assert!(report.expected > 0, "{name} expects nothing");
    }
}

#[test]
fn parser_constructs() {
    check("parsers");
}

#[test]
fn tables_of_all_kinds() {
    check("tables");
}

#[test]
fn expressions_and_statements() {
    check("expressions");
}

#[test]
fn externs_of_v1model() {
    check("externs");
}

#[test]
fn multicast_clone_resubmit_recirculate() {
    check("copies");
}

fn router() -> Program {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/p4/router.p4");
    Program::compile(&path, &Options::default()).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn entries_file_with_an_error_changes_nothing_and_names_the_line() {
    let mut pipeline = router().pipeline(Engine::Interpreter, 1).expect("an engine");
    let text = "[[entry]]\ntable = \"stations\"\nmatch = { dst = 1 }\naction = \"bridge\"\ndata = { port = 1 }\n\n\
                [[entry]]\ntable = \"stations\"\nmatch = { dst = 2 }\naction = \"bridge\"\ndata = { port = 512 }\n";
    let error = entries::load(&mut pipeline, text).expect_err("the port is too large");
    assert_eq!(error.line, 7);
    assert!(error.message.contains("512"), "{error}");
    let table = pipeline.table_named("stations").expect("the program has it");
    assert!(pipeline.tables()[table].is_empty());
}

#[test]
fn example_router_routes_counts_and_drops() {
    let mut pipeline = router().pipeline(Engine::Compiled, 1).expect("an engine");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/p4/routes.toml");
    entries::load(&mut pipeline, &std::fs::read_to_string(path).expect("the example")).expect("fits");
    let mut packet = vec![0u8; 64];
    packet[12] = 8;
    packet[14..34].copy_from_slice(&[0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17, 0xae, 0x0e, 192, 168, 0, 1, 10, 1, 2, 3]);
    let outputs = pipeline.process(&packet, 0);
    assert_eq!(outputs.len(), 1);
    assert_eq!(outputs[0].port, Some(2));
    assert_eq!(outputs[0].packet[22], 63);
    assert_eq!(outputs[0].packet[24..26], [0xaf, 0x0e]);
    packet[24] ^= 1;
    assert!(pipeline.process(&packet, 0).is_empty(), "a wrong checksum is dropped");
    assert!(pipeline.process(&packet[..20], 0).is_empty(), "a short packet is dropped");
    assert_eq!(pipeline.counters().received, 3);
    assert_eq!(pipeline.counters().gone.values().sum::<u64>(), 2);
    let routes = pipeline.table_named("routes").expect("the program has it");
    let hits: u64 = pipeline.tables()[routes].entries().map(|(_, entry)| entry.hits.0).sum();
    assert_eq!(hits, 1);
    // Both engines and the trace tell the same.
    packet[24] ^= 1;
    let (traced, events) = pipeline.trace(&packet, 0);
    assert_eq!(traced, outputs);
    assert!(events.len() > 10);
}

#[test]
fn several_errors_have_places_and_help() {
    let text = "#include <v1model.p4>\nheader h_t { bit<8> a; }\nstruct H { h_t hh; }\nstruct M { bit<8> x; }\n\
                control I(inout H h, inout M m) {\n  apply {\n    m.y = 1;\n    h.hx.a = 2;\n    m.x = true;\n  }\n}\n";
    let Err(errors) = Program::compile_text("bad.p4", text, &Options::default()) else { panic!("accepted") };
    assert_eq!(errors.errors(), 3, "{errors}");
    let lines: Vec<usize> = errors.problems.iter().map(|problem| errors.position(problem).line).collect();
    assert_eq!(lines, [7, 8, 9]);
    assert_eq!(errors.problems[1].help.as_deref(), Some("it has `hh`"));
    assert!(errors.to_string().contains("m.x = true;"), "the line itself is shown");
}

const SELECTING: &str = "#include <v1model.p4>
#define JOIN(a, b) a ## b
#define PLUS(a, b) ((a) + (b))
#if defined(JOIN) && PLUS(1, 2) == 3
#define KIND 7
#elif 1
#error the condition holds
#else
#error never here
#endif
header h_t { bit<8> kind; bit<8> flow; }
struct H { h_t h; }
struct M { }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { p.extract(h.h); transition accept; } }
control V(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    action JOIN(se, nd)(bit<9> port) { s.egress_spec = port; }
    table t {
        key = { h.h.kind: exact; h.h.flow: selector; }
        actions = { send; }
        implementation = action_selector(HashAlgorithm.crc32, 32w16, 32w8);
    }
    apply { if (h.h.kind == KIND) { t.apply(); } }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control C(inout H h, inout M m) { apply { } }
control D(packet_out p, in H h) { apply { p.emit(h.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;";

/// A selector spreads flows over the actions of a group, and each flow stays with one.
#[test]
fn selectors_spread_flows_and_macros_join_and_compute() {
    let entries = "[[entry]]\ntable = \"t\"\nmatch = { \"h.h.kind\" = 7 }\ngroup = [
        { action = \"send\", data = { port = 1 }, weight = 1 }, { action = \"send\", data = { port = 2 }, weight = 1 } ]\n";
    let program =
        Program::compile_text("s", SELECTING, &Options::default()).unwrap_or_else(|errors| panic!("{errors}"));
    let mut both = Vec::new();
    for engine in [Engine::Interpreter, Engine::Compiled] {
        let mut pipeline = program.pipeline(engine, 1).expect("an engine");
        nicforge_flexnic::p4::entries::load(&mut pipeline, entries).unwrap_or_else(|error| panic!("{error}"));
        let ports: Vec<_> = (0..64).map(|flow| pipeline.process(&[7, flow], 0)[0].port.unwrap()).collect();
        let again: Vec<_> = (0..64).map(|flow| pipeline.process(&[7, flow], 0)[0].port.unwrap()).collect();
        assert_eq!(ports, again, "a flow stays with its action");
        assert!(
            ports.iter().all(|port| [1, 2].contains(port)) && ports.contains(&1) && ports.contains(&2),
            "{ports:?}"
        );
        both.push(ports);
    }
    assert_eq!(both[0], both[1]);
}
