//! The state that engines work on: the frame, the packet, tables, objects, and what externs ask for.

use std::sync::Arc;

use rand_core::SeedableRng;
use rand_pcg::Pcg64;

use super::bits;
use super::dma::{Refusal, Transfer};
use super::ir::{ExternFunction, Ir, ObjectKind, Operand, Slot, TICKS_MAX, words};
use super::jit::packet::SLACK_BYTES;
use super::meter::Meter;
use super::source::Name;
use super::tables::Table;
use super::trace::Event;

/// The words that compiled code reads and writes directly.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Registers {
    /// Addresses are numbers here, so that the machine can move between threads.
    pub frame: usize,
    pub packet: usize,
    /// Bits of the packet.
    pub packet_bits: u64,
    /// Next bit that the parser reads.
    pub cursor: u64,
    pub output: usize,
    /// Bits that fit into the output.
    pub output_capacity: u64,
    /// Bits that the deparser has written.
    pub output_bits: u64,
    /// Steps of loops that are left.
    pub ticks: u64,
}

/// The state of an object.
#[derive(Clone, Debug)]
pub enum ObjectState {
    /// Packets and bytes of each element.
    Counter(Vec<(u64, u64)>),
    /// Meters.
    Meter(Vec<Meter>),
    /// Words of all elements.
    Register {
        /// Words of one element.
        stride: usize,
        /// All of them.
        words: Vec<u64>,
    },
    /// Ones' complement sum.
    Checksum(u16),
    /// No state.
    None,
}

/// A message to the control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    /// Number that the program gives, or that of the digest object.
    pub receiver: u64,
    /// Values in order: width in bits, words.
    pub values: Vec<(u32, Vec<u64>)>,
}

/// A request to copy the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CloneRequest {
    pub from_egress: bool,
    pub session: u64,
    pub list: Option<u8>,
}

/// The requests of the externs of one pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects {
    pub clone: Option<CloneRequest>,
    pub resubmit: Option<Option<u8>>,
    pub recirculate: Option<Option<u8>>,
    pub truncate: Option<u64>,
    pub digests: Vec<Digest>,
    pub failed_assertion: bool,
    pub log: Vec<String>,
    /// PNA: where the packet goes.
    pub port: Option<u64>,
    pub drop: bool,
    /// FlexNIC: the packet was for the NIC itself.
    pub consumed: bool,
    pub mirrors: Vec<(u64, u64)>,
    pub mark: u64,
    pub flags: u32,
    pub queue: Option<u16>,
    /// FlexNIC: what the DMA engine is to do.
    pub transfers: Vec<Transfer>,
    pub too_many_transfers: bool,
    pub refusal: Option<Refusal>,
    /// FlexNIC: port and tag of copies.
    pub copies: Vec<(u64, u64)>,
}

/// A value set at run time: members are value and mask per key.
#[derive(Clone, Debug, Default)]
pub struct ValueSet {
    /// Members: for each key its value and mask.
    pub members: Vec<Vec<(Vec<u64>, Vec<u64>)>>,
}

pub(crate) struct Machine {
    pub registers: Registers,
    pub frame: Vec<u64>,
    pub packet: Vec<u8>,
    pub output: Vec<u8>,
    pub exhausted: bool,
    pub effects: Effects,
    pub objects: Vec<ObjectState>,
    pub sets: Vec<ValueSet>,
    pub tables: Vec<Table>,
    /// Microseconds.
    pub now: u64,
    pub random: Pcg64,
    pub trace: Option<Vec<Event>>,
    pub flow_id: u32,
    /// Entry that each table hit last, for its direct meter.
    pub last_hit: Vec<Option<usize>>,
    pub last_table: Option<usize>,
    pub too_short: u64,
    pub header_too_short: u64,
    pub invalid_argument: u64,
    pub keys: Vec<u64>,
    pub ir: Arc<Ir>,
}

impl Machine {
    pub fn new(ir: Arc<Ir>, seed: u64) -> Machine {
        let error = |name: &str| ir.errors.iter().position(|error| &**error == name).unwrap_or(1) as u64;
        let registers = Registers {
            frame: 0,
            packet: 0,
            packet_bits: 0,
            cursor: 0,
            output: 0,
            output_capacity: 0,
            output_bits: 0,
            ticks: 0,
        };
        Machine {
            registers,
            frame: vec![0; ir.frame_words],
            packet: Vec::new(),
            output: vec![0; 256],
            exhausted: false,
            effects: Effects::default(),
            objects: ir.objects.iter().map(|object| object_state(&object.kind)).collect(),
            sets: vec![ValueSet::default(); ir.sets.len()],
            tables: ir.tables.iter().map(Table::new).collect(),
            now: 0,
            random: Pcg64::seed_from_u64(seed),
            trace: None,
            flow_id: 0,
            last_hit: vec![None; ir.tables.len()],
            last_table: None,
            too_short: error("PacketTooShort"),
            header_too_short: error("HeaderTooShort"),
            invalid_argument: error("ParserInvalidArgument"),
            keys: Vec::new(),
            ir,
        }
    }

    /// A packet begins: all storage is zero.
    #[inline]
    pub fn start(&mut self, packet: &[u8]) {
        self.frame.fill(0);
        self.set_packet(packet);
        self.exhausted = false;
    }

    #[inline]
    pub fn set_packet(&mut self, packet: &[u8]) {
        self.packet.clear();
        self.packet.extend_from_slice(packet);
        // Compiled code reads whole words, so some bytes behind the packet must exist.
        self.packet.extend_from_slice(&[0; SLACK_BYTES]);
        self.packet.truncate(packet.len());
        self.registers.packet_bits = packet.len() as u64 * 8;
        self.registers.cursor = 0;
        self.registers.output_bits = 0;
    }

    /// Brings the registers up to date before a function runs.
    #[inline]
    pub fn enter(&mut self) {
        self.registers.frame = self.frame.as_mut_ptr() as usize;
        self.registers.packet = self.packet.as_ptr() as usize;
        self.registers.output = self.output.as_mut_ptr() as usize;
        self.registers.output_capacity = self.output.len() as u64 * 8;
        self.registers.ticks = u64::from(TICKS_MAX);
    }

    /// A value of at most 64 bits.
    pub fn small(&self, operand: &Operand) -> u64 {
        match operand {
            Operand::Slot(slot) => self.frame[slot.word as usize],
            Operand::Constant(constant) => constant.limbs[0],
        }
    }

    pub fn limbs<'a>(&'a self, operand: &'a Operand) -> &'a [u64] {
        match operand {
            Operand::Slot(slot) => self.slot(*slot),
            Operand::Constant(constant) => &constant.limbs,
        }
    }

    pub fn slot(&self, slot: Slot) -> &[u64] {
        &self.frame[slot.word as usize..slot.word as usize + slot.words()]
    }

    /// Writes a value of at most 64 bits, cut to the slot's width.
    #[inline]
    pub fn set_small(&mut self, slot: Slot, value: u64) {
        let mask = if slot.width >= 64 { u64::MAX } else { (1 << slot.width) - 1 };
        let at = slot.word as usize;
        self.frame[at] = value & mask;
        if slot.width > 64 {
            self.frame[at + 1..at + slot.words()].fill(0);
        }
    }

    pub fn set_limbs(&mut self, slot: Slot, value: &[u64]) {
        let at = slot.word as usize;
        let count = slot.words();
        for (number, word) in self.frame[at..at + count].iter_mut().enumerate() {
            *word = value.get(number).copied().unwrap_or(0);
        }
        let over = count as u32 * 64 - slot.width.min(count as u32 * 64);
        if over > 0 && over < 64 {
            self.frame[at + count - 1] &= u64::MAX >> over;
        }
    }

    /// Makes room for more output.
    pub fn reserve_output(&mut self, bits: u64) {
        let bytes = (self.registers.output_bits + bits).div_ceil(8) as usize;
        if bytes > self.output.len() {
            self.output.resize(bytes.max(2 * self.output.len()), 0);
            self.registers.output = self.output.as_mut_ptr() as usize;
            self.registers.output_capacity = self.output.len() as u64 * 8;
        }
    }

    /// The deparser's headers and the part of the packet that the parser has not read.
    #[inline]
    pub fn deparse_into(&self, result: &mut Vec<u8>) {
        let written = self.registers.output_bits as usize;
        let cursor = self.registers.cursor as usize;
        result.clear();
        if written.is_multiple_of(8) && cursor.is_multiple_of(8) {
            result.extend_from_slice(&self.output[..written / 8]);
            result.extend_from_slice(&self.packet[cursor / 8..]);
            return;
        }
        let mut all = bits::BitString { bytes: self.output[..written.div_ceil(8)].to_vec(), bits: written };
        all.push_bits(&self.packet, cursor);
        *result = all.bytes;
    }

    /// The error of the parser: word 0 of the frame.
    #[inline]
    pub fn parser_error(&self) -> u64 {
        self.frame[0]
    }

    pub fn note(&mut self, event: impl FnOnce(&Machine) -> Option<Event>) {
        if self.trace.is_none() {
            return;
        }
        if let Some(event) = event(self)
            && let Some(trace) = &mut self.trace
        {
            trace.push(event);
        }
    }
}

fn object_state(kind: &ObjectKind) -> ObjectState {
    match kind {
        ObjectKind::Counter { size, .. } => ObjectState::Counter(vec![(0, 0); *size as usize]),
        ObjectKind::Meter { size, .. } => ObjectState::Meter(vec![Meter::default(); *size as usize]),
        ObjectKind::Register { size, widths, initial, .. } => {
            let stride: usize = widths.iter().map(|width| words(*width)).sum();
            let mut all = vec![0; stride * *size as usize];
            if let [first] = &initial[..] {
                for element in all.chunks_mut(stride.max(1)) {
                    element[..first.len()].copy_from_slice(first);
                }
            }
            ObjectState::Register { stride, words: all }
        }
        ObjectKind::Checksum => ObjectState::Checksum(0),
        _ => ObjectState::None,
    }
}

/// The name of an extern function for messages.
pub(crate) fn function_name(function: &ExternFunction) -> Name {
    let text = format!("{function:?}");
    Name::from(text.split([' ', '(']).next().unwrap_or(""))
}
