//! The table of settings against itself, and values against their declarations.

use super::*;
use nicforge_options::Node;

const NAMES: Names<'static> =
    Names { interfaces: &["priv_ring", "sh_ring"], apps: &["l3fwd", "nat", "lb", "synthetic"] };

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
        Allowed::RingNumbers => vec![Value::Text("255".to_string())],
        Allowed::RingSets => vec![Value::Text("0 255, , 7".to_string())],
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
        let conditions = conditions.chain(key.moot_when).chain(key.counts_with);
        for (name, values) in conditions {
            let Some(other) = super::key(name) else {
                panic!("{} depends on {name}, which is no key", key.name);
            };
            if let Allowed::Choice(known) = other.allowed {
                assert!(values.iter().all(|value| known.contains(value)), "{}", key.name);
            }
            let numbers = values.contains(&conditions::ABOVE_0);
            assert_eq!(numbers, other.range().is_some(), "{}", key.name);
        }
    }
}

/// A capture is a whole; what is measured begins and ends with it, and only a search warms up before.
#[test]
fn what_a_replay_does_not_use_does_not_count() {
    let counts = |name: &str, change: fn(&mut Settings)| {
        let mut settings = Settings { arrival: "replay".into(), ..Settings::default() };
        change(&mut settings);
        super::key(name).unwrap().counts(&settings)
    };
    let zipf = |settings: &mut Settings| settings.flow_choice = "zipf".into();
    let target = |settings: &mut Settings| settings.target_share = 0.5;
    assert!(!counts("warmup_ms", |_| ()));
    assert!(counts("warmup_ms", |s| s.measure = "no_drop_rate".into()));
    assert!(counts("warmup_ms", |s| s.workload = "web_server".into()));
    assert!(!counts("window_ms", |s| s.measure = "no_drop_rate".into()));
    assert!(!counts("zipf_s", zipf));
    for key in ["target_packet_bytes", "target_begins_ms"] {
        assert!(!counts(key, target), "{key}");
    }
    assert!(!counts("flows", |_| ()));
    // NICs know flows of their own, whoever sends.
    assert!(counts("flows", |s| {
        s.app = "counter".into();
        s.offload = "accel_nfv".into();
    }));
}

#[test]
fn a_targets_frames_count_by_their_share() {
    let mean = |share: f64, target: Option<u32>, change: fn(&mut Settings)| {
        let mut settings =
            Settings { packet_bytes: 64, target_share: share, target_packet_bytes: target, ..Settings::default() };
        change(&mut settings);
        (settings.frame_bytes(), settings.frame_lines_bytes())
    };
    assert_eq!(mean(0.0, Some(1500), |_| ()), (64, 64));
    assert_eq!(mean(1.0, None, |_| ()), (64, 64));
    assert_eq!(mean(1.0, Some(1500), |_| ()), (1500, 1536));
    assert_eq!(mean(0.25, Some(1500), |_| ()), (423, 432));
    let replay = |settings: &mut Settings| settings.arrival = "replay".into();
    assert_eq!(mean(1.0, Some(1500), replay), (64, 64));
}

/// What is wrong with the shipped machine's settings after `change`.
fn wrong_with(change: fn(&mut Settings)) -> Finding {
    let text = include_str!("../../../../machines/xeon-4216-cx5.toml");
    let machine = crate::machine::parse_machine(text, std::path::Path::new("m.toml")).unwrap();
    let mut settings = Settings::for_machine(&machine);
    change(&mut settings);
    settings.check(&machine).unwrap_err()
}

#[test]
fn sums_of_times_have_no_rounding_errors() {
    let finding = wrong_with(|settings| {
        (settings.warmup_ms, settings.window_ms) = (0.1, 0.2);
        settings.polling_starts_ms = 0.5;
    });
    assert!(finding.wrong.ends_with("(0.3 ms)"), "{}", finding.wrong);
    let finding = wrong_with(|settings| {
        (settings.warmup_ms, settings.window_ms) = (0.1, 20.2);
        settings.timeline_ms = Some(0.001);
    });
    assert_eq!(finding.right, "set timeline_ms to 0.002031 or more");
}

#[test]
fn what_a_core_plays_uses_its_own_settings() {
    let counts = |name: &str, emulates: &str| {
        let settings = Settings { interface: "emulated".into(), emulates: emulates.into(), ..Settings::default() };
        super::key(name).unwrap().counts(&settings)
    };
    for (name, used) in [
        ("sharing", ["sh_ring", "sh_ring_dynamic"]),
        ("dynamic_gbps", ["sh_ring_dynamic", "sh_ring_dynamic"]),
        ("ax_entries", ["rx_bisect", "rx_bisect"]),
        ("rx_entries", ["priv_ring", "sh_ring"]),
    ] {
        assert!(used.iter().all(|emulates| counts(name, emulates)), "{name}");
    }
    let unused =
        [("sharing", "rx_bisect"), ("dynamic_gbps", "sh_ring"), ("ax_entries", "sh_ring"), ("rx_entries", "rx_bisect")];
    assert!(unused.iter().all(|(name, emulates)| !counts(name, emulates)));
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
    assert_eq!(check("rx_entries", Node::Integer(128)), Ok(Value::Integer(128)));
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
    assert!(refusal.right.ends_with("without quotes or unit: packet_bytes = 1500"));
}

/// What a refusal proposes to write instead.
fn proposed(name: &str, node: Node) -> Option<String> {
    let right = check(name, node).unwrap_err().right;
    let (_, proposed) = right.split_once(" = ")?;
    Some(proposed.to_string())
}

#[test]
fn a_number_with_another_unit_is_converted_to_the_keys_own() {
    for (name, text, right) in [
        ("warmup_ms", "5us", "0.005"),
        ("offered_gbps", "200 Mbit/s", "0.2"),
        ("cpu_ghz", "2100MHz", "2.1"),
        ("packet_bytes", "9KiB", "9216"),
        ("kvs_log_mib", "4 GiB", "4096"),
        ("rx_entries", "128 entries", "128"),
        ("cores", "8", "8"),
    ] {
        let found = proposed(name, Node::Text(text.to_string()));
        assert_eq!(found.as_deref(), Some(right), "{name}={text}");
    }
}

#[test]
fn no_number_is_proposed_that_would_be_refused() {
    for (name, text) in [
        ("cores", "99999999999999999999"),
        ("cores", "4 ms"),
        ("packet_bytes", "10 KiB"),
        ("packet_bytes", "0.1 KiB"),
        ("warmup_ms", "2 min"),
        ("warmup_ms", "100 s"),
        ("rx_entries", "100 entries"),
        ("app", "4 ms"),
    ] {
        let found = proposed(name, Node::Text(text.to_string()));
        assert_eq!(found, None, "{name}={text}");
    }
    assert_eq!(proposed("warmup_ms", Node::Number(1e9)), None);
}

#[test]
fn a_whole_number_with_a_point_is_answered_without() {
    let refusal = check("rx_entries", Node::Number(128.0)).unwrap_err();
    assert_eq!(refusal.wrong, "`rx_entries` cannot be 128.0");
    let right = "a power of two, 2 to 65536 entries, without a point or exponent: rx_entries = 128";
    assert!(refusal.right.ends_with(right), "{}", refusal.right);
    for wrong in [0.0, 4.5, 257.0, 1e300, f64::INFINITY, f64::NAN] {
        assert_eq!(proposed("cores", Node::Number(wrong)), None, "{wrong}");
    }
}

#[test]
fn whole_numbers_may_stand_for_numbers_but_not_the_other_way() {
    assert_eq!(check("offered_gbps", Node::Integer(200)), Ok(Value::Number(200.0)));
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

#[test]
fn rings_are_named_by_number() {
    let text = |text: &str| Node::Text(text.to_string());
    let value = check("associations", text("0-2,1 , "));
    assert_eq!(value, Ok(Value::Text("0 1 2, 1, ".to_string())));
    assert!(check("ax_links", text("3 0-1 3")).is_ok());
    for (name, wrong) in [
        ("associations", text("0;1")),
        ("associations", Node::Integer(3)),
        ("ax_links", text("0, 1")),
        ("ax_links", text("")),
        ("ax_links", text("0-256")),
    ] {
        let refusal = check(name, wrong.clone()).unwrap_err();
        assert!(refusal.right.contains("in quotes"), "{wrong:?}: {refusal:?}");
    }
}
