//! Changes of table entries.

use nicforge_flexnic::p4::hir::MatchKind;
use nicforge_flexnic::p4::ir::{ActionCall, KeyInfo, TableInfo};
use nicforge_flexnic::p4::meter::Meter;
use nicforge_flexnic::p4::tables::{Entry, EntryAction, Target, Update};
use tonic::Code;

use crate::control::{Control, Undo};
use crate::device::Indirect;
use crate::proto::p4::v1 as p4;
use crate::refusal::Refusal;
use crate::wire::{parse_action, parse_counts, parse_matches, parse_rates};
use p4::table_action::Type as ActionType;
use p4::update::Type;

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
