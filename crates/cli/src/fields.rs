//! Tables of a TOML file by their keys, of which each is known.

use nicforge_options::{ConfigError, Located, Node};

/// The tables of `value`, an array of them; `what` names it in the error.
pub fn tables<'a>(value: &'a Located, what: &str) -> Result<impl Iterator<Item = &'a Located> + use<'a>, ConfigError> {
    match &value.node {
        Node::List(all) => Ok(all.iter()),
        other => {
            let wrong = format!("{what} is {}", other.show());
            Err(ConfigError::new(&value.place, wrong, format!("write {what} above each")))
        }
    }
}

/// The number that stands at `value`; `key` names it in the error.
pub fn number(value: &Located, key: &str) -> Result<f64, ConfigError> {
    match value.node {
        Node::Integer(number) => Ok(number as f64),
        Node::Number(number) if number.is_finite() => Ok(number),
        ref other => {
            let wrong = format!("`{key}` is {}", other.show());
            Err(ConfigError::new(&value.place, wrong, format!("`{key}` is a number")))
        }
    }
}

/// The fields of a table by their keys, all of which are `known`.
pub struct Fields<'a> {
    /// The table.
    pub table: &'a Located,
    what: &'static str,
}

impl<'a> Fields<'a> {
    /// Of `table`, which `what` names in errors.
    pub fn of(table: &'a Located, what: &'static str, known: &[&str]) -> Result<Fields<'a>, ConfigError> {
        for field in table.table(what)? {
            if !known.contains(&field.key.as_str()) {
                return Err(ConfigError::unknown(&field.place, &format!("key of {what}"), &field.key, known));
            }
        }
        Ok(Fields { table, what })
    }

    /// The value of `key`, if it is there.
    pub fn get(&self, key: &str) -> Option<&'a Located> {
        let fields = self.table.table(self.what).ok()?;
        fields.iter().find(|field| field.key == key).map(|field| &field.value)
    }

    /// The same, which must be there.
    pub fn must(&self, key: &str) -> Result<&'a Located, ConfigError> {
        self.get(key).ok_or_else(|| {
            ConfigError::new(&self.table.place, format!("a {} has no `{key}`", self.what), format!("add `{key}`"))
        })
    }

    /// The text of `key`, if it is there.
    pub fn text(&self, key: &str) -> Result<Option<&'a str>, ConfigError> {
        self.get(key).map(|value| value.text(&format!("`{key}`"))).transpose()
    }

    /// The same, which must be there.
    pub fn needed(&self, key: &str) -> Result<&'a str, ConfigError> {
        self.must(key)?.text(&format!("`{key}`"))
    }

    /// The number of `key`, if it is there.
    pub fn number(&self, key: &str) -> Result<Option<f64>, ConfigError> {
        self.get(key).map(|value| number(value, key)).transpose()
    }
}
