//! `nicforge check`: validate a scenario and show what would run.

use nicforge_lab::job::{Job, differing, plain};

use crate::args::{CheckOptions, Overrides};
use crate::error::CliError;
use crate::estimate::amount;
use crate::input::load;
use crate::output::{columns, path_word, print, print_notes, word};

/// Most points that are shown one by one.
const SHOWN: usize = 40;

/// Checks the scenario; runs and writes nothing.
pub fn check(options: &CheckOptions) -> Result<(), CliError> {
    let input = load(&options.scenario, &options.overrides, options.machine.as_deref(), 1)?;
    print_notes(&input.notes);
    print(&describe(&input, options))
}

fn describe(input: &Job, options: &CheckOptions) -> String {
    let Job { scenario, machine, points, .. } = input;
    let mut text = format!("{}: {}\n", scenario.name, scenario.title);
    text.push_str(&format!("machine {} ({}), seed {}\n", machine.name, machine.file.display(), scenario.seed));
    let differs = differing(points);
    let common: Vec<String> = points
        .first()
        .into_iter()
        .flat_map(|point| &point.params)
        .filter(|(key, _)| !differs.contains(key))
        .map(|(key, value)| format!("{key} = {}", plain(value)))
        .collect();
    text.push_str(&format!("all points: {}\n", common.join(", ")));
    let mut rows = vec![vec!["point".to_string(), "variant".to_string()]];
    rows[0].extend(differs.iter().map(|key| key.to_string()));
    for (index, point) in points.iter().take(SHOWN).enumerate() {
        let mut row = vec![(index + 1).to_string(), point.variant.clone()];
        let value = |key: &&String| point.params.get(*key).map_or(String::new(), plain);
        row.extend(differs.iter().map(value));
        rows.push(row);
    }
    text.push_str(&columns(&rows));
    if points.len() > SHOWN {
        text.push_str(&format!("  … and {} more\n", points.len() - SHOWN));
    }
    let count = if points.len() == 1 { "1 point" } else { &format!("{} points", points.len()) };
    text.push_str(&format!("{count}, {}\n", amount(points, machine)));
    text.push_str(&format!("next: {}\n", run_command(options)));
    text
}

/// The command that runs what was checked.
fn run_command(options: &CheckOptions) -> String {
    let Overrides { set, pcap, seed } = &options.overrides;
    let mut command = format!("nicforge run {}", path_word(&options.scenario));
    command.extend(set.iter().map(|text| format!(" --set {}", word(text))));
    command.extend(pcap.iter().map(|file| format!(" --pcap {}", path_word(file))));
    let machine = options.machine.iter();
    command.extend(machine.map(|file| format!(" --machine {}", path_word(file))));
    command.extend(seed.iter().map(|seed| format!(" --seed {seed}")));
    command
}
