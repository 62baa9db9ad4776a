//! The receive FIFO and its copies (integrated NIC, sections A.1.1 and A.2.1).
//!
//! ```text
//!   wire ─► unclaimed ──► bound to a virtual NIC ──► copied part by part ──► gone
//!                ▲ posted virtual NICs, in the order of their posting
//! ```

use std::collections::VecDeque;

use nicforge_wire::headers::ip_protocol;

use super::options::FRAME_MAX;
use super::registers::{rx_data, rx_done};
use crate::kernel::{Findings, Frame};

/// A packet in the FIFO.
#[derive(Debug, Default)]
struct Packet {
    frame: Frame,
    copied: usize,
    /// What RxDone says of it.
    flags: u64,
}

/// A virtual NIC's receive registers.
#[derive(Debug, Default)]
struct ReceiveVnic {
    /// RxData.
    data: u64,
    /// RxDone, except Packets.
    done: u64,
    /// The packet it is bound to.
    packet: Option<Packet>,
}

/// Why a frame does not get into the FIFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no room.
    Full,
    /// It is longer than the FIFO.
    LongerThanFifo,
    /// It is longer than CopyLen can say, or empty.
    Length,
}

/// What changed in the FIFO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveEvents {
    /// It rose above the watermark, for the first time since it was empty.
    pub rose: bool,
    /// It is empty now.
    pub emptied: bool,
}

/// The receive side.
#[derive(Debug)]
pub struct ReceiveSide {
    vnics: Vec<ReceiveVnic>,
    size: u64,
    mark: u64,
    used: u64,
    rise_armed: bool,
    unclaimed: VecDeque<Packet>,
    /// Posted virtual NICs that wait for a packet, oldest first.
    posted: VecDeque<u16>,
    /// Those that have one and wait for the copy engine.
    ready: VecDeque<u16>,
    /// Packets inside.
    packets: u64,
    spare: Vec<Frame>,
}

impl ReceiveSide {
    /// An empty FIFO of `size` bytes, with a watermark at `mark`, for `vnics` virtual NICs.
    pub fn new(vnics: usize, size: u64, mark: u64) -> ReceiveSide {
        ReceiveSide {
            vnics: (0..vnics).map(|_| ReceiveVnic::default()).collect(),
            size,
            mark,
            used: 0,
            rise_armed: true,
            unclaimed: VecDeque::new(),
            posted: VecDeque::new(),
            ready: VecDeque::new(),
            packets: 0,
            spare: Vec::new(),
        }
    }

    /// A frame comes in; an empty buffer takes its place.
    ///
    /// # Errors
    /// When it is dropped.
    pub fn arrive(&mut self, frame: &mut Frame) -> Result<ReceiveEvents, Refused> {
        let len = frame.len() as u64;
        if len == 0 || len > FRAME_MAX {
            return Err(Refused::Length);
        }
        if len > self.size {
            return Err(Refused::LongerThanFifo);
        }
        if self.used + len > self.size {
            return Err(Refused::Full);
        }
        let empty = self.spare.pop().unwrap_or_default();
        self.unclaimed.push_back(Packet {
            flags: flags_of(&frame.findings()),
            frame: std::mem::replace(frame, empty),
            copied: 0,
        });
        self.used += len;
        self.packets += 1;
        self.bind();
        let rose = self.rise_armed && self.used > self.mark;
        self.rise_armed &= !rose;
        Ok(ReceiveEvents { rose, emptied: false })
    }

    /// Whether `vnic`'s last copy is still to be done.
    pub fn is_busy(&self, vnic: u16) -> bool {
        rx_done::BUSY.is_set(self.vnics[usize::from(vnic)].done)
    }

    /// RxData is written, and is right.
    pub fn post(&mut self, vnic: u16, data: u64) {
        let state = &mut self.vnics[usize::from(vnic)];
        state.data = data;
        state.done = rx_done::BUSY.mask();
        match state.packet {
            Some(_) => self.ready.push_back(vnic),
            None => self.posted.push_back(vnic),
        }
        self.bind();
    }

    fn bind(&mut self) {
        while !self.posted.is_empty()
            && let Some(packet) = self.unclaimed.pop_front()
        {
            if let Some(vnic) = self.posted.pop_front() {
                self.vnics[usize::from(vnic)].packet = Some(packet);
                self.ready.push_back(vnic);
            }
        }
    }

    /// Whether a copy could begin.
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The next copy: virtual NIC, where to, and the bytes.
    pub fn begin(&mut self) -> Option<(u16, u64, &[u8])> {
        let vnic = self.ready.pop_front()?;
        let state = &self.vnics[usize::from(vnic)];
        let packet = state.packet.as_ref()?;
        let asked = rx_data::LEN.get(state.data) as usize;
        let until = packet.frame.len().min(packet.copied + asked);
        let bytes = &packet.frame.bytes()[packet.copied..until];
        Some((vnic, rx_data::ADDR.get(state.data), bytes))
    }

    /// The copy that `vnic` began has come to its end.
    pub fn complete(&mut self, vnic: u16) -> ReceiveEvents {
        let state = &mut self.vnics[usize::from(vnic)];
        let Some(mut packet) = state.packet.take() else {
            return ReceiveEvents::default();
        };
        let asked = rx_data::LEN.get(state.data) as usize;
        let copied = asked.min(packet.frame.len() - packet.copied);
        packet.copied += copied;
        let left = packet.frame.len() - packet.copied;
        let mut done = rx_done::COMPLETE.mask() | packet.flags;
        if left > 0 {
            done |= rx_done::MORE.mask() | rx_done::COPY_LEN.of(left as u64);
            state.packet = Some(packet);
            state.done = done;
            return ReceiveEvents::default();
        }
        state.done = done | rx_done::COPY_LEN.of(copied as u64);
        self.used -= packet.frame.len() as u64;
        self.packets -= 1;
        packet.frame.clear();
        self.spare.push(packet.frame);
        let emptied = self.used == 0;
        self.rise_armed |= emptied;
        ReceiveEvents { rose: false, emptied }
    }

    /// RxData of `vnic`.
    pub fn data(&self, vnic: u16) -> u64 {
        self.vnics[usize::from(vnic)].data
    }

    /// RxDone of `vnic`.
    pub fn done(&self, vnic: u16) -> u64 {
        let packets = (self.unclaimed.len() as u64).min(rx_done::PACKETS.max());
        self.vnics[usize::from(vnic)].done | rx_done::PACKETS.of(packets)
    }

    /// Packets inside.
    pub fn packets(&self) -> u64 {
        self.packets
    }
}

/// What RxDone says of a frame. What is no IP packet, or not a sound one, has no flags.
fn flags_of(found: &Findings) -> u64 {
    if !found.is_ip {
        return 0;
    }
    let mut flags = rx_done::IP_PACKET.mask();
    if found.verdict.l3 == Some(false) {
        flags |= rx_done::IP_ERROR.mask();
    }
    // Of a fragment nobody can say what is above IP.
    let (packet, error) = match found.protocol {
        Some(ip_protocol::TCP) => (rx_done::TCP_PACKET, rx_done::TCP_ERROR),
        Some(ip_protocol::UDP) => (rx_done::UDP_PACKET, rx_done::UDP_ERROR),
        _ => return flags,
    };
    flags |= packet.mask();
    if found.verdict.l4 == Some(false) {
        flags |= error.mask();
    }
    flags
}
