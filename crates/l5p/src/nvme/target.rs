//! The target: serves a block store to one host. Bytes in, bytes out; it needs no socket.

use std::collections::{BTreeMap, VecDeque};

use super::connection::{Connection, ConnectionError, NicAction, Pdu};
use super::pdu::{Digests, PduType, Transfer, flags};
use super::store::{BlockStore, Reply};
use super::transfer_state;
use super::wire::{COMMAND_BYTES, Command, Completion, Opcode, Status};
use crate::host::{HostBuffers, HostMemory, Piece};
use crate::placement::RrState;
use crate::sequence::Seq;

/// What the target offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetConfig {
    /// Digests to agree to.
    pub digests: Digests,
    /// Most bytes of data in a PDU to the host.
    pub data_bytes_max: u32,
    /// Whether the last data of a read says that it succeeded, and no response follows.
    pub sends_success: bool,
    /// Most bytes that a command may move.
    pub transfer_bytes_max: u32,
    /// Most commands that may wait for data.
    pub depth: usize,
    /// Whether the NIC offloads.
    pub offloads: bool,
}

struct Incoming {
    command: Command,
    buffer: Piece,
    moved: u32,
    status: Status,
}

/// The target's end.
pub struct Target<S: BlockStore> {
    config: TargetConfig,
    /// The connection, for its counters and for TCP.
    pub connection: Connection,
    /// The blocks.
    pub store: S,
    is_initialised: bool,
    incoming: BTreeMap<u16, Incoming>,
    next_tag: u16,
    actions: VecDeque<NicAction>,
}

impl<S: BlockStore> Target<S> {
    /// A target that waits for a host.
    pub fn new(config: TargetConfig, store: S, outward: Seq, inward: Seq) -> Self {
        Self {
            config,
            connection: Connection::new(outward, inward),
            store,
            is_initialised: false,
            incoming: BTreeMap::new(),
            next_tag: 0,
            actions: VecDeque::new(),
        }
    }

    /// Works through PDUs that have come.
    ///
    /// # Errors
    ///
    /// [`ConnectionError`]; the connection is over. A header that cannot be one is answered with a termination
    /// request first.
    pub fn work<M: HostBuffers + HostMemory>(&mut self, memory: &mut M) -> Result<(), ConnectionError> {
        loop {
            let pdu = match self.connection.read() {
                Ok(Some(pdu)) => pdu,
                Ok(None) => return Ok(()),
                Err(error) => {
                    self.terminate(memory, &error)?;
                    return Err(error);
                }
            };
            if let Err(error) = self.serve(memory, &pdu) {
                self.terminate(memory, &error)?;
                return Err(error);
            }
        }
    }

    fn serve<M: HostBuffers + HostMemory>(&mut self, memory: &mut M, pdu: &Pdu) -> Result<(), ConnectionError> {
        match pdu.common.kind {
            PduType::IcReq if !self.is_initialised => self.initialise(memory, pdu),
            PduType::CapsuleCmd if self.is_initialised => self.command(memory, pdu),
            PduType::H2cData if self.is_initialised => self.take_data(memory, pdu),
            PduType::H2cTermReq => Err(ConnectionError::Terminated(u16::from_le_bytes([pdu.bytes[8], pdu.bytes[9]]))),
            kind => Err(ConnectionError::Unexpected(kind)),
        }
    }

    /// Tells the host why the connection ends (3.6.2.5 of the specification).
    fn terminate<M: HostBuffers + HostMemory>(
        &mut self,
        memory: &mut M,
        error: &ConnectionError,
    ) -> Result<(), ConnectionError> {
        let status: u16 = match error {
            ConnectionError::NotAPdu { .. } => 1,
            ConnectionError::Unexpected(_) => 2,
            ConnectionError::HeaderDigest { .. } => 3,
            ConnectionError::Transfer(..) => 4,
            ConnectionError::Terminated(_) | ConnectionError::Refused(_) | ConnectionError::Memory(_) => return Ok(()),
        };
        self.connection.send(memory, PduType::C2hTermReq, 0, &status.to_le_bytes(), None)?;
        Ok(())
    }

    fn initialise<M: HostBuffers + HostMemory>(&mut self, memory: &mut M, pdu: &Pdu) -> Result<(), ConnectionError> {
        let asked = pdu.bytes[11];
        let digests = Digests {
            header: self.config.digests.header && asked & 1 != 0,
            data: self.config.digests.data && asked & 2 != 0,
        };
        let mut header = vec![0, 0, 0, u8::from(digests.header) | u8::from(digests.data) << 1];
        header.extend_from_slice(&self.config.transfer_bytes_max.to_le_bytes());
        self.connection.send(memory, PduType::IcResp, 0, &header, None)?;
        self.connection.set_digests(digests);
        self.is_initialised = true;
        if self.config.offloads {
            let transmit = self.connection.offload_transmit();
            let receive = self.connection.offload_receive();
            self.actions.push_back(NicAction::Offload { transmit, receive, digests });
        }
        Ok(())
    }

    fn command<M: HostBuffers + HostMemory>(&mut self, memory: &mut M, pdu: &Pdu) -> Result<(), ConnectionError> {
        let bytes = pdu.header().first_chunk::<COMMAND_BYTES>();
        let bytes = bytes.ok_or(ConnectionError::Unexpected(PduType::CapsuleCmd))?;
        let command = Command::parse(bytes);
        if !pdu.is_data_good {
            return self.respond(memory, command.id, Status::TRANSFER_ERROR);
        }
        match self.store.command(bytes, pdu.data()) {
            Some(Reply::Done { status, result }) => return self.complete(memory, command.id, status, result),
            Some(Reply::Data(mut data)) => {
                data.resize(command.data_bytes.min(self.config.transfer_bytes_max) as usize, 0);
                return self.send_data(memory, command.id, &data);
            }
            Some(Reply::Held) => return Ok(()),
            None => {}
        }
        let status = self.check(&command);
        match Opcode::of(command.opcode) {
            Some(Opcode::Read) if status == Status::SUCCESS => {
                let mut bytes = vec![0; command.data_bytes as usize];
                match self.store.read(command.lba, &mut bytes) {
                    Ok(()) => self.send_data(memory, command.id, &bytes),
                    Err(status) => self.respond(memory, command.id, status),
                }
            }
            Some(Opcode::Write) if status == Status::SUCCESS && !command.is_in_capsule => self.ask(memory, command),
            Some(Opcode::Write) if status == Status::SUCCESS => {
                let status = if pdu.data().len() == command.data_bytes as usize {
                    status_of(self.store.write(command.lba, pdu.data()))
                } else {
                    Status::INVALID_FIELD
                };
                self.respond(memory, command.id, status)
            }
            Some(Opcode::Flush) => {
                let status = status_of(self.store.flush());
                self.respond(memory, command.id, status)
            }
            _ => self.respond(memory, command.id, status),
        }
    }

    fn check(&self, command: &Command) -> Status {
        match Opcode::of(command.opcode) {
            Some(Opcode::Read | Opcode::Write) => {
                let bytes = u64::from(command.blocks) * u64::from(self.store.block_bytes());
                let end = command.lba.checked_add(u64::from(command.blocks));
                if end.is_none_or(|end| end > self.store.blocks()) {
                    Status::LBA_OUT_OF_RANGE
                } else if bytes != u64::from(command.data_bytes) || command.data_bytes > self.config.transfer_bytes_max
                {
                    Status::INVALID_FIELD
                } else {
                    Status::SUCCESS
                }
            }
            Some(_) => Status::SUCCESS,
            None => Status::INVALID_OPCODE,
        }
    }

    fn respond<M: HostBuffers + HostMemory>(
        &mut self,
        memory: &mut M,
        id: u16,
        status: Status,
    ) -> Result<(), ConnectionError> {
        self.complete(memory, id, status, 0)
    }

    fn complete<M: HostBuffers + HostMemory>(
        &mut self,
        memory: &mut M,
        id: u16,
        status: Status,
        result: u64,
    ) -> Result<(), ConnectionError> {
        let completion = Completion { result, id, status };
        self.connection.send(memory, PduType::CapsuleResp, 0, &completion.to_bytes(), None)?;
        Ok(())
    }

    /// Sends a command's data, each PDU with a digest of its own.
    fn send_data<M: HostBuffers + HostMemory>(
        &mut self,
        memory: &mut M,
        command: u16,
        bytes: &[u8],
    ) -> Result<(), ConnectionError> {
        let whole = memory.place(bytes);
        let mut offset = 0;
        while offset < whole.bytes {
            let length = (whole.bytes - offset).min(self.config.data_bytes_max);
            let is_last = offset + length == whole.bytes;
            let success = if self.config.sends_success { flags::SUCCESS } else { 0 };
            let flags = if is_last { flags::LAST | success } else { 0 };
            let header = Transfer { command, tag: 0, offset, length }.to_bytes();
            let data = Piece { address: whole.address + u64::from(offset), bytes: length };
            self.connection.send(memory, PduType::C2hData, flags, &header, Some(data))?;
            offset += length;
        }
        let is_answered = self.config.sends_success && whole.bytes > 0;
        if is_answered { Ok(()) } else { self.respond(memory, command, Status::SUCCESS) }
    }

    /// Asks for a write's data.
    fn ask<M: HostBuffers + HostMemory>(&mut self, memory: &mut M, command: Command) -> Result<(), ConnectionError> {
        if self.incoming.len() >= self.config.depth.min(usize::from(u16::MAX)) {
            return Err(ConnectionError::Unexpected(PduType::CapsuleCmd));
        }
        while self.incoming.contains_key(&self.next_tag) {
            self.next_tag = self.next_tag.wrapping_add(1);
        }
        let tag = self.next_tag;
        self.next_tag = self.next_tag.wrapping_add(1);
        let buffer = memory.place(&vec![0; command.data_bytes as usize]);
        if self.config.offloads {
            self.actions.push_back(NicAction::Add(transfer_state(tag), RrState { pieces: vec![buffer] }));
        }
        let header = Transfer { command: command.id, tag, offset: 0, length: command.data_bytes }.to_bytes();
        self.incoming.insert(tag, Incoming { command, buffer, moved: 0, status: Status::SUCCESS });
        self.connection.send(memory, PduType::R2t, 0, &header, None)?;
        Ok(())
    }

    fn take_data<M: HostBuffers + HostMemory>(&mut self, memory: &mut M, pdu: &Pdu) -> Result<(), ConnectionError> {
        let kind = PduType::H2cData;
        let transfer = Transfer::parse(&pdu.bytes).ok_or(ConnectionError::Unexpected(kind))?;
        let wrong = ConnectionError::Transfer(kind, transfer.command);
        let incoming = self.incoming.get_mut(&transfer.tag).ok_or(wrong)?;
        let fits = transfer.command == incoming.command.id
            && transfer.offset == incoming.moved
            && transfer.length as usize == pdu.data().len()
            && transfer.length <= incoming.buffer.bytes - incoming.moved;
        if !fits {
            return Err(wrong);
        }
        let base = incoming.buffer.address + u64::from(transfer.offset);
        let copied = pdu.unplaced(|offset, bytes| memory.write(base + u64::from(offset), bytes))?;
        self.connection.counters.copied_bytes += u64::from(copied);
        incoming.moved += transfer.length;
        if !pdu.is_data_good {
            incoming.status = Status::TRANSFER_ERROR;
        }
        if incoming.moved < incoming.buffer.bytes {
            return Ok(());
        }
        let Some(Incoming { command, buffer, status, .. }) = self.incoming.remove(&transfer.tag) else {
            return Err(wrong);
        };
        if self.config.offloads {
            self.actions.push_back(NicAction::Delete(transfer_state(transfer.tag)));
        }
        if status != Status::SUCCESS {
            return self.respond(memory, command.id, status);
        }
        let mut bytes = vec![0; buffer.bytes as usize];
        memory.read(buffer.address, &mut bytes)?;
        let status = status_of(self.store.write(command.lba, &bytes));
        self.respond(memory, command.id, status)
    }

    /// Where the lowest buffer lies that a command still fills.
    pub fn oldest_buffer(&self) -> Option<u64> {
        self.incoming.values().map(|incoming| incoming.buffer.address).min()
    }

    /// What the driver must do on the NIC, before it takes more output.
    pub fn next_action(&mut self) -> Option<NicAction> {
        self.actions.pop_front()
    }
}

fn status_of(outcome: Result<(), Status>) -> Status {
    outcome.err().unwrap_or(Status::SUCCESS)
}

impl Opcode {
    /// The opcode of this number, if it is one of the few.
    pub fn of(byte: u8) -> Option<Self> {
        [Self::Flush, Self::Write, Self::Read, Self::Fabrics].into_iter().find(|opcode| *opcode as u8 == byte)
    }
}
