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
}

impl Shape {
    /// The shape that version and cipher give a record.
    pub fn of(version: Version, cipher: Cipher) -> Self {
        match version {
            Version::Tls12 => {
                Self { explicit_bytes: if cipher == Cipher::ChaCha20Poly1305 { 0 } else { 8 }, has_inner_type: false }
            }
            Version::Tls13 => Self { explicit_bytes: 0, has_inner_type: true },
        }
    }

    /// Most bytes behind the header. The standards allow more for ciphers that expand more; with these, such a record
    /// would hold more plaintext than a record may.
    pub fn payload_bytes_max(self) -> usize {
        PLAINTEXT_BYTES_MAX + self.overhead_bytes() - HEADER_BYTES
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

/// Why bytes are no header of a protected record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The version is another one, or bytes are missing.
    #[error("its version is not the connection's")]
    Version,
    /// The type is none that this version protects.
    #[error("its type is none of a protected record")]
    Type,
    /// There is no room for the nonce and the integrity check value.
    #[error("it is too short for its cipher")]
    TooShort,
    /// It holds more than a record may.
    #[error("it is longer than a record may be")]
    TooLong,
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
    /// Reads a header of a protected record.
    ///
    /// # Errors
    ///
    /// [`HeaderError`]: the bytes cannot be one.
    pub fn parse(version: Version, cipher: Cipher, bytes: &[u8]) -> Result<Self, HeaderError> {
        let [content, major, minor, high, low] = *bytes.first_chunk().ok_or(HeaderError::Version)?;
        let header =
            Self { content: ContentType(content), payload_bytes: usize::from(u16::from_be_bytes([high, low])) };
        if [major, minor] != WIRE_VERSION {
            return Err(HeaderError::Version);
        }
        if header.is_middlebox_ccs(version) {
            return Ok(header);
        }
        let fits_type = match version {
            Version::Tls12 => (20..=24).contains(&content),
            Version::Tls13 => header.content == ContentType::DATA,
        };
        let shape = Shape::of(version, cipher);
        match header.payload_bytes {
            _ if !fits_type => Err(HeaderError::Type),
            bytes if bytes < shape.overhead_bytes() - HEADER_BYTES => Err(HeaderError::TooShort),
            bytes if bytes > shape.payload_bytes_max() => Err(HeaderError::TooLong),
            _ => Ok(header),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_no_record_has_are_told_apart() {
        let most = |version, cipher| {
            let shape = Shape::of(version, cipher);
            // A record's longest content, and what its version and cipher add.
            let bytes = PLAINTEXT_BYTES_MAX + TAG_BYTES + shape.explicit_bytes + usize::from(shape.has_inner_type);
            assert_eq!(shape.payload_bytes_max(), bytes);
            bytes
        };
        for (version, cipher) in [
            (Version::Tls12, Cipher::Aes128Gcm),
            (Version::Tls12, Cipher::ChaCha20Poly1305),
            (Version::Tls13, Cipher::Aes256Gcm),
        ] {
            let header = |payload: usize| [23, 3, 3, (payload >> 8) as u8, payload as u8];
            let read = |bytes: [u8; 5]| RecordHeader::parse(version, cipher, &bytes).map(|header| header.payload_bytes);
            let most = most(version, cipher);
            assert_eq!(read(header(most)), Ok(most));
            assert_eq!(read(header(most + 1)), Err(HeaderError::TooLong));
            assert_eq!(read(header(TAG_BYTES - 1)), Err(HeaderError::TooShort));
            assert_eq!(read([23, 3, 1, 0, 100]), Err(HeaderError::Version));
            assert_eq!(read([99, 3, 3, 0, 100]), Err(HeaderError::Type));
            assert_eq!(RecordHeader::parse(version, cipher, &[23, 3]), Err(HeaderError::Version));
        }
    }
}
