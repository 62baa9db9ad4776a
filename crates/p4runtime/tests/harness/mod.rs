//! A server with a program, and clients of it.
#![allow(dead_code)] // Each test binary uses a part of this.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nicforge_flexnic::p4::{Engine, Program, Shared};
use nicforge_p4runtime::proto::google::rpc;
use nicforge_p4runtime::proto::p4::v1::{self as p4, p4_runtime_client::P4RuntimeClient};
use nicforge_p4runtime::{Listen, Loaded, Options, Running, serve};
use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Streaming};

pub const CPU: u32 = 510;
pub const CALL: Duration = Duration::from_secs(20);

/// Port and bytes of a packet that left.
pub type Left = (Option<u32>, Vec<u8>);

pub struct Bench {
    pub server: Running,
    pub shared: Shared,
    pub loaded: Loaded,
    pub sent: Arc<Mutex<Vec<Left>>>,
}

pub fn source() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/p4/everything.p4");
    std::fs::read_to_string(path).expect("the program is beside the test")
}

pub fn bench() -> Bench {
    bench_of(&source())
}

/// A server with this program.
pub fn bench_of(source: &str) -> Bench {
    let program = Program::compile_text("everything.p4", source, &Default::default()).unwrap_or_else(|e| panic!("{e}"));
    let shared = Shared::new(program.pipeline(Engine::Compiled, 1).unwrap(), Some(CPU));
    let sent: Arc<Mutex<Vec<_>>> = Arc::default();
    let (inject_to, out) = (shared.clone(), sent.clone());
    let loaded = Loaded::new(program, source.as_bytes());
    let options = Options {
        device_id: 1,
        shared: shared.clone(),
        loaded: Some(loaded.clone()),
        engine: Engine::Compiled,
        seed: 1,
        target: None,
        inject: Box::new(move |packet| {
            inject_to.process(&packet, CPU, false, 0, &mut |output| {
                out.lock().unwrap().push((output.port, output.packet.to_vec()));
            });
        }),
    };
    let server = serve(&Listen::Tcp("127.0.0.1:0".parse().unwrap()), options).unwrap_or_else(|error| panic!("{error}"));
    Bench { server, shared, loaded, sent }
}

pub struct Client {
    pub rpc: P4RuntimeClient<Channel>,
    pub to: mpsc::Sender<p4::StreamMessageRequest>,
    pub from: Streaming<p4::StreamMessageResponse>,
    pub election: u64,
    pub role: String,
}

impl Bench {
    pub async fn channel(&self) -> Channel {
        let Listen::Tcp(address) = &self.server.at else { panic!("the test listens on TCP") };
        Endpoint::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap()
    }

    pub async fn client(&self, election: u64) -> Client {
        self.client_of(election, "").await
    }

    /// A client of a role.
    pub async fn client_of(&self, election: u64, role: &str) -> Client {
        let mut rpc = P4RuntimeClient::new(self.channel().await);
        let (to, requests) = mpsc::channel(64);
        let from = tokio::time::timeout(CALL, async {
            to.send(arbitration_of(1, election, role)).await.unwrap();
            rpc.stream_channel(ReceiverStream::new(requests)).await.unwrap().into_inner()
        });
        let from = from.await.expect("the stream opens");
        Client { rpc, to, from, election, role: role.to_owned() }
    }

    pub fn table(&self, alias: &str) -> u32 {
        let tables = &self.loaded.info.message.tables;
        let preambles = tables.iter().filter_map(|table| table.preamble.as_ref());
        preambles.filter(|preamble| preamble.alias == alias).map(|preamble| preamble.id).next().unwrap()
    }

    pub fn action(&self, alias: &str) -> u32 {
        let actions = self.loaded.info.message.actions.iter().filter_map(|action| action.preamble.as_ref());
        actions.filter(|preamble| preamble.alias == alias).map(|preamble| preamble.id).next().unwrap()
    }

    pub fn call(&self, action: &str, params: &[(u32, &[u8])]) -> p4::Action {
        let param = |(param_id, value): &(u32, &[u8])| p4::action::Param { param_id: *param_id, value: value.to_vec() };
        p4::Action { action_id: self.action(action), params: params.iter().map(param).collect() }
    }

    pub fn route(&self, prefix: [u8; 4], length: i32, port: u8) -> p4::TableEntry {
        let lpm = p4::field_match::Lpm { value: prefix.to_vec(), prefix_len: length };
        let field_match_type = Some(p4::field_match::FieldMatchType::Lpm(lpm));
        let action = self.call("forward", &[(7, &[port]), (2, &[2, 0, 0, 0, 0, port])]);
        p4::TableEntry {
            table_id: self.table("route"),
            r#match: vec![p4::FieldMatch { field_id: 1, field_match_type }],
            action: Some(p4::TableAction { r#type: Some(p4::table_action::Type::Action(action)) }),
            ..Default::default()
        }
    }

    pub fn send(&self, packet: &[u8], port: u32) -> Vec<Left> {
        let mut out = Vec::new();
        self.shared.process(packet, port, false, 0, &mut |output| out.push((output.port, output.packet.to_vec())));
        out
    }
}

pub fn arbitration(device_id: u64, election: u64) -> p4::StreamMessageRequest {
    arbitration_of(device_id, election, "")
}

fn arbitration_of(device_id: u64, election: u64, role: &str) -> p4::StreamMessageRequest {
    let election_id = Some(p4::Uint128 { high: 0, low: election });
    let role = (!role.is_empty()).then(|| p4::Role { name: role.to_owned(), ..Default::default() });
    let update = p4::MasterArbitrationUpdate { device_id, election_id, role, ..Default::default() };
    p4::StreamMessageRequest { update: Some(p4::stream_message_request::Update::Arbitration(update)) }
}

impl Client {
    pub async fn next(&mut self) -> p4::stream_message_response::Update {
        let message = tokio::time::timeout(CALL, self.from.message()).await.expect("a message arrives");
        message.unwrap().expect("the stream is open").update.expect("the message is not empty")
    }

    pub async fn standing(&mut self) -> Code {
        match self.next().await {
            p4::stream_message_response::Update::Arbitration(update) => update.status.unwrap().code.into(),
            other => panic!("{other:?}"),
        }
    }

    pub async fn write(
        &mut self,
        kind: p4::update::Type,
        entities: Vec<p4::entity::Entity>,
        atomicity: p4::write_request::Atomicity,
    ) -> Result<(), tonic::Status> {
        let update = |entity| p4::Update { r#type: kind as i32, entity: Some(p4::Entity { entity: Some(entity) }) };
        let request = p4::WriteRequest {
            device_id: 1,
            role: self.role.clone(),
            election_id: Some(p4::Uint128 { high: 0, low: self.election }),
            updates: entities.into_iter().map(update).collect(),
            atomicity: atomicity as i32,
            ..Default::default()
        };
        self.rpc.write(request).await.map(drop)
    }

    pub async fn one(&mut self, kind: p4::update::Type, entity: p4::entity::Entity) -> Result<(), Code> {
        let result = self.write(kind, vec![entity], p4::write_request::Atomicity::ContinueOnError).await;
        result.map_err(|status| codes(&status)[0])
    }

    pub async fn read(&mut self, entity: p4::entity::Entity) -> Vec<p4::entity::Entity> {
        let entities = vec![p4::Entity { entity: Some(entity) }];
        let request = p4::ReadRequest { device_id: 1, entities, ..Default::default() };
        let mut answers = self.rpc.read(request).await.unwrap().into_inner();
        let mut found = Vec::new();
        while let Some(answer) = answers.message().await.unwrap() {
            found.extend(answer.entities.into_iter().map(|entity| entity.entity.unwrap()));
        }
        found
    }
}

/// The codes of a batch's updates, or the request's own.
pub fn codes(status: &tonic::Status) -> Vec<Code> {
    let details = rpc::Status::decode(status.details()).expect("details are a status").details;
    if details.is_empty() {
        return vec![status.code()];
    }
    let error = |any: &prost_types::Any| p4::Error::decode(&any.value[..]).expect("each detail is an error");
    details.iter().map(|any| error(any).canonical_code.into()).collect()
}
