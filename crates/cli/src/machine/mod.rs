//! `nicforge machine measure`: a machine file of the machine that it stands on.
//!
//! | file | what it says |
//! | --- | --- |
//! | system.rs | what the system knows: caches, cores, nodes |
//! | clock.rs | the clock and an atomic, by chains of dependent instructions |
//! | chase.rs | latencies, by a walk of pointers |
//! | bandwidth.rs | memory bandwidth and copies |
//! | measure.rs | which number of the file is measured how |
//! | file.rs | the file: what was measured, and stated defaults for the rest |

mod bandwidth;
mod chase;
mod clock;
mod file;
mod measure;
mod system;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
pub use file::MEASURED;
use nicforge_lab::machine::{Machine, parse_machine};

use crate::error::CliError;
use crate::examples::MEASURE_EXAMPLES;
use crate::output::{columns, path_word, print, print_notes, tell};
use crate::outputs::Made;

/// Where the file goes that nobody gave a place: scenarios find machines there.
const DEFAULT_PLACE: &str = "machines/this-machine.toml";

#[derive(Args)]
pub struct MachineOptions {
    #[command(subcommand)]
    pub command: MachineCommand,
}

#[derive(Subcommand)]
pub enum MachineCommand {
    /// Measure clock, caches, memory and copies, and write a machine file
    #[command(after_help = MEASURE_EXAMPLES)]
    Measure(MeasureOptions),
}

#[derive(Args)]
pub struct MeasureOptions {
    /// The file to write [default: machines/this-machine.toml]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Measure little: good for trying, not for numbers
    #[arg(long)]
    pub quick: bool,
    /// Print nothing but errors and notes
    #[arg(long)]
    pub quiet: bool,
}

/// How much time measuring may take.
#[derive(Clone, Copy, Debug)]
struct Effort {
    /// Every measurement is the fastest of so many: other programs slow it down, and none speeds it up.
    repeats: u32,
    /// Steps of one walk or chain: so few that it ends before another program has its turn.
    steps: usize,
    /// Most bytes of an array.
    largest: usize,
}

impl Effort {
    const FULL: Effort = Effort { repeats: 100, steps: 1 << 14, largest: 1 << 30 };
    /// Says little, and takes a second.
    const QUICK: Effort = Effort { repeats: 2, steps: 1 << 12, largest: 16 << 20 };
}

/// Mean number of other programs at work from which on their work is seen in the numbers.
const BUSY: f64 = 0.5;

/// Measures, and writes the file.
pub fn measure(options: &MeasureOptions) -> Result<(), CliError> {
    let place = options.out.clone();
    let place = place.unwrap_or_else(|| PathBuf::from(DEFAULT_PLACE));
    if place.exists() {
        return Err(CliError::Usage(format!(
            "--out {}: is there already; name another file, or take it away",
            place.display()
        )));
    }
    Made::default().file(&format!("--out {}", place.display()), &place)?;
    let effort = if options.quick { Effort::QUICK } else { Effort::FULL };
    let system = system::System::of(Path::new("/sys/devices/system"), Path::new("/proc"));
    let say = |what: &str| {
        if !options.quiet {
            tell(&format!("measuring {what}\n"));
        }
    };
    if system.load > BUSY {
        print_notes(&[format!(
            "{:.1} programs wanted a core over the last minute; what is measured beside them says \
             little: measure when nothing else runs",
            system.load
        )]);
    }
    let found = measure::all(&system, effort, &say).map_err(cannot("memory to measure in"))?;
    let text = file::text(&system, &found);
    // Other users may read the file, too.
    let machine = parse_machine(&text, &place)?;
    std::fs::write(&place, text).map_err(cannot(&place.display().to_string()))?;
    if options.quiet { Ok(()) } else { print(&summary(&machine, &found, &place)) }
}

fn cannot(what: &str) -> impl FnOnce(std::io::Error) -> CliError {
    let what = what.to_string();
    move |cause| CliError::Write { what, cause }
}

fn summary(machine: &Machine, found: &measure::Found, place: &Path) -> String {
    let rows = machine.rows.iter().filter_map(|row| {
        let measured = found.value(&row.section, row.key)?;
        let name = format!("{}.{}", row.section, row.key);
        Some(vec![name, measured.to_string(), row.unit.to_string()])
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let notes: String = found.notes.iter().map(|note| format!("{note}\n")).collect();
    format!(
        "{}{notes}wrote {}\nnext: nicforge check SCENARIO --machine {}\n",
        columns(&rows),
        place.display(),
        path_word(place)
    )
}
