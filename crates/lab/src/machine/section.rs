//! Sections of machine files: structs whose fields are numbers with their sources, read by serde.

use std::fmt;
use std::marker::PhantomData;
use std::path::Path;

use nicforge_options::{Allowed, ConfigError, Key, Misfit, Node, Place, Places, TypedError, Vocabulary};
use nicforge_units::{BitRate, Bytes, Cycles, Time};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};
use toml::{Spanned, Value};

use super::Row;

/// Cycles that the model counts at most for one thing.
pub(super) const CYCLES: Allowed = Allowed::Whole(0, 1_000_000);
/// Latencies in ns.
pub(super) const NS: Allowed = Allowed::Number(0.001, 1e9);
/// Rates in Gbit/s.
pub(super) const GBPS: Allowed = Allowed::Number(0.001, 100_000.0);
/// Sizes in bytes.
pub(super) const BYTES: Allowed = Allowed::Whole(1, 1 << 20);
/// Sizes in KiB.
pub(super) const KIB: Allowed = Allowed::Whole(1, 1 << 30);

/// A number of a machine file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a number with its source: { value = …, source = \"where it comes from\" }")]
pub(super) struct Number {
    value: Spanned<Value>,
    source: Spanned<String>,
    fitted: Option<String>,
}

impl Number {
    /// The number in the unit of its key; its section is checked before.
    pub(super) fn get(&self) -> f64 {
        match self.value.get_ref() {
            Value::Integer(value) => *value as f64,
            Value::Float(value) => *value,
            _ => f64::NAN,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.get() as usize
    }

    pub(super) fn cycles(&self) -> Cycles {
        Cycles(self.get() as u64)
    }

    pub(super) fn ns(&self) -> Time {
        Time::from_seconds(self.get() * 1e-9)
    }

    pub(super) fn gbps(&self) -> BitRate {
        BitRate::from_gbps(self.get())
    }

    pub(super) fn bytes(&self) -> Bytes {
        Bytes(self.get() as u64)
    }

    pub(super) fn kib(&self) -> Bytes {
        Bytes(self.get() as u64 * 1024)
    }

    fn node(&self) -> Node {
        match self.value.get_ref() {
            Value::Integer(value) => Node::Integer(*value),
            Value::Float(value) => Node::Number(*value),
            Value::Boolean(value) => Node::Flag(*value),
            Value::String(text) => Node::Text(text.clone()),
            Value::Datetime(date) => Node::Date(date.to_string()),
            Value::Array(_) => Node::List(Vec::new()),
            Value::Table(_) => Node::Table(Vec::new()),
        }
    }
}

/// The file that sections stand in, and the rows that were read from it so far.
pub(super) struct Source<'a> {
    places: Places<'a>,
    rows: Vec<Row>,
}

impl<'a> Source<'a> {
    pub(super) fn new(text: &'a str, file: &Path) -> Source<'a> {
        Source { places: Places::new(text, file), rows: Vec::new() }
    }

    /// Checks `number` of `section` against its declaration, and keeps its row.
    pub(super) fn take(&mut self, section: &str, key: &'static Key, number: &Number) -> Result<(), ConfigError> {
        if let Err(refusal) = key.check(&number.node(), &Vocabulary::default()) {
            return self.refuse(number, refusal.wrong, refusal.right);
        }
        let source = number.source.get_ref().trim();
        if source.is_empty() {
            let place = self.places.at(Some(number.source.span()));
            let right = "name a data sheet, a paper's section, or \"estimate: reason\"";
            return Err(ConfigError::new(&place, format!("the source of `{}` is empty", key.name), right));
        }
        self.rows.push(Row {
            section: section.to_owned(),
            key: key.name,
            unit: key.unit,
            doc: key.doc,
            value: number.get(),
            source: source.to_owned(),
            fitted: number.fitted.clone(),
        });
        Ok(())
    }

    /// The error that `number` cannot be.
    pub(super) fn refuse<T>(
        &self,
        number: &Number,
        wrong: impl Into<String>,
        right: impl Into<String>,
    ) -> Result<T, ConfigError> {
        Err(ConfigError::new(&self.places.at(Some(number.value.span())), wrong, right))
    }

    /// The error of an unknown `name`.
    pub(super) fn unknown(&self, what: &str, name: &Spanned<String>, known: &[&str]) -> ConfigError {
        ConfigError::unknown(&self.places.at(Some(name.span())), what, name.get_ref(), known)
    }

    pub(super) fn into_rows(self) -> Vec<Row> {
        self.rows
    }
}

/// A section's numbers.
pub(super) trait Section {
    /// Checks each number, and keeps its row under `section`.
    fn take(&self, section: &str, source: &mut Source<'_>) -> Result<(), ConfigError>;
}

/// Declares sections. A field is a key: its unit, the numbers that it takes, and what it is.
macro_rules! sections {
    ($(
        $(#[doc = $about:literal])+
        $struct:ident { $(@text $text:ident;)? $($key:ident: $unit:literal, $allowed:expr, $doc:literal;)+ }
    )+) => {$(
        $(#[doc = $about])+
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields, expecting = "a table of `key = { value = …, source = \"…\" }` lines")]
        pub(in $crate::machine) struct $struct {
            $(pub(in $crate::machine) $text: Option<String>,)?
            $(pub(in $crate::machine) $key: $crate::machine::section::Number,)+
        }

        impl $crate::machine::section::Section for $struct {
            fn take(
                &self,
                section: &str,
                source: &mut $crate::machine::section::Source<'_>,
            ) -> Result<(), nicforge_options::ConfigError> {
                $({
                    static KEY: nicforge_options::Key = nicforge_options::Key {
                        name: stringify!($key),
                        unit: $unit,
                        doc: $doc,
                        allowed: $allowed,
                        default: || None,
                        default_says: "",
                        source: "",
                    };
                    source.take(section, &KEY, &self.$key)?;
                })+
                Ok(())
            }
        }
    )+};
}
pub(super) use sections;

/// Tables with names of their own, in the order of the file.
#[derive(Debug)]
pub(super) struct Named<T>(pub(super) Vec<(Spanned<String>, T)>);

impl<T> Default for Named<T> {
    fn default() -> Named<T> {
        Named(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Named<T>, D::Error> {
        struct Tables<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Tables<T> {
            type Value = Named<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("tables with names of their own")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named<T>, A::Error> {
                let mut tables = Vec::new();
                while let Some(table) = map.next_entry()? {
                    tables.push(table);
                }
                Ok(Named(tables))
            }
        }

        deserializer.deserialize_map(Tables(PhantomData))
    }
}

/// Reads a machine file as a `T`.
pub(super) fn parse<T: DeserializeOwned>(text: &str, file: &Path) -> Result<T, ConfigError> {
    nicforge_options::parse_typed(text, file).map_err(|error| match &error.misfit {
        Misfit::Missing(key) => missing(&error, key),
        Misfit::Type(wrong, right) if right.starts_with("a number") => {
            // serde names the value that it found.
            let value = wrong.split('`').nth(1).unwrap_or("…");
            let right = format!("write {{ value = {value}, source = \"where it comes from\" }}");
            ConfigError::new(&error.place, "the number has no source", right)
        }
        _ => error.into_config(),
    })
}

/// Sections that a file must have.
const SECTIONS: [&str; 16] = [
    "machine",
    "core",
    "l1",
    "l2",
    "llc",
    "dram",
    "other_socket",
    "memory",
    "bridges",
    "pcie",
    "hypertransport",
    "link",
    "nic",
    "sinic",
    "driver",
    "interrupts",
];

fn missing(error: &TypedError, key: &str) -> ConfigError {
    let right = match key {
        "value" | "source" => "write { value = …, source = \"where it comes from\" }".to_owned(),
        _ if SECTIONS.contains(&key) && matches!(error.place, Place::Line { line: 1, column: 1, .. }) => {
            format!("add a section [{key}], as the shipped machines have it")
        }
        _ => format!("add {key} = {{ value = …, source = \"…\" }}"),
    };
    ConfigError::new(&error.place, format!("`{key}` is missing here"), right)
}
