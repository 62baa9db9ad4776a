//! PNA: direction, host, add-on-miss, recirculation, counters.

use nicforge_flexnic::p4::{Engine, Options, Program};

const PROGRAM: &str = "
#include <core.p4>
#include <pna.p4>
header h_t { bit<8> op; bit<8> flow; bit<16> sum; }
struct H { h_t h; }
struct M { }
struct learnt_t { bit<32> port; }
parser P(packet_in p, out H h, inout M m, in pna_main_parser_input_metadata_t i) {
    state start { p.extract(h.h); transition accept; }
}
control Pre(in H h, inout M m, in pna_pre_input_metadata_t i, inout pna_pre_output_metadata_t o) { apply { } }
control Main(inout H h, inout M m, in pna_main_input_metadata_t i, inout pna_main_output_metadata_t o) {
    Counter<bit<32>, bit<8>>(256, PNA_CounterType_t.PACKETS) per_flow;
    InternetChecksum() checksum;
    action forward(bit<32> port) { send_to_port((PortId_t) port); }
    action learn() {
        learnt_t data = { 9 };
        bool added = add_entry(\"forward\", data, (ExpireTimeProfileId_t) 0);
        h.h.sum = added ? 16w1 : 16w0;
    }
    table flows {
        key = { h.h.flow: exact; }
        actions = { forward; @defaultonly learn; }
        add_on_miss = true;
        default_action = learn();
    }
    apply {
        per_flow.count(h.h.flow);
        if (h.h.op == 1) {
            flows.apply();
        } else if (h.h.op == 2) {
            drop_packet();
        } else if (h.h.op == 3) {
            h.h.op = 4;
            recirculate();
        } else if (h.h.op == 5) {
            checksum.clear();
            checksum.add({ h.h.op, h.h.flow });
            h.h.sum = checksum.get();
        }
        if (i.pass == (PassNumber_t) 1) { h.h.flow = 0xff; }
    }
}
control D(packet_out p, in H h, in M m, in pna_main_output_metadata_t o) { apply { p.emit(h.h); } }
PNA_NIC(P(), Pre(), Main(), D()) main;
";

#[test]
fn packets_go_to_ports_to_the_host_and_flows_are_learnt() {
    let program =
        Program::compile_text("pna", PROGRAM, &Options::default()).unwrap_or_else(|errors| panic!("{errors}"));
    for engine in [Engine::Interpreter, Engine::Compiled] {
        let mut pipeline = program.pipeline(engine, 1).expect("an engine");
        let mut send = |packet: [u8; 4], from_host| {
            let mut left = Vec::new();
            pipeline
                .process_from(&packet, 3, from_host, &mut |output| left.push((output.port, output.packet.to_vec())));
            left
        };
        // The first packet of a flow is learnt and goes on to the host, the next one follows the entry.
        assert_eq!(send([1, 7, 0, 0], false), [(None, vec![1, 7, 0, 1])]);
        assert_eq!(send([1, 7, 0, 0], false), [(Some(9), vec![1, 7, 0, 0])]);
        assert_eq!(send([2, 7, 0, 0], false), []);
        assert_eq!(send([0, 7, 0, 0], true), [(Some(3), vec![0, 7, 0, 0])]);
        assert_eq!(send([3, 7, 0, 0], false), [(None, vec![4, 0xff, 0, 0])]);
        assert_eq!(send([5, 6, 0, 0], false), [(None, vec![5, 6, 0xfa, 0xf9])]);
        assert_eq!(pipeline.counters().gone.get("dropped by the program"), Some(&1));
    }
}

/// Words for the host travel with PNA, too.
#[test]
fn marks_flags_and_queues_reach_the_host() {
    let text = PROGRAM.replace("#include <pna.p4>", "#include <pna.p4>\n#include <flexnic.p4>");
    let said = "per_flow.count(h.h.flow); set_mark(0x123456789abcdef0); set_flags(0xabcdef); set_queue(3);";
    let text = text.replace("per_flow.count(h.h.flow);", said);
    let program = Program::compile_text("pna", &text, &Options::default()).unwrap_or_else(|errors| panic!("{errors}"));
    for engine in [Engine::Interpreter, Engine::Compiled] {
        let mut pipeline = program.pipeline(engine, 1).expect("an engine");
        let output = pipeline.process(&[5, 6, 0, 0], 3).remove(0);
        assert_eq!((output.mark, output.flags, output.queue), (0x1234_5678_9abc_def0, 0xab_cdef, Some(3)));
    }
}
