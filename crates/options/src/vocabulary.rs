//! All owners that there are, and which key belongs to whom.

use std::any::TypeId;

use crate::{ConfigError, Key, Options, Place, Value, nearest};

/// A module that declares keys of its own.
#[derive(Clone, Debug)]
pub struct Owner {
    /// What it is one of, such as `"interface"`.
    pub kind: &'static str,
    /// Its name among those of its kind.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// Its keys, in the order in which they are listed.
    pub keys: Vec<&'static Key>,
    options: TypeId,
    takes: fn(&str, &Value) -> bool,
}

impl Owner {
    /// The owner of the keys of `O`.
    pub fn of<O: Options>(kind: &'static str, name: &'static str, about: &'static str) -> Owner {
        Owner {
            kind,
            name,
            about,
            keys: O::keys(),
            options: TypeId::of::<O>(),
            takes: |name, value| O::default().set(name, value),
        }
    }

    /// Whether its options are of type `O`.
    pub fn has<O: Options>(&self) -> bool {
        self.options == TypeId::of::<O>()
    }

    /// Whether its options can hold `value` of key `name`.
    pub fn takes(&self, name: &str, value: &Value) -> bool {
        (self.takes)(name, value)
    }

    /// Whether it declares key `name`.
    pub fn declares(&self, name: &str) -> bool {
        self.keys.iter().any(|key| key.name == name)
    }
}

/// `interface rx_bisect`.
impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let space = if self.kind.is_empty() || self.name.is_empty() { "" } else { " " };
        write!(f, "{}{space}{}", self.kind, self.name)
    }
}

/// All owners, in the order in which their keys are listed.
#[derive(Clone, Debug, Default)]
pub struct Vocabulary {
    owners: Vec<Owner>,
}

impl Vocabulary {
    /// The vocabulary of `owners`.
    ///
    /// # Panics
    /// Two owners declare one key with different values or units, so that one line of a file could not serve both. That
    /// is a mistake of the program's, found when it starts.
    pub fn new(owners: Vec<Owner>) -> Vocabulary {
        let vocabulary = Vocabulary { owners };
        for owner in &vocabulary.owners {
            for key in &owner.keys {
                let first = vocabulary.key(key.name).is_some_and(|first| first.agrees_with(key));
                assert!(first, "{owner} declares `{}` otherwise than {}", key.name, vocabulary.owners_of(key.name));
            }
        }
        vocabulary
    }

    /// All owners.
    pub fn owners(&self) -> &[Owner] {
        &self.owners
    }

    /// The names of all owners of one kind.
    pub fn names(&self, kind: &str) -> Vec<&'static str> {
        self.owners.iter().filter(|owner| owner.kind == kind).map(|owner| owner.name).collect()
    }

    /// Every key once, in the order in which they are listed.
    pub fn keys(&self) -> Vec<&'static Key> {
        let mut keys: Vec<&'static Key> = Vec::new();
        for key in self.owners.iter().flat_map(|owner| &owner.keys) {
            if !keys.iter().any(|known| known.name == key.name) {
                keys.push(key);
            }
        }
        keys
    }

    /// The declaration of key `name`.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.owners.iter().flat_map(|owner| &owner.keys).find(|key| key.name == name).copied()
    }

    /// Whose key `name` is, in words.
    pub fn owners_of(&self, name: &str) -> String {
        let owners = self.owners.iter().filter(|owner| owner.declares(name));
        owners.map(|owner| owner.to_string()).collect::<Vec<_>>().join(", ")
    }

    /// The declaration of key `name`, which stands at `place`.
    ///
    /// # Errors
    /// No owner declares it; the error proposes the nearest name.
    pub fn known(&self, name: &str, place: &Place) -> Result<&'static Key, ConfigError> {
        if let Some(key) = self.key(name) {
            return Ok(key);
        }
        let names: Vec<&str> = self.keys().iter().map(|key| key.name).collect();
        let mut error = ConfigError::unknown(place, "setting", name, &names);
        // There are too many keys to list them where none is near.
        if nearest(name, &names).is_none() {
            error.right = "`nicforge list settings` and docs/settings.md list all".to_string();
        }
        Err(error)
    }

    /// The reference of all keys, as Markdown: a table for each group of owners.
    pub fn markdown(&self) -> String {
        let mut text = String::from(HEAD);
        for (owners, keys) in self.groups() {
            text.push_str(&self.table(&owners, &keys));
        }
        text
    }

    /// A chapter with a table of `keys`.
    pub fn table(&self, title: &str, keys: &[&Key]) -> String {
        let mut text = format!("\n## {title}\n\n{TABLE_HEAD}");
        for key in keys {
            let Key { name, doc, source, .. } = key;
            let (takes, default) = (key.takes(self), key.default_text());
            text.push_str(&format!("| `{name}` | {takes} | {default} | {doc} | {source} |\n"));
        }
        text
    }

    /// Each key once, under all that declare it.
    pub fn groups(&self) -> Vec<(String, Vec<&'static Key>)> {
        let mut groups: Vec<(String, Vec<&'static Key>)> = Vec::new();
        for key in self.keys() {
            let owners = self.owners_of(key.name);
            match groups.iter_mut().find(|(known, _)| *known == owners) {
                Some((_, keys)) => keys.push(key),
                None => groups.push((owners, vec![key])),
            }
        }
        groups
    }
}

const HEAD: &str = "\
# Settings

Keys of `[settings]`, `[[variant]]`, `[sweep]` and `--set key=value`, under the modules that read them. A key counts in
points that use one of its modules. The tables at the end are keys of other sections of live files (docs/live.md). This
page is written by `nicforge list settings --markdown`.
";

const TABLE_HEAD: &str = "\
| key | takes | default | what it is | source of the default |
| --- | --- | --- | --- | --- |
";
