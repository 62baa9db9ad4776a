//! What a host asks of a subsystem before it moves blocks, in the order in which Linux asks, and out of it.

use std::cell::RefCell;
use std::rc::Rc;

use nicforge_l5p::nvme::store::{BlockStore, MemoryStore, Reply};
use nicforge_l5p::nvme::subsystem::{DISCOVERY_NQN, Queue, Subsystem, SubsystemConfig};
use nicforge_l5p::nvme::wire::{COMMAND_BYTES, Status};

const NQN: &str = "nqn.2026-01.org.example:disk";

type Shared = Rc<RefCell<Subsystem<MemoryStore>>>;

fn subsystem() -> Shared {
    let config = SubsystemConfig { nqn: NQN.into(), at: ([10, 9, 0, 2], 4420).into() };
    Subsystem::new(config, MemoryStore::new(512, 2048))
}

/// A command with words at places.
fn command(opcode: u8, words: &[(usize, u32)]) -> [u8; COMMAND_BYTES] {
    let mut bytes = [0; COMMAND_BYTES];
    for (at, word) in words {
        bytes[*at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
    bytes[0] = opcode;
    bytes
}

fn connect(queue: &mut Queue<MemoryStore>, nqn: &str, number: u16, controller: u16) -> Reply {
    let mut bytes = command(0x7f, &[(4, 1)]);
    bytes[42..44].copy_from_slice(&number.to_le_bytes());
    bytes[44..46].copy_from_slice(&31u16.to_le_bytes());
    let mut data = [0; 1024];
    data[16..18].copy_from_slice(&controller.to_le_bytes());
    data[256..256 + nqn.len()].copy_from_slice(nqn.as_bytes());
    queue.command(&bytes, &data).unwrap()
}

fn result(reply: Reply) -> u64 {
    match reply {
        Reply::Done { status: Status::SUCCESS, result } => result,
        other => panic!("{other:?}"),
    }
}

fn data(reply: Option<Reply>) -> Vec<u8> {
    match reply {
        Some(Reply::Data(data)) => data,
        other => panic!("{other:?}"),
    }
}

fn is(reply: Option<Reply>, status: Status) {
    assert_eq!(reply, Some(status.into()));
}

/// An admin queue whose controller is enabled, and the controller's number.
fn enabled(subsystem: &Shared, nqn: &str) -> (Queue<MemoryStore>, u16) {
    let mut queue = Queue::new(subsystem);
    let controller = result(connect(&mut queue, nqn, 0, 0xffff)) as u16;
    let ready = command(0x7f, &[(4, 4), (44, 0x1c)]);
    assert_eq!(result(queue.command(&ready, &[]).unwrap()), 0);
    result(queue.command(&command(0x7f, &[(4, 0), (44, 0x14), (48, 0x46_0001)]), &[]).unwrap());
    assert_eq!(result(queue.command(&ready, &[]).unwrap()), 1);
    (queue, controller)
}

#[test]
fn a_host_finds_its_namespace() {
    let subsystem = subsystem();
    let (mut admin, controller) = enabled(&subsystem, NQN);
    let identity = data(admin.command(&command(0x06, &[(40, 1)]), &[]));
    assert_eq!(identity.len(), 4096);
    assert_eq!(&identity[768..768 + NQN.len()], NQN.as_bytes());
    assert_eq!(u16::from_le_bytes([identity[78], identity[79]]), controller);
    let list = data(admin.command(&command(0x06, &[(40, 2)]), &[]));
    assert_eq!((list[0], list[4]), (1, 0));
    let namespace = data(admin.command(&command(0x06, &[(4, 1), (40, 0)]), &[]));
    assert_eq!((u64::from_le_bytes(*namespace.first_chunk().unwrap()), namespace[130]), (2048, 9));
    let descriptors = data(admin.command(&command(0x06, &[(4, 1), (40, 3)]), &[]));
    assert_eq!(descriptors[..2], [2, 16]);
    assert_eq!(descriptors[4..20], namespace[104..120]);
    let queues = result(admin.command(&command(0x09, &[(40, 7), (44, 3 << 16 | 3)]), &[]).unwrap());
    assert_eq!(queues, 3 << 16 | 3);
    assert_eq!(admin.command(&command(0x0c, &[]), &[]), Some(Reply::Held));

    let mut io = Queue::new(&subsystem);
    assert_eq!(result(connect(&mut io, NQN, 1, controller)), u64::from(controller));
    assert!(io.moves_blocks());
    assert_eq!(io.command(&command(0x02, &[(4, 1)]), &[]), None, "a read");
    is(io.command(&command(0x02, &[(4, 2)]), &[]), Status::INVALID_NAMESPACE);
}

#[test]
fn the_discovery_log_names_the_subsystem() {
    let subsystem = subsystem();
    let (mut admin, controller) = enabled(&subsystem, DISCOVERY_NQN);
    let log = data(admin.command(&command(0x02, &[(40, 0x70)]), &[]));
    assert_eq!(u64::from_le_bytes(*log[8..].first_chunk().unwrap()), 1);
    assert_eq!(log[1024..1027], [3, 1, 2]);
    assert!(log[1024 + 32..].starts_with(b"4420 "));
    assert!(log[1024 + 256..].starts_with(NQN.as_bytes()));
    assert!(log[1024 + 512..].starts_with(b"10.9.0.2 "));
    assert_eq!(data(admin.command(&command(0x02, &[(40, 0x70), (48, 1024)]), &[]))[..], log[1024..]);
    assert!(data(admin.command(&command(0x02, &[(40, 0x70), (52, u32::MAX)]), &[])).is_empty());
    // It has no I/O queues.
    is(Some(connect(&mut Queue::new(&subsystem), NQN, 1, controller)), Status::CONNECT_INVALID);
}

#[test]
fn what_comes_out_of_order_is_refused() {
    let subsystem = subsystem();
    let mut queue = Queue::new(&subsystem);
    is(queue.command(&command(0x06, &[(40, 1)]), &[]), Status::SEQUENCE_ERROR);
    is(queue.command(&command(0x7f, &[(4, 4), (44, 0x1c)]), &[]), Status::SEQUENCE_ERROR);
    is(queue.command(&command(0x7f, &[(4, 1)]), &[0; 100]), Status::INVALID_FIELD);
    is(Some(connect(&mut queue, "nqn.another", 0, 0xffff)), Status::CONNECT_INVALID);
    is(Some(connect(&mut queue, NQN, 1, 77)), Status::CONNECT_INVALID);
    let controller = result(connect(&mut queue, NQN, 0, 0xffff)) as u16;
    // Not enabled yet.
    is(queue.command(&command(0x06, &[(40, 1)]), &[]), Status::SEQUENCE_ERROR);
    is(Some(connect(&mut Queue::new(&subsystem), NQN, 1, controller)), Status::CONNECT_INVALID);
    is(Some(connect(&mut queue, NQN, 0, 0xffff)), Status::SEQUENCE_ERROR);
    is(queue.command(&command(0x7f, &[(4, 0), (44, 0x1c)]), &[]), Status::INVALID_FIELD);
}

#[test]
fn a_controller_ends_with_its_admin_queue() {
    let subsystem = subsystem();
    let (first, controller) = enabled(&subsystem, NQN);
    let (_second, other) = enabled(&subsystem, NQN);
    assert_ne!(controller, other);
    drop(first);
    assert_eq!(subsystem.borrow().controllers(), 1);
    is(Some(connect(&mut Queue::new(&subsystem), NQN, 1, controller)), Status::CONNECT_INVALID);
    assert_eq!(result(connect(&mut Queue::new(&subsystem), NQN, 1, other)), u64::from(other));
}
