//! Counters of tables and parser errors, and gauges of tables, by name.

use std::collections::HashSet;
use std::sync::{Mutex, OnceLock};

use nicforge_flexnic::p4::Shared;

/// Names live as long as the process: there are as many as programs have tables and errors.
static NAMES: OnceLock<Mutex<HashSet<&'static str>>> = OnceLock::new();

fn name(text: String) -> &'static str {
    let mut names = NAMES.get_or_init(Mutex::default).lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(known) = names.get(text.as_str()) {
        return known;
    }
    let name: &'static str = Box::leak(text.into_boxed_str());
    names.insert(name);
    name
}

/// Letters and digits only, as metrics want them.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect()
}

/// The counters of a program.
pub(crate) fn counters(shared: &Shared) -> Vec<(&'static str, u64)> {
    let lost = shared.packets_lost();
    let pipeline = shared.lock();
    let counters = pipeline.counters();
    let mut found = vec![("p4_received", counters.received), ("p4_sent", counters.sent)];
    for table in pipeline.tables() {
        let path = plain(&table.info.path);
        found.push((name(format!("p4_{path}_hits")), table.counts.0));
        found.push((name(format!("p4_{path}_misses")), table.counts.1));
    }
    for (error, count) in pipeline.ir().errors.iter().zip(&counters.parser_errors).skip(1) {
        found.push((name(format!("p4_parser_{}", plain(error))), *count));
    }
    for (cause, count) in &counters.gone {
        found.push((name(format!("p4_gone_{}", plain(cause))), *count));
    }
    found.push(("p4_controller_lost", lost));
    found
}

/// The gauges of a program: how many entries each table holds.
pub(crate) fn gauges(shared: &Shared) -> Vec<(&'static str, u64)> {
    let pipeline = shared.lock();
    let tables = pipeline.tables().iter();
    tables.map(|table| (name(format!("p4_{}_entries", plain(&table.info.path))), table.len() as u64)).collect()
}
