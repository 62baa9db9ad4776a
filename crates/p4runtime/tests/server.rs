//! The service with a client of its own: who may write, what entries do, packets and digests, refusals.

mod harness;

use std::sync::Arc;

use harness::{CALL, arbitration, bench, codes, source};
use nicforge_flexnic::p4::Program;
use nicforge_p4runtime::proto::p4::v1 as p4;
use tonic::Code;

use p4::entity::Entity::{self, TableEntry};
use p4::update::Type::{Delete, Insert, Modify};
use p4::write_request::Atomicity::{ContinueOnError, RollbackOnError};

fn ipv4(destination: [u8; 4]) -> Vec<u8> {
    let mut packet = vec![0u8; 64];
    packet[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    packet[12] = 8;
    packet[14] = 0x45;
    packet[22] = 64;
    packet[30..34].copy_from_slice(&destination);
    packet
}

#[tokio::test(flavor = "multi_thread")]
async fn highest_election_id_is_primary_and_others_may_not_write() {
    let bench = bench();
    let mut first = bench.client(1).await;
    assert_eq!(first.standing().await, Code::Ok);
    let mut second = bench.client(5).await;
    assert_eq!(second.standing().await, Code::Ok);
    assert_eq!(first.standing().await, Code::AlreadyExists, "it hears that it is a backup now");
    let route = bench.route([10, 0, 0, 0], 8, 3);
    assert_eq!(first.one(Insert, TableEntry(route.clone())).await, Err(Code::PermissionDenied));
    assert_eq!(second.one(Insert, TableEntry(route.clone())).await, Ok(()));
    assert_eq!(second.one(Insert, TableEntry(route.clone())).await, Err(Code::AlreadyExists));
    assert_eq!(first.read(TableEntry(Default::default())).await, [TableEntry(route.clone())], "backups read");
    drop(second);
    assert_eq!(first.standing().await, Code::NotFound, "nobody is primary");
    first.to.send(arbitration(1, 6)).await.unwrap();
    assert_eq!(first.standing().await, Code::Ok);
    first.election = 6;
    assert_eq!(first.one(Delete, TableEntry(route)).await, Ok(()));
    let mut wrong = bench.client(7).await;
    assert_eq!(wrong.standing().await, Code::Ok);
    wrong.to.send(arbitration(2, 8)).await.unwrap();
    let end = tokio::time::timeout(CALL, wrong.from.message()).await.unwrap();
    assert_eq!(end.unwrap_err().code(), Code::NotFound, "there is no device 2");
    let mut same = bench.client(6).await;
    let end = tokio::time::timeout(CALL, same.from.message()).await.unwrap();
    assert_eq!(end.unwrap_err().code(), Code::InvalidArgument, "the election id is taken");
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_steer_packets_and_wrong_ones_have_their_code() {
    let bench = bench();
    let mut client = bench.client(1).await;
    assert_eq!(client.standing().await, Code::Ok);
    let packet = ipv4([10, 1, 2, 3]);
    assert!(bench.send(&packet, 0).is_empty(), "the default action drops");
    let route = bench.route([10, 0, 0, 0], 8, 3);
    client.one(Insert, TableEntry(route.clone())).await.unwrap();
    assert_eq!(bench.send(&packet, 0)[0].0, Some(3));
    client.one(Modify, TableEntry(bench.route([10, 0, 0, 0], 8, 4))).await.unwrap();
    assert_eq!(bench.send(&packet, 0)[0].0, Some(4));

    let with = |change: &dyn Fn(&mut p4::TableEntry)| {
        let mut entry = bench.route([11, 0, 0, 0], 8, 3);
        change(&mut entry);
        TableEntry(entry)
    };
    let too_wide =
        p4::Action { params: bench.call("forward", &[(7, &[2, 0]), (2, &[1])]).params, ..bench.call("forward", &[]) };
    let wrong: Vec<(Entity, Code)> = vec![
        (with(&|entry| entry.table_id = 7), Code::NotFound),
        (with(&|entry| entry.r#match.clear()), Code::Ok),
        (with(&|entry| entry.priority = 1), Code::InvalidArgument),
        (with(&|entry| entry.r#match[0].field_id = 2), Code::InvalidArgument),
        (with(&|entry| entry.action = None), Code::InvalidArgument),
        (with(&|entry| entry.idle_timeout_ns = 1), Code::Unimplemented),
        (TableEntry(bench.route([11, 0, 0, 1], 8, 3)), Code::InvalidArgument),
        (TableEntry(bench.route([11, 0, 0, 0], 33, 3)), Code::InvalidArgument),
        (
            with(&|entry| {
                let action = Some(p4::table_action::Type::Action(too_wide.clone()));
                entry.action = Some(p4::TableAction { r#type: action });
            }),
            Code::OutOfRange,
        ),
    ];
    for (entity, code) in wrong {
        let result = client.one(Insert, entity.clone()).await.map_or_else(|code| code, |()| Code::Ok);
        assert_eq!(result, code, "{entity:?}");
    }
    assert_eq!(client.one(Delete, TableEntry(bench.route([12, 0, 0, 0], 8, 3))).await, Err(Code::NotFound));

    // One update of three fails: the others are done, or none is.
    let batch = |start: u8| {
        let good = bench.route([start, 0, 0, 0], 8, 3);
        vec![TableEntry(good.clone()), TableEntry(good), TableEntry(bench.route([start + 1, 0, 0, 0], 8, 3))]
    };
    let status = client.write(Insert, batch(20), ContinueOnError).await.unwrap_err();
    assert_eq!((status.code(), codes(&status)), (Code::Unknown, vec![Code::Ok, Code::AlreadyExists, Code::Ok]));
    let before = client.read(TableEntry(Default::default())).await.len();
    let status = client.write(Insert, batch(30), RollbackOnError).await.unwrap_err();
    assert_eq!(codes(&status), [Code::Aborted, Code::AlreadyExists, Code::Aborted]);
    assert_eq!(client.read(TableEntry(Default::default())).await.len(), before);

    let full: Vec<Entity> = (0..65).map(|at| TableEntry(bench.route([100, at, 0, 0], 16, 1))).collect();
    let status = client.write(Insert, full, ContinueOnError).await.unwrap_err();
    assert_eq!(codes(&status).last(), Some(&Code::ResourceExhausted));
    let default = p4::TableEntry { table_id: bench.table("known"), is_default_action: true, ..Default::default() };
    assert_eq!(client.one(Modify, TableEntry(default)).await, Ok(()));
    let default = p4::TableEntry {
        table_id: bench.table("route"),
        is_default_action: true,
        action: Some(p4::TableAction {
            r#type: Some(p4::table_action::Type::Action(bench.call("to_controller", &[]))),
        }),
        ..Default::default()
    };
    assert_eq!(client.one(Modify, TableEntry(default.clone())).await, Ok(()));
    assert_eq!(client.read(TableEntry(default.clone())).await, [TableEntry(default)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_and_digests_go_both_ways() {
    use p4::stream_message_response::Update;
    let bench = bench();
    let mut client = bench.client(1).await;
    assert_eq!(client.standing().await, Code::Ok);
    let mut route = bench.route([10, 0, 0, 0], 8, 0);
    let to_controller = bench.call("to_controller", &[]);
    route.action = Some(p4::TableAction { r#type: Some(p4::table_action::Type::Action(to_controller)) });
    client.one(Insert, TableEntry(route)).await.unwrap();
    let packet = ipv4([10, 1, 2, 3]);
    assert!(bench.send(&packet, 5).is_empty());
    let Update::Packet(arrived) = client.next().await else { panic!("a packet was expected") };
    assert_eq!(arrived.payload, packet);
    assert_eq!(arrived.metadata, [p4::PacketMetadata { metadata_id: 1, value: vec![5] }]);

    let out = |metadata_id, value: &[u8]| {
        let metadata = vec![p4::PacketMetadata { metadata_id, value: value.to_vec() }];
        let packet = p4::PacketOut { payload: packet.clone(), metadata };
        p4::StreamMessageRequest { update: Some(p4::stream_message_request::Update::Packet(packet)) }
    };
    client.to.send(out(1, &[6])).await.unwrap();
    client.to.send(out(2, &[6])).await.unwrap();
    let Update::Error(error) = client.next().await else { panic!("an error was expected") };
    assert_eq!(Code::from(error.canonical_code), Code::InvalidArgument);
    assert_eq!(*bench.sent.lock().unwrap(), [(Some(6), packet.clone())]);

    let digest_id = bench.loaded.info.message.digests[0].preamble.as_ref().unwrap().id;
    let config = Some(p4::digest_entry::Config { max_timeout_ns: 0, max_list_size: 1, ack_timeout_ns: 60_000_000_000 });
    client.one(Insert, Entity::DigestEntry(p4::DigestEntry { digest_id, config })).await.unwrap();
    bench.send(&ipv4([1, 1, 1, 1]), 4);
    let Update::Digest(list) = client.next().await else { panic!("a digest was expected") };
    assert_eq!(list.digest_id, digest_id);
    let Some(p4::p4_data::Data::Struct(members)) = &list.data[0].data else { panic!("{list:?}") };
    assert_eq!(members.members[0].data, Some(p4::p4_data::Data::Bitstring(vec![2, 0, 0, 0, 0, 9])));
    assert_eq!(members.members[1].data, Some(p4::p4_data::Data::Bitstring(vec![4])));
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_read_as_they_were_written() {
    let bench = bench();
    let mut client = bench.client(1).await;
    assert_eq!(client.standing().await, Code::Ok);
    let info = bench.loaded.info.clone();
    let id = |preamble: &Option<nicforge_p4runtime::proto::p4::config::v1::Preamble>| preamble.as_ref().unwrap().id;
    let index = Some(p4::Index { index: 2 });
    let data = Some(p4::CounterData { byte_count: 640, packet_count: 10 });
    let counter = p4::CounterEntry { counter_id: id(&info.message.counters[0].preamble), index, data };
    client.one(Modify, Entity::CounterEntry(counter)).await.unwrap();
    bench.send(&ipv4([1, 1, 1, 1]), 2);
    let read = client.read(Entity::CounterEntry(p4::CounterEntry { data: None, ..counter })).await;
    let Entity::CounterEntry(read) = &read[0] else { panic!("{read:?}") };
    assert_eq!(read.data, Some(p4::CounterData { byte_count: 704, packet_count: 11 }));
    let far = p4::CounterEntry { index: Some(p4::Index { index: 16 }), ..counter };
    assert_eq!(client.one(Modify, Entity::CounterEntry(far)).await, Err(Code::OutOfRange));
    assert_eq!(client.one(Insert, Entity::CounterEntry(counter)).await, Err(Code::InvalidArgument));

    let config = Some(p4::MeterConfig { cir: 5, cburst: 1, pir: 9, pburst: 2, eburst: 0 });
    let meter_id = id(&info.message.meters[0].preamble);
    let meter = p4::MeterEntry { meter_id, index, config, counter_data: None };
    client.one(Modify, Entity::MeterEntry(meter)).await.unwrap();
    assert_eq!(client.read(Entity::MeterEntry(meter)).await, [Entity::MeterEntry(meter)]);

    let value = p4::P4Data { data: Some(p4::p4_data::Data::Bitstring(vec![8, 0])) };
    let register_id = id(&info.message.registers[0].preamble);
    let register = p4::RegisterEntry { register_id, index: Some(p4::Index { index: 1 }), data: Some(value) };
    assert_eq!(client.read(Entity::RegisterEntry(register.clone())).await, [Entity::RegisterEntry(register.clone())]);
    assert_eq!(client.one(Modify, Entity::RegisterEntry(register)).await, Ok(()));

    let exact = p4::field_match::FieldMatchType::Exact(p4::field_match::Exact { value: vec![0x86, 0xdd] });
    let member = p4::ValueSetMember { r#match: vec![p4::FieldMatch { field_id: 1, field_match_type: Some(exact) }] };
    let set = p4::ValueSetEntry { value_set_id: id(&info.message.value_sets[0].preamble), members: vec![member] };
    client.one(Modify, Entity::ValueSetEntry(set.clone())).await.unwrap();
    assert_eq!(client.read(Entity::ValueSetEntry(set.clone())).await, [Entity::ValueSetEntry(set)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_follow_members_and_multicast_groups() {
    let bench = bench();
    let mut client = bench.client(1).await;
    assert_eq!(client.standing().await, Code::Ok);
    let info = bench.loaded.info.clone();
    let id = |preamble: &Option<nicforge_p4runtime::proto::p4::config::v1::Preamble>| preamble.as_ref().unwrap().id;
    // An entry names a group; its packets follow the group's members as they change.
    let action_profile_id = id(&info.message.action_profiles[0].preamble);
    let member = |member_id, port: u8| p4::ActionProfileMember {
        action_profile_id,
        member_id,
        action: Some(bench.call("forward", &[(7, &[port]), (2, &[1])])),
    };
    client.one(Insert, Entity::ActionProfileMember(member(1, 7))).await.unwrap();
    let of = p4::action_profile_group::Member { member_id: 1, weight: 1, watch_kind: None };
    let group = p4::ActionProfileGroup { action_profile_id, group_id: 9, members: vec![of], max_size: 0 };
    client.one(Insert, Entity::ActionProfileGroup(group.clone())).await.unwrap();
    let exact = p4::field_match::FieldMatchType::Exact(p4::field_match::Exact { value: vec![0] });
    let spread = p4::TableEntry {
        table_id: bench.table("spread"),
        r#match: vec![p4::FieldMatch { field_id: 1, field_match_type: Some(exact) }],
        action: Some(p4::TableAction { r#type: Some(p4::table_action::Type::ActionProfileGroupId(9)) }),
        ..Default::default()
    };
    client.one(Insert, TableEntry(spread.clone())).await.unwrap();
    client.one(Insert, TableEntry(bench.route([10, 0, 0, 0], 8, 3))).await.unwrap();
    assert_eq!(bench.send(&ipv4([10, 1, 1, 1]), 2)[0].0, Some(7));
    client.one(Modify, Entity::ActionProfileMember(member(1, 8))).await.unwrap();
    assert_eq!(bench.send(&ipv4([10, 1, 1, 1]), 2)[0].0, Some(8));
    let in_use = client.one(Delete, Entity::ActionProfileGroup(group)).await;
    assert_eq!(in_use, Err(Code::FailedPrecondition));
    let of_table = p4::TableEntry { table_id: bench.table("spread"), ..Default::default() };
    assert_eq!(client.read(TableEntry(of_table)).await, [TableEntry(spread)]);

    // A multicast group.
    let replica = |port: u8| p4::Replica { instance: 1, port_kind: Some(p4::replica::PortKind::Port(vec![port])) };
    let replicas = vec![replica(1), replica(2)];
    let multicast = p4::MulticastGroupEntry { multicast_group_id: 4, replicas, metadata: Vec::new() };
    let kind = Some(p4::packet_replication_engine_entry::Type::MulticastGroupEntry(multicast));
    let entity = Entity::PacketReplicationEngineEntry(p4::PacketReplicationEngineEntry { r#type: kind });
    client.one(Insert, entity.clone()).await.unwrap();
    assert_eq!(client.read(entity.clone()).await, [entity]);
    let mut route = bench.route([11, 0, 0, 0], 8, 0);
    let replicate = bench.call("replicate", &[(1, &[4])]);
    route.action = Some(p4::TableAction { r#type: Some(p4::table_action::Type::Action(replicate)) });
    client.one(Insert, TableEntry(route)).await.unwrap();
    assert_eq!(bench.send(&ipv4([11, 1, 1, 1]), 2).iter().map(|out| out.0).collect::<Vec<_>>(), [Some(1), Some(2)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_change_and_wrong_ones_are_refused() {
    use p4::set_forwarding_pipeline_config_request::Action;
    let bench = bench();
    let mut client = bench.client(1).await;
    assert_eq!(client.standing().await, Code::Ok);
    client.one(Insert, TableEntry(bench.route([10, 0, 0, 0], 8, 3))).await.unwrap();
    let request = |action: Action, source: &str| p4::SetForwardingPipelineConfigRequest {
        device_id: 1,
        election_id: Some(p4::Uint128 { high: 0, low: 1 }),
        action: action as i32,
        config: Some(p4::ForwardingPipelineConfig {
            p4info: None,
            p4_device_config: source.as_bytes().to_vec(),
            cookie: Some(p4::forwarding_pipeline_config::Cookie { cookie: 77 }),
        }),
        ..Default::default()
    };
    let mut set = async |action, source: &str| client.rpc.set_forwarding_pipeline_config(request(action, source)).await;
    let status = set(Action::VerifyAndCommit, "parser P(").await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("program.p4"), "{}", status.message());
    let outside = set(Action::Verify, "#include \"/etc/hostname\"\n").await.unwrap_err();
    assert!(outside.message().contains("no file"), "{}", outside.message());
    let other = source().replace("default_action = drop();", "default_action = replicate(1);");
    set(Action::Verify, &other).await.unwrap();
    assert_eq!(bench.send(&ipv4([10, 1, 1, 1]), 0)[0].0, Some(3), "a check changes nothing");
    set(Action::VerifyAndCommit, &other).await.unwrap();
    assert!(bench.send(&ipv4([10, 1, 1, 1]), 0).is_empty(), "the new program begins without entries");
    let answer = client
        .rpc
        .get_forwarding_pipeline_config(p4::GetForwardingPipelineConfigRequest { device_id: 1, response_type: 0 });
    let config = answer.await.unwrap().into_inner().config.unwrap();
    assert_eq!(config.cookie.unwrap().cookie, 77);
    assert_eq!(config.p4_device_config, other.as_bytes());
    assert_eq!(config.p4info.unwrap(), bench_info(&other));
    let mut backup = bench.client(0).await;
    let refused = backup.rpc.set_forwarding_pipeline_config(request(Action::Commit, "")).await;
    assert!(refused.is_err());
}

fn bench_info(source: &str) -> nicforge_p4runtime::proto::p4::config::v1::P4Info {
    let program = Program::compile_text("program.p4", source, &Default::default()).unwrap_or_else(|e| panic!("{e}"));
    nicforge_p4runtime::Info::new(&program).message
}

/// Packets run all the time while routes and whole programs change: each packet sees one state or the other.
#[tokio::test(flavor = "multi_thread")]
async fn no_packet_sees_half_of_a_change_and_none_is_lost() {
    let bench = bench();
    let mut client = bench.client(1).await;
    assert_eq!(client.standing().await, Code::Ok);
    client.one(Insert, TableEntry(bench.route([10, 0, 0, 0], 8, 3))).await.unwrap();
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (shared, end) = (bench.shared.clone(), stop.clone());
    let traffic = std::thread::spawn(move || {
        let (mut sent, mut left, packet) = (0u64, 0u64, ipv4([10, 1, 1, 1]));
        while !end.load(std::sync::atomic::Ordering::Relaxed) {
            sent += 1;
            shared.process(&packet, 0, false, 0, &mut |output| {
                left += 1;
                // Port and address are one change: 3 with 3, or 4 with 4.
                assert_eq!(output.port, Some(u32::from(output.packet[5])));
            });
        }
        (sent, left)
    });
    for round in 0..200u8 {
        // A batch that takes the route away and puts another in its place.
        let port = 3 + round % 2;
        let old = p4::Update {
            r#type: Delete as i32,
            entity: Some(p4::Entity { entity: Some(TableEntry(bench.route([10, 0, 0, 0], 8, 0))) }),
        };
        let new = p4::Update {
            r#type: Insert as i32,
            entity: Some(p4::Entity { entity: Some(TableEntry(bench.route([10, 0, 0, 0], 8, port))) }),
        };
        let request = p4::WriteRequest {
            device_id: 1,
            election_id: Some(p4::Uint128 { high: 0, low: 1 }),
            updates: vec![old, new],
            ..Default::default()
        };
        client.rpc.write(request).await.unwrap();
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let (sent, left) = traffic.join().unwrap();
    assert!(sent > 0);
    assert_eq!(sent, left, "each packet left");
}
