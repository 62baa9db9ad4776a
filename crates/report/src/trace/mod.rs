//! The lives of packets for readers: `trace.json`, which Perfetto opens, `trace.txt`, and a section of the page. The
//! slowest packet and a median one stand beside each other.

mod events;
mod page;
mod text;

use std::path::{Path, PathBuf};

use nicforge_record::{LifeStep, PacketLife, Trace};

use super::ReportError;

pub use events::trace_events;
pub use page::trace_section;
pub use text::trace_text;

/// The packets of a point that were followed.
#[derive(Clone, Debug)]
pub struct PointTrace {
    /// Which point.
    pub label: String,
    /// The packets.
    pub trace: Trace,
}

/// The files of traces in `folder`, each behind the file that it is written to first.
pub fn trace_paths(folder: &Path) -> [(PathBuf, PathBuf); 2] {
    ["trace.json", "trace.txt"].map(|name| (folder.join(format!(".{name}.part")), folder.join(name)))
}

/// Writes `trace.json` and `trace.txt` into `folder`. Returns the paths.
///
/// # Errors
/// [`ReportError::Write`] with the path that failed.
pub fn write_traces(traces: &[PointTrace], folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
    super::write_texts(&trace_paths(folder), [trace_events(traces), trace_text(traces)], folder)
}

/// A step of two packets.
struct Row<'a> {
    slowest: Option<&'a LifeStep>,
    median: Option<&'a LifeStep>,
}

impl Row<'_> {
    /// Where it was, without a number, and what happened.
    fn name(&self) -> String {
        let step = self.slowest.or(self.median);
        step.map_or_else(String::new, |step| format!("{}: {}", kind(step), step.name))
    }
}

fn kind(step: &LifeStep) -> &str {
    step.place.split(' ').next().unwrap_or_default()
}

/// The steps of both, those that are the same side by side.
fn beside<'a>(slowest: &'a PacketLife, median: &'a PacketLife) -> Vec<Row<'a>> {
    let mut rest = median.steps.iter().peekable();
    let mut rows = Vec::new();
    for step in &slowest.steps {
        let same = |other: &LifeStep| (kind(other), &other.name) == (kind(step), &step.name);
        if rest.clone().any(same) {
            while let Some(other) = rest.next_if(|other| !same(other)) {
                rows.push(Row { slowest: None, median: Some(other) });
            }
        }
        rows.push(Row { slowest: Some(step), median: rest.next_if(|other| same(other)) });
    }
    rows.extend(rest.map(|other| Row { slowest: None, median: Some(other) }));
    rows
}

/// `ps` in ns.
fn ns(ps: u64) -> String {
    format!("{:.1}", ps as f64 / 1e3)
}

/// The reasons of a step, in a line.
fn why(step: &LifeStep) -> String {
    let each = step.why.iter().map(|reason| match reason.what.strip_prefix("ns ") {
        Some(of) => format!("{:.0} ns {of}", reason.count),
        None => format!("{} {}", reason.count, reason.what),
    });
    each.collect::<Vec<_>>().join(", ")
}

/// How a packet ended, in words.
fn end(packet: &PacketLife) -> String {
    use nicforge_record::LifeEnd::{Diverted, Dropped, Inside, Kept, Sent};
    match &packet.end {
        Sent => "sent".to_owned(),
        Dropped(cause) => format!("dropped: {cause}"),
        Kept => "kept by the application".to_owned(),
        Diverted => "kept or answered by a stage".to_owned(),
        Inside => "still inside when the run ended".to_owned(),
    }
}

#[cfg(test)]
mod tests;
