//! Operators on values of at most 64 bits, and what works word by word.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

use super::translate::{Translator, UNROLL_MAX, mask};
use crate::p4::ast::BinaryOp;
use crate::p4::ir::{Operand, Slot, Unary, words};

impl Translator<'_, '_> {
    pub fn unary(&mut self, operator: Unary, to: Slot, from: &Operand) -> bool {
        if to.width > 64 {
            return false;
        }
        let value = self.small(from);
        let value = match operator {
            Unary::Complement => self.b.ins().bnot(value),
            Unary::Negate => self.b.ins().ineg(value),
        };
        self.write_masked(to, value);
        true
    }

    /// The value with its sign bit copied upwards.
    fn sign_extended(&mut self, value: Value, width: u32) -> Value {
        if width == 0 || width >= 64 {
            return value;
        }
        let by = i64::from(64 - width);
        let high = self.b.ins().ishl_imm(value, by);
        self.b.ins().sshr_imm(high, by)
    }

    fn flag(&mut self, to: Slot, condition: Value) {
        let value = self.b.ins().uextend(types::I64, condition);
        self.write(to, value);
    }

    pub fn binary(&mut self, operator: BinaryOp, to: Slot, left: &Operand, right: &Operand, signed: bool) -> bool {
        let width = left.width();
        if width > 64 || right.width() > 64 {
            return self.binary_wide(operator, to, left, right);
        }
        let (a, b) = (self.small(left), self.small(right));
        if let Some(condition) = comparison(operator, signed) {
            let (a, b) = if signed { (self.sign_extended(a, width), self.sign_extended(b, width)) } else { (a, b) };
            let holds = self.b.ins().icmp(condition, a, b);
            self.flag(to, holds);
            return true;
        }
        let zero = self.constant(0);
        let value = match operator {
            BinaryOp::Add => self.b.ins().iadd(a, b),
            BinaryOp::Sub => self.b.ins().isub(a, b),
            BinaryOp::Mul => self.b.ins().imul(a, b),
            BinaryOp::And => self.b.ins().band(a, b),
            BinaryOp::Or => self.b.ins().bor(a, b),
            BinaryOp::Xor => self.b.ins().bxor(a, b),
            BinaryOp::ShiftLeft => {
                let shifted = self.b.ins().ishl(a, b);
                let fits = self.b.ins().icmp_imm(IntCC::UnsignedLessThan, b, 64);
                self.b.ins().select(fits, shifted, zero)
            }
            BinaryOp::ShiftRight if signed => {
                let a = self.sign_extended(a, width);
                let most = self.constant(63);
                let by = self.b.ins().umin(b, most);
                self.b.ins().sshr(a, by)
            }
            BinaryOp::ShiftRight => {
                let shifted = self.b.ins().ushr(a, b);
                let fits = self.b.ins().icmp_imm(IntCC::UnsignedLessThan, b, 64);
                self.b.ins().select(fits, shifted, zero)
            }
            BinaryOp::AddSat if !signed => {
                let sum = self.b.ins().iadd(a, b);
                let most = self.constant(mask(width));
                let wrapped = self.b.ins().icmp(IntCC::UnsignedLessThan, sum, a);
                let over = self.b.ins().icmp(IntCC::UnsignedGreaterThan, sum, most);
                let over = self.b.ins().bor(over, wrapped);
                self.b.ins().select(over, most, sum)
            }
            BinaryOp::SubSat if !signed => {
                let difference = self.b.ins().isub(a, b);
                let under = self.b.ins().icmp(IntCC::UnsignedLessThan, a, b);
                self.b.ins().select(under, zero, difference)
            }
            BinaryOp::Div | BinaryOp::Mod if !signed => {
                let by_zero = self.b.ins().icmp_imm(IntCC::Equal, b, 0);
                let one = self.constant(1);
                let divisor = self.b.ins().select(by_zero, one, b);
                let result = if operator == BinaryOp::Div {
                    self.b.ins().udiv(a, divisor)
                } else {
                    self.b.ins().urem(a, divisor)
                };
                self.b.ins().select(by_zero, zero, result)
            }
            _ => return false,
        };
        self.write_masked(to, value);
        true
    }

    /// Operations that work word by word.
    fn binary_wide(&mut self, operator: BinaryOp, to: Slot, left: &Operand, right: &Operand) -> bool {
        let count = words(left.width());
        if left.width() != right.width() || count > UNROLL_MAX {
            return false;
        }
        match operator {
            BinaryOp::Equal | BinaryOp::NotEqual => {
                let mut difference = self.constant(0);
                for number in 0..count {
                    let (a, b) = (self.limb(left, number), self.limb(right, number));
                    let part = self.b.ins().bxor(a, b);
                    difference = self.b.ins().bor(difference, part);
                }
                let condition = if operator == BinaryOp::Equal { IntCC::Equal } else { IntCC::NotEqual };
                let holds = self.b.ins().icmp_imm(condition, difference, 0);
                self.flag(to, holds);
                true
            }
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => {
                for number in 0..count {
                    let (a, b) = (self.limb(left, number), self.limb(right, number));
                    let value = match operator {
                        BinaryOp::And => self.b.ins().band(a, b),
                        BinaryOp::Or => self.b.ins().bor(a, b),
                        _ => self.b.ins().bxor(a, b),
                    };
                    self.store_word(to.word + number as u32, value);
                }
                true
            }
            _ => false,
        }
    }

    pub fn resize(&mut self, to: Slot, from: &Operand, signed: bool) -> bool {
        if to.width <= 64 {
            let value = self.small(from);
            let value = if signed && from.width() < 64 { self.sign_extended(value, from.width()) } else { value };
            self.write_masked(to, value);
            return true;
        }
        if signed || to.words() > UNROLL_MAX || to.width < from.width() {
            return false;
        }
        let known = words(from.width());
        for number in 0..to.words() {
            let value = if number < known { self.limb(from, number) } else { self.constant(0) };
            self.store_word(to.word + number as u32, value);
        }
        true
    }

    pub fn slice(&mut self, to: Slot, from: &Operand, low: u32) -> bool {
        if to.width > 64 {
            return false;
        }
        let (word, bit) = ((low / 64) as usize, low % 64);
        let value = self.limb(from, word);
        let mut value = self.b.ins().ushr_imm(value, i64::from(bit));
        if bit + to.width > 64 {
            let high = self.limb(from, word + 1);
            let high = self.b.ins().ishl_imm(high, i64::from(64 - bit));
            value = self.b.ins().bor(value, high);
        }
        self.write_masked(to, value);
        true
    }

    pub fn insert(&mut self, to: Slot, low: u32, from: &Operand) -> bool {
        if to.width > 64 {
            return false;
        }
        let old = self.small(&Operand::Slot(to));
        let new = self.small(from);
        let kept = self.b.ins().band_imm(old, !(mask(from.width()) << low) as i64);
        let new = self.b.ins().ishl_imm(new, i64::from(low));
        let value = self.b.ins().bor(kept, new);
        self.write(to, value);
        true
    }

    pub fn concat(&mut self, to: Slot, left: &Operand, right: &Operand) -> bool {
        if to.width > 64 || right.width() >= 64 {
            return false;
        }
        let (high, low) = (self.small(left), self.small(right));
        let high = self.b.ins().ishl_imm(high, i64::from(right.width()));
        let value = self.b.ins().bor(high, low);
        self.write(to, value);
        true
    }

    pub fn select(&mut self, to: Slot, condition: &Operand, yes: &Operand, no: &Operand) -> bool {
        if to.width > 64 {
            return false;
        }
        let (condition, yes, no) = (self.small(condition), self.small(yes), self.small(no));
        let value = self.b.ins().select(condition, yes, no);
        self.write(to, value);
        true
    }
}

fn comparison(operator: BinaryOp, signed: bool) -> Option<IntCC> {
    Some(match (operator, signed) {
        (BinaryOp::Equal, _) => IntCC::Equal,
        (BinaryOp::NotEqual, _) => IntCC::NotEqual,
        (BinaryOp::Less, false) => IntCC::UnsignedLessThan,
        (BinaryOp::LessEqual, false) => IntCC::UnsignedLessThanOrEqual,
        (BinaryOp::Greater, false) => IntCC::UnsignedGreaterThan,
        (BinaryOp::GreaterEqual, false) => IntCC::UnsignedGreaterThanOrEqual,
        (BinaryOp::Less, true) => IntCC::SignedLessThan,
        (BinaryOp::LessEqual, true) => IntCC::SignedLessThanOrEqual,
        (BinaryOp::Greater, true) => IntCC::SignedGreaterThan,
        (BinaryOp::GreaterEqual, true) => IntCC::SignedGreaterThanOrEqual,
        _ => return None,
    })
}
