//! A controller of a running NIC, over a Unix socket or TCP: no Python needed.

use std::path::Path;
use std::time::{Duration, Instant};

use nicforge_p4runtime::proto::p4::config::v1::P4Info;
use nicforge_p4runtime::proto::p4::v1::p4_runtime_client::P4RuntimeClient;
use nicforge_p4runtime::proto::p4::v1::{self as p4, field_match, stream_message_request, stream_message_response};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::{Channel, Endpoint};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
const ELECTION: p4::Uint128 = p4::Uint128 { high: 0, low: 1 };

/// The primary controller of a device.
pub struct Controller {
    runtime: Runtime,
    rpc: P4RuntimeClient<Channel>,
    to: mpsc::Sender<p4::StreamMessageRequest>,
    from: Streaming<p4::StreamMessageResponse>,
    device: u64,
    info: P4Info,
}

/// The value of a key: an exact one, or a prefix of that many bits.
pub enum Key<'a> {
    Exact(&'a [u8]),
    Prefix(&'a [u8], i32),
}

impl Controller {
    /// Becomes the primary controller of `device` at a socket, which may be there only in a moment.
    pub fn of_socket(socket: &Path, device: u64) -> Controller {
        Controller::connect(&format!("unix:{}", socket.display()), device)
    }

    /// The same at a place that tonic knows. The calling thread's network is used.
    pub fn connect(place: &str, device: u64) -> Controller {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (rpc, to, from) = runtime.block_on(async {
            let until = Instant::now() + PATIENCE;
            let channel = loop {
                match Endpoint::from_shared(place.to_owned()).unwrap().connect().await {
                    Ok(channel) => break channel,
                    Err(error) => assert!(Instant::now() < until, "{place}: {error}"),
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            };
            let mut rpc = P4RuntimeClient::new(channel);
            let (to, requests) = mpsc::channel(64);
            let update =
                p4::MasterArbitrationUpdate { device_id: device, election_id: Some(ELECTION), ..Default::default() };
            let update = stream_message_request::Update::Arbitration(update);
            to.send(p4::StreamMessageRequest { update: Some(update) }).await.unwrap();
            let from = rpc.stream_channel(ReceiverStream::new(requests)).await.unwrap().into_inner();
            (rpc, to, from)
        });
        let mut controller = Controller { runtime, rpc, to, from, device, info: P4Info::default() };
        assert!(matches!(controller.hears(), stream_message_response::Update::Arbitration(_)));
        controller.learn();
        controller
    }

    /// The next message of the stream.
    pub fn hears(&mut self) -> stream_message_response::Update {
        let from = &mut self.from;
        let message = self.runtime.block_on(async { tokio::time::timeout(PATIENCE, from.message()).await });
        message.expect("a message comes").unwrap().expect("the stream is open").update.expect("it says something")
    }

    /// Sends a packet; `metadata` is the port, as the program's header has it.
    pub fn sends(&mut self, payload: Vec<u8>, metadata: Vec<u8>) {
        let metadata = vec![p4::PacketMetadata { metadata_id: 1, value: metadata }];
        let update = stream_message_request::Update::Packet(p4::PacketOut { payload, metadata });
        self.to.blocking_send(p4::StreamMessageRequest { update: Some(update) }).unwrap();
        // The stream's task runs while this thread waits for something.
        self.runtime.block_on(async { tokio::time::sleep(Duration::from_millis(50)).await });
    }

    /// Puts a program in place of the present one; a refusal is the error.
    pub fn set_program(&mut self, text: &str) -> Result<(), tonic::Status> {
        let config = p4::ForwardingPipelineConfig { p4_device_config: text.into(), ..Default::default() };
        let request = p4::SetForwardingPipelineConfigRequest {
            device_id: self.device,
            election_id: Some(ELECTION),
            action: p4::set_forwarding_pipeline_config_request::Action::VerifyAndCommit as i32,
            config: Some(config),
            ..Default::default()
        };
        self.runtime.block_on(self.rpc.set_forwarding_pipeline_config(request))?;
        self.learn();
        Ok(())
    }

    fn learn(&mut self) {
        let request = p4::GetForwardingPipelineConfigRequest { device_id: self.device, ..Default::default() };
        let config = self.runtime.block_on(self.rpc.get_forwarding_pipeline_config(request)).unwrap();
        self.info = config.into_inner().config.unwrap().p4info.unwrap();
    }

    /// An entry with one key.
    pub fn entry(&self, table: &str, key: Key<'_>, action: &str, data: &[&[u8]]) -> p4::TableEntry {
        let mut tables = self.info.tables.iter().filter_map(|table| table.preamble.as_ref());
        let mut actions = self.info.actions.iter().filter_map(|action| action.preamble.as_ref());
        let table_id = tables.find(|known| known.alias == table).expect("the program has the table").id;
        let action_id = actions.find(|known| known.alias == action).expect("the program has the action").id;
        let kind = match key {
            Key::Exact(value) => field_match::FieldMatchType::Exact(field_match::Exact { value: value.to_vec() }),
            Key::Prefix(value, prefix_len) => {
                field_match::FieldMatchType::Lpm(field_match::Lpm { value: value.to_vec(), prefix_len })
            }
        };
        let param = |(number, value): (u32, &&[u8])| p4::action::Param { param_id: number, value: value.to_vec() };
        let action = p4::Action { action_id, params: (1..).zip(data).map(param).collect() };
        p4::TableEntry {
            table_id,
            r#match: vec![p4::FieldMatch { field_id: 1, field_match_type: Some(kind) }],
            action: Some(p4::TableAction { r#type: Some(p4::table_action::Type::Action(action)) }),
            ..Default::default()
        }
    }

    /// Writes entries as one batch.
    pub fn write(&mut self, kind: p4::update::Type, entries: Vec<p4::TableEntry>) -> Result<(), tonic::Status> {
        let update = |entry| p4::Update {
            r#type: kind as i32,
            entity: Some(p4::Entity { entity: Some(p4::entity::Entity::TableEntry(entry)) }),
        };
        let request = p4::WriteRequest {
            device_id: self.device,
            election_id: Some(ELECTION),
            updates: entries.into_iter().map(update).collect(),
            atomicity: p4::write_request::Atomicity::DataplaneAtomic as i32,
            ..Default::default()
        };
        self.runtime.block_on(self.rpc.write(request)).map(drop)
    }
}
