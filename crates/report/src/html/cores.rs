//! Figures of each core, folded: a table for each point with several cores.

use std::fmt::Write;

use nicforge_record::{CoreFigures, PointRecord, Record};

use super::escape;
use crate::number::{decimals, fixed, percent};
use crate::shape;

/// A core is saturated from this share of busy time on.
const FULL: f64 = 0.99;

/// A figure of a core, if it is known.
type Get<'a> = dyn Fn(&CoreFigures) -> Option<f64> + 'a;

/// A column of the table.
struct Column<'a> {
    head: String,
    unit: &'static str,
    get: Box<Get<'a>>,
}

/// The section; empty where no point has several cores.
pub fn section(record: &Record) -> String {
    let keys = shape::parameters(record).columns;
    let mut tables = String::new();
    for point in record.points.iter().filter(|point| point.cores.len() > 1) {
        let has = |key: &&&str| point.params.contains_key(**key);
        let values = shape::label_of(point, keys.iter().filter(has));
        let name = if values.is_empty() { point.variant.clone() } else { format!("{}, {values}", point.variant) };
        let said = busiest(&point.cores).map_or_else(String::new, |busiest| format!(": {}", busiest.summary));
        // Writing to a string cannot fail.
        let _ = write!(
            tables,
            "<details class=\"point\">\n<summary>{}<span>{}</span></summary>\n{}</details>\n",
            escape(&name),
            escape(&said),
            table(point)
        );
    }
    if tables.is_empty() {
        return tables;
    }
    format!("<section>\n<details>\n<summary>Core by core</summary>\n{tables}</details>\n</section>\n")
}

/// The busiest cores of a point.
#[derive(Debug, PartialEq)]
struct Busiest {
    /// Their indices; none when all cores are alike.
    places: Vec<usize>,
    summary: String,
}

/// The busiest of `cores`; `None` where the time of one is not known.
fn busiest(cores: &[CoreFigures]) -> Option<Busiest> {
    let busy: Option<Vec<f64>> = cores.iter().map(|core| core.busy_fraction).collect();
    let busy = busy?;
    let most = busy.iter().copied().fold(0.0, f64::max);
    let at_least = |share: f64| -> Vec<usize> {
        let places = busy.iter().enumerate();
        places.filter(|place| *place.1 >= share).map(|place| place.0).collect()
    };
    let full = at_least(FULL);
    Some(match full.len() {
        0 => {
            let all = at_least(most);
            let first = all.first().map(|&place| cores[place].core)?;
            Busiest { summary: format!("the busiest core, {first}, is busy {}", percent(most)), places: all }
        }
        some if some == cores.len() => Busiest { places: Vec::new(), summary: "all cores are saturated".to_owned() },
        some => {
            let verb = if some == 1 { "is" } else { "are" };
            let summary = format!(
                "{some} of {} cores {verb} saturated ({})",
                cores.len(),
                numbers(full.iter().map(|&place| cores[place].core))
            );
            Busiest { places: full, summary }
        }
    })
}

/// Numbers that rise, those in a row as a range.
fn numbers(all: impl Iterator<Item = usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in all {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let parts = ranges.into_iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        _ => format!("{first}–{last}"),
    });
    parts.collect::<Vec<_>>().join(", ")
}

fn columns(cores: &[CoreFigures]) -> Vec<Column<'_>> {
    fn column<'a>(head: &str, unit: &'static str, get: impl Fn(&CoreFigures) -> Option<f64> + 'a) -> Column<'a> {
        let (head, get) = (head.to_owned(), Box::new(get));
        Column { head, unit, get }
    }
    let share = |value: Option<f64>| value.map(|value| value * 100.0);
    let mut all = vec![
        column("NIC", "", |core| core.nic.map(|nic| nic as f64)),
        column("queue", "", |core| core.queue.map(|queue| queue as f64)),
        column("received", "frames", |core| Some(core.received as f64)),
        column("borrowed", "frames", |core| core.borrowed.map(|count| count as f64)),
        column("lent", "frames", |core| core.lent.map(|count| count as f64)),
    ];
    let mut causes: Vec<&String> = cores.iter().flat_map(|core| core.drops.keys()).collect();
    causes.sort_unstable();
    causes.dedup();
    all.extend(causes.into_iter().map(|cause| {
        let of = move |core: &CoreFigures| Some(core.drops.get(cause).copied().unwrap_or(0) as f64);
        column(&format!("dropped: {}", escape(cause)), "frames", of)
    }));
    all.extend([
        column("sent", "Gbit/s", |core| core.throughput_gbps),
        column("busy", "%", move |core| share(core.busy_fraction)),
        column("cycles/packet", "cycles", |core| core.cycles_per_packet),
        column("burst", "frames/call", |core| core.mean_burst),
        column("rx ring full", "%", move |core| share(core.rx_occupancy)),
    ]);
    all.retain(|column| cores.iter().any(|core| (column.get)(core).is_some()));
    all
}

fn table(point: &PointRecord) -> String {
    let cores = &point.cores;
    let columns = columns(cores);
    let marked = busiest(cores).map_or_else(Vec::new, |busiest| busiest.places);
    let head: String = columns
        .iter()
        .map(|column| {
            let (head, unit) = (&column.head, column.unit);
            format!("<th scope=\"col\" class=\"n\">{head} <small>{unit}</small></th>")
        })
        .collect();
    let places = |column: &Column<'_>| match column.unit {
        "frames" | "" => 0,
        _ => decimals(cores.iter().filter_map(&column.get)),
    };
    let places: Vec<usize> = columns.iter().map(places).collect();
    let mut rows = String::new();
    for (place, core) in cores.iter().enumerate() {
        let cells = columns.iter().zip(&places).map(|(column, &places)| {
            let text = (column.get)(core).map_or("–".into(), |value| fixed(value, places));
            format!("<td class=\"n\">{text}</td>")
        });
        let (class, mark) =
            if marked.contains(&place) { (" class=\"best\"", " <small>busiest</small>") } else { ("", "") };
        let cells: String = cells.collect();
        // Writing to a string cannot fail.
        let _ = writeln!(rows, "<tr{class}><th scope=\"row\">{}{mark}</th>{cells}</tr>", core.core);
    }
    format!(
        "<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">core</th>{head}</tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table></div>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake;

    fn cores(busy: &[f64]) -> Vec<CoreFigures> {
        let core =
            |(core, &busy): (usize, &f64)| CoreFigures { core, busy_fraction: Some(busy), ..CoreFigures::default() };
        busy.iter().enumerate().map(core).collect()
    }

    #[test]
    fn the_busiest_cores_are_named_and_marked() {
        let of = |busy: &[f64]| {
            let Busiest { places, summary } = busiest(&cores(busy)).unwrap();
            (places, summary)
        };
        let said = "5 of 7 cores are saturated (0–2, 4, 6)".to_owned();
        let busy = [1.0, 1.0, 0.995, 0.5, 1.0, 0.9, 1.0];
        assert_eq!(of(&busy), (vec![0, 1, 2, 4, 6], said));
        let said = "1 of 2 cores is saturated (0)".to_owned();
        assert_eq!(of(&[1.0, 0.2]), (vec![0], said));
        let said = "the busiest core, 1, is busy 83.2 %".to_owned();
        assert_eq!(of(&[0.3, 0.832]), (vec![1], said));
        let said = "all cores are saturated".to_owned();
        assert_eq!(of(&[1.0, 1.0]), (vec![], said));
        // Where one core's time is not known, no other is called the busiest.
        let mut unknown = cores(&[1.0, 0.2]);
        unknown[1].busy_fraction = None;
        assert_eq!(busiest(&unknown), None);
    }

    #[test]
    fn only_points_with_several_cores_have_a_table_and_only_known_columns() {
        let mut record = fake::two_variants();
        record.points[1].cores.clear();
        assert_eq!(section(&record), "");
        record.points[0].cores = cores(&[1.0]);
        assert_eq!(section(&record), "");
        record.points[1].cores = cores(&[1.0, 0.2]);
        let section = section(&record);
        assert_eq!(section.matches("<table>").count(), 1);
        assert!(section.contains("busy <small>%") && !section.contains("NIC <small>"));
        let row = "<tr class=\"best\"><th scope=\"row\">0 <small>busiest</small></th>";
        assert_eq!(section.matches(row).count(), 1);
        assert_eq!(section.matches("busiest</small>").count(), 1);
    }
}
