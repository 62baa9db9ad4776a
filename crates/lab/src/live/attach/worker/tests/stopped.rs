//! A worker that is stopped for a while, as by a debugger or a busy machine.

use nicforge_units::Time;

use super::{Cables, PATIENCE, Process, Running, running};
use crate::live::locked;

/// Frames for `workers` go to and fro, and none is lost.
fn exchange(run: &mut Running<'_>, workers: &[u16]) {
    let numbers = workers.repeat(8).into_iter();
    let numbers: Vec<u32> = numbers.map(|worker| run.cables.send(worker)).collect();
    for number in numbers {
        let came = run.cables.comes(number, PATIENCE);
        assert!(came, "{number} is lost: {}", run.said());
    }
}

/// There is traffic until `what` is the last that was said of steering.
fn until(run: &mut Running<'_>, what: &str) {
    let last = |run: &Running<'_>| {
        let events = locked(run.events);
        let mut switches = events.iter().rev();
        switches.find(|event| event.starts_with("steering")).map(str::to_owned)
    };
    let until = run.cables.clock.now() + PATIENCE;
    while last(run).as_deref() != Some(what) {
        let now = run.cables.clock.now();
        assert!(now < until, "nobody says `{what}`: {}", run.said());
        exchange(run, &[1, 2]);
    }
}

/// Any traffic is enough to share; a core that calls seldom is one too many, and sharing ends.
#[test]
fn the_heuristic_shares_rings_until_a_worker_stops() {
    shares_until_a_worker_stops("sh_ring_dynamic", "");
    shares_until_a_worker_stops("emulated", "emulates = \"sh_ring_dynamic\"\n");
}

fn shares_until_a_worker_stops(interface: &str, emulates: &str) {
    const SETTINGS: &str = "rx_entries = 64\ndynamic_gbps = 0.0\ndynamic_memory_gib_per_s = 0.0\n\
                            dynamic_window = 4\n";
    const SHARED: &str = "steering uses the shared queues now";
    const PRIVATE: &str = "steering uses the private queues now";
    let settings = format!("{emulates}{SETTINGS}");
    let ended = running(interface, &settings, 3, |run| {
        let workers: Vec<Process> = ["0", "1", "2"].iter().map(|place| run.start(place)).collect();
        for worker in 0..3 {
            run.cables.wait_for(worker);
        }
        until(run, SHARED);
        workers[0].stop();
        until(run, PRIVATE);
        workers[0].signal("-CONT");
        until(run, SHARED);
        let number = run.cables.send(0);
        assert!(run.cables.comes(number, PATIENCE), "{}", run.said());
        let Cables { sent, came, .. } = &run.cables;
        for worker in 0..3 {
            let of_worker = |number: &&u32| sent[**number as usize] == worker;
            let in_order = came.iter().filter(of_worker).is_sorted();
            assert!(in_order, "frames for worker {worker} out of order");
        }
        workers
    });
    let ended = ended.unwrap();
    let drops = ended.snapshot.drops();
    // Before all workers were there: nobody had the queue, or rings that somebody already polled began anew
    // because another came. Whatever was sent later came back.
    let early = ["queue_closed", "worker_lost"];
    let early = drops.causes().iter().all(|(cause, _)| early.contains(cause));
    assert!(early, "{drops:?}");
    // Nobody asked for a time line.
    let found = &ended.switches;
    let sets: Vec<&str> = found.iter().map(|switch| &*switch.set).collect();
    assert!(sets.starts_with(&["shared", "private", "shared"]), "{found:?}");
    assert!(found.is_sorted_by_key(|switch| switch.ms), "{found:?}");
}

/// How often eight frames for worker 1 go to and fro, one after the other, in half a second.
fn exchanges(run: &mut Running<'_>) -> u32 {
    let until = run.cables.clock.now() + Time::from_ms(500);
    let mut count = 0;
    while run.cables.clock.now() < until {
        exchange(run, &[1]);
        count += 1;
    }
    count
}

/// Its ring is full, and frames for it are dropped as they come; those of others do not wait for it.
#[test]
fn a_stopped_worker_does_not_slow_down_another() {
    for (interface, sizes) in [
        ("priv_ring", "rx_entries = 64\n"),
        ("split", "rx_entries = 64\n"),
        ("rx_bisect", "ax_entries = 64\nbx_entries = 64\n"),
        ("emulated", "ax_entries = 64\nbx_entries = 64\n"),
        ("emulated", "emulates = \"priv_ring\"\nrx_entries = 64\n"),
    ] {
        let ended = running(interface, sizes, 2, |run| {
            let workers = ["0", "1"].map(|place| run.start(place));
            (0..2).for_each(|worker| run.cables.wait_for(worker));
            let before = exchanges(run);
            workers[0].stop();
            for _ in 0..200 {
                run.cables.send(0);
            }
            // Until it is known to have stopped.
            exchanges(run);
            let beside = exchanges(run);
            assert!(beside > before / 4, "{interface}: {beside} exchanges, {before} before");
            workers[0].signal("-CONT");
            run.cables.wait_for(0);
            workers
        });
        ended.unwrap_or_else(|error| panic!("{interface}: {error}"));
    }
}
