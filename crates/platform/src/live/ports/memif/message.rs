//! Messages of memif's control channel, version 2.0: 128 bytes each, in the byte order of the machine,
//! as both ends are on one. A file goes with some.
//!
//! | message | from | content, from byte 2 on |
//! | --- | --- | --- |
//! | 1 ack | server | |
//! | 2 hello | server | name (32), version from and to, last region, last ring each way (u16 each), log2 of ring entries (u8) |
//! | 3 init | client | version (u16), id (u32), mode (u8), secret (24), name (32) |
//! | 4 add region | client | index (u16), bytes (u64); its file |
//! | 5 add ring | client | flags (bit 0: client to server), index, region (u16 each), offset (u32), log2 of entries (u8), private header (u16); its interrupt |
//! | 6 connect | client | name (32) |
//! | 7 connected | server | name (32) |
//! | 8 disconnect | either | code (u32), why (96) |

/// Bytes of a message.
pub const MESSAGE_BYTES: usize = 128;
/// Version 2.0, the only one.
pub const VERSION: u16 = 0x0200;
/// Frames with Ethernet headers.
pub const MODE_ETHERNET: u8 = 0;

const NAME_BYTES: usize = 32;
const SECRET_BYTES: usize = 24;
const REASON_BYTES: usize = 96;
const CLIENT_TO_SERVER: u16 = 1;

/// Which way a ring's frames go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From client to server.
    ToServer,
    /// From server to client.
    ToClient,
}

/// Where a ring lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingPlace {
    /// Which way its frames go.
    pub direction: Direction,
    /// Its number among those.
    pub index: u16,
    /// The region that it lies in.
    pub region: u16,
    /// Where in it.
    pub offset: u32,
    /// Log2 of its entries.
    pub log2_entries: u8,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The last message was right.
    Ack,
    /// What the server can do.
    Hello {
        /// Versions that it speaks.
        versions: (u16, u16),
        /// The highest number of a region.
        last_region: u16,
        /// The highest number of a ring from server to client.
        last_to_client: u16,
        /// The highest number of a ring from client to server.
        last_to_server: u16,
        /// Log2 of the most entries of a ring.
        log2_entries: u8,
    },
    /// Which interface the client wants.
    Init {
        /// The version that it speaks.
        version: u16,
        /// The interface's number.
        id: u32,
        /// What its frames are.
        mode: u8,
        /// What the server may want to hear.
        secret: String,
    },
    /// Memory.
    AddRegion {
        /// Its number.
        index: u16,
        /// Its bytes.
        bytes: u64,
    },
    /// A ring in it.
    AddRing(RingPlace),
    /// The client is ready.
    Connect,
    /// So is the server.
    Connected,
    /// It is over.
    Disconnect {
        /// Why.
        reason: String,
    },
}

/// Writes fields one after another.
struct Fields<'m>(&'m mut [u8; MESSAGE_BYTES], usize);

impl Fields<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.0[self.1..][..bytes.len()].copy_from_slice(bytes);
        self.1 += bytes.len();
    }

    /// Text in `room` bytes, the last of which is 0.
    fn text(&mut self, text: &str, room: usize) {
        let text = &text.as_bytes()[..text.len().min(room - 1)];
        self.0[self.1..][..text.len()].copy_from_slice(text);
        self.1 += room;
    }
}

/// Reads them.
struct Read<'m>(&'m [u8; MESSAGE_BYTES], usize);

impl Read<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.0[self.1..][..N]);
        self.1 += N;
        bytes
    }

    fn half(&mut self) -> u16 {
        u16::from_ne_bytes(self.take())
    }

    fn text<const N: usize>(&mut self) -> String {
        let bytes = self.take::<N>();
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(N);
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }
}

impl Message {
    /// As it is sent; `name` is that of this program.
    pub fn encode(&self, name: &str) -> [u8; MESSAGE_BYTES] {
        let mut bytes = [0; MESSAGE_BYTES];
        let mut to = Fields(&mut bytes, 0);
        to.put(&self.number().to_ne_bytes());
        match self {
            Message::Ack => {}
            Message::Hello { versions, last_region, last_to_client, last_to_server, log2_entries } => {
                to.text(name, NAME_BYTES);
                for half in [versions.0, versions.1, *last_region, *last_to_client, *last_to_server] {
                    to.put(&half.to_ne_bytes());
                }
                to.put(&[*log2_entries]);
            }
            Message::Init { version, id, mode, secret } => {
                to.put(&version.to_ne_bytes());
                to.put(&id.to_ne_bytes());
                to.put(&[*mode]);
                to.text(secret, SECRET_BYTES);
                to.text(name, NAME_BYTES);
            }
            Message::AddRegion { index, bytes } => {
                to.put(&index.to_ne_bytes());
                to.put(&bytes.to_ne_bytes());
            }
            Message::AddRing(ring) => {
                let flags = if ring.direction == Direction::ToServer { CLIENT_TO_SERVER } else { 0 };
                for half in [flags, ring.index, ring.region] {
                    to.put(&half.to_ne_bytes());
                }
                to.put(&ring.offset.to_ne_bytes());
                to.put(&[ring.log2_entries]);
            }
            Message::Connect | Message::Connected => to.text(name, NAME_BYTES),
            Message::Disconnect { reason } => {
                to.put(&0u32.to_ne_bytes());
                to.text(reason, REASON_BYTES);
            }
        }
        bytes
    }

    fn number(&self) -> u16 {
        match self {
            Message::Ack => 1,
            Message::Hello { .. } => 2,
            Message::Init { .. } => 3,
            Message::AddRegion { .. } => 4,
            Message::AddRing(_) => 5,
            Message::Connect => 6,
            Message::Connected => 7,
            Message::Disconnect { .. } => 8,
        }
    }

    /// What was received; `None` for an undefined number.
    pub fn decode(bytes: &[u8; MESSAGE_BYTES]) -> Option<Message> {
        let mut from = Read(bytes, 0);
        Some(match from.half() {
            1 => Message::Ack,
            2 => {
                from.text::<NAME_BYTES>();
                Message::Hello {
                    versions: (from.half(), from.half()),
                    last_region: from.half(),
                    last_to_client: from.half(),
                    last_to_server: from.half(),
                    log2_entries: from.take::<1>()[0],
                }
            }
            3 => Message::Init {
                version: from.half(),
                id: u32::from_ne_bytes(from.take()),
                mode: from.take::<1>()[0],
                secret: from.text::<SECRET_BYTES>(),
            },
            4 => Message::AddRegion { index: from.half(), bytes: u64::from_ne_bytes(from.take()) },
            5 => {
                let is_to_server = from.half() & CLIENT_TO_SERVER != 0;
                Message::AddRing(RingPlace {
                    direction: if is_to_server { Direction::ToServer } else { Direction::ToClient },
                    index: from.half(),
                    region: from.half(),
                    offset: u32::from_ne_bytes(from.take()),
                    log2_entries: from.take::<1>()[0],
                })
            }
            6 => Message::Connect,
            7 => Message::Connected,
            8 => {
                from.take::<4>();
                Message::Disconnect { reason: from.text::<REASON_BYTES>() }
            }
            _ => return None,
        })
    }
}
