//! Declarations, values against them, and whose keys they are.

use super::*;
use crate::{choice, options};

choice! {
    /// How frames arrive.
    enum Arrival {
        /// One after the other.
        Constant = "constant",
        /// At random.
        Poisson = "poisson",
    }
}

options! {
    /// Rings of several interfaces.
    struct Rings {
        /// Entries of each ring.
        rx_entries: usize = 1024, "entries", Allowed::PowerOfTwo(2, 65536), source "paper";
    }
}

options! {
    /// Shared rings.
    struct Shared {
        embed rings: Rings;
        /// Cores that share a ring.
        sharing: usize = 8, "cores", Allowed::Whole(1, 256);
        /// How long.
        warmup_ms: Option<f64> = None, "ms", Allowed::Number(0.0, 60_000.0), default "as long as it takes";
    }
}

options! {
    /// Traffic.
    struct Traffic {
        /// How frames arrive.
        arrival: Arrival = Arrival::Poisson, "", Arrival::ALLOWED;
        /// Whether.
        preload: bool = true, "", Allowed::Flag;
        /// Which.
        interface: String = "private".to_owned(), "", Allowed::Named("interface");
        /// Offered.
        offered_gbps: f64 = 200.0, "Gbit/s", Allowed::Number(0.001, 10_000.0);
    }
}

fn vocabulary() -> Vocabulary {
    Vocabulary::new(vec![
        Owner::of::<Rings>("interface", "private", "a ring for each"),
        Owner::of::<Shared>("interface", "shared", "a ring for all"),
        Owner::of::<Traffic>("traffic", "", "what comes"),
    ])
}

fn check(name: &str, node: Node) -> Result<Value, Refusal> {
    vocabulary().key(name).unwrap().check(&node, &vocabulary())
}

fn text(text: &str) -> Node {
    Node::Text(text.to_owned())
}

#[test]
fn a_struct_reads_what_is_set_and_has_defaults_for_the_rest() {
    let values = Values::default().with("rx_entries", 64usize).with("warmup_ms", 0.5).with("arrival", "constant");
    let shared: Shared = values.read();
    assert_eq!((shared.rings.rx_entries, shared.sharing, shared.warmup_ms), (64, 8, Some(0.5)));
    assert_eq!(values.read::<Traffic>().arrival, Arrival::Constant);
    assert_eq!(values.read::<Rings>(), shared.rings);
}

#[test]
fn a_change_stores_what_it_changed() {
    let mut values = Values::default().with("warmup_ms", 0.5);
    values.change(|shared: &mut Shared| {
        shared.rings.rx_entries = 16;
        shared.warmup_ms = None;
    });
    assert_eq!(values, Values::default().with("rx_entries", 16usize));
}

#[test]
fn keys_know_their_declaration() {
    let keys = Shared::keys();
    let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
    assert_eq!(names, ["rx_entries", "sharing", "warmup_ms"]);
    assert_eq!(
        (keys[0].doc, keys[0].source, keys[0].default_text().as_str()),
        ("Entries of each ring.", "paper", "1024")
    );
    assert_eq!(keys[2].default_text(), "as long as it takes");
    assert_eq!(keys[1].range(), Some((1.0, 256.0)));
}

#[test]
fn every_default_is_allowed_and_fits_its_field() {
    for key in vocabulary().keys() {
        let node = match (key.default)() {
            Some(Value::Integer(value)) => Node::Integer(value as i64),
            Some(Value::Number(value)) => Node::Number(value),
            Some(Value::Flag(value)) => Node::Flag(value),
            Some(Value::Text(text)) => Node::Text(text),
            None => continue,
        };
        assert_eq!(key.check(&node, &vocabulary()).ok(), (key.default)(), "{}", key.name);
    }
}

#[test]
fn a_key_is_listed_once_under_all_that_declare_it() {
    let groups = vocabulary().groups();
    let first = (groups[0].0.as_str(), groups[0].1[0].name);
    assert_eq!(first, ("interface private, interface shared", "rx_entries"));
    assert_eq!(groups.iter().map(|(_, keys)| keys.len()).sum::<usize>(), vocabulary().keys().len());
    let page = vocabulary().markdown();
    assert_eq!(page.matches("| `rx_entries` |").count(), 1, "{page}");
    assert!(page.contains("| `interface` | one of private, shared |"), "{page}");
}

#[test]
fn an_unknown_key_gets_the_nearest_name() {
    let place = Place::argument("--set");
    let error = vocabulary().known("rx_entrys", &place).unwrap_err();
    assert_eq!(error.right, "did you mean `rx_entries`?");
    let error = vocabulary().known("zzz", &place).unwrap_err();
    assert!(error.right.contains("list settings"), "{error}");
}

#[test]
#[should_panic(expected = "declares `rx_entries` otherwise than interface private")]
fn owners_that_contradict_each_other_are_found() {
    options! {
        /// The same key with other values.
        struct Other {
            /// Entries.
            rx_entries: usize = 1, "entries", Allowed::Whole(1, 2);
        }
    }
    Vocabulary::new(vec![Owner::of::<Rings>("interface", "private", ""), Owner::of::<Other>("interface", "other", "")]);
}

#[test]
fn ring_sizes_are_powers_of_two() {
    let refusal = check("rx_entries", Node::Integer(100)).unwrap_err();
    assert_eq!(refusal.right, "64 or 128 would do");
    assert!(check("rx_entries", Node::Integer(-1)).is_err());
    assert_eq!(check("rx_entries", Node::Integer(128)), Ok(Value::Integer(128)));
}

fn proposed(name: &str, node: Node) -> Option<String> {
    let refusal = check(name, node).unwrap_err();
    refusal.right.rsplit_once(&format!("{name} = ")).map(|(_, value)| value.to_owned())
}

#[test]
fn a_number_with_a_unit_is_answered_in_the_keys_unit() {
    for (name, given, right) in [
        ("warmup_ms", "5us", "0.005"),
        ("offered_gbps", "200 Mbit/s", "0.2"),
        ("rx_entries", "128 entries", "128"),
        ("sharing", "8", "8"),
    ] {
        assert_eq!(proposed(name, text(given)).as_deref(), Some(right), "{name}={given}");
    }
    for (name, given) in [("sharing", "99999999999999999999"), ("sharing", "4 ms"), ("warmup_ms", "100 s")] {
        assert_eq!(proposed(name, text(given)), None, "{name}={given}");
    }
}

#[test]
fn a_whole_number_with_a_point_is_answered_without() {
    assert_eq!(proposed("rx_entries", Node::Number(128.0)).as_deref(), Some("128"));
    for wrong in [0.0, 4.5, 257.0, 1e300, f64::INFINITY, f64::NAN] {
        assert_eq!(proposed("sharing", Node::Number(wrong)), None, "{wrong}");
    }
}

#[test]
fn whole_numbers_may_stand_for_numbers_but_not_the_other_way() {
    assert_eq!(check("offered_gbps", Node::Integer(200)), Ok(Value::Number(200.0)));
    assert!(check("sharing", Node::Number(4.0)).is_err());
    assert!(check("offered_gbps", Node::Number(f64::NAN)).is_err());
}

#[test]
fn names_and_words_come_from_owners_and_types() {
    assert!(check("interface", text("shared")).is_ok());
    assert_eq!(check("interface", text("shaerd")).unwrap_err().right, "did you mean \"shared\"?");
    assert_eq!(check("arrival", text("poison")).unwrap_err().right, "did you mean \"poisson\"?");
    assert!(check("preload", text("yes")).unwrap_err().right.contains("true or false"));
}
