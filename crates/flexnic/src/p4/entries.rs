//! Entries, default actions, multicast groups and mirroring sessions from a TOML file.

use std::collections::BTreeMap;
use std::ops::Range;

use num_bigint::BigUint;
use num_traits::Zero;
use serde::Deserialize;
use toml::Spanned;

use super::hir::MatchKind;
use super::ir::{ActionCall, KeyInfo, Match, TableInfo, words};
use super::lexer;
use super::machine::ObjectState;
use super::meter::MeterRates;
use super::names;
use super::pipeline::Pipeline;
use super::switch::Session;
use super::tables::{Entry, EntryAction, Target, Update};

/// An error in a file of entries, and its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct EntriesError {
    /// Line from 1.
    pub line: usize,
    /// The mistake, and the remedy.
    pub message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    entry: Vec<Spanned<EntryText>>,
    #[serde(default)]
    default: Vec<Spanned<DefaultText>>,
    #[serde(default)]
    multicast: Vec<Spanned<MulticastText>>,
    #[serde(default)]
    mirror: Vec<Spanned<MirrorText>>,
    #[serde(default)]
    meter: Vec<Spanned<MeterText>>,
    #[serde(default)]
    value_set: Vec<Spanned<ValueSetText>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryText {
    table: String,
    #[serde(default, rename = "match")]
    keys: BTreeMap<String, ValueText>,
    #[serde(default)]
    priority: i64,
    action: Option<String>,
    #[serde(default)]
    data: BTreeMap<String, ValueText>,
    /// Members of a group of actions, for tables with a selector.
    #[serde(default)]
    group: Vec<MemberText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MemberText {
    action: String,
    #[serde(default)]
    data: BTreeMap<String, ValueText>,
    #[serde(default = "one")]
    weight: u32,
}

fn one() -> u32 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DefaultText {
    table: String,
    action: String,
    #[serde(default)]
    data: BTreeMap<String, ValueText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MulticastText {
    group: u64,
    ports: Vec<u64>,
    #[serde(default)]
    rid: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MirrorText {
    session: u64,
    port: Option<u64>,
    group: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MeterText {
    name: String,
    index: usize,
    committed: u64,
    committed_burst: u64,
    peak: u64,
    peak_burst: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ValueSetText {
    name: String,
    members: Vec<Vec<ValueText>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ValueText {
    Number(u64),
    Bool(bool),
    Text(String),
}

impl ValueText {
    fn text(&self) -> String {
        match self {
            ValueText::Number(value) => value.to_string(),
            ValueText::Bool(value) => value.to_string(),
            ValueText::Text(text) => text.clone(),
        }
    }
}

/// Puts what a file says into a pipeline: all of it, or nothing of its entries.
pub fn load(pipeline: &mut Pipeline, text: &str) -> Result<(), EntriesError> {
    let line = |span: Range<usize>| text[..span.start.min(text.len())].matches('\n').count() + 1;
    let file: File = toml::from_str(text)
        .map_err(|error| EntriesError { line: error.span().map_or(1, line), message: error.message().to_owned() })?;
    let mut changes = Vec::new();
    for entry in &file.entry {
        let fail = |message: String| EntriesError { line: line(entry.span()), message };
        let (table, info) = table(pipeline, &entry.get_ref().table).map_err(fail)?;
        let update = Update::Insert(parse_entry(info, entry.get_ref()).map_err(fail)?);
        changes.push((line(entry.span()), Target { table, update }));
    }
    for default in &file.default {
        let fail = |message: String| EntriesError { line: line(default.span()), message };
        let text = default.get_ref();
        let (table, info) = table(pipeline, &text.table).map_err(fail)?;
        let update = Update::SetDefault(call(info, &text.action, &text.data).map_err(fail)?);
        changes.push((line(default.span()), Target { table, update }));
    }
    // One by one, so that an error has its line; the first one takes all back.
    let mut done = Vec::new();
    for (line, Target { table, update }) in changes {
        match pipeline.core.machine.tables[table].update(update) {
            Ok(undo) => done.push((table, undo)),
            Err(error) => {
                for (table, undo) in done.into_iter().rev() {
                    pipeline.core.machine.tables[table].undo(undo);
                }
                return Err(EntriesError { line, message: error.to_string() });
            }
        }
    }
    for group in &file.multicast {
        let MulticastText { group, ports, rid } = group.get_ref();
        let switch = pipeline.switch();
        switch.add_group(*group);
        let node = switch.add_node(*rid, ports.clone());
        switch.associate(*group, node);
    }
    for mirror in &file.mirror {
        let MirrorText { session, port, group } = mirror.get_ref();
        if port.is_some() == group.is_some() {
            let message = "a mirroring session has either a `port` or a `group`".to_owned();
            return Err(EntriesError { line: line(mirror.span()), message });
        }
        pipeline.switch().set_session(*session, Session { port: *port, group: *group });
    }
    for meter in &file.meter {
        set_meter(pipeline, meter.get_ref()).map_err(|message| EntriesError { line: line(meter.span()), message })?;
    }
    for set in &file.value_set {
        fill_set(pipeline, set.get_ref()).map_err(|message| EntriesError { line: line(set.span()), message })?;
    }
    Ok(())
}

fn set_meter(pipeline: &mut Pipeline, text: &MeterText) -> Result<(), String> {
    let Some(ObjectState::Meter(all)) = pipeline.object_named(&text.name) else {
        return Err(format!("there is no meter `{}`", text.name));
    };
    let count = all.len();
    let meter = all.get_mut(text.index).ok_or_else(|| format!("meter `{}` has {count} elements", text.name))?;
    meter.set(Some(MeterRates {
        committed: text.committed,
        committed_burst: text.committed_burst,
        peak: text.peak,
        peak_burst: text.peak_burst,
    }));
    Ok(())
}

fn fill_set(pipeline: &mut Pipeline, text: &ValueSetText) -> Result<(), String> {
    let all: Vec<&str> = pipeline.core.ir.sets.iter().map(|set| &*set.path).collect();
    let number = names::find(&all, &text.name).ok_or_else(|| format!("there is no value set `{}`", text.name))?;
    let widths = pipeline.core.ir.sets[number].widths.clone();
    let size = pipeline.core.ir.sets[number].size as usize;
    for member in &text.members {
        if member.len() != widths.len() {
            return Err(format!("a member of `{}` has {} values, not {}", text.name, widths.len(), member.len()));
        }
        let mut values = Vec::new();
        for (value, width) in member.iter().zip(&widths) {
            let text = value.text();
            let (value, mask) = text.split_once("&&&").unwrap_or((&text, ""));
            let mask = if mask.is_empty() { full_mask(*width) } else { value_of(mask, *width)? };
            values.push((value_of(value, *width)?, mask));
        }
        let members = &mut pipeline.core.machine.sets[number].members;
        if members.len() >= size {
            return Err(format!("value set `{}` holds {size} members", text.name));
        }
        members.push(values);
    }
    Ok(())
}

fn full_mask(width: u32) -> Vec<u64> {
    super::lower_prefix_mask(width, width)
}

fn value_of(text: &str, width: u32) -> Result<Vec<u64>, String> {
    let value = number(text).ok_or_else(|| format!("`{text}` is no number or address"))?;
    limbs_of(&value, width).ok_or_else(|| format!("`{text}` does not fit into {width} bits"))
}

fn table<'p>(pipeline: &'p Pipeline, name: &str) -> Result<(usize, &'p TableInfo), String> {
    let number = pipeline.table_named(name).ok_or_else(|| {
        let known: Vec<&str> = pipeline.core.ir.tables.iter().map(|table| &*table.path).collect();
        format!("there is no table `{name}`, or more than one ends in it; there are {}", known.join(", "))
    })?;
    Ok((number, &pipeline.core.ir.tables[number]))
}

fn parse_entry(info: &TableInfo, text: &EntryText) -> Result<Entry, String> {
    let known: Vec<&str> = info.keys.iter().map(|key| &*key.name).collect();
    let mut found: Vec<Option<Match>> = vec![None; known.len()];
    for (name, value) in &text.keys {
        let at = names::find(&known, name)
            .ok_or_else(|| format!("table `{}` has no key `{name}`; it has {}", info.path, known.join(", ")))?;
        found[at] = Some(parse_key(&info.keys[at], &value.text())?);
    }
    let mut keys = Vec::new();
    for (key, found) in info.keys.iter().zip(found) {
        match found {
            Some(found) => keys.push(found),
            None if key.kind == MatchKind::Selector => {}
            None if key.kind != MatchKind::Exact => keys.push(Match::Any),
            None => return Err(format!("key `{}` has no value", key.name)),
        }
    }
    let action = match (&text.action, &text.group[..]) {
        (Some(action), []) => EntryAction::Call(call(info, action, &text.data)?),
        (None, [_, ..]) => {
            let member = |member: &MemberText| Ok((member.weight, call(info, &member.action, &member.data)?));
            EntryAction::Group(text.group.iter().map(member).collect::<Result<_, String>>()?)
        }
        _ => return Err("an entry has either an `action` or a `group`".to_owned()),
    };
    Ok(Entry { keys, priority: text.priority, action, is_const: false, hits: (0, 0), meter: Default::default() })
}

fn call(info: &TableInfo, name: &str, data: &BTreeMap<String, ValueText>) -> Result<ActionCall, String> {
    let known: Vec<&str> = info.actions.iter().map(|action| &*action.path).collect();
    let action = names::find(&known, name)
        .ok_or_else(|| format!("table `{}` has no action `{name}`; it has {}", info.path, known.join(", ")))?;
    let parameters = &info.actions[action].parameters;
    if let Some(unknown) = data.keys().find(|name| !parameters.iter().any(|parameter| *parameter.name == ***name)) {
        return Err(format!("action `{name}` has no parameter `{unknown}`"));
    }
    let mut values = Vec::new();
    for parameter in parameters {
        let value = data.get(&*parameter.name);
        let value = value.ok_or_else(|| format!("action `{name}` needs a value for `{}`", parameter.name))?;
        values.push(value_of(&value.text(), parameter.slot.width)?);
    }
    Ok(ActionCall { action, data: values })
}

/// `value`, `value/length`, `value &&& mask`, `low .. high`, `_`.
pub(crate) fn parse_key(key: &KeyInfo, text: &str) -> Result<Match, String> {
    let text = text.trim();
    if let Some((_, value)) = key.names.iter().find(|(name, _)| **name == *text) {
        return Ok(Match::Exact(vec![*value]));
    }
    if text == "_" {
        return Ok(Match::Any);
    }
    if let Some((value, length)) = text.split_once('/') {
        let length = length.trim().parse().map_err(|_| format!("`{length}` is no length of a prefix"))?;
        return Ok(Match::Lpm(value_of(value, key.width)?, length));
    }
    if let Some((value, mask)) = text.split_once("&&&") {
        return Ok(Match::Ternary(value_of(value, key.width)?, value_of(mask, key.width)?));
    }
    if let Some((low, high)) = text.split_once("..") {
        return Ok(Match::Range(value_of(low, key.width)?, value_of(high, key.width)?));
    }
    Ok(Match::Exact(value_of(text, key.width)?))
}

/// A number in any base, a MAC address, an IPv4 or IPv6 address.
pub(crate) fn number(text: &str) -> Option<BigUint> {
    let text = text.trim();
    match text {
        "true" => return Some(BigUint::from(1u8)),
        "false" => return Some(BigUint::zero()),
        _ => {}
    }
    if let Ok(number) = lexer::parse_number(&text.replace('_', "")) {
        return number.value.to_biguint();
    }
    if let Ok(address) = text.parse::<std::net::Ipv4Addr>() {
        return Some(BigUint::from(u32::from(address)));
    }
    let parts: Vec<&str> = text.split(':').collect();
    if parts.len() == 6 && parts.iter().all(|part| (1..=2).contains(&part.len())) {
        let mut value = 0u64;
        for part in parts {
            value = value << 8 | u64::from_str_radix(part, 16).ok()?;
        }
        return Some(BigUint::from(value));
    }
    text.parse::<std::net::Ipv6Addr>().ok().map(|address| BigUint::from(u128::from(address)))
}

/// The words of a value, if it fits into `width` bits.
pub(crate) fn limbs_of(value: &BigUint, width: u32) -> Option<Vec<u64>> {
    if value.bits() > u64::from(width) {
        return None;
    }
    let mut limbs: Vec<u64> = value.iter_u64_digits().collect();
    limbs.resize(words(width), 0);
    Some(limbs)
}
