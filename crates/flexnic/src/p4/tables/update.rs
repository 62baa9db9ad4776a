//! Changes of tables.

use super::{Entry, EntryAction, Table, prefix_mask};
use crate::p4::hir::MatchKind;
use crate::p4::ir::{ActionCall, Match, words};

/// A change of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// Adds an entry that does not exist.
    Insert(Entry),
    /// Changes the action of an entry that exists.
    Modify(Entry),
    /// Removes an entry; its action does not count.
    Delete(Entry),
    /// Changes the action on a miss.
    SetDefault(ActionCall),
    /// Back to the default action of the program.
    ResetDefault,
}

/// A change and its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Index of the table.
    pub table: usize,
    /// The change.
    pub update: Update,
}

/// Why a change is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum UpdateError {
    #[error("there is no table {0}")]
    NoTable(usize),
    #[error("table `{table}` has {wants} keys, the entry has {has}")]
    KeyCount { table: String, wants: usize, has: usize },
    #[error("key `{key}` of table `{table}` is matched as {kind:?}; {why}")]
    Key { table: String, key: String, kind: MatchKind, why: &'static str },
    #[error("table `{table}` has no action {action} for entries")]
    Action { table: String, action: usize },
    #[error("action `{action}` takes {wants} values, not {has}")]
    Data { action: String, wants: usize, has: usize },
    #[error("a value of action `{action}` does not fit into {width} bits")]
    Value { action: String, width: u32 },
    #[error("table `{table}` has this entry already")]
    Exists { table: String },
    #[error("table `{table}` has no such entry")]
    Missing { table: String },
    #[error("table `{table}` is full: it holds {size} entries")]
    Full { table: String, size: usize },
    #[error("the program fixes the entries of table `{table}`")]
    ConstEntries { table: String },
    #[error("the program fixes the default action of table `{table}`")]
    ConstDefault { table: String },
    #[error("table `{table}` has no selector, so an entry cannot name a group")]
    NoSelector { table: String },
}

/// The opposite of a change.
pub(crate) enum Undo {
    Remove(usize),
    Restore(Entry),
    Action(usize, EntryAction),
    Default(ActionCall),
}

impl Table {
    /// Applies a change and returns what undoes it.
    pub(crate) fn update(&mut self, update: Update) -> Result<Undo, UpdateError> {
        let table = self.info.path.to_string();
        match update {
            Update::SetDefault(call) => {
                if self.info.default_is_const {
                    return Err(UpdateError::ConstDefault { table });
                }
                self.check_call(&call, true)?;
                Ok(Undo::Default(std::mem::replace(&mut self.default, call)))
            }
            Update::ResetDefault => Ok(Undo::Default(std::mem::replace(&mut self.default, self.info.default.clone()))),
            Update::Insert(entry) => {
                let entry = self.check_entry(entry)?;
                self.check_action(&entry.action)?;
                if self.known.contains_key(&self.entry_key(&entry)) {
                    return Err(UpdateError::Exists { table });
                }
                if self.len() >= self.capacity() {
                    return Err(UpdateError::Full { table, size: self.capacity() });
                }
                Ok(Undo::Remove(self.add(entry)))
            }
            Update::Modify(entry) => {
                let entry = self.check_entry(entry)?;
                self.check_action(&entry.action)?;
                let number = self.changeable(&entry)?;
                let Some(known) = &mut self.entries[number] else {
                    return Err(UpdateError::Missing { table });
                };
                Ok(Undo::Action(number, std::mem::replace(&mut known.action, entry.action)))
            }
            Update::Delete(entry) => {
                let entry = self.check_entry(entry)?;
                let number = self.changeable(&entry)?;
                match self.remove(number) {
                    Some(old) => Ok(Undo::Restore(old)),
                    None => Err(UpdateError::Missing { table }),
                }
            }
        }
    }

    /// Number of the entry with these keys and this priority, if there is one.
    pub fn number_of(&self, entry: &Entry) -> Result<Option<usize>, UpdateError> {
        let entry = self.check_keys(entry.clone())?;
        Ok(self.known.get(&self.entry_key(&entry)).copied())
    }

    /// Adds an exact entry for the words of all keys; false where it exists, does not fit, or the action is unknown.
    pub(crate) fn add_missed(&mut self, keys: &[u64], action: &str, data: Vec<Vec<u64>>) -> bool {
        let names: Vec<&str> = self.info.actions.iter().map(|action| &*action.path).collect();
        let Some(action) = crate::p4::names::find(&names, action) else {
            return false;
        };
        let mut at = 0;
        let matches = self.info.keys.iter().map(|key| {
            let count = words(key.width);
            at += count;
            Match::Exact(keys[at - count..at].to_vec())
        });
        let entry = Entry {
            keys: matches.collect(),
            priority: 0,
            action: EntryAction::Call(ActionCall { action, data }),
            is_const: false,
            hits: (0, 0),
            meter: Default::default(),
        };
        self.update(Update::Insert(entry)).is_ok()
    }

    pub(crate) fn undo(&mut self, undo: Undo) {
        match undo {
            Undo::Remove(number) => drop(self.remove(number)),
            Undo::Restore(entry) => drop(self.add(entry)),
            Undo::Action(number, action) => {
                if let Some(entry) = &mut self.entries[number] {
                    entry.action = action;
                }
            }
            Undo::Default(call) => self.default = call,
        }
    }

    fn changeable(&self, entry: &Entry) -> Result<usize, UpdateError> {
        let table = self.info.path.to_string();
        let number = *self.known.get(&self.entry_key(entry)).ok_or(UpdateError::Missing { table: table.clone() })?;
        if self.entry(number).is_some_and(|entry| entry.is_const) {
            return Err(UpdateError::ConstEntries { table });
        }
        Ok(number)
    }

    fn check_entry(&self, entry: Entry) -> Result<Entry, UpdateError> {
        if self.info.entries_are_const || self.matched.is_empty() {
            return Err(UpdateError::ConstEntries { table: self.info.path.to_string() });
        }
        self.check_keys(entry)
    }

    fn check_keys(&self, mut entry: Entry) -> Result<Entry, UpdateError> {
        let table = self.info.path.to_string();
        if entry.keys.len() != self.matched.len() {
            return Err(UpdateError::KeyCount { table, wants: self.matched.len(), has: entry.keys.len() });
        }
        entry.is_const = false;
        for (key, at) in entry.keys.iter_mut().zip(&self.matched) {
            let info = &self.info.keys[*at];
            if let Err(why) = normalize(key, info.kind, info.width) {
                return Err(UpdateError::Key { table, key: info.name.to_string(), kind: info.kind, why });
            }
        }
        Ok(entry)
    }

    fn check_action(&self, action: &EntryAction) -> Result<(), UpdateError> {
        match action {
            EntryAction::Call(call) => self.check_call(call, false),
            EntryAction::Group(_) if !self.info.has_selector => {
                Err(UpdateError::NoSelector { table: self.info.path.to_string() })
            }
            EntryAction::Group(members) => members.iter().try_for_each(|(_, call)| self.check_call(call, false)),
        }
    }

    fn check_call(&self, call: &ActionCall, is_default: bool) -> Result<(), UpdateError> {
        let allowed = |action: &&crate::p4::ir::ActionInfo| {
            if is_default { !action.table_only } else { !action.default_only }
        };
        let Some(action) = self.info.actions.get(call.action).filter(allowed) else {
            return Err(UpdateError::Action { table: self.info.path.to_string(), action: call.action });
        };
        let name = action.path.to_string();
        if action.parameters.len() != call.data.len() {
            return Err(UpdateError::Data { action: name, wants: action.parameters.len(), has: call.data.len() });
        }
        for (value, parameter) in call.data.iter().zip(&action.parameters) {
            if !fits(value, parameter.slot.width) {
                return Err(UpdateError::Value { action: name, width: parameter.slot.width });
            }
        }
        Ok(())
    }
}

fn fits(value: &[u64], width: u32) -> bool {
    let mask = prefix_mask(width, width);
    value.len() == words(width) && value.iter().zip(mask).all(|(value, mask)| value & !mask == 0)
}

/// Checks a key and brings it into the form of its kind.
fn normalize(key: &mut Match, kind: MatchKind, width: u32) -> Result<(), &'static str> {
    let in_width = match key {
        Match::Exact(value) | Match::Lpm(value, _) => fits(value, width),
        Match::Ternary(value, mask) => fits(value, width) && fits(mask, width),
        Match::Range(low, high) => fits(low, width) && fits(high, width),
        Match::Any => true,
    };
    if !in_width {
        return Err("a value is wider than the key");
    }
    match (kind, &mut *key) {
        (MatchKind::Exact, Match::Exact(_)) => {}
        (MatchKind::Lpm, Match::Lpm(_, length)) if *length <= width => {}
        (MatchKind::Lpm, Match::Lpm(..)) => return Err("its prefix is longer than the key"),
        (MatchKind::Lpm, Match::Exact(value)) => *key = Match::Lpm(value.clone(), width),
        (MatchKind::Lpm, Match::Any) => *key = Match::Lpm(vec![0; words(width)], 0),
        (MatchKind::Ternary, Match::Ternary(..) | Match::Any) => {}
        (MatchKind::Ternary, Match::Exact(value)) => *key = Match::Ternary(value.clone(), prefix_mask(width, width)),
        (MatchKind::Range, Match::Range(low, high)) if low.iter().rev().le(high.iter().rev()) => {}
        (MatchKind::Range, Match::Range(..)) => return Err("its range is empty"),
        (MatchKind::Range, Match::Exact(value)) => *key = Match::Range(value.clone(), value.clone()),
        (MatchKind::Range, Match::Any) => {}
        (MatchKind::Optional, Match::Exact(_) | Match::Any) => {}
        _ => return Err("the entry gives another kind of match"),
    }
    if let Match::Lpm(value, length) = key {
        let mask = prefix_mask(width, *length);
        value.iter_mut().zip(mask).for_each(|(value, mask)| *value &= mask);
    }
    if let Match::Ternary(value, mask) = key {
        value.iter_mut().zip(&*mask).for_each(|(value, mask)| *value &= mask);
    }
    Ok(())
}
