//! A witness of the pipeline's order, beside it: no acknowledgment and no notification may leave before the DMA of the
//! payload that it speaks of is complete.

use nicforge_wire::headers::{ETHERNET_HEADER_LEN, IPV4_MIN_HEADER_LEN};

use super::work::Work;

/// Where the acknowledgment number is in a frame that leaves.
const ACK_AT: usize = ETHERNET_HEADER_LEN + IPV4_MIN_HEADER_LEN + 8;

/// The received payload of a connection that is in its ring.
#[derive(Clone, Debug, Default)]
struct Stored {
    /// All before this sequence number.
    until: u32,
    /// The application was told of all before this one.
    told: u32,
    /// Pieces behind it: sequence number and length.
    ahead: Vec<(u32, u32)>,
}

impl Stored {
    fn take(&mut self, seq: u32, len: u32) {
        self.ahead.push((seq, len));
        let reaches = |until: u32, &(seq, _): &(u32, u32)| seq.wrapping_sub(until) as i32 <= 0;
        while let Some(place) = self.ahead.iter().position(|piece| reaches(self.until, piece)) {
            let (seq, len) = self.ahead.swap_remove(place);
            let more = seq.wrapping_add(len).wrapping_sub(self.until) as i32;
            self.until = self.until.wrapping_add(more.max(0) as u32);
        }
    }

    /// Whether all payload before `number` is there.
    fn has(&self, number: u32) -> bool {
        number.wrapping_sub(self.until) as i32 <= 0
    }
}

/// The payload in the rings of all connections, and a count of who spoke of more.
#[derive(Debug, Default)]
pub struct Witness {
    flows: Vec<Stored>,
    /// Acknowledgments and notifications that left too early.
    pub early: u64,
}

impl Witness {
    /// A connection begins, whose peer's next number is `next`.
    pub fn begin(&mut self, flow: u32, next: u32) {
        let flow = flow as usize;
        if flow >= self.flows.len() {
            self.flows.resize(flow + 1, Stored::default());
        }
        self.flows[flow] = Stored { until: next, told: next, ahead: Vec::new() };
    }

    /// The DMA of payload is complete.
    pub fn stored(&mut self, flow: u32, seq: u32, len: u32) {
        if let Some(stored) = self.flows.get_mut(flow as usize) {
            stored.take(seq, len);
        }
    }

    /// An event leaves, with what follows from it. A FIN of the peer has a number and no payload.
    pub fn leaves(&mut self, work: &Work, peer_closed: bool) {
        let Some(stored) = self.flows.get_mut(work.flow as usize) else { return };
        if let Some(&[a, b, c, d]) = work.out.get(ACK_AT..ACK_AT + 4) {
            let ack = u32::from_be_bytes([a, b, c, d]);
            self.early += u64::from(!stored.has(ack.wrapping_sub(peer_closed.into())));
        }
        if let Some(news) = &work.outcome.notify {
            stored.told = stored.told.wrapping_add(news.rx_bump);
            self.early += u64::from(!stored.has(stored.told));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicforge_tcp::queue::ToApplication;

    fn tells(rx_bump: u32) -> Work {
        let mut work = Work::default();
        work.outcome.notify = Some(ToApplication { rx_bump, ..ToApplication::default() });
        work
    }

    fn acknowledges(ack: u32) -> Work {
        let mut out = vec![0; ACK_AT + 12];
        out[ACK_AT..ACK_AT + 4].copy_from_slice(&ack.to_be_bytes());
        Work { out, ..Work::default() }
    }

    #[test]
    fn whoever_speaks_of_payload_that_is_not_there_is_seen() {
        let mut witness = Witness::default();
        witness.begin(0, u32::MAX - 99);
        witness.stored(0, 400, 100);
        witness.leaves(&acknowledges(u32::MAX - 99), false);
        assert_eq!(witness.early, 0, "nothing new");
        witness.leaves(&acknowledges(400), false);
        assert_eq!(witness.early, 1, "a gap is before it");
        witness.stored(0, u32::MAX - 99, 500);
        witness.leaves(&acknowledges(500), false);
        witness.leaves(&tells(600), false);
        witness.leaves(&acknowledges(501), true);
        assert_eq!(witness.early, 1);
        witness.leaves(&tells(1), false);
        assert_eq!(witness.early, 2);
    }
}
