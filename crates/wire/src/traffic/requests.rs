//! Requests of many clients to a key-value store: GETs, PUTs and DELETEs, one per frame.
//!
//! A client computes the hash of the key, and from it the partition; by its source port it makes
//! the NIC bring the request to that partition's queue. Open loop or closed loop: see
//! [`ArrivalModel`].

use std::net::Ipv4Addr;

use nicforge_units::{BitRate, Time};
use rand_pcg::Pcg64;

use super::arrival::{ArrivalModel, Clock};
use super::flows::{FlowChoice, FlowPicker, FlowSpace};
use super::line::Line;
use super::pairs::PairSpace;
use super::random::{generator, unit};
use super::sizes::check_size;
use super::steered::SteeredPorts;
use super::template::{PAYLOAD, Template};
use super::{Arrival, TrafficError};
use crate::headers::{KVS_HEADER_LEN, KVS_PORT, KvsOperation, KvsView, MacAddress, key_hash, partition_of};

/// Bytes of all headers in front of a request's key.
pub const REQUEST_HEADERS_LEN: usize = PAYLOAD + KVS_HEADER_LEN;

/// Where hash and tag are in a request.
const HASH: usize = 8;
const TAG: usize = 16;

/// What requests are to look like.
#[derive(Clone, Debug)]
pub struct RequestConfig {
    /// Seed of all draws but the clients' addresses and the keys.
    pub seed: u64,
    /// The line that they come in on.
    pub line: Line,
    /// When they arrive; ping-pong is a closed loop.
    pub arrival: ArrivalModel,
    /// The clients: of a flow's tuple only the source address counts.
    pub clients: FlowSpace,
    /// Which client each request is of.
    pub client_choice: FlowChoice,
    /// Keys and values.
    pub pairs: PairSpace,
    /// Which key each request is for.
    pub key_choice: FlowChoice,
    /// Share of PUTs, 0 to 1.
    pub put_share: f64,
    /// Share of DELETEs, 0 to 1 less that of PUTs; the rest are GETs.
    pub delete_share: f64,
    /// Queues of the NIC; each has a partition of the keys.
    pub queues: u16,
    /// The store's address.
    pub server: Ipv4Addr,
    /// Source address of all frames.
    pub source: MacAddress,
    /// Destination address of all frames.
    pub destination: MacAddress,
}

/// A source of requests.
#[derive(Clone, Debug)]
pub struct Requests {
    clock: Clock,
    clients: FlowSpace,
    client_picker: FlowPicker,
    pairs: PairSpace,
    key_picker: FlowPicker,
    put_share: f64,
    /// Of PUTs and DELETEs together.
    change_share: f64,
    operation_random: Pcg64,
    steered: SteeredPorts,
    queues: u16,
    server: Ipv4Addr,
    get: Template,
    put: Template,
    delete: Template,
    key: Vec<u8>,
    sequence: u64,
}

impl Requests {
    /// A source, or what is wrong with its configuration.
    pub fn new(config: RequestConfig) -> Result<Requests, TrafficError> {
        let change_share = config.put_share + config.delete_share;
        for share in [config.put_share, config.delete_share, change_share] {
            if !(0.0..=1.0).contains(&share) {
                return Err(TrafficError::Share(share));
            }
        }
        // Keys are drawn as flows are: both are numbers below a count.
        let keys = FlowSpace::new(0, config.pairs.count())?;
        let pick = |space, choice, purpose| FlowPicker::new(space, choice, None, generator(config.seed, purpose));
        Ok(Requests {
            clock: Clock::new(config.arrival, config.line, generator(config.seed, 0))?,
            clients: config.clients,
            client_picker: pick(&config.clients, config.client_choice, 1)?,
            pairs: config.pairs,
            key_picker: pick(&keys, config.key_choice, 2)?,
            put_share: config.put_share,
            change_share,
            operation_random: generator(config.seed, 3),
            steered: SteeredPorts::new(config.queues)?,
            queues: config.queues,
            server: config.server,
            get: template(&config, KvsOperation::Get)?,
            put: template(&config, KvsOperation::Put)?,
            delete: template(&config, KvsOperation::Delete)?,
            key: Vec::new(),
            sequence: 0,
        })
    }

    pub(super) fn next_time(&self) -> Time {
        self.clock.next_time()
    }

    pub(super) fn next(&mut self) -> Option<Arrival<'_>> {
        let time = self.clock.next_time();
        if time == Time::NEVER {
            return None;
        }
        let index = self.key_picker.draw(time).flow;
        self.pairs.key(index, &mut self.key);
        let (hash, word) = (key_hash(&self.key), self.pairs.word(index));
        let client = self.client_picker.draw(time).flow;
        let mut flow = self.clients.tuple(client);
        flow.destination = self.server;
        flow.destination_port = KVS_PORT;
        flow.source_port = self.steered.port(&flow, partition_of(hash, self.queues));
        let value = KVS_HEADER_LEN + self.key.len();
        let words =
            [(HASH, hash), (TAG, self.sequence), (KVS_HEADER_LEN, word), (value, word), (value + 8, self.sequence)];
        let drawn = unit(&mut self.operation_random);
        let (template, words) = if drawn < self.put_share {
            let versions = usize::from(self.pairs.values_have_versions());
            (&mut self.put, &words[..4 + versions])
        } else if drawn < self.change_share {
            (&mut self.delete, &words[..3])
        } else {
            (&mut self.get, &words[..3])
        };
        self.clock.send(template.len());
        self.sequence += 1;
        let bytes = template.patch(&flow, words);
        Some(Arrival { time, bytes, head: bytes.len(), flow: Some(client) })
    }

    pub(super) fn begin_again(&mut self, from: Time, rate: BitRate) {
        self.clock.begin_again(from, rate);
    }

    pub(super) fn returned(&mut self, sent: Time, at: Time) -> bool {
        self.clock.returned(sent, at)
    }

    pub(super) fn given_up(&self) -> Option<u64> {
        self.clock.given_up()
    }
}

/// The frame of one kind of request, with zeros where each one differs.
fn template(config: &RequestConfig, operation: KvsOperation) -> Result<Template, TrafficError> {
    let (mut key, mut value) = (Vec::new(), Vec::new());
    config.pairs.key(0, &mut key);
    key[..8].fill(0);
    if operation == KvsOperation::Put {
        config.pairs.value(0, 0, &mut value);
        value[..8].fill(0);
    }
    let mut payload = vec![0; KVS_HEADER_LEN];
    payload.extend_from_slice(&key);
    payload.extend_from_slice(&value);
    let frame_bytes = (PAYLOAD + payload.len()) as u32;
    check_size(frame_bytes)?;
    let mut header = KvsView::new(&mut payload[..]).map_err(|_| TrafficError::FrameSize(frame_bytes))?;
    header.set_operation(operation);
    header.set_lengths(key.len() as u16, value.len() as u16);
    Template::with_payload(&payload, config.source, config.destination)
        .map_err(|_| TrafficError::FrameSize(frame_bytes))
}
