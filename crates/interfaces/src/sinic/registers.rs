//! The register set of SINIC and V-SINIC (integrated NIC, appendix A.3): the one place that says
//! where what is. Where the data sheet contradicts itself, the README of this folder says what was
//! decided and why.

use nicforge_platform::Register;

use crate::register_map::{Access, Field, RegisterMap, RegisterRow, Reset, Width};

/// Bytes of a register set, and so from one virtual NIC's to the next: 00h to FFh.
pub const SET_BYTES: u32 = 0x100;

/// Virtual NICs that a device may have.
pub const VNICS_MAX: usize = 256;

/// Fields of one register, highest bits first: a constant each, and all of them together.
macro_rules! fields {
    ($(#[$about:meta])* $register:ident:
     $($name:ident $tag:literal [$high:literal..$low:literal] $text:literal;)*) => {
        $(#[$about])*
        pub mod $register {
            use super::Field;
            $(#[doc = $text]
            pub const $name: Field = Field { tag: $tag, high: $high, low: $low, about: $text };)*
            /// All of them.
            pub const ALL: &[Field] = &[$($name),*];
        }
    };
}

fields! {
    /// Fields of Config.
    config:
    ZERO_COPY "ZeroCopy" [13..13] "tells the driver to receive without copy; with Vnic only, and not with DelayCopy";
    DELAY_COPY "DelayCopy" [12..12] "tells the driver to delay the copy of payload; with Vnic only, and not with ZeroCopy";
    RSS "RSS" [11..11] "tells the driver to spread packets over its receive threads";
    VNIC "Vnic" [10..10] "the register set is replicated for each virtual NIC";
    RX_THREAD "RxThread" [9..9] "tells the driver to receive on several processors";
    TX_THREAD "TxThread" [8..8] "tells the driver to transmit by a thread";
    FILTER "Filter" [7..7] "receive filter: not implemented, always 0";
    VLAN "Vlan" [6..6] "VLAN tagging: not implemented, always 0";
    VADDR "Vaddr" [5..5] "the device takes virtual addresses";
    DESC "Desc" [4..4] "descriptors: not implemented, always 0";
    POLL "Poll" [3..3] "tells the driver to poll instead of waiting for interrupts";
    INT_EN "IntEn" [2..2] "interrupts are on (software sets it)";
    TX_EN "TxEEn" [1..1] "transmission is on (software sets it)";
    RX_EN "RxEEn" [0..0] "reception is on (software sets it)";
}

fields! {
    /// Fields of Command.
    command:
    INTR "Intr" [1..1] "1: send an interrupt (condition Soft)";
    RESET "Reset" [0..0] "1: reset the device";
}

fields! {
    /// Interrupt conditions: fields of IntrStatus and of IntrMask.
    interrupt:
    SOFT "Soft" [8..8] "software asked for it by Command";
    TX_LOW "TxLow" [7..7] "the transmit FIFO fell below its watermark, first time after TxFull";
    TX_FULL "TxFull" [6..6] "the transmit FIFO is full";
    TX_DMA "TxDMA" [5..5] "a transmit copy completed; may be coalesced";
    TX_PACKET "TxPacket" [4..4] "a packet went out; may be coalesced";
    RX_HIGH "RxHigh" [3..3] "the receive FIFO rose above its watermark, first time after RxEmpty";
    RX_EMPTY "RxEmpty" [2..2] "the receive FIFO became empty";
    RX_DMA "RxDMA" [1..1] "a receive copy completed; may be coalesced";
    RX_PACKET "RxPacket" [0..0] "a packet came in; may be coalesced";
}

fields! {
    /// Fields of RxData.
    rx_data:
    VADDR "Vaddr" [60..60] "Addr is virtual";
    LEN "Len" [59..40] "bytes to copy out of the packet, RxMaxCopy at most";
    ADDR "Addr" [39..0] "where to";
}

fields! {
    /// Fields of RxDone and RxWait.
    rx_done:
    PACKETS "Packets" [47..32] "packets in the receive FIFO of which nothing was copied yet";
    BUSY "Busy" [31..31] "a copy was posted and is not complete";
    COMPLETE "Complete" [30..30] "the last copy is complete; the other bits are valid";
    MORE "More" [29..29] "there is more of this packet: at least another copy is needed";
    TCP_ERROR "TcpError" [25..25] "the TCP checksum is wrong";
    UDP_ERROR "UdpError" [24..24] "the UDP checksum is wrong";
    IP_ERROR "IpError" [23..23] "the IP checksum is wrong";
    TCP_PACKET "TcpPacket" [22..22] "it is a TCP packet";
    UDP_PACKET "UdpPacket" [21..21] "it is a UDP packet";
    IP_PACKET "IpPacket" [20..20] "it is an IP packet";
    COPY_LEN "CopyLen" [19..0] "with More: bytes of the packet that remain; else: bytes of the last copy";
}

fields! {
    /// Fields of TxData.
    tx_data:
    MORE "More" [63..63] "the packet goes on with the next TxData";
    CHECKSUM "Checksum" [62..62] "compute IP, TCP and UDP checksums; counts in the last part of a packet";
    VADDR "Vaddr" [60..60] "Addr is virtual";
    LEN "Len" [59..40] "bytes to append to the packet, TxMaxCopy at most";
    ADDR "Addr" [39..0] "where from";
}

fields! {
    /// Fields of TxDone and TxWait.
    tx_done:
    PACKETS "Packets" [47..32] "packets in the transmit FIFO";
    BUSY "Busy" [31..31] "a copy was posted and is not complete; another one now is refused";
    COMPLETE "Complete" [30..30] "the last copy is complete and CopyLen valid";
    FULL "Full" [29..29] "the transmit FIFO has no room: copies wait for packets to go out";
    LOW "Low" [28..28] "the transmit FIFO is below its low watermark";
    COPY_LEN "CopyLen" [19..0] "bytes of the last copy";
}

fields! {
    /// Fields of HwAddr.
    hw_addr:
    BYTE_0 "HwAddr[0]" [47..40] "first byte of the Ethernet address";
    BYTE_1 "HwAddr[1]" [39..32] "second byte";
    BYTE_2 "HwAddr[2]" [31..24] "third byte";
    BYTE_3 "HwAddr[3]" [23..16] "fourth byte";
    BYTE_4 "HwAddr[4]" [15..8] "fifth byte";
    BYTE_5 "HwAddr[5]" [7..0] "sixth byte";
}

/// Which register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// Configuration.
    Config,
    /// Commands.
    Command,
    /// Interrupt conditions that hold.
    IntrStatus,
    /// Interrupt conditions that interrupt.
    IntrMask,
    /// Most bytes by one RxData.
    RxMaxCopy,
    /// Most bytes by one TxData.
    TxMaxCopy,
    /// Packets per interrupt.
    RxMaxIntr,
    /// Receive FIFO.
    RxFifoSize,
    /// Transmit FIFO.
    TxFifoSize,
    /// Receive watermark.
    RxFifoMark,
    /// Transmit watermark.
    TxFifoMark,
    /// Begins a receive copy.
    RxData,
    /// Its state.
    RxDone,
    /// Its state, once it is complete.
    RxWait,
    /// Begins a transmit copy.
    TxData,
    /// Its state.
    TxDone,
    /// Its state, once it is complete.
    TxWait,
    /// Ethernet address.
    HwAddr,
}

/// Rows of the register set; the tags in the order of [`ROWS`].
macro_rules! rows {
    ($($tag:ident $offset:literal $width:ident $virtual:literal $access:ident
       $reset:expr, $section:literal, $fields:expr, $about:literal;)*) => {
        /// The register set, by offset (appendix A.3).
        pub const ROWS: &[RegisterRow] = &[$(RegisterRow {
            tag: stringify!($tag),
            offset: $offset,
            width: Width::$width,
            per_virtual: $virtual,
            access: Access::$access,
            reset: $reset,
            section: $section,
            about: $about,
            fields: $fields,
        }),*];

        const TAGS: &[Tag] = &[$(Tag::$tag),*];
    };
}

use Reset::{Configured, Nothing, Value};
rows! {
    Config 0x00 Bits32 false ReadWrite Configured, "A.3.1", config::ALL,
        "what the simulator set up, and enables";
    Command 0x04 Bits32 false WriteOnly Nothing, "A.3.2", command::ALL, "each 1 does something";
    IntrStatus 0x08 Bits32 false ReadClears Value(0), "A.3.3", interrupt::ALL,
        "interrupt conditions since it was last read";
    IntrMask 0x0c Bits32 false ReadWrite Configured, "A.3.4", interrupt::ALL,
        "conditions that interrupt";
    RxMaxCopy 0x10 Bits32 false ReadOnly Configured, "A.3.5", &[], "most bytes that one RxData copies";
    TxMaxCopy 0x14 Bits32 false ReadOnly Configured, "A.3.6", &[], "most bytes that one TxData copies";
    RxMaxIntr 0x18 Bits32 false ReadOnly Configured, "A.3.7", &[],
        "packets that the driver should take per interrupt";
    RxFifoSize 0x20 Bits32 false ReadOnly Configured, "A.3.8", &[], "bytes of the receive FIFO";
    TxFifoSize 0x24 Bits32 false ReadOnly Configured, "A.3.9", &[], "bytes of the transmit FIFO";
    RxFifoMark 0x28 Bits32 false ReadOnly Configured, "A.3.10", &[],
        "high watermark of the receive FIFO, bytes";
    TxFifoMark 0x2c Bits32 false ReadOnly Configured, "A.3.11", &[],
        "low watermark of the transmit FIFO, bytes";
    RxData 0x30 Bits64 true ReadWrite Value(0), "A.3.12", rx_data::ALL, "begins a receive copy";
    RxDone 0x38 Bits64 true ReadOnly Value(0), "A.3.13", rx_done::ALL, "state of the receive copy";
    RxWait 0x40 Bits64 true ReadOnly Value(0), "A.3.14", rx_done::ALL,
        "RxDone, given when the copy is complete or a time-out is over";
    TxData 0x48 Bits64 true ReadWrite Value(0), "A.3.15", tx_data::ALL, "begins a transmit copy";
    TxDone 0x50 Bits64 true ReadOnly Value(0), "A.3.16", tx_done::ALL, "state of the transmit copy";
    TxWait 0x58 Bits64 true ReadOnly Value(0), "A.3.17", tx_done::ALL,
        "TxDone, given when the copy is complete or a time-out is over";
    HwAddr 0x60 Bits64 false ReadOnly Configured, "A.3.18", hw_addr::ALL, "Ethernet address";
}

/// SINIC's map.
pub const MAP: RegisterMap = RegisterMap {
    name: "sinic",
    about: "Simple integrated NIC, driven by registers (integrated NIC, chapter 6 and appendix A).",
    rows: ROWS,
    stride: None,
};

const NO_ROW: u8 = u8::MAX;

/// The row of each aligned 4 bytes of a register set.
const ROW_AT: [u8; SET_BYTES as usize / 4] = {
    let mut row_at = [NO_ROW; SET_BYTES as usize / 4];
    let mut row = 0;
    while row < ROWS.len() {
        row_at[ROWS[row].offset as usize / 4] = row as u8;
        row += 1;
    }
    row_at
};

/// The register that begins at `offset` of a register set.
pub fn at(offset: u32) -> Option<(Tag, &'static RegisterRow)> {
    let row = usize::from(*ROW_AT.get(offset as usize / 4)?);
    let aligned = offset.is_multiple_of(4);
    (aligned && row < ROWS.len()).then(|| (TAGS[row], &ROWS[row]))
}

impl Tag {
    /// Its row.
    pub fn row(self) -> &'static RegisterRow {
        &ROWS[self as usize]
    }

    /// The register as a core addresses it: `vnic`'s, where there are several.
    pub fn of(self, device: u8, vnic: u16) -> Register {
        let row = self.row();
        let set = if row.per_virtual { u32::from(vnic) } else { 0 };
        BusAccess::index(device, set * SET_BYTES + row.offset, row.width.bytes())
    }
}

/// How a core's access says which bytes it means: the offset in the low 24 bits of the register's
/// index, the number of bytes in the high 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusAccess {
    /// Bytes from the beginning of the device's registers.
    pub offset: u32,
    /// Bytes that are read or written.
    pub bytes: u32,
}

impl BusAccess {
    /// An access to `bytes` at `offset` of `device`.
    pub const fn index(device: u8, offset: u32, bytes: u32) -> Register {
        Register { device, index: bytes << 24 | offset & 0xff_ffff }
    }

    /// What register index `index` means.
    pub const fn from_index(index: u32) -> BusAccess {
        BusAccess { offset: index & 0xff_ffff, bytes: index >> 24 }
    }
}
