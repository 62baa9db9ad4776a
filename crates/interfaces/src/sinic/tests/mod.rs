//! The device against its data sheet, on plain memory.
//!
//! | file | what is shown |
//! | --- | --- |
//! | sheet.rs | the register table is the data sheet's, row by row; access modes and reset values |
//! | rows.rs | Config bit by bit, each interrupt condition |
//! | behaviour.rs | copies, conditions, watermarks, blocking reads, checksums, reset |
//! | misuse.rs | everything that the sheet calls undefined is counted and does no harm |
//! | virtual_nics.rs | binding, pre-posting, deferred payload, whole packets from several cores |
//! | system.rs, traffic.rs, driver.rs | the driver against the device, in virtual time |
//! | programs.rs | random driver programs lose, double and change nothing, and never hang |

mod behaviour;
mod driver;
mod misuse;
mod programs;
mod rows;
mod sheet;
pub mod system;
pub mod traffic;
mod virtual_nics;

use nicforge_nic::DropCause;
use nicforge_platform::{Addr, Dma, Vector};
use nicforge_units::{BitRate, Bytes, Time};
use nicforge_wire::headers::ip_protocol;
use nicforge_wire::{checksum, parse_frame};

use super::registers::{BusAccess, Tag, config, interrupt, rx_data, rx_done, tx_data};
use super::{Misuse, Nic, Options, Surroundings};
use crate::kernel::{KernelDevice, KernelNic, Port};

const MEMORY: usize = 1 << 21;

/// Plain memory whose bytes take 0.1 ns each, and 20 ns more when they are read.
pub struct Memory {
    pub bytes: Vec<u8>,
    pub now: Time,
    pub interrupts: Vec<Time>,
    /// Where the device has written, in that order.
    pub written: Vec<Addr>,
}

impl Memory {
    pub fn new() -> Memory {
        Memory { bytes: vec![0; MEMORY], now: Time::ZERO, interrupts: Vec::new(), written: Vec::new() }
    }
}

fn transfer(bytes: usize) -> Time {
    Time::from_ps(100 * bytes as u64)
}

impl Dma for Memory {
    fn read(&mut self, from: Addr, into: &mut [u8]) {
        self.now = self.read_ahead(from, into);
    }

    fn read_ahead(&mut self, from: Addr, into: &mut [u8]) -> Time {
        into.copy_from_slice(&self.bytes[from.0 as usize..][..into.len()]);
        self.now + Time::from_ns(20) + transfer(into.len())
    }

    fn write(&mut self, to: Addr, bytes: &[u8]) {
        self.bytes[to.0 as usize..][..bytes.len()].copy_from_slice(bytes);
        self.now += transfer(bytes.len());
        self.written.push(to);
    }

    fn publish(&mut self, to: Addr, bytes: &[u8]) {
        self.write(to, bytes);
    }

    fn interrupt(&mut self, _vector: Vector) {
        self.interrupts.push(self.now);
    }

    fn wait_until(&mut self, time: Time) {
        self.now = self.now.max(time);
    }

    fn now(&self) -> Time {
        self.now
    }
}

/// A SINIC of small FIFOs.
pub fn sinic() -> Options {
    Options {
        hardware_address: [2, 0, 0, 0x12, 0x34, 0x56],
        vnics: None,
        rx_max_copy: Bytes(1514),
        tx_max_copy: Bytes(4 << 10),
        rx_max_intr: 10,
        header_copy: Bytes(64),
        rx_fifo_mark: Bytes(8 << 10),
        tx_fifo_mark: Bytes(4 << 10),
        wait_timeout: Time::from_us(1),
        advice: 0,
        interrupt_mask: 0,
    }
}

pub fn v_sinic(vnics: usize) -> Options {
    Options { vnics: Some(vnics), ..sinic() }
}

const RX_FIFO: Bytes = Bytes(16 << 10);
const TX_FIFO: Bytes = Bytes(16 << 10);
const DELAY: Time = Time::from_us(10);

struct Bench {
    nic: Nic,
    memory: Memory,
    now: Time,
}

impl Bench {
    /// A device as after power-on.
    fn off(options: &Options) -> Bench {
        let around = Surroundings { rx_fifo: RX_FIFO, tx_fifo: TX_FIFO, interrupt_delay: DELAY, vector: Vector(0) };
        let port = Port::new(BitRate::from_gbps(10.0), Bytes(24));
        let mut nic = Nic::new(options, &around, port).unwrap();
        nic.set_memory_end(Addr(MEMORY as u64));
        Bench { nic, memory: Memory::new(), now: Time::ZERO }
    }

    /// A device that is on.
    fn on(options: &Options) -> Bench {
        let mut bench = Bench::off(options);
        let enables = config::INT_EN.mask() | config::TX_EN.mask() | config::RX_EN.mask();
        bench.write(Tag::Config, 0, options.config() | enables);
        bench
    }

    fn dma(&mut self) -> (&mut Nic, &mut Memory) {
        self.memory.now = self.now;
        (&mut self.nic, &mut self.memory)
    }

    fn write_at(&mut self, offset: u32, bytes: u32, value: u64) {
        let register = BusAccess::index(0, offset, bytes);
        let (nic, memory) = self.dma();
        nic.write_register(memory, register.index, value);
    }

    /// Reads; time goes on until the answer is given.
    fn read_at(&mut self, offset: u32, bytes: u32) -> u64 {
        let register = BusAccess::index(0, offset, bytes);
        let (nic, memory) = self.dma();
        let (value, given) = nic.read_register(memory, register.index);
        assert!(given >= self.now, "no answer comes before its question");
        self.now = given;
        value
    }

    fn write(&mut self, tag: Tag, vnic: u16, value: u64) {
        let register = tag.of(0, vnic);
        let access = BusAccess::from_index(register.index);
        self.write_at(access.offset, access.bytes, value);
    }

    fn read(&mut self, tag: Tag, vnic: u16) -> u64 {
        let access = BusAccess::from_index(tag.of(0, vnic).index);
        self.read_at(access.offset, access.bytes)
    }

    fn arrive(&mut self, frame: &[u8]) -> Result<(), DropCause> {
        let (nic, memory) = self.dma();
        nic.receive(memory, &mut frame.to_vec().into())
    }

    /// Time passes, and the device does what it does by itself.
    fn pass(&mut self, time: Time) {
        let until = self.now + time;
        for _ in 0..100_000 {
            let due = self.nic.due();
            if due > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(due);
            let (nic, memory) = self.dma();
            nic.advance(memory);
        }
        panic!("the device is never done");
    }

    fn sent(&mut self) -> Vec<Vec<u8>> {
        let port = self.nic.port();
        std::iter::from_fn(|| port.take_sent()).map(|(_, frame)| frame.into_bytes()).collect()
    }

    fn misuses(&self) -> Vec<(Misuse, u64)> {
        let all = Misuse::ALL.iter();
        all.map(|&misuse| (misuse, self.nic.misuses(misuse))).filter(|&(_, count)| count > 0).collect()
    }

    /// `len` bytes at `at`.
    fn bytes(&self, at: u64, len: usize) -> &[u8] {
        &self.memory.bytes[at as usize..][..len]
    }
}

/// A frame that says who it is.
pub fn frame(number: u32, len: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..len).map(|place| (place as u32 * 31 + number * 7) as u8).collect();
    let name = number.to_be_bytes();
    let there = name.len().min(len);
    frame[..there].copy_from_slice(&name[..there]);
    frame
}

/// An IPv4 packet with TCP or UDP in it that says who it is, 54 bytes at least; its checksums are
/// right, or wrong each by itself.
fn ip_packet(number: u32, protocol: u8, len: usize, l3_wrong: bool, l4_wrong: bool) -> Vec<u8> {
    let mut packet = frame(number, len);
    packet[12..16].copy_from_slice(&[0x08, 0, 0x45, 0]);
    packet[16..18].copy_from_slice(&(len as u16 - 14).to_be_bytes());
    // Not a fragment.
    packet[20..22].fill(0);
    packet[23] = protocol;
    let l4_checksum = if protocol == ip_protocol::UDP {
        packet[38..40].copy_from_slice(&(len as u16 - 34).to_be_bytes());
        40
    } else {
        // A header of five words.
        packet[46] = 0x50;
        50
    };
    let summary = parse_frame(&packet).unwrap();
    checksum::fill(&mut packet, &summary, true, true);
    packet[24] ^= u8::from(l3_wrong);
    if l4_wrong {
        let right = u16::from_be_bytes([packet[l4_checksum], packet[l4_checksum + 1]]);
        // Not 0, which says that there is none.
        let wrong = right.wrapping_add(1).max(1);
        packet[l4_checksum..][..2].copy_from_slice(&wrong.to_be_bytes());
    }
    packet
}

fn post_receive(to: u64, len: u64) -> u64 {
    rx_data::ADDR.of(to) | rx_data::LEN.of(len)
}

fn post_transmit(from: u64, len: u64, more: bool) -> u64 {
    tx_data::ADDR.of(from) | tx_data::LEN.of(len) | tx_data::MORE.of(more.into())
}

fn is_complete(done: u64) -> bool {
    rx_done::COMPLETE.is_set(done) && !rx_done::BUSY.is_set(done)
}

const RX_DMA: u64 = interrupt::RX_DMA.mask();
