//! `nicforge reproduce`: a paper's scenarios run, and what they predict stands beside what the paper states.

mod book;
mod options;
mod runs;

use std::path::{Path, PathBuf};

use nicforge_record::Record;
use nicforge_report::claims::{Judged, claims_json, claims_markdown, claims_page, claims_table};
use nicforge_report::table;

use book::{Book, Entry};
pub use book::{bound, expression};
pub use options::ReproduceOptions;

use crate::error::CliError;
use crate::output::{columns, path_word, print, tell};

/// Runs what a paper's claims are about, compares, and writes the page.
pub fn reproduce(options: &ReproduceOptions) -> Result<(), CliError> {
    let file = match &options.claims {
        Some(file) => file.clone(),
        None => book::find()?,
    };
    let book = book::read(&file)?;
    let Some(name) = options.paper.as_deref().filter(|_| !options.list) else {
        return print(&listed(&book));
    };
    let entries = chosen(&book, name, options)?;
    let mut scenarios = runs::of_claims(&file, &entries, options)?;
    let asked = scenarios.len();
    if options.blind {
        // One that another claim's points come from has run already.
        let more = runs::blind(&book, &file, name)?;
        scenarios
            .extend(more.into_iter().filter(|other| !scenarios.iter().any(|one| one.0 == other.0)).collect::<Vec<_>>());
    }
    let (records, failed) = runs::run_all(&scenarios, options)?;
    let members = if options.members { runs::run_members(&scenarios[..asked], options)? } else { Vec::new() };
    let judge = |entry: &&Entry| {
        let record = records.iter().find(|(scenario, _)| *scenario == entry.run);
        let record = record.map_or(Err("not run yet"), |(_, record)| record.as_ref().map_err(String::as_str));
        let members = members.iter().filter(|(scenario, _)| *scenario == entry.run).map(|(_, record)| record);
        Judged::of(&entry.claim, record).beside(members)
    };
    let judged: Vec<Judged> = entries.iter().map(judge).collect();
    written(&judged, &records[asked..], &book, options)?;
    failed.map_or(Ok(()), Err)
}

/// The claims that are asked for.
fn chosen<'a>(book: &'a Book, name: &str, options: &ReproduceOptions) -> Result<Vec<&'a Entry>, CliError> {
    let mut entries: Vec<&Entry> = book.claims.iter().collect();
    if name != "all" {
        let paper = book.paper(name)?;
        entries.retain(|entry| entry.claim.paper == paper.name);
        if entries.is_empty() && !options.blind {
            let wrong = format!("no published value of the {} is open, all of them stay blind", paper.title);
            let right = "add --blind to see what its scenarios predict";
            return Err(CliError::Usage(format!("reproduce {name}: {wrong}; {right}")));
        }
    }
    let Some(only) = &options.only else {
        return Ok(entries);
    };
    let mut known: Vec<&str> = entries.iter().map(|entry| entry.claim.scenario.as_str()).collect();
    known.dedup();
    let words = only.to_lowercase();
    entries.retain(|entry| entry.claim.scenario == *only || entry.claim.claim.to_lowercase().contains(&words));
    if entries.is_empty() {
        let right = format!("name words of a claim, or a scenario: {}", known.join(", "));
        return Err(CliError::Usage(format!("--only {only}: no claim of {name} has that; {right}")));
    }
    Ok(entries)
}

/// Writes the page, and the same as text and for programs; prints the table.
fn written(
    judged: &[Judged],
    blind: &[(String, Result<Record, String>)],
    book: &Book,
    options: &ReproduceOptions,
) -> Result<(), CliError> {
    let name = options.paper.as_deref().unwrap_or("all");
    let folder = options.out.clone().unwrap_or_else(|| PathBuf::from("out/reproduce").join(name));
    let title = match name {
        "all" => "Published values and predictions".to_owned(),
        name => format!("{}: published values and predictions", book.paper(name)?.title),
    };
    let asked = "Each claim that is open beside what the model predicts, with the 95 % interval of the run. The line \
                 behind a ratio reaches from half to twice the published value; its band is 10 %.";
    let page = claims_page(judged, blind, [&title, asked, &book.source]);
    let markdown = claims_markdown(judged, &intro(book, name, options));
    let json = claims_json(judged, &book.source);
    let failed = |what: &Path, cause| CliError::Write { what: what.display().to_string(), cause };
    std::fs::create_dir_all(&folder).map_err(|cause| failed(&folder, cause))?;
    let mut said = String::new();
    for (ending, text) in [("html", &page), ("md", &markdown), ("json", &json)] {
        let file = folder.join(format!("reproduce.{ending}"));
        let part = folder.join(format!(".reproduce.{ending}.part"));
        let moved = std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, &file));
        moved.map_err(|cause| failed(&file, cause))?;
        said += &format!("wrote {}\n", file.display());
    }
    said += &format!("next: open {} in a browser\n", folder.join("reproduce.html").display());
    match (options.markdown, options.json, options.quiet) {
        (true, ..) => print(&markdown)?,
        (_, true, _) => print(&json)?,
        (.., true) => return Ok(()),
        _ => return print(&format!("{}{}\n{said}", claims_table(judged), blind_tables(blind))),
    }
    tell(if options.quiet { "" } else { &said });
    Ok(())
}

/// What scenarios predict whose published values are not open.
fn blind_tables(blind: &[(String, Result<Record, String>)]) -> String {
    let one = |(name, record): &(String, Result<Record, String>)| match record {
        Ok(record) => format!("\n{name}: {}\n{}", record.title, table(record)),
        Err(why) => format!("\n{name}: {why}\n"),
    };
    blind.iter().map(one).collect()
}

/// The Markdown page begins with this, before its tables.
fn intro(book: &Book, name: &str, options: &ReproduceOptions) -> String {
    let mut command = format!("nicforge reproduce {name}");
    for set in &options.overrides.set {
        command += &format!(" --set {}", crate::output::word(set));
    }
    if let Some(machine) = &options.machine {
        command += &format!(" --machine {}", path_word(machine));
    }
    format!(
        "# Open claims\n\nWritten by `{command} --markdown`. Published values: {}. A prediction has the 95 % interval of \
         its run behind it where the run knows one; that says nothing of the parameters' uncertainty, which `members` does: \
         the range over the machine and the members of its calibrated set. The ratio is predicted over published. Values \
         within their interval or their range, and those that keep a bound, count as within 10 %, and those within 10 % as \
         within 25 %.\n",
        book.source
    )
}

/// The papers, their scenarios and how many claims each has.
fn listed(book: &Book) -> String {
    let mut text = String::from("Papers:\n");
    let row = |paper: &book::Paper| {
        let of = book.claims.iter().filter(|entry| entry.claim.paper == paper.name);
        let mut scenarios: Vec<&str> = of.clone().map(|entry| entry.claim.scenario.as_str()).collect();
        scenarios.dedup();
        let claims = format!("{} claims", of.count());
        vec![paper.name.clone(), paper.title.clone(), claims, scenarios.join(", ")]
    };
    text += &columns(&book.papers.iter().map(row).collect::<Vec<_>>());
    text += "next: nicforge reproduce NAME\n";
    text
}
