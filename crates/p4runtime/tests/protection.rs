//! Protection between applications: roles that write rules of their own tag only.

mod harness;

use harness::bench_of;
use nicforge_p4runtime::proto::p4::v1 as p4;
use nicforge_p4runtime::proto::p4::v1::entity::Entity::TableEntry;
use nicforge_p4runtime::proto::p4::v1::update::Type::{Delete, Insert, Modify};
use tonic::Code;

const TAGGED: &str = "#include <v1model.p4>
header h_t { bit<8> kind; bit<8> key; }
struct H { h_t h; }
struct M { bit<16> tag; }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { p.extract(h.h); transition accept; } }
control V(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    action set_tag(bit<16> tag) { m.tag = tag; }
    action send(bit<9> port) { s.egress_spec = port; }
    table owners { key = { h.h.kind: exact; } actions = { set_tag; } }
    table rules { key = { m.tag: exact @tag; h.h.key: exact; } actions = { send; } }
    apply { owners.apply(); rules.apply(); }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control C(inout H h, inout M m) { apply { } }
control D(packet_out p, in H h) { apply { p.emit(h.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;";

/// An application writes rules for its own packets; which packets those are is the operating system's to say.
#[tokio::test(flavor = "multi_thread")]
async fn applications_write_rules_of_their_own_tag_only() {
    let bench = bench_of(TAGGED);
    let mut system = bench.client(1).await;
    assert_eq!(system.standing().await, Code::Ok);
    let exact = |field_id, value: &[u8]| p4::FieldMatch {
        field_id,
        field_match_type: Some(p4::field_match::FieldMatchType::Exact(p4::field_match::Exact {
            value: value.to_vec(),
        })),
    };
    let entry = |table: &str, fields: Vec<p4::FieldMatch>, action: &str, value: &[u8]| p4::TableEntry {
        table_id: bench.table(table),
        r#match: fields,
        action: Some(p4::TableAction {
            r#type: Some(p4::table_action::Type::Action(bench.call(action, &[(1, value)]))),
        }),
        ..Default::default()
    };
    let owner = |kind: u8, tag: u8| entry("owners", vec![exact(1, &[kind])], "set_tag", &[tag]);
    let rule = |tag: u8, key: u8, port: u8| entry("rules", vec![exact(1, &[tag]), exact(2, &[key])], "send", &[port]);
    system.one(Insert, TableEntry(owner(1, 7))).await.unwrap();
    system.one(Insert, TableEntry(owner(2, 8))).await.unwrap();
    let mut application = bench.client_of(1, "application:7").await;
    assert_eq!(application.standing().await, Code::Ok);
    application.one(Insert, TableEntry(rule(7, 5, 3))).await.unwrap();
    for foreign in [rule(8, 5, 3), owner(2, 7)] {
        assert_eq!(application.one(Insert, TableEntry(foreign)).await, Err(Code::PermissionDenied));
    }
    let default = p4::TableEntry { is_default_action: true, r#match: vec![], ..rule(7, 5, 4) };
    assert_eq!(application.one(Modify, TableEntry(default)).await, Err(Code::PermissionDenied));
    system.one(Insert, TableEntry(rule(8, 5, 4))).await.unwrap();
    assert_eq!(application.one(Delete, TableEntry(rule(8, 5, 4))).await, Err(Code::PermissionDenied));
    assert_eq!(bench.send(&[1, 5], 0)[0].0, Some(3));
    assert_eq!(bench.send(&[2, 5], 0)[0].0, Some(4));
    let request = p4::SetForwardingPipelineConfigRequest {
        device_id: 1,
        role: "application:7".to_owned(),
        election_id: Some(p4::Uint128 { high: 0, low: 1 }),
        action: p4::set_forwarding_pipeline_config_request::Action::VerifyAndCommit as i32,
        config: Some(p4::ForwardingPipelineConfig { p4_device_config: TAGGED.into(), ..Default::default() }),
        ..Default::default()
    };
    let refused = application.rpc.set_forwarding_pipeline_config(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
}
