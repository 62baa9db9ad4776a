//! Requests of many clients to a key-value store: GETs, PUTs and DELETEs, one per frame.
//!
//! [`RequestProtocol::Kvs`]: a client computes the hash of the key, and from it the partition; by its source port it makes
//! the NIC bring the request to that partition's queue. [`RequestProtocol::Memcached`]: a client has one port, and knows
//! nothing of cores. Open loop or closed loop: see [`ArrivalModel`].

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
use crate::headers::{
    KVS_HEADER_LEN, KVS_PORT, KvsOperation, KvsView, MAGIC_REQUEST, MEMCACHED_HEADER_LEN, MEMCACHED_PORT, MacAddress,
    key_hash, memcached_opcode, partition_of,
};
use crate::rss::RssKey;

/// Where hash and tag are in a request of [`RequestProtocol::Kvs`].
const HASH: usize = 8;
const TAG: usize = 16;
/// Where the length of the body and the opaque are in one of [`RequestProtocol::Memcached`].
const BODY_LEN: usize = 16;
/// Flags and expiry of a SET.
const SET_EXTRAS: usize = 8;

/// How clients ask a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestProtocol {
    /// MICA's way: the client's request says the key's hash, and finds the core that has the key.
    #[default]
    Kvs,
    /// memcached's binary protocol over UDP.
    Memcached,
}

impl RequestProtocol {
    /// Bytes of all headers in front of the key of a GET.
    pub fn headers_len(self) -> usize {
        PAYLOAD + self.header_len()
    }

    /// Bytes in front of the key of a PUT.
    pub fn put_headers_len(self) -> usize {
        self.headers_len() + self.put_extras_len()
    }

    /// Bytes between header and key of a PUT.
    fn put_extras_len(self) -> usize {
        match self {
            RequestProtocol::Kvs => 0,
            RequestProtocol::Memcached => SET_EXTRAS,
        }
    }

    /// Bytes of the protocol's own header.
    fn header_len(self) -> usize {
        match self {
            RequestProtocol::Kvs => KVS_HEADER_LEN,
            RequestProtocol::Memcached => MEMCACHED_HEADER_LEN,
        }
    }
}

/// What a request asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Get,
    Put,
    Delete,
}

/// The frames of one operation: what differs between them, beside the flow, are some words.
#[derive(Clone, Debug)]
struct Kind {
    template: Template,
    /// Where the key begins in the payload.
    key_at: usize,
    /// Where the value begins, if there is one.
    value_at: Option<usize>,
    /// Bytes of extras, key and value.
    body: usize,
}

/// What requests are to look like.
#[derive(Clone, Debug)]
pub struct RequestConfig {
    /// The protocol.
    pub protocol: RequestProtocol,
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
    /// Which key each PUT is for, where that is another choice.
    pub put_key_choice: Option<FlowChoice>,
    /// Share of PUTs, 0 to 1.
    pub put_share: f64,
    /// Share of DELETEs, 0 to 1 less that of PUTs; the rest are GETs.
    pub delete_share: f64,
    /// Queues of the NIC; each has a partition of the keys.
    pub queues: u16,
    /// The key by which it spreads frames.
    pub rss_key: RssKey,
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
    protocol: RequestProtocol,
    clock: Clock,
    clients: FlowSpace,
    client_picker: FlowPicker,
    pairs: PairSpace,
    key_picker: FlowPicker,
    put_key_picker: Option<FlowPicker>,
    put_share: f64,
    /// Of PUTs and DELETEs together.
    change_share: f64,
    operation_random: Pcg64,
    steered: SteeredPorts,
    queues: u16,
    server: Ipv4Addr,
    get: Kind,
    put: Kind,
    delete: Kind,
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
            protocol: config.protocol,
            clock: Clock::new(config.arrival, config.line, generator(config.seed, 0))?,
            clients: config.clients,
            client_picker: pick(&config.clients, config.client_choice, 1)?,
            pairs: config.pairs,
            key_picker: pick(&keys, config.key_choice, 2)?,
            put_key_picker: config.put_key_choice.map(|choice| pick(&keys, choice, 4)).transpose()?,
            put_share: config.put_share,
            change_share,
            operation_random: generator(config.seed, 3),
            steered: SteeredPorts::new(config.queues, &config.rss_key)?,
            queues: config.queues,
            server: config.server,
            get: kind(&config, Operation::Get)?,
            put: kind(&config, Operation::Put)?,
            delete: kind(&config, Operation::Delete)?,
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
        let drawn = unit(&mut self.operation_random);
        let keys = match &mut self.put_key_picker {
            Some(keys) if drawn < self.put_share => keys,
            _ => &mut self.key_picker,
        };
        let index = keys.draw(time).flow;
        self.pairs.key(index, &mut self.key);
        let word = self.pairs.word(index);
        let client = self.client_picker.draw(time).flow;
        let mut flow = self.clients.tuple(client);
        flow.destination = self.server;
        let kind = if drawn < self.put_share {
            &mut self.put
        } else if drawn < self.change_share {
            &mut self.delete
        } else {
            &mut self.get
        };
        let named = match self.protocol {
            RequestProtocol::Kvs => {
                let hash = key_hash(&self.key);
                flow.destination_port = KVS_PORT;
                flow.source_port = self.steered.port(&flow, partition_of(hash, self.queues));
                [(HASH, hash), (TAG, self.sequence)]
            }
            RequestProtocol::Memcached => {
                flow.destination_port = MEMCACHED_PORT;
                // The opaque repeats the request's number; the words of the CAS stay zero.
                let opaque = self.sequence & u64::from(u32::MAX);
                [(BODY_LEN, (kind.body as u64) << 32 | opaque), (BODY_LEN + 8, 0)]
            }
        };
        let mut words = [(0, 0); 5];
        words[..2].copy_from_slice(&named);
        words[2] = (kind.key_at, word);
        let mut count = 3;
        if let Some(value) = kind.value_at {
            words[3..].copy_from_slice(&[(value, word), (value + 8, self.sequence)]);
            count += 1 + usize::from(self.pairs.values_have_versions());
        }
        let (template, words) = (&mut kind.template, &words[..count]);
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

/// The frames of one operation, with zeros where each one differs.
fn kind(config: &RequestConfig, operation: Operation) -> Result<Kind, TrafficError> {
    let (mut key, mut value) = (Vec::new(), Vec::new());
    config.pairs.key(0, &mut key);
    key[..8].fill(0);
    let puts = operation == Operation::Put;
    if puts {
        config.pairs.value(0, 0, &mut value);
        value[..8].fill(0);
    }
    let extras = if puts { config.protocol.put_extras_len() } else { 0 };
    let key_at = config.protocol.header_len() + extras;
    let mut payload = vec![0; key_at];
    payload.extend_from_slice(&key);
    payload.extend_from_slice(&value);
    let frame_bytes = (PAYLOAD + payload.len()) as u32;
    check_size(frame_bytes)?;
    let wrong_size = |_| TrafficError::FrameSize(frame_bytes);
    match config.protocol {
        RequestProtocol::Kvs => {
            let mut header = KvsView::new(&mut payload[..]).map_err(wrong_size)?;
            header.set_operation(match operation {
                Operation::Get => KvsOperation::Get,
                Operation::Put => KvsOperation::Put,
                Operation::Delete => KvsOperation::Delete,
            });
            header.set_lengths(key.len() as u16, value.len() as u16);
        }
        RequestProtocol::Memcached => {
            let opcode = match operation {
                Operation::Get => memcached_opcode::GET,
                Operation::Put => memcached_opcode::SET,
                Operation::Delete => memcached_opcode::DELETE,
            };
            // One datagram, number 0; the length of the body is among the words.
            payload[5] = 1;
            payload[8..10].copy_from_slice(&[MAGIC_REQUEST, opcode]);
            payload[10..12].copy_from_slice(&(key.len() as u16).to_be_bytes());
            payload[12] = extras as u8;
        }
    }
    Ok(Kind {
        template: Template::with_payload(&payload, config.source, config.destination).map_err(wrong_size)?,
        key_at,
        value_at: puts.then_some(key_at + key.len()),
        body: extras + key.len() + value.len(),
    })
}
