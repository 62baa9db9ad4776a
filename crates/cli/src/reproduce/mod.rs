//! `nicforge reproduce`: a paper's scenarios run, and what they predict stands beside what the paper states.

mod book;
mod options;

use std::path::{Path, PathBuf};

use nicforge_lab::scenario::Point;
use nicforge_options::ConfigError;
use nicforge_record::{PointRecord, Record};
use nicforge_report::claims::{Judged, claims_json, claims_markdown, claims_page, claims_table, selected};

use book::{Book, Entry};
pub use options::ReproduceOptions;

use crate::args::RunOptions;
use crate::error::CliError;
use crate::input::load;
use crate::output::{columns, path_word, print, tell};
use crate::run::{is_finished, simulate};

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
    let scenarios = scenarios(&file, &entries, options)?;
    let mut failed = None;
    let mut records: Vec<(&str, Result<Record, String>)> = Vec::new();
    for (index, (scenario, path)) in scenarios.iter().enumerate() {
        let run = run_options(path, options);
        if options.no_run && !is_finished(&run)? {
            continue;
        }
        tell(&format!("{scenario} ({} of {})\n", index + 1, scenarios.len()));
        let record = simulate(&run).map(|done| done.record).map_err(|error| {
            tell(&format!("error: {scenario}: {error}\n"));
            let why = format!("{scenario} did not run: {error}");
            failed.get_or_insert(error);
            why
        });
        records.push((scenario, record));
    }
    let judge = |entry: &&Entry| {
        let record = records.iter().find(|(scenario, _)| *scenario == entry.run);
        let record = record.map_or(Err("not run yet"), |(_, record)| record.as_ref().map_err(String::as_str));
        Judged::of(&entry.claim, record)
    };
    let judged: Vec<Judged> = entries.iter().map(judge).collect();
    written(&judged, &book, name, options)?;
    failed.map_or(Ok(()), Err)
}

/// The claims that are asked for.
fn chosen<'a>(book: &'a Book, name: &str, options: &ReproduceOptions) -> Result<Vec<&'a Entry>, CliError> {
    let mut entries: Vec<&Entry> = book.claims.iter().collect();
    if name != "all" {
        let paper = book.paper(name)?;
        entries.retain(|entry| entry.claim.paper == paper.name);
        if entries.is_empty() {
            let wrong = format!("no published value of the {} is open; all of them stay blind", paper.title);
            let run = format!("run its scenarios one by one: nicforge run scenarios/paper/{}-….toml", paper.prefix);
            return Err(CliError::Usage(format!("reproduce {name}: {wrong}; {run}")));
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

/// The scenarios that run for `entries`, each once, with their files. Checks that they have the points that are asked for.
fn scenarios<'a>(
    file: &Path,
    entries: &[&'a Entry],
    options: &ReproduceOptions,
) -> Result<Vec<(&'a str, PathBuf)>, CliError> {
    let mut scenarios: Vec<(&str, PathBuf, Record)> = Vec::new();
    for entry in entries {
        let Ok(expression) = &entry.claim.predicted else {
            continue;
        };
        if !scenarios.iter().any(|(name, ..)| *name == entry.run) {
            let path = scenario_file(file, entry)?;
            let input = load(&path, &options.overrides, options.machine.as_deref(), 1)?;
            let point = |point: &Point| {
                let (variant, params) = (point.variant.clone(), point.params.clone());
                PointRecord { variant, params, ..PointRecord::default() }
            };
            let points = input.points.iter().map(point).collect();
            scenarios.push((&entry.run, path, Record { points, ..Record::default() }));
        }
        let points = scenarios.iter().find(|(name, ..)| *name == entry.run).map(|(_, _, points)| points);
        for selection in expression.selections() {
            let found = points.map_or(Ok(Vec::new()), |points| selected(selection, points));
            found.map_err(|wrong| {
                let right = format!("ask for a point of {}", entry.run);
                ConfigError::new(&entry.place, format!("`predicted`: {wrong}"), right)
            })?;
        }
    }
    Ok(scenarios.into_iter().map(|(name, path, _)| (name, path)).collect())
}

/// `scenarios/paper/NAME.toml` in a folder above the file of claims, or in the working directory.
fn scenario_file(claims: &Path, entry: &Entry) -> Result<PathBuf, ConfigError> {
    let name = PathBuf::from("scenarios/paper").join(format!("{}.toml", entry.run));
    // From the working directory on paths are short, and runs are found again by them.
    let above = std::path::absolute(claims).unwrap_or_default();
    let mut files = std::iter::once(name.clone()).chain(above.ancestors().skip(1).map(|folder| folder.join(&name)));
    files.find(|file| file.is_file()).ok_or_else(|| {
        let wrong = format!("there is no {}", name.display());
        ConfigError::new(&entry.place, wrong, "name a scenario that there is, or write `not_compared` with the reason")
    })
}

/// A run of the scenario, as `nicforge run` has it: with the same folder, and so with the same points kept.
fn run_options(path: &Path, options: &ReproduceOptions) -> RunOptions {
    RunOptions {
        scenario: path.to_path_buf(),
        overrides: options.overrides.clone(),
        machine: options.machine.clone(),
        out: None,
        force: false,
        json: false,
        quiet: options.quiet,
        jobs: options.jobs,
        seeds: options.seeds,
        precision: None,
        max_window: None,
        overlay: None,
        pcap_out: None,
        ray: None,
    }
}

/// Writes the page, and the same as text and for programs; prints the table.
fn written(judged: &[Judged], book: &Book, name: &str, options: &ReproduceOptions) -> Result<(), CliError> {
    let folder = options.out.clone().unwrap_or_else(|| PathBuf::from("out/reproduce").join(name));
    let title = match name {
        "all" => "Published values and predictions".to_owned(),
        name => format!("{}: published values and predictions", book.paper(name)?.title),
    };
    let asked = "Each claim that is open beside what the model predicts, with the 95 % interval of the run. The line \
                 behind a ratio reaches from half to twice the published value; its band is 10 %.";
    let page = claims_page(judged, &title, asked, &book.source);
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
        _ => return print(&format!("{}\n{said}", claims_table(judged))),
    }
    tell(if options.quiet { "" } else { &said });
    Ok(())
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
         its run behind it where the run knows one; that says nothing of the parameters' uncertainty. The ratio is \
         predicted over published. Values within their interval, and those that keep a bound, count as within 10 %, and \
         those within 10 % as within 25 %.\n",
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
