//! Packets, entries and programs that are wrong have the result that the specification says, or a clear refusal.

use nicforge_flexnic::p4::ir::{ActionCall, Match};
use nicforge_flexnic::p4::tables::{Entry, EntryAction, Target, Update, UpdateError};
use nicforge_flexnic::p4::{Engine, Options, Pipeline, Program, entries};

const PROGRAM: &str = "#include <v1model.p4>
header h_t { bit<8> kind; bit<8> value; }
header label_t { bit<8> label; }
struct H { h_t h; label_t[2] labels; h_t never; }
struct M { bit<8> found; }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    state start { p.extract(h.h); transition select(h.h.kind) { 1: labels; 2: round; default: accept; } }
    state labels { p.extract(h.labels.next); transition labels; }
    state round { transition round; }
}
control V(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    action send(bit<9> port) { s.egress_spec = port; }
    table t { key = { h.h.value: exact; } actions = { send; } size = 2; }
    apply {
        t.apply();
        // Reading an invalid header gives some value, here 0, and changes nothing.
        h.h.value = h.never.value;
        if (s.parser_error == error.NoError) { m.found = 0; }
        else if (s.parser_error == error.PacketTooShort) { m.found = 1; }
        else if (s.parser_error == error.StackOutOfBounds) { m.found = 2; }
        else if (s.parser_error == error.ParserTimeout) { m.found = 3; }
        else { m.found = 9; }
        s.egress_spec = (bit<9>) m.found;
    }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control C(inout H h, inout M m) { apply { } }
control D(packet_out p, in H h) { apply { p.emit(h.h); p.emit(h.never); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;";

fn pipelines() -> impl Iterator<Item = Pipeline> {
    let program =
        Program::compile_text("bad", PROGRAM, &Options::default()).unwrap_or_else(|errors| panic!("{errors}"));
    [Engine::Interpreter, Engine::Compiled]
        .into_iter()
        .map(move |engine| program.pipeline(engine, 1).expect("an engine"))
}

/// The port says which error the parser met; each error is counted by its name.
#[test]
fn wrong_packets_have_the_parsers_error() {
    for mut pipeline in pipelines() {
        let mut send = |packet: &[u8]| {
            pipeline.process(packet, 0).into_iter().map(|out| (out.port, out.packet)).collect::<Vec<_>>()
        };
        assert_eq!(send(&[0, 5, 6]), [(Some(0), vec![0, 0, 6])], "an invalid header reads as 0");
        assert_eq!(send(&[]), [(Some(1), vec![])], "nothing is there to extract");
        assert_eq!(send(&[0]), [(Some(1), vec![0])], "half of a header");
        assert_eq!(send(&[1, 5, 7]), [(Some(1), vec![1, 0])], "a label is missing");
        assert_eq!(send(&[1, 5, 7, 8, 9]), [(Some(2), vec![1, 0, 9])], "a label too many");
        assert_eq!(send(&[2, 5]), [(Some(3), vec![2, 0])], "a parser that does not end");
        let names = &pipeline.ir().errors;
        let count = |name: &str| {
            let number = names.iter().position(|error| &**error == name).expect("core.p4 has it");
            pipeline.counters().parser_errors[number]
        };
        assert_eq!((count("PacketTooShort"), count("StackOutOfBounds"), count("ParserTimeout")), (3, 1, 1));
    }
}

fn entry(value: u64, port: u64) -> Vec<Target> {
    let action = EntryAction::Call(ActionCall { action: 0, data: vec![vec![port]] });
    let keys = vec![Match::Exact(vec![value])];
    let entry = Entry { keys, priority: 0, action, is_const: false, hits: (0, 0), meter: Default::default() };
    vec![Target { table: 0, update: Update::Insert(entry) }]
}

#[test]
fn entries_out_of_range_twice_or_too_many_are_refused_and_change_nothing() {
    for mut pipeline in pipelines() {
        pipeline.update(entry(1, 2)).unwrap();
        assert!(matches!(pipeline.update(entry(1, 3)), Err(UpdateError::Exists { .. })));
        assert!(matches!(pipeline.update(entry(256, 3)), Err(UpdateError::Key { .. })));
        assert!(pipeline.update(entry(2, 512)).is_err(), "a port has 9 bits");
        pipeline.update(entry(2, 3)).unwrap();
        assert!(matches!(pipeline.update(entry(3, 3)), Err(UpdateError::Full { size: 2, .. })));
        // The second of a batch fails: the first is taken back.
        let batch = [entry(7, 1), entry(1, 1)].concat();
        assert!(pipeline.update(batch).is_err());
        assert_eq!(pipeline.tables()[0].len(), 2);
        let text =
            "[[entry]]\ntable = \"t\"\nmatch = { \"h.h.value\" = 300 }\naction = \"send\"\ndata = { port = 1 }\n";
        let error = entries::load(&mut pipeline, text).expect_err("the key has 8 bits").to_string();
        assert!(error.contains("line"), "{error}");
        assert_eq!(pipeline.tables()[0].len(), 2);
    }
}

#[test]
fn programs_that_do_not_parse_or_type_name_the_place_and_all_errors() {
    let wrong = PROGRAM.replace("bit<8> found;", "bit<8> found").replace("m.found = 9;", "m.found = true;");
    for (text, place) in
        [(PROGRAM[..400].to_owned(), "bad:"), (wrong, "bad:5"), ("\0\u{ff}#define".to_owned(), "bad:1")]
    {
        let errors = Program::compile_text("bad", &text, &Options::default()).err().expect("it is wrong").to_string();
        assert!(errors.contains(place), "{errors}");
    }
    let two = PROGRAM.replace("m.found = 9;", "m.found = true; m.lost = 1;");
    let errors = Program::compile_text("bad", &two, &Options::default()).err().expect("it is wrong").to_string();
    assert!(errors.contains("lost") && errors.contains("bool"), "{errors}");
    // Nothing is inside of an empty tuple.
    let empty = PROGRAM.replace("m.found = 9;", "bit<8> x = {}[1];");
    let errors = Program::compile_text("bad", &empty, &Options::default()).err().expect("it is wrong").to_string();
    assert!(errors.contains("empty"), "{errors}");
}
