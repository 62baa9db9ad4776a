//! The two halves, and the packets that pass between driver and stack.

use nicforge_nic::{DriverCosts, DropCause, RxFlags, Segment, TxOffload};
use nicforge_platform::{Addr, Cpu, Dma, Owner};
use nicforge_units::{BitRate, Bytes, Cycles, Time};

use super::{Frame, Port, SlabCache};

/// What a NIC and its driver are built from. The numbers come from a machine file.
#[derive(Clone, Debug)]
pub struct KernelPlan {
    /// The NIC's device number in register addresses.
    pub device: u8,
    /// The core that it interrupts, and that polls its driver.
    pub owner: Owner,
    /// Cores that send by it, the first of which is 0.
    pub cores: usize,
    /// Descriptors of each direction, where the interface has descriptors.
    pub rx_entries: usize,
    /// The same for transmit.
    pub tx_entries: usize,
    /// The port's rate.
    pub rate: BitRate,
    /// Preamble, delimiter, FCS and gap of a frame.
    pub wire_overhead: Bytes,
    /// Receive FIFO; frames that find it full are dropped.
    pub rx_fifo: Bytes,
    /// Transmit FIFO.
    pub tx_fifo: Bytes,
    /// An interrupt is raised so long after the first event that asks for one; later events do
    /// not put it off (integrated_nic, section 3.3).
    pub interrupt_delay: Time,
    /// What the driver's instructions cost.
    pub costs: DriverCosts,
    /// How long the core waits when it has written a register: until the NIC has it and has answered, as `writel` of
    /// Linux on Alpha ends in a memory barrier.
    pub write_wait: Cycles,
    /// What SINIC and V-SINIC have besides.
    pub sinic: crate::sinic::Options,
}

/// What of a NIC's half needs no way to memory.
pub trait KernelDevice: Send {
    /// Host memory ends there: said once, when all of it is handed out. A NIC that takes addresses
    /// by register refuses those beyond.
    fn set_memory_end(&mut self, _end: Addr) {}

    /// Whether a read of register `index` would block now, and how long at most: whoever reads then
    /// lets pass what happens until it does not.
    fn blocks(&self, _index: u32) -> Option<Time> {
        None
    }

    /// When it has work of its own to do next: [`advance`](KernelNic::advance) is then called.
    fn due(&self) -> Time;

    /// Where its frames leave.
    fn port(&mut self) -> &mut Port;

    /// Frames that it holds: in FIFOs and on their way to host memory or to the port.
    fn frames_inside(&self) -> u64;

    /// Those of them that were received: their last byte is not in host memory yet.
    fn received_inside(&self) -> u64 {
        self.frames_inside()
    }

    /// What else it counted, by name: errors of its driver, above all.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// The NIC's half. Its time is the cursor of the `dma` that it is called with; calls of one NIC
/// come in the order of their times, or nearly so: a core's step may be ahead of the wire by a
/// packet's work.
pub trait KernelNic<D: Dma>: KernelDevice {
    /// A frame came in from the wire, last bit at the cursor. The NIC may keep its bytes and leave an
    /// empty buffer in their place. The caller counts the cause by which it is dropped.
    fn receive(&mut self, dma: &mut D, frame: &mut Frame) -> Result<(), DropCause>;

    /// A core's write of register `index` arrives. What means nothing is counted and ignored.
    fn write_register(&mut self, dma: &mut D, index: u32, value: u64);

    /// A core's read of register `index` arrives. Returns the value and when the NIC gives it:
    /// later than the cursor for a register that blocks.
    fn read_register(&mut self, dma: &mut D, index: u32) -> (u64, Time);

    /// Does what is due by the cursor of `dma`.
    fn advance(&mut self, dma: &mut D);
}

/// Payload that is still in the NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deferred {
    /// The driver's name for the packet, such as the number of a virtual NIC.
    pub handle: u32,
    /// Bytes that are left.
    pub len: u32,
}

/// Received frames between a NIC and the stack, as its driver knows them: for the count at the end of
/// a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Between {
    /// Frames that are all in host memory, and that the driver has not taken.
    pub in_memory: u64,
    /// Frames that the stack has, and whose payload is in the NIC still.
    pub deferred: u64,
    /// Frames that the driver has taken and dropped.
    pub dropped: u64,
}

/// A received packet as the driver hands it to the stack.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// Its buffer (metadata, as in [`nicforge_nic::data_of`]), which the stack gives back.
    pub mbuf: Addr,
    /// The frame in host memory: all of it, or its beginning with all headers.
    pub head: Segment,
    /// The rest, when it is still in the NIC. The stack copies or drops all of it.
    pub deferred: Option<Deferred>,
    /// What the NIC verified.
    pub flags: RxFlags,
}

/// A frame that the stack gives to the driver.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// The buffer that holds its headers; the driver gives it back to the pool when the frame
    /// has been read.
    pub mbuf: Addr,
    /// Its bytes in host memory: headers, then payload in up to two pieces, of which the last
    /// may be empty. Payload stays untouched until the peer has acknowledged it.
    pub pieces: [Segment; 3],
    /// What the NIC computes.
    pub offload: TxOffload,
}

impl Sending {
    /// Bytes of the frame.
    pub fn len(&self) -> u32 {
        self.pieces.iter().map(|piece| piece.len).sum()
    }

    /// Whether the frame has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The NIC has no room for a frame; the stack keeps it and tries again after the next poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransmitBusy;

/// What an interface asks of the kernel around its driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Advice {
    /// The driver is polled always, and the NIC never interrupts.
    pub polls: bool,
    /// Received packets are taken by a thread that the interrupt wakes, which takes turns with
    /// processes, and not within a soft interrupt, which goes before them.
    pub receive_thread: bool,
    /// Frames are given to the driver by a thread of their own, not by the sender.
    pub transmit_thread: bool,
    /// Received packets go to a thread on the core whose process reads their connection, and not to
    /// one on the core that polls.
    pub spreads: bool,
    /// Deferred payload goes to the kernel's buffer when it is wanted, and from there to the
    /// process: the copy is delayed, not saved.
    pub delays_copy: bool,
}

/// What of a driver's half needs no core.
pub trait DriverState {
    /// Whether the NIC is so full that deferred payload should be copied to kernel buffers now,
    /// whether or not a read was requested.
    fn is_pressed(&self) -> bool {
        false
    }

    /// What it asks of the kernel, once it has begun.
    fn advice(&self) -> Advice {
        Advice::default()
    }

    /// Buffers of the pool that the driver holds: given to the NIC, or not yet transmitted.
    fn buffers_held(&self) -> u64;
}

/// The driver's half. One core polls it; all cores send by it and copy deferred payload, each with
/// its own level of the pool, from which buffers for received frames come, and to which what was
/// transmitted goes back.
pub trait KernelDriver<C: Cpu>: DriverState {
    /// Brings the NIC up.
    fn start(&mut self, cpu: &mut C, pool: &mut SlabCache);

    /// The NIC interrupted: asks it why. Returns whether [`poll`](Self::poll) is to be called,
    /// until when the NIC is kept from interrupting again.
    fn interrupt(&mut self, cpu: &mut C) -> bool;

    /// Frees what was transmitted, appends up to `budget` received packets to `received`, and
    /// gives the NIC new buffers. Returns whether there may be more; when not, the NIC may
    /// interrupt again.
    fn poll(&mut self, cpu: &mut C, pool: &mut SlabCache, received: &mut Vec<Received>, budget: usize) -> bool;

    /// Sends a frame on core `core`.
    ///
    /// # Errors
    /// When there is no room; then the frame is the stack's still, and a later
    /// [`poll`](Self::poll) follows from an interrupt.
    fn transmit(&mut self, cpu: &mut C, pool: &mut SlabCache, frame: &Sending, core: usize)
    -> Result<(), TransmitBusy>;

    /// Copies the next `len` bytes of a deferred payload to `to`, and returns when they are there.
    /// `deferred.len` goes down by what was copied.
    fn copy_deferred(&mut self, _cpu: &mut C, _deferred: &mut Deferred, _to: Addr, _len: u32) {}

    /// Gives up what is left of a deferred payload.
    fn drop_deferred(&mut self, _cpu: &mut C, _deferred: Deferred) {}

    /// Received frames that neither the NIC nor the stack has for itself.
    fn between(&self, cpu: &mut C) -> Between;
}
