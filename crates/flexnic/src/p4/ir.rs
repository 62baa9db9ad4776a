//! The intermediate representation: basic blocks of simple operations over one frame of 64-bit words.
//! Everything is inlined and every variable has a fixed place in the frame, so that an engine needs neither calls nor
//! a stack. A value of `w` bits lies in `ceil(w / 64)` words, least significant first, with the bits above `w` zero.

use std::sync::Arc;

use super::ast::BinaryOp;
pub use super::hir::ControllerHeader;
pub use super::info::{
    ActionCall, ActionInfo, EntrySpec, KeyInfo, Match, NamedField, ObjectInfo, ObjectKind, ParameterInfo, SetInfo,
    TableInfo,
};
use super::source::Name;

/// Place of a value in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// First word.
    pub word: u32,
    /// Bits.
    pub width: u32,
    /// Written before it is read within one function, and by nobody else: an engine may keep it in a register.
    pub temporary: bool,
}

impl Slot {
    /// Words that the value takes.
    #[inline]
    pub fn words(self) -> usize {
        words(self.width)
    }
}

/// Words that a value of `width` bits takes.
#[inline]
pub fn words(width: u32) -> usize {
    (width as usize).div_ceil(64).max(1)
}

/// A constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Bits.
    pub width: u32,
    /// Value, least significant word first.
    pub limbs: Arc<[u64]>,
}

/// An operand.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Operand {
    Slot(Slot),
    Constant(Constant),
}

impl Operand {
    /// Bits.
    pub fn width(&self) -> u32 {
        match self {
            Operand::Slot(slot) => slot.width,
            Operand::Constant(constant) => constant.width,
        }
    }

    /// A constant of at most 64 bits.
    pub fn small(value: u64, width: u32) -> Operand {
        Operand::Constant(Constant { width, limbs: Arc::from([value]) })
    }
}

/// An element of a header stack that is chosen at run time. Outside of the stack reads give 0 and writes do nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Number of the element.
    pub value: Operand,
    /// Words from one element to the next.
    pub stride: u32,
    /// Elements.
    pub count: u32,
}

/// A field of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldLayout {
    /// Name within the header.
    pub name: Name,
    /// Words from the start of the header.
    pub offset: u32,
    /// Bits; for a varbit its largest size.
    pub width: u32,
    /// A varbit: a word with the present size in bits, then the value.
    pub varbit: bool,
}

/// A header: a word that is 1 while it is valid, then its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderLayout {
    /// Name of the type.
    pub name: Name,
    /// Fields in the order of the packet.
    pub fields: Vec<FieldLayout>,
    /// Bits of all fields but a varbit.
    pub fixed_bits: u32,
}

/// A header in the frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderPlace {
    /// Its layout.
    pub layout: Arc<HeaderLayout>,
    /// Its first word, or that of element 0.
    pub word: u32,
    /// Which element of a stack.
    pub index: Option<Index>,
}

/// Unary operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Unary {
    Complement,
    Negate,
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Op {
    /// Same width on both sides.
    Copy {
        to: Slot,
        from: Operand,
    },
    Load {
        to: Slot,
        from: Slot,
        index: Index,
    },
    Store {
        to: Slot,
        index: Index,
        from: Operand,
    },
    Unary {
        operator: Unary,
        to: Slot,
        from: Operand,
    },
    /// `to` has the width of `left`, or 1 for comparisons.
    Binary {
        operator: BinaryOp,
        to: Slot,
        left: Operand,
        right: Operand,
        signed: bool,
    },
    /// Truncates or extends to the width of `to`.
    Resize {
        to: Slot,
        from: Operand,
        signed: bool,
    },
    /// Bits from `low` on, as many as `to` has.
    Slice {
        to: Slot,
        from: Operand,
        low: u32,
    },
    /// Replaces bits from `low` on.
    Insert {
        to: Slot,
        low: u32,
        from: Operand,
    },
    Concat {
        to: Slot,
        left: Operand,
        right: Operand,
    },
    Select {
        to: Slot,
        condition: Operand,
        yes: Operand,
        no: Operand,
    },
    /// Zeroes words.
    Clear {
        word: u32,
        words: u32,
    },
    /// Reads a header from the packet, marks it valid and moves on; or sets the error and does nothing.
    Extract {
        header: HeaderPlace,
        varbit_bits: Option<Operand>,
        error: Slot,
    },
    /// Reads values that follow each other without moving on.
    Lookahead {
        to: Vec<Slot>,
        error: Slot,
    },
    Advance {
        bits: Operand,
        error: Slot,
    },
    PacketLength {
        to: Slot,
    },
    /// Appends a header to the packet if it is valid.
    Emit {
        header: HeaderPlace,
    },
    /// Looks the keys up; writes the action's position in the table's list and its data.
    Apply {
        table: usize,
        keys: Vec<Operand>,
        hit: Slot,
        action: Slot,
    },
    /// The keys are in a value set.
    InSet {
        set: usize,
        keys: Vec<Operand>,
        to: Slot,
    },
    Extern(ExternOp),
    /// For traces only.
    Note(Note),
}

/// Something worth telling in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The parser enters a state.
    State(Name),
    /// A table's action begins: index of the table, position of the action.
    Action(usize, usize),
    /// An assignment to a field.
    Assign(Slot),
}

/// Functions of the architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the architecture's function of its name")]
pub enum ExternFunction {
    CounterCount,
    MeterExecute,
    DirectMeterRead,
    RegisterRead,
    RegisterWrite,
    Random,
    Digest,
    Hash(HashKind),
    /// Sets the output to 1 where the checksum differs.
    VerifyChecksum {
        kind: HashKind,
        with_payload: bool,
    },
    UpdateChecksum {
        kind: HashKind,
        with_payload: bool,
    },
    ChecksumClear,
    ChecksumAdd,
    ChecksumSubtract,
    ChecksumGet,
    ChecksumState,
    ChecksumSetState,
    /// Ingress to egress, or egress to egress; with the number of a field list.
    Clone {
        from_egress: bool,
        list: Option<u8>,
    },
    Resubmit(Option<u8>),
    Recirculate(Option<u8>),
    Truncate,
    Assert,
    Assume,
    LogMessage(Name),
    DropPacket,
    Consume,
    SendToPort,
    MirrorPacket,
    /// Adds an entry with the keys of the last look-up (PNA's add-on-miss).
    AddEntry {
        action: Name,
    },
    AllocateFlowId,
    SetEntryExpireTime,
    RestartExpireTimer,
    SetMark,
    SetFlags,
    SetQueue,
    Dma(Option<super::dma::Direction>),
    Refuse,
    CopyTo,
}

/// Algorithms of hashes and checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum HashKind {
    Crc32,
    Crc16,
    Random,
    Identity,
    Checksum16,
    Xor16,
}

/// A value that goes to a function of the architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datum {
    /// The value.
    pub value: Operand,
    /// It is a varbit: its first word is the present size in bits.
    pub varbit: bool,
}

/// A call of a function of the architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternOp {
    /// Which one.
    pub function: ExternFunction,
    /// Index among the program's objects.
    pub object: Option<usize>,
    /// Arguments, structs flattened.
    pub inputs: Vec<Vec<Datum>>,
    /// The place that it writes.
    pub outputs: Vec<Slot>,
}

/// Index of a block in its function.
pub type BlockId = usize;

/// How a block ends.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Terminator {
    Jump(BlockId),
    Branch {
        condition: Operand,
        yes: BlockId,
        no: BlockId,
    },
    /// On a value of at most 64 bits.
    Switch {
        value: Operand,
        cases: Vec<(u64, BlockId)>,
        otherwise: BlockId,
    },
    /// Counts a step of a loop; goes to `exhausted` once the packet has made too many.
    Tick {
        next: BlockId,
        exhausted: BlockId,
    },
    End,
}

/// A basic block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// In order.
    pub ops: Vec<Op>,
    /// How it ends.
    pub end: Terminator,
}

/// Code of one parser or control of the architecture; starts at block 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// Name of the parser or control.
    pub name: String,
    /// Its blocks.
    pub blocks: Vec<Block>,
}

/// Steps of loops (parser states and rounds of `for`) that one packet may make in one function.
pub const TICKS_MAX: u32 = 1 << 16;

/// A program as engines run it.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Ir {
    /// Words of the frame; the first `global_words` stay from one function to the next.
    pub frame_words: usize,
    pub global_words: usize,
    pub functions: Vec<Function>,
    pub tables: Vec<TableInfo>,
    pub sets: Vec<SetInfo>,
    pub objects: Vec<ObjectInfo>,
    pub errors: Vec<Name>,
    /// The architecture is PNA.
    pub is_pna: bool,
    /// Fields of headers and metadata.
    pub fields: Vec<NamedField>,
    /// Headers between controllers and the NIC.
    pub controller_headers: Vec<ControllerHeader>,
}
