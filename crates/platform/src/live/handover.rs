//! How a region and its bell come to another process: by a Unix socket. And how it is noticed, and
//! made sure, that this process is gone.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::LiveError;

/// Files handed over at once, at most.
const FILES_MAX: usize = 4;

/// Sends `bytes` (at least one, so few that they go at once) and `files` with them.
pub fn send_files(socket: &UnixStream, bytes: &[u8], files: &[BorrowedFd<'_>]) -> Result<(), LiveError> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if files.len() > FILES_MAX || !beside.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(LiveError::Region(format!("cannot be handed over with {} files", files.len())));
    }
    let parts = [IoSlice::new(bytes)];
    let sent =
        sendmsg(socket, &parts, &mut beside, SendFlags::NOSIGNAL).map_err(LiveError::of("handing the region over"))?;
    if sent == bytes.len() { Ok(()) } else { Err(LiveError::Region("was handed over in part".into())) }
}

/// Receives bytes, and files if some come with them; 0 bytes when the other side is gone.
pub fn receive_files(socket: &UnixStream, bytes: &mut [u8]) -> Result<(usize, Vec<OwnedFd>), LiveError> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(bytes)];
    let received = recvmsg(socket, &mut parts, &mut beside, RecvFlags::CMSG_CLOEXEC)
        .map_err(LiveError::of("taking the region over"))?;
    let mut files = Vec::new();
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(sent) = message {
            files.extend(sent);
        }
    }
    Ok((received.bytes, files))
}

/// Another process, which no other can take the place of.
#[derive(Debug)]
pub struct Peer {
    process: OwnedFd,
    id: i32,
}

impl Peer {
    /// Who is at the other end of `socket`.
    pub fn of(socket: &UnixStream) -> Result<Peer, LiveError> {
        let credentials = socket_peercred(socket).map_err(LiveError::of("who is at the other end"))?;
        let process =
            pidfd_open(credentials.pid, PidfdFlags::empty()).map_err(LiveError::of("watching a worker's process"))?;
        Ok(Peer { process, id: credentials.pid.as_raw_nonzero().get() })
    }

    /// Its number, for people.
    pub fn id(&self) -> i32 {
        self.id
    }

    /// Becomes readable when the process is gone.
    pub fn gone(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }

    /// Ends the process, whatever it does, and waits until it is gone: then it writes nothing any
    /// more. `false` when it was still there after `patience`.
    pub fn end(&self, patience: Duration) -> bool {
        // One that is gone already needs no signal.
        let _ = pidfd_send_signal(&self.process, Signal::KILL);
        self.is_gone_within(patience)
    }

    /// Whether the process is gone, or is after `patience`.
    pub fn is_gone_within(&self, patience: Duration) -> bool {
        let timeout = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: i64::from(patience.subsec_nanos()) };
        let mut polled = [PollFd::new(&self.process, PollFlags::IN)];
        loop {
            match poll(&mut polled, Some(&timeout)) {
                Ok(ready) => return ready > 0,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }
}

/// Waits until one of `files` is readable, or for `timeout`; says which are.
pub fn wait_for(files: &[BorrowedFd<'_>], timeout: Duration) -> Result<Vec<bool>, LiveError> {
    let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
    let mut polled: Vec<_> = files.iter().map(|file| PollFd::new(file, PollFlags::IN)).collect();
    match poll(&mut polled, Some(&timeout)) {
        Ok(_) => Ok(polled.iter().map(|one| !one.revents().is_empty()).collect()),
        Err(Errno::INTR) => Ok(vec![false; files.len()]),
        Err(cause) => Err(LiveError::of("waiting for workers")(cause)),
    }
}
