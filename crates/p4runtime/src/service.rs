//! The gRPC service.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use nicforge_flexnic::p4::target::Target;
use nicforge_flexnic::p4::{Engine, Shared};
use tokio::sync::{Notify, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::{Code, Request, Response, Status, Streaming};

use crate::arbitration::{Clients, StreamId, ToClient, WAITING_MAX};
use crate::control;
use crate::device::{Device, Known, Loaded, cycles_on, verify};
use crate::digests::Digests;
use crate::packets::{packet_in, packet_out};
use crate::protection::Tag;
use crate::proto::p4::v1 as p4;
use crate::proto::p4::v1::p4_runtime_server::P4Runtime;
use crate::read;
use crate::refusal::{Refusal, batch};
use crate::types::to_data;
use p4::get_forwarding_pipeline_config_request::ResponseType;
use p4::set_forwarding_pipeline_config_request::Action;
use p4::stream_message_request::Update as FromClient;
use p4::stream_message_response::Update as ToClientUpdate;

/// Version of the protocol.
const VERSION: &str = "1.4.1";

/// Entities of one message of a long answer.
const ENTITIES: usize = 512;

/// How often digests are looked at that wait for their time.
const TICK: Duration = Duration::from_millis(5);

/// Takes a packet of a controller to the program.
pub type Inject = Box<dyn Fn(Vec<u8>) + Send + Sync>;

/// What the service works on.
pub struct Options {
    /// The device's number.
    pub device_id: u64,
    /// The pipeline that the packet path runs.
    pub shared: Shared,
    /// Its program.
    pub loaded: Option<Loaded>,
    /// Engine of programs that controllers send.
    pub engine: Engine,
    /// Seed of their random numbers.
    pub seed: u64,
    /// Programs that do not fit on it are refused.
    pub target: Option<Target>,
    /// Where packets of controllers go.
    pub inject: Inject,
}

struct State {
    device_id: u64,
    device: Mutex<Device>,
    clients: Mutex<Clients>,
    shared: Shared,
    inject: Inject,
    messages: Notify,
}

/// The service; clones are the same one.
#[derive(Clone)]
pub struct Service {
    state: Arc<State>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Service {
    /// A service; [`deliver`](Self::deliver) has to run beside it.
    pub fn new(options: Options) -> Service {
        let shared = options.shared.clone();
        let device = Device {
            shared: options.shared,
            engine: options.engine,
            seed: options.seed,
            target: options.target,
            loaded: options.loaded,
            saved: None,
            known: Known::default(),
            digests: Digests::default(),
        };
        let state = Arc::new(State {
            device_id: options.device_id,
            device: Mutex::new(device),
            clients: Mutex::default(),
            shared: shared.clone(),
            inject: options.inject,
            messages: Notify::new(),
        });
        let weak = Arc::downgrade(&state);
        shared.on_messages(move || {
            if let Some(state) = weak.upgrade() {
                state.messages.notify_one();
            }
        });
        Service { state }
    }

    /// Takes packets and digests from the program to the controllers, for ever.
    pub async fn deliver(self) {
        loop {
            // Digests that wait for their time need the clock, everything else the program's word.
            let _ = tokio::time::timeout(TICK, self.state.messages.notified()).await;
            self.state.deliver();
        }
    }
}

/// What a client in the same process uses.
impl Service {
    pub(crate) fn open(&self) -> StreamId {
        lock(&self.state.clients).open()
    }

    pub(crate) fn close(&self, stream: StreamId) {
        lock(&self.state.clients).close(stream, self.state.device_id);
    }

    pub(crate) fn on_stream(
        &self,
        stream: StreamId,
        to: &ToClient,
        message: p4::StreamMessageRequest,
    ) -> Result<(), Status> {
        self.state.hear(stream, to, message)
    }

    pub(crate) fn on_write(&self, request: &p4::WriteRequest) -> Result<(), Status> {
        self.state.write(request)
    }

    pub(crate) fn on_read(&self, request: &p4::ReadRequest) -> Result<Vec<p4::Entity>, Status> {
        self.state.read(request).map_err(Status::from)
    }

    pub(crate) fn on_config(&self, request: &p4::SetForwardingPipelineConfigRequest) -> Result<(), Status> {
        self.state.set_config(request).map_err(Status::from)
    }

    pub(crate) fn deliver_now(&self) {
        self.state.deliver();
    }
}

impl State {
    fn read(&self, request: &p4::ReadRequest) -> Result<Vec<p4::Entity>, Refusal> {
        self.check_device(request.device_id)?;
        read::read(&lock(&self.device), request)
    }

    fn deliver(&self) {
        let packets = self.shared.take_packets();
        let mut messages = Vec::new();
        {
            let mut device = lock(&self.device);
            let Some(loaded) = device.loaded.clone() else { return };
            for packet in packets {
                messages.push(ToClientUpdate::Packet(packet_in(&loaded.program, &packet)));
            }
            let digests = device.shared.lock().take_digests();
            let now = Instant::now();
            for digest in digests {
                let number = digest.receiver as usize;
                let Some(object) = loaded.program.ir().objects.get(number) else { continue };
                let nicforge_flexnic::p4::ir::ObjectKind::Digest { element } = &object.kind else { continue };
                let mut scalars = digest.values.into_iter().map(|(_, words)| words);
                let value = to_data(element, &mut scalars);
                device.digests.push(loaded.info.object_id(number), value, now);
            }
            messages.extend(device.digests.due(now).into_iter().map(ToClientUpdate::Digest));
        }
        if messages.is_empty() {
            return;
        }
        let clients = lock(&self.clients);
        for update in messages {
            clients.send_to_primaries(&p4::StreamMessageResponse { update: Some(update) });
        }
    }

    fn check_device(&self, device_id: u64) -> Result<(), Refusal> {
        if device_id == self.device_id {
            return Ok(());
        }
        Err(Refusal::missing(format!("there is no device {device_id}; this is {}", self.device_id)))
    }

    /// A message on a client's stream; an error ends the stream.
    fn hear(&self, stream: StreamId, to: &ToClient, message: p4::StreamMessageRequest) -> Result<(), Status> {
        let answer = |error: p4::StreamError| {
            // A client that reads nothing misses its errors.
            let _ = to.try_send(Ok(p4::StreamMessageResponse { update: Some(ToClientUpdate::Error(error)) }));
        };
        let error = |refusal: Refusal| p4::StreamError {
            canonical_code: refusal.code as i32,
            message: refusal.message,
            ..Default::default()
        };
        match message.update {
            Some(FromClient::Arbitration(update)) => {
                lock(&self.clients).arbitrate(stream, to, self.device_id, &update)?;
            }
            Some(FromClient::Packet(packet)) => {
                if let Err(refusal) = self.packet_out(stream, &packet) {
                    let details = p4::PacketOutError { packet_out: Some(packet) };
                    let details = Some(p4::stream_error::Details::PacketOut(details));
                    answer(p4::StreamError { details, ..error(refusal) });
                }
            }
            Some(FromClient::DigestAck(ack)) => {
                if !lock(&self.device).digests.acknowledge(&ack) {
                    let details = p4::DigestListAckError { digest_list_ack: Some(ack) };
                    let details = Some(p4::stream_error::Details::DigestListAck(details));
                    answer(p4::StreamError { details, ..error(Refusal::missing("there is no such list of digests")) });
                }
            }
            Some(FromClient::Other(_)) => answer(error(Refusal::unimplemented("there are no messages of other kinds"))),
            None => answer(error(Refusal::invalid("the message is empty"))),
        }
        Ok(())
    }

    fn packet_out(&self, stream: StreamId, packet: &p4::PacketOut) -> Result<(), Refusal> {
        if !lock(&self.clients).is_primary(stream) {
            return Err(Refusal::new(Code::PermissionDenied, "only the primary client sends packets"));
        }
        let bytes = packet_out(&lock(&self.device).loaded()?.program, packet)?;
        (self.inject)(bytes);
        Ok(())
    }

    fn write(&self, request: &p4::WriteRequest) -> Result<(), Status> {
        self.check_device(request.device_id)?;
        lock(&self.clients).check_primary(&request.role, request.election_id.as_ref())?;
        let results = control::write(&mut lock(&self.device), request)?;
        if results.iter().any(Result::is_err) { Err(batch(&results)) } else { Ok(()) }
    }

    fn set_config(&self, request: &p4::SetForwardingPipelineConfigRequest) -> Result<(), Refusal> {
        self.check_device(request.device_id)?;
        lock(&self.clients).check_primary(&request.role, request.election_id.as_ref())?;
        if Tag::of_role(&request.role)?.is_some() {
            return Err(Refusal::new(Code::PermissionDenied, "programs are the operating system's"));
        }
        let action = Action::try_from(request.action).unwrap_or(Action::Unspecified);
        let verified = || {
            let config = request.config.as_ref().ok_or_else(|| Refusal::invalid("the request has no configuration"))?;
            // Compiling takes a while, and packets and other clients go on meanwhile.
            let (present, target) = {
                let device = lock(&self.device);
                (device.loaded.clone(), device.target.clone())
            };
            let mut loaded = verify(config, present.as_ref())?;
            loaded.cycles = cycles_on(target.as_ref(), &loaded.program)?;
            Ok(loaded)
        };
        match action {
            Action::Unspecified => Err(Refusal::invalid("the request has no action")),
            Action::Verify => verified().map(drop),
            Action::VerifyAndSave => {
                lock(&self.device).saved = Some(verified()?);
                Ok(())
            }
            Action::VerifyAndCommit => {
                let loaded = verified()?;
                let mut device = lock(&self.device);
                let pipeline = device.pipeline(&loaded)?;
                device.commit(loaded, pipeline);
                Ok(())
            }
            Action::Commit => {
                if request.config.is_some() {
                    return Err(Refusal::invalid("a commit has no configuration: it takes the saved one"));
                }
                let mut device = lock(&self.device);
                let missing = || Refusal::new(Code::FailedPrecondition, "no configuration is saved");
                let loaded = device.saved.take().ok_or_else(missing)?;
                let pipeline = device.pipeline(&loaded)?;
                device.commit(loaded, pipeline);
                Ok(())
            }
            Action::ReconcileAndCommit => {
                Err(Refusal::unimplemented("entries do not move to another program: VERIFY_AND_COMMIT begins anew"))
            }
        }
    }

    fn get_config(
        &self,
        request: &p4::GetForwardingPipelineConfigRequest,
    ) -> Result<p4::ForwardingPipelineConfig, Refusal> {
        self.check_device(request.device_id)?;
        let kind = ResponseType::try_from(request.response_type);
        let kind = kind.map_err(|_| Refusal::invalid(format!("there is no answer {}", request.response_type)))?;
        let device = lock(&self.device);
        let Some(loaded) = &device.loaded else {
            return Ok(p4::ForwardingPipelineConfig::default());
        };
        let with_info = matches!(kind, ResponseType::All | ResponseType::P4infoAndCookie);
        let with_program = matches!(kind, ResponseType::All | ResponseType::DeviceConfigAndCookie);
        Ok(p4::ForwardingPipelineConfig {
            p4info: with_info.then(|| loaded.info.message.clone()),
            p4_device_config: if with_program { loaded.source.to_vec() } else { Vec::new() },
            cookie: loaded.cookie.map(|cookie| p4::forwarding_pipeline_config::Cookie { cookie }),
        })
    }
}

/// Runs work that takes a lock for long, or compiles, beside the threads that serve streams.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Status> {
    let result = tokio::task::spawn_blocking(work).await;
    result.map_err(|error| Status::internal(format!("the request failed: {error}")))
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl P4Runtime for Service {
    type ReadStream = Answers<p4::ReadResponse>;
    type StreamChannelStream = Answers<p4::StreamMessageResponse>;

    async fn write(&self, request: Request<p4::WriteRequest>) -> Result<Response<p4::WriteResponse>, Status> {
        let state = self.state.clone();
        apart(move || state.write(request.get_ref())).await??;
        Ok(Response::new(p4::WriteResponse {}))
    }

    async fn read(&self, request: Request<p4::ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        let state = self.state.clone();
        let entities = apart(move || state.read(request.get_ref()));
        let entities = entities.await?.map_err(Status::from)?;
        let parts: Vec<_> =
            entities.chunks(ENTITIES).map(|part| Ok(p4::ReadResponse { entities: part.to_vec() })).collect();
        Ok(Response::new(Box::pin(tokio_stream::iter(parts))))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<p4::SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<p4::SetForwardingPipelineConfigResponse>, Status> {
        let state = self.state.clone();
        apart(move || state.set_config(request.get_ref())).await??;
        Ok(Response::new(p4::SetForwardingPipelineConfigResponse {}))
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<p4::GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<p4::GetForwardingPipelineConfigResponse>, Status> {
        let config = self.state.get_config(request.get_ref())?;
        Ok(Response::new(p4::GetForwardingPipelineConfigResponse { config: Some(config) }))
    }

    async fn stream_channel(
        &self,
        request: Request<Streaming<p4::StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        let mut messages = request.into_inner();
        let (to, from) = mpsc::channel(WAITING_MAX);
        let state = self.state.clone();
        let stream = lock(&state.clients).open();
        tokio::spawn(async move {
            loop {
                let message = tokio::select! {
                    message = messages.next() => message,
                    () = to.closed() => None,
                };
                let Some(Ok(message)) = message else { break };
                if let Err(status) = state.hear(stream, &to, message) {
                    // The stream ends with this; a client that is gone does not hear it.
                    let _ = to.send(Err(status)).await;
                    break;
                }
            }
            lock(&state.clients).close(stream, state.device_id);
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(from))))
    }

    async fn capabilities(
        &self,
        _request: Request<p4::CapabilitiesRequest>,
    ) -> Result<Response<p4::CapabilitiesResponse>, Status> {
        let version = VERSION.to_owned();
        Ok(Response::new(p4::CapabilitiesResponse { p4runtime_api_version: version, experimental: None }))
    }
}
