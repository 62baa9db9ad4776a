//! What the command line may say.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use nicforge_options::SECONDS_MAX;
use nicforge_wire::rss::RssKey;

use crate::examples::*;

/// Nicforge: a network interface card whose contract with the host can be reshaped, and the
/// host it is plugged into: simulated, or live.
#[derive(Parser)]
#[command(name = "nicforge", version, after_help = TOP_EXAMPLES, disable_help_subcommand = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Simulate every point of a scenario, show the table, write the report
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunOptions),
    /// Find how far a key goes while a metric keeps a bound, for every point of a scenario
    #[command(after_help = SEARCH_EXAMPLES)]
    Search(crate::search::SearchOptions),
    /// Compare two runs: settings that differ, and metrics with a test of whether they do
    #[command(after_help = DIFF_EXAMPLES)]
    Diff(DiffOptions),
    /// Run what a paper's published claims are about, and put predictions beside them
    #[command(after_help = REPRODUCE_EXAMPLES)]
    Reproduce(crate::reproduce::ReproduceOptions),
    /// Search the machine files that fit what was measured, within ranges that have a source
    #[command(after_help = CALIBRATE_EXAMPLES)]
    Calibrate(crate::calibrate::CalibrateOptions),
    /// Say what there is: interfaces, applications, stages, machines, scenarios, settings
    #[command(after_help = LIST_EXAMPLES)]
    List(ListOptions),
    /// Validate a scenario and show what would run; run and write nothing
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckOptions),
    /// Put a NIC and its applications between real ports: network interfaces, TAP, captures
    #[cfg(target_os = "linux")]
    #[command(after_help = LIVE_EXAMPLES)]
    Live(LiveOptions),
    /// Run an application in a process of its own, as a worker of a live run
    #[cfg(target_os = "linux")]
    #[command(after_help = ATTACH_EXAMPLES)]
    Attach(AttachOptions),
    /// Run every point of a scenario simulated and live, and put both side by side
    #[cfg(target_os = "linux")]
    #[command(name = "sim-vs-live", after_help = SIM_VS_LIVE_EXAMPLES)]
    SimVsLive(SimVsLiveOptions),
    /// Know the machine that this runs on
    #[cfg(target_os = "linux")]
    Machine(crate::machine::MachineOptions),
    /// Run a program over the project's TCP instead of the kernel's
    #[cfg(target_os = "linux")]
    Sockets(crate::sockets::SocketsOptions),
    /// Show the sockets of programs that run over the project's TCP
    #[cfg(target_os = "linux")]
    Ss(crate::sockets::SsOptions),
    /// Show or write the frames of that TCP, filtered where they pass
    #[cfg(target_os = "linux")]
    Tcpdump(crate::sockets::TcpdumpOptions),
    /// Serve a file as a disk over NVMe/TCP, or copy such a disk
    #[cfg(target_os = "linux")]
    #[command(after_help = crate::nvme::NVME_EXAMPLES)]
    Nvme(crate::nvme::NvmeOptions),
    /// Be a NIC under the kernel's own TCP that encrypts TLS records, and run programs over it
    #[cfg(target_os = "linux")]
    #[command(after_help = crate::ktls::KTLS_EXAMPLES)]
    Ktls(crate::ktls::KtlsOptions),
    /// Write a capture (pcap) from a traffic source
    #[command(after_help = CAPTURE_EXAMPLES)]
    Capture(CaptureOptions),
    /// Say which hash and which queue RSS gives a frame
    #[command(after_help = RSS_EXAMPLES)]
    Rss(RssOptions),
    /// Run, test, explain and check P4-16 programs
    P4(crate::p4::P4Options),
    /// Write a crate of your own: an interface, application or stage that runs, its scenarios, its test
    #[command(after_help = NEW_EXAMPLES)]
    New(NewOptions),
    /// Say what a command does, or what a key of a scenario or live file means
    #[command(after_help = HELP_EXAMPLES)]
    Help(crate::help::HelpOptions),
    /// Print what completes this command's words in a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsOptions),
    /// Write manual pages: one for the command, one for each of its parts
    #[command(after_help = MANUAL_EXAMPLES)]
    Manual(ManualOptions),
}

#[derive(Args)]
pub struct CompletionsOptions {
    /// The shell
    pub shell: clap_complete::Shell,
}

#[derive(Args)]
pub struct ManualOptions {
    /// Folder for the pages; it is made if it is not there
    pub folder: PathBuf,
}

#[derive(Args)]
pub struct NewOptions {
    /// What the crate adds to Nicforge
    pub kind: NewKind,
    /// Its name in scenarios: small letters, digits and _
    pub name: String,
    /// Where the crate goes [default: a folder of that name]
    #[arg(long, value_name = "DIR")]
    pub path: Option<PathBuf>,
    /// The checkout of Nicforge that the crate depends on [default: the one that this program was built from]
    #[arg(long, value_name = "DIR", conflicts_with = "git")]
    pub nicforge: Option<PathBuf>,
    /// The repository that the crate depends on instead
    #[arg(long, value_name = "URL")]
    pub git: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NewKind {
    /// A NIC-host interface
    Interface,
    /// An application
    App,
    /// A stage on a NIC's packet path
    Stage,
}

/// What changes a scenario from the command line.
#[derive(Args, Clone)]
pub struct Overrides {
    /// Override a setting wherever the scenario sets, varies or sweeps it; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Replay this capture: short for --set arrival=replay --set pcap=FILE
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Seed of everything random [default: the scenario's, or 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

#[derive(Args)]
pub struct RunOptions {
    /// The scenario file
    pub scenario: PathBuf,
    #[command(flatten)]
    pub overrides: Overrides,
    /// Run on the machine of this file, or name, instead of the scenario's
    #[arg(long, value_name = "FILE")]
    pub machine: Option<PathBuf>,
    /// Folder for report.json, points.csv and report.html [default: one of the run's own in out/ and the scenario's
    /// name, where the link `latest` leads to it]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Run all points again, and replace the report of another run in --out
    #[arg(long)]
    pub force: bool,
    /// Print report.json to standard output instead of the table
    #[arg(long)]
    pub json: bool,
    /// Print nothing but errors and notes (and, with --json, the report)
    #[arg(long)]
    pub quiet: bool,
    /// Points to run at once; the results are the same for every N
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = jobs)]
    pub jobs: usize,
    /// Run points on the Ray cluster at this address: HOST:6379 on one of its nodes, ray://HOST:10001 elsewhere, or auto;
    /// needs a Python with the packages nicforge and ray: python3, or what NICFORGE_PYTHON names (docs/cluster.md)
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["jobs", "pcap_out", "trace"])]
    pub ray: Option<String>,
    /// Run each point with this many seeds, from the scenario's on: metrics are their means, with intervals from runs
    /// that are independent
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: u64,
    /// Let windows last until the 95 % intervals of throughput and mean latency are this narrow, such as 1%, and begin
    /// behind what drifts; short for --set precision=0.01
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub precision: Option<f64>,
    /// The time behind the warm-up that this may take, in ms; short for --set max_window_ms=MS
    #[arg(long, value_name = "MS", requires = "precision")]
    pub max_window: Option<String>,
    /// Put these values beside those of the run, in tables and plots; columns as in points.csv
    #[arg(long, value_name = "FILE.csv")]
    pub overlay: Option<PathBuf>,
    /// Write the frames that the server sends to this capture, pcapng if its name ends in .pcapng;
    /// needs a scenario of one point and one server that measures a window
    #[arg(long, value_name = "FILE")]
    pub pcap_out: Option<PathBuf>,
    /// Write the lives of N packets of each point, evenly spread over the frames that come in during its window, from
    /// the first bit in to the last bit out or to the drop, into the report's folder: trace.json, which ui.perfetto.dev
    /// opens, and trace.txt; of scenarios of one server that measures a window. All points run again
    #[arg(long, value_name = "N", value_parser = traced)]
    pub trace: Option<usize>,
}

#[derive(Args)]
pub struct DiffOptions {
    /// The first run: its folder, its report.json, or the folder of a scenario under out/ for the latest
    pub first: PathBuf,
    /// The second run
    pub second: PathBuf,
    /// Write a report of both, with plots over each other, into this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace the report of another run in --out
    #[arg(long)]
    pub force: bool,
}

#[derive(Args)]
pub struct ListOptions {
    /// What to list; everything but settings when left out
    pub what: Option<Listed>,
    /// With `registers`: of this device only
    pub device: Option<String>,
    /// With `machines`: every number with unit and source
    #[arg(long)]
    pub verbose: bool,
    /// With `settings`, `machines` or `registers`: as the page of that name in docs/ has it
    #[arg(long)]
    pub markdown: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    Interfaces,
    Apps,
    Stages,
    Machines,
    Scenarios,
    Settings,
    Registers,
}

#[derive(Args)]
pub struct CheckOptions {
    /// The scenario file
    pub scenario: PathBuf,
    #[command(flatten)]
    pub overrides: Overrides,
    /// Run on the machine of this file, or name, instead of the scenario's
    #[arg(long, value_name = "FILE")]
    pub machine: Option<PathBuf>,
}

#[derive(Args)]
pub struct CaptureOptions {
    /// The capture to write: pcapng if its name ends in .pcapng, else pcap
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// How many frames to write
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = packets)]
    pub packets: u64,
    #[command(flatten)]
    pub overrides: Overrides,
}

#[derive(Args)]
pub struct RssOptions {
    /// A capture, or the hexadecimal digits of a frame from its Ethernet header on
    pub frame: String,
    /// Queues of the NIC
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=128))]
    pub queues: u16,
    /// The Toeplitz key: "microsoft", "symmetric" or 80 hexadecimal digits
    #[arg(long, value_name = "KEY", default_value_t)]
    pub key: RssKey,
}

#[derive(Args)]
pub struct LiveOptions {
    /// The live run's file (docs/live.md)
    pub config: PathBuf,
    /// End after this many seconds [default: the file's, or at SIGINT or SIGTERM]
    #[arg(long, value_name = "SECONDS", value_parser = duration)]
    pub duration: Option<f64>,
    /// Override a key of the file's `settings`; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Folder for report.json, points.csv and report.html [default: the run's name under out/]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Serve Prometheus metrics on this loopback address, such as 127.0.0.1:9477
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<std::net::SocketAddr>,
    /// Serve a live view for browsers on this loopback address, such as 127.0.0.1:8080
    #[arg(long, value_name = "ADDRESS")]
    pub dashboard: Option<std::net::SocketAddr>,
    /// Let --dashboard listen on an address that other machines reach; everybody there sees the run
    #[arg(long, requires = "dashboard")]
    pub dashboard_open: bool,
    /// Write the lives of N packets, evenly chosen from all that come in, with real times, into the report's folder:
    /// trace.json, which ui.perfetto.dev opens, and trace.txt; of workers that are threads of this process
    #[arg(long, value_name = "N", value_parser = traced)]
    pub trace: Option<usize>,
    /// Workers are processes that attach through this Unix socket, instead of threads
    #[arg(long, value_name = "SOCKET")]
    pub attach: Option<PathBuf>,
    /// Print report.json to standard output instead of the tables
    #[arg(long)]
    pub json: bool,
    /// Print nothing but errors and events (and, with --json, the report)
    #[arg(long)]
    pub quiet: bool,
}

#[derive(Args)]
pub struct AttachOptions {
    /// The socket of the live run (its --attach)
    pub socket: PathBuf,
    /// Which worker to be, from 0 [default: the first that is not there]
    #[arg(long, value_name = "N")]
    pub worker: Option<usize>,
    /// Print nothing but errors
    #[arg(long)]
    pub quiet: bool,
}

#[derive(Args)]
pub struct SimVsLiveOptions {
    /// The scenario file
    pub scenario: PathBuf,
    #[command(flatten)]
    pub overrides: Overrides,
    /// Simulate the machine of this file, or name, instead of the scenario's
    #[arg(long, value_name = "FILE")]
    pub machine: Option<PathBuf>,
    /// How long each point runs live; captures are played once
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = duration)]
    pub seconds: f64,
    /// Folder for report.json, points.csv and report.html [default: a new one in out/, the scenario's name and
    /// -sim-vs-live]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace the report of another run in --out
    #[arg(long)]
    pub force: bool,
    /// Print report.json to standard output instead of the table
    #[arg(long)]
    pub json: bool,
    /// Print nothing but errors and notes (and, with --json, the report)
    #[arg(long)]
    pub quiet: bool,
}

fn duration(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok();
    let seconds = seconds.filter(|seconds: &f64| *seconds > 0.0 && *seconds <= SECONDS_MAX);
    seconds.ok_or_else(|| format!("use a number of seconds above 0, at most {SECONDS_MAX}"))
}

/// A share of one, or a percentage.
fn share(text: &str) -> Result<f64, String> {
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse().ok().map(|percent: f64| percent / 100.0),
        None => text.parse().ok(),
    };
    number.filter(|share| *share > 0.0 && *share <= 0.5).ok_or_else(|| "use a percentage, such as 1%".to_owned())
}

/// How many points run at once.
pub fn jobs(text: &str) -> Result<usize, String> {
    within(text, 1, 1024).map(|jobs| jobs as usize)
}

/// How many packets are followed.
fn traced(text: &str) -> Result<usize, String> {
    within(text, 1, 10_000).map(|packets| packets as usize)
}

fn packets(text: &str) -> Result<u64, String> {
    within(text, 1, 100_000_000)
}

fn within(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("use a whole number from {least} to {most}"))
}
