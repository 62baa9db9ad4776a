//! Digests: lists of values that a program sends to controllers, each value once until it is acknowledged.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use prost::Message;

use crate::proto::p4::v1 as p4;

/// Values of one digest that wait; more are dropped.
const WAITING_MAX: usize = 4096;

/// Size of a list where the controller gives none.
const LIST: usize = 256;

struct Sent {
    at: Instant,
    values: Vec<Vec<u8>>,
}

struct Stream {
    config: p4::digest_entry::Config,
    waiting: Vec<p4::P4Data>,
    since: Option<Instant>,
    /// Values that wait or are not acknowledged.
    pending: HashSet<Vec<u8>>,
    sent: BTreeMap<u64, Sent>,
}

/// The digests that controllers asked for.
#[derive(Default)]
pub struct Digests {
    streams: BTreeMap<u32, Stream>,
    next_list: u64,
}

fn duration(nanoseconds: i64) -> Duration {
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0))
}

impl Digests {
    /// Asks for a digest, or changes how its lists are made.
    pub fn configure(&mut self, id: u32, config: p4::digest_entry::Config) {
        match self.streams.get_mut(&id) {
            Some(stream) => stream.config = config,
            None => {
                let (waiting, pending, sent) = (Vec::new(), HashSet::new(), BTreeMap::new());
                self.streams.insert(id, Stream { config, waiting, since: None, pending, sent });
            }
        }
    }

    /// Nobody wants the digest any more.
    pub fn remove(&mut self, id: u32) -> bool {
        self.streams.remove(&id).is_some()
    }

    /// How lists of a digest are made; none where nobody asked.
    pub fn config(&self, id: u32) -> Option<p4::digest_entry::Config> {
        self.streams.get(&id).map(|stream| stream.config)
    }

    /// Digests that somebody asked for.
    pub fn ids(&self) -> Vec<u32> {
        self.streams.keys().copied().collect()
    }

    /// The program made a value.
    pub fn push(&mut self, id: u32, value: p4::P4Data, now: Instant) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if stream.waiting.len() >= WAITING_MAX || !stream.pending.insert(value.encode_to_vec()) {
            return;
        }
        stream.since.get_or_insert(now);
        stream.waiting.push(value);
    }

    /// Lists that are full or old enough.
    pub fn due(&mut self, now: Instant) -> Vec<p4::DigestList> {
        let mut lists = Vec::new();
        for (id, stream) in &mut self.streams {
            let limit = duration(stream.config.ack_timeout_ns);
            let old: Vec<u64> = stream
                .sent
                .iter()
                .filter(|(_, sent)| now.duration_since(sent.at) >= limit)
                .map(|(id, _)| *id)
                .collect();
            for list in old {
                forget(stream, list);
            }
            let size = usize::try_from(stream.config.max_list_size).ok().filter(|size| *size > 0).unwrap_or(LIST);
            while !stream.waiting.is_empty() {
                let old = stream
                    .since
                    .is_some_and(|since| now.duration_since(since) >= duration(stream.config.max_timeout_ns));
                if stream.waiting.len() < size && !old {
                    break;
                }
                let count = size.min(stream.waiting.len());
                let data: Vec<p4::P4Data> = stream.waiting.drain(..count).collect();
                self.next_list += 1;
                let values = data.iter().map(Message::encode_to_vec).collect();
                stream.sent.insert(self.next_list, Sent { at: now, values });
                stream.since = (!stream.waiting.is_empty()).then_some(now);
                lists.push(p4::DigestList { digest_id: *id, list_id: self.next_list, data, timestamp: 0 });
            }
        }
        lists
    }

    /// A controller has a list; false where there is none.
    pub fn acknowledge(&mut self, ack: &p4::DigestListAck) -> bool {
        self.streams.get_mut(&ack.digest_id).is_some_and(|stream| forget(stream, ack.list_id))
    }
}

/// The values of a list may be sent again.
fn forget(stream: &mut Stream, list: u64) -> bool {
    let Some(sent) = stream.sent.remove(&list) else { return false };
    for value in sent.values {
        stream.pending.remove(&value);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_sent_once_until_it_is_acknowledged() {
        let config = p4::digest_entry::Config { max_timeout_ns: 0, max_list_size: 2, ack_timeout_ns: 1_000_000_000 };
        let value = |byte| p4::P4Data { data: Some(p4::p4_data::Data::Bitstring(vec![byte])) };
        let (mut digests, now) = (Digests::default(), Instant::now());
        digests.push(7, value(1), now);
        assert!(digests.due(now).is_empty(), "nobody asked for it");
        digests.configure(7, config);
        for byte in [1, 1, 2, 3] {
            digests.push(7, value(byte), now);
        }
        let lists = digests.due(now);
        assert_eq!(lists.iter().map(|list| list.data.len()).collect::<Vec<_>>(), [2, 1]);
        digests.push(7, value(1), now);
        assert!(digests.due(now).is_empty(), "not yet acknowledged");
        assert!(digests.acknowledge(&p4::DigestListAck { digest_id: 7, list_id: lists[0].list_id }));
        digests.push(7, value(1), now);
        assert_eq!(digests.due(now).len(), 1);
        digests.push(7, value(1), now);
        let later = now + Duration::from_secs(1);
        assert!(digests.due(later).is_empty());
        digests.push(7, value(1), later);
        assert_eq!(digests.due(later).len(), 1, "after the acknowledgement's time");
    }
}
