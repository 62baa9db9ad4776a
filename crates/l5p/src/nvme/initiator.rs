//! The host: a block device whose blocks are on a target. Bytes in, bytes out; it needs no socket.

use std::collections::{BTreeMap, VecDeque};

use super::command_state;
use super::connection::{Connection, ConnectionError, NicAction, Pdu};
use super::pdu::{Digests, PduType, Transfer, flags};
use super::wire::{COMMAND_BYTES, Command, Completion, Opcode, QueuePlace, Status};
use crate::host::{HostBuffers, HostFault, HostMemory, Piece};
use crate::placement::RrState;
use crate::sequence::Seq;

/// The identifier of the command `connect`.
const CONNECT_ID: u16 = u16::MAX;

/// What the host wants of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitiatorConfig {
    /// Digests to ask for.
    pub digests: Digests,
    /// Commands at once.
    pub depth: usize,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Most bytes to write within the command's capsule.
    pub in_capsule_max: u32,
    /// Whether the NIC offloads.
    pub offloads: bool,
}

/// Why a request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The connection is not ready for commands.
    #[error("the connection is not ready: feed it what the target sends first")]
    NotReady,
    /// All command identifiers are in use.
    #[error("{0} commands are open, which is the queue's depth: wait for one to end")]
    Busy(usize),
    /// The buffer is not a whole number of blocks.
    #[error("{0} bytes are not 1 to 65536 blocks")]
    Size(u32),
    /// A buffer is not in memory.
    #[error(transparent)]
    Memory(#[from] HostFault),
}

/// A request that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Its result besides data.
    pub result: u64,
    /// The identifier that the request got.
    pub id: u16,
    /// How it ended.
    pub status: Status,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    AwaitsIcResp,
    AwaitsConnect,
    Ready,
}

/// Which way a command's data goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    ToTarget,
    FromTarget,
}

struct Open {
    way: Way,
    buffer: Piece,
    moved: u32,
    status: Status,
}

/// The host's end.
pub struct Initiator {
    config: InitiatorConfig,
    /// The connection, for its counters and for TCP.
    pub connection: Connection,
    place: QueuePlace,
    phase: Phase,
    open: BTreeMap<u16, Open>,
    next_id: u16,
    actions: VecDeque<NicAction>,
    done: VecDeque<Done>,
    data_bytes_max: u32,
}

impl Initiator {
    /// Begins a connection whose first bytes have these sequence numbers.
    ///
    /// # Errors
    ///
    /// [`HostFault`] out of the memory.
    pub fn new<M: HostBuffers + HostMemory>(
        config: InitiatorConfig,
        outward: Seq,
        inward: Seq,
        memory: &mut M,
    ) -> Result<Self, HostFault> {
        Self::for_queue(config, QueuePlace::default(), outward, inward, memory)
    }

    /// The same, for the queue of a controller.
    ///
    /// # Errors
    ///
    /// [`HostFault`] out of the memory.
    pub fn for_queue<M: HostBuffers + HostMemory>(
        config: InitiatorConfig,
        place: QueuePlace,
        outward: Seq,
        inward: Seq,
        memory: &mut M,
    ) -> Result<Self, HostFault> {
        let mut connection = Connection::new(outward, inward);
        let digests = u8::from(config.digests.header) | u8::from(config.digests.data) << 1;
        connection.send(memory, PduType::IcReq, 0, &[0, 0, 0, digests], None)?;
        Ok(Self {
            config,
            connection,
            place,
            phase: Phase::AwaitsIcResp,
            open: BTreeMap::new(),
            next_id: 0,
            actions: VecDeque::new(),
            done: VecDeque::new(),
            data_bytes_max: 0,
        })
    }

    /// Whether commands are taken.
    pub fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// Reads blocks from `lba` on into `buffer`. Returns the command's identifier.
    ///
    /// # Errors
    ///
    /// [`RequestError`]; nothing was sent.
    pub fn read<M: HostBuffers + HostMemory>(
        &mut self,
        memory: &mut M,
        lba: u64,
        buffer: Piece,
    ) -> Result<u16, RequestError> {
        let id = self.admit(buffer)?;
        if self.config.offloads {
            self.actions.push_back(NicAction::Add(command_state(id), RrState { pieces: vec![buffer] }));
        }
        self.send_command(memory, Opcode::Read, id, lba, buffer, None)
    }

    /// Sends an admin or fabrics command, whose data comes into `buffer`. Returns the command's identifier, which the
    /// command gets.
    ///
    /// # Errors
    ///
    /// [`RequestError`]; nothing was sent.
    pub fn command<M: HostBuffers + HostMemory>(
        &mut self,
        memory: &mut M,
        mut command: [u8; COMMAND_BYTES],
        buffer: Piece,
    ) -> Result<u16, RequestError> {
        let id = self.take_id()?;
        command[1] = 0x40;
        command[2..4].copy_from_slice(&id.to_le_bytes());
        command[32..36].copy_from_slice(&buffer.bytes.to_le_bytes());
        command[39] = 0x5a;
        self.connection.send(memory, PduType::CapsuleCmd, 0, &command, None)?;
        self.open.insert(id, Open { way: Way::FromTarget, buffer, moved: 0, status: Status::SUCCESS });
        if self.config.offloads && buffer.bytes > 0 {
            self.actions.push_back(NicAction::Add(command_state(id), RrState { pieces: vec![buffer] }));
        }
        Ok(id)
    }

    /// Writes `buffer` to blocks from `lba` on. The buffer must stay as it is until the command has ended.
    ///
    /// # Errors
    ///
    /// [`RequestError`]; nothing was sent.
    pub fn write<M: HostBuffers + HostMemory>(
        &mut self,
        memory: &mut M,
        lba: u64,
        buffer: Piece,
    ) -> Result<u16, RequestError> {
        let id = self.admit(buffer)?;
        let data = (buffer.bytes <= self.config.in_capsule_max).then_some(buffer);
        self.send_command(memory, Opcode::Write, id, lba, buffer, data)
    }

    fn admit(&mut self, buffer: Piece) -> Result<u16, RequestError> {
        let blocks = buffer.bytes / self.config.block_bytes;
        if !buffer.bytes.is_multiple_of(self.config.block_bytes) || !(1..=1 << 16).contains(&blocks) {
            return Err(RequestError::Size(buffer.bytes));
        }
        self.take_id()
    }

    fn take_id(&mut self) -> Result<u16, RequestError> {
        if self.phase != Phase::Ready {
            return Err(RequestError::NotReady);
        }
        if self.open.len() >= self.config.depth {
            return Err(RequestError::Busy(self.config.depth));
        }
        while self.open.contains_key(&self.next_id) || self.next_id == CONNECT_ID {
            self.next_id = self.next_id.wrapping_add(1);
        }
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        Ok(id)
    }

    fn send_command<M: HostBuffers + HostMemory>(
        &mut self,
        memory: &mut M,
        opcode: Opcode,
        id: u16,
        lba: u64,
        buffer: Piece,
        data: Option<Piece>,
    ) -> Result<u16, RequestError> {
        let command = Command {
            opcode: opcode as u8,
            id,
            lba,
            blocks: buffer.bytes / self.config.block_bytes,
            data_bytes: buffer.bytes,
            is_in_capsule: data.is_some(),
        };
        self.connection.send(memory, PduType::CapsuleCmd, 0, &command.to_bytes(), data)?;
        let moved = data.map_or(0, |data| data.bytes);
        let way = if opcode == Opcode::Read { Way::FromTarget } else { Way::ToTarget };
        self.open.insert(id, Open { way, buffer, moved, status: Status::SUCCESS });
        Ok(id)
    }

    /// Works through PDUs that have come.
    ///
    /// # Errors
    ///
    /// [`ConnectionError`]; the connection is over, and open commands must be tried elsewhere.
    pub fn work<M: HostBuffers + HostMemory>(&mut self, memory: &mut M) -> Result<(), ConnectionError> {
        while let Some(pdu) = self.connection.read()? {
            match pdu.common.kind {
                PduType::IcResp if self.phase == Phase::AwaitsIcResp => self.connect(memory, &pdu)?,
                PduType::CapsuleResp => self.respond(&pdu)?,
                PduType::C2hData => self.take_data(memory, &pdu)?,
                PduType::R2t => self.transfer(memory, &pdu)?,
                PduType::C2hTermReq => {
                    return Err(ConnectionError::Terminated(u16::from_le_bytes([pdu.bytes[8], pdu.bytes[9]])));
                }
                kind => return Err(ConnectionError::Unexpected(kind)),
            }
        }
        Ok(())
    }

    fn connect<M: HostBuffers + HostMemory>(&mut self, memory: &mut M, pdu: &Pdu) -> Result<(), ConnectionError> {
        let digests = Digests { header: pdu.bytes[11] & 1 != 0, data: pdu.bytes[11] & 2 != 0 };
        self.data_bytes_max =
            u32::from_le_bytes([pdu.bytes[12], pdu.bytes[13], pdu.bytes[14], pdu.bytes[15]]).max(4096);
        self.connection.set_digests(digests);
        if self.config.offloads {
            let transmit = self.connection.offload_transmit();
            let receive = self.connection.offload_receive();
            self.actions.push_back(NicAction::Offload { transmit, receive, digests });
        }
        let data = memory.place(&self.place.data());
        let command = Command {
            opcode: Opcode::Fabrics as u8,
            id: CONNECT_ID,
            lba: 0,
            blocks: 0,
            data_bytes: data.bytes,
            is_in_capsule: true,
        };
        let mut bytes = command.to_bytes();
        bytes[4..8].copy_from_slice(&[1, 0, 0, 0]); // The fabrics command `connect`.
        bytes[42..44].copy_from_slice(&self.place.number.to_le_bytes());
        let entries_less_one = self.config.depth.clamp(1, 127) as u16;
        bytes[44..46].copy_from_slice(&entries_less_one.to_le_bytes());
        self.connection.send(memory, PduType::CapsuleCmd, 0, &bytes, Some(data))?;
        self.phase = Phase::AwaitsConnect;
        Ok(())
    }

    fn respond(&mut self, pdu: &Pdu) -> Result<(), ConnectionError> {
        let completion = Completion::parse(pdu.header()).ok_or(ConnectionError::Unexpected(PduType::CapsuleResp))?;
        if self.phase == Phase::AwaitsConnect && completion.id == CONNECT_ID {
            if completion.status != Status::SUCCESS {
                return Err(ConnectionError::Refused(completion.status));
            }
            self.place.controller = completion.result as u16;
            self.phase = Phase::Ready;
            return Ok(());
        }
        self.end(PduType::CapsuleResp, &completion)
    }

    fn take_data<M: HostMemory>(&mut self, memory: &mut M, pdu: &Pdu) -> Result<(), ConnectionError> {
        let kind = PduType::C2hData;
        let transfer = Transfer::parse(&pdu.bytes).ok_or(ConnectionError::Unexpected(kind))?;
        let wrong = ConnectionError::Transfer(kind, transfer.command);
        let open = self.open.get_mut(&transfer.command).filter(|open| open.way == Way::FromTarget).ok_or(wrong)?;
        let fits = transfer.offset == open.moved
            && transfer.length as usize == pdu.data().len()
            && transfer.length <= open.buffer.bytes - open.moved;
        if !fits {
            return Err(wrong);
        }
        let base = open.buffer.address + u64::from(transfer.offset);
        let copied = pdu.unplaced(|offset, bytes| memory.write(base + u64::from(offset), bytes))?;
        self.connection.counters.copied_bytes += u64::from(copied);
        open.moved += transfer.length;
        if !pdu.is_data_good {
            open.status = Status::TRANSIENT_TRANSPORT;
        }
        if pdu.common.flags & flags::SUCCESS != 0 {
            self.end(kind, &Completion { result: 0, id: transfer.command, status: Status::SUCCESS })?;
        }
        Ok(())
    }

    fn end(&mut self, kind: PduType, completion: &Completion) -> Result<(), ConnectionError> {
        let &Completion { result, id, status } = completion;
        let open = self.open.remove(&id).ok_or(ConnectionError::Transfer(kind, id))?;
        if self.config.offloads && open.way == Way::FromTarget {
            self.actions.push_back(NicAction::Delete(command_state(id)));
        }
        if status == Status::SUCCESS && open.moved != open.buffer.bytes {
            return Err(ConnectionError::Transfer(kind, id));
        }
        let status = if open.status == Status::SUCCESS { status } else { open.status };
        self.done.push_back(Done { result, id, status });
        Ok(())
    }

    /// The target is ready for data of a write.
    fn transfer<M: HostBuffers + HostMemory>(&mut self, memory: &mut M, pdu: &Pdu) -> Result<(), ConnectionError> {
        let transfer = Transfer::parse(&pdu.bytes).ok_or(ConnectionError::Unexpected(PduType::R2t))?;
        let wrong = ConnectionError::Transfer(PduType::R2t, transfer.command);
        let open = self.open.get_mut(&transfer.command).filter(|open| open.way == Way::ToTarget).ok_or(wrong)?;
        let fits = transfer.offset == open.moved && transfer.length <= open.buffer.bytes - open.moved;
        if !fits || transfer.length == 0 {
            return Err(wrong);
        }
        let mut done = 0;
        while done < transfer.length {
            let length = (transfer.length - done).min(self.data_bytes_max);
            let offset = transfer.offset + done;
            let data = Piece { address: open.buffer.address + u64::from(offset), bytes: length };
            done += length;
            let last = if done == transfer.length { flags::LAST } else { 0 };
            let header = Transfer { offset, length, ..transfer }.to_bytes();
            self.connection.send(memory, PduType::H2cData, last, &header, Some(data))?;
        }
        open.moved += transfer.length;
        Ok(())
    }

    /// What the driver must do on the NIC, before it takes more output.
    pub fn next_action(&mut self) -> Option<NicAction> {
        self.actions.pop_front()
    }

    /// The next request that ended.
    pub fn next_done(&mut self) -> Option<Done> {
        self.done.pop_front()
    }

    /// The controller of this queue, once it is ready.
    pub fn controller(&self) -> u16 {
        self.place.controller
    }

    /// Where the lowest buffer of an open command lies.
    pub fn oldest_buffer(&self) -> Option<u64> {
        self.open.values().filter(|open| open.buffer.bytes > 0).map(|open| open.buffer.address).min()
    }

    /// Commands that are open.
    pub fn open(&self) -> usize {
        self.open.len()
    }
}
