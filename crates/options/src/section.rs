//! One table of a file: the values of the keys that its owners declare.

use std::collections::BTreeSet;

use crate::{ConfigError, Key, Located, Options, Owner, Place, Value, Values, Vocabulary};

/// The values of a table, and where each stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    place: Place,
    values: Values,
    places: Vec<(&'static str, Place)>,
}

impl Section {
    /// A section without keys at `place`: every key has its default.
    pub fn empty(place: &Place) -> Section {
        Section { place: place.clone(), values: Values::default(), places: Vec::new() }
    }

    /// Reads `table`, whose keys belong to `owners`; `what` names it in errors, such as `"[live]"`.
    ///
    /// # Errors
    /// A key that no owner declares, or a value that its declaration does not allow.
    pub fn of(table: &Located, what: &str, owners: &[Owner]) -> Result<Section, ConfigError> {
        let mut section = Section::empty(&table.place);
        let keys: Vec<&'static Key> = owners.iter().flat_map(|owner| &owner.keys).copied().collect();
        for field in table.table(what)? {
            let Some(key) = keys.iter().find(|key| key.name == field.key) else {
                let names: BTreeSet<&str> = keys.iter().map(|key| key.name).collect();
                let known: Vec<&str> = names.into_iter().collect();
                return Err(ConfigError::unknown(&field.place, &format!("key of {what}"), &field.key, &known));
            };
            let value = key.check(&field.value.node, &Vocabulary::default()).map_err(|refusal| {
                let place = refusal.place.as_ref().unwrap_or(&field.value.place);
                ConfigError::new(place, refusal.wrong, refusal.right)
            })?;
            section.set(key.name, value, field.place.clone());
        }
        Ok(section)
    }

    /// The options of one owner.
    pub fn read<O: Options>(&self) -> O {
        self.values.read()
    }

    /// Sets key `name`, which stands at `place`.
    pub fn set(&mut self, name: &'static str, value: impl Into<Value>, place: Place) {
        self.places.retain(|(known, _)| *known != name);
        self.places.push((name, place));
        self.values.set(name, value);
    }

    /// The values that are set.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// The keys that are set, with the place of each, in the order of the file.
    pub fn keys(&self) -> impl Iterator<Item = (&'static str, &Place)> {
        self.places.iter().map(|(name, place)| (*name, place))
    }

    /// Whether key `name` is set.
    pub fn sets(&self, name: &str) -> bool {
        self.values.get(name).is_some()
    }

    /// Where the section stands.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Where key `name` stands; the section's place if it is unset.
    pub fn place_of(&self, name: &str) -> &Place {
        self.keys().find(|(known, _)| *known == name).map_or(&self.place, |(_, place)| place)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::path::Path;

    use super::*;
    use crate::{Allowed, IPV4, options, parse_tree};

    options! {
        /// A host.
        struct Host {
            /// Its addresses.
            addresses: Vec<Ipv4Addr> = Vec::new(), "", Allowed::List(&IPV4), default "none";
            /// Its name.
            name: Option<String> = None, "", Allowed::Form(&crate::NAME);
        }
    }

    fn section(text: &str) -> Result<Section, ConfigError> {
        let root = parse_tree(text, Path::new("x.toml"))?;
        let host = &root.table("the file")?[0].value;
        Section::of(host, "[host]", &[Owner::of::<Host>("", "host", "")])
    }

    #[test]
    fn an_owner_reads_its_keys_and_their_places() {
        let section = section("[host]\nname = \"a\"\naddresses = [\"10.0.0.1\", \"10.0.0.2\"]\n").unwrap();
        let host: Host = section.read();
        assert_eq!(host.addresses, [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)]);
        assert_eq!(section.place_of("addresses").to_string(), "x.toml:3:1");
        assert!(section.sets("name") && !section.sets("other"));
    }

    #[test]
    fn wrong_keys_and_items_are_refused_where_they_stand() {
        let error = section("[host]\nnam = \"a\"\n").unwrap_err().to_string();
        assert_eq!(error, "x.toml:2:1: unknown key of [host] `nam`; did you mean `name`?");
        let error = section("[host]\naddresses = [\n  \"10.0.0.1\",\n  \"10.0.0\",\n]\n").unwrap_err().to_string();
        assert!(error.starts_with("x.toml:4:3: `addresses` cannot be \"10.0.0\"; "), "{error}");
        let error = section("[host]\naddresses = \"10.0.0.1\"\n").unwrap_err().to_string();
        assert!(error.starts_with("x.toml:2:13: ") && error.contains("list"), "{error}");
    }
}
