//! A network interface of the system, through an AF_XDP socket: its driver hands frames over before
//! the system's stack sees them, and takes frames that it never saw.
//!
//! ```text
//!   wire ─► driver ─► program.rs ─► receive ring ─► chunk ─► NIC
//!   wire ◄─ driver ◄────────────── transmit ring ◄─ chunk ◄─
//!                     rings.rs: chunks come back by the fill and completion rings
//! ```
//!
//! An interface that is made by software sends by a packet socket instead: its kernel takes joined segments of
//! up to 64 KiB there, and by the transmit ring one frame at a time, each with all the work of a segment.
//! Where the interface has several queues there is a socket for each; frames leave by the first one's.
//!
//! Such an interface hands over what its peer's stack left undone, and does not say so: begun checksums are
//! known by what they are, and a segment by being longer than any frame.

mod program;
mod rings;
mod socket;
#[cfg(test)]
mod tests;

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use nicforge_units::Time;
use nicforge_wire::headers::ip_protocol;
use nicforge_wire::offload::{Offload, finish_begun};
use nicforge_wire::unfinished::TxOffload;
use nicforge_wire::{IpAddresses, parse_frame};
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::xdp::XdpStatistics;
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};

use super::claim::{Claim, claimed};
use super::{Link, PacketPort, Port, PortCounters, finish_and_send, system};
use crate::live::LiveError;
use program::{Attachment, Failed};
use socket::XdpSocket;

/// A queue of the interface.
struct Queue {
    number: u32,
    socket: XdpSocket,
    /// A frame that came in several chunks, so far.
    parts: Vec<u8>,
}

/// An interface.
pub struct XdpPort {
    link: Link,
    _claim: Claim,
    mac: [u8; 6],
    /// Keeps the interface in promiscuous mode, and is asked about it.
    packets: OwnedFd,
    /// Goes before the sockets that it hands frames to.
    _attachment: Attachment,
    /// Frames leave by the first.
    queues: Vec<Queue>,
    /// Which of them is looked at first.
    turn: usize,
    /// What is readable when any socket is, where there are several.
    any: Option<OwnedFd>,
    /// Whether frames may have checksums that are only begun, and segments are not cut.
    is_virtual: bool,
    /// What sends in place of the transmit ring.
    sender: Option<PacketPort>,
    scratch: Vec<u8>,
    /// Frames that found no room, as the kernel counts.
    lost: u64,
    counters: PortCounters,
}

impl XdpPort {
    /// Opens receive and transmit queue `queue` of the interface `name`, in promiscuous mode; all of its
    /// queues when left out.
    ///
    /// # Errors
    /// When the interface is not there, has other queues or is another run's, or when system or driver cannot.
    pub fn open(name: &str, queue: Option<u32>) -> Result<XdpPort, LiveError> {
        let failed = |cause: io::Error| LiveError::of(format!("interface {name}"))(cause);
        let refused = |cause: Errno| failed(cause.into());
        system::interface_request(name).map_err(failed)?;
        let claim = claimed(name)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let open = |family| socket_with(family, SocketType::RAW, flags, None);
        let packets = open(AddressFamily::PACKET).map_err(refused)?;
        let fd = packets.as_fd();
        let index = netdevice::name_to_index(fd, name).map_err(refused)?;
        let link = Link::of(fd, name).map_err(failed)?;
        let queues = system::receive_queues(fd, name).map_err(failed)?;
        let chosen = choose(name, queue, queues)?;
        let mac = system::hardware_address(fd, name).map_err(failed)?;
        let is_virtual = system::is_virtual(fd, name).map_err(failed)?;
        system::make_promiscuous(fd, index).map_err(failed)?;

        let explained = |what| move |cause: Errno| explain(name, Failed(what, cause.into()));
        let mut queues = Vec::new();
        let incoming = incoming(chosen.len());
        for number in chosen {
            let socket = open(AddressFamily::XDP).map_err(explained(OPENING))?;
            let socket = XdpSocket::new(socket, incoming).map_err(explained("setting up AF_XDP rings"))?;
            let failed = explained("taking the queue for an AF_XDP socket");
            when_free(|| socket.bind(index, number), |cause| *cause == Errno::BUSY).map_err(failed)?;
            queues.push(Queue { number, socket, parts: Vec::new() });
        }
        let any = readable_when_any(&queues).map_err(explained("waiting for several queues"))?;
        let sockets: Vec<_> = queues.iter().map(|queue| (queue.number, queue.socket.file())).collect();
        let attach = || Attachment::new(index, &sockets);
        let is_taken = |failed: &Failed| failed.1.raw_os_error() == Some(libc::EBUSY);
        let attachment = when_free(attach, is_taken).map_err(|failure| explain(name, failure))?;
        // Behind a driver there may be what a stack began.
        let is_virtual = is_virtual || !attachment.is_native;
        let sender = if is_virtual { Some(PacketPort::sender(name)?) } else { None };
        Ok(XdpPort {
            link,
            _claim: claim,
            mac,
            is_virtual,
            sender,
            scratch: Vec::new(),
            _attachment: attachment,
            packets,
            queues,
            turn: 0,
            any,
            lost: 0,
            counters: PortCounters::default(),
        })
    }

    /// Hands the frame that `piece` of queue `at` completes over to `each`; as how many frames.
    fn hand_over(&mut self, at: usize, piece: socket::Piece, each: &mut dyn FnMut(&[u8])) -> usize {
        let mut frames = 0;
        let Queue { socket, parts, .. } = &mut self.queues[at];
        let is_whole = parts.is_empty() && !piece.goes_on;
        let bytes = socket.bytes(piece);
        if !is_whole {
            parts.extend_from_slice(bytes);
        }
        if !piece.goes_on {
            let frame = if is_whole { bytes } else { &mut parts[..] };
            let segments = if self.is_virtual { segments_of(frame, &self.link) } else { None };
            let cut = segments.map(|offload| offload.finish(frame, &mut self.scratch, each));
            frames = match cut {
                Some(Ok(frames)) => frames,
                // No segment, so one frame, however long.
                _ => {
                    if self.is_virtual {
                        finish_begun(frame);
                    }
                    each(frame);
                    1
                }
            };
            parts.clear();
        }
        socket.give_back(piece);
        frames
    }

    /// The socket that frames leave by.
    fn way_out(&self) -> &XdpSocket {
        &self.queues[0].socket
    }

    /// Counts what the packet socket did as what the port did.
    fn count_sent(&mut self) {
        if let Some(sender) = &mut self.sender {
            let done = std::mem::take(sender.counters_mut());
            self.counters.sent += done.sent;
            self.counters.sent_bytes += done.sent_bytes;
            self.counters.refused += done.refused;
            self.counters.above_mtu += done.above_mtu;
            self.counters.cut += done.cut;
        }
    }

    /// Sends what is in the ring.
    fn send_on(&mut self) -> Result<(), LiveError> {
        let counters = &mut self.counters;
        match self.queues[0].socket.send(|bytes| counters.went_out(bytes)) {
            Ok(()) => Ok(()),
            Err(Errno::NETDOWN | Errno::NXIO) => {
                self.link.went_down();
                Ok(())
            }
            Err(cause) => Err(LiveError::of(format!("interface {}", self.link.name()))(cause)),
        }
    }
}

/// What is to be done for `frame` if it is a TCP segment longer than `link` carries: its sender left it whole, and
/// nothing says how long its frames shall be, so they are as long as the link carries.
fn segments_of(frame: &[u8], link: &Link) -> Option<Offload> {
    if link.carries(frame) {
        return None;
    }
    let summary = parse_frame(frame).ok().filter(|summary| summary.protocol == ip_protocol::TCP)?;
    let headers = summary.headers_end(frame) - usize::from(summary.l3_offset);
    let kind = match summary.addresses {
        IpAddresses::V4 { .. } => Offload::TCP_V4,
        IpAddresses::V6 { .. } => Offload::TCP_V6,
        IpAddresses::None => return None,
    };
    let segment_bytes = u16::try_from(link.mtu.checked_sub(headers)?).ok()?;
    Some(Offload { checksum: None, kind, segment_bytes })
}

/// Tries until the place is free, for a while: the kernel clears up after whoever had it before when
/// it has time.
fn when_free<T, E>(mut attempt: impl FnMut() -> Result<T, E>, is_taken: impl Fn(&E) -> bool) -> Result<T, E> {
    for _ in 0..PATIENCE_MS / PAUSE_MS {
        match attempt() {
            Err(cause) if is_taken(&cause) => {
                std::thread::sleep(Duration::from_millis(PAUSE_MS));
            }
            done => return done,
        }
    }
    attempt()
}

/// Each has memory that is locked.
const QUEUES_MAX: u32 = 64;
/// How long a place may be taken by somebody who is going, and how often that is looked at.
const PATIENCE_MS: u64 = 2_000;
const PAUSE_MS: u64 = 20;
const OPENING: &str = "opening an AF_XDP socket";

/// The queues to take of `queues`, when `wanted` is asked for.
fn choose(name: &str, wanted: Option<u32>, queues: u32) -> Result<Range<u32>, LiveError> {
    let wrong = |problem: String, remedy: String| LiveError::Interface { name: name.to_owned(), problem, remedy };
    match wanted {
        Some(queue) if queue < queues => Ok(queue..queue + 1),
        Some(queue) => Err(wrong(
            format!("it has no receive queue {queue}"),
            format!("`queue` counts from 0, and there are {queues}"),
        )),
        None if queues <= QUEUES_MAX => Ok(0..queues),
        None => Err(wrong(
            format!("it has {queues} receive queues, and an AF_XDP port takes {QUEUES_MAX} at most"),
            format!("give it fewer with `ethtool -L {name} combined {QUEUES_MAX}`, or say which is meant with `queue`"),
        )),
    }
}

/// Chunks that each of `queues` receives into: 16 MiB together, but enough for a burst.
fn incoming(queues: usize) -> u32 {
    (4096 / queues.next_power_of_two() as u32).max(512)
}

/// A file that is readable when any of `queues` is; none if there is but one.
fn readable_when_any(queues: &[Queue]) -> Result<Option<OwnedFd>, Errno> {
    if queues.len() == 1 {
        return Ok(None);
    }
    let any = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for queue in queues {
        epoll::add(&any, queue.socket.file(), epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    }
    Ok(Some(any))
}

/// What is wrong with the interface `name`, and what helps.
fn explain(name: &str, Failed(what, cause): Failed) -> LiveError {
    let remedy = match cause.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => "it needs root or CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF",
        Some(libc::EAFNOSUPPORT | libc::ENOSYS) => {
            "the kernel is built without AF_XDP: use a packet socket, with `interface` instead \
             of `xdp`"
        }
        Some(libc::EBUSY) => {
            "another program has the queue or the interface's place for XDP programs: `ip link \
             show` names it, `ip link set dev … xdp off` takes it away"
        }
        Some(libc::ERANGE) => "its MTU, or that of the other end, is too large for XDP: lower it",
        Some(libc::ENOBUFS | libc::ENOMEM) => "raise the limit of locked memory (`ulimit -l`)",
        Some(libc::EINVAL) => "it needs Linux 6.6 or later",
        _ => "use a packet socket, with `interface` instead of `xdp`",
    };
    LiveError::Interface { name: name.to_owned(), problem: format!("{what}: {cause}"), remedy: remedy.to_owned() }
}

impl Port for XdpPort {
    fn receive(&mut self, budget: usize, each: &mut dyn FnMut(&[u8])) -> Result<usize, LiveError> {
        if self.way_out().queued() > 0 {
            self.send_on()?;
        }
        let mut frames = 0;
        for _ in 0..self.queues.len() {
            self.turn = (self.turn + 1) % self.queues.len();
            while frames < budget
                && let Some(piece) = self.queues[self.turn].socket.take()
            {
                frames += self.hand_over(self.turn, piece, each);
            }
            self.queues[self.turn].socket.settle();
        }
        self.counters.received += frames as u64;
        Ok(frames)
    }

    fn send_unfinished(&mut self, frame: &[u8], left: TxOffload, now: Time) -> Result<(), LiveError> {
        match &mut self.sender {
            Some(sender) => sender.send_unfinished(frame, left, now),
            None => finish_and_send(self, frame, left, now),
        }
    }

    fn send(&mut self, frame: &[u8], now: Time) -> Result<(), LiveError> {
        if let Some(sender) = &mut self.sender {
            return sender.send(frame, now);
        }
        if !self.link.carries(frame) {
            self.counters.above_mtu += 1;
            return Ok(());
        }
        if !self.link.is_up {
            // It may be up again, and nobody looked since.
            let failed = LiveError::of(format!("interface {}", self.link.name()));
            self.link.look(self.packets.as_fd()).map_err(failed)?;
            if !self.link.is_up {
                self.counters.refused += 1;
                return Ok(());
            }
        }
        if !self.queues[0].socket.put(frame) {
            self.send_on()?;
            if !self.queues[0].socket.put(frame) {
                self.counters.refused += 1;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), LiveError> {
        let Some(sender) = &mut self.sender else {
            return self.send_on();
        };
        let flushed = sender.flush();
        self.count_sent();
        flushed
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        // What the kernel did not take at once it is asked for again, soon.
        (self.way_out().queued() == 0).then(|| self.any.as_ref().map_or(self.way_out().file(), AsFd::as_fd))
    }

    fn link(&self) -> Option<&Link> {
        Some(&self.link)
    }

    fn hardware_address(&self) -> Option<[u8; 6]> {
        Some(self.mac)
    }

    /// Asks the kernel what it had no room for, and how the interface is.
    fn look(&mut self) -> Result<(), LiveError> {
        if let Some(sender) = &mut self.sender {
            sender.look()?;
        }
        let failed = LiveError::of(format!("interface {}", self.link.name()));
        let looked = self.link.look(self.packets.as_fd());
        let sums = looked.and_then(|()| self.queues.iter().map(|queue| Ok(queue.socket.statistics()?)).collect());
        let counted: Vec<XdpStatistics> = sums.map_err(failed)?;
        let lost = counted.iter().map(|counted| counted.rx_dropped + counted.rx_ring_full.unwrap_or(0)).sum::<u64>();
        self.counters.lost("socket_full", lost - self.lost);
        self.lost = lost;
        Ok(())
    }

    fn counters(&self) -> &PortCounters {
        &self.counters
    }

    fn counters_mut(&mut self) -> &mut PortCounters {
        &mut self.counters
    }

    /// What the kernel does not take any more was refused.
    fn finish(&mut self) -> Result<(), LiveError> {
        self.flush()?;
        self.counters.refused += self.way_out().queued() as u64;
        Ok(())
    }
}
