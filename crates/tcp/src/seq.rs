//! Sequence numbers: 32 bits that wrap (RFC 9293 section 3.4).

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A sequence number. Comparisons hold while both numbers lie within 2^31 of each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Seq(pub u32);

impl Seq {
    /// Whether `self` comes before `other`.
    #[inline]
    pub const fn before(self, other: Seq) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// Whether `self` comes after `other`.
    #[inline]
    pub const fn after(self, other: Seq) -> bool {
        other.before(self)
    }

    /// Whether `self` lies in `start..=end`.
    #[inline]
    pub const fn between(self, start: Seq, end: Seq) -> bool {
        end.0.wrapping_sub(start.0) >= self.0.wrapping_sub(start.0)
    }

    /// The later of two numbers.
    #[inline]
    pub const fn max(self, other: Seq) -> Seq {
        if self.before(other) { other } else { self }
    }

    /// The earlier of two numbers.
    #[inline]
    pub const fn min(self, other: Seq) -> Seq {
        if other.before(self) { other } else { self }
    }

    /// Bytes from `start` to `self`, zero when `self` comes before `start`.
    #[inline]
    pub const fn since(self, start: Seq) -> u32 {
        if self.before(start) { 0 } else { self.0.wrapping_sub(start.0) }
    }
}

impl Add<u32> for Seq {
    type Output = Seq;
    #[inline]
    fn add(self, bytes: u32) -> Seq {
        Seq(self.0.wrapping_add(bytes))
    }
}

impl AddAssign<u32> for Seq {
    #[inline]
    fn add_assign(&mut self, bytes: u32) {
        *self = *self + bytes;
    }
}

impl Sub<u32> for Seq {
    type Output = Seq;
    #[inline]
    fn sub(self, bytes: u32) -> Seq {
        Seq(self.0.wrapping_sub(bytes))
    }
}

impl Sub for Seq {
    type Output = u32;
    #[inline]
    fn sub(self, start: Seq) -> u32 {
        self.0.wrapping_sub(start.0)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A half-open range of sequence numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First number in it.
    pub start: Seq,
    /// First number after it.
    pub end: Seq,
}

impl Span {
    /// From `start` up to, not including, `end`.
    pub const fn new(start: Seq, end: Seq) -> Span {
        Span { start, end }
    }

    /// Length in sequence numbers.
    pub fn len(self) -> u32 {
        self.end.since(self.start)
    }

    /// Whether nothing is in it.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_hold_across_the_wrap() {
        let (a, b) = (Seq(u32::MAX - 1), Seq(3));
        assert!(a.before(b) && b.after(a) && !a.after(b));
        assert_eq!(b - a, 5);
        assert_eq!(a + 5, b);
        assert_eq!((a.max(b), a.min(b)), (b, a));
        assert_eq!((b.since(a), a.since(b)), (5, 0));
        assert!(Seq(0).between(a, b) && !Seq(4).between(a, b) && b.between(a, b));
    }
}
