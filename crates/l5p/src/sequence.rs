//! TCP sequence numbers, which wrap at 2^32 and compare within half of the space (RFC 9293, 3.4).

use std::fmt;

/// A TCP sequence number, the `tcpsn` of the paper.
#[derive(Clone, Copy, PartialEq, Eq, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Seq(pub u32);

impl Seq {
    /// The sequence number `bytes` further on.
    pub fn plus(self, bytes: usize) -> Self {
        Self(self.0.wrapping_add(bytes as u32))
    }

    /// Bytes from `earlier` to this one; negative when this one lies before.
    pub fn since(self, earlier: Self) -> i32 {
        self.0.wrapping_sub(earlier.0) as i32
    }

    /// Whether this number lies before `other`.
    pub fn is_before(self, other: Self) -> bool {
        self.since(other) < 0
    }
}

impl fmt::Debug for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seq {}", self.0)
    }
}
