//! A worker that has gone mad: whatever stands in the shared region, the device goes on.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nicforge_interfaces::Interfaces;
use nicforge_interfaces::emulated::played_by_cores;
use nicforge_platform::Addr;
use nicforge_platform::live::Control;
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

use super::assemble::{Assembly, assemble, open_ports};
use super::device::Phase;
use super::worker::Worker;
use super::{Shared, load_live, parse_live};
use crate::settings::Catalogue;

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/captures/sample.pcap");

/// Words of any content at any place of the region, near what was there and far from it.
fn scribble(control: &Control, stop: &AtomicBool, seed: u64) -> u64 {
    let mut random = Pcg64::seed_from_u64(seed);
    let region = control.region();
    // All that is laid out but the pool's free frames: rings, tables, registers, control words.
    let dense = [0..1 << 20, (64 << 20)..control.memory_end().0, control.memory_end().0..region.len()];
    let mut written = 0;
    while !stop.load(Ordering::Relaxed) {
        let part = &dense[random.next_u32() as usize % dense.len()];
        let words = (part.end - part.start) / 8;
        let at = Addr(part.start + random.next_u64() % words.max(1) * 8);
        let before: u64 = region.load(at);
        let word = match random.next_u32() % 4 {
            0 => random.next_u64(),
            1 => before.wrapping_add(random.next_u64() % 64),
            2 => before ^ 1 << (random.next_u32() % 64),
            _ => random.next_u64() % control.memory_end().0,
        };
        region.store(at, word);
        written += 1;
    }
    written
}

#[test]
fn nonsense_in_the_region_does_not_stop_the_device() {
    let interfaces = Interfaces::shipped().of_rings();
    let plain = interfaces.iter().map(|name| format!("{name:?}"));
    let played = played_by_cores().into_iter().map(|name| format!("\"emulated\"\nemulates = {name:?}"));
    for (seed, interface) in (0..).zip(plain.chain(played)) {
        let text = format!(
            "[live]\nname = \"mad\"\n[settings]\ninterface = {interface}\napp = \"l2fwd\"\n\
             cores = 2\n[[port]]\nread = {SAMPLE:?}\n[[port]]\nread = {SAMPLE:?}\n"
        );
        let config = parse_live(&text, Path::new("mad.toml"), &Catalogue::shipped()).unwrap();
        let mut assembly = assemble(&config, open_ports(&config).unwrap(), &AtomicBool::new(false)).unwrap();
        let mut workers = assembly.take_workers();
        let Assembly { mut device, control, .. } = assembly;
        workers.iter_mut().for_each(Worker::start);
        let (stop, shared) = (AtomicBool::new(false), Shared::new(2));
        let written = std::thread::scope(|scope| {
            let mad = scope.spawn(|| scribble(&control, &stop, seed));
            let works = scope.spawn(|| device.run(&shared));
            std::thread::sleep(Duration::from_millis(300));
            stop.store(true, Ordering::Relaxed);
            shared.phase.store(Phase::Ending as u8, Ordering::Release);
            let ended = works.join().unwrap_or_else(|_| panic!("{interface}: the device panicked"));
            ended.unwrap_or_else(|error| panic!("{interface}: {error}"));
            mad.join().unwrap()
        });
        assert!(written > 1_000, "{interface}: {written} words");
        let counts = shared.device.into_inner().unwrap();
        let refused: u64 = counts.nics.iter().map(|nic| nic.nic.bad_register_writes).sum();
        assert!(refused > 0, "{interface}: nonsense in the registers is counted");
    }
}

/// What a newcomer runs first is never a file that is refused.
#[test]
fn every_example_is_read() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut read = 0;
    for entry in std::fs::read_dir(examples).unwrap() {
        let file = entry.unwrap().path();
        // The stage of p4-netns.toml comes with the command, whose own tests run it.
        if file.extension().is_some_and(|kind| kind == "toml") && !file.ends_with("p4-netns.toml") {
            let loaded = load_live(&file, &Catalogue::shipped());
            assert!(loaded.is_ok(), "{}: {:?}", file.display(), loaded.err());
            read += 1;
        }
    }
    assert!(read >= 6, "{read} examples");
}
