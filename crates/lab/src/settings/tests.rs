//! The table of settings against itself, and values against their declarations.

use super::*;
use crate::config::Node;

const NAMES: Names<'static> = Names {
    interfaces: &["priv_ring", "sh_ring"],
    apps: &["l3fwd", "nat", "lb", "synthetic"],
};

fn check(name: &str, node: Node) -> Result<Value, Refusal> {
    key(name).unwrap().check(&node, &NAMES)
}

#[test]
fn every_default_is_allowed_by_its_own_declaration() {
    for key in KEYS {
        let node = match (key.get)(&Settings::default()) {
            Some(Value::Integer(value)) => Node::Integer(i64::try_from(value).unwrap()),
            Some(Value::Number(value)) => Node::Number(value),
            Some(Value::Flag(value)) => Node::Flag(value),
            Some(Value::Text(text)) => Node::Text(text),
            None => continue,
        };
        assert!(key.check(&node, &NAMES).is_ok(), "{} = {node:?}", key.name);
    }
}

#[test]
fn every_range_fits_its_field() {
    let extremes = |allowed: Allowed| match allowed {
        Allowed::Whole(least, most) | Allowed::PowerOfTwo(least, most) => {
            vec![Value::Integer(least), Value::Integer(most)]
        }
        Allowed::Number(least, most) => vec![Value::Number(least), Value::Number(most)],
        Allowed::Flag => vec![Value::Flag(true)],
        _ => vec![Value::Text("x".to_string())],
    };
    for key in KEYS {
        for value in extremes(key.allowed) {
            let mut settings = Settings::default();
            assert!((key.set)(&mut settings, &value), "{} = {value}", key.name);
            assert_eq!((key.get)(&settings), Some(value), "{}", key.name);
        }
    }
}

#[test]
fn conditions_name_choices_that_exist() {
    for key in KEYS {
        let conditions = key.used_when.iter().chain(key.unused_when);
        for (name, values) in conditions.chain(key.moot_when) {
            let Some(other) = super::key(name) else {
                panic!("{} depends on {name}, which is no key", key.name);
            };
            if let Allowed::Choice(known) = other.allowed {
                assert!(
                    values.iter().all(|value| known.contains(value)),
                    "{}",
                    key.name
                );
            }
        }
    }
}

#[test]
fn names_are_unique_and_described() {
    let mut names = key_names();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), KEYS.len());
    assert!(KEYS.iter().all(|key| key.doc.trim().ends_with('.')));
}

#[test]
fn ring_sizes_are_powers_of_two() {
    assert_eq!(
        check("rx_entries", Node::Integer(128)),
        Ok(Value::Integer(128))
    );
    let right = |value| check("rx_entries", Node::Integer(value)).unwrap_err().right;
    assert_eq!(right(100), "64 or 128 would do");
    assert_eq!(right(0), "2 would do");
    assert_eq!(right(-1), "2 would do");
    assert_eq!(right(i64::MAX), "65536 would do");
}

#[test]
fn a_number_in_quotes_with_a_unit_is_answered_without() {
    let refusal = check("packet_bytes", Node::Text("1500 B".to_string())).unwrap_err();
    assert_eq!(refusal.wrong, "`packet_bytes` cannot be \"1500 B\"");
    assert!(
        refusal
            .right
            .ends_with("without quotes or unit: packet_bytes = 1500")
    );
}

#[test]
fn whole_numbers_may_stand_for_numbers_but_not_the_other_way() {
    assert_eq!(
        check("offered_gbps", Node::Integer(200)),
        Ok(Value::Number(200.0))
    );
    assert!(check("cores", Node::Number(4.0)).is_err());
    assert!(check("offered_gbps", Node::Number(f64::NAN)).is_err());
    assert!(check("offered_gbps", Node::Number(f64::INFINITY)).is_err());
}

#[test]
fn names_come_from_the_registries() {
    assert!(check("interface", Node::Text("sh_ring".to_string())).is_ok());
    let refusal = check("interface", Node::Text("shring".to_string())).unwrap_err();
    assert_eq!(refusal.right, "did you mean \"sh_ring\"?");
}
