//! Runs the commands of an STF file against a program.

use std::collections::BTreeMap;
use std::path::Path;

use num_bigint::BigUint;
use num_traits::{Num, One};

use super::parse::{self, ActionText, Command, KeyText};
use crate::p4::entries::{self, limbs_of};
use crate::p4::hir::MatchKind;
use crate::p4::ir::{KeyInfo, Match};
use crate::p4::machine::ObjectState;
use crate::p4::meter::MeterRates;
use crate::p4::names;
use crate::p4::tables::{Entry, EntryAction, Target, Update};
use crate::p4::{Engine, Options, OwnedOutput, Pipeline, Program, Session};

/// The outcome of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Packets that were sent.
    pub packets: usize,
    /// Packets that were expected.
    pub expected: usize,
    /// The failures; none for a pass.
    pub failures: Vec<String>,
}

impl Report {
    /// Nothing went wrong.
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }

    fn failed(why: String) -> Report {
        Report { packets: 0, expected: 0, failures: vec![why] }
    }
}

/// Compiles a program and runs its STF file.
pub fn run_file(program: &Path, stf: &Path, options: &Options, engine: Engine) -> Report {
    let compiled = match Program::compile(program, options) {
        Ok(compiled) => compiled,
        Err(errors) => return Report::failed(format!("does not compile:\n{errors}")),
    };
    match std::fs::read_to_string(stf) {
        Ok(text) => run_text(&compiled, &text, engine),
        Err(error) => Report::failed(format!("cannot read `{}`: {error}", stf.display())),
    }
}

/// Runs an STF text.
pub fn run_text(program: &Program, text: &str, engine: Engine) -> Report {
    let commands = match parse::parse(text) {
        Ok(commands) => commands,
        Err(error) => return Report::failed(error.to_string()),
    };
    let pipeline = match program.pipeline(engine, 1) {
        Ok(pipeline) => pipeline,
        Err(error) => return Report::failed(error.to_string()),
    };
    let mut runner = Runner {
        pipeline,
        left: BTreeMap::new(),
        expected: BTreeMap::new(),
        silent: Vec::new(),
        report: Report { packets: 0, expected: 0, failures: Vec::new() },
    };
    for (line, command) in commands {
        if let Err(why) = runner.command(command) {
            runner.report.failures.push(format!("line {line}: {why}"));
        }
    }
    runner.compare();
    runner.report
}

/// A packet that should leave: digits (none for any) and whether it ends where they end.
type Expected = (Option<String>, bool);

struct Runner {
    pipeline: Pipeline,
    left: BTreeMap<u32, Vec<OwnedOutput>>,
    expected: BTreeMap<u32, Vec<Expected>>,
    silent: Vec<u32>,
    report: Report,
}

impl Runner {
    fn command(&mut self, command: Command) -> Result<(), String> {
        match command {
            Command::Wait | Command::MeterGet { .. } | Command::MirroringGet { .. } => {}
            Command::Add { table, priority, keys, action } => self.add(&table, priority, &keys, &action)?,
            Command::SetDefault { table, action } => {
                let number = self.table(&table)?;
                let call = self.call(number, &action)?;
                self.update(number, Update::SetDefault(call))?;
            }
            Command::Remove { table, keys } => {
                let number = self.table(&table)?;
                let entry = self.entry(number, None, &keys, EntryAction::Call(Default::default()))?;
                self.update(number, Update::Delete(entry))?;
            }
            Command::Packet { port, bytes } => {
                self.report.packets += 1;
                for output in self.pipeline.process(&bytes, port) {
                    self.left.entry(output.port.unwrap_or(u32::MAX)).or_default().push(output);
                }
            }
            Command::Expect { port, digits, exact } => {
                self.report.expected += 1;
                self.expected.entry(port).or_default().push((digits, exact));
            }
            Command::NoPacket { port } => self.silent.extend(port),
            Command::CheckCounter { name, index, bytes, comparison, value } => {
                self.check_counter(&name, index, bytes, &comparison, value)?;
            }
            Command::MirroringAdd { session, port } => {
                self.pipeline.switch().set_session(session, Session { port: Some(port), group: None });
            }
            Command::MirroringAddGroup { session, group } => {
                self.pipeline.switch().set_session(session, Session { port: None, group: Some(group) });
            }
            Command::MirroringDelete { session } => self.pipeline.switch().remove_session(session),
            Command::GroupCreate { group } => self.pipeline.switch().add_group(group),
            Command::NodeCreate { rid, ports } => drop(self.pipeline.switch().add_node(rid, ports)),
            Command::NodeAssociate { group, node } => {
                if !self.pipeline.switch().associate(group, node) {
                    return Err(format!("there is no group {group} or node {node}"));
                }
            }
            Command::RegisterRead { name, .. } => {
                self.register(&name)?;
            }
            Command::RegisterWrite { name, index, value } => {
                let (stride, words) = self.register(&name)?;
                let at = index as usize * stride;
                *words.get_mut(at).ok_or("the index is outside of the register")? = value;
            }
            Command::RegisterReset { name } => self.register(&name)?.1.fill(0),
            Command::MeterRates { name, index, rates } => self.meter(&name, index, &rates)?,
            Command::ValueSetAdd { name, values } => {
                let set = self.pipeline.value_set_named(&name).ok_or_else(|| format!("no value set `{name}`"))?;
                let member = values.iter().map(|value| {
                    let number = parse::integer(value).ok_or_else(|| format!("`{value}` is not a number"))?;
                    Ok((vec![number], vec![u64::MAX]))
                });
                let member: Result<Vec<_>, String> = member.collect();
                set.members.push(member?);
            }
        }
        Ok(())
    }

    fn table(&self, name: &str) -> Result<usize, String> {
        let all: Vec<&str> = self.pipeline.ir().tables.iter().map(|table| &*table.path).collect();
        loose(&all, name).ok_or_else(|| format!("there is no table `{name}`, or several"))
    }

    fn update(&mut self, table: usize, update: Update) -> Result<(), String> {
        self.pipeline.update(vec![Target { table, update }]).map_err(|error| error.to_string())
    }

    fn add(&mut self, table: &str, priority: Option<i64>, keys: &[KeyText], action: &ActionText) -> Result<(), String> {
        let number = self.table(table)?;
        let call = self.call(number, action)?;
        let entry = self.entry(number, priority, keys, EntryAction::Call(call))?;
        self.update(number, Update::Insert(entry))
    }

    fn call(&self, table: usize, action: &ActionText) -> Result<crate::p4::ir::ActionCall, String> {
        let info = &self.pipeline.ir().tables[table];
        let all: Vec<&str> = info.actions.iter().map(|action| &*action.path).collect();
        let at = loose(&all, &action.name).ok_or_else(|| format!("there is no action `{}`", action.name))?;
        let mut data = Vec::new();
        for parameter in &info.actions[at].parameters {
            let given = action.arguments.iter().find(|(name, _)| *name == *parameter.name);
            let (_, text) = given.ok_or_else(|| format!("argument `{}` is missing", parameter.name))?;
            let value = entries::number(text).ok_or_else(|| format!("`{text}` is not a number"))?;
            data.push(limbs_of(&value, parameter.slot.width).ok_or_else(|| format!("`{text}` is too large"))?);
        }
        Ok(crate::p4::ir::ActionCall { action: at, data })
    }

    fn entry(
        &self,
        table: usize,
        priority: Option<i64>,
        keys: &[KeyText],
        action: EntryAction,
    ) -> Result<Entry, String> {
        let info = &self.pipeline.ir().tables[table];
        let names: Vec<String> = info.keys.iter().map(|key| plain_name(&key.name)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut matches: Vec<Option<Match>> = vec![None; info.keys.len()];
        for (name, text) in keys {
            let at = loose(&names, &plain_name(name)).ok_or_else(|| format!("the table has no key `{name}`"))?;
            matches[at] = Some(key_match(&info.keys[at], text)?);
        }
        let mut all = Vec::new();
        for (key, found) in info.keys.iter().zip(matches) {
            match found {
                Some(found) => all.push(found),
                None if key.kind == MatchKind::Selector => {}
                None if key.kind != MatchKind::Exact => all.push(Match::Any),
                None => return Err(format!("key `{}` is missing", key.name)),
            }
        }
        let priority = priority.unwrap_or(0);
        Ok(Entry { keys: all, priority, action, is_const: false, hits: (0, 0), meter: Default::default() })
    }

    fn register(&mut self, name: &str) -> Result<(usize, &mut Vec<u64>), String> {
        match self.pipeline.object_named(name) {
            Some(ObjectState::Register { stride, words }) => Ok((*stride, words)),
            _ => Err(format!("there is no register `{name}`")),
        }
    }

    fn meter(&mut self, name: &str, index: Option<u64>, rates: &[(f64, f64)]) -> Result<(), String> {
        let Some(ObjectState::Meter(all)) = self.pipeline.object_named(name) else {
            return Err(format!("there is no meter `{name}`"));
        };
        let [(committed, committed_burst), (peak, peak_burst)] = rates else {
            return Err("a meter has two rates".to_owned());
        };
        // bmv2 takes units per microsecond.
        let per_second = |rate: f64| (rate * 1e6).round() as u64;
        let rates = MeterRates {
            committed: per_second(*committed),
            committed_burst: *committed_burst as u64,
            peak: per_second(*peak),
            peak_burst: *peak_burst as u64,
        };
        let chosen: Vec<usize> = index.map_or_else(|| (0..all.len()).collect(), |index| vec![index as usize]);
        for at in chosen {
            all.get_mut(at).ok_or("the index is outside of the meter")?.set(Some(rates));
        }
        Ok(())
    }

    fn check_counter(
        &mut self,
        name: &str,
        index: Option<u64>,
        bytes: bool,
        comparison: &str,
        value: u64,
    ) -> Result<(), String> {
        let pick = |(packets, all_bytes): (u64, u64)| if bytes { all_bytes } else { packets };
        let found = match self.pipeline.object_named(name) {
            Some(ObjectState::Counter(all)) => match index {
                Some(index) => pick(*all.get(index as usize).ok_or("the index is outside of the counter")?),
                None => all.iter().map(|counter| pick(*counter)).sum(),
            },
            _ => {
                let table = self.table(name)?;
                self.pipeline.tables()[table].entries().map(|(_, entry)| pick(entry.hits)).sum()
            }
        };
        let holds = match comparison {
            "==" => found == value,
            "!=" => found != value,
            "<" => found < value,
            "<=" => found <= value,
            ">" => found > value,
            ">=" => found >= value,
            other => return Err(format!("there is no comparison `{other}`")),
        };
        if holds { Ok(()) } else { Err(format!("counter `{name}` is {found}, expected {comparison} {value}")) }
    }

    /// Every expected packet has left, in order, and on a port with expectations no other.
    fn compare(&mut self) {
        for (port, expected) in &self.expected {
            let left = self.left.remove(port).unwrap_or_default();
            if left.len() != expected.len() {
                let message = format!("port {port}: {} packets left, {} are expected", left.len(), expected.len());
                self.report.failures.push(message);
            }
            for (number, ((digits, exact), packet)) in expected.iter().zip(&left).enumerate() {
                let shown: String = packet.packet.iter().map(|byte| format!("{byte:02X}")).collect();
                if let Some(digits) = digits
                    && !same(digits, &shown, *exact)
                {
                    let message = format!("port {port}, packet {number}:\n  expected {digits}\n  left     {shown}");
                    self.report.failures.push(message);
                }
            }
        }
        for (port, packets) in &self.left {
            // p4c's runner ignores ports without expectations only if the file has none at all.
            let message = format!("port {port}: {} packets left, none is expected", packets.len());
            self.report.failures.push(message);
        }
    }
}

/// A packet that is longer than the digits agrees unless they end in `$`.
fn same(digits: &str, shown: &str, exact: bool) -> bool {
    let fits = if exact { shown.len() == digits.len() } else { shown.len() >= digits.len() };
    fits && digits.chars().zip(shown.chars()).all(|(want, have)| want == '*' || want == have)
}

/// `hdr.stack$0.f` and `hdr.stack[0].f` are the same.
fn plain_name(name: &str) -> String {
    let mut plain = String::new();
    for part in name.replace("$valid$", "isValid").split('$') {
        match part.find(|c: char| !c.is_ascii_digit()) {
            _ if plain.is_empty() => plain.push_str(part),
            Some(0) => plain = format!("{plain}${part}"),
            end => {
                let end = end.unwrap_or(part.len());
                plain = format!("{plain}[{}]{}", &part[..end], &part[end..]);
            }
        }
    }
    plain
}

/// The name, its end after a dot, or its end anywhere.
fn loose(all: &[&str], name: &str) -> Option<usize> {
    names::find(all, name).or_else(|| {
        let mut ends = all.iter().enumerate().filter(|(_, known)| known.ends_with(name) || name.ends_with(**known));
        match (ends.next(), ends.next()) {
            (Some((at, _)), None) => Some(at),
            _ => None,
        }
    })
}

/// A key's text: digits with `*`, `value/length`, `value&&&mask`, `low..high`.
fn key_match(key: &KeyInfo, text: &str) -> Result<Match, String> {
    let bad = || format!("`{text}` does not fit key `{}` of {} bits", key.name, key.width);
    let value = |text: &str| entries::number(text).and_then(|value| limbs_of(&value, key.width)).ok_or_else(bad);
    if let Some((base, length)) = text.split_once('/') {
        return Ok(Match::Lpm(value(base)?, length.parse().map_err(|_| bad())?));
    }
    if let Some((base, mask)) = text.split_once("&&&") {
        return Ok(Match::Ternary(value(base)?, value(mask)?));
    }
    for separator in ["..", "->"] {
        if let Some((low, high)) = text.split_once(separator) {
            return Ok(Match::Range(value(low)?, value(high)?));
        }
    }
    if !text.contains('*') {
        return Ok(match key.kind {
            // Without stars a short number of digits is a whole value.
            MatchKind::Lpm => Match::Lpm(value(text)?, key.width),
            _ => Match::Exact(value(text)?),
        });
    }
    let (radix, digits, bits) = match text.get(..2) {
        Some("0x") => (16, &text[2..], 4),
        Some("0b") => (2, &text[2..], 1),
        Some("0o") => (8, &text[2..], 3),
        _ => return Err(bad()),
    };
    let base = BigUint::from_str_radix(&digits.replace('*', "0"), radix).map_err(|_| bad())?;
    let full: BigUint = (BigUint::one() << bits) - 1u8;
    let mask = digits.chars().fold(BigUint::default(), |mask, digit| {
        (mask << bits) | if digit == '*' { BigUint::default() } else { full.clone() }
    });
    let limit = (BigUint::one() << key.width) - 1u8;
    let (base, mask) = (base & &limit, mask & &limit);
    if key.kind == MatchKind::Lpm {
        let fixed = digits.chars().take_while(|digit| *digit != '*').count() * bits;
        return Ok(Match::Lpm(limbs_of(&base, key.width).ok_or_else(bad)?, fixed as u32));
    }
    let both = (limbs_of(&base, key.width).ok_or_else(bad)?, limbs_of(&mask, key.width).ok_or_else(bad)?);
    Ok(Match::Ternary(both.0, both.1))
}
