//! Resync requests of the NIC, and the answers that software gives when it gets there.

use crate::sequence::Seq;

/// What software answers: `l5o_resync_rx_resp`, with the message's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResyncAnswer {
    /// The sequence number that the NIC asked about.
    pub tcpsn: Seq,
    /// Number of the message that begins there; `None` when none does.
    pub number: Option<u64>,
}

/// The latest request; a newer one replaces it, because the NIC has then given the older guess up.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResyncRequests {
    open: Option<Seq>,
}

impl ResyncRequests {
    /// Takes a request.
    pub fn request(&mut self, tcpsn: Seq) {
        self.open = Some(tcpsn);
    }

    /// Software has read the header of message `number` at `start`, which is `bytes` long. Answers a request for a
    /// place in this message or before it.
    pub fn message(&mut self, start: Seq, number: u64, bytes: usize) -> Option<ResyncAnswer> {
        let tcpsn = self.open?;
        if !tcpsn.is_before(start.plus(bytes)) {
            return None;
        }
        self.open = None;
        Some(ResyncAnswer { tcpsn, number: (tcpsn == start).then_some(number) })
    }

    /// The request that waits.
    pub fn open(&self) -> Option<Seq> {
        self.open
    }
}
