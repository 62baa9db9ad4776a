//! Rings of payload in modelled memory.

use nicforge_nic::Segment;
use nicforge_platform::sim::SimCpu;
use nicforge_platform::{Addr, copy};
use nicforge_tcp::ring::{Buffers, ByteRing};

use super::records::SharedRecords;

/// A ring of a flow in modelled memory.
#[derive(Clone, Copy, Debug)]
pub struct Ring {
    /// Where it begins.
    pub at: Addr,
    /// Bytes.
    pub len: u32,
}

impl Ring {
    /// Where the `len` bytes from `place` on lie, around the end in two pieces.
    pub fn pieces(self, place: u32, len: u32) -> [Segment; 2] {
        let first = len.min(self.len - place);
        [Segment { at: self.at + u64::from(place), len: first }, Segment { at: self.at, len: len - first }]
    }
}

// The service and the applications move the bytes.
impl ByteRing for Ring {
    fn size(&self) -> u32 {
        self.len
    }

    fn write(&mut self, _at: u32, _bytes: &[u8]) {}

    fn read(&self, _at: u32, _out: &mut [u8]) {}
}

/// Rings that were laid out before time began.
pub struct Rings {
    /// Rings that no connection has.
    pub free: Vec<Ring>,
}

impl Buffers for Rings {
    type Ring = Ring;

    fn ring(&mut self, _size: u32) -> Option<Ring> {
        self.free.pop()
    }
}

/// A connection as the service and an application share it.
#[derive(Clone, Copy, Debug)]
pub struct SharedFlow {
    /// Received bytes.
    pub receive: Ring,
    /// Bytes to send.
    pub transmit: Ring,
}

/// A connection as an application maps it.
#[derive(Clone)]
pub struct Mapped {
    /// Its rings.
    pub rings: SharedFlow,
    /// Its records, where messages lie in some.
    pub records: Option<SharedRecords>,
    /// It leads from a server to its target.
    pub is_storage: bool,
}

impl From<SharedFlow> for Mapped {
    fn from(rings: SharedFlow) -> Mapped {
        Mapped { rings, records: None, is_storage: false }
    }
}

/// Copies bytes that lie in two pieces to two pieces that have as many.
pub fn copy_pieces(cpu: &mut SimCpu, from: [Segment; 2], to: [Segment; 2]) {
    each_run(from, to, |source, target| {
        copy(cpu, source.at, target.at, source.len as usize);
    });
}

/// The same where the core only refers to the bytes, because they already are where they belong.
pub fn refer_pieces(cpu: &mut SimCpu, from: [Segment; 2], to: [Segment; 2]) {
    each_run(from, to, |source, target| {
        let bytes = cpu.untouched_mut(source.at, source.len as usize).to_vec();
        cpu.untouched_mut(target.at, bytes.len()).copy_from_slice(&bytes);
    });
}

/// Runs of as many bytes at both places.
fn each_run(from: [Segment; 2], to: [Segment; 2], mut take: impl FnMut(Segment, Segment)) {
    let ([mut source, mut source_rest], [mut target, mut target_rest]) = (from, to);
    loop {
        if source.len == 0 {
            (source, source_rest) = (source_rest, Segment::default());
        }
        if target.len == 0 {
            (target, target_rest) = (target_rest, Segment::default());
        }
        let len = source.len.min(target.len);
        if len == 0 {
            return;
        }
        take(Segment { len, ..source }, Segment { len, ..target });
        source = Segment { at: source.at + u64::from(len), len: source.len - len };
        target = Segment { at: target.at + u64::from(len), len: target.len - len };
    }
}
