//! Arithmetic of P4 on mathematical integers: at compile time and in the reference interpreter.

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive, Zero};

use super::ast::BinaryOp;
use super::lexer::WIDTH_MAX;

/// Range of a numeric type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// `int`
    Unbounded,
    /// `bit<W>` or `int<W>`
    Fixed {
        /// Bits.
        width: u32,
        /// Two's complement.
        signed: bool,
    },
}

impl Range {
    /// Brings a value into the range by dropping high bits.
    pub fn wrap(self, value: BigInt) -> BigInt {
        let Range::Fixed { width, signed } = self else {
            return value;
        };
        let modulus = BigInt::from(1) << width;
        let mut value = value % &modulus;
        if value.is_negative() {
            value += &modulus;
        }
        if signed && width > 0 && value.bit(u64::from(width) - 1) {
            value -= &modulus;
        }
        value
    }

    /// Smallest and largest value.
    pub fn limits(self) -> Option<(BigInt, BigInt)> {
        let Range::Fixed { width, signed } = self else {
            return None;
        };
        let one = BigInt::from(1);
        Some(if signed && width > 0 {
            let half: BigInt = one.clone() << (width - 1);
            (-half.clone(), half - one)
        } else {
            (BigInt::zero(), (one.clone() << width) - one)
        })
    }

    /// The value needs no wrapping.
    pub fn holds(self, value: &BigInt) -> bool {
        self.limits().is_none_or(|(low, high)| low <= *value && *value <= high)
    }

    fn saturate(self, value: BigInt) -> BigInt {
        match self.limits() {
            Some((low, high)) => value.clamp(low, high),
            None => value,
        }
    }
}

/// `left operator right`, for the operators that give a number. None for a division by zero, a division of negative
/// numbers, a negative shift, or a result that is too large to write down.
pub fn binary(operator: BinaryOp, left: &BigInt, right: &BigInt, range: Range) -> Option<BigInt> {
    let value = match operator {
        BinaryOp::Add => left + right,
        BinaryOp::Sub => left - right,
        BinaryOp::AddSat => return Some(range.saturate(left + right)),
        BinaryOp::SubSat => return Some(range.saturate(left - right)),
        BinaryOp::Mul => left * right,
        BinaryOp::Div | BinaryOp::Mod if right.is_zero() || right.is_negative() || left.is_negative() => return None,
        BinaryOp::Div => left / right,
        BinaryOp::Mod => left % right,
        BinaryOp::And => left & right,
        BinaryOp::Or => left | right,
        BinaryOp::Xor => left ^ right,
        BinaryOp::ShiftLeft => return shift_left(left, right, range),
        BinaryOp::ShiftRight if right.is_negative() => return None,
        BinaryOp::ShiftRight => left >> right.to_u32().unwrap_or(u32::MAX).min(1 << 20),
        _ => return None,
    };
    (value.bits() <= u64::from(4 * WIDTH_MAX)).then(|| range.wrap(value))
}

fn shift_left(left: &BigInt, right: &BigInt, range: Range) -> Option<BigInt> {
    let by = if right.is_negative() { return None } else { right.to_u32().unwrap_or(u32::MAX) };
    match range {
        Range::Fixed { width, .. } if by >= width => Some(BigInt::zero()),
        Range::Unbounded if by > WIDTH_MAX => None,
        _ => Some(range.wrap(left << by)),
    }
}

/// The comparison holds; none for operators that do not compare.
pub fn compare(operator: BinaryOp, left: &BigInt, right: &BigInt) -> Option<bool> {
    Some(match operator {
        BinaryOp::Equal => left == right,
        BinaryOp::NotEqual => left != right,
        BinaryOp::Less => left < right,
        BinaryOp::LessEqual => left <= right,
        BinaryOp::Greater => left > right,
        BinaryOp::GreaterEqual => left >= right,
        _ => return None,
    })
}
