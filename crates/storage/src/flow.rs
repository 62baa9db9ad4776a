//! One connection: bytes and reports from the stack to layer 5, PDUs back, and what layer 5 asks of the NIC.

use std::collections::VecDeque;

use nicforge_l5p::context::FlowKey;
use nicforge_l5p::engine::Received;
use nicforge_l5p::host::Piece;
use nicforge_l5p::nvme::NvmeState;
use nicforge_l5p::nvme::connection::NicAction;
use nicforge_l5p::nvme::connection::{Connection, ConnectionError};
use nicforge_l5p::port::{Offload, Port, Reports, StreamMemory};
use nicforge_l5p::protocol::ProtocolId;
use nicforge_l5p::sequence::Seq;
use nicforge_tcp::conn::Connection as TcpConnection;
use nicforge_tcp::ring::HeapBuffers;
use nicforge_tcp::stack::{ConnectionId, Stack};
use nicforge_units::Time;

/// Bytes taken from or handed to the stack at once.
const CHUNK: usize = 64 << 10;

/// The NVMe/TCP end of a connection: host or target.
pub trait Role {
    /// Its connection.
    fn connection(&self) -> &Connection;
    /// Its connection.
    fn connection_mut(&mut self) -> &mut Connection;
    /// Works through PDUs that have come.
    ///
    /// # Errors
    ///
    /// [`ConnectionError`]; the connection must end.
    fn work(&mut self, memory: &mut StreamMemory) -> Result<(), ConnectionError>;
    /// What the driver must do on the NIC, before it takes more output.
    fn next_action(&mut self) -> Option<NicAction>;
    /// Where the lowest buffer lies that a command still uses.
    fn oldest_buffer(&self) -> Option<u64>;
}

/// A connection.
pub struct Flow<R> {
    /// Its layer 5.
    pub role: R,
    /// Memory of messages that leave, and of buffers that data is placed into.
    pub memory: StreamMemory,
    /// Its name in the stack.
    pub at: ConnectionId,
    /// The direction that leaves.
    pub outward: FlowKey,
    reports: Reports,
    unsent: VecDeque<Piece>,
    scratch: Vec<u8>,
    /// Layer 5 ended it.
    has_failed: bool,
    failure: Option<ConnectionError>,
    is_released: bool,
}

impl<R: Role> Flow<R> {
    /// A connection whose first byte in is at `inward`.
    pub fn new(role: R, memory: StreamMemory, at: ConnectionId, outward: FlowKey, inward: Seq) -> Flow<R> {
        Flow {
            role,
            memory,
            at,
            outward,
            reports: Reports::new(inward),
            unsent: VecDeque::new(),
            scratch: vec![0; CHUNK],
            has_failed: false,
            failure: None,
            is_released: false,
        }
    }

    /// Why layer 5 ended it, once.
    pub fn take_failure(&mut self) -> Option<ConnectionError> {
        self.failure.take()
    }

    /// Notes what the NIC reported of bytes that the stack took.
    pub fn note(&mut self, seq: Seq, bytes: usize, received: &Received) {
        self.reports.note(seq, bytes, received);
        if let Some(tcpsn) = received.resync {
            nicforge_l5p::driver::Layer5::l5o_resync_rx_req(self.role.connection_mut(), tcpsn);
        }
    }

    /// Does all that can be done now. Returns whether the connection goes on.
    pub fn turn(&mut self, stack: &mut Stack<HeapBuffers>, nic: &mut Port, nvme: ProtocolId, now: Time) -> bool {
        let Some(connection) = stack.connection(self.at) else { return false };
        let una = Seq(connection.una().0);
        let is_over = connection.is_read_closed() && connection.readable() == 0;
        let is_reset = connection.error().is_some();
        self.role.connection_mut().acknowledge(una);
        nic.acknowledge(&self.outward, una);
        self.release_memory();
        if !self.has_failed && !self.is_released {
            self.take(stack, now);
            self.failure = self.role.work(&mut self.memory).err();
            self.has_failed = self.failure.is_some();
        }
        while let Some(action) = self.role.next_action() {
            self.act(nic, nvme, action);
        }
        while let Some(piece) = self.role.connection_mut().next_output() {
            self.unsent.push_back(piece);
        }
        self.hand_over(stack, now);
        for answer in self.role.connection_mut().take_answers() {
            nic.answer(&self.outward.reverse(), answer, now);
        }
        let is_done = (is_over || self.has_failed) && self.unsent.is_empty() || is_reset;
        if is_done && !self.is_released {
            stack.release(self.at, now);
            self.is_released = true;
        }
        true
    }

    fn take(&mut self, stack: &mut Stack<HeapBuffers>, now: Time) {
        loop {
            let bytes = stack.recv(self.at, &mut self.scratch, now).unwrap_or(0);
            let mut done = 0;
            for stretch in self.reports.take(bytes) {
                self.role.connection_mut().push(&self.scratch[done..done + stretch.bytes], &stretch.received);
                done += stretch.bytes;
            }
            if bytes == 0 {
                return;
            }
        }
    }

    fn hand_over(&mut self, stack: &mut Stack<HeapBuffers>, now: Time) {
        while let Some(piece) = self.unsent.front_mut() {
            let part = Piece { address: piece.address, bytes: piece.bytes.min(CHUNK as u32) };
            let bytes = &mut self.scratch[..part.bytes as usize];
            if self.memory.view(part, bytes).is_err() {
                // Its message is gone, and so is the stream's meaning.
                stack.abort(self.at);
                return self.unsent.clear();
            }
            let taken = stack.send(self.at, bytes, false, now).unwrap_or(0) as u32;
            *piece = Piece { address: piece.address + u64::from(taken), bytes: piece.bytes - taken };
            if piece.bytes == 0 {
                self.unsent.pop_front();
            }
            if taken < part.bytes {
                stack.with(self.at, TcpConnection::wait_for_space);
                return;
            }
        }
    }

    /// Gives memory back that neither a message in flight nor a command needs.
    fn release_memory(&mut self) {
        let kept = [
            self.role.connection().oldest_address(),
            self.role.oldest_buffer(),
            self.unsent.iter().map(|piece| piece.address).min(),
        ];
        match kept.into_iter().flatten().min() {
            Some(address) => self.memory.release(address),
            None => self.memory.release_all(),
        }
    }

    fn act(&mut self, nic: &mut Port, protocol: ProtocolId, action: NicAction) {
        let inward = self.outward.reverse();
        match action {
            NicAction::Offload { transmit, receive, digests } => {
                let state = NvmeState::state(digests);
                let out = Offload { flow: self.outward, protocol, start: transmit, state };
                let come = Offload { flow: inward, protocol, start: receive, state };
                // The registry has the protocol: the caller found it there.
                let _ = nic.offload_transmit(&out);
                let _ = nic.offload_receive(&come);
            }
            // Without a context, or room for the state, software copies.
            NicAction::Add(id, state) => {
                if let Some((engine, context)) = nic.inward(&inward) {
                    let _ = engine.add_rr_state(context, id, state);
                }
            }
            NicAction::Delete(id) => {
                if let Some((engine, context)) = nic.inward(&inward) {
                    engine.del_rr_state(context, id);
                }
            }
        }
    }
}
