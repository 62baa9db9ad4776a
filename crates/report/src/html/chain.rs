//! The picture of the cause: from what was set, through bytes in use, caches, memory and cycles, to drops and what
//! was sent; each with its number and the limit that it meets.

use nicforge_record::{Metrics, PointRecord, Record};

use super::escape;
use crate::capacity::{Limit, limits};
use crate::columns::{by_key, rate};
use crate::csv::plain;
use crate::number::{number, percent};
use crate::plots::{Paint, is_near};
use crate::shape::{Shape, param_keys, parameters, varying_keys};

/// Points that the picture has at most.
const POINTS_MAX: usize = 4;
/// Share of a limit from which on it is met.
const MET: f64 = 0.9;
/// Parameters of a point that the picture names at most.
const PARAMETERS_MAX: usize = 4;

/// One step from cause to effect.
struct Link {
    title: &'static str,
    /// The metric whose number and limits it shows.
    key: &'static str,
    /// What passing a limit means.
    sense: Sense,
    /// What else is worth saying of a point.
    remark: fn(&Metrics) -> Option<String>,
}

/// What a value says about its limits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sense {
    /// Capacities: it fits some, and is past others.
    Fits,
    /// Bandwidths, rings, budgets: near the limit is used up.
    UsesUp,
    /// What is wanted: at the limit all is well.
    Reaches,
    /// It has none.
    Free,
}

const LINKS: [Link; 13] = [
    Link { title: "Bytes in use", key: "io_working_set_bytes", sense: Sense::Fits, remark: |_| None },
    Link { title: "Found in the cache", key: "ddio_hit_rate", sense: Sense::Free, remark: reads },
    Link { title: "Cache misses", key: "misses_per_kb", sense: Sense::Free, remark: |_| None },
    Link { title: "DRAM", key: "memory_gb_per_s", sense: Sense::UsesUp, remark: |_| None },
    Link { title: "PCIe to the host", key: "pcie_out_utilisation", sense: Sense::UsesUp, remark: to_nic },
    Link { title: "Cycles per packet", key: "cycles_per_packet.total", sense: Sense::UsesUp, remark: stalls },
    Link { title: "Core idle", key: "cpu_time.idle", sense: Sense::Free, remark: |_| None },
    Link { title: "Receive rings", key: "rx_occupancy", sense: Sense::UsesUp, remark: transmit },
    Link { title: "Drops", key: "drop_fraction", sense: Sense::Free, remark: cause },
    Link { title: "No-drop rate", key: "no_drop_gbps", sense: Sense::Reaches, remark: |_| None },
    Link { title: "Payload", key: "bandwidth_gbps", sense: Sense::Free, remark: |_| None },
    Link { title: "Answered", key: "rpc_mps", sense: Sense::Free, remark: |_| None },
    Link { title: "Sent", key: "throughput_gbps", sense: Sense::Reaches, remark: median },
];

fn reads(metrics: &Metrics) -> Option<String> {
    Some(format!("NIC reads: {}", percent(metrics.io_read_hit_rate?)))
}

fn to_nic(metrics: &Metrics) -> Option<String> {
    Some(format!("to the NIC: {}", percent(metrics.pcie_in_utilisation?)))
}

fn stalls(metrics: &Metrics) -> Option<String> {
    let cycles = metrics.cycles_per_packet.as_ref().filter(|cycles| cycles.total > 0.0)?;
    Some(format!("stalled: {}", percent(cycles.stall / cycles.total)))
}

fn transmit(metrics: &Metrics) -> Option<String> {
    Some(format!("transmit: {}", percent(metrics.tx_occupancy?)))
}

fn cause(metrics: &Metrics) -> Option<String> {
    let most = metrics.drops.iter().max_by_key(|(_, count)| **count).filter(|(_, count)| **count > 0);
    Some(format!("most: {}", most?.0))
}

fn median(metrics: &Metrics) -> Option<String> {
    Some(format!("half within {} µs", number(metrics.latency_us.as_ref()?.p50)))
}

/// A point of the picture.
struct Row<'a> {
    point: &'a PointRecord,
    paint: Paint,
    name: String,
}

/// The section; empty where nothing was measured.
pub fn section(record: &Record) -> String {
    let rows = rows(record);
    if rows.is_empty() || !record.comparisons.is_empty() {
        return String::new();
    }
    let links: String = LINKS.iter().filter_map(|link| card(record, link, &rows)).collect();
    let (_, note) = chosen(record, &Shape::of(record));
    format!(
        "<section class=\"chain\">\n<h2>From cause to effect</h2>\n<p class=\"note\">{note}A dashed mark is a limit; bars \
         of one step have one scale.</p>\n<ol>\n{}{links}</ol>\n</section>\n",
        setting(record, &rows)
    )
}

/// Points that say most, and which they are: all where they are few; of two variants the best and the worst of each; of
/// more the best of each, or of the outermost ones.
fn chosen<'a>(record: &'a Record, shape: &Shape<'a>) -> (Vec<&'a PointRecord>, &'static str) {
    if record.points.len() <= POINTS_MAX {
        return (record.points.iter().collect(), "");
    }
    let variants = shape.variants.iter();
    if shape.variants.len() * 2 <= POINTS_MAX {
        return (
            variants.flat_map(|variant| ends(record, variant)).collect(),
            "Of each variant its best and its worst point. ",
        );
    }
    let mut best: Vec<&PointRecord> = variants.filter_map(|variant| ends(record, variant).first().copied()).collect();
    best.sort_by(|a, b| rate(&b.metrics).total_cmp(&rate(&a.metrics)));
    if best.len() <= POINTS_MAX {
        return (best, "Of each variant its best point. ");
    }
    best.drain(POINTS_MAX / 2..best.len() - POINTS_MAX / 2);
    (best, "The best points of the two best and of the two worst variants. ")
}

fn rows(record: &Record) -> Vec<Row<'_>> {
    let shape = Shape::of(record);
    let index = |point: &PointRecord| shape.variants.iter().position(|variant| *variant == point.variant).unwrap_or(0);
    let (chosen, _) = chosen(record, &shape);
    let keys = parameters(record).columns;
    let name = |point: &PointRecord| {
        let values = keys.iter().take(PARAMETERS_MAX).filter_map(|key| Some(plain(point.params.get(*key)?)));
        let values: Vec<String> = values.collect();
        if values.is_empty() { point.variant.clone() } else { format!("{} · {}", point.variant, values.join(", ")) }
    };
    let seen = chosen.into_iter().filter(|point| !point.steadiness.no_frame_arrived);
    seen.map(|point| Row { point, paint: Paint::Series(index(point)), name: name(point) }).collect()
}

/// The best and the worst point of a variant; one where all are level.
fn ends<'a>(record: &'a Record, variant: &str) -> Vec<&'a PointRecord> {
    let points = || record.points.iter().filter(|point| point.variant == variant);
    let by_rate = |a: &&PointRecord, b: &&PointRecord| rate(&a.metrics).total_cmp(&rate(&b.metrics));
    let (Some(best), Some(worst)) = (points().rev().max_by(by_rate), points().min_by(by_rate)) else {
        return Vec::new();
    };
    let level = rate(&worst.metrics) > rate(&best.metrics) * 0.99;
    if level { vec![best] } else { vec![best, worst] }
}

/// The first card: what the points are set to.
fn setting(record: &Record, rows: &[Row]) -> String {
    let varying = varying_keys(record);
    let keys: Vec<&str> = if varying.is_empty() { param_keys(record) } else { varying };
    let mut items = String::new();
    for row in rows {
        let values = keys.iter().take(PARAMETERS_MAX).filter_map(|key| {
            let value = row.point.params.get(*key)?;
            Some(format!("{} <b>{}</b>", escape(key), escape(&plain(value))))
        });
        let values: Vec<String> = values.collect();
        let (swatch, name) = (row.paint.css(), escape(&row.point.variant));
        items += &format!(
            "<div class=\"row\"><p class=\"who\"><i style=\"--swatch:{swatch}\"></i>{name}</p><p class=\"remark\">{}</p></div>\n",
            values.join(", ")
        );
    }
    format!("<li><h3>Set</h3>\n{items}</li>\n")
}

/// The card of a link; `None` where no point has its metric.
fn card(record: &Record, link: &Link, rows: &[Row]) -> Option<String> {
    let metric = by_key(link.key);
    let known = |row: &Row| (metric.get)(&row.point.metrics).filter(|value| value.is_finite());
    // What is sent back says nothing where payload is what counts.
    let idle = link.key == "throughput_gbps" && rows.iter().any(|row| row.point.metrics.bandwidth_gbps.is_some());
    let largest = rows.iter().filter_map(known).reduce(f64::max).filter(|_| !idle)?;
    let of = |row: &Row| limits(link.key, record, row.point);
    let near = rows.iter().flat_map(of).map(|limit| limit.value).filter(|value| is_near(*value, largest));
    let share = metric.unit.name() == "%";
    let scale = near.fold(if share { 1.0 } else { largest }, f64::max) * if share { 1.0 } else { 1.04 };
    let (mut items, mut met) = (String::new(), false);
    for row in rows {
        let Some(value) = known(row) else { continue };
        let limits = of(row);
        let verdict = verdict(link.sense, value, &limits);
        met |= verdict.1;
        let marks = limits.iter().filter(|limit| limit.value <= scale && limit.value > 0.0);
        let marks: String =
            marks.map(|limit| format!("<i style=\"left:{:.1}%\"></i>", percent_of(limit.value, scale))).collect();
        let said = [verdict.0, (link.remark)(&row.point.metrics).unwrap_or_default()];
        let said: Vec<&str> = said.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
        items += &format!(
            "<div class=\"row\"><p class=\"who\"><i style=\"--swatch:{swatch}\"></i>{who}<b>{value} {unit}</b></p>\
             <div class=\"bar\"><span style=\"--swatch:{swatch};width:{width:.1}%\"></span>{marks}</div>\
             <p class=\"remark\">{said}</p></div>\n",
            swatch = row.paint.css(),
            who = escape(&row.name),
            value = number(metric.unit.shown(value)),
            unit = metric.unit.name(),
            width = percent_of(value, scale),
            said = escape(&said.join("; ")),
        );
    }
    let (class, said) = if met { (" class=\"met\"", " <small>limit met</small>") } else { ("", "") };
    Some(format!("<li{class}><h3>{}{said}</h3>\n{items}</li>\n", link.title))
}

fn percent_of(value: f64, scale: f64) -> f64 {
    if scale > 0.0 { (value / scale * 100.0).clamp(0.0, 100.0) } else { 0.0 }
}

/// What a value says about its limits, and whether it meets one that costs.
fn verdict(sense: Sense, value: f64, limits: &[Limit]) -> (String, bool) {
    let shown = |limit: &Limit| format!("{} {}", limit.name, quantity(limit)).trim_end().to_owned();
    let Some(first) = limits.first() else {
        return (String::new(), false);
    };
    match sense {
        Sense::Free => (String::new(), false),
        Sense::Fits => match limits.iter().rfind(|limit| value > limit.value) {
            Some(passed) => (format!("past {}", shown(passed)), true),
            None => (format!("fits {}", shown(first)), false),
        },
        Sense::UsesUp => {
            let used = value / first.value;
            (format!("{} of {}", percent(used), shown(first)), used > MET)
        }
        Sense::Reaches => (format!("{} of {}", percent(value / first.value), shown(first)), false),
    }
}

/// A limit's value in words; none where it is all of something.
fn quantity(limit: &Limit) -> String {
    match limit.name {
        "I/O ways" | "LLC" => crate::number::bytes(limit.value),
        "DRAM" => format!("{} GB/s", number(limit.value)),
        "cycle budget" => number(limit.value),
        "offered" => format!("{} Gbit/s", number(limit.value)),
        "link" if limit.value != 1.0 => format!("{} Gbit/s", number(limit.value)),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake;

    #[test]
    fn each_step_has_its_number_and_says_which_limit_it_meets() {
        let section = section(&fake::two_variants());
        for part in
            ["past LLC 22 MiB", "fits I/O ways 4 MiB", "limit met", "most: no_descriptor", "70.2 % of offered 200"]
        {
            assert!(section.contains(part), "`{part}` in {section}");
        }
        assert_eq!(super::section(&Record::default()), "");
    }

    #[test]
    fn points_that_say_most_are_chosen() {
        let names = |record: &Record| {
            let (points, note) = chosen(record, &Shape::of(record));
            (
                points.iter().map(|point| point.variant.clone()).collect::<Vec<_>>(),
                note.split(' ').next().unwrap().to_owned(),
            )
        };
        assert_eq!(names(&fake::two_variants()).0.len(), 2);
        let (two, note) = names(&fake::two_keys());
        assert_eq!(
            (two, note.as_str()),
            (vec!["priv_ring".into(), "priv_ring".into(), "sh_ring".into(), "sh_ring".into()], "Of")
        );
        let (many, note) = names(&fake::many());
        assert_eq!((many.len(), note.as_str()), (4, "The"));
        assert_eq!((many[0].as_str(), many[3].as_str()), ("host_0", "sh_ring_dynamic_8"));
    }
}
