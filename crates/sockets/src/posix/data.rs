//! Sending and receiving.

use std::sync::atomic::Ordering;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};

pub use super::buffers::Buffers;
use super::link::borrowed;
use super::lock::lock;
use super::socket::{Socket, wait_readable};
use super::tls;
use crate::layout::{FLAG_MORE, Kind, State, TOKENS};
use crate::queue::Message;
use crate::shared::Ring;

/// Flags of one call that matter here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    pub(super) peek: bool,
    pub(super) all: bool,
    pub(super) now: bool,
    pub(super) discard: bool,
}

/// Receives; 0 is the end of the stream.
pub fn receive(number: i32, socket: &Socket, buffers: Buffers<'_>, flags: i32) -> Result<usize, Errno> {
    buffers.check()?;
    if tls::decrypts(socket) {
        let record = tls::receive(number, socket, buffers, flags, false)?;
        return Ok(record.bytes);
    }
    if flags & libc::MSG_ERRQUEUE != 0 {
        return Err(Errno::AGAIN);
    }
    if flags & libc::MSG_OOB != 0 {
        // Urgent data stays in line.
        return Err(Errno::INVAL);
    }
    let manner = Manner {
        peek: flags & libc::MSG_PEEK != 0,
        all: flags & libc::MSG_WAITALL != 0,
        now: flags & libc::MSG_DONTWAIT != 0,
        discard: flags & libc::MSG_TRUNC != 0,
    };
    let wanted = buffers.bytes();
    let mut got = 0;
    loop {
        let taken = take(number, socket, buffers, got, wanted - got, manner)?;
        got += taken;
        let enough = got > 0 && (!manner.all || manner.peek || got == wanted);
        if enough || wanted == 0 {
            return Ok(got);
        }
        if taken > 0 {
            continue;
        }
        // An error that comes after bytes is the next call's.
        if got > 0 && socket.has_error() {
            return Ok(got);
        }
        match wait(number, socket, manner) {
            Ok(true) => {}
            Ok(false) => return Ok(got),
            Err(_) if got > 0 => return Ok(got),
            Err(cause) => return Err(cause),
        }
    }
}

/// Takes what is there.
#[inline]
fn take(
    number: i32,
    socket: &Socket,
    buffers: Buffers<'_>,
    skip: usize,
    wanted: usize,
    manner: Manner,
) -> Result<usize, Errno> {
    let (service, own) = (&socket.page().service, &socket.page().application);
    let held = lock(&own.rx_lock);
    let tail = own.rx_tail.load(Ordering::Relaxed);
    // Both sides of a page are writable to its processes: a length is never trusted beyond the ring.
    let ready = ready(socket, service.rx_head.load(Ordering::Acquire), tail);
    let len = ready.min(wanted);
    if len == 0 {
        return Ok(0);
    }
    if !manner.discard {
        buffers.parts(skip, len, |to, part, done| {
            // SAFETY: the program's buffer is writable for `part` bytes by `Buffers::new`.
            unsafe { socket.memory.drain_to(Ring::Receive, tail + done as u64, to, part) }
        });
    }
    if manner.peek {
        own.partial.store(1, Ordering::SeqCst);
        return Ok(len);
    }
    let tail = tail + len as u64;
    let (rearm, bump) = took(number, socket, tail, len == ready);
    drop(held);
    announce(socket, rearm, bump);
    Ok(len)
}

/// Notes what was taken up to `tail`; tells whether a token has to be asked for, and the space to give back. The caller
/// has the receive lock.
pub(super) fn took(number: i32, socket: &Socket, tail: u64, is_empty: bool) -> (bool, u32) {
    let own = &socket.page().application;
    own.rx_tail.store(tail, Ordering::Relaxed);
    let rearm = if is_empty {
        !clear_tokens(number, socket, tail)
    } else {
        thin_tokens(number, socket);
        own.partial.store(1, Ordering::SeqCst);
        false
    };
    (rearm, due_bump(socket, tail, false))
}

/// Tells the service of it, without the lock.
pub(super) fn announce(socket: &Socket, rearm: bool, bump: u32) {
    if rearm || bump > 0 {
        let kind = if rearm { Kind::Rearm } else { Kind::Bump };
        // The bytes are the program's even if the service has gone meanwhile.
        let _ = socket.push(Message { rx_bump: bump, ..Message::new(kind, socket.flow) });
    }
}

pub(super) fn ready(socket: &Socket, head: u64, tail: u64) -> usize {
    (head.saturating_sub(tail) as usize).min(socket.memory.ring_bytes())
}

/// Space to give back: over a quarter of the ring, or `all`. The caller has the receive lock.
pub fn due_bump(socket: &Socket, tail: u64, all: bool) -> u32 {
    let bumped = &socket.page().application.rx_bumped;
    let due = tail.saturating_sub(bumped.load(Ordering::Relaxed)) as usize;
    if due == 0 || (!all && due < socket.memory.ring_bytes() / 4) {
        return 0;
    }
    bumped.store(tail, Ordering::Relaxed);
    due.min(socket.memory.ring_bytes()) as u32
}

/// Leaves one token of many: a descriptor that is full of them shows no further edge. The caller has the receive lock.
fn thin_tokens(number: i32, socket: &Socket) {
    let (service, own) = (&socket.page().service, &socket.page().application);
    let wanted = service.issued.load(Ordering::SeqCst).wrapping_add(own.rearms.load(Ordering::Relaxed));
    let outstanding = wanted.wrapping_sub(own.taken.load(Ordering::Relaxed));
    if outstanding > TOKENS / 2 {
        take_tokens(number, outstanding as usize - 1);
        own.taken.store(wanted.wrapping_sub(1), Ordering::SeqCst);
    }
}

/// Makes the descriptor of an empty ring unreadable. Returns false when data came meanwhile for which a token has to be
/// asked for. The caller has the receive lock.
fn clear_tokens(number: i32, socket: &Socket, tail: u64) -> bool {
    let (service, own) = (&socket.page().service, &socket.page().application);
    let wanted = service.issued.load(Ordering::SeqCst).wrapping_add(own.rearms.load(Ordering::Relaxed));
    let outstanding = wanted.wrapping_sub(own.taken.load(Ordering::Relaxed));
    if outstanding != 0 {
        take_tokens(number, outstanding as usize);
        own.taken.store(wanted, Ordering::SeqCst);
    }
    if service.rx_head.load(Ordering::SeqCst) <= tail {
        return true;
    }
    let again = service.issued.load(Ordering::SeqCst).wrapping_add(own.rearms.load(Ordering::Relaxed));
    let covered = again != wanted;
    if !covered {
        own.rearms.store(own.rearms.load(Ordering::Relaxed).wrapping_add(1), Ordering::SeqCst);
    }
    covered
}

/// Takes tokens of which the last may still be on their way: the service counts a token, publishes data, and sends it.
fn take_tokens(number: i32, mut outstanding: usize) {
    let descriptor = borrowed(number);
    let mut tokens = [0u8; 64];
    for _ in 0..TOKEN_TRIES {
        let part = outstanding.min(tokens.len());
        // A plain read, which sandboxes allow; on a blocking descriptor it waits for a token that was promised.
        match rustix::io::read(descriptor, &mut tokens[..part]) {
            Ok(0) => return,
            Ok(taken) => outstanding -= taken,
            Err(Errno::AGAIN) => {
                let patience = Timespec { tv_sec: 0, tv_nsec: TOKEN_PATIENCE_NS };
                let _ = poll(&mut [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)], Some(&patience));
            }
            Err(_) => return,
        }
        if outstanding == 0 {
            return;
        }
    }
}

/// A service that is preempted between count and token comes back within these.
const TOKEN_TRIES: u32 = 20;
const TOKEN_PATIENCE_NS: i64 = 10_000_000;

/// Waits for data. False is the end of the stream.
pub(super) fn wait(number: i32, socket: &Socket, manner: Manner) -> Result<bool, Errno> {
    let (service, own) = (&socket.page().service, &socket.page().application);
    match socket.state() {
        State::Fresh | State::Listening => return Err(Errno::NOTCONN),
        State::Connecting | State::Connected | State::Closed => {}
    }
    // In this order: the service adds the last data, then says that it was the last.
    let finished = service.finished.load(Ordering::Acquire) != 0;
    let over = own.shut.load(Ordering::Acquire) & 1 != 0 || socket.state() == State::Closed;
    let held = lock(&own.rx_lock);
    let tail = own.rx_tail.load(Ordering::Relaxed);
    if ready(socket, service.rx_head.load(Ordering::Acquire), tail) > 0 {
        return Ok(true);
    }
    // As in Linux, a FIN that came before a reset is what a reader sees.
    if finished {
        return Ok(false);
    }
    if let Some(cause) = socket.report_error(number) {
        return Err(cause);
    }
    if over {
        return Ok(false);
    }
    let armed = clear_tokens(number, socket, tail);
    drop(held);
    if !armed {
        socket.push(Message::new(Kind::Rearm, socket.flow))?;
        return Ok(true);
    }
    match wait_readable(number, manner.now) {
        // A service that lives says that a stream has ended before it shows the end.
        Ok(false) if socket.state() != State::Closed && service.finished.load(Ordering::Acquire) == 0 => {
            let shut = own.shut.load(Ordering::Acquire) & 1 != 0;
            if shut { Ok(true) } else { Err(socket.lose()) }
        }
        Ok(_) | Err(Errno::CONNRESET) => Ok(true),
        Err(cause) => Err(cause),
    }
}

/// Sends. Blocking descriptors take everything; others what fits.
pub fn transmit(number: i32, socket: &Socket, buffers: Buffers<'_>, flags: i32) -> Result<usize, Errno> {
    buffers.check()?;
    if tls::encrypts(socket) {
        return tls::transmit(number, socket, buffers, flags, tls::DATA);
    }
    let wanted = buffers.bytes();
    let mut sent = 0;
    while sent < wanted || wanted == 0 {
        if sent > 0 && socket.has_error() {
            return Ok(sent);
        }
        if let Err(cause) = sendable(number, socket) {
            return partial(sent, cause);
        }
        let put = if socket.state() == State::Connecting {
            0
        } else {
            put(socket, wanted - sent, flags & libc::MSG_MORE != 0, |at, len| {
                buffers.parts(sent, len, |from, part, done| {
                    // SAFETY: the program's buffer is readable for `part` bytes by `Buffers::new`.
                    unsafe { socket.memory.fill_from(Ring::Transmit, at + done as u64, from, part) }
                });
                Ok(len)
            })?
        };
        sent += put;
        if wanted == 0 {
            break;
        }
        if put == 0
            && let Err(cause) = wait_space(number, socket, flags & libc::MSG_DONTWAIT != 0, 1)
        {
            return partial(sent, cause);
        }
    }
    Ok(sent)
}

/// What a call that cannot go on returns: the error counts for the next call when bytes were moved.
pub fn partial(moved: usize, cause: Errno) -> Result<usize, Errno> {
    if moved > 0 { Ok(moved) } else { Err(cause) }
}

/// Whether a send can succeed at all.
pub fn sendable(number: i32, socket: &Socket) -> Result<(), Errno> {
    if let Some(cause) = socket.report_error(number) {
        return Err(cause);
    }
    let shut = socket.page().application.shut.load(Ordering::Acquire) & 2 != 0;
    match socket.state() {
        State::Connecting | State::Connected if !shut => Ok(()),
        _ => Err(Errno::PIPE),
    }
}

/// Puts up to `wanted` bytes into the transmit ring, which `fill` copies there, and tells the service. With `more`
/// others follow at once.
pub fn put(
    socket: &Socket,
    wanted: usize,
    more: bool,
    fill: impl FnOnce(u64, usize) -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    let own = &socket.page().application;
    let held = lock(&own.tx_lock);
    let head = own.tx_head.load(Ordering::Relaxed);
    let len = space(socket, head).min(wanted);
    if len == 0 {
        return Ok(0);
    }
    let len = fill(head, len)?;
    own.tx_head.store(head + len as u64, Ordering::Relaxed);
    // Under the lock: a FIN must not overtake data.
    if len > 0 {
        let flags = if more { FLAG_MORE } else { 0 };
        socket.push(Message { tx_bump: len as u32, flags, ..Message::new(Kind::Bump, socket.flow) })?;
    }
    drop(held);
    Ok(len)
}

fn space(socket: &Socket, head: u64) -> usize {
    let tail = socket.page().service.tx_tail.load(Ordering::Acquire);
    socket.memory.ring_bytes().saturating_sub(head.saturating_sub(tail) as usize)
}

/// Waits until the transmit ring has room for `least` bytes.
pub fn wait_space(number: i32, socket: &Socket, now: bool, least: usize) -> Result<(), Errno> {
    let descriptor = borrowed(number);
    if !Socket::hold(descriptor) && matches!(socket.state(), State::Connecting | State::Connected) {
        return Err(socket.lose());
    }
    if socket.state() != State::Connecting
        && space(socket, socket.page().application.tx_head.load(Ordering::Acquire)) >= least
    {
        // The service saw the tokens come and the room that there is, or it does on its next look.
        return Ok(());
    }
    if now {
        return Err(Errno::AGAIN);
    }
    // Waits as the kernel would: O_NONBLOCK, the send timeout and signals count.
    match send(descriptor, b"w", SendFlags::NOSIGNAL) {
        Ok(_) | Err(Errno::PIPE | Errno::CONNRESET) => Ok(()),
        Err(cause) => Err(cause),
    }
}

/// Bytes that can be received at once. A program that was told how many waits for an edge if there are more.
pub fn receivable(socket: &Socket) -> usize {
    let page = socket.page();
    page.application.partial.store(1, Ordering::SeqCst);
    ready(socket, page.service.rx_head.load(Ordering::SeqCst), page.application.rx_tail.load(Ordering::Acquire))
}

/// Bytes that were sent and not acknowledged.
pub fn unsent(socket: &Socket) -> usize {
    let head = socket.page().application.tx_head.load(Ordering::Acquire);
    socket.memory.ring_bytes() - space(socket, head)
        + socket.page().service.figures.unacknowledged.load(Ordering::Relaxed) as usize
}
