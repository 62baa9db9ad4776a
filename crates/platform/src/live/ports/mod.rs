//! Where frames come from and go to.
//!
//! | file | port |
//! | --- | --- |
//! | packet.rs | a network interface of the system, through a packet socket (AF_PACKET) |
//! | xdp/ | the same through an AF_XDP socket, past the system's stack |
//! | mapping.rs | memory that these sockets share with the kernel |
//! | link.rs | what is behind these: up or down, how long frames may be |
//! | tap.rs | a TAP device: the system's own stack is at the other end |
//! | memif/ | shared memory with another data plane: VPP, DPDK |
//! | vhost_user/ | a guest's virtio-net: QEMU, or DPDK's virtio-user |
//! | spread.rs | which of several rings a frame leaves by |
//! | foreign/ | memory that another program shares with us, which may lie about it |
//! | capture.rs | capture files, in and out |
//! | pair.rs | memory: two ends of a cable within this program |

mod capture;
mod claim;
mod foreign;
mod link;
mod mapping;
mod memif;
mod packet;
mod pair;
mod spread;
mod system;
mod tap;
#[cfg(test)]
mod testpmd;
mod vhost_user;
mod xdp;

use std::os::fd::BorrowedFd;

use nicforge_units::Time;
use nicforge_wire::offload::{Offload, OffloadError};
use nicforge_wire::unfinished::{Begun, TxOffload};

use super::LiveError;

pub use capture::CapturePort;
pub use link::Link;
pub use memif::{MEMIF_QUEUES_MAX, MemifPort, MemifRole, Terms as MemifTerms};
pub use packet::PacketPort;
pub use pair::{PairPort, pair};
pub use tap::TapPort;
pub use vhost_user::{VHOST_USER_QUEUES_MAX, VhostUserPort};
pub use xdp::XdpPort;

/// What a port counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Frames handed to the NIC.
    pub received: u64,
    /// Frames that went out.
    pub sent: u64,
    /// Bytes of these.
    pub sent_bytes: u64,
    /// Frames that came in and could not be handed over, by cause.
    pub unreadable: Vec<(&'static str, u64)>,
    /// Frames that the other side had no room for.
    pub refused: u64,
    /// Frames that were to go out and are longer than the interface carries.
    pub above_mtu: u64,
    /// Segments were cut into so many more frames on their way out.
    pub cut: u64,
}

impl PortCounters {
    fn lost(&mut self, cause: &'static str, frames: u64) {
        match self.unreadable.iter_mut().find(|(name, _)| *name == cause) {
            Some((_, count)) => *count += frames,
            None if frames == 0 => {}
            None => self.unreadable.push((cause, frames)),
        }
    }

    fn went_out(&mut self, bytes: u64) {
        self.sent += 1;
        self.sent_bytes += bytes;
    }
}

/// Hands a frame over for which `offload` is still to be done: as it is if it has at most `longest` bytes and
/// others can finish it, else finished; `scratch` is room for one that is cut out. Returns as how many frames.
fn hand_over(
    offload: &Offload,
    frame: &mut [u8],
    longest: usize,
    scratch: &mut Vec<u8>,
    each: &mut dyn FnMut(&[u8], TxOffload),
) -> Result<usize, OffloadError> {
    if frame.len() <= longest
        && let Some(left) = TxOffload::left(offload, frame)
    {
        each(frame, left);
        return Ok(1);
    }
    offload.finish(frame, scratch, &mut |frame| each(frame, TxOffload::default()))
}

/// More headers no NIC is trusted with.
const HEADERS_MAX: usize = 256;

/// A frame that leaves for whoever finishes it.
struct BegunFrame<'a> {
    begun: Begun,
    /// Its first bytes, as that one expects them.
    headers: &'a [u8],
    rest: &'a [u8],
}

impl<'a> BegunFrame<'a> {
    /// `frame`, for which `left` is still to be done; its headers are changed in `room`. `None` where no other can do it.
    fn of(frame: &'a [u8], left: TxOffload, room: &'a mut [u8; HEADERS_MAX]) -> Option<BegunFrame<'a>> {
        let (first, rest) = frame.split_at(frame.len().min(HEADERS_MAX));
        let headers = &mut room[..first.len()];
        headers.copy_from_slice(first);
        let begun = left.begin(headers, frame.len())?;
        Some(BegunFrame { begun, headers, rest })
    }

    fn bytes(&self) -> usize {
        self.headers.len() + self.rest.len()
    }
}

/// Does what is `left` to do for `frame` and sends what becomes of it.
fn finish_and_send<P: Port + ?Sized>(port: &mut P, frame: &[u8], left: TxOffload, now: Time) -> Result<(), LiveError> {
    let mut sent = Ok(());
    let frames = left.finish(frame, &mut |frame| {
        if sent.is_ok() {
            sent = port.send(frame, now);
        }
    });
    port.counters_mut().cut += frames as u64 - 1;
    sent
}

/// One end of a cable: whole frames without FCS, checksums finished.
pub trait Port: Send {
    /// Hands about `budget` frames that came in to `each`, at most 64 KiB worth of them more.
    /// Returns how many; 0 when there are none now.
    fn receive(&mut self, budget: usize, each: &mut dyn FnMut(&[u8])) -> Result<usize, LiveError>;

    /// As [`receive`](Self::receive), but segments of at most `longest` bytes, which their sender left
    /// to its NIC to cut, come as one frame each, and checksums that are begun stay so; `each` is told
    /// what is left to do. Where frames come over a wire there are none.
    fn receive_unfinished(
        &mut self,
        budget: usize,
        _longest: usize,
        each: &mut dyn FnMut(&[u8], TxOffload),
    ) -> Result<usize, LiveError> {
        self.receive(budget, &mut |frame| each(frame, TxOffload::default()))
    }

    /// As [`send`](Self::send), for a frame for which `left` is still to be done.
    fn send_unfinished(&mut self, frame: &[u8], left: TxOffload, now: Time) -> Result<(), LiveError> {
        finish_and_send(self, frame, left, now)
    }

    /// Whether segments come in and leave by it whole.
    fn takes_segments(&self) -> bool {
        false
    }

    /// Takes a frame to send at `now`; it leaves with the next [`flush`](Self::flush).
    fn send(&mut self, frame: &[u8], now: Time) -> Result<(), LiveError>;

    /// Sends what was taken, if anything waits.
    fn flush(&mut self) -> Result<(), LiveError> {
        Ok(())
    }

    /// What can be waited for when nothing came in; `None` when the port is to be polled.
    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Says that its user is about to wait for [`readable`](Self::readable); false if a frame is there already.
    fn arm(&mut self) -> bool {
        true
    }

    /// Whether the frames may wait until there is room for them, as those of a file.
    fn is_patient(&self) -> bool {
        false
    }

    /// Whether no more frames will ever come in.
    fn is_over(&self) -> bool {
        false
    }

    /// The interface behind it, if there is one, as of when it last looked.
    fn link(&self) -> Option<&Link> {
        None
    }

    /// Its hardware address, if it has one.
    fn hardware_address(&self) -> Option<[u8; 6]> {
        None
    }

    /// Brings the counters up to date, where that costs something.
    fn look(&mut self) -> Result<(), LiveError> {
        Ok(())
    }

    /// A note about received frames, returned once.
    fn take_note(&mut self) -> Option<String> {
        None
    }

    /// What it counted, until it last looked.
    fn counters(&self) -> &PortCounters;

    /// The same, to count from zero again.
    fn counters_mut(&mut self) -> &mut PortCounters;

    /// Completes what is being written.
    fn finish(&mut self) -> Result<(), LiveError> {
        self.flush()
    }
}
