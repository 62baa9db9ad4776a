//! The reference interpreter: each operation does what its definition says, on mathematical integers.
//!
//! Compiled code has to agree with it; it is written to be read, not to be fast.

use num_bigint::{BigInt, BigUint, Sign};
use num_traits::One;

use super::ast::BinaryOp;
use super::bits;
use super::constant::{self, Range};
use super::externs;
use super::ir::{Function, HeaderPlace, Index, Note, Op, Operand, Slot, Terminator, Unary, words};
use super::machine::Machine;
use super::trace::{Event, FieldValue, field_at, field_value, hex, show_match, to_big};

/// Runs a function from its first block to its end.
pub(crate) fn run(function: &Function, machine: &mut Machine) {
    machine.enter();
    let mut block = 0;
    loop {
        for op in &function.blocks[block].ops {
            execute(op, machine);
        }
        block = match &function.blocks[block].end {
            Terminator::End => return,
            Terminator::Jump(next) => *next,
            Terminator::Branch { condition, yes, no } => {
                if machine.small(condition) != 0 {
                    *yes
                } else {
                    *no
                }
            }
            Terminator::Switch { value, cases, otherwise } => {
                let value = machine.small(value);
                cases.iter().find(|(label, _)| *label == value).map_or(*otherwise, |(_, block)| *block)
            }
            Terminator::Tick { next, exhausted } => {
                if machine.registers.ticks == 0 {
                    machine.exhausted = true;
                    *exhausted
                } else {
                    machine.registers.ticks -= 1;
                    *next
                }
            }
        };
    }
}

fn read(machine: &Machine, operand: &Operand) -> BigInt {
    BigInt::from_biguint(Sign::Plus, to_big(machine.limbs(operand)))
}

/// The value of an operand as its type sees it.
fn read_as(machine: &Machine, operand: &Operand, signed: bool) -> BigInt {
    Range::Fixed { width: operand.width(), signed }.wrap(read(machine, operand))
}

fn write(machine: &mut Machine, slot: Slot, value: BigInt) {
    let value = Range::Fixed { width: slot.width, signed: false }.wrap(value);
    let limbs: Vec<u64> = value.iter_u64_digits().collect();
    machine.set_limbs(slot, &limbs);
}

/// The slot of an element, if the index is inside of the stack.
fn element(machine: &Machine, slot: Slot, index: &Index) -> Option<Slot> {
    let number = read(machine, &index.value);
    let number = u32::try_from(&number).ok().filter(|number| *number < index.count)?;
    Some(Slot { word: slot.word + number * index.stride, ..slot })
}

/// Does one operation.
pub(crate) fn execute(op: &Op, machine: &mut Machine) {
    match op {
        Op::Copy { to, from } => {
            let value = machine.limbs(from).to_vec();
            machine.set_limbs(*to, &value);
        }
        Op::Load { to, from, index } => {
            let value = element(machine, *from, index).map(|slot| machine.slot(slot).to_vec());
            machine.set_limbs(*to, &value.unwrap_or_default());
        }
        Op::Store { to, index, from } => {
            if let Some(slot) = element(machine, *to, index) {
                let value = machine.limbs(from).to_vec();
                machine.set_limbs(slot, &value);
            }
        }
        Op::Unary { operator, to, from } => {
            let value = read(machine, from);
            let value = match operator {
                Unary::Complement => !value,
                Unary::Negate => -value,
            };
            write(machine, *to, value);
        }
        Op::Binary { operator, to, left, right, signed } => binary(machine, *operator, *to, left, right, *signed),
        Op::Resize { to, from, signed } => {
            let value = read_as(machine, from, *signed);
            write(machine, *to, value);
        }
        Op::Slice { to, from, low } => {
            let value = read(machine, from) >> *low;
            write(machine, *to, value);
        }
        Op::Insert { to, low, from } => {
            let old = to_big(machine.slot(*to));
            let field = ((BigUint::one() << from.width()) - 1u8) << *low;
            let new = to_big(machine.limbs(from)) << *low;
            let cleared = &old ^ (&old & &field);
            write(machine, *to, BigInt::from(cleared | new));
        }
        Op::Concat { to, left, right } => {
            let value = (read(machine, left) << right.width()) | read(machine, right);
            write(machine, *to, value);
        }
        Op::Select { to, condition, yes, no } => {
            let chosen = if machine.small(condition) != 0 { yes } else { no };
            let value = machine.limbs(chosen).to_vec();
            machine.set_limbs(*to, &value);
        }
        Op::Clear { word, words } => machine.frame[*word as usize..(*word + *words) as usize].fill(0),
        Op::Extract { header, varbit_bits, error } => extract(machine, header, varbit_bits.as_ref(), *error),
        Op::Lookahead { to, error } => lookahead(machine, to, *error),
        Op::Advance { bits, error } => {
            let bits = machine.small(bits);
            if !bits.is_multiple_of(8) {
                machine.set_small(*error, machine.invalid_argument);
            } else if machine.registers.packet_bits - machine.registers.cursor < bits {
                machine.set_small(*error, machine.too_short);
            } else {
                machine.registers.cursor += bits;
            }
        }
        Op::PacketLength { to } => machine.set_small(*to, machine.registers.packet_bits / 8),
        Op::Emit { header } => emit(machine, header),
        Op::Apply { table, keys, hit, action } => apply(machine, *table, keys, *hit, *action),
        Op::InSet { set, keys, to } => {
            let holds = machine.sets[*set].members.iter().any(|member| {
                keys.iter().zip(member).all(|(key, (value, mask))| {
                    let key = machine.limbs(key);
                    key.iter().zip(value).zip(mask).all(|((key, value), mask)| key & mask == value & mask)
                })
            });
            machine.set_small(*to, u64::from(holds));
        }
        Op::Extern(op) => externs::call(op, machine),
        Op::Note(note) => tell(note, machine),
    }
}

fn binary(machine: &mut Machine, operator: BinaryOp, to: Slot, left: &Operand, right: &Operand, signed: bool) {
    let a = read_as(machine, left, signed);
    let shifts = matches!(operator, BinaryOp::ShiftLeft | BinaryOp::ShiftRight);
    let b = read_as(machine, right, signed && !shifts);
    let value = match constant::compare(operator, &a, &b) {
        Some(holds) => BigInt::from(u8::from(holds)),
        // The checker leaves no division by zero; a shift by too much gives what is left over.
        None => constant::binary(operator, &a, &b, Range::Fixed { width: left.width(), signed }).unwrap_or_default(),
    };
    write(machine, to, value);
}

/// The first word of a header, if its index is inside of the stack.
fn header_word(machine: &Machine, header: &HeaderPlace) -> Option<usize> {
    let slot = Slot { word: header.word, width: 1, temporary: false };
    match &header.index {
        None => Some(header.word as usize),
        Some(index) => element(machine, slot, index).map(|slot| slot.word as usize),
    }
}

fn extract(machine: &mut Machine, header: &HeaderPlace, varbit_bits: Option<&Operand>, error: Slot) {
    let varbit = varbit_bits.map_or(0, |bits| machine.small(bits));
    let largest = header.layout.fields.iter().filter(|field| field.varbit).map(|field| u64::from(field.width)).sum();
    let bits_needed = u64::from(header.layout.fixed_bits) + varbit;
    if !varbit.is_multiple_of(8) {
        machine.set_small(error, machine.invalid_argument);
        return;
    }
    if machine.registers.packet_bits - machine.registers.cursor < bits_needed {
        machine.set_small(error, machine.too_short);
        return;
    }
    if varbit > largest {
        machine.set_small(error, machine.header_too_short);
        return;
    }
    let Some(start) = header_word(machine, header) else { return };
    let mut at = machine.registers.cursor as usize;
    machine.frame[start] = 1;
    for field in &header.layout.fields {
        let word = start + field.offset as usize;
        let count = words(field.width);
        if field.varbit {
            machine.frame[word] = varbit;
            bits::read_wide(&machine.packet, at, varbit as u32, &mut machine.frame[word + 1..word + 1 + count]);
            at += varbit as usize;
        } else {
            bits::read_wide(&machine.packet, at, field.width, &mut machine.frame[word..word + count]);
            at += field.width as usize;
        }
    }
    machine.registers.cursor += bits_needed;
    machine.note(|machine| Some(extracted(machine, header, start, bits_needed)));
}

fn extracted(machine: &Machine, header: &HeaderPlace, start: usize, bits: u64) -> Event {
    let first = header.layout.fields.first().map_or(start as u32, |field| start as u32 + field.offset);
    let path =
        field_at(&machine.ir, first).and_then(|field| field.name.rsplit_once('.')).map(|(path, _)| path.to_owned());
    let fields = header.layout.fields.iter().map(|field| {
        let word = start + field.offset as usize + usize::from(field.varbit);
        let value = hex(&machine.frame[word..word + words(field.width)]);
        FieldValue { name: field.name.to_string(), value }
    });
    Event::Extract { header: path.unwrap_or_else(|| header.layout.name.to_string()), fields: fields.collect(), bits }
}

fn lookahead(machine: &mut Machine, to: &[Slot], error: Slot) {
    let needed: u64 = to.iter().map(|slot| u64::from(slot.width)).sum();
    if machine.registers.packet_bits - machine.registers.cursor < needed {
        machine.set_small(error, machine.too_short);
        return;
    }
    let mut at = machine.registers.cursor as usize;
    for slot in to {
        let word = slot.word as usize;
        bits::read_wide(&machine.packet, at, slot.width, &mut machine.frame[word..word + slot.words()]);
        at += slot.width as usize;
    }
}

fn emit(machine: &mut Machine, header: &HeaderPlace) {
    let Some(start) = header_word(machine, header) else { return };
    if machine.frame[start] == 0 {
        return;
    }
    let total: u64 = header.layout.fields.iter().map(|field| u64::from(field.width)).sum();
    machine.reserve_output(total);
    for field in &header.layout.fields {
        let word = start + field.offset as usize;
        let (width, word) = if field.varbit { (machine.frame[word] as u32, word + 1) } else { (field.width, word) };
        let at = machine.registers.output_bits as usize;
        let limbs = &machine.frame[word..word + words(field.width)];
        bits::write_wide(&mut machine.output, at, width, &limbs[..words(width).min(limbs.len())]);
        machine.registers.output_bits += u64::from(width);
    }
    machine.note(|machine| {
        let first = header.layout.fields.first().map_or(start as u32, |field| start as u32 + field.offset);
        let path = field_at(&machine.ir, first).and_then(|field| field.name.rsplit_once('.'));
        Some(Event::Emit { header: path.map_or(header.layout.name.to_string(), |(path, _)| path.to_owned()) })
    });
}

/// Looks up the words of all keys and writes the action's data. Returns the position of the action in the low half and
/// whether an entry was hit above it.
pub(crate) fn apply_words(machine: &mut Machine, table: usize, keys: &[u64]) -> u64 {
    let bytes = machine.packet.len() as u64;
    let Machine { tables, frame, .. } = machine;
    let entries = &mut tables[table];
    let found = entries.lookup(keys, bytes);
    let call = entries.call(found.entry, keys);
    if let Some(info) = entries.info.actions.get(call.action) {
        for (value, parameter) in call.data.iter().zip(&info.parameters) {
            let word = parameter.slot.word as usize;
            frame[word..word + value.len()].copy_from_slice(value);
        }
    }
    let result = call.action as u64 | u64::from(found.entry.is_some()) << 32;
    if entries.info.meter.is_some() || entries.info.add_on_miss {
        machine.last_table = Some(table);
        machine.keys.clear();
        machine.keys.extend_from_slice(keys);
    }
    machine.last_hit[table] = found.entry;
    result
}

fn apply(machine: &mut Machine, table: usize, keys: &[Operand], hit: Slot, action: Slot) {
    let mut words = Vec::new();
    for key in keys {
        words.extend_from_slice(machine.limbs(key));
    }
    let result = apply_words(machine, table, &words);
    machine.set_small(hit, result >> 32);
    machine.set_small(action, result & u64::from(u32::MAX));
    machine.note(|machine| {
        let entries = &machine.tables[table];
        let names = entries.info.keys.iter().zip(keys);
        let keys = names.map(|(info, key)| FieldValue { name: info.name.to_string(), value: hex(machine.limbs(key)) });
        let entry = machine.last_hit[table].and_then(|number| entries.entry(number));
        let entry = entry.map(|entry| entry.keys.iter().map(show_match).collect::<Vec<_>>().join(", "));
        Some(Event::Table { table: entries.info.path.to_string(), keys: keys.collect(), hit: entry.is_some(), entry })
    });
}

fn tell(note: &Note, machine: &mut Machine) {
    machine.note(|machine| match note {
        Note::State(name) => Some(Event::State { name: name.to_string() }),
        Note::Action(table, position) => {
            let action = &machine.ir.tables[*table].actions[*position];
            let data = action.parameters.iter();
            let data = data.map(|p| FieldValue { name: p.name.to_string(), value: hex(machine.slot(p.slot)) });
            Some(Event::Action { action: action.path.to_string(), data: data.collect() })
        }
        Note::Assign(slot) => {
            let value = field_value(machine, field_at(&machine.ir, slot.word)?);
            Some(Event::Assign { field: value.name, value: value.value })
        }
    });
}
