//! A disk whose blocks are on a target: an admin queue, which finds the namespace, and an I/O queue, which moves blocks.

use std::net::SocketAddr;

use nicforge_l5p::host::{HostBuffers, Piece};
use nicforge_l5p::nvme::connection::{Connection, ConnectionError, NicAction};
use nicforge_l5p::nvme::initiator::{Initiator, InitiatorConfig, RequestError};
use nicforge_l5p::nvme::pdu::Digests;
use nicforge_l5p::nvme::wire::{COMMAND_BYTES, QueuePlace, Status};
use nicforge_l5p::port::StreamMemory;
use nicforge_platform::live::Clock;
use nicforge_sockets::attach::Attached;
use nicforge_sockets::transport::loss::Loss;
use nicforge_tcp::conn::Tuning;
use nicforge_tcp::stack::{ConnectionId, StackError};
use nicforge_units::Time;

use crate::flow::{Flow, Role};
use crate::link::{Link, WaitError};

/// Bytes that a command moves at most.
const COMMAND_MOVES: u32 = 64 << 10;
/// Commands under way at once.
const DEPTH: usize = 16;
/// A target that says nothing for so long is gone.
const PATIENCE: Time = Time::from_ms(30_000);
/// Asks for any controller.
const ANY_CONTROLLER: u16 = 0xffff;
/// Bytes of the namespace's identity.
const IDENTITY_BYTES: usize = 4096;

/// Which disk a host wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskConfig {
    /// The target.
    pub target: SocketAddr,
    /// Its subsystem.
    pub subsystem: String,
    /// The host's own name.
    pub host: String,
    /// Whether the NIC fills and checks digests and places data.
    pub offloads: bool,
}

/// A disk cannot be had or used.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// No connection can be begun.
    #[error("connecting to {target}: {cause:?}")]
    Connect {
        /// The target.
        target: SocketAddr,
        /// Why.
        cause: StackError,
    },
    /// TCP lost the connection.
    #[error("the connection to the target has ended; is a target there, and the way to it?")]
    Lost,
    /// The protocol ended the connection.
    #[error(transparent)]
    Protocol(#[from] ConnectionError),
    /// A command was not taken.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A command failed.
    #[error("the target answers with status {:#x}", .0.0)]
    Status(Status),
    /// The target is silent.
    #[error("the target has said nothing for {} s", PATIENCE.as_ps() / 1_000_000_000_000)]
    Silent,
    /// The namespace has a form that the disk does not know.
    #[error("namespace 1 has blocks of 2^{0} bytes: 512 to 65536 are possible")]
    Blocks(u8),
    /// Waiting for frames.
    #[error(transparent)]
    Wait(#[from] WaitError),
    /// The caller's file.
    #[error("{doing}: {cause}")]
    File {
        /// What was done.
        doing: &'static str,
        /// Why it failed.
        cause: std::io::Error,
    },
}

impl Role for Initiator {
    fn connection(&self) -> &Connection {
        &self.connection
    }

    fn connection_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }

    fn work(&mut self, memory: &mut StreamMemory) -> Result<(), ConnectionError> {
        Initiator::work(self, memory)
    }

    fn next_action(&mut self) -> Option<NicAction> {
        Initiator::next_action(self)
    }

    fn oldest_buffer(&self) -> Option<u64> {
        Initiator::oldest_buffer(self)
    }
}

/// A disk.
pub struct Disk {
    link: Link<Initiator>,
    config: DiskConfig,
    tuning: Tuning,
    admin: Option<ConnectionId>,
    io: Option<ConnectionId>,
    blocks: u64,
    block_bytes: u32,
    clock: Clock,
    heard: Time,
}

/// A transfer that is under way.
struct Moving {
    id: u16,
    at: u64,
    buffer: Piece,
}

impl Disk {
    /// Connects to a target and finds its namespace 1.
    ///
    /// # Errors
    ///
    /// [`DiskError`].
    pub fn connect(attached: Attached, loss: Loss, config: DiskConfig) -> Result<Disk, DiskError> {
        let tuning = Tuning::new(&attached.config);
        let mut disk = Disk {
            link: Link::new(attached, loss),
            config,
            tuning,
            admin: None,
            io: None,
            blocks: 0,
            block_bytes: 512,
            clock: Clock::start(),
            heard: Time::ZERO,
        };
        let admin = disk.open(0, ANY_CONTROLLER)?;
        disk.admin = Some(admin);
        // Enable, with entries of 64 and 16 bytes.
        disk.ask(admin, fabrics(0x00, 0x14, 0x46_0001), 0)?;
        while disk.ask(admin, fabrics(0x04, 0x1c, 0), 0)?.result & 1 == 0 {}
        disk.ask(admin, words(0x09, &[(40, 7), (44, 0)]), 0)?;
        let identity = disk.ask(admin, words(0x06, &[(4, 1), (40, 0)]), IDENTITY_BYTES)?.data;
        let format = identity[128 + 4 * usize::from(identity[26] & 15) + 2];
        if !(9..=16).contains(&format) {
            return Err(DiskError::Blocks(format));
        }
        disk.block_bytes = 1 << format;
        disk.blocks = u64::from_le_bytes(std::array::from_fn(|at| identity[at]));
        let controller = disk.flow(admin)?.role.controller();
        disk.io = Some(disk.open(1, controller)?);
        Ok(disk)
    }

    /// Bytes of the disk.
    pub fn bytes(&self) -> u64 {
        self.blocks * u64::from(self.block_bytes)
    }

    /// Bytes of a block.
    pub fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    /// Opens a connection and makes it queue `number`.
    fn open(&mut self, number: u16, controller: u16) -> Result<ConnectionId, DiskError> {
        let target = self.config.target;
        let connect = |cause| DiskError::Connect { target, cause };
        let to = (target.ip(), target.port());
        let now = self.clock.now();
        let at = self.link.stack.connect((None, 0), to, self.tuning.clone(), now).map_err(connect)?;
        loop {
            let connection = self.link.stack.connection(at).ok_or(DiskError::Lost)?;
            if connection.error().is_some() {
                return Err(DiskError::Lost);
            }
            if connection.state().is_synchronized() {
                break;
            }
            self.turn()?;
        }
        let config = InitiatorConfig {
            digests: Digests { header: true, data: true },
            depth: DEPTH,
            block_bytes: self.block_bytes,
            in_capsule_max: 0,
            offloads: self.config.offloads,
        };
        let DiskConfig { subsystem, host, .. } = self.config.clone();
        let place = QueuePlace { subsystem, host, controller, number };
        let mut memory = StreamMemory::default();
        self.link.add(at, |outward, inward| {
            // What a new connection sends lies in memory that it has just taken.
            let role = Initiator::for_queue(config, place, outward, inward, &mut memory);
            (role.expect("nothing is read of an empty memory"), memory)
        });
        while !self.flow(at)?.role.is_ready() {
            self.turn()?;
        }
        Ok(at)
    }

    fn flow(&mut self, at: ConnectionId) -> Result<&mut Flow<Initiator>, DiskError> {
        let flow = self.link.flows.get_mut(&at).ok_or(DiskError::Lost)?;
        match flow.take_failure() {
            Some(failure) => Err(failure.into()),
            None => Ok(flow),
        }
    }

    fn turn(&mut self) -> Result<(), DiskError> {
        let now = self.clock.now();
        if self.link.turn(now) {
            self.heard = now;
        } else if now.saturating_sub(self.heard) > PATIENCE {
            return Err(DiskError::Silent);
        } else {
            self.link.sleep(now)?;
        }
        Ok(())
    }

    /// Sends an admin or fabrics command and waits for it.
    fn ask(&mut self, at: ConnectionId, command: [u8; COMMAND_BYTES], bytes: usize) -> Result<Answer, DiskError> {
        let flow = self.flow(at)?;
        let buffer = flow.memory.place(&vec![0; bytes]);
        flow.role.command(&mut flow.memory, command, buffer)?;
        loop {
            let flow = self.flow(at)?;
            if let Some(done) = flow.role.next_done() {
                if done.status != Status::SUCCESS {
                    return Err(DiskError::Status(done.status));
                }
                let mut data = vec![0; bytes];
                if bytes > 0 {
                    flow.memory.view(buffer, &mut data).map_err(ConnectionError::Memory)?;
                }
                return Ok(Answer { result: done.result, data });
            }
            self.turn()?;
        }
    }

    /// Reads the whole disk; `each` gets the bytes of every transfer and where they belong.
    ///
    /// # Errors
    ///
    /// [`DiskError`].
    pub fn read_all(&mut self, mut each: impl FnMut(u64, &[u8]) -> std::io::Result<()>) -> Result<(), DiskError> {
        let file = |cause| DiskError::File { doing: "writing what was read", cause };
        let (io, total, block) = (self.io.ok_or(DiskError::Lost)?, self.bytes(), u64::from(self.block_bytes));
        let (mut next, mut moving) = (0, Vec::new());
        let mut bytes = vec![0; COMMAND_MOVES as usize];
        loop {
            let flow = self.flow(io)?;
            while moving.len() < DEPTH && next < total {
                let part = u64::from(COMMAND_MOVES).min(total - next);
                let buffer = flow.memory.place(&bytes[..part as usize]);
                let id = flow.role.read(&mut flow.memory, next / block, buffer)?;
                moving.push(Moving { id, at: next, buffer });
                next += part;
            }
            while let Some(ended) = take_ended(flow, &mut moving)? {
                let into = &mut bytes[..ended.buffer.bytes as usize];
                flow.memory.view(ended.buffer, into).map_err(ConnectionError::Memory)?;
                each(ended.at, into).map_err(file)?;
            }
            if moving.is_empty() && next == total {
                return Ok(());
            }
            self.turn()?;
        }
    }

    /// Writes the disk from its beginning on; `fill` gives the bytes of each place. All of it is durable at the end.
    ///
    /// # Errors
    ///
    /// [`DiskError`].
    pub fn write_all(
        &mut self,
        total: u64,
        mut fill: impl FnMut(u64, &mut [u8]) -> std::io::Result<()>,
    ) -> Result<(), DiskError> {
        let file = |cause| DiskError::File { doing: "reading what is written", cause };
        let (io, block) = (self.io.ok_or(DiskError::Lost)?, u64::from(self.block_bytes));
        let (mut next, mut moving) = (0, Vec::new());
        let mut bytes = vec![0; COMMAND_MOVES as usize];
        loop {
            let flow = self.flow(io)?;
            while moving.len() < DEPTH && next < total {
                let part = u64::from(COMMAND_MOVES).min(total - next);
                let from = &mut bytes[..part as usize];
                fill(next, from).map_err(file)?;
                let buffer = flow.memory.place(from);
                let id = flow.role.write(&mut flow.memory, next / block, buffer)?;
                moving.push(Moving { id, at: next, buffer });
                next += part;
            }
            while take_ended(flow, &mut moving)?.is_some() {}
            if moving.is_empty() && next == total {
                break;
            }
            self.turn()?;
        }
        // Flush.
        self.ask(io, words(0x00, &[(4, 1)]), 0)?;
        Ok(())
    }

    /// Counters by name, those of the NIC included.
    pub fn counters(&self) -> Vec<(String, u64)> {
        self.link.counters()
    }
}

/// The next transfer that has ended.
fn take_ended(flow: &mut Flow<Initiator>, moving: &mut Vec<Moving>) -> Result<Option<Moving>, DiskError> {
    let Some(done) = flow.role.next_done() else { return Ok(None) };
    if done.status != Status::SUCCESS {
        return Err(DiskError::Status(done.status));
    }
    let place = moving.iter().position(|one| one.id == done.id);
    Ok(place.map(|place| moving.swap_remove(place)))
}

/// What a command returned.
struct Answer {
    result: u64,
    data: Vec<u8>,
}

/// A command with words at places.
fn words(opcode: u8, words: &[(usize, u32)]) -> [u8; COMMAND_BYTES] {
    let mut bytes = [0; COMMAND_BYTES];
    for (at, word) in words {
        bytes[*at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
    bytes[0] = opcode;
    bytes
}

/// A fabrics command of a property.
fn fabrics(kind: u32, property: u32, value: u32) -> [u8; COMMAND_BYTES] {
    words(0x7f, &[(4, kind), (44, property), (48, value)])
}
