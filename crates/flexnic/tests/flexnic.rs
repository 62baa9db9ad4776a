//! Package FlexNIC: ingress, egress and DMA pipeline, in both engines.

use nicforge_flexnic::p4::{
    BufferState, Direction, DmaOutcome, Engine, NicFields, Options, Pipeline, Program, Refusal, target,
};

const PROGRAM: &str = "
#include <flexnic.p4>
header h_t { bit<8> op; bit<8> flow; bit<16> sum; }
header entry_t { bit<64> word; }
struct H { entry_t entry; h_t h; }
struct M { }
parser P(packet_in p, out H h, inout M m, inout flexnic_t nic) {
    state start { p.extract(h.h); transition accept; }
}
register<bit<64>>(4) head;
control In(inout H h, inout M m, inout flexnic_t nic) {
    apply {
        if (h.h.op == 1) { discard(); }
        if (h.h.op == 2) { copy_to(nic.port, 7); }
        if (h.h.op == 3) { send_to(nic.port); }
        if (h.h.op == 4) { copy_to(3, 9); discard(); }
        if (h.h.op == 8) { consume(); }
        if (h.h.op == 9) { refuse(refusal_t.QUEUE_FULL); }
        if (h.h.op == 5) { set_mark(0x1122334455667788); set_queue(2); }
    }
}
control Out(inout H h, inout M m, inout flexnic_t nic) {
    apply { h.h.flow = nic.tag; if (h.h.op == 6) { send_to(4); } if (h.h.op == 10) { refuse(refusal_t.NO_WINDOW); } }
}
control Into(inout H h, inout M m, inout flexnic_t nic) {
    bit<64> at;
    apply {
        if (nic.state == buffer_t.NONE) { refuse(refusal_t.QUEUE_FULL); }
        head.read(at, (bit<32>) nic.queue);
        h.entry.setValid();
        h.entry.word = nic.mark ++ 64w0 >> 64 == 128w0 ? 64w1 : nic.mark;
        dma_write(nic.buffer, 8, nic.length);
        dma({ 0, 8, dma_direction_t.TO_MEMORY, nic.entry, 1, 3, dma_atomic_t.OR });
        if (h.h.op == 7) { dma_read(0x4000, 8, 4); send_to(nic.port); }
        head.write((bit<32>) nic.queue, at + 1);
    }
}
control D(packet_out p, in H h) { apply { p.emit(h); } }
FlexNIC(P(), In(), Out(), Into(), D()) main;
";

fn pipelines() -> impl Iterator<Item = Pipeline> {
    let program = Program::compile_text("flexnic", PROGRAM, &Options::default());
    let program = program.unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(program.architecture(), "FlexNIC");
    [Engine::Interpreter, Engine::Compiled]
        .into_iter()
        .map(move |engine| program.pipeline(engine, 1).expect("an engine"))
}

#[test]
fn packets_go_to_the_host_to_ports_and_both_ways() {
    for mut pipeline in pipelines() {
        let mut send = |packet: [u8; 5], from_host| {
            let mut left = Vec::new();
            let fields = NicFields { port: 2, ..NicFields::default() };
            pipeline.process_nic(&packet, &fields, from_host, &mut |output| {
                left.push((output.port, output.packet.to_vec(), output.mark, output.queue));
            });
            left
        };
        assert_eq!(send([0, 1, 2, 3, 4], false), [(None, vec![0, 1, 2, 3, 4], 0, None)]);
        assert_eq!(send([1, 1, 2, 3, 4], false), []);
        // The host's packet stays as it is; the copy went through egress.
        let copy = (Some(2), vec![2, 7, 2, 3, 4], 0, None);
        assert_eq!(send([2, 1, 2, 3, 4], false), [(None, vec![2, 1, 2, 3, 4], 0, None), copy]);
        assert_eq!(send([3, 1, 2, 3, 4], false), [(Some(2), vec![3, 0, 2, 3, 4], 0, None)]);
        assert_eq!(send([4, 1, 2, 3, 4], false), [(Some(3), vec![4, 9, 2, 3, 4], 0, None)]);
        assert_eq!(send([5, 1, 2, 3, 4], false), [(None, vec![5, 1, 2, 3, 4], 0x1122_3344_5566_7788, Some(2))]);
        assert_eq!(send([0, 1, 2, 3, 4], true), [(Some(2), vec![0, 0, 2, 3, 4], 0, None)]);
        assert_eq!(send([6, 1, 2, 3, 4], true), [(Some(4), vec![6, 0, 2, 3, 4], 0, None)]);
        assert_eq!(pipeline.counters().gone.get("dropped by the program"), Some(&2));
    }
}

/// A packet that ends in the NIC on purpose is no drop, and a program says why it drops others.
#[test]
fn a_packet_is_consumed_or_dropped_for_a_reason() {
    for mut pipeline in pipelines() {
        let mut end = |operation: u8, from_host| {
            let fields = NicFields { port: 2, ..NicFields::default() };
            pipeline.process_nic(&[operation, 1, 2, 3, 4], &fields, from_host, &mut |_| panic!("nothing is left"));
            (pipeline.ended().is_consumed, pipeline.ended().refusal)
        };
        assert_eq!(end(8, false), (true, None));
        assert_eq!(end(9, false), (false, Some(Refusal::QueueFull)));
        assert_eq!(end(10, true), (false, Some(Refusal::NoWindow)));
        assert_eq!(end(1, false), (false, None));
        assert_eq!(pipeline.counters().gone.get("consumed by the program"), Some(&1));
    }
}

#[test]
fn the_dma_pipeline_asks_for_transfers_of_what_the_deparser_leaves() {
    for mut pipeline in pipelines() {
        let fields = NicFields { queue: 1, mark: 5, entry: 0x100, buffer: 0x2000, ..NicFields::default() };
        let refused = pipeline.dma(&[0, 1, 2, 3, 4], &fields);
        assert!(matches!(refused, DmaOutcome::Refused(Refusal::QueueFull, ..)), "{refused:?}");
        let fields = NicFields { state: BufferState::Fits, port: 3, ..fields };
        let DmaOutcome::Transfers(bytes, transfers) = pipeline.dma(&[0, 1, 2, 3, 4], &fields) else {
            panic!("transfers");
        };
        assert_eq!(bytes, [0, 0, 0, 0, 0, 0, 0, 5, 0, 1, 2, 3, 4]);
        let [frame, entry] = transfers else { panic!("two transfers") };
        assert_eq!((frame.offset, frame.length, frame.address, frame.direction), (8, 5, 0x2000, Direction::ToMemory));
        assert_eq!((entry.offset, entry.length, entry.address), (0, 8, 0x100));
        assert_eq!((entry.cache, entry.core, entry.atomic), (1, 3, Some(nicforge_flexnic::p4::AtomicOp::Or)));
        let DmaOutcome::Reply(_, transfers, 3) = pipeline.dma(&[7, 1, 2, 3], &fields) else { panic!("a reply") };
        assert_eq!(transfers[2].direction, Direction::FromMemory);
    }
}

#[test]
fn each_pipeline_has_stages_of_its_own_and_the_engine_a_number_of_transfers() {
    let program = Program::compile_text("flexnic", PROGRAM, &Options::default()).expect("a program");
    let target = target::Target::default();
    let layout = target::place(&program, &target).expect("it fits");
    assert_eq!(layout.pipelines, ["In", "Out", "Into"]);
    assert_eq!((layout.stages.len(), layout.transfers), (3 * target.stages, 3));
    // The register lies where it is used first: four words in the DMA pipeline.
    assert_eq!(layout.stages[2 * target.stages].sram_bits, 4 * 64);
    let few = target::Target { transfers: 2, ..target };
    let refusal = target::place(&program, &few).expect_err("three transfers").to_string();
    assert_eq!(refusal, "a packet may ask for 3 transfers, the target's DMA engine makes 2 at most\n");
}

#[test]
fn verbs_stand_where_they_can_be_done() {
    let misplaced = PROGRAM.replace("if (h.h.op == 1) { discard(); }", "dma_write(0, 0, 1);");
    let errors = Program::compile_text("flexnic", &misplaced, &Options::default()).err().expect("transfers in ingress");
    assert!(errors.to_string().contains("`In` uses Dma, which it does not have"), "{errors}");
    let misplaced = PROGRAM.replace("h.h.flow = nic.tag;", "set_queue(1);");
    let errors = Program::compile_text("flexnic", &misplaced, &Options::default()).err().expect("a queue in egress");
    assert!(errors.to_string().contains("`Out` uses SetQueue"), "{errors}");
}

#[test]
fn traces_show_transfers() {
    for mut pipeline in pipelines() {
        let (outputs, events) = pipeline.trace(&[0, 1, 2, 3, 4], 1);
        assert_eq!(outputs.len(), 1);
        let shown = format!("{events:?}");
        assert!(shown.contains("5 bytes from 8 on, to memory at 0x2000"), "{shown}");
        assert!(shown.contains("8 bytes from 0 on, to memory at 0x1000"), "{shown}");
    }
}
