//! `nicforge p4 serve` and `nicforge p4 info`.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clap::Args;
use nicforge_flexnic::p4::{Engine, Shared, entries};
use nicforge_p4runtime::{Info, Listen, Loaded, Options};
use nicforge_units::Time;
use nicforge_wire::capture::{CaptureReader, CaptureWriteError, write_file};

use super::{Failure, Source, failure, input, program, read, show, summary};
use crate::output::tell;

#[derive(Args)]
#[command(after_help = "Examples:
  nicforge p4 serve examples/p4/router.p4 --listen 127.0.0.1:9559
  nicforge p4 serve router.p4 --listen unix:/tmp/router.sock --pcap in.pcap --pcap-out out.pcap --seconds 10
  nicforge p4 info router.p4 > router.p4info.txtpb        # for controllers that want a file

A controller sends a program as P4-16 text in p4_device_config; its P4Info has to be that of `nicforge p4 info`.
Without --pcap only packets of controllers (packet-out) arrive. Ctrl-C ends the server.")]
pub(super) struct ServeProgram {
    #[command(flatten)]
    source: Source,
    /// Where controllers connect: unix:PATH, or a loopback address and port
    #[arg(long, value_name = "WHERE", default_value = "127.0.0.1:9559")]
    listen: String,
    /// The device's number
    #[arg(long, value_name = "N", default_value_t = 1)]
    device_id: u64,
    /// Entries to begin with
    #[arg(long, value_name = "TOML")]
    entries: Option<PathBuf>,
    /// Packets that arrive, at the times of the capture
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Port on which they arrive
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u32,
    /// Play the capture again and again
    #[arg(long)]
    repeat: bool,
    /// Packets that leave
    #[arg(long, value_name = "FILE")]
    pcap_out: Option<PathBuf>,
    /// Port whose packets go to controllers
    #[arg(long, value_name = "N", default_value_t = 510)]
    cpu_port: u32,
    /// End after so many seconds [default: at Ctrl-C]
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// Run the reference interpreter instead of compiled code
    #[arg(long)]
    interpret: bool,
}

/// Packets that left, for the file at the end; more are only counted.
const LEAVING_MAX: usize = 1 << 20;

#[derive(Default)]
struct Leaving {
    packets: Vec<(Time, Vec<u8>)>,
    cut: u64,
}

/// Runs a program whose tables controllers fill.
pub(super) fn serve(options: &ServeProgram) -> Result<(), Failure> {
    let listen: Listen = options.listen.parse().map_err(input)?;
    let seconds = options.seconds.map(Duration::try_from_secs_f64).transpose();
    let seconds = seconds.map_err(|error| input(format!("--seconds: {error}")))?;
    let engine = if options.interpret { Engine::Interpreter } else { Engine::Compiled };
    let program = program(&options.source)?;
    let mut pipeline = program.pipeline(engine, 1).map_err(failure)?;
    if let Some(path) = &options.entries {
        entries::load(&mut pipeline, &read(path)?).map_err(|error| input(format!("{}: {error}", path.display())))?;
    }
    let shared = Shared::new(pipeline, Some(options.cpu_port));
    let leaving: Arc<Mutex<Leaving>> = Arc::default();
    let start = Instant::now();
    let keeps = options.pcap_out.is_some();
    let run = {
        let (shared, leaving) = (shared.clone(), leaving.clone());
        move |packet: &[u8], port: u32| {
            let now = start.elapsed();
            shared.process(packet, port, false, now.as_micros() as u64, &mut |output| {
                let mut leaving = leaving.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                if !keeps {
                } else if leaving.packets.len() < LEAVING_MAX {
                    leaving.packets.push((Time::from_ns(now.as_nanos() as u64), output.packet.to_vec()));
                } else {
                    leaving.cut += 1;
                }
            });
        }
    };
    let (inject, cpu_port) = (run.clone(), options.cpu_port);
    let server = nicforge_p4runtime::serve(
        &listen,
        Options {
            device_id: options.device_id,
            shared: shared.clone(),
            loaded: Some(Loaded::new(program, read(&options.source.program)?.as_bytes())),
            engine,
            seed: 1,
            target: None,
            inject: Box::new(move |packet| inject(&packet, cpu_port)),
        },
    );
    let server = server.map_err(failure)?;
    tell(&format!("P4Runtime on {}, device {}\n", server.at, options.device_id));
    let end = ended()?;
    let over = || end.load(Ordering::Relaxed) || seconds.is_some_and(|seconds| start.elapsed() >= seconds);
    play(options, &run, &over)?;
    while !over() {
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(server);
    let leaving = std::mem::take(&mut *leaving.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
    if let Some(path) = &options.pcap_out {
        let write = |error: CaptureWriteError| failure(format!("cannot write {}: {error}", path.display()));
        write_file(path, |writer| leaving.packets.iter().try_for_each(|(time, packet)| writer.write(*time, packet)))
            .map_err(write)?;
        if leaving.cut > 0 {
            tell(&format!("{} packets more left than {} holds\n", leaving.cut, path.display()));
        }
    }
    summary(&shared.lock())
}

/// A flag that Ctrl-C sets.
fn ended() -> Result<Arc<AtomicBool>, Failure> {
    let end = Arc::new(AtomicBool::new(false));
    #[cfg(target_os = "linux")]
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, end.clone()).map_err(failure)?;
    }
    Ok(end)
}

/// Plays the capture at its own pace.
fn play(options: &ServeProgram, run: &impl Fn(&[u8], u32), over: &impl Fn() -> bool) -> Result<(), Failure> {
    let Some(path) = &options.pcap else { return Ok(()) };
    loop {
        let mut reader = CaptureReader::open(path).map_err(input)?;
        let (start, mut first, mut bytes, mut any) = (Instant::now(), None, Vec::new(), false);
        while let Some(record) = reader.next_record().map_err(input)? {
            let first = *first.get_or_insert(record.time);
            let due = Duration::from_nanos((record.time.as_us() - first.as_us()).max(0.0) as u64 * 1000);
            while start.elapsed() < due {
                if over() {
                    return Ok(());
                }
                std::thread::sleep((due - start.elapsed().min(due)).min(Duration::from_millis(20)));
            }
            any = true;
            bytes.clear();
            record.fill_up(&mut bytes);
            run(&bytes, options.port);
        }
        if !options.repeat || !any || over() {
            return Ok(());
        }
    }
}

/// Prints P4Info as text.
pub(super) fn info(source: &Source) -> Result<(), Failure> {
    let info = Info::new(&program(source)?);
    let text = nicforge_p4runtime::to_text(&info.message).map_err(failure)?;
    show(&text)
}
