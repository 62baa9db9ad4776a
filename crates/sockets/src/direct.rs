//! The low-level interface: payload buffers in place, context queues by hand.
//!
//! A program that can be changed saves the copies and system calls that sockets cost: it reads received bytes where the
//! service put them, writes bytes where the service takes them, and learns of both from its ARX queue.
//!
//! ```no_run
//! # fn main() -> Result<(), nicforge_sockets::direct::DirectError> {
//! use nicforge_sockets::direct::{Direct, Happening};
//!
//! let mut direct = Direct::register("/run/nicforge.sock".as_ref())?;
//! let listener = direct.listen("127.0.0.1:7000".parse().expect("an address"), 16)?;
//! loop {
//!     match direct.poll() {
//!         Some(Happening::Incoming(_)) => while direct.accept(listener)?.is_some() {},
//!         Some(Happening::Moved { flow, .. }) => {
//!             // An echo: one copy, from ring to ring.
//!             let (received, space) = direct.slices(flow)?;
//!             let len = received.len().min(space.len());
//!             space[..len].copy_from_slice(&received[..len]);
//!             direct.consume(flow, len)?;
//!             direct.produce(flow, len)?;
//!         }
//!         Some(Happening::Finished(flow) | Happening::Failed(flow, _)) => direct.close(flow)?,
//!         Some(Happening::Connected(_)) => {}
//!         None => direct.wait(None)?,
//!     }
//! }
//! # }
//! ```

use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytemuck::Zeroable;
use rustix::event::Timespec;
use rustix::io::Errno;
use rustix::net::RecvFlags;

use crate::control::{Arrival, Request, RequestMessage, receive};
use crate::layout::{FLAG_CONNECTED, FLAG_FAILED, FLAG_FINISHED, Kind};
use crate::posix::link::Link;
use crate::posix::socket::Socket;
use crate::queue::{Consumer, Message, Taken};
use crate::shared::{Direction, Ring};

/// A call of the low-level interface failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DirectError {
    /// The service or the kernel refused.
    #[error(transparent)]
    Refused(#[from] Errno),
    /// No such flow, or it is closed.
    #[error("there is no such flow")]
    Gone,
    /// More bytes than the ring has, or has room for.
    #[error("{asked} bytes, where {there} are there")]
    TooMany {
        /// Bytes that the call named.
        asked: usize,
        /// Bytes that it could name.
        there: usize,
    },
}

/// A connection or listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowId(u32);

/// What an ARX entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A connection was established.
    Connected(FlowId),
    /// Bytes came, and bytes were taken.
    Moved {
        /// The connection.
        flow: FlowId,
        /// Bytes added to the receive ring.
        received: u32,
        /// Bytes freed in the transmit ring.
        sent: u32,
    },
    /// The peer sends nothing more.
    Finished(FlowId),
    /// The connection failed.
    Failed(FlowId, Errno),
    /// A listener has a connection to accept.
    Incoming(FlowId),
}

#[derive(Debug)]
struct Flow {
    socket: Socket,
    /// Its last close ends the connection.
    end: OwnedFd,
    /// The connection's end was told.
    ended: bool,
}

/// A registered process with its queues.
#[derive(Debug)]
pub struct Direct {
    link: Link,
    consumer: Consumer,
    flows: HashMap<FlowId, Flow>,
    /// The entry taken last also said that this flow's peer has finished.
    ended: Option<FlowId>,
}

impl Direct {
    /// Registers with the service at a path.
    pub fn register(path: &Path) -> Result<Direct, DirectError> {
        let link = Link::to(path, false)?;
        Ok(Direct { link, consumer: Consumer::default(), flows: HashMap::new(), ended: None })
    }

    fn flow(&self, id: FlowId) -> Result<&Flow, DirectError> {
        self.flows.get(&id).ok_or(DirectError::Gone)
    }

    fn add(&mut self, socket: Socket, end: OwnedFd) -> FlowId {
        let id = FlowId(socket.flow);
        socket.attach_to(&self.link);
        self.flows.insert(id, Flow { socket, end, ended: false });
        id
    }

    fn create(&mut self, v6: bool) -> Result<FlowId, DirectError> {
        let family = if v6 { libc::AF_INET6 } else { libc::AF_INET } as u32;
        let request =
            RequestMessage { request: Request::Socket as u32, value: family, extra: 1, ..RequestMessage::default() };
        let (_, descriptors) = self.link.ask(&request, &[])?;
        let [end, memory] = <[OwnedFd; 2]>::try_from(descriptors).map_err(|_| Errno::MFILE)?;
        Ok(self.add(Socket::of(memory)?, end))
    }

    /// Listens.
    pub fn listen(&mut self, at: SocketAddr, backlog: u32) -> Result<FlowId, DirectError> {
        let id = self.create(at.is_ipv6())?;
        let socket = &self.flow(id)?.socket;
        let bind = RequestMessage { address: at.into(), ..socket.request(Request::Bind) };
        let listen = RequestMessage { value: backlog, ..socket.request(Request::Listen) };
        self.link.ask(&bind, &[])?;
        self.link.ask(&listen, &[])?;
        Ok(id)
    }

    /// Begins a connection.
    pub fn connect(&mut self, to: SocketAddr) -> Result<FlowId, DirectError> {
        let id = self.create(to.is_ipv6())?;
        let request = RequestMessage { address: to.into(), ..self.flow(id)?.socket.request(Request::Connect) };
        match self.link.ask(&request, &[]) {
            Ok(_) => Ok(id),
            Err(cause) => {
                self.flows.remove(&id);
                Err(cause.into())
            }
        }
    }

    /// The next connection of a listener, if one waits.
    pub fn accept(&mut self, listener: FlowId) -> Result<Option<FlowId>, DirectError> {
        let mut arrival = Arrival::zeroed();
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let end = self.flow(listener)?.end.as_fd();
        let received = match receive(end, bytemuck::bytes_of_mut(&mut arrival), flags) {
            Err(Errno::AGAIN) => return Ok(None),
            // The service has gone.
            Ok(received) if received.len == 0 => return Err(Errno::NETDOWN.into()),
            Err(Errno::CONNRESET) => return Err(Errno::NETDOWN.into()),
            Ok(received) => received,
            Err(cause) => return Err(cause.into()),
        };
        let [end, memory] = <[OwnedFd; 2]>::try_from(received.descriptors).map_err(|_| Errno::MFILE)?;
        let socket = Socket::of(memory)?;
        let accepted = Message { word: socket.key, ..Message::new(Kind::Accepted, socket.flow) };
        self.link.push(&[accepted])?;
        Ok(Some(self.add(socket, end)))
    }

    /// Address of a flow's own end.
    pub fn local(&self, id: FlowId) -> Result<SocketAddr, DirectError> {
        Ok(crate::posix::socket::local(&self.flow(id)?.socket))
    }

    /// Takes one ARX entry. Entries about flows that are closed are passed over.
    pub fn poll(&mut self) -> Option<Happening> {
        if let Some(id) = self.ended.take() {
            return Some(Happening::Finished(id));
        }
        loop {
            let queue = self.link.context().queue(Direction::ToApplication);
            let message = match self.consumer.take(queue) {
                Taken::Empty => return None,
                Taken::Unknown(_) => continue,
                Taken::Message(message) => message,
            };
            let id = FlowId(message.flow);
            let Some(flow) = self.flows.get_mut(&id) else { continue };
            if message.kind == Kind::Incoming {
                return Some(Happening::Incoming(id));
            }
            if message.flags & FLAG_FAILED != 0 {
                return Some(Happening::Failed(id, flow.socket.take_error().unwrap_or(Errno::CONNRESET)));
            }
            if message.flags & FLAG_CONNECTED != 0 {
                return Some(Happening::Connected(id));
            }
            let finished = message.flags & FLAG_FINISHED != 0 && !std::mem::replace(&mut flow.ended, true);
            if message.rx_bump > 0 || message.tx_bump > 0 {
                self.ended = finished.then_some(id);
                return Some(Happening::Moved { flow: id, received: message.rx_bump, sent: message.tx_bump });
            }
            if finished {
                return Some(Happening::Finished(id));
            }
        }
    }

    /// Sleeps until an entry may have come, at most for `most`. [`Errno::NETDOWN`] when the service has gone.
    pub fn wait(&self, most: Option<Duration>) -> Result<(), DirectError> {
        let wake = self.link.wake().ok_or(Errno::BADF)?;
        let queue = self.link.context().queue(Direction::ToApplication);
        if self.ended.is_none() && !self.consumer.ready(queue) {
            let most = most.map(|m| Timespec { tv_sec: m.as_secs() as i64, tv_nsec: i64::from(m.subsec_nanos()) });
            if !self.link.wait(wake, most.as_ref())? {
                return Err(DirectError::Refused(Errno::NETDOWN));
            }
        }
        // Entries written from now on ring again.
        let _ = rustix::io::read(wake, &mut [0u8; 8]);
        Ok(())
    }

    /// Readable after entries came, for a program's own event loop.
    pub fn event(&self) -> Option<BorrowedFd<'_>> {
        self.link.wake()
    }

    /// Received bytes and room to send, in place. Each ends at its ring's end: what wraps around comes the next time.
    pub fn slices(&mut self, id: FlowId) -> Result<(&[u8], &mut [u8]), DirectError> {
        let memory = &self.flow(id)?.socket.memory;
        let (tail, received) = self.received(id)?;
        let (head, space) = self.space(id)?;
        // SAFETY: the positions, which only this value moves, give these bytes to the application: the service does
        // not write between `tail` and `head` of the receive ring, nor read the free part of the transmit ring. The
        // borrow of this value keeps them from moving while the slices live.
        Ok(unsafe { (memory.slice(Ring::Receive, tail, received), memory.slice_mut(Ring::Transmit, head, space)) })
    }

    fn received(&self, id: FlowId) -> Result<(u64, usize), DirectError> {
        let socket = &self.flow(id)?.socket;
        let tail = socket.page().application.rx_tail.load(Ordering::Relaxed);
        let head = socket.page().service.rx_head.load(Ordering::Acquire);
        Ok((tail, (head.saturating_sub(tail) as usize).min(socket.memory.ring_bytes())))
    }

    fn space(&self, id: FlowId) -> Result<(u64, usize), DirectError> {
        let socket = &self.flow(id)?.socket;
        let head = socket.page().application.tx_head.load(Ordering::Relaxed);
        let tail = socket.page().service.tx_tail.load(Ordering::Acquire);
        Ok((head, socket.memory.ring_bytes().saturating_sub(head.saturating_sub(tail) as usize)))
    }

    /// Whether the peer has finished and everything is consumed.
    pub fn is_finished(&self, id: FlowId) -> Result<bool, DirectError> {
        let finished = self.flow(id)?.socket.page().service.finished.load(Ordering::Acquire) != 0;
        Ok(finished && self.received(id)?.1 == 0)
    }

    /// Gives back `bytes` of received data.
    pub fn consume(&mut self, id: FlowId, bytes: usize) -> Result<(), DirectError> {
        let (tail, there) = self.received(id)?;
        if bytes > there {
            return Err(DirectError::TooMany { asked: bytes, there });
        }
        if bytes > 0 {
            let socket = &self.flow(id)?.socket;
            socket.page().application.rx_tail.store(tail + bytes as u64, Ordering::Relaxed);
            self.link.push(&[Message { rx_bump: bytes as u32, ..Message::new(Kind::Bump, id.0) }])?;
        }
        Ok(())
    }

    /// Sends `bytes` that were written to the room.
    pub fn produce(&mut self, id: FlowId, bytes: usize) -> Result<(), DirectError> {
        let (head, there) = self.space(id)?;
        if bytes > there {
            return Err(DirectError::TooMany { asked: bytes, there });
        }
        if bytes > 0 {
            let socket = &self.flow(id)?.socket;
            socket.page().application.tx_head.store(head + bytes as u64, Ordering::Relaxed);
            self.link.push(&[Message { tx_bump: bytes as u32, ..Message::new(Kind::Bump, id.0) }])?;
        }
        Ok(())
    }

    /// Sends a FIN after what was produced.
    pub fn finish(&mut self, id: FlowId) -> Result<(), DirectError> {
        self.flow(id)?;
        Ok(self.link.push(&[Message::new(Kind::Finish, id.0)])?)
    }

    /// Closes a flow in order.
    pub fn close(&mut self, id: FlowId) -> Result<(), DirectError> {
        self.flows.get(&id).ok_or(DirectError::Gone)?;
        self.link.push(&[Message::new(Kind::Close, id.0)])?;
        self.flows.remove(&id);
        Ok(())
    }
}
