//! Key schedules of TLS 1.2 (RFC 5246, 6.3) and 1.3 (RFC 8446, 7.1), as far as records need them.

use nicforge_l5p::tls::TlsKeys;
use nicforge_l5p::tls::record::{Cipher, Version};
use ring::{hkdf, hmac};

/// A cipher suite that the NIC can offload.
#[derive(Clone, Copy, Debug)]
pub struct Suite {
    pub version: Version,
    pub cipher: Cipher,
    pub is_sha384: bool,
}

impl Suite {
    pub fn of(number: u16) -> Option<Self> {
        let (version, cipher, is_sha384) = match number {
            0x1301 => (Version::Tls13, Cipher::Aes128Gcm, false),
            0x1302 => (Version::Tls13, Cipher::Aes256Gcm, true),
            0x1303 => (Version::Tls13, Cipher::ChaCha20Poly1305, false),
            0x009c..=0x00ad if number.is_multiple_of(2) => (Version::Tls12, Cipher::Aes128Gcm, false),
            0x009c..=0x00ad => (Version::Tls12, Cipher::Aes256Gcm, true),
            0xc02b | 0xc02d | 0xc02f | 0xc031 => (Version::Tls12, Cipher::Aes128Gcm, false),
            0xc02c | 0xc02e | 0xc030 | 0xc032 => (Version::Tls12, Cipher::Aes256Gcm, true),
            0xcca8..=0xccae => (Version::Tls12, Cipher::ChaCha20Poly1305, false),
            _ => return None,
        };
        Some(Self { version, cipher, is_sha384 })
    }

    /// Keys of TLS 1.3 out of a traffic secret.
    pub fn keys_of(self, secret: &[u8]) -> TlsKeys {
        let mut keys = TlsKeys { version: self.version, cipher: self.cipher, key: [0; 32], iv: [0; 12] };
        let key = self.expand(secret, "key", self.cipher.key_bytes());
        keys.key[..key.len()].copy_from_slice(&key);
        keys.iv.copy_from_slice(&self.expand(secret, "iv", 12));
        keys
    }

    /// The secret behind a key update.
    pub fn next_secret(self, secret: &[u8]) -> Vec<u8> {
        self.expand(secret, "traffic upd", secret.len())
    }

    fn expand(self, secret: &[u8], label: &str, bytes: usize) -> Vec<u8> {
        struct Length(usize);
        impl hkdf::KeyType for Length {
            fn len(&self) -> usize {
                self.0
            }
        }
        let algorithm = if self.is_sha384 { hkdf::HKDF_SHA384 } else { hkdf::HKDF_SHA256 };
        let label = format!("tls13 {label}");
        let mut info = (bytes as u16).to_be_bytes().to_vec();
        info.push(label.len() as u8);
        info.extend_from_slice(label.as_bytes());
        info.push(0);
        let mut out = vec![0; bytes];
        let prk = hkdf::Prk::new_less_safe(algorithm, secret);
        prk.expand(&[&info], Length(bytes)).unwrap().fill(&mut out).unwrap();
        out
    }

    /// Keys of TLS 1.2 out of the master secret: client's, server's.
    pub fn keys_of_master(self, master: &[u8], client_random: &[u8], server_random: &[u8]) -> [TlsKeys; 2] {
        let algorithm = if self.is_sha384 { hmac::HMAC_SHA384 } else { hmac::HMAC_SHA256 };
        let key = hmac::Key::new(algorithm, master);
        let seed = [b"key expansion", server_random, client_random].concat();
        let mut block = Vec::new();
        let mut a = seed.clone();
        while block.len() < 2 * (32 + 12) {
            a = hmac::sign(&key, &a).as_ref().to_vec();
            block.extend_from_slice(hmac::sign(&key, &[&a[..], &seed].concat()).as_ref());
        }
        let key_bytes = self.cipher.key_bytes();
        let iv_bytes = if self.cipher == Cipher::ChaCha20Poly1305 { 12 } else { 4 };
        [0, 1].map(|side| {
            let mut keys = TlsKeys { version: self.version, cipher: self.cipher, key: [0; 32], iv: [0; 12] };
            keys.key[..key_bytes].copy_from_slice(&block[side * key_bytes..][..key_bytes]);
            keys.iv[..iv_bytes].copy_from_slice(&block[2 * key_bytes + side * iv_bytes..][..iv_bytes]);
            keys
        })
    }
}

/// The hellos of a connection.
#[derive(Debug)]
pub struct Hellos {
    pub suite: u16,
    pub client_random: Vec<u8>,
    pub server_random: Vec<u8>,
}

impl Hellos {
    /// Reads both hellos out of the beginning of the two streams.
    pub fn parse(client: &[u8], server: &[u8]) -> Option<Self> {
        let client = hello(client, 1)?;
        let server = hello(server, 2)?;
        let session = usize::from(*server.get(34)?);
        let suite = server.get(35 + session..37 + session)?;
        Some(Self {
            suite: u16::from_be_bytes([suite[0], suite[1]]),
            client_random: client.get(2..34)?.to_vec(),
            server_random: server.get(2..34)?.to_vec(),
        })
    }
}

/// The body of a handshake message at the beginning of a stream.
fn hello(stream: &[u8], kind: u8) -> Option<&[u8]> {
    (stream.first() == Some(&22) && stream.get(5) == Some(&kind)).then(|| stream.get(9..)).flatten()
}
