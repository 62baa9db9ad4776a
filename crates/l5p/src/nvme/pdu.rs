//! NVMe/TCP PDUs as they look on the wire (NVMe/TCP transport specification 1.0, 3.6).

/// Bytes of the header that all PDUs share: type, flags, header length, data offset, PDU length.
pub const COMMON_BYTES: usize = 8;
/// Bytes of a digest.
pub const DIGEST_BYTES: usize = 4;
/// The longest PDU that is taken for one; the specification sets no bound below 4 GiB.
pub const PDU_BYTES_MAX: u32 = 1 << 24;

/// Type of a PDU: there are nine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PduType {
    /// Initialise connection request.
    IcReq = 0x00,
    /// Initialise connection response.
    IcResp = 0x01,
    /// The host ends the connection.
    H2cTermReq = 0x02,
    /// The controller ends the connection.
    C2hTermReq = 0x03,
    /// Command capsule.
    CapsuleCmd = 0x04,
    /// Response capsule.
    CapsuleResp = 0x05,
    /// Data from host to controller.
    H2cData = 0x06,
    /// Data from controller to host.
    C2hData = 0x07,
    /// Ready to transfer.
    R2t = 0x09,
}

impl PduType {
    /// All types.
    pub const ALL: [Self; 9] = [
        Self::IcReq,
        Self::IcResp,
        Self::H2cTermReq,
        Self::C2hTermReq,
        Self::CapsuleCmd,
        Self::CapsuleResp,
        Self::H2cData,
        Self::C2hData,
        Self::R2t,
    ];

    /// The type of this number.
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }

    /// Bytes of the header, which the type fixes.
    pub fn header_bytes(self) -> usize {
        match self {
            Self::IcReq | Self::IcResp => 128,
            Self::CapsuleCmd => 72,
            _ => 24,
        }
    }

    /// Whether the PDU may carry data.
    pub fn may_have_data(self) -> bool {
        matches!(self, Self::CapsuleCmd | Self::H2cData | Self::C2hData | Self::H2cTermReq | Self::C2hTermReq)
    }

    /// Whether digests apply once they are agreed on.
    pub fn has_digests(self) -> bool {
        !matches!(self, Self::IcReq | Self::IcResp | Self::H2cTermReq | Self::C2hTermReq)
    }
}

/// Which digests a connection has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Digests {
    /// A digest of each PDU's header.
    pub header: bool,
    /// A digest of each PDU's data.
    pub data: bool,
}

/// Flags of a PDU.
pub mod flags {
    /// A header digest follows the header.
    pub const HEADER_DIGEST: u8 = 1;
    /// A data digest follows the data.
    pub const DATA_DIGEST: u8 = 2;
    /// The last data PDU of a transfer.
    pub const LAST: u8 = 4;
    /// The command succeeded, and no response follows.
    pub const SUCCESS: u8 = 8;
}

/// A common header that could be genuine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommonHeader {
    /// Type.
    pub kind: PduType,
    /// Flags.
    pub flags: u8,
    /// Offset of the data; 0 when there is none.
    pub data_at: u8,
    /// Length of the PDU.
    pub length: u32,
}

impl CommonHeader {
    /// Reads a common header; `None` when it cannot be one on a connection with these digests.
    pub fn parse(digests: Digests, bytes: &[u8]) -> Option<Self> {
        let [kind, flags, header_bytes, data_at, length @ ..] = *bytes.first_chunk::<COMMON_BYTES>()?;
        let header = Self { kind: PduType::from_byte(kind)?, flags, data_at, length: u32::from_le_bytes(length) };
        let kind = header.kind;
        let is_right_size = usize::from(header_bytes) == kind.header_bytes() && header.length <= PDU_BYTES_MAX;
        (is_right_size && header.has_fitting_flags(digests) && header.has_fitting_data()).then_some(header)
    }

    fn has_fitting_flags(&self, digests: Digests) -> bool {
        let kind = self.kind;
        let data = matches!(kind, PduType::H2cData | PduType::C2hData);
        let success = kind == PduType::C2hData && self.flags & flags::LAST != 0;
        let allowed = if kind.has_digests() { flags::HEADER_DIGEST } else { 0 }
            | if kind.has_digests() && kind.may_have_data() && digests.data { flags::DATA_DIGEST } else { 0 }
            | if data { flags::LAST } else { 0 }
            | if success { flags::SUCCESS } else { 0 };
        let header_digest = self.flags & flags::HEADER_DIGEST != 0;
        self.flags & !allowed == 0 && header_digest == (digests.header && kind.has_digests())
    }

    fn has_fitting_data(&self) -> bool {
        let plain = self.data_least() as u32;
        if !self.kind.may_have_data() {
            return self.data_at == 0 && self.length == plain;
        }
        if !self.kind.has_digests() {
            return self.length >= plain;
        }
        if self.data_at == 0 {
            // A command without data.
            return self.kind == PduType::CapsuleCmd && self.length == plain && self.data_digest_bytes() == 0;
        }
        let least = u32::from(self.data_at) + self.data_digest_bytes() as u32;
        usize::from(self.data_at) >= self.data_least() && self.data_at.is_multiple_of(4) && self.length >= least
    }

    fn data_least(&self) -> usize {
        self.header_bytes() + self.header_digest_bytes()
    }

    /// Bytes of the header.
    pub fn header_bytes(&self) -> usize {
        self.kind.header_bytes()
    }

    /// Bytes of the header digest.
    pub fn header_digest_bytes(&self) -> usize {
        if self.flags & flags::HEADER_DIGEST == 0 { 0 } else { DIGEST_BYTES }
    }

    /// Bytes of the data digest.
    pub fn data_digest_bytes(&self) -> usize {
        if self.flags & flags::DATA_DIGEST == 0 { 0 } else { DIGEST_BYTES }
    }

    /// Offset of the first byte of data and of the byte behind the last. Empty when there is no data.
    pub fn data(&self) -> std::ops::Range<usize> {
        let end = self.length as usize - self.data_digest_bytes();
        if !self.kind.may_have_data() || (self.data_at == 0 && self.kind.has_digests()) {
            return end..end;
        }
        let begin = usize::from(self.data_at).max(self.data_least());
        begin..end
    }

    /// Writes the common header.
    pub fn to_bytes(self) -> [u8; COMMON_BYTES] {
        let [a, b, c, d] = self.length.to_le_bytes();
        [self.kind as u8, self.flags, self.header_bytes() as u8, self.data_at, a, b, c, d]
    }
}

/// What stands in bytes 8 to 20 of data PDUs and R2T.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Transfer {
    /// Command identifier of the host.
    pub command: u16,
    /// Transfer tag of the controller.
    pub tag: u16,
    /// Offset within the command's data.
    pub offset: u32,
    /// Bytes.
    pub length: u32,
}

impl Transfer {
    /// Reads it out of a PDU's header.
    pub fn parse(header: &[u8]) -> Option<Self> {
        let fields: &[u8; 12] = header.get(8..20)?.first_chunk()?;
        let [c0, c1, t0, t1, o0, o1, o2, o3, l0, l1, l2, l3] = *fields;
        Some(Self {
            command: u16::from_le_bytes([c0, c1]),
            tag: u16::from_le_bytes([t0, t1]),
            offset: u32::from_le_bytes([o0, o1, o2, o3]),
            length: u32::from_le_bytes([l0, l1, l2, l3]),
        })
    }

    /// Writes it behind a common header.
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..2].copy_from_slice(&self.command.to_le_bytes());
        bytes[2..4].copy_from_slice(&self.tag.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }
}
