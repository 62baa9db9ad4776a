//! A network interface of the system, through a packet socket: every frame that comes in over it,
//! whoever it is for, and frames out of it.
//!
//! ```text
//!   ring, or recvmmsg where it is longer than a slot: offload header │ frame, tag apart
//!     ─► checksum finished, cut, tag back in ─► NIC
//! ```

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libc::{c_int, iovec, mmsghdr};
use nicforge_units::Time;
use nicforge_wire::headers::ETHERNET_HEADER_LEN;
use nicforge_wire::join::Joined;
use nicforge_wire::offload::OFFLOAD_HEADER_LEN;
use nicforge_wire::unfinished::TxOffload;
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};

mod large;
mod receive;
mod ring;
mod tag;

use super::claim::{Claim, claimed};
use super::{Link, Port, PortCounters, system};
use crate::live::LiveError;
use receive::Finisher;
use ring::FrameRing;
use system::Takes;

/// Messages received or sent by one call.
const BATCH: usize = 32;
/// The largest frame that a stack hands to its NIC to be cut (Linux: GSO_LEGACY_MAX_SIZE).
const FRAME_MAX: usize = 65_536 + ETHERNET_HEADER_LEN;
const SLOT: usize = (OFFLOAD_HEADER_LEN + FRAME_MAX).next_multiple_of(64);
/// Bytes that may wait in the socket, each way: of segments that come in, and of all that leaves. What finds no room is lost there.
const SOCKET_BYTES: c_int = 8 << 20;

// From linux/if_packet.h, where the libc crate has not all of them.
const PACKET_STATISTICS: c_int = 6;
const PACKET_IGNORE_OUTGOING: c_int = 23;

/// What a packet socket counted since it was last asked (struct tpacket_stats).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Statistics {
    packets: u32,
    drops: u32,
}

/// What is sent by one message: a frame, or several of a flow that the other side cuts again.
#[derive(Clone, Copy)]
struct Message {
    /// Where it ends.
    end: usize,
    frames: u64,
    /// Bytes of all frames.
    bytes: u64,
}

/// An interface.
pub struct PacketPort {
    link: Link,
    _claim: Option<Claim>,
    socket: OwnedFd,
    mac: [u8; 6],
    /// Frames that came in; none for one that only sends.
    ring: Option<FrameRing>,
    finisher: Finisher,
    /// Rooms for segments.
    slots: Box<[u8]>,
    /// Length of each received segment that is not handed over yet.
    waiting: Vec<usize>,
    next: usize,
    /// Messages to send, one after another, each behind its offload header.
    outgoing: Vec<u8>,
    messages: Vec<Message>,
    /// What the last message may still be joined with.
    last: Option<Joined>,
    counters: PortCounters,
}

/// Room for a batch of the largest frames. Every page of it is there from the beginning (zeros would
/// come when they are first used), so that a port's memory does not grow with its traffic.
fn touched() -> Vec<u8> {
    vec![0xff; BATCH * SLOT]
}

impl PacketPort {
    /// Opens the interface `name`, in promiscuous mode.
    ///
    /// # Errors
    /// It is not there, another process has it, or the system refuses.
    pub fn open(name: &str) -> Result<PacketPort, LiveError> {
        PacketPort::opened(name, Takes::All)
    }

    /// As [`open`](Self::open), for one whose frames reach the system's stack by another device: it must not take them
    /// here, too.
    ///
    /// # Errors
    /// As of `open`, and where the system answers neighbours on the interface.
    pub fn open_beside_stack(name: &str) -> Result<PacketPort, LiveError> {
        let port = PacketPort::open(name)?;
        let has_arp = system::has_arp(port.socket.as_fd(), name);
        if has_arp.map_err(LiveError::of(format!("interface {name}")))? {
            return Err(LiveError::Interface {
                name: name.to_owned(),
                problem: "the kernel answers on it for its own addresses, so frames would pass the NIC by".into(),
                remedy: format!("take that away: ip link set {name} arp off"),
            });
        }
        Ok(port)
    }

    /// Opens the interface `name` for frames out of it only.
    pub(super) fn sender(name: &str) -> Result<PacketPort, LiveError> {
        PacketPort::opened(name, Takes::Nothing)
    }

    fn opened(name: &str, takes: Takes) -> Result<PacketPort, LiveError> {
        let failed = |cause: io::Error| LiveError::of(format!("interface {name}"))(cause);
        system::interface_request(name).map_err(failed)?;
        let claim = if takes == Takes::All { Some(claimed(name)?) } else { None };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket =
            socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None).map_err(|cause| failed(cause.into()))?;
        let index = netdevice::name_to_index(&socket, name).map_err(|cause| failed(cause.into()))?;
        let fd = socket.as_fd();
        let set = |option, value: c_int| system::set_option(fd, libc::SOL_PACKET, option, value);
        // All before the first frame can come in.
        set(libc::PACKET_VNET_HDR, 1).map_err(failed)?;
        set(PACKET_IGNORE_OUTGOING, 1).map_err(failed)?;
        // The queueing discipline stays in the way: past it the kernel drops each segment that its device cannot cut.
        for option in [libc::SO_RCVBUFFORCE, libc::SO_SNDBUFFORCE] {
            // Without the privilege the usual size stays.
            let _ = system::set_option(fd, libc::SOL_SOCKET, option, SOCKET_BYTES);
        }
        let mut ring = None;
        if takes == Takes::All {
            ring = Some(FrameRing::new(fd).map_err(failed)?);
            system::make_promiscuous(fd, index).map_err(failed)?;
        }
        let mac = system::bind_to(fd, index, takes).map_err(failed)?;
        let link = Link::of(fd, name).map_err(failed)?;
        let mut outgoing = touched();
        outgoing.clear();
        Ok(PacketPort {
            link,
            _claim: claim,
            socket,
            mac,
            ring,
            finisher: Finisher::default(),
            slots: if takes == Takes::All { touched().into() } else { Box::default() },
            waiting: Vec::with_capacity(BATCH),
            next: 0,
            outgoing,
            messages: Vec::with_capacity(BATCH),
            last: None,
            counters: PortCounters::default(),
        })
    }

    /// The last message is complete.
    fn seal(&mut self) {
        if let Some(last) = self.last.take() {
            last.seal(&mut self.outgoing);
        }
    }

    /// What the system says when there is nothing to be had now is no failure.
    fn excuse(&mut self, cause: io::Error) -> Result<(), LiveError> {
        match cause.raw_os_error() {
            Some(libc::EAGAIN | libc::EINTR | libc::ENOBUFS) => Ok(()),
            Some(libc::ENETDOWN | libc::ENXIO) => {
                self.link.went_down();
                Ok(())
            }
            _ => Err(LiveError::of(format!("interface {}", self.link.name()))(cause)),
        }
    }
}

impl Port for PacketPort {
    fn receive(&mut self, budget: usize, each: &mut dyn FnMut(&[u8])) -> Result<usize, LiveError> {
        self.receive_unfinished(budget, 0, &mut |frame, _| each(frame))
    }

    fn receive_unfinished(
        &mut self,
        budget: usize,
        longest: usize,
        each: &mut dyn FnMut(&[u8], TxOffload),
    ) -> Result<usize, LiveError> {
        let mut frames = 0;
        while frames < budget {
            match self.take(longest, each)? {
                Some(taken) => frames += taken,
                None => break,
            }
        }
        if frames == 0 {
            // An interface that goes down says so by an error, which would end each wait until it is asked for.
            let error = system::option(self.socket.as_fd(), libc::SOL_SOCKET, libc::SO_ERROR);
            match error.map_err(LiveError::of(format!("interface {}", self.link.name())))? {
                0 => {}
                error => self.excuse(io::Error::from_raw_os_error(error))?,
            }
        }
        self.counters.received += frames as u64;
        Ok(frames)
    }

    fn takes_segments(&self) -> bool {
        true
    }

    fn send_unfinished(&mut self, frame: &[u8], left: TxOffload, now: Time) -> Result<(), LiveError> {
        self.send_begun(frame, left, now)
    }

    fn send(&mut self, frame: &[u8], _now: Time) -> Result<(), LiveError> {
        if !self.link.carries(frame) {
            self.counters.above_mtu += 1;
            return Ok(());
        }
        if let Some(last) = &mut self.last
            && last.join(&mut self.outgoing, frame)
            && let Some(message) = self.messages.last_mut()
        {
            message.end = self.outgoing.len();
            message.frames += 1;
            message.bytes += frame.len() as u64;
            return Ok(());
        }
        if self.messages.len() == BATCH {
            self.flush()?;
        }
        self.seal();
        let begin = self.outgoing.len();
        self.outgoing.extend_from_slice(&[0; OFFLOAD_HEADER_LEN]);
        self.outgoing.extend_from_slice(frame);
        self.last = Joined::first(&self.outgoing, begin);
        self.messages.push(Message { end: self.outgoing.len(), frames: 1, bytes: frame.len() as u64 });
        Ok(())
    }

    fn flush(&mut self) -> Result<(), LiveError> {
        self.seal();
        let mut parts: [iovec; BATCH] = std::array::from_fn(|_| iovec { iov_base: std::ptr::null_mut(), iov_len: 0 });
        // SAFETY: all zeros is a value of this plain structure.
        let mut headers: [mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        let mut begin = 0;
        let base = self.outgoing.as_mut_ptr();
        for (number, &Message { end, .. }) in self.messages.iter().enumerate() {
            // The ends rise and the last is the buffer's length.
            parts[number].iov_base = base.wrapping_add(begin).cast();
            parts[number].iov_len = end - begin;
            headers[number].msg_hdr.msg_iov = &raw mut parts[number];
            headers[number].msg_hdr.msg_iovlen = 1;
            begin = end;
        }
        let mut done = 0;
        while done < self.messages.len() {
            let left = &mut headers[done..self.messages.len()];
            // SAFETY: the headers point to `parts`, and those into `outgoing`, which is not
            // changed before the loop is over.
            match unsafe { system::send_messages(self.socket.as_fd(), left) } {
                Ok(sent) => {
                    for message in &self.messages[done..done + sent] {
                        self.counters.sent += message.frames;
                        self.counters.sent_bytes += message.bytes;
                    }
                    done += sent;
                }
                Err(cause) if cause.raw_os_error() == Some(libc::EINTR) => {}
                Err(cause) => {
                    // This message does not go: no room, too long for the interface, link down.
                    if !matches!(cause.raw_os_error(), Some(libc::EMSGSIZE | libc::EINVAL)) {
                        self.excuse(cause)?;
                    }
                    self.counters.refused += self.messages[done].frames;
                    done += 1;
                }
            }
        }
        self.messages.clear();
        self.outgoing.clear();
        Ok(())
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        // While the interface is down the socket is always readable, with nothing to read.
        self.link.is_up.then(|| self.socket.as_fd())
    }

    fn link(&self) -> Option<&Link> {
        Some(&self.link)
    }

    fn hardware_address(&self) -> Option<[u8; 6]> {
        Some(self.mac)
    }

    /// Asks the socket what it had no room for, and how the interface is.
    fn look(&mut self) -> Result<(), LiveError> {
        let fd = self.socket.as_fd();
        let failed = LiveError::of(format!("interface {}", self.link.name()));
        let counted = system::option(fd, libc::SOL_PACKET, PACKET_STATISTICS)
            .and_then(|counted: Statistics| self.link.look(fd).map(|()| counted))
            .map_err(failed)?;
        self.counters.lost("socket_full", counted.drops.into());
        Ok(())
    }

    fn counters(&self) -> &PortCounters {
        &self.counters
    }

    fn counters_mut(&mut self) -> &mut PortCounters {
        &mut self.counters
    }
}
