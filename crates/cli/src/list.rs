//! `nicforge list`: what there is.

use std::path::{Path, PathBuf};

use nicforge_interfaces::describe::Software;
use nicforge_interfaces::register_map::{REGISTER_MAPS, RegisterMap};
use nicforge_lab::machine::{Machine, load_machine};
use nicforge_lab::scenario::load_scenario;

use crate::args::{ListOptions, Listed};
use crate::error::CliError;
use crate::machine::MEASURED;
use crate::output::{columns, print};
use crate::registry::catalogue;
use crate::settings;

/// Lists what was asked for.
pub fn list(options: &ListOptions) -> Result<(), CliError> {
    if options.verbose && options.what != Some(Listed::Machines) {
        return Err(CliError::Usage("--verbose goes with `nicforge list machines`".to_string()));
    }
    if options.markdown && !matches!(options.what, Some(Listed::Settings | Listed::Machines | Listed::Registers)) {
        return Err(CliError::Usage(
            "--markdown goes with `nicforge list` settings, machines and registers".to_string(),
        ));
    }
    if options.device.is_some() && options.what != Some(Listed::Registers) {
        return Err(CliError::Usage("only `nicforge list registers` takes the name of a device".to_string()));
    }
    let text = match options.what {
        Some(Listed::Interfaces) => interfaces(),
        Some(Listed::Apps) => apps(),
        Some(Listed::Stages) => stages(),
        Some(Listed::Machines) if options.markdown => machines_page()?,
        Some(Listed::Machines) => machines(options.verbose),
        Some(Listed::Scenarios) => scenarios(),
        Some(Listed::Settings) if options.markdown => settings::page(),
        Some(Listed::Settings) => settings::all(),
        Some(Listed::Registers) => register_maps(options.device.as_deref(), options.markdown)?,
        None => everything(),
    };
    print(&text)
}

fn everything() -> String {
    format!(
        "Interfaces\n{}\nApplications\n{}\nStages\n{}\nMachines\n{}\nScenarios\n{}\n\
         Settings: nicforge list settings, nicforge help KEY\n\
         Register maps: nicforge list registers\n\
         next: nicforge run scenarios/nat-200g.toml\n",
        interfaces(),
        apps(),
        stages(),
        machines(false),
        scenarios(),
    )
}

/// Name and line of each interface, by what it can run in.
fn interfaces() -> String {
    let catalogue = catalogue();
    let entries = catalogue.registry().interfaces.entries();
    let used_by = |software| {
        let used = entries.iter().filter(move |entry| entry.description.software == software);
        used.map(|entry| (entry.name(), entry.about())).collect::<Vec<_>>()
    };
    let kinds = [
        ("of one server and live runs (workload = frames)", used_by(Software::PacketLoop)),
        ("of whole systems (every other workload)", used_by(Software::Kernel)),
    ];
    let kinds = kinds.map(|(kind, of_kind)| format!("  {kind}\n{}", indented(&named(&of_kind))));
    kinds.concat()
}

fn apps() -> String {
    let catalogue = catalogue();
    let entries = catalogue.registry().apps.entries().iter();
    named(&entries.map(|entry| (entry.name(), entry.about())).collect::<Vec<_>>())
}

fn stages() -> String {
    let catalogue = catalogue();
    let entries = catalogue.registry().stages.entries().iter();
    named(&entries.map(|entry| (entry.owner.name, entry.owner.about)).collect::<Vec<_>>())
}

fn named(rows: &[(&str, &str)]) -> String {
    let rows: Vec<Vec<String>> = rows.iter().map(|(name, about)| vec![name.to_string(), about.to_string()]).collect();
    columns(&rows)
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

fn machines(verbose: bool) -> String {
    let mut text = String::new();
    let mut rows = Vec::new();
    for file in toml_files("machines") {
        match load_machine(&file) {
            Ok(machine) if verbose => text.push_str(&numbers(&machine)),
            Ok(machine) => rows.push(vec![machine.name, machine.title]),
            Err(error) => rows.push(vec![file.display().to_string(), format!("unusable: {error}")]),
        }
    }
    text.push_str(&columns(&rows));
    or_none(text, "machines")
}

fn numbers(machine: &Machine) -> String {
    let rows: Vec<Vec<String>> = machine
        .rows
        .iter()
        .map(|row| {
            let fitted = row.fitted.as_ref().map_or(String::new(), |points| format!(" [fitted to {points}]"));
            vec![
                format!("{}.{}", row.section, row.key),
                format!("{} {}", row.value, row.unit).trim().to_string(),
                row.doc.to_string(),
                format!("{}{fitted}", row.source),
            ]
        })
        .collect();
    format!("{}: {}\n{}", machine.name, machine.title, columns(&rows))
}

/// docs/machines.md: the machines of data sheets. What a user measured stands in a file of its own, as do members of
/// calibrated sets.
fn machines_page() -> Result<String, CliError> {
    let mut page = MACHINES_HEAD.to_string();
    let is_measured = |file: &PathBuf| std::fs::read_to_string(file).is_ok_and(|text| text.starts_with(MEASURED));
    let is_member = |file: &PathBuf| file.parent().is_some_and(|folder| folder.ends_with("members"));
    for file in toml_files("machines").into_iter().filter(|file| !is_measured(file) && !is_member(file)) {
        let machine = load_machine(&file)?;
        page.push_str(&format!("\n## {}\n\n{}.\n\n{TABLE_HEAD}", machine.name, machine.title));
        for row in &machine.rows {
            let value = format!("{} {}", row.value, row.unit);
            page.push_str(&format!(
                "| `{}.{}` | {} | {} | {} | {} |\n",
                row.section,
                row.key,
                value.trim(),
                row.doc,
                row.source.replace('|', "\\|"),
                row.fitted.as_deref().unwrap_or_default(),
            ));
        }
    }
    Ok(page)
}

const MACHINES_HEAD: &str = "\
# Machines

Every hardware number of the model, from the files in `machines/`. docs/model.md says what the
parts do and what the calibration points are that some numbers were fitted to. This page is
written by `nicforge list machines --markdown`.
";

const TABLE_HEAD: &str = "\
| key | value | what it is | source | fitted to |
| --- | --- | --- | --- | --- |
";

fn scenarios() -> String {
    let rows: Vec<Vec<String>> = toml_files("scenarios")
        .iter()
        .map(|file| match load_scenario(file, &catalogue()) {
            Ok(scenario) => vec![file.display().to_string(), scenario.title],
            Err(error) => vec![file.display().to_string(), format!("unusable: {error}")],
        })
        .collect();
    or_none(columns(&rows), "scenarios")
}

fn or_none(text: String, folder: &str) -> String {
    if text.is_empty() { format!("  none: there is no {folder}/*.toml here\n") } else { text }
}

/// The register maps, or that of `device`.
fn register_maps(device: Option<&str>, markdown: bool) -> Result<String, CliError> {
    let maps: Vec<&RegisterMap> = match device {
        None => REGISTER_MAPS.iter().collect(),
        Some(name) => vec![RegisterMap::find(name).ok_or_else(|| {
            let known: Vec<&str> = REGISTER_MAPS.iter().map(|map| map.name).collect();
            CliError::Usage(format!("no register map of {name:?}: there are {}", known.join(", ")))
        })?],
    };
    let chapters: Vec<String> = maps.iter().map(|map| if markdown { map.markdown() } else { map.text() }).collect();
    let chapters = chapters.join("\n");
    Ok(match (markdown, device) {
        (true, None) => format!("{REGISTERS_HEAD}{REGISTERS_LEGEND}\n{chapters}"),
        (true, Some(_)) => chapters,
        (false, _) => format!("{chapters}\n{REGISTERS_LEGEND}"),
    })
}

const REGISTERS_HEAD: &str = "\
# Registers

The devices that are driven by registers, from the tables that the devices themselves use. This page
is written by `nicforge list registers --markdown`.

";

const REGISTERS_LEGEND: &str = "\
Offsets and reset values are hexadecimal; `configured` is what the machine file and the settings say. Access: RW read and
write, RO read, WO write, R/W1C a read clears all bits and a write those that are 1. A register takes accesses of its own
width only. Virtual: each virtual NIC has its own. What is not listed is reserved: nothing answers at other offsets, and other
bits read as 0 and have to be written as 0. An access that means nothing is counted, and does nothing else.
";

/// The TOML files under `folder` of the working directory, sorted by path.
fn toml_files(folder: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::from(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(path),
                _ if path.extension() == Some(Path::new("toml").as_os_str()) => files.push(path),
                _ => {}
            }
        }
    }
    // Shallow files first, as a person would list them.
    files.sort_by_key(|file| (file.components().count(), file.clone()));
    files
}
