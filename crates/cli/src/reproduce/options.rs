//! What `nicforge reproduce` may be told.

use std::path::PathBuf;

use clap::Args;

use crate::args::{Overrides, jobs};

#[derive(Args)]
pub struct ReproduceOptions {
    /// The paper, by its name in --list, or `all`
    #[arg(required_unless_present = "list")]
    pub paper: Option<String>,
    /// Name the papers, their scenarios and how many claims they have; run nothing
    #[arg(long)]
    pub list: bool,
    /// Only claims of this scenario, or with these words
    #[arg(long, value_name = "WORDS")]
    pub only: Option<String>,
    /// Also run the paper's scenarios whose published values are not open: table and page have what they predict
    #[arg(long, conflicts_with = "only")]
    pub blind: bool,
    /// Run nothing: compare scenarios whose points are all finished, and say of the others that they did not run yet
    #[arg(long)]
    pub no_run: bool,
    #[command(flatten)]
    pub overrides: Overrides,
    /// Run on the machine of this file, or name, instead of the scenarios'
    #[arg(long, value_name = "FILE")]
    pub machine: Option<PathBuf>,
    /// Run each scenario on the members of its machine's calibrated set, too: machines/members/NAME-*.toml
    #[arg(long, conflicts_with = "machine")]
    pub members: bool,
    /// Points to run at once; the results are the same for every N
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = jobs)]
    pub jobs: usize,
    /// Run each point with this many seeds, from the scenario's on
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: u64,
    /// Folder for reproduce.html, reproduce.md and reproduce.json [default: the paper's name in out/reproduce]; runs are
    /// where `nicforge run` has them
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The file of claims [default: docs/predictions/open.toml, here or above]
    #[arg(long, value_name = "FILE")]
    pub claims: Option<PathBuf>,
    /// Print reproduce.md to standard output instead of the table
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Print reproduce.json to standard output instead of the table
    #[arg(long)]
    pub json: bool,
    /// Print nothing but errors and notes (and what --markdown or --json prints)
    #[arg(long)]
    pub quiet: bool,
}
