//! Members and groups of action profiles. Entries keep a copy of the actions, which changes with them.

use nicforge_flexnic::p4::ir::{ActionCall, TableInfo};
use nicforge_flexnic::p4::tables::{EntryAction, Target, Update};
use tonic::Code;

use crate::control::{Control, Undo};
use crate::device::Indirect;
use crate::proto::p4::v1 as p4;
use crate::refusal::Refusal;
use crate::wire::parse_action;
use p4::update::Type;

impl Control<'_> {
    fn profile(&self, id: u32) -> Result<&crate::proto::p4::config::v1::ActionProfile, Refusal> {
        let is = |profile: &&crate::proto::p4::config::v1::ActionProfile| {
            profile.preamble.as_ref().is_some_and(|preamble| preamble.id == id)
        };
        let found = self.info.message.action_profiles.iter().find(is);
        found.ok_or_else(|| Refusal::missing(format!("there is no action profile {id:#010x}")))
    }

    pub(crate) fn member_call(&self, table: &TableInfo, profile: u32, member: u32) -> Result<ActionCall, Refusal> {
        let action = self.known.members.get(&(profile, member));
        let action = action.ok_or_else(|| Refusal::missing(format!("there is no member {member}")))?;
        parse_action(self.info, table, action)
    }

    pub(crate) fn group_calls(
        &self,
        table: &TableInfo,
        profile: u32,
        group: u32,
    ) -> Result<Vec<(u32, ActionCall)>, Refusal> {
        let found = self.known.groups.get(&(profile, group));
        let found = found.ok_or_else(|| Refusal::missing(format!("there is no group {group}")))?;
        let member = |member: &p4::action_profile_group::Member| {
            Ok((member.weight as u32, self.member_call(table, profile, member.member_id)?))
        };
        found.members.iter().map(member).collect()
    }

    /// Gives the entries of a profile the actions that their members and groups have now.
    fn refresh(&mut self, profile: u32) -> Result<(), Refusal> {
        let mut changes = Vec::new();
        for ((number, at), indirect) in &self.known.indirect {
            let table = &self.pipeline.ir().tables[*number];
            if table.profile.map(|object| self.info.object_id(object)) != Some(profile) {
                continue;
            }
            let action = match indirect {
                Indirect::Member(id) => EntryAction::Call(self.member_call(table, profile, *id)?),
                Indirect::Group(id) => EntryAction::Group(self.group_calls(table, profile, *id)?),
            };
            if let Some(entry) = self.pipeline.tables()[*number].entry(*at) {
                let mut entry = entry.clone();
                entry.action = action;
                changes.push(Target { table: *number, update: Update::Modify(entry) });
            }
        }
        Ok(self.pipeline.update(changes)?)
    }

    pub(crate) fn member(&mut self, kind: Type, member: &p4::ActionProfileMember) -> Result<Undo, Refusal> {
        let (profile, id) = (member.action_profile_id, member.member_id);
        let (size, tables) = {
            let profile = self.profile(profile)?;
            (profile.size, profile.table_ids.clone())
        };
        if id == 0 {
            return Err(Refusal::invalid("the id of a member is not 0"));
        }
        let key = (profile, id);
        let old = self.known.members.get(&key).cloned();
        if kind == Type::Delete {
            old.as_ref().ok_or_else(|| Refusal::missing(format!("there is no member {id}")))?;
            let in_group =
                self.known.groups.iter().any(|((of, _), group)| {
                    *of == profile && group.members.iter().any(|member| member.member_id == id)
                });
            if in_group || self.uses(profile, &Indirect::Member(id)) {
                return Err(Refusal::new(Code::FailedPrecondition, "the member is used by a group or an entry"));
            }
            self.known.members.remove(&key);
        } else {
            let action = member.action.clone().ok_or_else(|| Refusal::invalid("the member has no action"))?;
            for table in tables {
                parse_action(self.info, self.table(table)?.1, &action)?;
            }
            check_exists(kind, old.is_some(), &format!("member {id}"))?;
            let count = self.known.members.range((profile, 0)..=(profile, u32::MAX)).count();
            if kind == Type::Insert && size > 0 && count as i64 >= size {
                return Err(Refusal::new(Code::ResourceExhausted, format!("the profile holds {size} members")));
            }
            self.known.members.insert(key, action);
            self.refresh(profile)?;
        }
        Ok(Box::new(move |control| {
            match old {
                Some(action) => drop(control.known.members.insert(key, action)),
                None => drop(control.known.members.remove(&key)),
            }
            // Every entry had these actions before.
            let _ = control.refresh(profile);
        }))
    }

    pub(crate) fn group(&mut self, kind: Type, group: &p4::ActionProfileGroup) -> Result<Undo, Refusal> {
        let (profile, id) = (group.action_profile_id, group.group_id);
        let about = self.profile(profile)?;
        if !about.with_selector {
            return Err(Refusal::invalid("the action profile has no selector, so it has no groups"));
        }
        if id == 0 {
            return Err(Refusal::invalid("the id of a group is not 0"));
        }
        if group.members.iter().any(|member| member.watch_kind.is_some()) {
            return Err(Refusal::unimplemented("members do not watch ports here"));
        }
        if group.members.iter().any(|member| member.weight < 1) {
            return Err(Refusal::invalid("the weight of a member is at least 1"));
        }
        let total: i64 = group.members.iter().map(|member| i64::from(member.weight)).sum();
        let most = [i64::from(about.max_group_size), i64::from(group.max_size)].into_iter().filter(|most| *most > 0);
        if most.min().is_some_and(|most| total > most) {
            return Err(Refusal::new(Code::ResourceExhausted, format!("the group has a weight of {total} in all")));
        }
        let key = (profile, id);
        let old = self.known.groups.get(&key).cloned();
        if kind == Type::Delete {
            old.as_ref().ok_or_else(|| Refusal::missing(format!("there is no group {id}")))?;
            if self.uses(profile, &Indirect::Group(id)) {
                return Err(Refusal::new(Code::FailedPrecondition, "the group is used by an entry"));
            }
            self.known.groups.remove(&key);
        } else {
            for member in &group.members {
                if !self.known.members.contains_key(&(profile, member.member_id)) {
                    return Err(Refusal::missing(format!("there is no member {}", member.member_id)));
                }
            }
            check_exists(kind, old.is_some(), &format!("group {id}"))?;
            self.known.groups.insert(key, group.clone());
            self.refresh(profile)?;
        }
        Ok(Box::new(move |control| {
            match old {
                Some(group) => drop(control.known.groups.insert(key, group)),
                None => drop(control.known.groups.remove(&key)),
            }
            // Every entry had these actions before.
            let _ = control.refresh(profile);
        }))
    }

    fn uses(&self, profile: u32, wanted: &Indirect) -> bool {
        self.known.indirect.iter().any(|((table, _), indirect)| {
            let table = &self.pipeline.ir().tables[*table];
            indirect == wanted && table.profile.map(|object| self.info.object_id(object)) == Some(profile)
        })
    }
}

/// An INSERT needs something new, a MODIFY something known.
pub(crate) fn check_exists(kind: Type, exists: bool, what: &str) -> Result<(), Refusal> {
    match (kind, exists) {
        (Type::Insert, true) => Err(Refusal::new(Code::AlreadyExists, format!("{what} exists already"))),
        (Type::Modify | Type::Delete, false) => Err(Refusal::missing(format!("there is no {what}"))),
        _ => Ok(()),
    }
}
