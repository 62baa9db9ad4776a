//! The device's registers as its drivers use them.

use nicforge_nic::RxFlags;
use nicforge_platform::{Addr, Cpu};
use nicforge_units::{CACHE_LINE_BYTES, Cycles};

use super::registers::{Tag, config, rx_data, rx_done, tx_data, tx_done};
use crate::kernel::{Sending, SlabCache, TransmitBusy};

/// Time-outs of RxWait or TxWait after which a device is given up. A part of a packet waits for
/// others to leave the FIFO at most, which is some thousand time-outs of a microsecond.
const WAITS_MAX: u32 = 1 << 20;

/// The device does not complete a copy that it has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck;

/// A device's registers.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Its number in register addresses.
    pub device: u8,
    /// What a write takes the core.
    pub write_wait: Cycles,
}

impl Window {
    /// Reads a register of `vnic`.
    pub fn read<C: Cpu>(self, cpu: &mut C, tag: Tag, vnic: u16) -> u64 {
        cpu.mmio_read(tag.of(self.device, vnic))
    }

    /// Writes a register of `vnic`.
    pub fn write<C: Cpu>(self, cpu: &mut C, tag: Tag, vnic: u16, value: u64) {
        cpu.mmio_write(tag.of(self.device, vnic), value);
        cpu.work(self.write_wait);
    }

    /// Lets frames and interrupts through. Returns Config.
    pub fn enable<C: Cpu>(self, cpu: &mut C) -> u64 {
        let enables = config::INT_EN.mask() | config::TX_EN.mask() | config::RX_EN.mask();
        let value = self.read(cpu, Tag::Config, 0) | enables;
        self.write(cpu, Tag::Config, 0, value);
        value
    }

    /// Whether a packet has come by `vnic`'s last copy, with its last byte.
    pub fn has_whole_packet<C: Cpu>(self, cpu: &mut C, vnic: u16) -> bool {
        let done = self.read(cpu, Tag::RxDone, vnic);
        rx_done::COMPLETE.is_set(done) && !rx_done::MORE.is_set(done)
    }

    /// Begins a receive copy of `vnic`.
    pub fn begin_receive<C: Cpu>(self, cpu: &mut C, vnic: u16, to: Addr, len: u32) {
        let value = rx_data::ADDR.of(to.0) | rx_data::LEN.of(len.into());
        self.write(cpu, Tag::RxData, vnic, value);
    }

    /// Waits for the receive copy of `vnic`; returns RxDone.
    ///
    /// # Errors
    /// When it does not complete.
    pub fn finish_receive<C: Cpu>(self, cpu: &mut C, vnic: u16) -> Result<u64, Stuck> {
        for _ in 0..WAITS_MAX {
            let done = self.read(cpu, Tag::RxWait, vnic);
            if rx_done::COMPLETE.is_set(done) {
                return Ok(done);
            }
        }
        Err(Stuck)
    }
}

/// What RxDone says of a packet, as stacks have it.
pub fn flags(done: u64) -> RxFlags {
    if rx_done::IP_ERROR.is_set(done) {
        return RxFlags::L3_BAD;
    }
    if done & (rx_done::TCP_ERROR.mask() | rx_done::UDP_ERROR.mask()) != 0 {
        return RxFlags::L4_BAD;
    }
    let mut flags = RxFlags::default();
    if rx_done::IP_PACKET.is_set(done) {
        flags = flags.with(RxFlags::L3_GOOD);
    }
    if done & (rx_done::TCP_PACKET.mask() | rx_done::UDP_PACKET.mask()) != 0 {
        flags = flags.with(RxFlags::L4_GOOD);
    }
    flags
}

/// The kernel's own description of a received packet: two lines in front of its data.
pub fn describe<C: Cpu>(cpu: &mut C, mbuf: Addr, done: u64) {
    cpu.store(mbuf, done);
    cpu.store(mbuf + CACHE_LINE_BYTES, done);
}

/// The transmit half of a driver (integrated NIC, section 6.2.2): a packet's parts are written to
/// TxData one after the other; the copy of the last one overlaps with what the core does next.
#[derive(Debug)]
pub struct Transmitter {
    window: Window,
    /// The register set of this core.
    vnic: u16,
    max_copy: u32,
    /// The buffer of the last frame, whose last part may not be read yet.
    unread: Option<Addr>,
    /// A frame found the engine busy: the stack waits for it.
    waits: bool,
    stuck: bool,
}

impl Transmitter {
    /// What sends by `vnic`.
    pub fn new(window: Window, vnic: u16) -> Transmitter {
        Transmitter { window, vnic, max_copy: 0, unread: None, waits: false, stuck: false }
    }

    /// Learns what the device can do.
    pub fn start<C: Cpu>(&mut self, cpu: &mut C) {
        self.max_copy = self.window.read(cpu, Tag::TxMaxCopy, 0) as u32;
    }

    /// Whether the stack waits for the engine.
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// Frees the last frame's buffer, if it was read; `wait` blocks for it. Returns whether the
    /// engine is free.
    pub fn reclaim<C: Cpu>(&mut self, cpu: &mut C, pool: &mut SlabCache, wait: bool) -> bool {
        let Some(mbuf) = self.unread else {
            return true;
        };
        let tag = if wait { Tag::TxWait } else { Tag::TxDone };
        let done = self.window.read(cpu, tag, self.vnic);
        if !tx_done::COMPLETE.is_set(done) {
            return false;
        }
        pool.give(cpu, mbuf);
        self.unread = None;
        self.waits = false;
        true
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// When the copy of the frame before has no room yet.
    pub fn transmit<C: Cpu>(&mut self, cpu: &mut C, pool: &mut SlabCache, frame: &Sending) -> Result<(), TransmitBusy> {
        if self.stuck || !self.reclaim(cpu, pool, true) {
            self.waits = true;
            return Err(TransmitBusy);
        }
        let checksum = frame.offload.l3_checksum || frame.offload.l4_checksum;
        let mut left = frame.len();
        for piece in &frame.pieces {
            let mut sent = 0;
            while sent < piece.len {
                let len = (piece.len - sent).min(self.max_copy);
                left -= len;
                let value = tx_data::ADDR.of(piece.at.0 + u64::from(sent))
                    | tx_data::LEN.of(len.into())
                    | tx_data::MORE.of((left > 0).into())
                    | tx_data::CHECKSUM.of(checksum.into());
                self.window.write(cpu, Tag::TxData, self.vnic, value);
                sent += len;
                if left > 0 && self.finish(cpu).is_err() {
                    self.stuck = true;
                    return Err(TransmitBusy);
                }
            }
        }
        self.unread = Some(frame.mbuf);
        Ok(())
    }

    fn finish<C: Cpu>(&self, cpu: &mut C) -> Result<(), Stuck> {
        for _ in 0..WAITS_MAX {
            let done = self.window.read(cpu, Tag::TxWait, self.vnic);
            if tx_done::COMPLETE.is_set(done) {
                return Ok(());
            }
        }
        Err(Stuck)
    }

    /// Buffers that it holds.
    pub fn buffers_held(&self) -> u64 {
        self.unread.is_some().into()
    }
}
