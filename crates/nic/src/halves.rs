//! The two halves of a NIC-host interface.

use std::any::Any;
use std::ops::{Add, Range};

use nicforge_platform::{Addr, Cpu, Dma, Hint};
use nicforge_units::{Bytes, Cycles, Time};

use crate::stage::Stage;
use crate::{Packet, PoolCache, PortId, RxFlags, data_of};

/// A frame that the NIC has parsed and steered, on its way to the host.
#[derive(Clone, Copy, Debug)]
pub struct Arriving<'a> {
    /// The frame without FCS.
    pub bytes: &'a [u8],
    /// From here on all its bytes are zero.
    pub head: usize,
    /// Where the headers end that the NIC has parsed.
    pub headers: usize,
    /// When its first bit came in.
    pub stamp: Time,
    /// Its RSS hash.
    pub rss_hash: u32,
    /// What the NIC verified, and what stages found out.
    pub flags: RxFlags,
    /// A stage's word to the host: it travels in the completion to the driver's packet.
    pub mark: u64,
    /// Payload bytes of each frame, where this is a segment that stands for several (large receive
    /// offload); else 0.
    pub segment: u16,
    /// The port it came in on.
    pub port: PortId,
    /// The queue that steering chose, counted within this NIC.
    pub queue: u16,
}

impl Arriving<'_> {
    /// Its queue, as whose alone the buffers are.
    #[inline]
    pub fn own(&self) -> Range<u16> {
        self.queue..self.queue + 1
    }

    /// Writes the frame into buffer `mbuf`; a `later` one will be written at that address, which may be any.
    #[inline(always)]
    pub fn write_to<D: Dma>(&self, dma: &mut D, mbuf: Addr, later: Option<Addr>) {
        self.write(dma, data_of(mbuf));
        if let Some(at) = later {
            dma.hint(Hint::Frame { at, len: self.bytes.len() });
        }
    }

    /// Writes the frame to host memory.
    #[inline(always)]
    pub fn write<D: Dma>(&self, dma: &mut D, to: Addr) {
        dma.write_padded(to, self.bytes, self.head);
    }
}

/// Packets of a queue that were put into other queues' buffers, and packets of others that were put into its
/// own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lending {
    /// Into others' buffers.
    pub borrowed: u64,
    /// Of others, into its own.
    pub lent: u64,
}

impl Add for Lending {
    type Output = Lending;

    fn add(self, other: Lending) -> Lending {
        Lending { borrowed: self.borrowed + other.borrowed, lent: self.lent + other.lent }
    }
}

/// Why an interface could not take a frame; the name of a drop counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropCause(pub &'static str);

impl DropCause {
    /// The ring has no empty buffer.
    pub const NO_DESCRIPTOR: DropCause = DropCause("no_descriptor");
    /// The frame is longer than a buffer.
    pub const OVERSIZED: DropCause = DropCause("oversized_frame");
    /// The MAC's receive FIFO has no room at the time.
    pub const FIFO_FULL: DropCause = DropCause("fifo_full");
    /// The frame is longer than the MAC's receive FIFO: it never has room for it.
    pub const LONGER_THAN_FIFO: DropCause = DropCause("longer_than_fifo");
    /// The descriptor names memory that is no buffer.
    pub const BAD_DESCRIPTOR: DropCause = DropCause("bad_descriptor");

    /// No drop: the NIC answered the frame itself, and counts it among those that stages kept.
    pub const ANSWERED: DropCause = DropCause("answered");

    /// Every cause that depends on how fast frames come: something with a bound was full, or something that
    /// is used again was not back yet. All others depend on what a frame is, on the settings (so does
    /// `table_full`: a table has room for so many flows however fast they come), or on software's mistakes.
    const OF_LOAD: [DropCause; 6] = [
        DropCause::NO_DESCRIPTOR,
        DropCause("bx_full"),
        DropCause::FIFO_FULL,
        DropCause("hairpin_queue_full"),
        DropCause("tx_ring_full"),
        DropCause("no_buffer_to_send"),
    ];

    /// Why a frame of `len` bytes found no room in a receive FIFO of `size` bytes.
    #[cold]
    pub fn of_fifo(len: Bytes, size: Bytes) -> DropCause {
        if len > size { DropCause::LONGER_THAN_FIFO } else { DropCause::FIFO_FULL }
    }

    /// Whether fewer frames a second would not have been dropped for it.
    pub fn is_of_load(self) -> bool {
        DropCause::names_of_load().any(|name| name == self.0)
    }

    /// The names of all causes that a lower rate avoids.
    pub fn names_of_load() -> impl Iterator<Item = &'static str> {
        DropCause::OF_LOAD.iter().map(|cause| cause.0)
    }
}

/// How full the receive side of a queue is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Entries delivered and not yet taken by software.
    pub entries: u64,
    /// Entries there are.
    pub of: u64,
}

impl std::ops::Add for Waiting {
    type Output = Waiting;

    #[inline]
    fn add(self, other: Waiting) -> Waiting {
        Waiting { entries: self.entries + other.entries, of: self.of + other.of }
    }
}

impl std::iter::Sum for Waiting {
    fn sum<I: Iterator<Item = Waiting>>(all: I) -> Waiting {
        all.fold(Waiting::default(), std::ops::Add::add)
    }
}

/// The receive queues of a NIC's half, as others may ask for them.
pub trait Queues {
    /// How many queues it has; steering names no other.
    fn queues(&self) -> u16;

    /// The names of its sets of queues, of which steering uses one at a time: each has equally
    /// many, so that a core's queue stands at the same place in all of them.
    fn sets(&self) -> &'static [&'static str] {
        &["all"]
    }

    /// How full queue `queue` is.
    fn waiting(&self, queue: u16) -> Waiting;

    /// Frames that queue `queue` has room for in all that they go through, if no others come between.
    fn free(&self, queue: u16) -> u64 {
        let waiting = self.waiting(queue);
        waiting.of.saturating_sub(waiting.entries)
    }

    /// Buffers that it keeps in rings of its own, which no driver counts
    /// ([`DriverHalf::buffers_held`]).
    fn holds(&self) -> u64 {
        0
    }

    /// Frames that went to a ring of second choice, where the interface has such.
    fn spilled(&self) -> u64 {
        0
    }

    /// What queue `queue` borrowed and lent so far, where queues take each other's buffers.
    fn lending(&self, _queue: u16) -> Option<Lending> {
        None
    }
}

/// The NIC's half of an interface.
pub trait ReceiveHalf<D: Dma>: Queues + Any + Send {
    /// Delivers a frame to the host, or says why not. Nothing else may keep it.
    fn receive(&mut self, dma: &mut D, frame: &Arriving<'_>) -> Result<(), DropCause>;

    /// A core wrote receive register `index` (its queue, for doorbells). `false` when there is
    /// no such register or the value is impossible: the NIC counts it and carries on.
    fn write_register(&mut self, dma: &mut D, index: u32, value: u64) -> bool;

    /// When the half has work of its own to do, such as to write what it held back.
    fn due(&self) -> Time {
        Time::NEVER
    }

    /// Does what is due at the cursor of `dma`.
    fn advance(&mut self, _dma: &mut D) {}

    /// The interface's own step on the packet path, next to the host; the device takes it once.
    fn stage(&mut self) -> Option<Box<dyn Stage<D>>> {
        None
    }

    /// Whether it stands for all of a NIC that cores play: registers of all kinds are its own.
    fn is_whole(&self) -> bool {
        false
    }

    /// What keeps the NIC going when software of a queue dies, where the interface can do that.
    fn recovery(&self) -> Option<&dyn Recoverable> {
        None
    }

    /// The same, to change something.
    fn recoverable(&mut self) -> Option<&mut dyn Recoverable> {
        None
    }
}

/// The NIC's half of an interface whose queues may lose their software and restart with other software, while
/// other queues go on.
pub trait Recoverable: Queues {
    /// The queues that can only restart together with `queue`, as they share a ring with it.
    fn together(&self, queue: u16) -> Range<u16> {
        queue..queue + 1
    }

    /// Forgets all that the queues `queues` hold, which are all of their rings: nothing of it is
    /// delivered any more, what their software reads is zero as in the beginning, and positions
    /// count from the beginning again. The software of these rings has stopped. Returns the
    /// registers that belong to them, or `None` where an interface cannot do that.
    fn restart(&mut self, _dma: &mut dyn Dma, _queues: Range<u16>) -> Option<Vec<u32>> {
        None
    }

    /// Buffers of queue `from` that went out with packets for queue `to`, less those that went the
    /// other way, since either last began: so far do their drivers' own counts
    /// ([`DriverHalf::buffers_held`]) differ from what each has.
    fn lent(&self, _from: u16, _to: u16) -> i64 {
        0
    }

    /// Whose descriptor made the last frame for `queue` a
    /// [`BAD_DESCRIPTOR`](DropCause::BAD_DESCRIPTOR); several where nobody can tell which of them.
    fn blamed(&self, queue: u16) -> Range<u16> {
        queue..queue + 1
    }

    /// The queues whose software writes receive register `index`; none where there is no such register.
    fn rung_by(&self, index: u32) -> Range<u16> {
        match u16::try_from(index) {
            Ok(queue) if queue < self.queues() => queue..queue + 1,
            _ => 0..0,
        }
    }
}

/// What the driver's own instructions cost, beyond its memory accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverCosts {
    /// One received packet.
    pub rx_packet: Cycles,
    /// One transmitted packet.
    pub tx_packet: Cycles,
    /// One burst that was not empty, receive and transmit together.
    pub burst: Cycles,
}

/// The driver's half of an interface: one value per queue, used by one core.
pub trait DriverHalf<C: Cpu>: Send {
    /// Fills the rings with buffers and rings the doorbells: the queue is up.
    fn start(&mut self, cpu: &mut C, pool: &mut PoolCache);

    /// Appends up to `max` received packets to `packets` and gives the NIC new buffers.
    fn rx_burst(&mut self, cpu: &mut C, pool: &mut PoolCache, packets: &mut Vec<Packet>, max: usize);

    /// Packets handed out so far.
    fn taken(&self) -> u64;

    /// Buffers that the driver took from the pool, less those it handed out. The sum over all
    /// drivers is what their rings hold; one driver's may be negative, where an interface fills
    /// buffers of one core with packets for another.
    fn buffers_held(&self) -> i64;
}
