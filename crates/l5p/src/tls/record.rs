//! TLS records as they look on the wire (RFC 8446, 5; RFC 5246, 6.2; RFC 5288; RFC 7905).

/// Bytes of a record's header: type, version, length.
pub const HEADER_BYTES: usize = 5;
/// Bytes of the integrity check value behind each record.
pub const TAG_BYTES: usize = 16;
/// Most bytes of plaintext in a record.
pub const PLAINTEXT_BYTES_MAX: usize = 1 << 14;
/// The version that a record of TLS 1.2 or 1.3 says it has.
pub const WIRE_VERSION: [u8; 2] = [3, 3];

/// What a record carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContentType(pub u8);

impl ContentType {
    /// `change_cipher_spec`; in TLS 1.3 an unprotected record for the sake of middleboxes.
    pub const CHANGE_CIPHER_SPEC: Self = Self(20);
    /// `alert`.
    pub const ALERT: Self = Self(21);
    /// `handshake`.
    pub const HANDSHAKE: Self = Self(22);
    /// `application_data`, the outer type of every protected record of TLS 1.3.
    pub const DATA: Self = Self(23);
    /// `heartbeat` (RFC 6520), TLS 1.2 only.
    pub const HEARTBEAT: Self = Self(24);
}

/// The protocol's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// TLS 1.2.
    Tls12 = 0,
    /// TLS 1.3.
    Tls13 = 1,
}

/// The cipher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cipher {
    /// AES-GCM, key of 128 bits.
    Aes128Gcm = 0,
    /// AES-GCM, key of 256 bits.
    Aes256Gcm = 1,
    /// ChaCha20-Poly1305.
    ChaCha20Poly1305 = 2,
}

impl Cipher {
    /// Bytes of the key.
    pub fn key_bytes(self) -> usize {
        if self == Self::Aes128Gcm { 16 } else { 32 }
    }
}

/// Where the parts of a record are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of the nonce that stands on the wire behind the header: 8 in TLS 1.2 with GCM, else 0.
    pub explicit_bytes: usize,
    /// Whether the content's true type stands behind the content.
    pub has_inner_type: bool,
    /// Most bytes behind the header.
    pub payload_bytes_max: usize,
}

impl Shape {
    /// The shape that version and cipher give a record.
    pub fn of(version: Version, cipher: Cipher) -> Self {
        match version {
            Version::Tls12 => Self {
                explicit_bytes: if cipher == Cipher::ChaCha20Poly1305 { 0 } else { 8 },
                has_inner_type: false,
                payload_bytes_max: PLAINTEXT_BYTES_MAX + 2048,
            },
            Version::Tls13 => {
                Self { explicit_bytes: 0, has_inner_type: true, payload_bytes_max: PLAINTEXT_BYTES_MAX + 256 }
            }
        }
    }

    /// Offset of the first encrypted byte.
    pub fn data_at(self) -> usize {
        HEADER_BYTES + self.explicit_bytes
    }

    /// Bytes of a record that are not content: header, explicit nonce, inner type and tag.
    pub fn overhead_bytes(self) -> usize {
        self.data_at() + usize::from(self.has_inner_type) + TAG_BYTES
    }
}

/// A record's header that could be genuine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// The type that the header shows.
    pub content: ContentType,
    /// Bytes behind the header.
    pub payload_bytes: usize,
}

impl RecordHeader {
    /// Reads a header of a protected record; `None` when it cannot be one.
    pub fn parse(version: Version, cipher: Cipher, bytes: &[u8]) -> Option<Self> {
        let [content, major, minor, high, low] = *bytes.first_chunk()?;
        let header =
            Self { content: ContentType(content), payload_bytes: usize::from(u16::from_be_bytes([high, low])) };
        if [major, minor] != WIRE_VERSION {
            return None;
        }
        if header.is_middlebox_ccs(version) {
            return Some(header);
        }
        let fits_type = match version {
            Version::Tls12 => (20..=24).contains(&content),
            Version::Tls13 => header.content == ContentType::DATA,
        };
        let shape = Shape::of(version, cipher);
        let least = shape.overhead_bytes() - HEADER_BYTES;
        (fits_type && (least..=shape.payload_bytes_max).contains(&header.payload_bytes)).then_some(header)
    }

    /// Whether this is the unprotected record that TLS 1.3 sends for middleboxes (RFC 8446, D.4). It takes no number.
    pub fn is_middlebox_ccs(self, version: Version) -> bool {
        version == Version::Tls13 && self.content == ContentType::CHANGE_CIPHER_SPEC && self.payload_bytes == 1
    }

    /// Writes the header.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let [high, low] = (self.payload_bytes as u16).to_be_bytes();
        [self.content.0, WIRE_VERSION[0], WIRE_VERSION[1], high, low]
    }
}
