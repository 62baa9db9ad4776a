//! The NIC driver on transmit: shadows the NIC's context, notices packets out of sequence, and recovers the context
//! (section 3.3.2 of the paper).

use std::collections::VecDeque;

use super::Layer5;
use super::map::TxMessageState;
use crate::context::{Start, State};
use crate::counters::Counters;
use crate::engine::Descriptor;
use crate::host::Piece;
use crate::sequence::Seq;

/// Static parameters and the message from which on they hold: a new key begins a new epoch.
struct Epoch {
    start: Start,
    state: State,
}

/// The driver's view of one transmit context.
pub struct TxDriver {
    epochs: VecDeque<Epoch>,
    /// Start of offload, until it is acknowledged.
    offload_start: Option<Seq>,
    /// Where the NIC's context goes on.
    shadow: Seq,
    /// Start of the epoch whose parameters the NIC has, if it has any.
    shadow_epoch: Option<Seq>,
    dump_bytes_max: u32,
    counters: Counters,
}

impl TxDriver {
    /// The driver of a context that was created with `start` and `state`.
    pub fn new(start: Start, state: State, dump_bytes_max: u32) -> Self {
        Self {
            epochs: VecDeque::from([Epoch { start, state }]),
            offload_start: Some(start.tcpsn),
            shadow: start.tcpsn,
            shadow_epoch: Some(start.tcpsn),
            dump_bytes_max,
            counters: Counters::default(),
        }
    }

    /// New static parameters from the message at `start` on, which has not been sent yet.
    pub fn rekey(&mut self, start: Start, state: State) {
        self.epochs.push_back(Epoch { start, state });
    }

    /// TCP's peer has everything before `tcpsn`: forgets epochs that are over.
    pub fn acknowledge(&mut self, tcpsn: Seq) {
        if self.offload_start.is_some_and(|start| !tcpsn.is_before(start)) {
            self.offload_start = None;
        }
        while self.epochs.len() > 1 && !tcpsn.is_before(self.epochs[1].start.tcpsn) {
            self.epochs.pop_front();
        }
    }

    /// The NIC's context is a new one that knows neither keys nor place: the next packet brings both.
    pub fn lose_context(&mut self) {
        self.shadow_epoch = None;
    }

    /// What the driver counted.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The descriptors for a packet of TCP. A packet that crosses the start of offload or a change of keys leaves as
    /// two. None at all means that the packet is dropped, and counted.
    pub fn send(&mut self, layer5: &dyn Layer5, seq: Seq, payload: &[u8]) -> Vec<Descriptor> {
        let mut descriptors = Vec::new();
        let (mut seq, mut payload) = (seq, payload);
        if let Some(start) = self.offload_start.filter(|start| seq.is_before(*start)) {
            let (plain, rest) = payload.split_at(payload.len().min(start.since(seq) as usize));
            self.counters.tx_skip_no_sync_data += 1;
            descriptors.push(Descriptor::Plain { seq, payload: plain.to_vec() });
            (seq, payload) = (seq.plus(plain.len()), rest);
        }
        while !payload.is_empty() {
            let after = self.epochs.iter().position(|epoch| seq.is_before(epoch.start.tcpsn));
            let bytes = after
                .map_or(payload.len(), |after| payload.len().min(self.epochs[after].start.tcpsn.since(seq) as usize));
            let (here, rest) = payload.split_at(bytes);
            // Below the first epoch there is no key any more.
            match after.unwrap_or(self.epochs.len()).checked_sub(1) {
                Some(epoch) => self.send_within(layer5, epoch, seq, here, &mut descriptors),
                None => self.counters.tx_drop_no_sync_data += 1,
            }
            (seq, payload) = (seq.plus(bytes), rest);
        }
        descriptors
    }

    fn send_within(
        &mut self,
        layer5: &dyn Layer5,
        epoch: usize,
        seq: Seq,
        payload: &[u8],
        descriptors: &mut Vec<Descriptor>,
    ) {
        let Epoch { start: epoch_start, state } = &self.epochs[epoch];
        let has_parameters = self.shadow_epoch == Some(epoch_start.tcpsn);
        if seq != self.shadow || !has_parameters {
            let is_next_epoch = seq == self.shadow && seq == epoch_start.tcpsn;
            let (start, prefix) = if is_next_epoch {
                (*epoch_start, Vec::new())
            } else {
                let TxMessageState::Kept { start, prefix } = layer5.l5o_get_tx_msgstate(seq) else {
                    self.counters.tx_drop_no_sync_data += 1;
                    return;
                };
                self.counters.tx_ooo += 1;
                (start, prefix)
            };
            if !has_parameters {
                descriptors.push(Descriptor::StaticParameters(Box::new(*state)));
            }
            descriptors.push(Descriptor::ProgressParameters(start));
            descriptors.push(Descriptor::Fence);
            self.shadow_epoch = Some(epoch_start.tcpsn);
            self.dump(&prefix, descriptors);
        }
        self.shadow = seq.plus(payload.len());
        descriptors.push(Descriptor::Packet { seq, payload: payload.to_vec() });
    }

    fn dump(&mut self, prefix: &[Piece], descriptors: &mut Vec<Descriptor>) {
        for piece in prefix {
            let mut done = 0;
            while done < piece.bytes {
                let bytes = (piece.bytes - done).min(self.dump_bytes_max);
                let address = piece.address + u64::from(done);
                descriptors.push(Descriptor::Dump(Piece { address, bytes }));
                self.counters.tx_dump_packets += 1;
                self.counters.tx_dump_bytes += u64::from(bytes);
                done += bytes;
            }
        }
    }
}
