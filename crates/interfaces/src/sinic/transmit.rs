//! The transmit FIFO and its copies (integrated NIC, sections A.1.2 and A.2.2).
//!
//! ```text
//!   posted virtual NICs ─► copied part by part; the one whose packet has begun goes first
//!                       ─► whole packets wait for TxEEn ─► port ─► gone with their last bit
//! ```

use std::collections::VecDeque;

use nicforge_nic::TxOffload;
use nicforge_units::Time;

use super::registers::{tx_data, tx_done};
use crate::kernel::{Frame, Port};

/// A virtual NIC's transmit registers.
#[derive(Clone, Debug, Default)]
struct TransmitVnic {
    /// TxData.
    data: u64,
    /// TxDone, except Packets, Full and Low.
    done: u64,
}

/// What comes next for the copy engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing is posted that could be served.
    Nothing,
    /// This virtual NIC's copy: so many bytes from there.
    Copy(u16, u64, usize),
    /// This virtual NIC's part makes its packet longer than the FIFO: it is not copied.
    Refuse(u16),
    /// A copy that has no room.
    NoRoom,
}

/// The transmit side.
#[derive(Debug)]
pub struct TransmitSide {
    vnics: Vec<TransmitVnic>,
    size: u64,
    mark: u64,
    used: u64,
    fall_armed: bool,
    /// A copy has no room.
    stalled: bool,
    /// Posted virtual NICs, oldest first.
    posted: VecDeque<u16>,
    /// Who owns the copy engine: its packet has begun and is not whole.
    owner: Option<u16>,
    /// The packet that is put together.
    packet: Frame,
    /// It became longer than the FIFO.
    doomed: bool,
    /// Whole packets that wait for transmission to be on.
    whole: VecDeque<Frame>,
    /// Last bits and lengths of packets on their way out.
    leaving: VecDeque<(Time, u64)>,
    /// Packets that were longer than the FIFO.
    pub oversized: u64,
}

impl TransmitSide {
    /// An empty FIFO of `size` bytes, with a watermark at `mark`, for `vnics` virtual NICs.
    pub fn new(vnics: usize, size: u64, mark: u64) -> TransmitSide {
        TransmitSide {
            vnics: vec![TransmitVnic::default(); vnics],
            size,
            mark,
            used: 0,
            fall_armed: false,
            stalled: false,
            posted: VecDeque::new(),
            owner: None,
            packet: Frame::default(),
            doomed: false,
            whole: VecDeque::new(),
            leaving: VecDeque::new(),
            oversized: 0,
        }
    }

    /// Whether `vnic`'s last copy is still to be done.
    pub fn is_busy(&self, vnic: u16) -> bool {
        tx_done::BUSY.is_set(self.vnics[usize::from(vnic)].done)
    }

    /// TxData is written, and is right.
    pub fn post(&mut self, vnic: u16, data: u64) {
        self.vnics[usize::from(vnic)] = TransmitVnic { data, done: tx_done::BUSY.mask() };
        self.posted.push_back(vnic);
    }

    /// What the copy engine does next; whoever has begun a packet goes first, and while it has
    /// nothing posted nobody goes.
    pub fn next(&self) -> Next {
        let vnic = match self.owner {
            Some(owner) if !self.posted.contains(&owner) => return Next::Nothing,
            Some(owner) => owner,
            None => match self.posted.front() {
                Some(&first) => first,
                None => return Next::Nothing,
            },
        };
        let data = self.vnics[usize::from(vnic)].data;
        let len = tx_data::LEN.get(data);
        if self.doomed || self.packet.len() as u64 + len > self.size {
            Next::Refuse(vnic)
        } else if self.used + len > self.size {
            Next::NoRoom
        } else {
            Next::Copy(vnic, tx_data::ADDR.get(data), len as usize)
        }
    }

    /// A copy waits for room; returns whether that is new.
    pub fn stall(&mut self) -> bool {
        let new = !self.stalled;
        self.stalled = true;
        self.fall_armed = true;
        new
    }

    /// `vnic`'s copy begins: where its `len` bytes go.
    pub fn begin(&mut self, vnic: u16, len: usize) -> &mut [u8] {
        self.take(vnic);
        self.used += len as u64;
        self.packet.grow(len)
    }

    fn take(&mut self, vnic: u16) {
        self.stalled = false;
        self.owner = Some(vnic);
        self.posted.retain(|&other| other != vnic);
    }

    /// `vnic`'s part is not copied, and what there was of its packet is thrown away. Returns what
    /// [`out`](Self::out) does.
    pub fn refuse(&mut self, vnic: u16) -> bool {
        self.take(vnic);
        let thrown_away = self.packet.len() as u64;
        self.packet.clear();
        self.doomed = true;
        self.leave(thrown_away)
    }

    /// The copy that `vnic` began has come to its end. Returns whether its packet is whole.
    pub fn complete(&mut self, vnic: u16) -> bool {
        let state = &mut self.vnics[usize::from(vnic)];
        let copied = if self.doomed { 0 } else { tx_data::LEN.get(state.data) };
        state.done = tx_done::COMPLETE.mask() | tx_done::COPY_LEN.of(copied);
        if tx_data::MORE.is_set(state.data) {
            return false;
        }
        self.owner = None;
        if std::mem::take(&mut self.doomed) {
            self.oversized += 1;
            return false;
        }
        let mut packet = std::mem::take(&mut self.packet);
        // What the parser cannot read has no checksum to fill; it goes out as it is.
        if tx_data::CHECKSUM.is_set(state.data) {
            packet.complete(TxOffload { l3_checksum: true, l4_checksum: true, ..TxOffload::default() });
        }
        self.whole.push_back(packet);
        true
    }

    /// Whole packets go to the port.
    pub fn send(&mut self, port: &mut Port, now: Time) {
        while let Some(packet) = self.whole.pop_front() {
            let len = packet.len() as u64;
            let ends = port.send(now, packet);
            self.leaving.push_back((ends, len));
        }
        if self.packet.is_nothing() {
            self.packet = port.buffer();
        }
    }

    /// When the next packet is out.
    pub fn next_out(&self) -> Time {
        self.leaving.front().map_or(Time::NEVER, |&(ends, _)| ends)
    }

    /// The first packet is out. Returns whether the FIFO fell below its watermark, for the first
    /// time since it was full.
    pub fn out(&mut self) -> bool {
        let len = self.leaving.pop_front().map_or(0, |(_, len)| len);
        self.leave(len)
    }

    /// `bytes` are in the FIFO no more.
    fn leave(&mut self, bytes: u64) -> bool {
        self.used -= bytes;
        let fell = self.fall_armed && bytes > 0 && self.used < self.mark;
        self.fall_armed &= !fell;
        fell
    }

    /// TxData of `vnic`.
    pub fn data(&self, vnic: u16) -> u64 {
        self.vnics[usize::from(vnic)].data
    }

    /// TxDone of `vnic`.
    pub fn done(&self, vnic: u16) -> u64 {
        let packets = ((self.whole.len() + self.leaving.len()) as u64).min(tx_done::PACKETS.max());
        self.vnics[usize::from(vnic)].done
            | tx_done::PACKETS.of(packets)
            | tx_done::FULL.of(self.stalled.into())
            | tx_done::LOW.of((self.used < self.mark).into())
    }

    /// Packets that were begun, or wait for transmission to be on. What is with the port is the
    /// port's.
    pub fn packets(&self) -> u64 {
        let first_parts = self.posted.iter().filter(|&&vnic| self.owner != Some(vnic));
        (self.whole.len() + first_parts.count()) as u64 + u64::from(self.owner.is_some())
    }
}
