//! A subsystem with one namespace: what a host asks before it moves blocks (NVM Express base specification 1.4, NVMe over
//! Fabrics 1.1). Every connection is a queue of a controller; the queues of a subsystem share its store.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::identify::{self, Identity};
use super::store::{BlockStore, Reply};
use super::wire::{COMMAND_BYTES, Opcode, Status};

/// The name of the subsystem that hosts ask which subsystems there are.
pub const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";
/// Version 1.3 of the base specification.
const VERSION: u64 = 0x0001_0300;
/// Entries of a queue less one, as `CAP` says.
const QUEUE_ENTRIES_LESS_ONE: u64 = 127;
/// Most controllers at once: each takes its keys and a few bytes.
const CONTROLLERS_MAX: usize = 1024;
/// Most I/O queues of a controller.
const IO_QUEUES_MAX: u16 = 64;

/// A subsystem's name and address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubsystemConfig {
    /// Its qualified name.
    pub nqn: String,
    /// Address and port, for the discovery log.
    pub at: std::net::SocketAddr,
}

/// Registers of a controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Controller {
    configuration: u32,
    is_discovery: bool,
}

impl Controller {
    fn is_enabled(self) -> bool {
        self.configuration & 1 != 0
    }

    /// `CSTS`: ready follows enable at once, and a shutdown is complete at once.
    fn status(self) -> u64 {
        let is_shut_down = self.configuration >> 14 & 3 != 0;
        u64::from(self.is_enabled()) | if is_shut_down { 2 << 2 } else { 0 }
    }
}

/// The subsystem.
pub struct Subsystem<S> {
    config: SubsystemConfig,
    store: S,
    controllers: BTreeMap<u16, Controller>,
    last_controller: u16,
}

impl<S: BlockStore> Subsystem<S> {
    /// A subsystem whose namespace 1 is `store`.
    pub fn new(config: SubsystemConfig, store: S) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self { config, store, controllers: BTreeMap::new(), last_controller: 0 }))
    }

    /// The blocks.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Controllers that hosts have.
    pub fn controllers(&self) -> usize {
        self.controllers.len()
    }

    fn identity(&self) -> Identity<'_> {
        Identity { config: &self.config, blocks: self.store.blocks(), block_bytes: self.store.block_bytes() }
    }

    /// Gives a host a controller of its own.
    fn admit(&mut self, is_discovery: bool) -> Option<u16> {
        if self.controllers.len() >= CONTROLLERS_MAX {
            return None;
        }
        loop {
            self.last_controller = self.last_controller % 0xffef + 1;
            if !self.controllers.contains_key(&self.last_controller) {
                break;
            }
        }
        self.controllers.insert(self.last_controller, Controller { configuration: 0, is_discovery });
        Some(self.last_controller)
    }
}

/// The queue that a connection is, once `connect` has said so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    controller: u16,
    number: u16,
}

/// A connection's queue: the store of its [`Target`](super::target::Target).
pub struct Queue<S> {
    subsystem: Rc<RefCell<Subsystem<S>>>,
    place: Option<Place>,
}

impl<S: BlockStore> Queue<S> {
    /// The queue of a new connection.
    pub fn new(subsystem: &Rc<RefCell<Subsystem<S>>>) -> Self {
        Self { subsystem: Rc::clone(subsystem), place: None }
    }

    /// Whether this is an I/O queue.
    pub fn moves_blocks(&self) -> bool {
        self.place.is_some_and(|place| place.number > 0)
    }

    fn fabrics(&mut self, command: &[u8; COMMAND_BYTES], data: &[u8]) -> Reply {
        match (command[4], self.place) {
            (0x01, None) => self.connect(command, data),
            (0x01, Some(_)) | (_, None) => Status::SEQUENCE_ERROR.into(),
            (0x00, Some(place)) if place.number == 0 => self.set_property(command, place.controller),
            (0x04, Some(place)) if place.number == 0 => self.property(command, place.controller),
            _ => Status::INVALID_FIELD.into(),
        }
    }

    fn connect(&mut self, command: &[u8; COMMAND_BYTES], data: &[u8]) -> Reply {
        let (number, entries_less_one) = (half(command, 42), half(command, 44));
        let Some(data) = data.first_chunk::<1024>() else { return Status::INVALID_FIELD.into() };
        let asked = identify::text(&data[256..512]);
        let mut subsystem = self.subsystem.borrow_mut();
        let is_discovery = asked == DISCOVERY_NQN;
        let fits = (is_discovery || asked == subsystem.config.nqn)
            && u64::from(entries_less_one) <= QUEUE_ENTRIES_LESS_ONE
            && entries_less_one > 0
            && number <= IO_QUEUES_MAX;
        if !fits {
            return Status::CONNECT_INVALID.into();
        }
        let controller = if number == 0 {
            subsystem.admit(is_discovery)
        } else {
            let named = u16::from_le_bytes([data[16], data[17]]);
            let known = subsystem.controllers.get(&named);
            known.is_some_and(|known| known.is_enabled() && !known.is_discovery).then_some(named)
        };
        let Some(controller) = controller else { return Status::CONNECT_INVALID.into() };
        self.place = Some(Place { controller, number });
        Reply::Done { status: Status::SUCCESS, result: u64::from(controller) }
    }

    fn property(&self, command: &[u8; COMMAND_BYTES], controller: u16) -> Reply {
        let subsystem = self.subsystem.borrow();
        let controller = subsystem.controllers.get(&controller).copied().unwrap_or_default();
        let result = match word(command, 44) {
            // Contiguous queues, 7.5 seconds until ready, the NVM command set.
            0x00 => QUEUE_ENTRIES_LESS_ONE | 1 << 16 | 15 << 24 | 1 << 37,
            0x08 => VERSION,
            0x14 => u64::from(controller.configuration),
            0x1c => controller.status(),
            _ => return Status::INVALID_FIELD.into(),
        };
        Reply::Done { status: Status::SUCCESS, result }
    }

    fn set_property(&self, command: &[u8; COMMAND_BYTES], controller: u16) -> Reply {
        if word(command, 44) != 0x14 {
            return Status::INVALID_FIELD.into();
        }
        if let Some(controller) = self.subsystem.borrow_mut().controllers.get_mut(&controller) {
            controller.configuration = word(command, 48);
        }
        Reply::default()
    }

    /// A command of an admin queue (base specification, section 5).
    fn admin(&self, command: &[u8; COMMAND_BYTES], controller: u16) -> Reply {
        let subsystem = self.subsystem.borrow();
        let known = subsystem.controllers.get(&controller).copied().unwrap_or_default();
        if !known.is_enabled() {
            return Status::SEQUENCE_ERROR.into();
        }
        let (identity, selected) = (subsystem.identity(), word(command, 40));
        match command[0] {
            // Get log page.
            0x02 => match (selected & 0xff, known.is_discovery) {
                (0x70, true) => {
                    let offset = u64::from(word(command, 48)) | u64::from(word(command, 52)) << 32;
                    let log = identity.discovery_log();
                    Reply::Data(log.get(offset.min(log.len() as u64) as usize..).unwrap_or_default().to_vec())
                }
                // Errors, health, firmware slots: nothing to tell.
                (0x01..=0x03, false) => Reply::Data(Vec::new()),
                _ => Status::INVALID_FIELD.into(),
            },
            // Identify.
            0x06 => match (selected & 0xff, word(command, 4)) {
                (0x01, _) => Reply::Data(identity.controller(controller, known.is_discovery)),
                _ if known.is_discovery => Status::INVALID_FIELD.into(),
                (0x00, 1) => Reply::Data(identity.namespace()),
                (0x02, after) => Reply::Data(identify::list(after)),
                (0x03, 1) => Reply::Data(identity.descriptors()),
                // What the NVM command set adds: no limits.
                (0x06, _) => Reply::Data(Vec::new()),
                _ => Status::INVALID_FIELD.into(),
            },
            // Abort: the command was not aborted.
            0x08 => Reply::Done { status: Status::SUCCESS, result: 1 },
            // Set and get features: the number of queues, the time of keep-alive, events.
            0x09 | 0x0a => match selected & 0xff {
                0x07 => {
                    let queues = u64::from(IO_QUEUES_MAX - 1);
                    let wanted = if command[0] == 0x09 { u64::from(word(command, 44) & 0xffff) } else { queues };
                    let granted = wanted.min(queues);
                    Reply::Done { status: Status::SUCCESS, result: granted | granted << 16 }
                }
                0x0b | 0x0f => Reply::default(),
                _ => Status::INVALID_FIELD.into(),
            },
            // Asynchronous event request: no event ever happens.
            0x0c => Reply::Held,
            // Keep alive.
            0x18 => Reply::default(),
            _ => Status::INVALID_OPCODE.into(),
        }
    }
}

impl<S> Drop for Queue<S> {
    fn drop(&mut self) {
        // A controller ends with its admin queue.
        if let Some(Place { controller, number: 0 }) = self.place {
            self.subsystem.borrow_mut().controllers.remove(&controller);
        }
    }
}

impl<S: BlockStore> BlockStore for Queue<S> {
    fn block_bytes(&self) -> u32 {
        self.subsystem.borrow().store.block_bytes()
    }

    fn blocks(&self) -> u64 {
        self.subsystem.borrow().store.blocks()
    }

    fn read(&mut self, lba: u64, into: &mut [u8]) -> Result<(), Status> {
        self.subsystem.borrow_mut().store.read(lba, into)
    }

    fn write(&mut self, lba: u64, bytes: &[u8]) -> Result<(), Status> {
        self.subsystem.borrow_mut().store.write(lba, bytes)
    }

    fn flush(&mut self) -> Result<(), Status> {
        self.subsystem.borrow_mut().store.flush()
    }

    fn command(&mut self, command: &[u8; COMMAND_BYTES], data: &[u8]) -> Option<Reply> {
        if Opcode::of(command[0]) == Some(Opcode::Fabrics) {
            return Some(self.fabrics(command, data));
        }
        match self.place {
            None => Some(Status::SEQUENCE_ERROR.into()),
            Some(Place { controller, number: 0 }) => Some(self.admin(command, controller)),
            Some(_) if word(command, 4) != 1 => Some(Status::INVALID_NAMESPACE.into()),
            Some(_) => None,
        }
    }
}

fn half(bytes: &[u8; COMMAND_BYTES], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8; COMMAND_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
