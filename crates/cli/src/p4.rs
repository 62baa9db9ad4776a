//! `nicforge p4`: runs, tests, explains and checks P4-16 programs.

mod serve;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use nicforge_flexnic::p4::{Engine, Options, OwnedOutput, Pipeline, Program, compile, entries, stf, target, trace};
use nicforge_units::Time;
use nicforge_wire::capture::{CaptureFormat, CaptureReader, CaptureWriteError, FileWriter, write_file};
use serde_json::json;

use crate::output::{print, tell};

#[derive(Args)]
pub struct P4Options {
    #[command(subcommand)]
    command: P4Command,
}

#[derive(Subcommand)]
enum P4Command {
    /// Run a program over a capture
    Run(RunProgram),
    /// Run packet tests: each PROGRAM.p4 with its PROGRAM.stf
    Test(TestPrograms),
    /// Show which table lands in which stage of a NIC, and why
    Explain(Explain),
    /// Check a program and report its errors
    Check(CheckProgram),
    /// Let controllers fill the tables of a program over P4Runtime
    Serve(serve::ServeProgram),
    /// Print what controllers know of a program: its P4Info
    Info(CheckProgram),
}

#[derive(Args)]
struct Source {
    /// The program
    program: PathBuf,
    /// Folder in which #include looks; may be repeated
    #[arg(short = 'I', value_name = "DIR")]
    include: Vec<PathBuf>,
    /// Define a macro; may be repeated
    #[arg(short = 'D', value_name = "NAME[=VALUE]")]
    define: Vec<String>,
}

#[derive(Args)]
struct RunProgram {
    #[command(flatten)]
    source: Source,
    /// Entries of its tables
    #[arg(long, value_name = "TOML")]
    entries: Option<PathBuf>,
    /// Packets that arrive
    #[arg(long, value_name = "FILE")]
    pcap: PathBuf,
    /// Port on which they arrive
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u32,
    /// Packets that leave
    #[arg(long, value_name = "FILE")]
    pcap_out: Option<PathBuf>,
    /// Tell what happens to each packet
    #[arg(long)]
    trace: bool,
    /// Tell it as JSON, one packet a line
    #[arg(long)]
    json: bool,
    /// Write packets that arrive, each with its trace as a comment, to a pcapng file
    #[arg(long, value_name = "FILE.pcapng", value_parser = pcapng)]
    trace_out: Option<PathBuf>,
    /// Run the reference interpreter instead of compiled code
    #[arg(long)]
    interpret: bool,
}

/// Only pcapng has room for comments.
fn pcapng(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match CaptureFormat::of(&path) {
        CaptureFormat::PcapNg => Ok(path),
        CaptureFormat::Pcap => Err("only pcapng keeps comments: name a file that ends in .pcapng".to_owned()),
    }
}

#[derive(Args)]
struct TestPrograms {
    /// Programs or packet tests; the other file lies beside it
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Folder in which #include looks; may be repeated
    #[arg(short = 'I', value_name = "DIR")]
    include: Vec<PathBuf>,
    /// Run the reference interpreter instead of compiled code
    #[arg(long)]
    interpret: bool,
}

#[derive(Args)]
struct Explain {
    #[command(flatten)]
    source: Source,
    /// The NIC [default: a small pipeline of match-action stages]
    #[arg(long, value_name = "TOML")]
    target: Option<PathBuf>,
    /// Write a picture
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

#[derive(Args)]
struct CheckProgram {
    #[command(flatten)]
    source: Source,
}

/// What is wrong, and the exit code that says so: 1 for a failure, 2 for wrong input.
struct Failure {
    message: String,
    code: u8,
}

fn input(message: impl ToString) -> Failure {
    Failure { message: message.to_string(), code: 2 }
}

fn failure(message: impl ToString) -> Failure {
    Failure { message: message.to_string(), code: 1 }
}

/// Runs the command.
pub fn p4(options: &P4Options) -> ExitCode {
    let result = match &options.command {
        P4Command::Run(options) => run(options),
        P4Command::Test(options) => test(options),
        P4Command::Explain(options) => explain(options),
        P4Command::Check(options) => check(options),
        P4Command::Serve(options) => serve::serve(options),
        P4Command::Info(options) => serve::info(&options.source),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            tell(&format!("{}\n", failure.message.trim_end()));
            ExitCode::from(failure.code)
        }
    }
}

fn show(text: &str) -> Result<(), Failure> {
    print(text).map_err(failure)
}

fn options(source: &Source) -> Options {
    Options { include: source.include.clone(), define: source.define.clone() }
}

fn program(source: &Source) -> Result<Program, Failure> {
    let program = Program::compile(&source.program, &options(source)).map_err(input)?;
    tell(&program.warnings.render(false));
    Ok(program)
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| input(format!("cannot read {}: {error}", path.display())))
}

fn engine(interpret: bool) -> Engine {
    if interpret { Engine::Interpreter } else { Engine::Compiled }
}

fn run(options: &RunProgram) -> Result<(), Failure> {
    let program = program(&options.source)?;
    let mut pipeline = program.pipeline(engine(options.interpret), 1).map_err(failure)?;
    if let Some(path) = &options.entries {
        let text = read(path)?;
        entries::load(&mut pipeline, &text).map_err(|error| input(format!("{}: {error}", path.display())))?;
    }
    let mut reader = CaptureReader::open(&options.pcap).map_err(input)?;
    let mut leaving: Vec<(Time, OwnedOutput)> = Vec::new();
    let mut traced: Vec<Traced> = Vec::new();
    let mut number = 0;
    let mut bytes = Vec::new();
    while let Some(record) = reader.next_record().map_err(input)? {
        number += 1;
        let time = record.time;
        bytes.clear();
        record.fill_up(&mut bytes);
        pipeline.set_time(time.as_us() as u64);
        let (outputs, comment) = packet(&mut pipeline, options, number, &bytes)?;
        traced.extend(comment.map(|comment| Traced { time, bytes: bytes.clone(), comment }));
        leaving.extend(outputs.into_iter().map(|output| (time, output)));
    }
    if let Some(path) = &options.pcap_out {
        let write = |error: CaptureWriteError| failure(format!("cannot write {}: {error}", path.display()));
        write_file(path, |writer| leaving.iter().try_for_each(|(time, output)| writer.write(*time, &output.packet)))
            .map_err(write)?;
    }
    if let Some(path) = &options.trace_out {
        let write = |error: CaptureWriteError| failure(format!("cannot write {}: {error}", path.display()));
        let each = |writer: &mut FileWriter| {
            traced.iter().try_for_each(|one| writer.write_commented(one.time, &one.bytes, &one.comment))
        };
        write_file(path, each).map_err(write)?;
    }
    summary(&pipeline)
}

/// A packet that arrived, and its trace.
struct Traced {
    time: Time,
    bytes: Vec<u8>,
    comment: String,
}

/// Takes a packet through the program; returns what leaves, and its trace where that goes into a file.
fn packet(
    pipeline: &mut Pipeline,
    options: &RunProgram,
    number: u64,
    bytes: &[u8],
) -> Result<(Vec<OwnedOutput>, Option<String>), Failure> {
    if !options.trace && !options.json && options.trace_out.is_none() {
        return Ok((pipeline.process(bytes, options.port), None));
    }
    let (outputs, events) = pipeline.trace(bytes, options.port);
    if options.json {
        let line = json!({ "packet": number, "port": options.port, "bytes": bytes.len(), "events": events });
        show(&format!("{line}\n"))?;
    } else if options.trace {
        show(&format!("packet {number}: port {}, {} bytes\n{}", options.port, bytes.len(), trace::to_text(&events)))?;
    }
    Ok((outputs, options.trace_out.is_some().then(|| trace::to_text(&events))))
}

/// What happened, to standard error, so that traces stay alone.
fn summary(pipeline: &Pipeline) -> Result<(), Failure> {
    let counters = pipeline.counters();
    let mut text = format!("{} packets arrived, {} left\n", counters.received, counters.sent);
    for (cause, count) in &counters.gone {
        text.push_str(&format!("  {count} gone: {cause}\n"));
    }
    let errors = pipeline.ir().errors.iter().zip(&counters.parser_errors);
    for (error, count) in errors.filter(|(_, count)| **count > 0) {
        text.push_str(&format!("  {count} parser errors: {error}\n"));
    }
    for table in pipeline.tables() {
        let (hits, misses) = table.counts;
        text.push_str(&format!("  table {}: {hits} hits, {misses} misses, {} entries\n", table.info.path, table.len()));
    }
    tell(&text);
    Ok(())
}

fn test(options: &TestPrograms) -> Result<(), Failure> {
    let compile = Options { include: options.include.clone(), define: Vec::new() };
    let mut failed = 0;
    for file in &options.files {
        let report =
            stf::run_file(&file.with_extension("p4"), &file.with_extension("stf"), &compile, engine(options.interpret));
        if report.passed() {
            show(&format!("pass  {} ({} packets, {} expected)\n", file.display(), report.packets, report.expected))?;
        } else {
            failed += 1;
            show(&format!(
                "FAIL  {}\n      {}\n",
                file.display(),
                report.failures.join("\n").replace('\n', "\n      ")
            ))?;
        }
    }
    let total = options.files.len();
    show(&format!("{} of {total} pass\n", total - failed))?;
    if failed == 0 { Ok(()) } else { Err(failure(format!("{failed} packet tests fail"))) }
}

fn explain(options: &Explain) -> Result<(), Failure> {
    let program = program(&options.source)?;
    let target = match &options.target {
        Some(path) => {
            target::Target::from_toml(&read(path)?).map_err(|error| input(format!("{}: {error}", path.display())))?
        }
        None => target::Target::default(),
    };
    let layout = target::place(&program, &target)
        .map_err(|refusal| failure(format!("the program does not fit on {}:\n{refusal}", target.name)))?;
    if let Some(path) = &options.svg {
        std::fs::write(path, target::to_svg(&layout, &target))
            .map_err(|error| failure(format!("cannot write {}: {error}", path.display())))?;
    }
    show(&target::to_text(&layout, &target))
}

fn check(options: &CheckProgram) -> Result<(), Failure> {
    let front = compile::check_file(&options.source.program, &self::options(&options.source)).map_err(input)?;
    // Declarations without `main` are a library; a program has to come together as well.
    let warnings = match front.checked.main {
        Some(_) => Program::compile(&options.source.program, &self::options(&options.source)).map_err(input)?.warnings,
        None => front.warnings,
    };
    tell(&warnings.render(false));
    show(&format!("{}: no errors\n", options.source.program.display()))
}
