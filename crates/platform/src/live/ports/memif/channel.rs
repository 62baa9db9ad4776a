//! The control channel: a Unix socket that keeps messages apart, each with at most one file.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen, recvmsg, sendmsg,
    socket_with,
};

use super::message::{MESSAGE_BYTES, Message};

/// How this program calls itself.
const NAME: &str = "nicforge";
/// Peers that may wait to be accepted.
const BACKLOG: i32 = 8;
/// Files that are taken with one message, of which all but the first are closed.
const FILES_MAX: usize = 8;
const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

fn new_socket() -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, FLAGS, None)
}

/// The place where a server waits; the path goes with the value.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    path: PathBuf,
}

impl Listener {
    /// Waits at `path`.
    ///
    /// # Errors
    /// Another program listens there, or the path cannot be used.
    pub fn new(path: &Path) -> io::Result<Listener> {
        let address = SocketAddrUnix::new(path)?;
        let socket = new_socket()?;
        if let Err(cause) = bind(&socket, &address) {
            // A socket that nobody listens at is what is left of a program that was killed.
            let is_left = cause == Errno::ADDRINUSE && connect(new_socket()?, &address) == Err(Errno::CONNREFUSED);
            if !is_left {
                return Err(cause.into());
            }
            std::fs::remove_file(path)?;
            bind(&socket, &address)?;
        }
        listen(&socket, BACKLOG)?;
        Ok(Listener { socket, path: path.to_owned() })
    }

    /// The next client, if one waits.
    pub fn accept(&self) -> Option<Channel> {
        accept_with(&self.socket, FLAGS).ok().map(|socket| Channel { socket })
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // That it is gone already is fine.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// What came in.
#[derive(Debug)]
pub enum Incoming {
    /// A message, and the file that came with it.
    Message(Message, Option<OwnedFd>),
    /// Something that is none.
    Nonsense,
    /// Nothing yet.
    Nothing,
    /// The peer is gone.
    End,
}

/// One end of a channel.
#[derive(Debug)]
pub struct Channel {
    socket: OwnedFd,
}

impl Channel {
    /// The channel to the server at `path`; `None` while no server listens there.
    ///
    /// # Errors
    /// The path is none, or the system refuses.
    pub fn connect(path: &Path) -> io::Result<Option<Channel>> {
        let socket = new_socket()?;
        match connect(&socket, &SocketAddrUnix::new(path)?) {
            Ok(()) => Ok(Some(Channel { socket })),
            Err(Errno::NOENT | Errno::CONNREFUSED | Errno::AGAIN) => Ok(None),
            Err(cause) => Err(cause.into()),
        }
    }

    /// Both ends of a channel.
    #[cfg(test)]
    pub fn pair() -> (Channel, Channel) {
        let (one, other) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, FLAGS, None).expect("two sockets");
        (Channel { socket: one }, Channel { socket: other })
    }

    /// Sends `message`, and `file` with it, if the peer takes it now; whether it did.
    pub fn send(&self, message: &Message, file: Option<BorrowedFd<'_>>) -> bool {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        if let Some(file) = &file {
            beside.push(SendAncillaryMessage::ScmRights(std::slice::from_ref(file)));
        }
        let bytes = message.encode(NAME);
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        sendmsg(&self.socket, &[IoSlice::new(&bytes)], &mut beside, flags).is_ok()
    }

    /// The next message, without waiting for one.
    pub fn receive(&self) -> Incoming {
        let mut bytes = [0; MESSAGE_BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let received = match recvmsg(&self.socket, &mut parts, &mut beside, RecvFlags::CMSG_CLOEXEC) {
            Ok(received) => received.bytes,
            Err(cause) if io::Error::from(cause).kind() == ErrorKind::WouldBlock => return Incoming::Nothing,
            Err(Errno::INTR) => return Incoming::Nothing,
            Err(_) => return Incoming::End,
        };
        let mut file = None;
        for message in beside.drain() {
            if let RecvAncillaryMessage::ScmRights(files) = message {
                // All of them, so that those behind the first are closed.
                let files: Vec<OwnedFd> = files.collect();
                file = file.or(files.into_iter().next());
            }
        }
        match received {
            0 => Incoming::End,
            MESSAGE_BYTES => match Message::decode(&bytes) {
                Some(message) => Incoming::Message(message, file),
                None => Incoming::Nonsense,
            },
            _ => Incoming::Nonsense,
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
