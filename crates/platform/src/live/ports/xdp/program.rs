//! The program that hands an interface's frames to AF_XDP sockets, and its place there.
//!
//! Five instructions and a table from receive queue to socket: so little that it stands here as
//! numbers, and neither a compiler for it nor a loader is needed. The system's interface to them is
//! bpf(2), in linux/bpf.h.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::c_long;

const MAP_CREATE: u32 = 0;
const MAP_UPDATE_ELEM: u32 = 2;
const PROG_LOAD: u32 = 5;
const LINK_CREATE: u32 = 28;
const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_TYPE_XDP: u32 = 37;
/// The program also takes frames that lie in several buffers (jumbo frames).
const HAS_FRAGS: u32 = 1 << 5;
/// Where an interface runs the program.
const GENERIC: u32 = 1 << 1;
const NATIVE: u32 = 1 << 2;

/// `bpf_redirect_map(table, context.rx_queue_index, XDP_PASS)`: to the socket of the queue that
/// the frame came in by, or to the kernel's own stack if there is none.
const fn redirect(table: u32) -> [u64; 6] {
    const fn instruction(code: u8, registers: u8, offset: u16, value: u32) -> u64 {
        code as u64 | (registers as u64) << 8 | (offset as u64) << 16 | (value as u64) << 32
    }
    const QUEUE_INDEX: u16 = 16;
    const XDP_PASS: u32 = 2;
    const REDIRECT_MAP: u32 = 51;
    [
        // r2 = *(u32 *)(r1 + QUEUE_INDEX)
        instruction(0x61, 0x12, QUEUE_INDEX, 0),
        // r1 = the table that file `table` is; 64 bits, so two instructions
        instruction(0x18, 0x11, 0, table),
        0,
        // r3 = XDP_PASS
        instruction(0xb7, 0x03, 0, XDP_PASS),
        // r0 = bpf_redirect_map(r1, r2, r3)
        instruction(0x85, 0, 0, REDIRECT_MAP),
        // return r0
        instruction(0x95, 0, 0, 0),
    ]
}

#[repr(C)]
#[derive(Default)]
struct MapCreate {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct MapUpdate {
    map: u32,
    pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
struct ProgLoad {
    kind: u32,
    instructions: u32,
    text: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach_type: u32,
}

#[repr(C)]
#[derive(Default)]
struct LinkCreate {
    program: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
}

/// What was not possible, and what the system says.
#[derive(Debug)]
pub struct Failed(pub &'static str, pub io::Error);

/// The program at its place; it goes from there with the value, or with the process, however that
/// ends.
#[derive(Debug)]
pub struct Attachment {
    _link: OwnedFd,
    _table: OwnedFd,
    /// Whether it runs in the interface's driver, and not behind it on what the driver made.
    pub is_native: bool,
}

impl Attachment {
    /// Frames that come in at `interface` by a receive queue of `sockets` go to its socket.
    pub fn new(interface: u32, sockets: &[(u32, BorrowedFd<'_>)]) -> Result<Attachment, Failed> {
        let failed = |what| move |cause| Failed(what, cause);
        let table = table(sockets).map_err(failed("making a table of sockets"))?;
        let program = load(table.as_fd()).map_err(failed("loading the XDP program"))?;
        let attach = |flags| {
            made(
                LINK_CREATE,
                &LinkCreate { program: program.as_raw_fd() as u32, interface, attach_type: ATTACH_TYPE_XDP, flags },
            )
        };
        let (link, is_native) = match attach(NATIVE) {
            Ok(link) => (link, true),
            // Its driver has no place for programs; behind each there is one.
            Err(cause) if cause.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                let link = attach(GENERIC).map_err(failed("attaching the XDP program"))?;
                (link, false)
            }
            Err(cause) => return Err(Failed("attaching the XDP program", cause)),
        };
        Ok(Attachment { _link: link, _table: table, is_native })
    }
}

fn table(sockets: &[(u32, BorrowedFd<'_>)]) -> io::Result<OwnedFd> {
    let entries = sockets.iter().map(|(queue, _)| queue.saturating_add(1)).max().unwrap_or(1);
    let table =
        made(MAP_CREATE, &MapCreate { kind: MAP_TYPE_XSKMAP, key_bytes: 4, value_bytes: 4, entries, flags: 0 })?;
    for (queue, socket) in sockets {
        let socket = socket.as_raw_fd() as u32;
        let update = MapUpdate {
            map: table.as_raw_fd() as u32,
            key: &raw const *queue as u64,
            value: &raw const socket as u64,
            ..MapUpdate::default()
        };
        bpf(MAP_UPDATE_ELEM, &update)?;
    }
    Ok(table)
}

fn load(table: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let text = redirect(table.as_raw_fd() as u32);
    let mut name = [0; 16];
    name[..8].copy_from_slice(b"nicforge");
    let load = ProgLoad {
        kind: PROG_TYPE_XDP,
        instructions: text.len() as u32,
        text: text.as_ptr() as u64,
        license: c"Apache-2.0".as_ptr() as u64,
        flags: HAS_FRAGS,
        name,
        attach_type: ATTACH_TYPE_XDP,
        ..ProgLoad::default()
    };
    made(PROG_LOAD, &load)
}

/// A call that makes a file.
fn made<T>(command: u32, attributes: &T) -> io::Result<OwnedFd> {
    let file = bpf(command, attributes)?;
    // SAFETY: the call succeeded, so this is a new file that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(file as i32) })
}

fn bpf<T>(command: u32, attributes: &T) -> io::Result<c_long> {
    // SAFETY: the system reads the attributes, which are plain numbers without padding, as long as
    // it is told that they are, and behind the addresses in them what their authors put there: a
    // key and a value of four bytes, or as many instructions as said and a string with its end.
    // It writes nothing.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw const *attributes, size_of::<T>()) };
    match result {
        0.. => Ok(result),
        _ => Err(io::Error::last_os_error()),
    }
}
