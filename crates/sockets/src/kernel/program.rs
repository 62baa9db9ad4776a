//! Sockets of the kernel whose records the NIC encrypts, in a program that runs over the library.
//!
//! The kernel's TCP gets records whose tag is empty. It must get each record whole, whatever the socket has room for: the
//! library keeps what did not fit. A program learns that all but the last byte were taken, and comes again with the rest;
//! its next call sends what was kept.

use std::ffi::{c_int, c_void};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::{ArcSwapOption, Guard};
use nicforge_l5p::tls::record::{ContentType, PLAINTEXT_BYTES_MAX, Shape};
use nicforge_l5p::tls::writer::Framed;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};

use super::message::{Message, answered};
use crate::posix::data::Buffers;
use crate::posix::link::{borrowed, out_of_the_way};
use crate::tls::{CRYPTO_INFO_MOST, CryptoInfo, SOL_TLS, TLS_TX};

/// Environment variable: path of the NIC's Unix socket.
pub const PATH_VARIABLE: &str = "NICFORGE_KTLS";

/// Numbers from here on are not offloaded.
const NUMBERS: usize = 1 << 16;

static SOCKETS: [ArcSwapOption<Socket>; NUMBERS] = [const { ArcSwapOption::const_empty() }; NUMBERS];
/// Whether a slot is in use: what programs do with other descriptors costs one load more.
static USED: [AtomicBool; NUMBERS] = [const { AtomicBool::new(false) }; NUMBERS];

/// A TCP socket of the kernel whose program asked for kernel TLS.
pub struct Socket {
    /// The kernel's number of the socket: descriptors may be closed and taken again behind the library's back.
    inode: u64,
    has_keys: AtomicBool,
    sender: Mutex<Option<Sender>>,
}

/// The transmit half of a socket that has keys.
struct Sender {
    channel: OwnedFd,
    shape: Shape,
    number: u64,
    /// Bytes of the current record that the kernel has not taken.
    rest: Vec<u8>,
    rest_content: ContentType,
    /// Bytes that went into a record, and that the program was told to bring again.
    owed: usize,
}

/// The NIC.
static PATH: OnceLock<Option<PathBuf>> = OnceLock::new();

/// Notes where the NIC is when a program begins: programs such as nginx clear their environment later.
pub fn begin() {
    path();
}

fn path() -> Option<&'static Path> {
    PATH.get_or_init(|| std::env::var_os(PATH_VARIABLE).map(PathBuf::from)).as_deref()
}

fn inode(number: c_int) -> Option<u64> {
    rustix::fs::fstat(borrowed(number)).ok().map(|state| state.st_ino)
}

/// Whether a number may be such a socket.
#[inline]
pub fn is_used(number: c_int) -> bool {
    USED.get(number as usize).is_some_and(|used| used.load(Ordering::Acquire))
}

fn known(number: c_int) -> Option<Arc<Socket>> {
    if !is_used(number) {
        return None;
    }
    let socket = Guard::into_inner(SOCKETS[number as usize].load())?;
    if inode(number) == Some(socket.inode) {
        return Some(socket);
    }
    forget(number);
    None
}

/// The socket of a number, if the NIC encrypts what it sends.
#[inline]
pub fn get(number: c_int) -> Option<Arc<Socket>> {
    known(number).filter(|socket| socket.has_keys.load(Ordering::Acquire))
}

/// Forgets a number that closes.
#[inline]
pub fn forget(number: c_int) {
    if USED.get(number as usize).is_some_and(|used| used.swap(false, Ordering::AcqRel)) {
        SOCKETS[number as usize].store(None);
    }
}

/// Notes that `copy` is the same socket as `number`.
pub fn copied(number: c_int, copy: c_int) {
    match known(number) {
        Some(socket) => {
            keep(copy, socket);
        }
        None => forget(copy),
    }
}

fn keep(number: c_int, socket: Arc<Socket>) -> bool {
    let Some(slot) = SOCKETS.get(number as usize) else { return false };
    slot.store(Some(socket));
    USED[number as usize].store(true, Ordering::Release);
    true
}

/// `setsockopt` of a socket of the kernel; `None` where it is the kernel's business.
///
/// # Safety
/// `given` is readable for `len` bytes, or null.
pub unsafe fn set(
    number: c_int,
    level: c_int,
    name: c_int,
    given: *const c_void,
    len: libc::socklen_t,
) -> Option<Result<(), Errno>> {
    if (level, name) != (libc::IPPROTO_TCP, libc::TCP_ULP) && level != SOL_TLS {
        return None;
    }
    let nic = path()?;
    if given.is_null() {
        return Some(Err(Errno::FAULT));
    }
    let len = len as usize;
    if len > CRYPTO_INFO_MOST {
        return Some(Err(Errno::INVAL));
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(given.cast::<u8>(), len) };
    Some(match (level, name) {
        (SOL_TLS, TLS_TX) => set_keys(nic, number, bytes),
        // The kernel's socket has no place for what the NIC reports of received packets.
        (SOL_TLS, _) => Err(Errno::NOPROTOOPT),
        _ => ask(number, bytes),
    })
}

/// `TCP_ULP`.
fn ask(number: c_int, bytes: &[u8]) -> Result<(), Errno> {
    if bytes.split(|byte| *byte == 0).next() != Some(b"tls") {
        return Err(Errno::NOENT);
    }
    if known(number).is_some() {
        return Err(Errno::EXIST);
    }
    rustix::net::getpeername(borrowed(number))?;
    let inode = inode(number).ok_or(Errno::BADF)?;
    let socket = Socket { inode, has_keys: AtomicBool::new(false), sender: Mutex::new(None) };
    if keep(number, Arc::new(socket)) { Ok(()) } else { Err(Errno::NOMEM) }
}

/// `TLS_TX`.
fn set_keys(nic: &Path, number: c_int, bytes: &[u8]) -> Result<(), Errno> {
    let socket = known(number).ok_or(Errno::NOPROTOOPT)?;
    let info = CryptoInfo::parse(bytes)?;
    let shape = Shape::of(info.keys.version, info.keys.cipher);
    let mut sender = socket.sender.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(sender) = &mut *sender {
        Message::Keys(bytes).send(sender.channel.as_fd(), &[])?;
        answered(sender.channel.as_fd())?;
        sender.shape = shape;
        sender.number = 0;
        return Ok(());
    }
    let channel = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    let channel = out_of_the_way(channel);
    rustix::net::connect(&channel, &SocketAddrUnix::new(nic)?)?;
    Message::Keys(bytes).send(channel.as_fd(), &[borrowed(number)])?;
    answered(channel.as_fd())?;
    let (rest, rest_content) = (Vec::new(), ContentType::DATA);
    *sender = Some(Sender { channel, shape, number: info.number, rest, rest_content, owed: 0 });
    socket.has_keys.store(true, Ordering::Release);
    Ok(())
}

impl Socket {
    /// Sends a program's bytes as records of one type.
    ///
    /// # Errors
    ///
    /// The kernel's; `EPIPE` when the NIC is gone: bytes must not leave without it.
    pub fn transmit(&self, number: c_int, buffers: Buffers<'_>, flags: c_int, content: u8) -> Result<usize, Errno> {
        buffers.check()?;
        let wanted = buffers.bytes();
        self.send(number, flags, ContentType(content), |done, most| {
            let len = (wanted - done).min(most);
            let mut data = vec![0; len];
            buffers.parts(done, len, |from, part, at| {
                // SAFETY: the program's buffer is readable for `part` bytes by `Buffers::new`, and there is room for them.
                unsafe { std::ptr::copy_nonoverlapping(from, data[at..].as_mut_ptr(), part) }
            });
            Ok(data)
        })
    }

    /// `sendfile`: a file's bytes as records of data.
    ///
    /// # Errors
    ///
    /// As of [`transmit`](Self::transmit), and the file's.
    pub fn send_file(
        &self,
        number: c_int,
        file: c_int,
        offset: Option<&mut i64>,
        count: usize,
        flags: c_int,
    ) -> Result<usize, Errno> {
        let file = borrowed(file);
        let from = match &offset {
            Some(offset) => **offset as u64,
            None => rustix::fs::tell(file)?,
        };
        let sent = self.send(number, flags, ContentType::DATA, |done, most| {
            let mut data = vec![0; (count - done).min(most)];
            let read = rustix::io::pread(file, &mut data, from + done as u64)?;
            data.truncate(read);
            Ok(data)
        })?;
        match offset {
            Some(offset) => *offset += sent as i64,
            None => {
                rustix::fs::seek(file, rustix::fs::SeekFrom::Start(from + sent as u64))?;
            }
        }
        Ok(sent)
    }

    /// Makes records of what `next` gives from an offset on, at most so many bytes, until it gives nothing.
    fn send(
        &self,
        number: c_int,
        flags: c_int,
        content: ContentType,
        mut next: impl FnMut(usize, usize) -> Result<Vec<u8>, Errno>,
    ) -> Result<usize, Errno> {
        let mut sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = sender.as_mut().ok_or(Errno::NOTCONN)?;
        let connection = borrowed(number);
        if !sender.flush(connection, flags)? {
            return Err(Errno::AGAIN);
        }
        let mut done = if sender.rest_content == content { std::mem::take(&mut sender.owed) } else { 0 };
        if done > 0 {
            // The program may bring nothing this time.
            done = next(0, done)?.len();
        }
        loop {
            let taken = next(done, PLAINTEXT_BYTES_MAX).and_then(|data| {
                sender.begin(content, &data)?;
                Ok(data.len())
            });
            let taken = match taken {
                Ok(0) => return Ok(done),
                Ok(taken) => taken,
                Err(cause) => return if done > 0 { Ok(done) } else { Err(cause) },
            };
            match sender.flush(connection, flags) {
                Ok(true) => done += taken,
                Ok(false) => {
                    sender.owed = 1;
                    done += taken - 1;
                    return if done > 0 { Ok(done) } else { Err(Errno::AGAIN) };
                }
                Err(cause) => return if done > 0 { Ok(done) } else { Err(cause) },
            }
        }
    }
}

impl Sender {
    /// Says to the driver what the next record is, and keeps its bytes for the kernel. Nothing becomes no record.
    fn begin(&mut self, content: ContentType, data: &[u8]) -> Result<(), Errno> {
        if data.is_empty() {
            return Ok(());
        }
        let framed = Framed::new(self.shape, self.number, content, data.len(), 0).map_err(|_| Errno::MSGSIZE)?;
        Message::Record { content, data }.send(self.channel.as_fd(), &[])?;
        self.number += 1;
        self.rest_content = content;
        self.rest = [&framed.head, data, &framed.tail].concat();
        Ok(())
    }

    /// Writes what is kept. Tells whether all of it was taken; otherwise the socket is full.
    fn flush(&mut self, connection: BorrowedFd<'_>, flags: c_int) -> Result<bool, Errno> {
        let flags = SendFlags::from_bits_retain(flags as u32) | SendFlags::NOSIGNAL;
        while !self.rest.is_empty() {
            match rustix::net::send(connection, &self.rest, flags) {
                Ok(taken) => {
                    self.rest.drain(..taken);
                }
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(cause) => return Err(cause),
            }
        }
        Ok(true)
    }
}
