//! Internet checksums over fields, computed in words.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value};

use super::translate::Translator;
use crate::p4::ir::{Datum, ExternFunction, ExternOp, HashKind, words};

/// Data with more bits calls the interpreter.
const BITS_MAX: u32 = 2048;

impl Translator<'_, '_> {
    /// `verify_checksum` and `update_checksum` with the 16-bit ones' complement sum of fields.
    pub(super) fn checksum(&mut self, op: &ExternOp) -> bool {
        let verifies = match op.function {
            ExternFunction::VerifyChecksum { kind: HashKind::Checksum16, with_payload: false } => true,
            ExternFunction::UpdateChecksum { kind: HashKind::Checksum16, with_payload: false } => false,
            _ => return false,
        };
        let [condition, data, known, ..] = &op.inputs[..] else { return false };
        let bits: u32 = data.iter().map(|datum| datum.value.width()).sum();
        let plain = data.iter().all(|datum| !datum.varbit) && bits <= BITS_MAX;
        let ([condition], [known], [output]) = (&condition[..], &known[..], &op.outputs[..]) else { return false };
        if !plain || known.value.width() != 16 || output.width > 64 {
            return false;
        }
        let condition = self.small(&condition.value);
        let sum = self.ones_sum(data, bits);
        let computed = self.b.ins().bxor_imm(sum, 0xffff);
        let old = if verifies { self.load_word(output.word) } else { self.small(&known.value) };
        let new = if verifies {
            let known = self.small(&known.value);
            let differs = self.b.ins().icmp(IntCC::NotEqual, computed, known);
            let one = self.constant(1);
            self.b.ins().select(differs, one, old)
        } else {
            computed
        };
        let value = self.b.ins().select(condition, new, old);
        self.write(*output, value);
        true
    }

    /// The ones' complement sum of the data's 16-bit words.
    fn ones_sum(&mut self, data: &[Datum], bits: u32) -> Value {
        let mut sum = self.constant(0);
        for start in (0..bits).step_by(32) {
            let part = self.piece(data, start);
            // Two 16-bit words at once: their carries stay apart in 64 bits.
            sum = self.b.ins().iadd(sum, part);
        }
        for _ in 0..4 {
            let low = self.b.ins().band_imm(sum, 0xffff);
            let high = self.b.ins().ushr_imm(sum, 16);
            sum = self.b.ins().iadd(low, high);
        }
        sum
    }

    /// 32 bits of the data from bit `start` on; what lies behind its end is zero.
    fn piece(&mut self, data: &[Datum], start: u32) -> Value {
        let mut value = self.constant(0);
        let mut at = 0;
        for datum in data {
            let width = datum.value.width();
            let mut end = at + width;
            let mut left = width;
            for number in 0..words(width) {
                let take = left.min(64);
                let first = end - take;
                if take > 0 && first < start + 32 && end > start {
                    let limb = self.limb(&datum.value, number);
                    let up = i64::from(start + 32) - i64::from(end);
                    let limb = if up >= 0 { self.b.ins().ishl_imm(limb, up) } else { self.b.ins().ushr_imm(limb, -up) };
                    let limb = self.b.ins().band_imm(limb, i64::from(u32::MAX));
                    value = self.b.ins().bor(value, limb);
                }
                end = first;
                left -= take;
            }
            at += width;
        }
        value
    }
}
