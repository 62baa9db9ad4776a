//! Table entries on the wire and in the pipeline.

use nicforge_flexnic::p4::hir::MatchKind;
use nicforge_flexnic::p4::ir::{ActionCall, ActionInfo, KeyInfo, Match, TableInfo};
use nicforge_flexnic::p4::meter::{Meter, MeterRates};
use nicforge_flexnic::p4::tables::{Entry, EntryAction, Target, Update};
use tonic::Code;

use crate::control::{Control, Undo};
use crate::device::Indirect;
use crate::ids::given_id;
use crate::info::Info;
use crate::proto::p4::v1 as p4;
use crate::refusal::Refusal;
use crate::types::is_string;
use crate::values::{from_bytes, to_bytes};
use p4::field_match::FieldMatchType;
use p4::table_action::Type as ActionType;
use p4::update::Type;

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

impl<'a> Control<'a> {
    /// Number and description of a table.
    pub(crate) fn table(&self, id: u32) -> Result<(usize, &'a TableInfo), Refusal> {
        let number = self.info.tables.get(&id).copied();
        let number = number.ok_or_else(|| Refusal::missing(format!("there is no table {id:#010x}")))?;
        let program: &'a nicforge_flexnic::p4::Program = self.program;
        Ok((number, &program.tables()[number]))
    }

    /// The number of an entry in the pipeline.
    pub(crate) fn entry_number(&self, entry: &p4::TableEntry) -> Result<(usize, usize), Refusal> {
        let (number, table) = self.table(entry.table_id)?;
        let wanted = plain_entry(table, entry)?;
        let found = self.pipeline.tables()[number].number_of(&wanted)?;
        Ok((number, found.ok_or_else(|| Refusal::missing(format!("table `{}` has no such entry", table.path)))?))
    }

    pub(crate) fn table_entry(&mut self, kind: Type, entry: &p4::TableEntry) -> Result<Undo, Refusal> {
        let (number, table) = self.table(entry.table_id)?;
        if entry.idle_timeout_ns != 0 {
            return Err(Refusal::unimplemented("entries do not time out here"));
        }
        if entry.is_default_action {
            return self.default_action(kind, number, table, entry);
        }
        let mut wanted = plain_entry(table, entry)?;
        let indirect = match kind {
            Type::Delete => None,
            _ => {
                let (action, indirect) = self.entry_action(table, entry.action.as_ref())?;
                wanted.action = action;
                indirect
            }
        };
        if let Some(data) = &entry.counter_data {
            if table.counter.is_none() {
                return Err(Refusal::invalid(format!("table `{}` has no direct counter", table.path)));
            }
            wanted.hits = parse_counts(data)?;
        }
        if let Some(config) = &entry.meter_config {
            if table.meter.is_none() {
                return Err(Refusal::invalid(format!("table `{}` has no direct meter", table.path)));
            }
            wanted.meter.set(Some(parse_rates(config)?));
        }
        match kind {
            Type::Insert => self.insert(number, wanted, indirect, entry),
            Type::Modify => self.modify(number, wanted, indirect, entry),
            _ => self.delete(number, wanted),
        }
    }

    fn insert(
        &mut self,
        table: usize,
        wanted: Entry,
        indirect: Option<Indirect>,
        entry: &p4::TableEntry,
    ) -> Result<Undo, Refusal> {
        self.pipeline.update(vec![Target { table, update: Update::Insert(wanted.clone()) }])?;
        if let Some(number) = self.pipeline.tables()[table].number_of(&wanted)? {
            self.remember((table, number), indirect, entry);
        }
        Ok(Box::new(move |control| drop(control.delete(table, wanted))))
    }

    fn remember(&mut self, at: (usize, usize), indirect: Option<Indirect>, entry: &p4::TableEntry) {
        match indirect {
            Some(indirect) => drop(self.known.indirect.insert(at, indirect)),
            None => drop(self.known.indirect.remove(&at)),
        }
        if entry.metadata.is_empty() {
            self.known.metadata.remove(&at);
        } else {
            self.known.metadata.insert(at, entry.metadata.clone());
        }
    }

    fn modify(
        &mut self,
        table: usize,
        wanted: Entry,
        indirect: Option<Indirect>,
        entry: &p4::TableEntry,
    ) -> Result<Undo, Refusal> {
        let path = self.pipeline.ir().tables[table].path.clone();
        let missing = || Refusal::missing(format!("table `{path}` has no such entry"));
        let number = self.pipeline.tables()[table].number_of(&wanted)?.ok_or_else(missing)?;
        let old = self.pipeline.tables()[table].entry(number).cloned().ok_or_else(missing)?;
        let before =
            (self.known.indirect.get(&(table, number)).cloned(), self.known.metadata.get(&(table, number)).cloned());
        self.pipeline.update(vec![Target { table, update: Update::Modify(wanted.clone()) }])?;
        if let Some((hits, meter)) = self.pipeline.entry_state(table, number) {
            if entry.counter_data.is_some() {
                *hits = wanted.hits;
            }
            if entry.meter_config.is_some() {
                *meter = wanted.meter;
            }
        }
        self.remember((table, number), indirect, entry);
        Ok(Box::new(move |control| {
            // The entry was there, so it can be what it was.
            let _ = control.pipeline.update(vec![Target { table, update: Update::Modify(old.clone()) }]);
            if let Some((hits, meter)) = control.pipeline.entry_state(table, number) {
                (*hits, *meter) = (old.hits, old.meter);
            }
            let metadata = before.1.unwrap_or_default();
            control.remember((table, number), before.0, &p4::TableEntry { metadata, ..Default::default() });
        }))
    }

    fn delete(&mut self, table: usize, wanted: Entry) -> Result<Undo, Refusal> {
        let path = self.pipeline.ir().tables[table].path.clone();
        let missing = || Refusal::missing(format!("table `{path}` has no such entry"));
        let number = self.pipeline.tables()[table].number_of(&wanted)?.ok_or_else(missing)?;
        let old = self.pipeline.tables()[table].entry(number).cloned().ok_or_else(missing)?;
        self.pipeline.update(vec![Target { table, update: Update::Delete(wanted) }])?;
        let indirect = self.known.indirect.remove(&(table, number));
        let metadata = self.known.metadata.remove(&(table, number)).unwrap_or_default();
        Ok(Box::new(move |control| {
            let entry = p4::TableEntry { metadata, ..Default::default() };
            drop(control.insert(table, old, indirect, &entry));
        }))
    }

    fn default_action(
        &mut self,
        kind: Type,
        number: usize,
        table: &TableInfo,
        entry: &p4::TableEntry,
    ) -> Result<Undo, Refusal> {
        if kind != Type::Modify {
            return Err(Refusal::invalid("a default action can only be modified"));
        }
        if !entry.r#match.is_empty() || entry.priority != 0 {
            return Err(Refusal::invalid("a default action has neither match fields nor a priority"));
        }
        let update = match entry.action.as_ref().and_then(|action| action.r#type.as_ref()) {
            None => Update::ResetDefault,
            Some(ActionType::Action(action)) => Update::SetDefault(parse_action(self.info, table, action)?),
            Some(_) => return Err(Refusal::invalid("a default action is an action, no member or group")),
        };
        let old = self.pipeline.tables()[number].default.clone();
        self.pipeline.update(vec![Target { table: number, update }])?;
        Ok(Box::new(move |control| {
            // It was the default before.
            let _ = control.pipeline.update(vec![Target { table: number, update: Update::SetDefault(old) }]);
        }))
    }

    fn entry_action(
        &self,
        table: &TableInfo,
        action: Option<&p4::TableAction>,
    ) -> Result<(EntryAction, Option<Indirect>), Refusal> {
        let given = action.and_then(|action| action.r#type.as_ref());
        let given = given.ok_or_else(|| Refusal::invalid("the entry has no action"))?;
        let Some(profile) = table.profile else {
            let ActionType::Action(action) = given else {
                return Err(Refusal::invalid(format!("table `{}` has no action profile", table.path)));
            };
            return Ok((EntryAction::Call(parse_action(self.info, table, action)?), None));
        };
        let profile = self.info.object_id(profile);
        match given {
            ActionType::Action(_) => {
                Err(Refusal::invalid(format!("entries of `{}` name members or groups, no actions", table.path)))
            }
            ActionType::ActionProfileMemberId(id) => {
                let call = self.member_call(table, profile, *id)?;
                Ok((EntryAction::Call(call), Some(Indirect::Member(*id))))
            }
            ActionType::ActionProfileGroupId(id) => {
                let members = self.group_calls(table, profile, *id)?;
                Ok((EntryAction::Group(members), Some(Indirect::Group(*id))))
            }
            ActionType::ActionProfileActionSet(set) => {
                if !table.has_selector {
                    return Err(Refusal::invalid(format!("table `{}` has no selector", table.path)));
                }
                let mut members = Vec::new();
                for member in &set.action_profile_actions {
                    let action = member.action.as_ref().ok_or_else(|| Refusal::invalid("a member has no action"))?;
                    let weight = u32::try_from(member.weight).ok().filter(|weight| *weight > 0);
                    let weight = weight.ok_or_else(|| Refusal::invalid("the weight of a member is at least 1"))?;
                    members.push((weight, parse_action(self.info, table, action)?));
                }
                if members.is_empty() {
                    return Err(Refusal::invalid("the set of actions is empty"));
                }
                Ok((EntryAction::Group(members), None))
            }
        }
    }
}

/// Keys and priority of an entry, with an action that does not count.
fn plain_entry(table: &TableInfo, entry: &p4::TableEntry) -> Result<Entry, Refusal> {
    let keys = parse_matches(table, &entry.r#match)?;
    let ranked = |key: &KeyInfo| matches!(key.kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional);
    let needs_priority = table.keys.iter().any(ranked);
    if needs_priority && entry.priority <= 0 {
        return Err(Refusal::invalid(format!("entries of `{}` need a priority of at least 1", table.path)));
    }
    if !needs_priority && entry.priority != 0 {
        return Err(Refusal::new(Code::InvalidArgument, format!("entries of `{}` have no priority", table.path)));
    }
    Ok(Entry {
        keys,
        priority: i64::from(entry.priority),
        action: EntryAction::Call(ActionCall::default()),
        is_const: false,
        hits: (0, 0),
        meter: Meter::default(),
    })
}
