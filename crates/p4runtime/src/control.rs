//! Writes: one batch at a time, under the pipeline's lock.

use nicforge_flexnic::p4::{Pipeline, Program};
use tonic::Code;

use crate::device::{Device, Known};
use crate::digests::Digests;
use crate::info::Info;
use crate::protection::Tag;
use crate::proto::p4::v1 as p4;
use crate::refusal::Refusal;
use p4::entity::Entity;
use p4::update::Type;
use p4::write_request::Atomicity;

/// What an update works on.
pub struct Control<'a> {
    /// The program that the pipeline runs.
    pub program: &'a Program,
    /// Numbers of the program's parts.
    pub info: &'a Info,
    /// What controllers know.
    pub known: &'a mut Known,
    /// Digests on their way.
    pub digests: &'a mut Digests,
    /// The pipeline, locked.
    pub pipeline: &'a mut Pipeline,
}

/// Takes an update back.
pub type Undo = Box<dyn FnOnce(&mut Control<'_>)>;

/// Applies a batch between two packets and returns one result per update.
pub fn write(device: &mut Device, request: &p4::WriteRequest) -> Result<Vec<Result<(), Refusal>>, Refusal> {
    let Some(atomicity) = Atomicity::try_from(request.atomicity).ok() else {
        return Err(Refusal::invalid(format!("there is no atomicity {}", request.atomicity)));
    };
    let application = Tag::of_role(&request.role)?;
    let loaded = device.loaded()?.clone();
    let shared = device.shared.clone();
    let mut pipeline = shared.lock();
    let mut control = Control {
        program: &loaded.program,
        info: &loaded.info,
        known: &mut device.known,
        digests: &mut device.digests,
        pipeline: &mut pipeline,
    };
    let (mut results, mut done) = (Vec::new(), Vec::new());
    for update in &request.updates {
        match control.update(update, application) {
            Ok(undo) => {
                done.push(undo);
                results.push(Ok(()));
            }
            Err(refusal) => results.push(Err(refusal)),
        }
        if atomicity != Atomicity::ContinueOnError && results.last().is_some_and(Result::is_err) {
            done.into_iter().rev().for_each(|undo| undo(&mut control));
            let aborted = |message| Refusal::new(Code::Aborted, message);
            for result in results.iter_mut().filter(|result| result.is_ok()) {
                *result = Err(aborted("taken back: another update of the batch failed"));
            }
            results.resize(request.updates.len(), Err(aborted("not done: another update of the batch failed")));
            break;
        }
    }
    Ok(results)
}

impl Control<'_> {
    fn update(&mut self, update: &p4::Update, application: Option<Tag>) -> Result<Undo, Refusal> {
        let kind = Type::try_from(update.r#type).unwrap_or(Type::Unspecified);
        if kind == Type::Unspecified {
            return Err(Refusal::invalid("an update is an INSERT, a MODIFY or a DELETE"));
        }
        let entity = update.entity.as_ref().and_then(|entity| entity.entity.as_ref());
        let entity = entity.ok_or_else(|| Refusal::invalid("the update has no entity"))?;
        if let Some(tag) = application {
            tag.check(self, entity)?;
        }
        match entity {
            Entity::TableEntry(entry) => self.table_entry(kind, entry),
            Entity::ActionProfileMember(member) => self.member(kind, member),
            Entity::ActionProfileGroup(group) => self.group(kind, group),
            Entity::MeterEntry(entry) => only_modify(kind, "a meter").and_then(|()| self.meter(entry)),
            Entity::DirectMeterEntry(entry) => only_modify(kind, "a meter").and_then(|()| self.direct_meter(entry)),
            Entity::CounterEntry(entry) => only_modify(kind, "a counter").and_then(|()| self.counter(entry)),
            Entity::DirectCounterEntry(entry) => {
                only_modify(kind, "a counter").and_then(|()| self.direct_counter(entry))
            }
            Entity::RegisterEntry(entry) => only_modify(kind, "a register").and_then(|()| self.register(entry)),
            Entity::ValueSetEntry(entry) => only_modify(kind, "a value set").and_then(|()| self.value_set(entry)),
            Entity::PacketReplicationEngineEntry(entry) => self.replication(kind, entry),
            Entity::DigestEntry(entry) => self.digest(kind, entry),
            Entity::ExternEntry(_) => Err(Refusal::unimplemented("there are no externs of other architectures")),
        }
    }

    fn digest(&mut self, kind: Type, entry: &p4::DigestEntry) -> Result<Undo, Refusal> {
        let id = entry.digest_id;
        if !self.info.message.digests.iter().any(|digest| digest.preamble.as_ref().is_some_and(|p| p.id == id)) {
            return Err(Refusal::missing(format!("there is no digest {id:#010x}")));
        }
        let before = self.digests.config(id);
        match (kind, before) {
            (Type::Insert, Some(_)) => {
                return Err(Refusal::new(Code::AlreadyExists, "this digest is already asked for"));
            }
            (Type::Modify | Type::Delete, None) => {
                return Err(Refusal::missing("nobody has asked for this digest"));
            }
            (Type::Delete, _) => {
                self.digests.remove(id);
            }
            _ => {
                let config = entry.config.ok_or_else(|| Refusal::invalid("the digest has no configuration"))?;
                if config.max_timeout_ns < 0 || config.max_list_size < 0 || config.ack_timeout_ns < 0 {
                    return Err(Refusal::invalid("times and sizes are not negative"));
                }
                self.digests.configure(id, config);
            }
        }
        Ok(Box::new(move |control| match before {
            Some(config) => control.digests.configure(id, config),
            None => drop(control.digests.remove(id)),
        }))
    }
}

fn only_modify(kind: Type, what: &str) -> Result<(), Refusal> {
    if kind == Type::Modify {
        return Ok(());
    }
    Err(Refusal::invalid(format!("{what} can only be modified: the program makes it")))
}
