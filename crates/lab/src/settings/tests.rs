//! What counts, what goes together, and what follows from several owners.

use std::path::Path;

use nicforge_options::{Allowed, Finding, Node, Value};

use super::*;

/// A text is some word of its key, or anything.
fn any_of(key: &Key, catalogue: &Catalogue) -> Vec<Value> {
    match key.allowed {
        Allowed::Whole(least, most) | Allowed::PowerOfTwo(least, most) => {
            vec![Value::Integer(least), Value::Integer(most)]
        }
        Allowed::Number(least, most) => vec![Value::Number(least), Value::Number(most)],
        Allowed::Flag => vec![Value::Flag(true), Value::Flag(false)],
        Allowed::Choice(words) => words.iter().map(|&word| Value::from(word)).collect(),
        Allowed::Named(kind) | Allowed::NamedList(kind) => {
            catalogue.vocabulary().names(kind).into_iter().map(Value::from).collect()
        }
        Allowed::File => vec![Value::from("x")],
        Allowed::Form(form) | Allowed::List(form) => {
            ["0 1 7", "0 255, , 7", "STE"].into_iter().filter_map(form.parse).map(Value::from).collect()
        }
    }
}

#[test]
fn every_default_is_allowed_by_its_own_declaration() {
    let catalogue = Catalogue::shipped();
    for key in catalogue.vocabulary().keys() {
        let node = match (key.default)() {
            Some(Value::Integer(value)) => Node::Integer(i64::try_from(value).unwrap()),
            Some(Value::Number(value)) => Node::Number(value),
            Some(Value::Flag(value)) => Node::Flag(value),
            Some(Value::Text(text)) => Node::Text(text),
            None => continue,
        };
        assert_eq!(key.check(&node, catalogue.vocabulary()).ok(), (key.default)(), "{} = {node:?}", key.name);
    }
}

/// Whoever declares a key has room for all that it takes: choices know all of its words.
#[test]
fn every_value_that_is_allowed_fits_every_owner() {
    let catalogue = Catalogue::shipped();
    for owner in catalogue.vocabulary().owners() {
        for key in &owner.keys {
            for value in any_of(key, &catalogue) {
                assert!(owner.takes(key.name, &value), "{owner}: {} = {value}", key.name);
            }
        }
    }
}

#[test]
fn keys_are_described() {
    let catalogue = Catalogue::shipped();
    let keys = catalogue.vocabulary().keys();
    assert!(keys.len() > 100);
    assert!(keys.iter().all(|key| key.doc.ends_with('.')));
}

/// A capture is a whole; what is measured begins and ends with it, and only a search warms up before.
#[test]
fn keys_that_a_replay_does_not_use_do_not_count() {
    let replay = Settings::default().with("arrival", "replay");
    let counts = |name: &str, settings: Settings| settings.counts(name);
    assert!(!counts("warmup_ms", replay.clone()));
    assert!(counts("warmup_ms", replay.clone().with("measure", "no_drop_rate")));
    assert!(counts("warmup_ms", replay.clone().with("workload", "web_server")));
    assert!(!counts("window_ms", replay.clone().with("measure", "no_drop_rate")));
    assert!(!counts("zipf_s", replay.clone().with("flow_choice", "zipf")));
    for key in ["target_packet_bytes", "target_begins_ms"] {
        assert!(!counts(key, replay.clone().with("target_share", 0.5)), "{key}");
    }
    assert!(!counts("flows", replay.clone()));
    // NICs know flows of their own, whoever sends.
    assert!(counts("flows", replay.with("app", "counter").with("offload", "accel_nfv")));
}

#[test]
fn a_key_counts_with_the_module_that_reads_it() {
    for (key, choice, with, without) in [
        ("burst_packets", "arrival", "bursts", "constant"),
        ("servers", "app", "lb", "nat"),
        ("sharing", "interface", "sh_ring", "priv_ring"),
        ("rx_entries", "interface", "priv_ring", "rx_bisect"),
        ("nicmem_kib", "interface", "nm_nfv_minus", "split"),
        ("zipf_s", "flow_choice", "zipf", "uniform"),
        ("packet_bytes", "app", "nat", "kvs"),
        ("streams", "workload", "web_server", "iscsi_initiator"),
        ("app", "workload", "frames", "web_server"),
    ] {
        let settings = |word: &str| Settings::default().with(choice, word);
        assert!(settings(with).counts(key), "{key} with {choice} = {with}");
        assert!(!settings(without).counts(key), "{key} with {choice} = {without}");
    }
}

#[test]
fn an_emulated_interface_uses_its_own_settings() {
    let counts = |name: &str, emulates: &str| {
        Settings::default().with("interface", "emulated").with("emulates", emulates).counts(name)
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
fn a_targets_frames_count_by_their_share() {
    let mean = |share: f64, target: Option<u32>, arrival: &str| {
        let settings =
            Settings::default().with("packet_bytes", 64).with("target_share", share).with("arrival", arrival);
        let settings = target.into_iter().fold(settings, |settings, bytes| settings.with("target_packet_bytes", bytes));
        (settings.frame_bytes(), settings.frame_lines_bytes())
    };
    assert_eq!(mean(0.0, Some(1500), "constant"), (64, 64));
    assert_eq!(mean(1.0, None, "constant"), (64, 64));
    assert_eq!(mean(1.0, Some(1500), "constant"), (1500, 1536));
    assert_eq!(mean(0.25, Some(1500), "constant"), (423, 432));
    assert_eq!(mean(1.0, Some(1500), "replay"), (64, 64));
}

/// What is wrong with the shipped machine's settings after `change`.
fn wrong_with(change: fn(Settings) -> Settings) -> Finding {
    let text = include_str!("../../../../machines/xeon-4216-cx5.toml");
    let machine = crate::machine::parse_machine(text, Path::new("m.toml")).unwrap();
    let settings = Settings::for_machine(&Catalogue::shipped(), &machine);
    change(settings).check(&machine).unwrap_err()
}

#[test]
fn sums_of_times_have_no_rounding_errors() {
    let finding = wrong_with(|s| s.with("warmup_ms", 0.1).with("window_ms", 0.2).with("polling_starts_ms", 0.5));
    assert!(finding.wrong.contains("(0.3 ms)"), "{}", finding.wrong);
    let finding = wrong_with(|s| s.with("warmup_ms", 0.1).with("window_ms", 20.2).with("timeline_ms", 0.001));
    assert!(finding.right.contains("0.002031"), "{}", finding.right);
}

#[test]
fn interfaces_that_no_core_can_play_are_refused_with_the_reason() {
    for (wanted, why) in
        [("emulated", "already"), ("in_place", "overwrites"), ("split", "two buffers"), ("sinic", "systems")]
    {
        let settings = Settings::default().with("interface", "emulated").with("emulates", wanted);
        let finding = settings.check_interface().unwrap_err();
        assert_eq!(finding.keys, ["emulates"]);
        assert!(finding.wrong.contains(wanted) && finding.wrong.contains(why), "{}", finding.wrong);
        assert!(finding.right.contains("rx_bisect") && !finding.right.contains("in_place"), "{}", finding.right);
    }
}
