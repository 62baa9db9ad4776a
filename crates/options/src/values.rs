//! The values of one point, which each owner reads for itself.

use std::collections::BTreeMap;

use crate::{Options, Value};

/// Values by key. What is not there has its owner's default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values(BTreeMap<String, Value>);

impl Values {
    /// The value of key `name`, where there is one.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Stores a value, in place of the one before.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// The same values with one more.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Values {
        self.set(name, value);
        self
    }

    /// Stores all of `others`.
    pub fn extend(&mut self, others: &Values) {
        self.0.extend(others.0.iter().map(|(name, value)| (name.clone(), value.clone())));
    }

    /// Every value with its key, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The options of one owner.
    pub fn read<O: Options>(&self) -> O {
        O::of(self)
    }

    /// Changes the options of one owner.
    pub fn change<O: Options>(&mut self, change: impl FnOnce(&mut O)) {
        let before: O = self.read();
        let mut after = before.clone();
        change(&mut after);
        for key in O::keys() {
            let (old, new) = (before.get(key.name), after.get(key.name));
            match new {
                Some(new) if old.as_ref() != Some(&new) => self.set(key.name, new),
                None => {
                    self.0.remove(key.name);
                }
                Some(_) => {}
            }
        }
    }
}
