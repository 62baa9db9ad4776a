//! Reading headers from packets and writing them, in whole words.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

use super::translate::{TRUSTED, Translator, mask};
use crate::p4::ir::{HeaderPlace, Operand, Slot, words};
use crate::p4::machine::Registers;

/// Bytes behind a packet and behind the output that a whole word may touch.
pub(crate) const SLACK_BYTES: usize = 16;
/// Headers with more bits call the interpreter.
const BITS_MAX: u32 = 4096;

const CURSOR: usize = std::mem::offset_of!(Registers, cursor);
const OUTPUT: usize = std::mem::offset_of!(Registers, output);
const OUTPUT_BITS: usize = std::mem::offset_of!(Registers, output_bits);
const OUTPUT_CAPACITY: usize = std::mem::offset_of!(Registers, output_capacity);

impl Translator<'_, '_> {
    /// At most 64 bits from bit `at` behind `base`.
    fn read_bits(&mut self, base: Value, at: u32, width: u32) -> Value {
        let (byte, bit) = ((at / 8) as i32, at % 8);
        if bit == 0 && width == 8 {
            return self.b.ins().uload8(types::I64, TRUSTED, base, byte);
        }
        if bit == 0 && width == 16 {
            let value = self.b.ins().load(types::I16, TRUSTED, base, byte);
            let value = self.b.ins().bswap(value);
            return self.b.ins().uextend(types::I64, value);
        }
        if bit == 0 && width == 32 {
            let value = self.b.ins().load(types::I32, TRUSTED, base, byte);
            let value = self.b.ins().bswap(value);
            return self.b.ins().uextend(types::I64, value);
        }
        let word = self.b.ins().load(types::I64, TRUSTED, base, byte);
        let word = self.b.ins().bswap(word);
        if bit + width <= 64 {
            let value = self.b.ins().ushr_imm(word, i64::from(64 - bit - width));
            return if bit == 0 { value } else { self.b.ins().band_imm(value, mask(width) as i64) };
        }
        let rest = bit + width - 64;
        let high = self.b.ins().ishl_imm(word, i64::from(rest));
        let high = if width < 64 { self.b.ins().band_imm(high, mask(width) as i64) } else { high };
        let low = self.b.ins().uload8(types::I64, TRUSTED, base, byte + 8);
        let low = self.b.ins().ushr_imm(low, i64::from(8 - rest));
        self.b.ins().bor(high, low)
    }

    /// The packet from the cursor on, and the cursor.
    fn at_cursor(&mut self) -> (Value, Value) {
        let cursor = self.register(CURSOR);
        let bytes = self.b.ins().ushr_imm(cursor, 3);
        (self.b.ins().iadd(self.packet, bytes), cursor)
    }

    /// Sets the error unless `bits` are left; continues in a block where they are, and returns the block after all.
    fn require_bits(&mut self, cursor: Value, bits: u64, error: Slot) -> cranelift_codegen::ir::Block {
        let left = self.b.ins().isub(self.packet_bits, cursor);
        let enough = self.b.ins().icmp_imm(IntCC::UnsignedGreaterThanOrEqual, left, bits as i64);
        let (read, short, done) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        self.b.ins().brif(enough, read, &[], short, &[]);
        self.b.switch_to_block(short);
        let number = self.constant(self.too_short);
        self.write(error, number);
        self.b.ins().jump(done, &[]);
        self.b.switch_to_block(read);
        done
    }

    pub(super) fn extract(&mut self, header: &HeaderPlace, error: Slot) -> bool {
        let layout = &header.layout;
        let plain = layout.fields.iter().all(|field| !field.varbit);
        let small_index = header.index.as_ref().is_none_or(|index| index.value.width() <= 64);
        if !self.bytewise || !plain || !small_index || layout.fixed_bits > BITS_MAX {
            return false;
        }
        let (base, cursor) = self.at_cursor();
        let done = self.require_bits(cursor, u64::from(layout.fixed_bits), error);
        let mut frame = self.frame;
        if let Some(index) = &header.index {
            let (bytes, inside) = self.element(index);
            let go = self.b.create_block();
            self.b.ins().brif(inside, go, &[], done, &[]);
            self.b.switch_to_block(go);
            frame = self.b.ins().iadd(self.frame, bytes);
        }
        let place = |word: u32| (header.word + word) as i32 * 8;
        let one = self.constant(1);
        self.b.ins().store(TRUSTED, one, frame, place(0));
        let mut at = 0;
        for field in &layout.fields {
            let mut end = at + field.width;
            let mut left = field.width;
            for number in 0..words(field.width) as u32 {
                let take = left.min(64);
                end -= take;
                left -= take;
                let value = if take == 0 { self.constant(0) } else { self.read_bits(base, end, take) };
                self.b.ins().store(TRUSTED, value, frame, place(field.offset + number));
            }
            at += field.width;
        }
        let next = self.b.ins().iadd_imm(cursor, i64::from(layout.fixed_bits));
        self.set_register(CURSOR, next);
        self.b.ins().jump(done, &[]);
        self.b.switch_to_block(done);
        true
    }

    pub(super) fn lookahead(&mut self, to: &[Slot], error: Slot) -> bool {
        let bits: u64 = to.iter().map(|slot| u64::from(slot.width)).sum();
        if !self.bytewise || to.iter().any(|slot| slot.width > 64 || slot.width == 0) {
            return false;
        }
        let (base, cursor) = self.at_cursor();
        let done = self.require_bits(cursor, bits, error);
        let mut at = 0;
        for slot in to {
            let value = self.read_bits(base, at, slot.width);
            self.write(*slot, value);
            at += slot.width;
        }
        self.b.ins().jump(done, &[]);
        self.b.switch_to_block(done);
        true
    }

    pub(super) fn advance(&mut self, bits: &Operand, error: Slot) -> bool {
        let Operand::Constant(constant) = bits else {
            return false;
        };
        let bits = constant.limbs[0];
        if !bits.is_multiple_of(8) {
            return false;
        }
        let cursor = self.register(CURSOR);
        let done = self.require_bits(cursor, bits, error);
        let next = self.b.ins().iadd_imm(cursor, bits as i64);
        self.set_register(CURSOR, next);
        self.b.ins().jump(done, &[]);
        self.b.switch_to_block(done);
        true
    }

    pub(super) fn emit(&mut self, header: &HeaderPlace) -> bool {
        let layout = &header.layout;
        let plain = layout.fields.iter().all(|field| !field.varbit);
        if !self.bytewise || !plain || header.index.is_some() || layout.fixed_bits > BITS_MAX {
            return false;
        }
        let done = self.b.create_block();
        let write = self.b.create_block();
        let valid = self.load_word(header.word);
        self.b.ins().brif(valid, write, &[], done, &[]);
        self.b.switch_to_block(write);
        let bits = self.register(OUTPUT_BITS);
        let end = self.b.ins().iadd_imm(bits, i64::from(layout.fixed_bits) + 8 * SLACK_BYTES as i64);
        let capacity = self.register(OUTPUT_CAPACITY);
        let fits = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, end, capacity);
        let (grow, go) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(fits, go, &[], grow, &[]);
        self.b.switch_to_block(grow);
        self.call_reserve(u64::from(layout.fixed_bits) + 8 * SLACK_BYTES as u64);
        self.b.ins().jump(go, &[]);
        self.b.switch_to_block(go);
        let output = self.register(OUTPUT);
        let bytes = self.b.ins().ushr_imm(bits, 3);
        let base = self.b.ins().iadd(output, bytes);
        for chunk in 0..layout.fixed_bits.div_ceil(64) {
            let value = self.chunk(header, chunk * 64);
            let value = self.b.ins().bswap(value);
            self.b.ins().store(TRUSTED, value, base, chunk as i32 * 8);
        }
        let after = self.b.ins().iadd_imm(bits, i64::from(layout.fixed_bits));
        self.set_register(OUTPUT_BITS, after);
        self.b.ins().jump(done, &[]);
        self.b.switch_to_block(done);
        true
    }

    /// The 64 bits of a header from bit `start` on; what lies behind its end is zero.
    fn chunk(&mut self, header: &HeaderPlace, start: u32) -> Value {
        let mut value = self.constant(0);
        let mut at = 0;
        for field in &header.layout.fields {
            let mut end = at + field.width;
            let mut left = field.width;
            for number in 0..words(field.width) as u32 {
                let take = left.min(64);
                let first = end - take;
                // The piece covers bits `first` to `end` of the header.
                if take > 0 && first < start + 64 && end > start {
                    let piece = self.load_word(header.word + field.offset + number);
                    let up = i64::from(start + 64) - i64::from(end);
                    let piece = match up {
                        0 => piece,
                        up if up > 0 => self.b.ins().ishl_imm(piece, up),
                        down => self.b.ins().ushr_imm(piece, -down),
                    };
                    value = self.b.ins().bor(value, piece);
                }
                end = first;
                left -= take;
            }
            at += field.width;
        }
        value
    }
}
