//! Live runs between capture files, on every interface: threads of their own, no privilege.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use nicforge_interfaces::Interfaces;
use nicforge_interfaces::emulated::played_by_cores;
use nicforge_lab::live::{LiveRun, TcpOptions, WorkerEnd, parse_live, run_live, run_live_over, run_software};
use nicforge_lab::settings::Catalogue;
use nicforge_platform::live::ports::{Port, pair};
use nicforge_record::CoreFigures;
use nicforge_units::Time;
use nicforge_wire::FrameError;
use nicforge_wire::capture::{CaptureFormat, CaptureReader, CaptureWriter};
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/captures/sample.pcap");

fn frames(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = CaptureReader::open(path).unwrap();
    let mut frames = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        frames.push(record.bytes.to_vec());
    }
    frames
}

/// The settings of every interface, and of all that `emulated` can be around.
fn interfaces() -> Vec<String> {
    let plain = Interfaces::shipped().of_rings().into_iter();
    let plain = plain.filter(|name| *name != "emulated");
    let plain = plain.map(|name| format!("interface = \"{name}\""));
    let played = played_by_cores().into_iter().map(|name| format!("interface = \"emulated\"\nemulates = \"{name}\""));
    plain.chain(played).collect()
}

/// The sample through `settings`; the run, and the frames that came out.
fn through(settings: &str) -> (LiveRun, Vec<Vec<u8>>) {
    capture_through(Path::new(SAMPLE), settings)
}

/// Capture `from` through `settings`; the run, and the frames that came out.
fn capture_through(from: &Path, settings: &str) -> (LiveRun, Vec<Vec<u8>>) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.pcap");
    let text = format!(
        "[live]\nname = \"test\"\n[settings]\n{settings}\n[[port]]\nread = {from:?}\n\
         [[port]]\nwrite = {out:?}\n"
    );
    let config = parse_live(&text, Path::new("test.toml"), &Catalogue::shipped()).unwrap();
    let run = run_live(&config, &AtomicBool::new(false), &mut |_| {}).unwrap();
    (run, frames(&out))
}

/// Frames by flow, in order, without their Ethernet addresses, which are the port's.
fn by_flow(frames: &[Vec<u8>]) -> BTreeMap<Vec<u8>, Vec<Vec<u8>>> {
    let mut flows: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
    for frame in frames.iter().filter(|frame| frame.len() >= 38) {
        // Addresses and ports of IPv4 without options, which is all that the sample has.
        let flow = frame[26..38].to_vec();
        flows.entry(flow).or_default().push(frame[12..].to_vec());
    }
    flows
}

#[test]
fn every_interface_forwards_every_frame_in_the_order_of_its_flow() {
    let sent = frames(Path::new(SAMPLE));
    for interface in interfaces() {
        for (cores, pool) in [(1, ""), (3, "\npool_order = \"stack\"\npool_cache = 16")] {
            let settings = format!("{interface}\napp = \"l2fwd\"\ncores = {cores}{pool}");
            let (run, came) = through(&settings);
            assert_eq!(run.snapshot.drops().total(), 0, "{interface}, {cores}");
            assert_eq!(by_flow(&came), by_flow(&sent), "{interface}, {cores}");
            assert_eq!(run.metrics.drop_fraction, 0.0);
            let workers = run.snapshot.workers.iter().filter(|w| w.taken > 0);
            assert_eq!(workers.count(), cores, "{interface}: all take part");
        }
    }
}

#[test]
fn a_file_names_the_stacks_congestion_control() {
    use nicforge_tcp::congestion::Algorithm;
    let parse = |line: &str| {
        let text = format!(
            "[live]\nname = \"test\"\n[settings]\ninterface = \"priv_ring\"\n[[port]]\ntap = \"none\"\n\
             [tcp]\naddress = [\"10.0.0.2/24\"]\n{line}\n"
        );
        parse_live(&text, Path::new("test.toml"), &Catalogue::shipped())
    };
    let chosen = |line: &str| {
        let options: TcpOptions = parse(line).unwrap().tcp.unwrap().read();
        options.congestion.map(|control| control.algorithm())
    };
    assert_eq!(chosen(""), None);
    for algorithm in Algorithm::ALL {
        let line = format!("congestion = \"{}\"", algorithm.name());
        assert_eq!(chosen(&line), Some(algorithm));
    }
    let refused = parse("congestion = \"bbr\"").unwrap_err().to_string();
    assert!(refused.contains("test.toml:9") && refused.contains("cubic"), "{refused}");
}

/// Sends every frame back by the worker's place that it came to.
fn echo(mut ends: Vec<WorkerEnd>, stop: &AtomicBool) -> Result<(), String> {
    while !stop.load(Ordering::Acquire) {
        let mut waits = true;
        for WorkerEnd { port, .. } in &mut ends {
            let mut taken: Vec<Vec<u8>> = Vec::new();
            port.receive(32, &mut |frame| taken.push(frame.to_vec())).map_err(|error| error.to_string())?;
            for frame in &taken {
                port.send(frame, Time::ZERO).map_err(|error| error.to_string())?;
            }
            port.flush().map_err(|error| error.to_string())?;
            waits &= taken.is_empty() && port.arm();
        }
        if waits {
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
    }
    Ok(())
}

/// Software on workers' places gets every frame and sends frames of its own, through any interface; nothing is lost
/// and no buffer is.
#[test]
fn software_behind_every_interface_takes_and_makes_frames() {
    let mut sent: Vec<Vec<u8>> = frames(Path::new(SAMPLE)).into_iter().take(300).collect();
    for (interface, cores) in
        interfaces().into_iter().map(|name| (name, 1)).chain([("interface = \"priv_ring\"".to_string(), 3)])
    {
        let text = format!(
            "[live]\nname = \"test\"\n[settings]\n{interface}\ncores = {cores}\n\
             [tcp]\naddress = [\"10.0.0.2/24\"]\n[[port]]\ntap = \"none\"\n"
        );
        let config = parse_live(&text, Path::new("test.toml"), &Catalogue::shipped()).unwrap();
        let (mut ours, theirs) = pair();
        let stop = AtomicBool::new(false);
        let mut came = std::thread::scope(|scope| {
            let generator = scope.spawn(|| {
                let mut came = Vec::new();
                for frame in &sent {
                    ours.send(frame, Time::ZERO).unwrap();
                }
                for _ in 0..5000 {
                    ours.receive(64, &mut |frame| came.push(frame.to_vec())).unwrap();
                    if came.len() == sent.len() {
                        break;
                    }
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
                stop.store(true, Ordering::Release);
                came
            });
            let run = run_software(&config, vec![Box::new(theirs)], Box::new(echo), &stop, &mut |_| {}).unwrap();
            assert_eq!(run.snapshot.drops().total(), 0, "{interface}: {:?}", run.snapshot.drops());
            let worked = run.cores.iter().filter(|core| core.received > 0).count();
            assert_eq!(worked, cores, "{interface}: RSS splits flows");
            generator.join().unwrap()
        });
        if cores > 1 {
            // Workers are not in step.
            came.sort();
            sent.sort();
        }
        assert!(came == sent, "{interface}: {} of {}", came.len(), sent.len());
    }
}

#[test]
fn a_run_goes_around_small_rings_many_times() {
    for interface in interfaces() {
        let settings = format!(
            "{interface}\napp = \"nat\"\ncores = 2\nrx_entries = 16\n\
             tx_entries = 16\nburst = 8{}\n[app]\nexternal_address = \"198.19.0.1\"",
            if interface.contains("rx_bisect") { "\nax_entries = 8\nbx_entries = 16" } else { "" }
        );
        let (run, came) = through(&settings);
        assert_eq!(run.snapshot.inside(), 0);
        assert_eq!(came.len() as u64 + run.snapshot.drops().total(), run.snapshot.arrived(), "{interface}");
        assert!(came.len() >= 200, "{interface}: {} came", came.len());
        // Of each worker is known what it took and what was dropped for it.
        let cores = &run.cores;
        assert_eq!(cores.len(), 2);
        let received: u64 = cores.iter().map(|core| core.received).sum();
        let dropped: u64 = cores.iter().map(CoreFigures::dropped).sum();
        assert_eq!(dropped, run.snapshot.drops().total(), "{interface}");
        assert!(received >= came.len() as u64, "{interface}");
        let sum = |of: fn(&CoreFigures) -> Option<u64>| cores.iter().map(of).sum::<Option<u64>>();
        let borrowed = sum(|core| core.borrowed);
        assert_eq!(borrowed, sum(|core| core.lent), "{interface}");
        assert_eq!(borrowed.is_some(), interface.contains("rx_bisect"));
        for core in cores {
            assert!(core.busy_fraction.is_some_and(|busy| (0.0..=1.0).contains(&busy)));
            assert_eq!((core.nic, core.throughput_gbps, core.mean_burst), (None, None, None));
        }
    }
}

/// Frames of any bytes and lengths, and the sample's with parts cut off and bits turned over: all
/// are forwarded or dropped under a parser's name, and the sample beside them is undisturbed.
#[test]
fn garbage_is_counted_and_disturbs_nobody() {
    let mut random = Pcg64::seed_from_u64(11);
    let sample = frames(Path::new(SAMPLE));
    let folder = tempfile::tempdir().unwrap();
    let mixed = folder.path().join("mixed.pcap");
    let file = std::fs::File::create(&mixed).unwrap();
    let mut writer = CaptureWriter::new(file, CaptureFormat::Pcap).unwrap();
    for frame in &sample {
        for _ in 0..20 {
            let mut garbage = frame.clone();
            match random.next_u32() % 4 {
                0 => {
                    garbage.resize(random.next_u32() as usize % 9_000, 0);
                    random.fill_bytes(&mut garbage);
                }
                1 => garbage.truncate(random.next_u32() as usize % frame.len()),
                2 => random.fill_bytes(&mut garbage[12..60]),
                _ => garbage[12 + random.next_u32() as usize % 40] ^= 1 << (random.next_u32() % 8),
            }
            writer.write(Time::ZERO, &garbage).unwrap();
        }
        writer.write(Time::ZERO, frame).unwrap();
    }
    writer.finish().unwrap();
    let known: Vec<&str> = FrameError::ALL.iter().map(|error| error.name()).collect();
    for interface in interfaces() {
        let settings = format!("{interface}\napp = \"l2fwd\"\ncores = 2");
        let (run, came) = capture_through(&mixed, &settings);
        let drops = run.snapshot.drops();
        for (cause, count) in drops.causes() {
            // Some of the sample's frames have lost all of their bytes.
            let named = known.contains(cause)
                || ["oversized_frame", "no_frame", "group_source", "link_protocol"].contains(cause);
            assert!(named, "{interface}: {cause} {count}");
        }
        assert!(drops.total() > 500, "{interface}: {}", drops.total());
        let (came, sent) = (by_flow(&came), by_flow(&sample));
        for (flow, frames) in sent {
            // Garbage may look like a frame of the flow, but none of the flow's is missing.
            let mut rest = came[&flow].iter();
            let all = frames.iter().all(|frame| rest.any(|other| other == frame));
            assert!(all, "{interface}: a frame is lost or late");
        }
    }
}

#[test]
fn impossible_live_points_are_refused_with_their_place() {
    let live = "[live]\nname = \"x\"\n";
    let port = "[[port]]\ninterface = \"a\"\n";
    for (text, says) in [
        (live.to_string(), "there are 0 ports"),
        (port.to_string(), "[live] has no `name`"),
        (format!("{live}speed = 1\n{port}"), "x.toml:3:1: unknown key"),
        (format!("{live}{port}tap = \"b\"\n"), "a port with 2 other ends"),
        (format!("{live}{port}peer = 1\n"), "`peer` is no port"),
        (format!("{live}{port}next_hop = \"10.0.0.1\"\n"), "`next_hop` is to be asked for"),
        (format!("{live}{port}mac = \"02:00\"\n"), "x.toml:5:7: `mac` cannot be"),
        (format!("{live}[settings]\napp = \"l3fwd\"\n{port}"), "`l3fwd` has no routes"),
        (
            format!("{live}[settings]\ninterface = \"emulated\"\nemulates = \"split\"\n{port}"),
            "its frames lie in two buffers each",
        ),
        (format!("{live}duration_s = -1\n{port}"), "`duration_s` cannot be -1"),
        (format!("{live}idle = \"no\"\n{port}"), "x.toml:3:8: `idle` knows no \"no\""),
    ] {
        let error = parse_live(&text, Path::new("x.toml"), &Catalogue::shipped()).unwrap_err();
        assert!(error.to_string().contains(says), "{error}\n{says}");
    }
}

/// A key of a module that the run does not use is no error.
#[test]
fn keys_of_modules_that_a_live_run_does_not_use_are_noted() {
    let notes = |settings: &str| {
        let text =
            format!("[live]\nname = \"x\"\n[settings]\napp = \"l2fwd\"\n{settings}\n[[port]]\ninterface = \"a\"\n");
        parse_live(&text, Path::new("x.toml"), &Catalogue::shipped()).unwrap().notes()
    };
    for (line, owner) in [
        ("io_ways = 2", "workload = frames"),
        ("offered_gbps = 2", "traffic"),
        ("ax_entries = 64", "interface rx_bisect"),
        ("emulates = \"sh_ring\"", "interface emulated"),
    ] {
        let notes = notes(line);
        let key = line.split(' ').next().unwrap();
        assert_eq!(notes.len(), 1, "{line}");
        assert!(
            notes[0].starts_with("x.toml:5:") && notes[0].contains(key) && notes[0].contains(owner),
            "{}",
            notes[0]
        );
    }
    assert!(notes("interface = \"rx_bisect\"\nax_entries = 64\nax_rings = 1").is_empty());
}

#[test]
fn an_interface_that_there_is_not_is_named() {
    let text = "[live]\nname = \"x\"\n[settings]\napp = \"l2fwd\"\n[[port]]\n\
                interface = \"no-such-port\"\n";
    let config = parse_live(text, Path::new("x.toml"), &Catalogue::shipped()).unwrap();
    let error = run_live(&config, &AtomicBool::new(true), &mut |_| {}).unwrap_err();
    let says = error.to_string();
    assert!(says.starts_with("x.toml:5:1: interface no-such-port: "), "{says}");
    // Who may open no interface does not learn which there are.
    let remedies = ["; name an interface that", "; run it as root, or with CAP_"];
    assert!(remedies.iter().any(|text| says.contains(text)), "{says}");
}

/// Who does not answer is not waited for when the run shall end.
#[test]
fn a_run_that_asks_for_its_next_hop_can_be_stopped() {
    let text = "[live]\nname = \"x\"\n[settings]\napp = \"l2fwd\"\n[[port]]\ninterface = \"cable\"\n\
                address = \"192.0.2.1\"\nnext_hop = \"192.0.2.2\"\n";
    let config = parse_live(text, Path::new("x.toml"), &Catalogue::shipped()).unwrap();
    let (mut host, port) = pair();
    let stop = AtomicBool::new(false);
    let ended = std::thread::scope(|scope| {
        let run = scope.spawn(|| run_live_over(&config, vec![Box::new(port)], &stop, &mut |_| {}));
        let mut asked = false;
        while !asked {
            host.receive(1, &mut |frame| asked |= frame[12..14] == [8, 6]).unwrap();
        }
        stop.store(true, Ordering::Release);
        run.join().unwrap()
    });
    assert_eq!(ended.unwrap().snapshot.arrived(), 0);
}
