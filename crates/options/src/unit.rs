//! Units as people write them behind a number, and what the number is in another unit.

/// What a unit measures: only units of one kind stand for each other.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Time,
    Rate,
    Size,
    Frequency,
}

/// A unit's spelling, its kind, and how many of the kind's smallest unit it is: nanoseconds, bits per
/// second, bytes, hertz.
type Unit = (&'static str, Kind, u64);

const UNITS: &[Unit] = &[
    ("ns", Kind::Time, 1),
    ("us", Kind::Time, 1_000),
    // The micro sign and the Greek letter look alike.
    ("\u{b5}s", Kind::Time, 1_000),
    ("\u{3bc}s", Kind::Time, 1_000),
    ("ms", Kind::Time, 1_000_000),
    ("s", Kind::Time, 1_000_000_000),
    ("bit/s", Kind::Rate, 1),
    ("kbit/s", Kind::Rate, 1_000),
    ("Mbit/s", Kind::Rate, 1_000_000),
    ("Gbit/s", Kind::Rate, 1_000_000_000),
    ("bps", Kind::Rate, 1),
    ("kbps", Kind::Rate, 1_000),
    ("Mbps", Kind::Rate, 1_000_000),
    ("Gbps", Kind::Rate, 1_000_000_000),
    ("B/s", Kind::Rate, 8),
    ("KiB/s", Kind::Rate, 8 << 10),
    ("MiB/s", Kind::Rate, 8 << 20),
    ("GiB/s", Kind::Rate, 8 << 30),
    ("KB/s", Kind::Rate, 8_000),
    ("MB/s", Kind::Rate, 8_000_000),
    ("GB/s", Kind::Rate, 8_000_000_000),
    ("B", Kind::Size, 1),
    ("bytes", Kind::Size, 1),
    ("KiB", Kind::Size, 1 << 10),
    ("MiB", Kind::Size, 1 << 20),
    ("GiB", Kind::Size, 1 << 30),
    ("KB", Kind::Size, 1_000),
    ("kB", Kind::Size, 1_000),
    ("MB", Kind::Size, 1_000_000),
    ("GB", Kind::Size, 1_000_000_000),
    ("Hz", Kind::Frequency, 1),
    ("kHz", Kind::Frequency, 1_000),
    ("MHz", Kind::Frequency, 1_000_000),
    ("GHz", Kind::Frequency, 1_000_000_000),
];

/// Splits a number from the unit behind it; `None` where `text` is something else.
pub fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let is_of_number = |c: char| c.is_ascii_digit() || c == '.';
    let end = text.find(|c| !is_of_number(c)).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim()))
}

/// `number` of unit `from` in unit `to`; `None` where the two measure different things, or are unknown.
pub fn convert(number: f64, from: &str, to: &str) -> Option<f64> {
    if from == to || from.is_empty() {
        return Some(number);
    }
    let (_, kind, size) = find(from)?;
    let (_, wanted, step) = find(to)?;
    (kind == wanted).then(|| round(number * (*size as f64) / (*step as f64)))
}

/// Whether `word` names a unit, as the last word of a key does: `kib`, `gbps`.
pub(crate) fn is_unit(word: &str) -> bool {
    UNITS.iter().any(|(known, ..)| known.eq_ignore_ascii_case(word))
}

fn find(name: &str) -> Option<&'static Unit> {
    UNITS.iter().find(|(known, ..)| *known == name)
}

/// Rounded to twelve digits, so that 0.30000000000000004 is not printed.
fn round(number: f64) -> f64 {
    format!("{number:.11e}").parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_converted_within_a_kind() {
        for (text, to, number) in [
            ("5us", "ms", 0.005),
            ("5 \u{b5}s", "ms", 0.005),
            ("1.1 s", "ms", 1100.0),
            ("3 ns", "\u{b5}s", 0.003),
            ("200 Mbit/s", "Gbit/s", 0.2),
            ("25 GB/s", "Gbit/s", 200.0),
            ("2100MHz", "GHz", 2.1),
            ("9KiB", "bytes", 9216.0),
            ("1.5 MiB", "KiB", 1536.0),
            ("9 KB", "bytes", 9000.0),
            ("16 cores", "cores", 16.0),
            ("16", "cores", 16.0),
        ] {
            let (value, from) = number_and_unit(text).unwrap();
            assert_eq!(convert(value, from, to), Some(number), "{text}");
        }
    }

    #[test]
    fn other_kinds_and_unknown_units_are_not_converted() {
        for (text, to) in
            [("5 KiB", "ms"), ("16 threads", "cores"), ("9,216 bytes", "bytes"), ("5e3us", "ms"), ("5 Mb", "bytes")]
        {
            let (value, from) = number_and_unit(text).unwrap();
            assert_eq!(convert(value, from, to), None, "{text}");
        }
        for text in ["", "four", "-5us", "1.2.3 ms", "."] {
            assert_eq!(number_and_unit(text), None, "{text}");
        }
    }
}
