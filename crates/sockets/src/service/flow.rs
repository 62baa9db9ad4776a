//! One socket as the service sees it.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;

use nicforge_units::Time;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, recv, send, sockopt};

use crate::layout::{State, TOKENS};
use crate::shared::{SocketMemory, memory_file};
use crate::transport::{Id, KeepAlive, Setting};

/// What a socket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Nothing yet.
    Fresh,
    /// A listener.
    Listener(Listener),
    /// Waits for its handshake.
    Connecting(Id),
    /// Established, or closing.
    Connected(Id),
}

/// What a listener knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Connections that may wait.
    pub backlog: usize,
    /// Connections that wait to be accepted.
    pub waiting: usize,
    /// Its descriptor's queue took no more; the rest of those that wait are held here until one is accepted.
    pub full: bool,
}

/// Options that the stack has to know.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// `TCP_NODELAY`.
    pub no_delay: bool,
    /// `TCP_CORK`.
    pub cork: bool,
    /// `TCP_MAXSEG`, 0 for none.
    pub max_segment: u16,
    /// `SO_KEEPALIVE`.
    pub keep_alive: bool,
    /// `TCP_KEEPIDLE`, seconds.
    pub keep_idle: u32,
    /// `TCP_KEEPINTVL`, seconds.
    pub keep_interval: u32,
    /// `TCP_KEEPCNT`.
    pub keep_count: u32,
    /// `TCP_USER_TIMEOUT`, milliseconds, 0 for none.
    pub user_timeout_ms: u32,
    /// `SO_LINGER` with a time of zero: a close resets.
    pub reset_on_close: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            no_delay: false,
            cork: false,
            max_segment: 0,
            keep_alive: false,
            keep_idle: 7200,
            keep_interval: 75,
            keep_count: 9,
            user_timeout_ms: 0,
            reset_on_close: false,
        }
    }
}

impl Options {
    /// The settings of a connection that follow.
    pub fn settings(&self) -> [Setting; 4] {
        let seconds = |seconds: u32| Time::from_ms(u64::from(seconds) * 1000);
        let keep_alive = self.keep_alive.then(|| KeepAlive {
            idle: seconds(self.keep_idle),
            interval: seconds(self.keep_interval),
            count: self.keep_count,
        });
        let user = (self.user_timeout_ms > 0).then(|| Time::from_ms(u64::from(self.user_timeout_ms)));
        [
            Setting::NoDelay(self.no_delay),
            Setting::Cork(self.cork),
            Setting::KeepAlive(keep_alive),
            Setting::UserTimeout(user),
        ]
    }
}

/// A socket.
#[derive(Debug)]
pub struct Flow {
    /// Its name in the context queues.
    pub name: u32,
    /// Proof of possession.
    pub key: u64,
    /// Cookie of the application's descriptor, which proves possession after an exec.
    pub cookie: u64,
    /// Made as an IPv6 socket.
    pub v6: bool,
    /// The service's end of the descriptor. The application's end is readable while this end's bytes wait in it, and
    /// not writable while its own bytes wait here.
    pub end: OwnedFd,
    /// The memory's file, for processes that adopt the socket.
    pub file: OwnedFd,
    /// The memory.
    pub memory: SocketMemory,
    /// What it is.
    pub role: Role,
    /// Application that made it, by serial number.
    pub owner: u64,
    /// Contexts that proved to have it, by serial number.
    pub contexts: Vec<u64>,
    /// Context that gets ARX entries in place of tokens.
    pub direct: Option<u64>,
    /// Listener whose descriptor holds this connection until it is accepted.
    pub waits_at: Option<u32>,
    /// Bound or connected address.
    pub local: Option<SocketAddr>,
    /// It holds a claim to its port.
    pub claimed: bool,
    /// The peer.
    pub remote: Option<SocketAddr>,
    /// Options.
    pub options: Options,
    /// Bytes ever put into the receive ring.
    pub rx_head: u64,
    /// Bytes that the receive ring can still take.
    pub rx_free: usize,
    /// Bytes ever taken from the transmit ring.
    pub tx_tail: u64,
    /// Bytes that wait in the transmit ring.
    pub tx_ready: usize,
    /// The application said that others follow them at once.
    pub more_follows: bool,
    /// FIN is to follow.
    pub finish_wanted: bool,
    /// FIN was given to the stack.
    pub finish_given: bool,
    /// The peer's FIN was shown to the application.
    pub finish_shown: bool,
    /// The application neither reads nor writes any more: data that still comes resets the connection, as in Linux.
    pub deaf: bool,
    /// The application holds its end unwritable.
    pub stopped: bool,
    /// A process said that it closes.
    pub announced: bool,
    /// The last descriptor was closed.
    pub abandoned: bool,
    /// The stack has closed the connection; bytes for the receive ring are left.
    pub over: bool,
    /// Entries about it that made no sense.
    pub refused: u64,
    /// Its application's rate is used up.
    pub paused: bool,
    /// When its figures are published again.
    pub figures_due: Time,
}

/// The least that Linux grants; two waiting bytes of one message each make the end unwritable.
const TOKEN_BUFFER: usize = 1;

/// What an application gets.
#[derive(Debug)]
pub struct Given {
    /// Its end of the descriptor.
    pub end: OwnedFd,
}

impl Flow {
    /// A fresh socket with rings of `ring_bytes`.
    pub fn new(name: u32, key: u64, v6: bool, ring_bytes: usize, owner: u64) -> Result<(Flow, Given), Errno> {
        let file = memory_file("nicforge-socket", SocketMemory::file_bytes(ring_bytes))?;
        let memory = SocketMemory::new(&file)?;
        let flags = SocketFlags::CLOEXEC;
        let (theirs, end) = rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        sockopt::set_socket_send_buffer_size(&theirs, TOKEN_BUFFER)?;
        // One byte stays unread here: closing this end then shows as an error there.
        send(&theirs, b"c", SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?;
        let cookie = sockopt::socket_cookie(&theirs)?;
        let page = &memory.page().service;
        page.flow.store(name, Ordering::Relaxed);
        page.key.store(key, Ordering::Relaxed);
        page.ring_bytes.store(ring_bytes as u32, Ordering::Relaxed);
        let family = if v6 { AddressFamily::INET6 } else { AddressFamily::INET };
        page.family.store(u32::from(family.as_raw()), Ordering::Relaxed);
        let flow = Flow {
            name,
            key,
            cookie,
            v6,
            end,
            file,
            memory,
            role: Role::Fresh,
            owner,
            contexts: Vec::new(),
            direct: None,
            waits_at: None,
            local: None,
            claimed: false,
            remote: None,
            options: Options::default(),
            rx_head: 0,
            rx_free: ring_bytes,
            tx_tail: 0,
            tx_ready: 0,
            more_follows: false,
            finish_wanted: false,
            finish_given: false,
            finish_shown: false,
            deaf: false,
            stopped: false,
            announced: false,
            abandoned: false,
            over: false,
            refused: 0,
            paused: false,
            figures_due: Time::ZERO,
        };
        Ok((flow, Given { end: theirs }))
    }

    /// The transport's connection.
    pub fn connection(&self) -> Option<Id> {
        match self.role {
            Role::Connecting(id) | Role::Connected(id) => Some(id),
            _ => None,
        }
    }

    /// Publishes the state.
    pub fn show_state(&self, state: State) {
        self.memory.page().service.state.store(state as u32, Ordering::Release);
    }

    /// Publishes the addresses as a socket of its family shows them.
    pub fn show_addresses(&self) {
        let page = &self.memory.page().service;
        if let Some(local) = self.local {
            page.local.store(crate::address::shown(local, self.v6));
        }
        if let Some(remote) = self.remote {
            page.remote.store(crate::address::shown(remote, self.v6));
        }
    }

    /// Publishes received bytes and makes the descriptor readable.
    ///
    /// The token is counted before the bytes can be seen and sent after: the call that takes the last byte knows that a
    /// token is on its way, and no program wakes up before there are bytes. An application that has not emptied its
    /// ring has a token already; one that took its last token while the bytes were published gets another.
    pub fn show_received(&self) {
        let page = self.memory.page();
        let (service, application) = (&page.service, &page.application);
        let outstanding = || {
            let wanted = service.issued.load(Ordering::SeqCst).wrapping_add(application.rearms.load(Ordering::SeqCst));
            wanted.wrapping_sub(application.taken.load(Ordering::SeqCst))
        };
        // A program that left bytes waits for the next edge, and may only have been told how many there were.
        let issue = || {
            let waiting = outstanding();
            let wanted = waiting == 0 || (waiting < TOKENS && application.partial.load(Ordering::SeqCst) != 0);
            if wanted {
                application.partial.store(0, Ordering::Relaxed);
                service.issued.fetch_add(1, Ordering::SeqCst);
            }
            wanted
        };
        let before = issue();
        service.rx_head.store(self.rx_head, Ordering::SeqCst);
        if before || issue() {
            self.send_token();
        }
    }

    /// Sends a token.
    pub fn send_token(&self) {
        // An application that never takes its tokens has a full socket; it is readable then.
        let _ = send(&self.end, b"t", SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }

    /// Makes the descriptor writable again. One byte stays, for errors to show.
    pub fn show_writable(&mut self) {
        let Ok(waiting) = rustix::io::ioctl_fionread(self.end.as_fd()) else { return };
        let mut scratch = [0; 4096];
        let mut left = (waiting as usize).saturating_sub(1);
        while left > 0 {
            let part = left.min(scratch.len());
            match recv(&self.end, &mut scratch[..part], RecvFlags::DONTWAIT) {
                Ok((0, _)) | Err(_) => break,
                Ok((taken, _)) => left -= taken,
            }
        }
        self.stopped = false;
    }

    /// Shows the end of the peer's data.
    pub fn show_finished(&mut self) {
        if !std::mem::replace(&mut self.finish_shown, true) {
            self.memory.page().service.finished.store(1, Ordering::Release);
            let _ = rustix::net::shutdown(&self.end, Shutdown::Write);
        }
    }

    /// Reads everything that waits in the service's end: closing it then is no error.
    pub fn drain_end(&mut self) {
        let mut scratch = [0; 4096];
        // An application that keeps on writing sees an error, its own doing.
        for _ in 0..64 {
            if !matches!(recv(&self.end, &mut scratch[..], RecvFlags::DONTWAIT), Ok((1.., _))) {
                return;
            }
        }
    }

    /// Free bytes of the transmit ring.
    pub fn tx_free(&self) -> usize {
        self.memory.ring_bytes() - self.tx_ready
    }
}
