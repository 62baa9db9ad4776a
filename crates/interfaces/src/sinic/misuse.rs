//! What software can do wrong. The data sheet calls most of it undefined, or lets the simulator
//! panic; here each has a counter, and the access does nothing else: a write is ignored, a read
//! gives all ones, as on a bus where no device answers.

/// A register access that means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// No register begins there, or there is no such virtual NIC.
    NoRegister,
    /// Within a register, or not aligned to 4 bytes.
    Misaligned,
    /// Not as wide as the register.
    BadWidth,
    /// A write to a register that can only be read.
    WroteReadOnly,
    /// A read of a register that can only be written.
    ReadWriteOnly,
    /// A reserved bit is set.
    ReservedBits,
    /// A change of Config bits that the simulator sets up.
    ReadOnlyBits,
    /// RxData or TxData while the copy before is not complete (A.1.2, A.3.16).
    Busy,
    /// A copy of no bytes.
    NoLength,
    /// A copy of more than RxMaxCopy or TxMaxCopy (A.3.12, A.3.15).
    TooLong,
    /// A virtual address where Config.Vaddr is not set.
    VirtualAddress,
    /// A copy beyond the end of memory, or at address 0.
    NoMemory,
}

impl Misuse {
    /// All, in the order of their numbers.
    pub const ALL: [Misuse; 12] = [
        Misuse::NoRegister,
        Misuse::Misaligned,
        Misuse::BadWidth,
        Misuse::WroteReadOnly,
        Misuse::ReadWriteOnly,
        Misuse::ReservedBits,
        Misuse::ReadOnlyBits,
        Misuse::Busy,
        Misuse::NoLength,
        Misuse::TooLong,
        Misuse::VirtualAddress,
        Misuse::NoMemory,
    ];

    /// The name of its counter.
    pub const fn name(self) -> &'static str {
        match self {
            Misuse::NoRegister => "no_register",
            Misuse::Misaligned => "misaligned_access",
            Misuse::BadWidth => "bad_access_width",
            Misuse::WroteReadOnly => "write_to_read_only",
            Misuse::ReadWriteOnly => "read_of_write_only",
            Misuse::ReservedBits => "reserved_bits",
            Misuse::ReadOnlyBits => "read_only_bits",
            Misuse::Busy => "copy_while_busy",
            Misuse::NoLength => "copy_of_nothing",
            Misuse::TooLong => "copy_too_long",
            Misuse::VirtualAddress => "virtual_address",
            Misuse::NoMemory => "copy_outside_memory",
        }
    }
}
