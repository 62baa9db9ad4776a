//! Rings of a NIC by their numbers, as a scenario writes them: `0-1 4, 2 3` are two groups.

use std::fmt;

use nicforge_options::{Allowed, Form, OptionType, Value};

/// Rings of one kind that a NIC may have, at most.
const RINGS_MAX: u64 = 256;

/// Groups of ring numbers, counted from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RingGroups(Vec<Vec<usize>>);

impl RingGroups {
    /// Groups with commas between them, each of numbers and ranges with spaces between them; `None` where
    /// that is something else, or numbers of more rings than there may be.
    pub fn parse(text: &str) -> Option<RingGroups> {
        let groups = text.split(',').map(group);
        groups.collect::<Option<_>>().map(RingGroups)
    }

    /// The groups, in the order in which they were written.
    pub fn groups(&self) -> &[Vec<usize>] {
        &self.0
    }

    /// The numbers, where they are one group.
    pub fn one_group(&self) -> Option<&[usize]> {
        match &self.0[..] {
            [group] => Some(group),
            _ => None,
        }
    }
}

/// One group may be empty: what that means is its reader's to say.
fn group(text: &str) -> Option<Vec<usize>> {
    let mut rings = Vec::new();
    for part in text.split_whitespace() {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= RINGS_MAX {
            return None;
        }
        rings.extend(first as usize..=last as usize);
    }
    Some(rings)
}

impl fmt::Display for RingGroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = |rings: &Vec<usize>| {
            let rings: Vec<String> = rings.iter().map(usize::to_string).collect();
            rings.join(" ")
        };
        let groups: Vec<String> = self.0.iter().map(group).collect();
        f.write_str(&groups.join(", "))
    }
}

impl OptionType for RingGroups {
    fn to_value(&self) -> Option<Value> {
        Some(Value::Text(self.to_string()))
    }

    fn from_value(value: &Value) -> Option<RingGroups> {
        match value {
            Value::Text(text) => RingGroups::parse(text),
            _ => None,
        }
    }
}

/// What a key takes that is one group of rings.
pub const RING_NUMBERS: Allowed = Allowed::Form(&Form {
    says: "numbers of rings, below 256, in quotes: \"0 1 4-7\"",
    parse: |text| {
        let groups = RingGroups::parse(text)?;
        groups.one_group().filter(|group| !group.is_empty())?;
        Some(groups.to_string())
    },
});

/// What a key takes that is several.
pub const RING_SETS: Allowed = Allowed::Form(&Form {
    says: "groups of numbers of rings, below 256, in quotes: \"0-1, 0-1, 2 3\"",
    parse: |text| RingGroups::parse(text).map(|groups| groups.to_string()),
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges_make_groups() {
        let groups = RingGroups::parse("0-2 7,  5 ,0").unwrap();
        assert_eq!(groups.groups(), [vec![0, 1, 2, 7], vec![5], vec![0]]);
        assert_eq!(groups.to_string(), "0 1 2 7, 5, 0");
        assert_eq!(RingGroups::parse(&groups.to_string()), Some(groups.clone()));
        assert_eq!(groups.one_group(), None);
        let links = RingGroups::parse(" 3 3 0").unwrap();
        assert_eq!(links.one_group(), Some(&[3, 3, 0][..]));
    }

    #[test]
    fn a_group_may_be_empty() {
        let groups = RingGroups::parse("0, , 1").unwrap();
        assert_eq!(groups.groups(), [vec![0], vec![], vec![1]]);
    }

    #[test]
    fn an_invalid_ring_number_is_refused() {
        for text in ["x", "1;2", "1 | 2", "3-1", "-1", "1-", "0-256", "99999999999999999999"] {
            assert_eq!(RingGroups::parse(text), None, "{text}");
        }
    }
}
