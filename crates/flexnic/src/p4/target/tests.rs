//! Placement of small programs.

use super::*;
use crate::p4::{Options, Program};

fn program(body: &str, apply: &str) -> Program {
    let text = format!(
        "#include <v1model.p4>
header h_t {{ bit<32> a; bit<32> b; bit<32> c; }}
struct H {{ h_t h; }}
struct M {{ }}
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {{ state start {{ p.extract(h.h); transition accept; }} }}
control V(inout H h, inout M m) {{ apply {{ }} }}
control I(inout H h, inout M m, inout standard_metadata_t s) {{ {body} apply {{ {apply} }} }}
control E(inout H h, inout M m, inout standard_metadata_t s) {{ apply {{ }} }}
control C(inout H h, inout M m) {{ apply {{ }} }}
control D(packet_out p, in H h) {{ apply {{ p.emit(h); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;"
    );
    Program::compile_text("test", &text, &Options::default()).unwrap_or_else(|errors| panic!("{errors}"))
}

const CHAIN: &str = "
    action set_b(bit<32> x) { h.h.b = x; }
    action set_c(bit<32> x) { h.h.c = x; }
    table one { key = { h.h.a: exact; } actions = { set_b; } size = 16; }
    table two { key = { h.h.b: ternary; } actions = { set_c; } size = 16; }";

#[test]
fn match_dependency_takes_another_stage() {
    let layout = place(&program(CHAIN, "one.apply(); two.apply();"), &Target::default()).expect("fits");
    assert_eq!(layout.tables[0].stages, (0, 0));
    assert_eq!(layout.tables[1].stages, (1, 1));
    assert_eq!(layout.tables[1].after[0].field.as_deref(), Some("hdr.h.b"));
    assert_eq!(layout.tables[1].tcam_bits, 16 * 2 * 32);
}

#[test]
fn independent_tables_share_a_stage() {
    let body = CHAIN.replace("key = { h.h.b: ternary; }", "key = { h.h.a: ternary; }");
    let layout = place(&program(&body, "one.apply(); two.apply();"), &Target::default()).expect("fits");
    assert_eq!((layout.tables[0].stages, layout.tables[1].stages), ((0, 0), (0, 0)));
}

#[test]
fn chain_that_is_too_long_is_named() {
    let target = Target { stages: 1, ..Target::default() };
    let refusal = place(&program(CHAIN, "one.apply(); two.apply();"), &target).expect_err("does not fit");
    let chain = vec!["I.one".to_owned(), "I.two".to_owned()];
    assert_eq!(refusal.misfits, vec![Misfit::Stages { chain, needs: 2, has: 1 }]);
}

#[test]
fn large_table_takes_several_stages_or_is_refused() {
    let body = CHAIN.replace(
        "h.h.a: exact; } actions = { set_b; } size = 16",
        "h.h.a: exact; } actions = { set_b; } size = 400000",
    );
    let program = program(&body, "one.apply();");
    let layout = place(&program, &Target::default()).expect("fits");
    assert!(layout.tables[0].stages.1 > 0);
    let small = Target { stages: 1, ..Target::default() };
    let refusal = place(&program, &small).expect_err("does not fit");
    assert!(matches!(refusal.misfits[0], Misfit::Memory { memory: "SRAM", .. }));
}

#[test]
fn loops_and_multiplications_are_refused() {
    let program = program("", "for (bit<8> i in 0 .. 3) { h.h.a = h.h.a * h.h.b; }");
    let refusal = place(&program, &Target::default()).expect_err("does not fit");
    assert_eq!(refusal.misfits.len(), 2);
    let able = Target { loops: true, multiply: true, ..Target::default() };
    assert!(place(&program, &able).is_ok());
}

/// Rules of an application match the tag exactly, and leave it as it is.
#[test]
fn tables_of_applications_match_the_tag_and_do_not_change_it() {
    let tagged = |kind: &str| CHAIN.replace("key = { h.h.a: exact; }", &format!("key = {{ h.h.a: {kind} @tag; }}"));
    let of = |body: &str| place(&program(body, "one.apply(); two.apply();"), &Target::default());
    assert!(of(&tagged("exact")).is_ok());
    let loose = of(&tagged("ternary")).expect_err("it may match other tags");
    assert!(matches!(&loose.misfits[..], [Misfit::Tag { field, .. }] if field == "h.h.a"), "{loose}");
    let own = CHAIN.replace("key = { h.h.a: exact; }", "key = { h.h.b: exact @tag; }");
    let changing = of(&own).expect_err("its actions write it");
    assert!(matches!(&changing.misfits[..], [Misfit::WritesTag { field, .. }] if field == "h.h.b"), "{changing}");
}

#[test]
fn picture_and_text_name_all_tables() {
    let target = Target::default();
    let layout = place(&program(CHAIN, "one.apply(); two.apply();"), &target).expect("fits");
    for shown in [to_text(&layout, &target), to_svg(&layout, &target)] {
        assert!(shown.contains("I.one") && shown.contains("I.two"));
    }
}
