//! Each index finds what a walk over all entries finds.

use proptest::prelude::*;

use super::*;
use crate::p4::ir::KeyInfo;

fn table(kinds: &[(MatchKind, u32)]) -> Table {
    let keys = kinds.iter().map(|(kind, width)| KeyInfo {
        annotations: Default::default(),
        ty: crate::p4::types::Type::Bit(*width),
        name: "k".into(),
        width: *width,
        kind: *kind,
        names: vec![],
    });
    let action = crate::p4::ir::ActionInfo {
        annotations: Default::default(),
        list_annotations: Default::default(),
        path: "a".into(),
        parameters: vec![],
        default_only: false,
        table_only: false,
    };
    Table::new(&TableInfo {
        annotations: Default::default(),
        profile: None,
        path: "t".into(),
        keys: keys.collect(),
        actions: vec![action],
        default: ActionCall::default(),
        default_is_const: false,
        entries: vec![],
        entries_are_const: false,
        size: None,
        counter: None,
        meter: None,
        has_selector: false,
        add_on_miss: false,
        span: Default::default(),
    })
}

fn entry(keys: Vec<Match>, priority: i64) -> Entry {
    let action = EntryAction::Call(ActionCall::default());
    Entry { keys, priority, action, is_const: false, hits: (0, 0), meter: Default::default() }
}

fn matches(key: &Match, width: u32, value: u64) -> bool {
    match key {
        Match::Exact(wanted) => wanted[0] == value,
        Match::Lpm(wanted, length) => {
            let mask = prefix_mask(width, *length)[0];
            wanted[0] & mask == value & mask
        }
        Match::Ternary(wanted, mask) => wanted[0] & mask[0] == value & mask[0],
        Match::Range(low, high) => (low[0]..=high[0]).contains(&value),
        Match::Any => true,
    }
}

proptest! {
    #[test]
    fn trie_agrees_with_a_walk(
        width in prop::sample::select(vec![9u32, 16, 32, 48, 64]),
        prefixes in proptest::collection::vec((any::<u64>(), 0u32..=64), 0..60),
        removed in proptest::collection::vec(any::<prop::sample::Index>(), 0..20),
        probes in proptest::collection::vec(any::<u64>(), 0..40),
    ) {
        // Few bits that differ make prefixes of prefixes.
        let fit = |value: u64| (value & 0x8181_8181_8181_8181) >> (64 - width);
        let prefixes: Vec<(u64, u32)> =
            prefixes.into_iter().map(|(value, length)| (fit(value), length.min(width))).collect();
        let probes: Vec<u64> = probes.into_iter().map(fit).collect();
        let mut table = table(&[(MatchKind::Lpm, width)]);
        for (value, length) in &prefixes {
            let _ = table.update(Update::Insert(entry(vec![Match::Lpm(vec![*value], *length)], 0)));
        }
        for index in &removed {
            if !prefixes.is_empty() {
                let (value, length) = *index.get(&prefixes);
                let _ = table.update(Update::Delete(entry(vec![Match::Lpm(vec![value], length)], 0)));
            }
        }
        for probe in probes.iter().chain(prefixes.iter().map(|(value, _)| value)) {
            let value = *probe;
            let length = |entry: &Entry| if let Match::Lpm(_, length) = entry.keys[0] { length } else { 0 };
            let hits = table.entries().filter(|(_, entry)| matches(&entry.keys[0], width, value));
            let best = hits.max_by_key(|(_, entry)| length(entry)).map(|(number, _)| number);
            prop_assert_eq!(table.find(&[value]), best);
        }
    }

    #[test]
    fn prefixes_beside_exact_keys_agree_with_a_walk(
        first in any::<bool>(),
        width in prop::sample::select(vec![9u32, 32, 48, 64]),
        rules in proptest::collection::vec((0u64..3, any::<u64>(), 0u32..=64), 0..60),
        removed in proptest::collection::vec(any::<prop::sample::Index>(), 0..20),
        probes in proptest::collection::vec((0u64..4, any::<u64>()), 0..40),
    ) {
        let fit = |value: u64| (value & 0x8181_8181_8181_8181) >> (64 - width);
        let order = |exact, prefix| if first { vec![exact, prefix] } else { vec![prefix, exact] };
        let (prefix_at, exact_at) = if first { (1, 0) } else { (0, 1) };
        let build = |(exact, value, length): &(u64, u64, u32)| {
            let prefix = Match::Lpm(vec![fit(*value)], (*length).min(width));
            entry(order(Match::Exact(vec![*exact]), prefix), 0)
        };
        let kinds = if first { [(MatchKind::Exact, 8), (MatchKind::Lpm, width)] } else { [(MatchKind::Lpm, width), (MatchKind::Exact, 8)] };
        let mut table = table(&kinds);
        for rule in &rules {
            let _ = table.update(Update::Insert(build(rule)));
        }
        for index in &removed {
            if !rules.is_empty() {
                let _ = table.update(Update::Delete(build(index.get(&rules))));
            }
        }
        for (exact, value) in probes.iter().copied().chain(rules.iter().map(|(exact, value, _)| (*exact, *value))) {
            let value = fit(value);
            let length = |entry: &Entry| if let Match::Lpm(_, length) = entry.keys[prefix_at] { length } else { 0 };
            let hits = table.entries().filter(|(_, entry)| {
                matches(&entry.keys[exact_at], 8, exact) && matches(&entry.keys[prefix_at], width, value)
            });
            let best = hits.max_by_key(|(_, entry)| length(entry)).map(|(number, _)| number);
            let keys = if first { [exact, value] } else { [value, exact] };
            prop_assert_eq!(table.find(&keys), best);
        }
    }

    #[test]
    fn tuple_space_agrees_with_a_walk(
        rules in proptest::collection::vec((any::<u8>(), any::<u8>(), any::<u8>(), any::<u8>(), 0i64..1000), 0..40),
        removed in proptest::collection::vec(any::<prop::sample::Index>(), 0..10),
        probes in proptest::collection::vec((any::<u8>(), any::<u8>()), 0..60),
    ) {
        let mut table = table(&[(MatchKind::Ternary, 8), (MatchKind::Range, 8)]);
        let build = |(number, rule): (usize, &(u8, u8, u8, u8, i64))| {
            let (value, mask, a, b, priority) = *rule;
            let range = Match::Range(vec![u64::from(a.min(b))], vec![u64::from(a.max(b))]);
            // Priorities differ, so that one entry is best.
            entry(vec![Match::Ternary(vec![u64::from(value & mask)], vec![u64::from(mask & 0xf0)]), range], priority * 64 + number as i64)
        };
        let entries: Vec<Entry> = rules.iter().enumerate().map(build).collect();
        for entry in &entries {
            let _ = table.update(Update::Insert(entry.clone()));
        }
        for index in &removed {
            if !entries.is_empty() {
                let _ = table.update(Update::Delete(index.get(&entries).clone()));
            }
        }
        for (a, b) in probes {
            let hits = table.entries().filter(|(_, entry)| {
                matches(&entry.keys[0], 8, u64::from(a)) && matches(&entry.keys[1], 8, u64::from(b))
            });
            let best = hits.max_by_key(|(_, entry)| entry.priority).map(|(number, _)| number);
            prop_assert_eq!(table.find(&[u64::from(a), u64::from(b)]), best);
        }
    }
}

#[test]
fn duplicate_is_refused_and_delete_frees_the_place() {
    let mut table = table(&[(MatchKind::Exact, 16)]);
    let one = entry(vec![Match::Exact(vec![1])], 0);
    assert!(table.update(Update::Insert(one.clone())).is_ok());
    assert!(matches!(table.update(Update::Insert(one.clone())), Err(UpdateError::Exists { .. })));
    assert!(table.update(Update::Delete(one)).is_ok());
    assert_eq!(table.find(&[1]), None);
    let wide = entry(vec![Match::Exact(vec![1 << 16])], 0);
    assert!(matches!(table.update(Update::Insert(wide)), Err(UpdateError::Key { .. })));
    let any = entry(vec![Match::Any], 0);
    assert!(matches!(table.update(Update::Insert(any)), Err(UpdateError::Key { .. })));
}
