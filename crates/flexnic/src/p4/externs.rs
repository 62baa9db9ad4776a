//! Functions of the architectures at run time.

use rand_core::RngCore;

use super::bits::BitString;
use super::dma::{AtomicOp, Direction, Refusal, TRANSFERS_MAX, Transfer};
use super::hash::{self, hash};
use super::ir::{Datum, ExternFunction, ExternOp, HashKind, ObjectKind, Slot};
use super::machine::{CloneRequest, Digest, Machine, ObjectState, function_name};
use super::meter::Color;
use super::trace::{Event, hex, to_big};

/// The first value of an argument, if it has at most 64 bits.
fn number(machine: &Machine, op: &ExternOp, at: usize) -> u64 {
    op.inputs.get(at).and_then(|data| data.first()).map_or(0, |datum| machine.small(&datum.value))
}

/// An argument as bits in order.
fn data(machine: &Machine, data: &[Datum]) -> BitString {
    let mut string = BitString::default();
    for datum in data {
        let limbs = machine.limbs(&datum.value);
        if datum.varbit {
            string.push(limbs[0] as u32, &limbs[1..]);
        } else {
            string.push(datum.value.width(), limbs);
        }
    }
    string
}

fn values(machine: &Machine, data: &[Datum]) -> Vec<(u32, Vec<u64>)> {
    data.iter().map(|datum| (datum.value.width(), machine.limbs(&datum.value).to_vec())).collect()
}

fn output(machine: &mut Machine, op: &ExternOp, value: u64) {
    if let Some(slot) = op.outputs.first() {
        machine.set_small(*slot, value);
    }
}

/// Calls a function.
pub(crate) fn call(op: &ExternOp, machine: &mut Machine) {
    match &op.function {
        ExternFunction::CounterCount => count(machine, op),
        ExternFunction::MeterExecute => meter(machine, op),
        ExternFunction::DirectMeterRead => direct_meter(machine, op),
        ExternFunction::RegisterRead => register_read(machine, op),
        ExternFunction::RegisterWrite => register_write(machine, op),
        ExternFunction::Random => random(machine, op),
        ExternFunction::Digest => digest(machine, op),
        ExternFunction::Hash(kind) => hash_call(machine, op, *kind),
        ExternFunction::VerifyChecksum { .. } | ExternFunction::UpdateChecksum { .. } => checksum(machine, op),
        ExternFunction::ChecksumClear
        | ExternFunction::ChecksumAdd
        | ExternFunction::ChecksumSubtract
        | ExternFunction::ChecksumGet
        | ExternFunction::ChecksumState
        | ExternFunction::ChecksumSetState => incremental(machine, op),
        ExternFunction::Clone { from_egress, list } => {
            let session = number(machine, op, 1);
            machine.effects.clone = Some(CloneRequest { from_egress: *from_egress, session, list: *list });
        }
        ExternFunction::Resubmit(list) => machine.effects.resubmit = Some(*list),
        ExternFunction::Recirculate(list) => machine.effects.recirculate = Some(*list),
        ExternFunction::Truncate => machine.effects.truncate = Some(number(machine, op, 0)),
        ExternFunction::Assert | ExternFunction::Assume => {
            if number(machine, op, 0) == 0 {
                machine.effects.failed_assertion = true;
            }
        }
        ExternFunction::LogMessage(format) => log(machine, op, format),
        ExternFunction::DropPacket => machine.effects.drop = true,
        ExternFunction::Consume => (machine.effects.drop, machine.effects.consumed) = (true, true),
        ExternFunction::SendToPort => {
            machine.effects.port = Some(number(machine, op, 0));
            machine.effects.drop = false;
        }
        ExternFunction::MirrorPacket => {
            let mirror = (number(machine, op, 0), number(machine, op, 1));
            machine.effects.mirrors.push(mirror);
        }
        ExternFunction::AllocateFlowId => {
            machine.flow_id = machine.flow_id.wrapping_add(1);
            let id = machine.flow_id;
            output(machine, op, u64::from(id));
        }
        ExternFunction::AddEntry { action } => add_entry(machine, op, action),
        ExternFunction::SetEntryExpireTime | ExternFunction::RestartExpireTimer => {}
        ExternFunction::SetMark
        | ExternFunction::SetFlags
        | ExternFunction::SetQueue
        | ExternFunction::Dma(_)
        | ExternFunction::Refuse
        | ExternFunction::CopyTo => verb(machine, op),
    }
    machine.note(|machine| {
        let shown =
            |data: &Vec<Datum>| data.iter().map(|datum| hex(machine.limbs(&datum.value))).collect::<Vec<_>>().join(" ");
        Some(Event::Extern {
            function: function_name(&op.function).to_string(),
            inputs: op.inputs.iter().map(shown).collect(),
            outputs: op.outputs.iter().map(|slot| hex(machine.slot(*slot))).collect(),
        })
    });
}

/// Queues a digest for its receiver. An object's receiver is the object; a function names the receiver first.
fn digest(machine: &mut Machine, op: &ExternOp) {
    let (receiver, last) = match op.object {
        Some(object) => (object as u64, op.inputs.last()),
        None => (number(machine, op, 0), op.inputs.get(1)),
    };
    let values = values(machine, last.map_or(&[][..], |data| data));
    machine.effects.digests.push(Digest { receiver, values });
}

/// Verbs of flexnic.p4.
fn verb(machine: &mut Machine, op: &ExternOp) {
    let first = number(machine, op, 0);
    match &op.function {
        ExternFunction::SetMark => machine.effects.mark = first,
        ExternFunction::SetFlags => machine.effects.flags = first as u32,
        ExternFunction::SetQueue => machine.effects.queue = Some(first as u16),
        ExternFunction::Dma(direction) => transfer(machine, op, *direction),
        ExternFunction::Refuse => machine.effects.refusal = Some(Refusal::of(first)),
        _ => {
            let copy = (first, number(machine, op, 1));
            machine.effects.copies.push(copy);
        }
    }
}

/// FlexNIC: notes a transfer for the DMA engine.
fn transfer(machine: &mut Machine, op: &ExternOp, direction: Option<Direction>) {
    let transfers = &machine.effects.transfers;
    if transfers.len() >= TRANSFERS_MAX {
        machine.effects.too_many_transfers = true;
        return;
    }
    let transfer = if let Some(direction) = direction {
        Transfer {
            offset: number(machine, op, 1) as u32,
            length: number(machine, op, 2) as u32,
            direction,
            address: number(machine, op, 0),
            cache: 0,
            core: 0,
            atomic: None,
        }
    } else {
        let field = |at: usize| {
            op.inputs.first().and_then(|fields| fields.get(at)).map_or(0, |datum| machine.small(&datum.value))
        };
        Transfer {
            offset: field(0) as u32,
            length: field(1) as u32,
            direction: if field(2) == 0 { Direction::ToMemory } else { Direction::FromMemory },
            address: field(3),
            cache: field(4) as u8,
            core: field(5) as u8,
            atomic: AtomicOp::of(field(6)),
        }
    };
    machine.effects.transfers.push(transfer);
}

/// PNA: the table that was looked up last gets an entry for the keys that it missed.
fn add_entry(machine: &mut Machine, op: &ExternOp, action: &str) {
    let data: Vec<Vec<u64>> =
        op.inputs.get(1).into_iter().flatten().map(|datum| machine.limbs(&datum.value).to_vec()).collect();
    let added = machine.last_table.is_some_and(|number| {
        let keys = machine.keys.clone();
        let table = &mut machine.tables[number];
        table.info.add_on_miss && table.add_missed(&keys, action, data)
    });
    output(machine, op, u64::from(added));
}

fn count(machine: &mut Machine, op: &ExternOp) {
    let index = number(machine, op, 0) as usize;
    let bytes = machine.packet.len() as u64;
    if let Some(ObjectState::Counter(all)) = op.object.and_then(|object| machine.objects.get_mut(object))
        && let Some(counter) = all.get_mut(index)
    {
        counter.0 += 1;
        counter.1 += bytes;
    }
}

fn units(machine: &Machine, object: Option<usize>) -> u64 {
    let kind = object.map(|object| &machine.ir.objects[object].kind);
    match kind {
        Some(ObjectKind::Meter { bytes: true, .. } | ObjectKind::DirectMeter { bytes: true }) => {
            machine.packet.len() as u64
        }
        _ => 1,
    }
}

/// v1model counts green as 0, PNA has its own order of colours: red, green, yellow.
fn color_number(machine: &Machine, object: Option<usize>, color: Color, slot: Option<&Slot>) -> u64 {
    let is_pna = object.is_some() && slot.is_some_and(|slot| slot.width == 32) && machine.ir.is_pna;
    match color {
        Color::Green => u64::from(is_pna),
        Color::Yellow => 1 + u64::from(is_pna),
        Color::Red => 2 * u64::from(!is_pna),
    }
}

fn meter(machine: &mut Machine, op: &ExternOp) {
    let (index, units, now) = (number(machine, op, 0) as usize, units(machine, op.object), machine.now);
    let color = match op.object.and_then(|object| machine.objects.get_mut(object)) {
        Some(ObjectState::Meter(all)) => all.get_mut(index).map_or(Color::Green, |meter| meter.execute(units, now)),
        _ => Color::Green,
    };
    let value = color_number(machine, op.object, color, op.outputs.first());
    output(machine, op, value);
}

fn direct_meter(machine: &mut Machine, op: &ExternOp) {
    let (units, now) = (units(machine, op.object), machine.now);
    let entry = machine.last_table.and_then(|table| Some((table, machine.last_hit[table]?)));
    let entry = entry.and_then(|(table, number)| machine.tables[table].entry_mut(number));
    let color = entry.map_or(Color::Green, |entry| entry.meter.execute(units, now));
    let value = color_number(machine, op.object, color, op.outputs.first());
    output(machine, op, value);
}

fn register_read(machine: &mut Machine, op: &ExternOp) {
    let index = op.inputs.iter().find_map(|data| data.first()).map_or(0, |datum| machine.small(&datum.value)) as usize;
    let Some(ObjectState::Register { stride, words }) = op.object.map(|object| &machine.objects[object]) else {
        return;
    };
    let start = index.saturating_mul(*stride);
    // An index outside reads zero.
    let element = words.get(start..start + stride).map_or_else(|| vec![0; *stride], <[u64]>::to_vec);
    let mut at = 0;
    for slot in &op.outputs {
        machine.set_limbs(*slot, &element[at..at + slot.words()]);
        at += slot.words();
    }
}

fn register_write(machine: &mut Machine, op: &ExternOp) {
    let index = number(machine, op, 0) as usize;
    let mut element = Vec::new();
    for datum in op.inputs.get(1).map_or(&[][..], |data| data) {
        element.extend_from_slice(machine.limbs(&datum.value));
    }
    if let Some(ObjectState::Register { stride, words }) = op.object.map(|object| &mut machine.objects[object]) {
        let start = index.saturating_mul(*stride);
        if let Some(place) = words.get_mut(start..start + *stride) {
            place.copy_from_slice(&element);
        }
    }
}

fn random(machine: &mut Machine, op: &ExternOp) {
    let (low, high) = match op.object.map(|object| &machine.ir.objects[object].kind) {
        Some(ObjectKind::Random { low, high }) => (*low, *high),
        _ => (number(machine, op, 0), number(machine, op, 1)),
    };
    let span = high.wrapping_sub(low).wrapping_add(1);
    let value = machine.random.next_u64();
    let value = if high < low {
        low
    } else if span == 0 {
        value
    } else {
        low + value % span
    };
    output(machine, op, value);
}

fn hash_call(machine: &mut Machine, op: &ExternOp, kind: HashKind) {
    // v1model: algorithm, base, data, max; PNA: data, or base, data, max; Checksum16: data.
    let (base, what, max) = match op.inputs.len() {
        4 => (number(machine, op, 1), &op.inputs[2], Some(number(machine, op, 3))),
        3 => (number(machine, op, 0), &op.inputs[1], Some(number(machine, op, 2))),
        _ => (0, &op.inputs[0], None),
    };
    let value = hash(kind, &data(machine, what));
    let value = max.map_or(value, |max| hash::in_range(value, base, max));
    output(machine, op, value);
}

fn checksum(machine: &mut Machine, op: &ExternOp) {
    let (kind, with_payload, verifies) = match op.function {
        ExternFunction::VerifyChecksum { kind, with_payload } => (kind, with_payload, true),
        ExternFunction::UpdateChecksum { kind, with_payload } => (kind, with_payload, false),
        _ => return,
    };
    if number(machine, op, 0) == 0 {
        return;
    }
    let mut covered = data(machine, &op.inputs[1]);
    if with_payload {
        covered.push_bits(&machine.packet, machine.registers.cursor as usize);
    }
    let value = hash(kind, &covered);
    if !verifies {
        output(machine, op, value);
        return;
    }
    let width = op.inputs[2].first().map_or(16, |datum| datum.value.width());
    let mask = if width >= 64 { u64::MAX } else { (1 << width) - 1 };
    if number(machine, op, 2) != value & mask {
        output(machine, op, 1);
    }
}

fn incremental(machine: &mut Machine, op: &ExternOp) {
    let Some(object) = op.object else { return };
    let ObjectState::Checksum(sum) = machine.objects[object] else { return };
    let input = op.inputs.first().map(|input| data(machine, input)).unwrap_or_default();
    let new = match op.function {
        ExternFunction::ChecksumClear => 0,
        ExternFunction::ChecksumAdd => hash::fold(u64::from(sum) + u64::from(hash::ones_sum(&input.bytes))),
        ExternFunction::ChecksumSubtract => hash::fold(u64::from(sum) + u64::from(!hash::ones_sum(&input.bytes))),
        ExternFunction::ChecksumSetState => number(machine, op, 0) as u16,
        ExternFunction::ChecksumGet => {
            output(machine, op, u64::from(!sum));
            return;
        }
        _ => {
            output(machine, op, u64::from(sum));
            return;
        }
    };
    machine.objects[object] = ObjectState::Checksum(new);
}

/// Messages that one packet may log.
const LOG_MAX: usize = 64;

fn log(machine: &mut Machine, op: &ExternOp, format: &str) {
    if machine.effects.log.len() >= LOG_MAX {
        return;
    }
    let mut text = String::new();
    let mut data = op.inputs.last().map_or(&[][..], |data| data).iter();
    let mut parts = format.split("{}");
    text.push_str(parts.next().unwrap_or(""));
    for part in parts {
        let value = data.next().map(|datum| to_big(machine.limbs(&datum.value)).to_string());
        text.push_str(value.as_deref().unwrap_or("{}"));
        text.push_str(part);
    }
    machine.note(|_| Some(Event::Log { message: text.clone() }));
    machine.effects.log.push(text);
}
