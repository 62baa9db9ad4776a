//! Reads. What a request leaves out stands for everything.

use nicforge_flexnic::p4::ir::ObjectKind;
use nicforge_flexnic::p4::tables::{Entry, EntryAction};
use nicforge_flexnic::p4::{ObjectState, Pipeline};

use crate::device::{Device, Indirect, Loaded};
use crate::objects::elements;
use crate::proto::p4::v1 as p4;
use crate::refusal::Refusal;
use crate::types::to_data;
use crate::values::to_bytes;
use crate::wire::{parse_matches, show_action, show_counts, show_matches, show_rates};
use p4::entity::Entity;
use p4::packet_replication_engine_entry::Type as Replication;
use p4::table_action::Type as ActionType;

struct Reader<'a> {
    device: &'a Device,
    loaded: &'a Loaded,
    pipeline: &'a mut Pipeline,
    found: Vec<p4::Entity>,
}

/// Reads what a request asks for, between two packets.
pub fn read(device: &Device, request: &p4::ReadRequest) -> Result<Vec<p4::Entity>, Refusal> {
    let loaded = device.loaded()?;
    let mut pipeline = device.shared.lock();
    let mut reader = Reader { device, loaded, pipeline: &mut pipeline, found: Vec::new() };
    for entity in &request.entities {
        let entity = entity.entity.as_ref().ok_or_else(|| Refusal::invalid("the request has an empty entity"))?;
        reader.entity(entity)?;
    }
    Ok(reader.found)
}

impl Reader<'_> {
    fn entity(&mut self, entity: &Entity) -> Result<(), Refusal> {
        match entity {
            Entity::TableEntry(entry) => self.tables(entry),
            Entity::ActionProfileMember(member) => {
                self.members(member);
                Ok(())
            }
            Entity::ActionProfileGroup(group) => {
                self.groups(group);
                Ok(())
            }
            Entity::MeterEntry(entry) => self.objects(entry.meter_id, entry.index.as_ref(), is_meter),
            Entity::CounterEntry(entry) => self.objects(entry.counter_id, entry.index.as_ref(), is_counter),
            Entity::RegisterEntry(entry) => self.objects(entry.register_id, entry.index.as_ref(), is_register),
            Entity::DirectMeterEntry(entry) => self.direct(entry.table_entry.as_ref(), true),
            Entity::DirectCounterEntry(entry) => self.direct(entry.table_entry.as_ref(), false),
            Entity::ValueSetEntry(entry) => self.value_sets(entry.value_set_id),
            Entity::PacketReplicationEngineEntry(entry) => {
                self.replication(entry);
                Ok(())
            }
            Entity::DigestEntry(entry) => {
                for id in self.device.digests.ids() {
                    if entry.digest_id == 0 || entry.digest_id == id {
                        let config = self.device.digests.config(id);
                        self.push(Entity::DigestEntry(p4::DigestEntry { digest_id: id, config }));
                    }
                }
                Ok(())
            }
            Entity::ExternEntry(_) => Err(Refusal::unimplemented("there are no externs of other architectures")),
        }
    }

    fn push(&mut self, entity: Entity) {
        self.found.push(p4::Entity { entity: Some(entity) });
    }

    /// Numbers of the tables that an id names.
    fn table_numbers(&self, id: u32) -> Result<Vec<usize>, Refusal> {
        let tables = &self.loaded.info.tables;
        if id == 0 {
            return Ok(tables.values().copied().collect());
        }
        let found = tables.get(&id).ok_or_else(|| Refusal::missing(format!("there is no table {id:#010x}")))?;
        Ok(vec![*found])
    }

    /// Entries of a table that a request means, by number.
    fn entries(&self, number: usize, wanted: &p4::TableEntry) -> Result<Vec<(usize, Entry)>, Refusal> {
        let table = &self.pipeline.tables()[number];
        let keys = match &wanted.r#match[..] {
            [] => None,
            fields => Some(parse_matches(&table.info, fields)?),
        };
        let mut found = Vec::new();
        for (at, entry) in table.entries() {
            let same = keys.as_ref().is_none_or(|keys| show_matches_equal(&table.info, keys, entry));
            let priority = wanted.priority == 0 || i64::from(wanted.priority) == entry.priority;
            let metadata = self.device.known.metadata.get(&(number, at));
            let metadata = wanted.metadata.is_empty() || metadata == Some(&wanted.metadata);
            if same && priority && metadata {
                found.push((at, entry.clone()));
            }
        }
        Ok(found)
    }

    fn tables(&mut self, wanted: &p4::TableEntry) -> Result<(), Refusal> {
        for number in self.table_numbers(wanted.table_id)? {
            if wanted.is_default_action {
                let shown = self.show_default(number);
                self.push(Entity::TableEntry(shown));
                continue;
            }
            for (at, entry) in self.entries(number, wanted)? {
                let shown = self.show(number, at, &entry, wanted.counter_data.is_some(), wanted.meter_config.is_some());
                if wanted.action.is_none() || wanted.action == shown.action {
                    self.push(Entity::TableEntry(shown));
                }
            }
        }
        Ok(())
    }

    fn show_default(&self, number: usize) -> p4::TableEntry {
        let table = &self.pipeline.tables()[number];
        let action = show_action(&self.loaded.info, &table.info, &table.default);
        p4::TableEntry {
            table_id: self.loaded.info.table_ids[number],
            action: Some(p4::TableAction { r#type: Some(ActionType::Action(action)) }),
            is_default_action: true,
            is_const: table.info.default_is_const,
            ..Default::default()
        }
    }

    fn show(&self, number: usize, at: usize, entry: &Entry, counts: bool, meter: bool) -> p4::TableEntry {
        let (table, info) = (&self.pipeline.tables()[number], &self.loaded.info);
        let action = match (self.device.known.indirect.get(&(number, at)), &entry.action) {
            (Some(Indirect::Member(id)), _) => ActionType::ActionProfileMemberId(*id),
            (Some(Indirect::Group(id)), _) => ActionType::ActionProfileGroupId(*id),
            (None, EntryAction::Call(call)) => ActionType::Action(show_action(info, &table.info, call)),
            (None, EntryAction::Group(members)) => {
                let member = |(weight, call): &(u32, _)| p4::ActionProfileAction {
                    action: Some(show_action(info, &table.info, call)),
                    weight: *weight as i32,
                    watch_kind: None,
                };
                let action_profile_actions = members.iter().map(member).collect();
                ActionType::ActionProfileActionSet(p4::ActionProfileActionSet { action_profile_actions })
            }
        };
        let priority = if table.needs_priority() { entry.priority } else { 0 };
        p4::TableEntry {
            table_id: info.table_ids[number],
            r#match: show_matches(&table.info, entry),
            action: Some(p4::TableAction { r#type: Some(action) }),
            priority: i32::try_from(priority).unwrap_or(i32::MAX),
            meter_config: if meter { show_rates(&entry.meter) } else { None },
            counter_data: (counts && table.info.counter.is_some()).then(|| show_counts(entry.hits)),
            metadata: self.device.known.metadata.get(&(number, at)).cloned().unwrap_or_default(),
            is_const: entry.is_const,
            ..Default::default()
        }
    }

    fn direct(&mut self, wanted: Option<&p4::TableEntry>, meters: bool) -> Result<(), Refusal> {
        let all = p4::TableEntry::default();
        let wanted = wanted.unwrap_or(&all);
        for number in self.table_numbers(wanted.table_id)? {
            let info = &self.pipeline.tables()[number].info;
            let has = if meters { info.meter } else { info.counter };
            if has.is_none() {
                if wanted.table_id != 0 {
                    return Err(Refusal::invalid(format!("table `{}` has no such direct resource", info.path)));
                }
                continue;
            }
            for (at, entry) in self.entries(number, wanted)? {
                let shown = self.show(number, at, &entry, false, false);
                let of = p4::TableEntry { action: None, ..shown };
                let entity = if meters {
                    let config = show_rates(&entry.meter);
                    Entity::DirectMeterEntry(p4::DirectMeterEntry { table_entry: Some(of), config, counter_data: None })
                } else {
                    let data = Some(show_counts(entry.hits));
                    Entity::DirectCounterEntry(p4::DirectCounterEntry { table_entry: Some(of), data })
                };
                self.push(entity);
            }
        }
        Ok(())
    }

    fn members(&mut self, wanted: &p4::ActionProfileMember) {
        for ((profile, id), action) in &self.device.known.members {
            let same = (wanted.action_profile_id == 0 || wanted.action_profile_id == *profile)
                && (wanted.member_id == 0 || wanted.member_id == *id);
            if same {
                let action = Some(action.clone());
                let member = p4::ActionProfileMember { action_profile_id: *profile, member_id: *id, action };
                self.found.push(p4::Entity { entity: Some(Entity::ActionProfileMember(member)) });
            }
        }
    }

    fn groups(&mut self, wanted: &p4::ActionProfileGroup) {
        for ((profile, id), group) in &self.device.known.groups {
            let same = (wanted.action_profile_id == 0 || wanted.action_profile_id == *profile)
                && (wanted.group_id == 0 || wanted.group_id == *id);
            if same {
                self.found.push(p4::Entity { entity: Some(Entity::ActionProfileGroup(group.clone())) });
            }
        }
    }

    fn objects(&mut self, id: u32, index: Option<&p4::Index>, is: fn(&ObjectKind) -> bool) -> Result<(), Refusal> {
        let objects: Vec<(u32, usize)> = self.loaded.info.objects.iter().map(|(id, number)| (*id, *number)).collect();
        let mut known = id == 0;
        for (of, number) in objects {
            let kind = self.loaded.program.ir().objects[number].kind.clone();
            if !is(&kind) || (id != 0 && id != of) {
                continue;
            }
            known = true;
            self.object(of, number, &kind, index)?;
        }
        if known { Ok(()) } else { Err(Refusal::missing(format!("there is no object {id:#010x} of this kind"))) }
    }

    fn object(&mut self, id: u32, number: usize, kind: &ObjectKind, index: Option<&p4::Index>) -> Result<(), Refusal> {
        let Some(state) = self.pipeline.object(number).cloned() else { return Ok(()) };
        let at = |at: usize| Some(p4::Index { index: at as i64 });
        match state {
            ObjectState::Counter(all) => {
                for element in elements(index, all.len())? {
                    let data = Some(show_counts(all[element]));
                    self.push(Entity::CounterEntry(p4::CounterEntry { counter_id: id, index: at(element), data }));
                }
            }
            ObjectState::Meter(all) => {
                for element in elements(index, all.len())? {
                    let (config, index) = (show_rates(&all[element]), at(element));
                    self.push(Entity::MeterEntry(p4::MeterEntry { meter_id: id, index, config, counter_data: None }));
                }
            }
            ObjectState::Register { stride, words } => {
                let ObjectKind::Register { element: ty, widths, .. } = kind else { return Ok(()) };
                for element in elements(index, words.len() / stride.max(1))? {
                    let mut place = words[element * stride..(element + 1) * stride].iter().copied();
                    let mut scalars = widths
                        .iter()
                        .map(|width| place.by_ref().take((*width as usize).div_ceil(64).max(1)).collect::<Vec<u64>>());
                    let data = Some(to_data(ty, &mut scalars));
                    self.push(Entity::RegisterEntry(p4::RegisterEntry { register_id: id, index: at(element), data }));
                }
            }
            ObjectState::Checksum(_) | ObjectState::None => {}
        }
        Ok(())
    }

    fn value_sets(&mut self, id: u32) -> Result<(), Refusal> {
        use p4::field_match::{FieldMatchType, Ternary};
        let sets: Vec<(u32, usize)> = self.loaded.info.sets.iter().map(|(id, number)| (*id, *number)).collect();
        if id != 0 && !sets.iter().any(|(of, _)| *of == id) {
            return Err(Refusal::missing(format!("there is no value set {id:#010x}")));
        }
        for (of, number) in sets.into_iter().filter(|(of, _)| id == 0 || id == *of) {
            let Some(set) = self.pipeline.value_set(number) else { continue };
            let widths = &self.loaded.program.ir().sets[number].widths;
            let show = |member: &Vec<(Vec<u64>, Vec<u64>)>| p4::ValueSetMember {
                r#match: member
                    .iter()
                    .zip(widths)
                    .enumerate()
                    .map(|(at, ((value, mask), width))| {
                        let ones: u32 = mask.iter().map(|word| word.count_ones()).sum();
                        let value = to_bytes(value);
                        let given = if ones == *width {
                            FieldMatchType::Exact(p4::field_match::Exact { value })
                        } else {
                            FieldMatchType::Ternary(Ternary { value, mask: to_bytes(mask) })
                        };
                        p4::FieldMatch { field_id: at as u32 + 1, field_match_type: Some(given) }
                    })
                    .collect(),
            };
            let members = set.members.iter().map(show).collect();
            self.push(Entity::ValueSetEntry(p4::ValueSetEntry { value_set_id: of, members }));
        }
        Ok(())
    }

    fn replication(&mut self, wanted: &p4::PacketReplicationEngineEntry) {
        let known = &self.device.known;
        let (multicast, session) = match &wanted.r#type {
            None => (Some(0), Some(0)),
            Some(Replication::MulticastGroupEntry(group)) => (Some(group.multicast_group_id), None),
            Some(Replication::CloneSessionEntry(session)) => (None, Some(session.session_id)),
        };
        let groups = known.multicast.iter().filter(|(id, _)| multicast == Some(0) || multicast == Some(**id));
        let groups = groups.map(|(_, group)| Replication::MulticastGroupEntry(group.clone()));
        let sessions = known.sessions.iter().filter(|(id, _)| session == Some(0) || session == Some(**id));
        let sessions = sessions.map(|(_, session)| Replication::CloneSessionEntry(session.clone()));
        let all: Vec<Replication> = groups.chain(sessions).collect();
        for entry in all {
            let entry = p4::PacketReplicationEngineEntry { r#type: Some(entry) };
            self.push(Entity::PacketReplicationEngineEntry(entry));
        }
    }
}

fn show_matches_equal(
    table: &nicforge_flexnic::p4::ir::TableInfo,
    keys: &[nicforge_flexnic::p4::ir::Match],
    entry: &Entry,
) -> bool {
    let wanted = Entry { keys: keys.to_vec(), ..entry.clone() };
    show_matches(table, &wanted) == show_matches(table, entry)
}

fn is_meter(kind: &ObjectKind) -> bool {
    matches!(kind, ObjectKind::Meter { .. })
}

fn is_counter(kind: &ObjectKind) -> bool {
    matches!(kind, ObjectKind::Counter { .. })
}

fn is_register(kind: &ObjectKind) -> bool {
    matches!(kind, ObjectKind::Register { .. })
}
