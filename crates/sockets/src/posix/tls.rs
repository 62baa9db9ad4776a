//! Kernel TLS for programs: `TCP_ULP`, `SOL_TLS`, and records in place of bytes.

use std::sync::atomic::Ordering;

use rustix::io::Errno;

use super::data::{Buffers, Manner, announce, partial, put, ready, sendable, took, wait, wait_space};
use super::link::link;
use super::lock::lock;
use super::socket::Socket;
use crate::control::{Request, RequestMessage};
use crate::layout::State;
use crate::shared::Ring;
use crate::tls::{
    CRYPTO_INFO_MOST, CryptoInfo, FAILED, PIECE_HEADER, PIECE_MOST, SOL_TLS, TLS_RX, TLS_TX, parse_piece_header,
    piece_header,
};

/// Type of a record with data.
pub const DATA: u8 = 23;

const ASKED: u32 = 1;
const SENDS: u32 = 2;
const RECEIVES: u32 = 4;

/// Whether what the program sends is encrypted.
#[inline]
pub fn encrypts(socket: &Socket) -> bool {
    socket.page().application.tls.load(Ordering::Acquire) & SENDS != 0
}

/// Whether what comes is decrypted.
#[inline]
pub fn decrypts(socket: &Socket) -> bool {
    socket.page().application.tls.load(Ordering::Acquire) & RECEIVES != 0
}

/// Whether an option is one of these.
pub fn is_about(level: i32, name: i32) -> bool {
    level == SOL_TLS || (level, name) == (libc::IPPROTO_TCP, libc::TCP_ULP)
}

/// `setsockopt` of one of these.
///
/// # Safety
/// `given` is readable for `len` bytes, or null.
pub unsafe fn set(
    socket: &Socket,
    level: i32,
    name: i32,
    given: *const libc::c_void,
    len: libc::socklen_t,
) -> Result<(), Errno> {
    if given.is_null() {
        return Err(Errno::FAULT);
    }
    let len = len as usize;
    if len > CRYPTO_INFO_MOST {
        return Err(Errno::INVAL);
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(given.cast::<u8>(), len) };
    let own = &socket.page().application;
    if level != SOL_TLS {
        let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        if name != b"tls" {
            return Err(Errno::NOENT);
        }
        if socket.state() != State::Connected {
            return Err(Errno::NOTCONN);
        }
        let before = own.tls.fetch_or(ASKED, Ordering::AcqRel);
        return if before & ASKED == 0 { Ok(()) } else { Err(Errno::EXIST) };
    }
    if own.tls.load(Ordering::Acquire) & ASKED == 0 {
        return Err(Errno::NOPROTOOPT);
    }
    // Checked here, too: the service's answer costs a round trip.
    CryptoInfo::parse(bytes)?;
    let request = RequestMessage { value: name as u32, ..socket.request(Request::Tls) };
    match name {
        TLS_TX => {
            let _held = lock(&own.tx_lock);
            link()?.ask_with(&request, bytes)?;
            own.tls.fetch_or(SENDS, Ordering::AcqRel);
        }
        TLS_RX => {
            let _held = lock(&own.rx_lock);
            link()?.ask_with(&request, bytes)?;
            own.tls.fetch_or(RECEIVES, Ordering::AcqRel);
        }
        _ => return Err(Errno::NOPROTOOPT),
    }
    Ok(())
}

/// What a call received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Bytes; 0 at the end of the stream.
    pub bytes: usize,
    /// Type of the record that they are of.
    pub kind: u8,
}

/// Receives bytes of one record. Without `any_kind` only data is taken: another record is an error, as in Linux.
pub fn receive(
    number: i32,
    socket: &Socket,
    buffers: Buffers<'_>,
    flags: i32,
    any_kind: bool,
) -> Result<Record, Errno> {
    if flags & (libc::MSG_ERRQUEUE | libc::MSG_OOB) != 0 {
        return Err(Errno::INVAL);
    }
    let manner = Manner {
        peek: flags & libc::MSG_PEEK != 0,
        all: flags & libc::MSG_WAITALL != 0,
        now: flags & libc::MSG_DONTWAIT != 0,
        discard: flags & libc::MSG_TRUNC != 0,
    };
    let wanted = buffers.bytes();
    let mut record = Record { bytes: 0, kind: DATA };
    loop {
        let rest = wanted - record.bytes;
        let taken = take(number, socket, buffers, record.bytes, rest, manner, any_kind && record.bytes == 0);
        let taken = match taken {
            Ok(taken) => taken,
            Err(_) if record.bytes > 0 => return Ok(record),
            Err(cause) => return Err(cause),
        };
        if let Some(taken) = taken {
            record = Record { bytes: record.bytes + taken.bytes, kind: taken.kind };
            let goes_on = manner.all && !manner.peek && record.kind == DATA && record.bytes < wanted;
            if !goes_on {
                return Ok(record);
            }
            continue;
        }
        if wanted == 0 || (record.bytes > 0 && socket.has_error()) {
            return Ok(record);
        }
        match wait(number, socket, manner) {
            Ok(true) => {}
            Ok(false) => return Ok(record),
            Err(_) if record.bytes > 0 => return Ok(record),
            Err(cause) => return Err(cause),
        }
    }
}

/// Takes bytes of the piece that is first; `None` when there are none yet.
fn take(
    number: i32,
    socket: &Socket,
    buffers: Buffers<'_>,
    skip: usize,
    wanted: usize,
    manner: Manner,
    any_kind: bool,
) -> Result<Option<Record>, Errno> {
    let (service, own) = (&socket.page().service, &socket.page().application);
    let held = lock(&own.rx_lock);
    let tail = own.rx_tail.load(Ordering::Relaxed);
    let ready = ready(socket, service.rx_head.load(Ordering::Acquire), tail);
    let mut left = own.tls_left.load(Ordering::Relaxed) as usize;
    let mut kind = own.tls_type.load(Ordering::Relaxed) as u8;
    let mut head = 0;
    if left == 0 {
        if ready < PIECE_HEADER {
            return Ok(None);
        }
        let mut header = [0; PIECE_HEADER];
        socket.memory.drain(Ring::Receive, tail, &mut header);
        (kind, left) = parse_piece_header(header);
        head = PIECE_HEADER;
    }
    if kind == FAILED {
        // Taken from the ring, so that a close does not reset what the program says to the peer about it.
        own.tls_left.store(left as u32, Ordering::Relaxed);
        own.tls_type.store(u32::from(kind), Ordering::Relaxed);
        if head > 0 {
            let (rearm, bump) = took(number, socket, tail + head as u64, true);
            drop(held);
            announce(socket, rearm, bump);
        }
        return Err(Errno::from_raw_os_error(left as i32));
    }
    if kind != DATA && !any_kind {
        return Err(Errno::IO);
    }
    let bytes = left.min(wanted).min(ready - head);
    if bytes == 0 {
        return Ok(None);
    }
    if !manner.discard {
        buffers.parts(skip, bytes, |to, part, done| {
            let from = tail + (head + done) as u64;
            // SAFETY: the program's buffer is writable for `part` bytes by `Buffers::new`.
            unsafe { socket.memory.drain_to(Ring::Receive, from, to, part) }
        });
    }
    if manner.peek {
        return Ok(Some(Record { bytes, kind }));
    }
    own.tls_left.store((left - bytes) as u32, Ordering::Relaxed);
    own.tls_type.store(u32::from(kind), Ordering::Relaxed);
    let (rearm, bump) = took(number, socket, tail + (head + bytes) as u64, head + bytes == ready);
    drop(held);
    announce(socket, rearm, bump);
    Ok(Some(Record { bytes, kind }))
}

/// Sends bytes as records of one type. Blocking descriptors take everything; others what fits.
pub fn transmit(number: i32, socket: &Socket, buffers: Buffers<'_>, flags: i32, kind: u8) -> Result<usize, Errno> {
    let wanted = buffers.bytes();
    let mut sent = 0;
    while sent < wanted {
        if sent > 0 && socket.has_error() {
            return Ok(sent);
        }
        if let Err(cause) = sendable(number, socket) {
            return partial(sent, cause);
        }
        let most = PIECE_HEADER + (wanted - sent).min(PIECE_MOST);
        let put = put(socket, most, false, |at, len| {
            if len <= PIECE_HEADER {
                return Ok(0);
            }
            let bytes = len - PIECE_HEADER;
            socket.memory.fill(Ring::Transmit, at, &piece_header(kind, bytes));
            buffers.parts(sent, bytes, |from, part, done| {
                let to = at + (PIECE_HEADER + done) as u64;
                // SAFETY: the program's buffer is readable for `part` bytes by `Buffers::new`.
                unsafe { socket.memory.fill_from(Ring::Transmit, to, from, part) }
            });
            Ok(len)
        })?;
        sent += put.saturating_sub(PIECE_HEADER);
        if put == 0
            && let Err(cause) = wait_space(number, socket, flags & libc::MSG_DONTWAIT != 0, PIECE_HEADER + 1)
        {
            return partial(sent, cause);
        }
    }
    Ok(sent)
}
