//! An AF_XDP socket with its rings and chunks.
//!
//! Each chunk is in one place: in a ring, in `free`, or with its last user.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, Result};
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING,
    XDP_UMEM_PGOFF_FILL_RING, XdpDesc, XdpDescOptions, XdpStatistics, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{RecvFlags, SendFlags, bind, recv, send, sockopt};

use super::rings::{CHUNK, Chunks, Ring};

/// Chunks for frames that go out: 8 MiB.
const OUTGOING: u32 = 2048;

/// A frame that the kernel has not taken yet.
#[derive(Clone, Copy, Debug)]
struct Queued {
    /// Entries put into the transmit ring by then, wrapping.
    end: u32,
    bytes: u64,
}

/// A piece of a frame that came in, or all of it.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    at: u64,
    len: usize,
    /// Whether another piece of the same frame follows.
    pub goes_on: bool,
}

/// A socket.
#[derive(Debug)]
pub struct XdpSocket {
    socket: OwnedFd,
    fill: Ring<u64>,
    receive: Ring<XdpDesc>,
    transmit: Ring<XdpDesc>,
    completion: Ring<u64>,
    chunks: Chunks,
    /// Chunks for frames that go out.
    free: Vec<u64>,
    queued: VecDeque<Queued>,
}

impl XdpSocket {
    /// Gives `socket` memory and rings, for `incoming` frames that came in, a power of two.
    pub fn new(socket: OwnedFd, incoming: u32) -> Result<XdpSocket> {
        let fd = socket.as_fd();
        let chunks = Chunks::new(incoming + OUTGOING)?;
        let register = XdpUmemReg {
            addr: chunks.address(),
            len: chunks.len(),
            chunk_size: CHUNK as u32,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        sockopt::set_xdp_umem_reg(fd, register)?;
        sockopt::set_xdp_umem_fill_ring_size(fd, incoming)?;
        sockopt::set_xdp_umem_completion_ring_size(fd, OUTGOING)?;
        sockopt::set_xdp_rx_ring_size(fd, incoming)?;
        sockopt::set_xdp_tx_ring_size(fd, OUTGOING)?;
        let offsets = sockopt::xdp_mmap_offsets(fd)?;
        let mut fill = Ring::new(fd, XDP_UMEM_PGOFF_FILL_RING, offsets.fr, incoming)?;
        let at = |number: u32| u64::from(number) * CHUNK as u64;
        (0..incoming).for_each(|number| fill.put(at(number)));
        let free = (incoming..incoming + OUTGOING).map(at).collect();
        fill.publish();
        Ok(XdpSocket {
            fill,
            receive: Ring::new(fd, XDP_PGOFF_RX_RING, offsets.rx, incoming)?,
            transmit: Ring::new(fd, XDP_PGOFF_TX_RING, offsets.tx, OUTGOING)?,
            completion: Ring::new(fd, XDP_UMEM_PGOFF_COMPLETION_RING, offsets.cr, OUTGOING)?,
            chunks,
            free,
            queued: VecDeque::new(),
            socket,
        })
    }

    /// Makes it that of queue `queue` of the interface with number `index`. Frames may take
    /// several chunks; the kernel copies them where the driver does not write chunks by itself.
    pub fn bind(&self, index: u32, queue: u32) -> Result<()> {
        let flags = SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP | SocketAddrXdpFlags::XDP_USE_SG;
        bind(&self.socket, &SocketAddrXdp::new(flags, index, queue))
    }

    /// The file that can be waited for.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// What the kernel counted.
    pub fn statistics(&self) -> Result<XdpStatistics> {
        sockopt::xdp_statistics(&self.socket)
    }

    /// Takes the next piece that came in; it goes back by [`give_back`](Self::give_back).
    pub fn take(&mut self) -> Option<Piece> {
        self.receive.take().map(|taken| Piece {
            at: taken.addr,
            len: taken.len as usize,
            goes_on: taken.options.contains(XdpDescOptions::XDP_PKT_CONTD),
        })
    }

    /// The bytes of `piece`, which was taken and not given back yet.
    pub fn bytes(&mut self, piece: Piece) -> &mut [u8] {
        // SAFETY: only `take` makes pieces, of chunks that came out of the receive ring, and whoever
        // has one gives it back once and uses it no more.
        unsafe { self.chunks.bytes(piece.at, piece.len) }
    }

    /// The chunk of `piece` may be received into again.
    pub fn give_back(&mut self, piece: Piece) {
        // There are as many places as chunks.
        self.fill.put(piece.at - piece.at % CHUNK as u64);
    }

    /// Tells the kernel what was taken and given back.
    pub fn settle(&mut self) {
        self.receive.release();
        self.fill.publish();
        if self.fill.needs_wakeup() {
            // Whatever it says: this is but a hint that there is room.
            let _ = recv(&self.socket, &mut [0u8; 0], RecvFlags::DONTWAIT);
        }
    }

    /// Puts a frame into the transmit ring, if there is room.
    pub fn put(&mut self, frame: &[u8]) -> bool {
        self.reclaim();
        let count = frame.len().div_ceil(CHUNK);
        if count > self.free.len() || count > self.transmit.room() as usize {
            return false;
        }
        let mut pieces = frame.chunks(CHUNK).peekable();
        while let Some(piece) = pieces.next() {
            let Some(at) = self.free.pop() else {
                return false; // There are enough, as was looked at before.
            };
            // SAFETY: the chunk was in no ring.
            let chunk = unsafe { self.chunks.bytes(at, piece.len()) };
            chunk.copy_from_slice(piece);
            let options = match pieces.peek() {
                Some(_) => XdpDescOptions::XDP_PKT_CONTD,
                None => XdpDescOptions::empty(),
            };
            self.transmit.put(XdpDesc { addr: at, len: piece.len() as u32, options });
        }
        self.queued.push_back(Queued { end: self.transmit.put_so_far(), bytes: frame.len() as u64 });
        true
    }

    /// Frames in the transmit ring.
    pub fn queued(&self) -> usize {
        self.queued.len()
    }

    /// Lets the kernel send what is in the transmit ring, as much as it takes now; tells `gone` the
    /// bytes of each frame that it took.
    pub fn send(&mut self, mut gone: impl FnMut(u64)) -> Result<()> {
        self.transmit.publish();
        loop {
            let before = self.transmit.consumed();
            let told = if self.transmit.needs_wakeup() {
                send(&self.socket, &[], SendFlags::DONTWAIT).map(|_| ())
            } else {
                Ok(())
            };
            let consumed = self.transmit.consumed();
            // Places wrap; what is ahead is less than a ring of them.
            let took = |queued: &&Queued| consumed.wrapping_sub(queued.end) <= OUTGOING;
            while let Some(&frame) = self.queued.front().filter(took) {
                self.queued.pop_front();
                gone(frame.bytes);
            }
            match told {
                // It sends some at a time, and says so or not.
                Ok(()) | Err(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS | Errno::INTR)
                    if !self.queued.is_empty() && consumed != before => {}
                Ok(()) | Err(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS | Errno::INTR) => {
                    self.reclaim();
                    return Ok(());
                }
                Err(cause) => return Err(cause),
            }
        }
    }

    /// Takes back the chunks of frames that are sent.
    fn reclaim(&mut self) {
        while let Some(at) = self.completion.take() {
            self.free.push(at - at % CHUNK as u64);
        }
        self.completion.release();
    }
}
