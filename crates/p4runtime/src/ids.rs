//! Numbers by which controllers know the parts of a program: those of `@id`, or a hash of the name, as p4c makes them.

use std::collections::{BTreeMap, BTreeSet};

use nicforge_flexnic::p4::hir::Annotations;

/// First byte of an id: what it is of (specification, section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Kind {
    Action = 0x01,
    Table = 0x02,
    ValueSet = 0x03,
    ControllerHeader = 0x04,
    ActionProfile = 0x11,
    Counter = 0x12,
    DirectCounter = 0x13,
    Meter = 0x14,
    DirectMeter = 0x15,
    Register = 0x16,
    Digest = 0x17,
}

/// Ids by kind and name, and the short names.
#[derive(Debug, Default)]
pub struct Ids {
    by_name: BTreeMap<(Kind, String), u32>,
    names: BTreeSet<String>,
}

impl Ids {
    /// Numbers all parts: first those with an `@id`, then the others in the order of their names.
    pub fn new(parts: &[(Kind, String, Annotations)]) -> Ids {
        let mut ids = Ids::default();
        let mut used = BTreeSet::new();
        for (kind, name, annotations) in parts {
            ids.names.insert(name.clone());
            if let Some(given) = given_id(annotations) {
                let id = (given & 0x00ff_ffff) | (*kind as u32) << 24;
                used.insert(id);
                ids.by_name.insert((*kind, name.clone()), id);
            }
        }
        let mut rest: Vec<(Kind, &String)> = parts.iter().map(|(kind, name, _)| (*kind, name)).collect();
        rest.sort();
        for (kind, name) in rest {
            if ids.by_name.contains_key(&(kind, name.clone())) {
                continue;
            }
            let mut hash = one_at_a_time(name.as_bytes());
            let id = loop {
                let id = (hash & 0x00ff_ffff) | (kind as u32) << 24;
                if used.insert(id) {
                    break id;
                }
                hash = hash.wrapping_add(1);
            };
            ids.by_name.insert((kind, name.clone()), id);
        }
        ids
    }

    /// The id of a part; 0 where there is none.
    pub fn id(&self, kind: Kind, name: &str) -> u32 {
        self.by_name.get(&(kind, name.to_owned())).copied().unwrap_or(0)
    }

    /// The shortest end of the name that no other name has.
    pub fn alias<'n>(&self, name: &'n str) -> &'n str {
        let starts = name.rmatch_indices('.').map(|(at, _)| at + 1).chain([0]);
        for start in starts {
            let end = &name[start..];
            let same =
                |other: &&String| other.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
            if self.names.iter().filter(same).count() <= 1 {
                return end;
            }
        }
        name
    }
}

/// The number of an `@id`.
pub fn given_id(annotations: &Annotations) -> Option<u32> {
    annotations.iter().find(|given| &*given.name == "id")?.values.first()?.parse().ok()
}

/// Bob Jenkins' hash, one byte at a time.
fn one_at_a_time(bytes: &[u8]) -> u32 {
    let mut hash = 0u32;
    for byte in bytes {
        hash = hash.wrapping_add(u32::from(*byte));
        hash = hash.wrapping_add(hash << 10);
        hash ^= hash >> 6;
    }
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 11;
    hash.wrapping_add(hash << 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_that_p4c_gives() {
        let part = |kind, name: &str| (kind, name.to_owned(), Annotations::default());
        let parts =
            [part(Kind::Table, "IngressI.indirect"), part(Kind::Action, "NoAction"), part(Kind::ActionProfile, "ap")];
        let ids = Ids::new(&parts);
        assert_eq!(ids.id(Kind::Table, "IngressI.indirect"), 46_872_340);
        assert_eq!(ids.id(Kind::Action, "NoAction"), 21_257_015);
        assert_eq!(ids.id(Kind::ActionProfile, "ap"), 294_074_782);
        assert_eq!(ids.alias("IngressI.indirect"), "indirect");
    }
}
