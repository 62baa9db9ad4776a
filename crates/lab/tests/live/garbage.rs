//! Garbage over a cable in memory, as fast as the device takes it, on every interface: counted under
//! its cause, and the sound frames between it arrive. `NICFORGE_GARBAGE_SECONDS=60` makes it a minute
//! for each.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use etherparse::PacketBuilder;
use nicforge_interfaces::Interfaces;
use nicforge_lab::live::{LiveConfig, LiveRun, LiveRunError, parse_live, run_live, run_live_over};

use nicforge_lab::settings::Catalogue;
use nicforge_platform::live::Clock;
use nicforge_platform::live::ports::{PairPort, Port, pair};
use nicforge_units::Time;
use nicforge_wire::parse_frame;

use crate::common_garbage::{Garbage, malformed_captures, seconds};

/// Garbage between two sound frames.
const BETWEEN: usize = 16;
const LONGEST: usize = 9_000;
/// How long the last sound frame may take.
const PATIENCE: Time = Time::from_ms(30_000);
/// What befalls a sound frame when workers have no time for 10 ms.
const WANT_OF_TIME: [&str; 3] = ["no_descriptor", "bx_full", "tx_ring_full"];

/// What is sound to a parser, and still goes nowhere.
const NOT_FORWARDED: [&str; 4] = ["oversized_frame", "arp", "group_source", "link_protocol"];

fn config(text: &str) -> LiveConfig {
    parse_live(text, Path::new("garbage.toml"), &Catalogue::shipped()).unwrap()
}

/// Sound frame `number`: a UDP packet that says it.
fn sound(number: u64) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ipv4([192, 0, 2, 9], [192, 0, 2, 10], 64)
        .udp(4_242, 9);
    let mut frame = Vec::new();
    let payload = [MARK, number.to_be_bytes()].concat();
    builder.write(&mut frame, &payload).unwrap();
    frame
}

const MARK: [u8; 8] = *b"sound #\0";
/// Where its mark begins: behind the Ethernet, IPv4 and UDP headers.
const MARKED_AT: usize = 42;

/// The number of a sound frame; all of it must be as it was sent, but for the Ethernet addresses.
fn number_of(frame: &[u8]) -> Option<u64> {
    let rest = frame.get(MARKED_AT..)?.strip_prefix(&MARK)?;
    let number = u64::from_be_bytes(*rest.first_chunk()?);
    assert_eq!(frame[12..], sound(number)[12..], "changed on its way");
    Some(number)
}

/// Puts `frame` on the cable, as soon as there is room.
fn put(cable: &mut PairPort, frame: &[u8]) {
    loop {
        let refused = cable.counters().refused;
        cable.send(frame, Time::ZERO).unwrap();
        if cable.counters().refused == refused {
            return;
        }
        std::thread::yield_now();
    }
}

#[derive(Default)]
struct Fed {
    frames: u64,
    sound: u64,
    by_cause: BTreeMap<&'static str, u64>,
}

/// Garbage for the time that is asked for, then sound frames until `seen` tells that the last came.
fn feed(mut cable: PairPort, seed: u64, seen: &AtomicU64) -> Fed {
    let mut garbage = Garbage::new(seed, 0, LONGEST);
    let mut fed = Fed::default();
    let clock = Clock::start();
    let until = Time::from_seconds(seconds(0.7));
    while clock.now() < until {
        for _ in 0..BETWEEN {
            let frame = garbage.frame();
            if let Err(error) = parse_frame(&frame) {
                *fed.by_cause.entry(error.name()).or_default() += 1;
            }
            put(&mut cable, &frame);
            fed.frames += 1;
        }
        put(&mut cable, &sound(fed.sound));
        fed.sound += 1;
    }
    // One of these may meet a full ring; then the next tells as well.
    let last = fed.sound;
    let until = clock.now() + PATIENCE;
    while seen.load(Ordering::Acquire) < last && clock.now() < until {
        put(&mut cable, &sound(fed.sound));
        fed.sound += 1;
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    fed
}

/// Takes what comes out; how many sound frames that were, each later than the one before.
fn drain(mut cable: PairPort, seen: &AtomicU64, over: &AtomicBool) -> u64 {
    let (mut came, mut next) = (0, 0);
    loop {
        let ends = over.load(Ordering::Acquire);
        let mut look = |frame: &[u8]| {
            if let Some(number) = number_of(frame) {
                assert!(number >= next, "{number} came after {next}");
                (came, next) = (came + 1, number + 1);
            }
        };
        let frames = cable.receive(256, &mut look).unwrap();
        seen.store(next, Ordering::Release);
        match frames {
            0 if ends => return came,
            0 => std::thread::yield_now(),
            _ => {}
        }
    }
}

/// What a run with garbage counted, what it was fed, and the sound frames that came.
fn run_with_garbage(interface: &str, seed: u64) -> (LiveRun, Fed, u64) {
    let config = config(&format!(
        "[live]\nname = \"garbage\"\n[settings]\ninterface = \"{interface}\"\napp = \"l2fwd\"\n\
         cores = 2\n[[port]]\nread = \"in memory\"\n[[port]]\nwrite = \"in memory\"\n"
    ));
    let ((ours_in, theirs_in), (ours_out, theirs_out)) = (pair(), pair());
    let ports: Vec<Box<dyn Port>> = vec![Box::new(theirs_in), Box::new(theirs_out)];
    let (seen, stop, over) = (AtomicU64::new(0), AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let fed = scope.spawn(|| {
            let fed = feed(ours_in, seed, &seen);
            stop.store(true, Ordering::Release);
            fed
        });
        let came = scope.spawn(|| drain(ours_out, &seen, &over));
        let run = run_live_over(&config, ports, &stop, &mut |_| {});
        over.store(true, Ordering::Release);
        (run.unwrap(), fed.join().unwrap(), came.join().unwrap())
    })
}

/// The run itself checks that every frame and every buffer is accounted for.
#[test]
fn garbage_is_counted_under_its_cause_and_sound_frames_arrive() {
    for (seed, interface) in (1..).zip(Interfaces::shipped().of_rings()) {
        let (run, fed, came) = run_with_garbage(interface, seed);
        let drops = run.snapshot.drops();
        let counted: BTreeMap<&str, u64> = drops.causes().iter().copied().collect();
        for (cause, count) in &fed.by_cause {
            assert_eq!(counted.get(cause), Some(count), "{interface}: {cause}");
        }
        for cause in counted.keys() {
            let known = fed.by_cause.contains_key(cause) || NOT_FORWARDED.contains(cause);
            // The cable's other end, when its reader has no time.
            let late = WANT_OF_TIME.contains(cause) || *cause == "port_refused";
            assert!(known || late, "{interface}: {cause}");
        }
        assert!(fed.by_cause.len() >= 10, "{interface}: {:?}", fed.by_cause);
        let late = WANT_OF_TIME.iter().chain(&["port_refused"]);
        let late: u64 = late.filter_map(|cause| counted.get(cause)).sum();
        let lost = fed.sound - came;
        // Those that were on the cable when the run was told to stop.
        let unseen = (fed.frames + fed.sound).saturating_sub(run.snapshot.arrived());
        println!(
            "{interface}: {} garbage in {:.1} s, {} sound, {lost} of them lost ({late} frames for \
             want of time)",
            fed.frames, run.snapshot.seconds, fed.sound
        );
        assert!(lost <= late + unseen, "{interface}: {lost} lost, {late} late");
    }
}

/// As a port that reads them: refused with a reason, or run to their end.
#[test]
fn malformed_captures_end_well_as_ports() {
    let captures = malformed_captures();
    if captures.is_empty() {
        crate::skip::skipped("no ../shared/data/pcap/bad beside the repository");
    }
    for capture in captures {
        let text = format!(
            "[live]\nname = \"bad\"\n[settings]\ninterface = \"rx_bisect\"\napp = \"nat\"\n\
             [app]\nexternal_address = \"198.19.0.1\"\n[[port]]\nread = {capture:?}\n[[port]]\nwrite = \"/dev/null\"\n"
        );
        match run_live(&config(&text), &AtomicBool::new(false), &mut |_| {}) {
            Ok(run) => assert_eq!(run.snapshot.inside(), 0, "{}", capture.display()),
            Err(error) => refused(&error),
        }
    }
}

fn refused(error: &LiveRunError) {
    let says = error.to_string();
    // Noticed at its beginning, or while it is read.
    let is_named = matches!(error, LiveRunError::Live(_) | LiveRunError::Config(_));
    assert!(is_named, "{says}");
    assert!(says.contains("capture"), "{says}");
}

/// The project's own: cut within a record, a record that claims too much, another kind of link.
#[test]
fn a_capture_that_breaks_off_ends_with_a_reason() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/captures/sample.pcap");
    let bytes = std::fs::read(sample).unwrap();
    let mut long = bytes.clone();
    // The captured length of the first record.
    long[24 + 8..24 + 12].copy_from_slice(&0x7fff_ffffu32.to_le_bytes());
    let mut wifi = bytes.clone();
    wifi[20] = 105;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.pcap");
    let play = |capture: &[u8]| {
        std::fs::write(&file, capture).unwrap();
        let text = format!("[live]\nname = \"bad\"\n[settings]\napp = \"l2fwd\"\n[[port]]\nread = {file:?}\n");
        run_live(&config(&text), &AtomicBool::new(false), &mut |_| {})
    };
    for broken in [&bytes[..24 + 16 + 7], &long, &wifi] {
        refused(&play(broken).expect_err("a broken capture"));
    }
    // What is whole of a cut one is played.
    let run = play(&bytes[..bytes.len() - 1]).unwrap();
    assert_eq!(run.cores[0].received, 239);
}
