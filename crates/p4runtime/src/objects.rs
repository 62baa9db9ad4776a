//! Counters, meters, registers, value sets, multicast groups and mirroring sessions.

use nicforge_flexnic::p4::ir::ObjectKind;
use nicforge_flexnic::p4::{ObjectState, Session};
use tonic::Code;

use crate::control::{Control, Undo};
use crate::profiles::check_exists;
use crate::proto::p4::v1 as p4;
use crate::refusal::Refusal;
use crate::types::from_data;
use crate::values::from_bytes;
use crate::wire::{parse_counts, parse_rates};
use p4::field_match::FieldMatchType;
use p4::packet_replication_engine_entry::Type as Replication;
use p4::update::Type;

/// The elements that an index names: one, or all where there is none.
pub fn elements(index: Option<&p4::Index>, count: usize) -> Result<std::ops::Range<usize>, Refusal> {
    let Some(index) = index else { return Ok(0..count) };
    match usize::try_from(index.index) {
        Err(_) => Err(Refusal::invalid("an index is not negative")),
        Ok(at) if at < count => Ok(at..at + 1),
        Ok(at) => Err(Refusal::new(Code::OutOfRange, format!("there are {count} elements, and none at {at}"))),
    }
}

/// Ports of a multicast group or mirroring session.
fn port(replica: &p4::Replica) -> Result<u64, Refusal> {
    use p4::replica::PortKind;
    match &replica.port_kind {
        #[allow(deprecated, reason = "older controllers send it")]
        Some(PortKind::EgressPort(port)) => Ok(u64::from(*port)),
        Some(PortKind::Port(bytes)) => Ok(from_bytes(bytes, 32)?[0]),
        None => Err(Refusal::invalid("a replica has no port")),
    }
}

impl Control<'_> {
    /// The number of an object of the kind that `state` has.
    fn object(&mut self, id: u32, what: &str) -> Result<(usize, &mut ObjectState), Refusal> {
        let number = self.info.objects.get(&id).copied();
        let number = number.ok_or_else(|| Refusal::missing(format!("there is no {what} {id:#010x}")))?;
        let state = self.pipeline.object(number).ok_or_else(|| Refusal::missing(format!("there is no {what} {id}")))?;
        Ok((number, state))
    }

    pub(crate) fn counter(&mut self, entry: &p4::CounterEntry) -> Result<Undo, Refusal> {
        let counts = entry.data.as_ref().ok_or_else(|| Refusal::invalid("the counter has no data"))?;
        let counts = parse_counts(counts)?;
        let (number, state) = self.object(entry.counter_id, "counter")?;
        let ObjectState::Counter(all) = state else { return Err(Refusal::missing("this is no counter")) };
        let range = elements(entry.index.as_ref(), all.len())?;
        let start = range.start;
        let old = all[range.clone()].to_vec();
        all[range].fill(counts);
        Ok(Box::new(move |control| {
            if let Some(ObjectState::Counter(all)) = control.pipeline.object(number) {
                all[start..start + old.len()].copy_from_slice(&old);
            }
        }))
    }

    pub(crate) fn meter(&mut self, entry: &p4::MeterEntry) -> Result<Undo, Refusal> {
        let rates = entry.config.as_ref().map(parse_rates).transpose()?;
        let (number, state) = self.object(entry.meter_id, "meter")?;
        let ObjectState::Meter(all) = state else { return Err(Refusal::missing("this is no meter")) };
        let range = elements(entry.index.as_ref(), all.len())?;
        let start = range.start;
        let old = all[range.clone()].to_vec();
        all[range].iter_mut().for_each(|meter| meter.set(rates));
        Ok(Box::new(move |control| {
            if let Some(ObjectState::Meter(all)) = control.pipeline.object(number) {
                all[start..start + old.len()].copy_from_slice(&old);
            }
        }))
    }

    pub(crate) fn direct_counter(&mut self, entry: &p4::DirectCounterEntry) -> Result<Undo, Refusal> {
        let of = entry.table_entry.as_ref().ok_or_else(|| Refusal::invalid("the counter has no table entry"))?;
        let counts = entry.data.as_ref().ok_or_else(|| Refusal::invalid("the counter has no data"))?;
        let counts = parse_counts(counts)?;
        if self.table(of.table_id)?.1.counter.is_none() {
            return Err(Refusal::invalid("the table has no direct counter"));
        }
        let (table, number) = self.entry_number(of)?;
        let Some((hits, _)) = self.pipeline.entry_state(table, number) else {
            return Err(Refusal::missing("the entry is gone"));
        };
        let old = std::mem::replace(hits, counts);
        Ok(Box::new(move |control| {
            if let Some((hits, _)) = control.pipeline.entry_state(table, number) {
                *hits = old;
            }
        }))
    }

    pub(crate) fn direct_meter(&mut self, entry: &p4::DirectMeterEntry) -> Result<Undo, Refusal> {
        let of = entry.table_entry.as_ref().ok_or_else(|| Refusal::invalid("the meter has no table entry"))?;
        let rates = entry.config.as_ref().map(parse_rates).transpose()?;
        if self.table(of.table_id)?.1.meter.is_none() {
            return Err(Refusal::invalid("the table has no direct meter"));
        }
        let (table, number) = self.entry_number(of)?;
        let Some((_, meter)) = self.pipeline.entry_state(table, number) else {
            return Err(Refusal::missing("the entry is gone"));
        };
        let old = *meter;
        meter.set(rates);
        Ok(Box::new(move |control| {
            if let Some((_, meter)) = control.pipeline.entry_state(table, number) {
                *meter = old;
            }
        }))
    }

    pub(crate) fn register(&mut self, entry: &p4::RegisterEntry) -> Result<Undo, Refusal> {
        let data = entry.data.as_ref().ok_or_else(|| Refusal::invalid("the register has no data"))?;
        let number = self.object(entry.register_id, "register")?.0;
        let ObjectKind::Register { element, .. } = self.pipeline.ir().objects[number].kind.clone() else {
            return Err(Refusal::missing("this is no register"));
        };
        let mut scalars = Vec::new();
        from_data(&element, data, &mut scalars).map_err(Refusal::invalid)?;
        let value: Vec<u64> = scalars.concat();
        let Some(ObjectState::Register { stride, words }) = self.pipeline.object(number) else {
            return Err(Refusal::missing("this is no register"));
        };
        if value.len() != *stride {
            return Err(Refusal::invalid(format!("the value is not of type `{element}`")));
        }
        let range = elements(entry.index.as_ref(), words.len() / (*stride).max(1))?;
        let range = range.start * *stride..range.end * *stride;
        let start = range.start;
        let old = words[range.clone()].to_vec();
        words[range].chunks_mut((*stride).max(1)).for_each(|place| place.copy_from_slice(&value));
        Ok(Box::new(move |control| {
            if let Some(ObjectState::Register { words, .. }) = control.pipeline.object(number) {
                words[start..start + old.len()].copy_from_slice(&old);
            }
        }))
    }

    pub(crate) fn value_set(&mut self, entry: &p4::ValueSetEntry) -> Result<Undo, Refusal> {
        let number = self.info.sets.get(&entry.value_set_id).copied();
        let number =
            number.ok_or_else(|| Refusal::missing(format!("there is no value set {:#010x}", entry.value_set_id)))?;
        let (widths, size) = {
            let set = &self.pipeline.ir().sets[number];
            (set.widths.clone(), set.size as usize)
        };
        if entry.members.len() > size {
            return Err(Refusal::new(Code::ResourceExhausted, format!("the value set holds {size} members")));
        }
        let mut members = Vec::new();
        for member in &entry.members {
            let mut values = Vec::new();
            for (at, width) in widths.iter().enumerate() {
                let field = member.r#match.iter().find(|field| field.field_id as usize == at + 1);
                let full = from_bytes(&vec![0xff; width.div_ceil(8) as usize], width.div_ceil(8) * 8)?;
                let full: Vec<u64> = cut(full, *width);
                values.push(match field.and_then(|field| field.field_match_type.as_ref()) {
                    Some(FieldMatchType::Exact(exact)) => (from_bytes(&exact.value, *width)?, full),
                    Some(FieldMatchType::Ternary(ternary)) => {
                        (from_bytes(&ternary.value, *width)?, from_bytes(&ternary.mask, *width)?)
                    }
                    Some(_) => return Err(Refusal::invalid("members are matched exactly or with a mask")),
                    None => return Err(Refusal::invalid(format!("a member has no match field {}", at + 1))),
                });
            }
            if member.r#match.len() != widths.len() {
                return Err(Refusal::invalid(format!("a member has {} match fields", widths.len())));
            }
            members.push(values);
        }
        let Some(set) = self.pipeline.value_set(number) else {
            return Err(Refusal::missing("there is no such value set"));
        };
        let old = std::mem::replace(&mut set.members, members);
        Ok(Box::new(move |control| {
            if let Some(set) = control.pipeline.value_set(number) {
                set.members = old;
            }
        }))
    }

    pub(crate) fn replication(
        &mut self,
        kind: Type,
        entry: &p4::PacketReplicationEngineEntry,
    ) -> Result<Undo, Refusal> {
        match &entry.r#type {
            Some(Replication::MulticastGroupEntry(group)) => self.multicast(kind, group),
            Some(Replication::CloneSessionEntry(session)) => self.session(kind, session),
            None => Err(Refusal::invalid("the entry is neither a multicast group nor a clone session")),
        }
    }

    fn multicast(&mut self, kind: Type, group: &p4::MulticastGroupEntry) -> Result<Undo, Refusal> {
        let id = group.multicast_group_id;
        if id == 0 || id > 0xffff {
            return Err(Refusal::invalid("the id of a multicast group is from 1 to 65535"));
        }
        let old = self.known.multicast.get(&id).cloned();
        check_exists(kind, old.is_some(), &format!("multicast group {id}"))?;
        let new = if kind == Type::Delete { None } else { Some(group.clone()) };
        self.set_multicast(id, new)?;
        Ok(Box::new(move |control| drop(control.set_multicast(id, old))))
    }

    fn set_multicast(&mut self, id: u32, group: Option<p4::MulticastGroupEntry>) -> Result<(), Refusal> {
        let replicas = replicas(group.as_ref().map_or(&[][..], |group| &group.replicas))?;
        self.pipeline.switch().set_group(u64::from(id), group.is_some().then_some(replicas));
        match group {
            Some(group) => drop(self.known.multicast.insert(id, group)),
            None => drop(self.known.multicast.remove(&id)),
        }
        Ok(())
    }

    fn session(&mut self, kind: Type, session: &p4::CloneSessionEntry) -> Result<Undo, Refusal> {
        let id = session.session_id;
        if session.class_of_service != 0 || session.packet_length_bytes != 0 {
            return Err(Refusal::unimplemented("clone sessions have neither a class nor a length here"));
        }
        let old = self.known.sessions.get(&id).cloned();
        check_exists(kind, old.is_some(), &format!("clone session {id}"))?;
        let new = if kind == Type::Delete { None } else { Some(session.clone()) };
        self.set_session(id, new)?;
        Ok(Box::new(move |control| drop(control.set_session(id, old))))
    }

    fn set_session(&mut self, id: u32, session: Option<p4::CloneSessionEntry>) -> Result<(), Refusal> {
        // The copies go to a group of their own, outside of the numbers that programs use.
        let group = (1 << 32) | u64::from(id);
        let replicas = replicas(session.as_ref().map_or(&[][..], |session| &session.replicas))?;
        let switch = self.pipeline.switch();
        switch.set_group(group, session.is_some().then_some(replicas));
        match session {
            Some(session) => {
                switch.set_session(u64::from(id), Session { port: None, group: Some(group) });
                self.known.sessions.insert(id, session);
            }
            None => {
                switch.remove_session(u64::from(id));
                self.known.sessions.remove(&id);
            }
        }
        Ok(())
    }
}

/// Replica number and port of each copy.
fn replicas(all: &[p4::Replica]) -> Result<Vec<(u64, u64)>, Refusal> {
    let mut found = Vec::new();
    for replica in all {
        let copy = (u64::from(replica.instance), port(replica)?);
        if found.contains(&copy) {
            return Err(Refusal::invalid("two replicas have the same port and instance"));
        }
        found.push(copy);
    }
    Ok(found)
}

fn cut(mut words: Vec<u64>, width: u32) -> Vec<u64> {
    if let Some(last) = words.last_mut()
        && !width.is_multiple_of(64)
    {
        *last &= u64::MAX >> (64 - width % 64);
    }
    words
}
