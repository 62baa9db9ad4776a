//! `--overlay FILE.csv`: values of the user's own, to stand beside those of the run.
//!
//! The columns are those of `points.csv`: `variant`, settings, metrics, and for a metric's interval `<metric>.ci95`. An
//! empty field is a value that was not measured.

use std::path::Path;

use nicforge_lab::scenario::Point;
use nicforge_options::{ConfigError, Place, nearest};
use nicforge_record::Overlay;
use nicforge_report::metric_keys;
use serde_json::Value;

/// Suffix of a column that holds the half width of an interval.
const INTERVAL: &str = ".ci95";
/// Prefix of the columns that count drops by cause.
const DROPS: &str = "drops.";

/// What a column holds.
enum Column {
    Variant,
    Setting(String),
    Metric(String),
    HalfWidth(String),
}

/// Reads the rows of `file`, which are to stand beside `points`.
///
/// # Errors
/// A file that is no such table, with its line and what would be right.
pub fn read(file: &Path, points: &[Point]) -> Result<Vec<Overlay>, ConfigError> {
    let refuse = |line: u64, wrong: String, right: &str| {
        let place = Place::argument(&format!("--overlay {}:{line}", file.display()));
        ConfigError::new(&place, wrong, right)
    };
    let text = std::fs::read_to_string(file).map_err(|cause| {
        let place = Place::argument(&format!("--overlay {}", file.display()));
        ConfigError::new(&place, format!("it cannot be read: {cause}"), "name a CSV file, such as measured.csv")
    })?;
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(text.as_bytes());
    let no_table = |cause: csv::Error| {
        let line = cause.position().map_or(1, csv::Position::line);
        refuse(line, format!("it is no table: {cause}"), "write a line of column names, and as many fields in each row")
    };
    let heads = reader.headers().map_err(no_table)?.clone();
    let columns: Result<Vec<Column>, ConfigError> = heads.iter().map(|head| column(head, points, &refuse)).collect();
    let columns = columns?;
    if !columns.iter().any(|column| matches!(column, Column::Metric(_))) {
        let right = "add one by its name in points.csv, such as throughput_gbps";
        return Err(refuse(1, "it has no column with values of a metric".to_owned(), right));
    }
    let series = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut rows = Vec::new();
    for row in reader.records() {
        let row = row.map_err(no_table)?;
        let line = row.position().map_or(0, csv::Position::line);
        let mut overlay = Overlay { series: series.clone(), ..Overlay::default() };
        for ((column, head), field) in columns.iter().zip(&heads).zip(&row).filter(|(_, field)| !field.is_empty()) {
            let number = || {
                let number = field.parse().ok().filter(|number: &f64| number.is_finite());
                let wrong = || refuse(line, format!("`{head}` cannot be \"{field}\""), "write a number, or nothing");
                number.ok_or_else(wrong)
            };
            match column {
                Column::Variant => overlay.series = field.to_owned(),
                Column::Setting(key) => {
                    overlay.params.insert(key.clone(), setting(field));
                }
                Column::Metric(key) => {
                    overlay.values.insert(key.clone(), number()?);
                }
                Column::HalfWidth(key) => {
                    overlay.half_widths.insert(key.clone(), number()?);
                }
            }
        }
        rows.push(overlay);
    }
    if rows.is_empty() {
        return Err(refuse(2, "it has no row".to_owned(), "add a row of values below the names"));
    }
    Ok(rows)
}

fn column(
    head: &str,
    points: &[Point],
    refuse: &dyn Fn(u64, String, &str) -> ConfigError,
) -> Result<Column, ConfigError> {
    let metrics = metric_keys();
    // Causes of drops have no list.
    let metric = |name: &str| {
        let is_metric = metrics.contains(&name) || name.strip_prefix(DROPS).is_some_and(|cause| !cause.is_empty());
        is_metric.then(|| name.to_owned())
    };
    // A setting that is called like a metric has this before its name in points.csv.
    let key = head.strip_prefix("params.").unwrap_or(head);
    let is_setting = points.iter().any(|point| point.params.contains_key(key));
    let found = match head.strip_suffix(INTERVAL) {
        Some(of) => metric(of).map(Column::HalfWidth),
        None if head == "variant" => Some(Column::Variant),
        None => match metric(head) {
            Some(metric) => Some(Column::Metric(metric)),
            None => is_setting.then(|| Column::Setting(key.to_owned())),
        },
    };
    found.ok_or_else(|| {
        let settings = points.iter().flat_map(|point| point.params.keys().map(String::as_str));
        let known: Vec<&str> = metrics.iter().copied().chain(settings).chain(["variant"]).collect();
        let right = match nearest(head, &known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "use names of points.csv: variant, swept settings, metrics, and <metric>.ci95".to_owned(),
        };
        refuse(1, format!("no column is called `{head}`"), &right)
    })
}

/// A value as the record has it.
fn setting(field: &str) -> Value {
    let number = field.parse::<u64>().map(Value::from).ok();
    let number = number.or_else(|| field.parse::<f64>().ok().map(Value::from));
    let flag = || field.parse::<bool>().map(Value::from).ok();
    number.or_else(flag).unwrap_or_else(|| Value::from(field))
}
