//! Numbers in readable form: about three significant digits, units with prefixes.

/// Decimal places that show about three significant digits of the largest of `values`.
pub fn decimals(values: impl Iterator<Item = f64>) -> usize {
    let largest = values.filter(|v| v.is_finite()).fold(0.0, |a: f64, v| a.max(v.abs()));
    match largest {
        v if v == 0.0 || v >= 1000.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        v if v >= 0.1 => 3,
        v if v >= 0.01 => 4,
        _ => 6,
    }
}

/// A number with as many decimals as its size deserves.
pub fn number(value: f64) -> String {
    let places = decimals(std::iter::once((value * 1.000_001).abs()));
    trimmed(&fixed(value, places))
}

/// A number with a given count of decimals; what is not finite is a dash.
pub fn fixed(value: f64, places: usize) -> String {
    if value.is_finite() { grouped(&format!("{value:.places$}")) } else { "–".into() }
}

/// Half the width of an interval, with about two significant digits.
pub fn half_width(value: f64) -> String {
    let places = match value.abs() {
        v if v >= 10.0 || v == 0.0 => 0,
        v if v >= 1.0 => 1,
        v if v >= 0.1 => 2,
        v if v >= 0.01 => 3,
        _ => 4,
    };
    format!("±{}", fixed(value, places))
}

/// A share as a percentage.
pub fn percent(share: f64) -> String {
    format!("{} %", number(share * 100.0))
}

/// Bytes with a binary prefix.
pub fn bytes(value: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut scaled = value;
    let mut unit = 0;
    while scaled.abs() >= 1024.0 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    format!("{} {}", number(scaled), UNITS[unit])
}

/// Seconds in the unit that fits.
pub fn seconds(value: f64) -> String {
    match value {
        v if v >= 120.0 => format!("{} min", number(v / 60.0)),
        v if v >= 1.0 || v == 0.0 => format!("{} s", number(v)),
        v if v >= 1e-3 => format!("{} ms", number(v * 1e3)),
        v => format!("{} µs", number(v * 1e6)),
    }
}

fn trimmed(text: &str) -> String {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text.into() }
}

/// Narrow no-break spaces between thousands, from five digits on.
fn grouped(text: &str) -> String {
    let (sign, unsigned) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, fraction) = unsigned.split_once('.').map_or((unsigned, None), |(w, f)| (w, Some(f)));
    let mut out = String::from(sign);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && whole.len() > 4 && (whole.len() - index).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// The probability of a test.
pub fn probability(p: f64) -> String {
    if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_about_three_digits() {
        let cases = [(0.0, "0"), (183.24, "183.2"), (9.9, "9.9"), (1234.5, "1234"), (0.25, "0.25"), (100.0, "100")];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
        assert_eq!(number(-1_234_567.0), "-1\u{202f}234\u{202f}567");
        assert_eq!(number(f64::NAN), "–");
    }

    #[test]
    fn units_scale() {
        assert_eq!(bytes(22.0 * 1024.0 * 1024.0), "22 MiB");
        assert_eq!(bytes(640.0), "640 B");
        assert_eq!(percent(0.4216), "42.2 %");
        assert_eq!((seconds(0.02), seconds(2.5), seconds(600.0)), ("20 ms".into(), "2.5 s".into(), "10 min".into()));
    }
}
