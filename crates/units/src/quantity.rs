//! Amounts: bytes, cache lines and core cycles.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub};

use serde::{Deserialize, Serialize};

/// The size of a cache line on every machine we model, in bytes.
pub const CACHE_LINE_BYTES: u64 = 64;

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[repr(transparent)]
        pub struct $name(pub u64);

        impl Add for $name {
            type Output = $name;
            fn add(self, rhs: $name) -> $name {
                $name(self.0 + rhs.0)
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, rhs: $name) {
                self.0 += rhs.0;
            }
        }

        impl Sub for $name {
            type Output = $name;
            fn sub(self, rhs: $name) -> $name {
                $name(self.0 - rhs.0)
            }
        }

        impl Mul<u64> for $name {
            type Output = $name;
            fn mul(self, rhs: u64) -> $name {
                $name(self.0 * rhs)
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = $name>>(items: I) -> $name {
                $name(items.map(|item| item.0).sum())
            }
        }
    };
}

quantity!(
    /// An amount of data in bytes.
    Bytes
);
quantity!(
    /// A number of cache lines.
    Lines
);
quantity!(
    /// A number of core clock cycles.
    Cycles
);

impl Lines {
    /// As bytes.
    pub const fn bytes(self) -> Bytes {
        Bytes(self.0 * CACHE_LINE_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_convert_to_bytes_by_name() {
        assert_eq!(Lines(24).bytes(), Bytes(1536));
        assert_eq!([Bytes(1), Bytes(2)].into_iter().sum::<Bytes>(), Bytes(3));
    }
}
