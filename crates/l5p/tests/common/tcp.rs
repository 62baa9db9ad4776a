//! TCP's receive side as far as offloads see it: order, overlaps, and the NIC's report of each packet.

use std::collections::BTreeMap;

use nicforge_l5p::engine::Received;
use nicforge_l5p::sequence::Seq;

pub struct Reassembly {
    base: Seq,
    delivered: usize,
    waiting: BTreeMap<usize, (Vec<u8>, Received)>,
}

impl Reassembly {
    pub fn new(base: Seq) -> Self {
        Self { base, delivered: 0, waiting: BTreeMap::new() }
    }

    pub fn delivered(&self) -> usize {
        self.delivered
    }

    /// Takes a packet and returns what is now in order. Of bytes that came twice the first are kept.
    pub fn push(&mut self, seq: Seq, payload: Vec<u8>, received: Received) -> Vec<(Vec<u8>, Received)> {
        // Near the next expected byte, so that wrap-around does not matter.
        let next = self.base.plus(self.delivered);
        let at = self.delivered as i64 + i64::from(seq.since(next));
        let skip = (self.delivered as i64 - at).max(0) as usize;
        if skip < payload.len() {
            let at = (at + skip as i64) as usize;
            let payload = payload[skip..].to_vec();
            let longer = self.waiting.get(&at).is_none_or(|(kept, _)| kept.len() < payload.len());
            if longer {
                self.waiting.insert(at, (payload, received));
            }
        }
        let mut ready = Vec::new();
        while let Some(entry) = self.waiting.first_entry() {
            let at = *entry.key();
            if at > self.delivered {
                break;
            }
            let (payload, received) = entry.remove();
            let skip = self.delivered - at;
            if skip < payload.len() {
                self.delivered += payload.len() - skip;
                ready.push((payload[skip..].to_vec(), received));
            }
        }
        ready
    }
}
