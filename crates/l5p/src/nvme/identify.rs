//! Data structures that a subsystem describes itself by (base specification 1.4, 5.15; fabrics 1.1, 5.3).

use super::subsystem::{DISCOVERY_NQN, SubsystemConfig};

/// Bytes of each structure.
const STRUCTURE_BYTES: usize = 4096;
/// Bytes of the discovery log's header, and of each of its entries.
const LOG_ENTRY_BYTES: usize = 1024;
/// Most bytes of data within a command's capsule.
const IN_CAPSULE_BYTES: u32 = 8192;
/// Transfers of at most 2^5 pages of 4 KiB.
const LARGEST_TRANSFER: u8 = 5;

/// Of what the structures tell.
pub struct Identity<'a> {
    pub config: &'a SubsystemConfig,
    pub blocks: u64,
    pub block_bytes: u32,
}

impl Identity<'_> {
    /// Identify controller.
    pub fn controller(&self, number: u16, is_discovery: bool) -> Vec<u8> {
        let mut out = vec![0; STRUCTURE_BYTES];
        let nqn = if is_discovery { DISCOVERY_NQN } else { &self.config.nqn };
        fill(&mut out[4..24], "nicforge", b' ');
        fill(&mut out[24..64], "Nicforge NVMe/TCP target", b' ');
        fill(&mut out[64..72], env!("CARGO_PKG_VERSION"), b' ');
        out[77] = LARGEST_TRANSFER;
        put(&mut out, 78, &number.to_le_bytes());
        put(&mut out, 80, &0x0001_0300u32.to_le_bytes());
        out[111] = if is_discovery { 2 } else { 1 };
        // Keep-alive in steps of 100 ms.
        put(&mut out, 320, &1u16.to_le_bytes());
        // Entries of queues: 64 and 16 bytes.
        put(&mut out, 512, &[0x66, 0x44]);
        put(&mut out, 514, &128u16.to_le_bytes());
        put(&mut out, 516, &u32::from(!is_discovery).to_le_bytes());
        // Written data may wait for a flush.
        out[525] = 1;
        // Lists of any alignment, and offsets into the capsule.
        put(&mut out, 536, &(1u32 | 1 << 20).to_le_bytes());
        fill(&mut out[768..1024], nqn, 0);
        // Capsules in units of 16 bytes.
        put(&mut out, 1792, &((64 + IN_CAPSULE_BYTES) / 16).to_le_bytes());
        put(&mut out, 1796, &1u32.to_le_bytes());
        out[1803] = 1;
        out
    }

    /// Identify namespace.
    pub fn namespace(&self) -> Vec<u8> {
        let mut out = vec![0; STRUCTURE_BYTES];
        for at in [0, 8, 16] {
            put(&mut out, at, &self.blocks.to_le_bytes());
        }
        put(&mut out, 104, &self.unique());
        out[130] = self.block_bytes.trailing_zeros() as u8;
        out
    }

    /// Identifiers of the namespace: one of 16 bytes, and the NVM command set.
    pub fn descriptors(&self) -> Vec<u8> {
        let mut out = vec![0; STRUCTURE_BYTES];
        put(&mut out, 0, &[2, 16, 0, 0]);
        put(&mut out, 4, &self.unique());
        put(&mut out, 20, &[4, 1, 0, 0, 0]);
        out
    }

    /// A name of 16 bytes that follows from the subsystem's.
    fn unique(&self) -> [u8; 16] {
        let mut unique = [0; 16];
        for (place, byte) in self.config.nqn.bytes().enumerate() {
            let to: &mut u8 = &mut unique[place % 16];
            *to = to.rotate_left(3) ^ byte;
        }
        unique
    }

    /// The discovery log: this subsystem.
    pub fn discovery_log(&self) -> Vec<u8> {
        let mut out = vec![0; 2 * LOG_ENTRY_BYTES];
        put(&mut out, 0, &1u64.to_le_bytes());
        put(&mut out, 8, &1u64.to_le_bytes());
        let entry = &mut out[LOG_ENTRY_BYTES..];
        let family = if self.config.at.is_ipv4() { 1 } else { 2 };
        // TCP, the family, an NVM subsystem, no security asked, port 1, any controller, 32 entries of the admin queue.
        put(entry, 0, &[3, family, 2, 2, 1, 0, 0xff, 0xff, 32, 0]);
        fill(&mut entry[32..64], &self.config.at.port().to_string(), b' ');
        fill(&mut entry[256..512], &self.config.nqn, 0);
        fill(&mut entry[512..768], &self.config.at.ip().to_string(), b' ');
        out
    }
}

/// The active namespaces behind `after`: only number 1 is.
pub fn list(after: u32) -> Vec<u8> {
    let mut out = vec![0; STRUCTURE_BYTES];
    out[0] = u8::from(after == 0);
    out
}

/// A text that ends with a zero.
pub fn text(bytes: &[u8]) -> &str {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    std::str::from_utf8(&bytes[..end]).unwrap_or_default()
}

fn put(out: &mut [u8], at: usize, bytes: &[u8]) {
    out[at..at + bytes.len()].copy_from_slice(bytes);
}

fn fill(out: &mut [u8], text: &str, pad: u8) {
    out.fill(pad);
    let bytes = text.len().min(out.len());
    out[..bytes].copy_from_slice(&text.as_bytes()[..bytes]);
}
