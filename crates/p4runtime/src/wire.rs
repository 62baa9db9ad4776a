//! Matches, actions, rates and counts as the wire has them.

use nicforge_flexnic::p4::hir::MatchKind;
use nicforge_flexnic::p4::ir::{ActionCall, ActionInfo, KeyInfo, Match, TableInfo};
use nicforge_flexnic::p4::meter::{Meter, MeterRates};
use nicforge_flexnic::p4::tables::Entry;

use crate::ids::given_id;
use crate::info::Info;
use crate::proto::p4::v1 as p4;
use crate::refusal::Refusal;
use crate::types::is_string;
use crate::values::{from_bytes, to_bytes};
use p4::field_match::FieldMatchType;

/// Keys that entries give, with their ids.
pub fn keys(table: &TableInfo) -> impl Iterator<Item = (u32, &KeyInfo)> {
    let keys = table.keys.iter().filter(|key| key.kind != MatchKind::Selector);
    keys.enumerate().map(|(at, key)| (given_id(&key.annotations).unwrap_or(at as u32 + 1), key))
}

fn param_id(at: usize, action: &ActionInfo) -> u32 {
    given_id(&action.parameters[at].annotations).unwrap_or(at as u32 + 1)
}

/// The matches of an entry in the order of the keys.
pub fn parse_matches(table: &TableInfo, fields: &[p4::FieldMatch]) -> Result<Vec<Match>, Refusal> {
    let known: Vec<(u32, &KeyInfo)> = keys(table).collect();
    for (at, field) in fields.iter().enumerate() {
        if !known.iter().any(|(id, _)| *id == field.field_id) {
            return Err(Refusal::invalid(format!("table `{}` has no match field {}", table.path, field.field_id)));
        }
        if fields[..at].iter().any(|other| other.field_id == field.field_id) {
            return Err(Refusal::invalid(format!("match field {} is given twice", field.field_id)));
        }
    }
    let mut found = Vec::new();
    for (id, key) in known {
        let given = fields.iter().find(|field| field.field_id == id);
        let given = given.map(|field| field.field_match_type.as_ref());
        let wrong =
            |why: &str| Refusal::invalid(format!("match field `{}` of table `{}`: {why}", key.name, table.path));
        found.push(match given {
            None if key.kind == MatchKind::Exact => return Err(wrong("an exact key needs a value")),
            None => Match::Any,
            Some(None) => return Err(wrong("it has no value")),
            Some(Some(given)) => parse_match(key, given, &wrong)?,
        });
    }
    Ok(found)
}

fn parse_match(key: &KeyInfo, given: &FieldMatchType, wrong: &dyn Fn(&str) -> Refusal) -> Result<Match, Refusal> {
    if is_string(&key.ty) {
        return Err(Refusal::unimplemented(format!(
            "`{}` is translated to strings, which this NIC does not do",
            key.name
        )));
    }
    let value = |bytes: &[u8]| {
        from_bytes(bytes, key.width).map_err(|error| {
            let refusal = Refusal::from(error);
            Refusal { message: format!("match field `{}`: {}", key.name, refusal.message), ..refusal }
        })
    };
    match (key.kind, given) {
        (MatchKind::Exact, FieldMatchType::Exact(exact)) => Ok(Match::Exact(value(&exact.value)?)),
        (MatchKind::Optional, FieldMatchType::Optional(exact)) => Ok(Match::Exact(value(&exact.value)?)),
        (MatchKind::Lpm, FieldMatchType::Lpm(lpm)) => {
            let length = u32::try_from(lpm.prefix_len).ok().filter(|length| (1..=key.width).contains(length));
            let length =
                length.ok_or_else(|| wrong("a prefix has 1 to all bits; leave the field out for all values"))?;
            let value = value(&lpm.value)?;
            if !is_masked(&value, &prefix(key.width, length)) {
                return Err(wrong("bits after the prefix must be 0"));
            }
            Ok(Match::Lpm(value, length))
        }
        (MatchKind::Ternary, FieldMatchType::Ternary(ternary)) => {
            let (value, mask) = (value(&ternary.value)?, value(&ternary.mask)?);
            if mask.iter().all(|word| *word == 0) {
                return Err(wrong("the mask is 0; leave the field out for all values"));
            }
            if !is_masked(&value, &mask) {
                return Err(wrong("bits outside of the mask must be 0"));
            }
            Ok(Match::Ternary(value, mask))
        }
        (MatchKind::Range, FieldMatchType::Range(range)) => {
            let (low, high) = (value(&range.low)?, value(&range.high)?);
            if low.iter().rev().gt(high.iter().rev()) {
                return Err(wrong("the low end lies above the high end"));
            }
            if low.iter().all(|word| *word == 0) && high == prefix(key.width, key.width) {
                return Err(wrong("the range holds all values; leave the field out"));
            }
            Ok(Match::Range(low, high))
        }
        _ => Err(wrong(&format!("it is matched as {:?}", key.kind))),
    }
}

/// A mask of the `ones` highest of `width` bits.
fn prefix(width: u32, ones: u32) -> Vec<u64> {
    let mut mask = vec![0u64; (width as usize).div_ceil(64).max(1)];
    for bit in width - ones..width {
        mask[(bit / 64) as usize] |= 1 << (bit % 64);
    }
    mask
}

fn is_masked(value: &[u64], mask: &[u64]) -> bool {
    value.iter().zip(mask).all(|(value, mask)| value & !mask == 0)
}

/// The matches of an entry as the wire has them; what matches everything is left out.
pub fn show_matches(table: &TableInfo, entry: &Entry) -> Vec<p4::FieldMatch> {
    let show = |(id, key): (u32, &KeyInfo), given: &Match| {
        let shown = match given {
            Match::Any => return None,
            Match::Exact(value) if key.kind == MatchKind::Optional => {
                FieldMatchType::Optional(p4::field_match::Optional { value: to_bytes(value) })
            }
            Match::Exact(value) => FieldMatchType::Exact(p4::field_match::Exact { value: to_bytes(value) }),
            Match::Lpm(_, 0) => return None,
            Match::Lpm(value, length) => {
                FieldMatchType::Lpm(p4::field_match::Lpm { value: to_bytes(value), prefix_len: *length as i32 })
            }
            Match::Ternary(_, mask) if mask.iter().all(|word| *word == 0) => return None,
            Match::Ternary(value, mask) => {
                FieldMatchType::Ternary(p4::field_match::Ternary { value: to_bytes(value), mask: to_bytes(mask) })
            }
            Match::Range(low, high) => {
                FieldMatchType::Range(p4::field_match::Range { low: to_bytes(low), high: to_bytes(high) })
            }
        };
        Some(p4::FieldMatch { field_id: id, field_match_type: Some(shown) })
    };
    keys(table).zip(&entry.keys).filter_map(|(key, given)| show(key, given)).collect()
}

/// An action with its data as a table runs it.
pub fn parse_action(info: &Info, table: &TableInfo, action: &p4::Action) -> Result<ActionCall, Refusal> {
    let name = info.actions.get(&action.action_id);
    let name = name.ok_or_else(|| Refusal::missing(format!("there is no action {:#010x}", action.action_id)))?;
    let position = table.actions.iter().position(|known| *known.path == **name);
    let position =
        position.ok_or_else(|| Refusal::invalid(format!("table `{}` has no action `{name}`", table.path)))?;
    let known = &table.actions[position];
    let count = known.parameters.len();
    if action.params.len() != count {
        let message = format!("action `{name}` takes {count} parameters, not {}", action.params.len());
        return Err(Refusal::invalid(message));
    }
    let mut data = Vec::new();
    for (at, parameter) in known.parameters.iter().enumerate() {
        let id = param_id(at, known);
        let given = action.params.iter().find(|param| param.param_id == id);
        let given = given.ok_or_else(|| Refusal::invalid(format!("action `{name}`: parameter {id} is missing")))?;
        if is_string(&parameter.ty) {
            let message = format!("`{}` is translated to strings, which this NIC does not do", parameter.name);
            return Err(Refusal::unimplemented(message));
        }
        data.push(from_bytes(&given.value, parameter.slot.width).map_err(|error| {
            let refusal = Refusal::from(error);
            Refusal { message: format!("parameter `{}` of `{name}`: {}", parameter.name, refusal.message), ..refusal }
        })?);
    }
    Ok(ActionCall { action: position, data })
}

/// An action with its data as the wire has it.
pub fn show_action(info: &Info, table: &TableInfo, call: &ActionCall) -> p4::Action {
    let action = &table.actions[call.action];
    let params = call
        .data
        .iter()
        .enumerate()
        .map(|(at, value)| p4::action::Param { param_id: param_id(at, action), value: to_bytes(value) });
    p4::Action { action_id: info.action_id(&action.path), params: params.collect() }
}

/// Rates of a meter, checked.
pub fn parse_rates(config: &p4::MeterConfig) -> Result<MeterRates, Refusal> {
    let number = |value: i64| u64::try_from(value).map_err(|_| Refusal::invalid("rates and bursts are not negative"));
    Ok(MeterRates {
        committed: number(config.cir)?,
        committed_burst: number(config.cburst)?,
        peak: number(config.pir)?,
        peak_burst: number(config.pburst)?,
    })
}

/// Rates of a meter as the wire has them.
pub fn show_rates(meter: &Meter) -> Option<p4::MeterConfig> {
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    meter.rates().map(|rates| p4::MeterConfig {
        cir: number(rates.committed),
        cburst: number(rates.committed_burst),
        pir: number(rates.peak),
        pburst: number(rates.peak_burst),
        eburst: 0,
    })
}

/// Packets and bytes as the wire has them.
pub fn show_counts(counts: (u64, u64)) -> p4::CounterData {
    p4::CounterData { packet_count: counts.0 as i64, byte_count: counts.1 as i64 }
}

/// Packets and bytes, checked.
pub fn parse_counts(data: &p4::CounterData) -> Result<(u64, u64), Refusal> {
    let number = |value: i64| u64::try_from(value).map_err(|_| Refusal::invalid("a counter is not negative"));
    Ok((number(data.packet_count)?, number(data.byte_count)?))
}
