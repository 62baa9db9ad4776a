//! Control messages: requests of applications over a Unix socket, each with one reply.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use bytemuck::{Pod, Zeroable};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use crate::address::WireAddress;

/// What an application asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Request {
    /// Registers this process. `value` is the version. Reply: context, bell, wake-up event, status page.
    Hello = 1,
    /// A socket of family `value`; `extra` 1 asks for ARX entries in place of tokens. Reply: descriptor, memory.
    Socket = 2,
    /// Binds `flow` to `address`; `value` has [`BIND_REUSE_ADDRESS`] and so on.
    Bind = 3,
    /// Listens with a backlog of `value`.
    Listen = 4,
    /// Connects to `address`.
    Connect = 5,
    /// Which flow is the descriptor that comes along? Reply: its memory.
    Adopt = 6,
    /// Sockets from number `value` on, for `nicforge ss`: replies of JSON text, one per socket, and one that says where
    /// the next request begins or that this was all.
    List = 8,
    /// Limits of the process `value`: `extra` connections (lower half), bytes per second / 1024 (upper half).
    Limit = 9,
    /// Copies of the network's frames, up to `value` bytes of each, until the asking end hangs up. A filter's text
    /// follows the request in the same message.
    Capture = 10,
    /// What happens to segments, as lines of JSON, until the asking end hangs up. A filter's text follows.
    Trace = 11,
    /// Encrypts direction `value` (`TLS_TX`, `TLS_RX`) of a connection. The structure that the program gave follows.
    Tls = 12,
    /// Writes a connection's figures of now into its memory.
    Figures = 13,
}

impl Request {
    /// The request with this number.
    pub fn of(number: u32) -> Option<Request> {
        use Request::*;
        [Hello, Socket, Bind, Listen, Connect, Adopt, List, Limit, Capture, Trace, Tls, Figures]
            .into_iter()
            .find(|request| *request as u32 == number)
    }
}

/// `SO_REUSEADDR` is set.
pub const BIND_REUSE_ADDRESS: u32 = 1;
/// `SO_REUSEPORT` is set.
pub const BIND_REUSE_PORT: u32 = 2;
/// `IPV6_V6ONLY` is set.
pub const BIND_V6_ONLY: u32 = 4;
/// The address need not be the service's.
pub const BIND_FREE: u32 = 8;

/// A request's bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct RequestMessage {
    /// [`Request`] as a number.
    pub request: u32,
    /// The flow that it is about.
    pub flow: u32,
    /// Proof that the process has the flow.
    pub key: u64,
    /// See [`Request`].
    pub value: u32,
    /// Zero.
    pub reserved: u32,
    /// See [`Request`].
    pub extra: u64,
    /// See [`Request`].
    pub address: WireAddress,
}

/// A reply's bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct ReplyMessage {
    /// Error number, or 0.
    pub error: u32,
    /// A flow or a process's number.
    pub value: u32,
}

/// What the service sends over a listener's descriptor for each connection, with its descriptor and memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Arrival {
    /// The peer's address.
    pub remote: WireAddress,
}

/// Descriptors that one message can carry.
pub const DESCRIPTORS: usize = 4;

/// Sends one message with descriptors. A full socket gives [`Errno::AGAIN`] with `flags` that do not wait.
pub fn send(to: BorrowedFd<'_>, bytes: &[u8], descriptors: &[BorrowedFd<'_>], flags: SendFlags) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::INVAL);
    }
    let sent = sendmsg(to, &[IoSlice::new(bytes)], &mut ancillary, flags | SendFlags::NOSIGNAL)?;
    if sent == bytes.len() { Ok(()) } else { Err(Errno::MSGSIZE) }
}

/// A received message.
#[derive(Debug)]
pub struct Received {
    /// Bytes of it; 0 at the end.
    pub len: usize,
    /// What came along.
    pub descriptors: Vec<OwnedFd>,
    /// Descriptors got lost: the process has no number left.
    pub cut: bool,
}

/// Receives one message.
pub fn receive(from: BorrowedFd<'_>, bytes: &mut [u8], flags: RecvFlags) -> Result<Received, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let message = recvmsg(from, &mut [IoSliceMut::new(bytes)], &mut ancillary, flags)?;
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    Ok(Received { len: message.bytes, descriptors, cut: message.flags.contains(ReturnFlags::CTRUNC) })
}

/// Sends a request and waits for its reply.
pub fn ask(
    control: impl AsFd,
    request: &RequestMessage,
    descriptors: &[BorrowedFd<'_>],
) -> Result<(ReplyMessage, Vec<OwnedFd>), Errno> {
    let control = control.as_fd();
    retry(|| send(control, bytemuck::bytes_of(request), descriptors, SendFlags::empty()))?;
    reply(control)
}

/// Waits for the reply to a request.
pub fn reply(control: BorrowedFd<'_>) -> Result<(ReplyMessage, Vec<OwnedFd>), Errno> {
    let mut reply = ReplyMessage::zeroed();
    let received = retry(|| receive(control, bytemuck::bytes_of_mut(&mut reply), RecvFlags::CMSG_CLOEXEC))?;
    if received.len != size_of::<ReplyMessage>() {
        return Err(Errno::CONNRESET);
    }
    if received.cut {
        return Err(Errno::MFILE);
    }
    if reply.error != 0 {
        return Err(Errno::from_raw_os_error(reply.error as i32));
    }
    Ok((reply, received.descriptors))
}

/// Repeats a call that a signal interrupted.
pub fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}
