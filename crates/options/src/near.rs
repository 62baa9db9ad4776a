//! Which known name a person meant by an unknown one.

use crate::unit::is_unit;

/// The known name that a person most likely meant by `name`, if one is close: what a slip of the
/// pen makes of it, the same in another unit, or the only one that is the same except its end.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    misspelt(name, known)
        .or_else(|| known.iter().copied().find(|other| same_but_unit(name, other)))
        .or_else(|| the_only_with_more(name, known))
}

/// The powers of two from `least` to `most` next to `wanted`, in words.
pub fn powers_next_to(wanted: u64, least: u64, most: u64) -> String {
    let wanted = wanted.clamp(least, most);
    let above = wanted.next_power_of_two();
    match above / 2 {
        below if above != wanted && below >= least => format!("{below} or {above} would do"),
        _ => format!("{above} would do"),
    }
}

fn misspelt<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    const CLOSE: f64 = 0.75;
    known
        .iter()
        .filter(|candidate| could_be_slip(name, candidate))
        .map(|candidate| (strsim::jaro_winkler(name, candidate), *candidate))
        .filter(|(likeness, _)| *likeness >= CLOSE)
        // The first of equally near names wins, so that the answer never changes by itself.
        .reduce(|best, other| if other.0 > best.0 { other } else { best })
        .map(|(_, candidate)| candidate)
}

/// Whether at most every fourth letter is wrong, and if more than one, not the first: that people get
/// right.
fn could_be_slip(name: &str, known: &str) -> bool {
    let longer = name.chars().count().max(known.chars().count());
    let wrong = strsim::damerau_levenshtein(name, known);
    wrong <= 1 || wrong <= (longer + 2) / 4 && name.chars().next() == known.chars().next()
}

/// As `packet_kib` for `packet_bytes`.
fn same_but_unit(name: &str, known: &str) -> bool {
    match (name.rsplit_once('_'), known.rsplit_once('_')) {
        (Some((what, unit)), Some((other, right))) => what == other && is_unit(unit) && is_unit(right),
        _ => false,
    }
}

/// As `xeon-4216` for `xeon-4216-cx5`, or the other way about where most of the name is right.
fn the_only_with_more<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    const SHORTEST: usize = 3;
    let fits = |other: &&&str| {
        let is_cut = name.len() >= SHORTEST && other.starts_with(name);
        is_cut || name.starts_with(**other) && other.len() * 2 >= name.len()
    };
    let mut fitting = known.iter().filter(fits);
    match (fitting.next(), fitting.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 19] = [
        "interface",
        "app",
        "cores",
        "nics",
        "rx_entries",
        "tx_entries",
        "sharing",
        "dynamic_gbps",
        "dynamic_step_ms",
        "list_batch",
        "offered_gbps",
        "packet_bytes",
        "packet_sizes",
        "zipf_s",
        "kvs_key_bytes",
        "kvs_zipf_s",
        "warmup_ms",
        "window_ms",
        "graph_cores",
    ];

    #[test]
    fn slips_of_the_pen_find_the_name() {
        for (name, meant) in [
            ("rx_entrys", "rx_entries"),
            ("rx_entires", "rx_entries"),
            ("rx_entry", "rx_entries"),
            ("core", "cores"),
            ("ap", "app"),
            ("packetsize", "packet_sizes"),
            ("ofered_gpbs", "offered_gbps"),
            ("xcores", "cores"),
            ("interfce", "interface"),
            ("window_us", "window_ms"),
            ("packet_kib", "packet_bytes"),
            ("zipf", "zipf_s"),
        ] {
            assert_eq!(nearest(name, &KEYS), Some(meant), "{name}");
        }
    }

    #[test]
    fn what_is_no_slip_finds_nothing() {
        let names = [
            "foo",
            "ring_size",
            "x",
            "",
            "rx",
            "dynamic",
            "threads",
            "speed",
            "queue_depth",
            "mtu",
            "memory",
            "batch",
            "kvs_kib",
            "duration",
            "latency",
            "ring",
            "bandwidth",
            "gbps",
        ];
        for name in names {
            assert_eq!(nearest(name, &KEYS), None, "{name}");
        }
    }

    #[test]
    fn the_rest_of_a_name_is_filled_in_where_only_one_fits() {
        let known = ["xeon-4216-cx5", "m5-10gbe"];
        assert_eq!(nearest("xeon-4216", &known), Some("xeon-4216-cx5"));
        let short = ["xeon-4216", "m5-10gbe"];
        assert_eq!(nearest("xeon-4216-cx5", &short), Some("xeon-4216"));
        let two = ["xeon-4216-cx5", "xeon-4216-cx6"];
        assert_eq!(nearest("xeon", &two), None);
    }
}
