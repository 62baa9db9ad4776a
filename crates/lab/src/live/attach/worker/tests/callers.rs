//! Who calls and says nothing, who stops, and who never comes: the others work on.

use std::os::unix::net::UnixStream;

use super::{HALF_OPEN, OTHER_BUILD, running_with};
use crate::live::{LiveRun, locked};

#[test]
fn idle_callers_keep_no_worker_out() {
    let ended = running_with("", "priv_ring", "", 1, |run| {
        let idle: Vec<UnixStream> = (0..40).map(|_| UnixStream::connect(run.socket).unwrap()).collect();
        let worker = run.start("0");
        run.cables.wait_for(0);
        (idle, worker)
    });
    ended.unwrap();
}

#[test]
fn a_caller_that_never_brings_its_queues_up_loses_its_place() {
    for interface in ["priv_ring", "sh_ring"] {
        let ended = running_with("attach_within_s = 0.2\n", interface, "", 1, |run| {
            let caller = run.start(HALF_OPEN);
            run.wait_for_event("worker 0 attaches");
            run.wait_for_event("its queues were not up within 0.2 s");
            (caller, ())
        });
        ended.unwrap();
    }
}

/// Where workers share a ring, one that is stopped holds up all; it has to go.
#[test]
fn others_go_on_when_a_worker_of_their_ring_is_stopped() {
    for (interface, settings) in
        [("sh_ring", "rx_entries = 64\n"), ("emulated", "emulates = \"sh_ring\"\nrx_entries = 64\n")]
    {
        let ended = running_with("worker_silence_s = 0.5\n", interface, settings, 2, |run| {
            let workers = ["0", "1"].map(|place| run.start(place));
            (0..2).for_each(|worker| run.cables.wait_for(worker));
            workers[0].stop();
            for _ in 0..200 {
                run.cables.send(0);
            }
            run.wait_for_event("worker 0 is lost: it has said nothing");
            run.cables.wait_for(1);
            workers
        });
        ended.unwrap_or_else(|error| panic!("{interface}: {error}"));
    }
}

/// What was counted adds up, and is reported, although one worker cannot say how it ended.
#[test]
fn a_run_ends_well_while_a_worker_is_stopped() {
    let ended = running_with("", "priv_ring", "rx_entries = 64\n", 2, |run| {
        let workers = ["0", "1"].map(|place| run.start(place));
        (0..2).for_each(|worker| run.cables.wait_for(worker));
        workers[0].stop();
        for _ in 0..32 {
            run.cables.send(0);
        }
        run.cables.wait_for(1);
        workers
    });
    let run = ended.unwrap();
    let drops = run.snapshot.drops();
    assert!(drops.causes().iter().any(|(cause, count)| *cause == "worker_lost" && *count > 0), "{drops:?}");
}

/// How much of the run a worker was idle. What follows until all have stopped comes on top.
fn share_idle(run: &LiveRun, worker: usize) -> f64 {
    run.snapshot.workers[worker].idle.as_seconds() / run.snapshot.seconds
}

#[test]
fn flows_of_an_absent_worker_go_to_others_where_asked() {
    let ended = running_with("absent_flows = \"others\"\n", "priv_ring", "", 2, |run| {
        let one = run.start("1");
        // Frames that RSS gives to worker 0.
        (0..2).for_each(|worker| run.cables.wait_for(worker));
        let other = run.start("0");
        // Until then the other one takes them.
        while locked(run.taken).first().is_none_or(|taken| *taken == 0) {
            run.cables.wait_for(0);
        }
        run.cables.wait_for(1);
        (one, other)
    });
    let run = ended.unwrap();
    let idle = share_idle(&run, 0);
    assert!(idle >= 0.5, "{idle}: it was away, and then had a frame now and then");
    assert!(run.snapshot.workers.iter().all(|worker| worker.taken > 0), "both worked in the end");
}

/// The report and the counts that pages show take an absent worker as idle.
#[test]
fn a_worker_that_never_comes_is_idle_all_the_time() {
    let ended = running_with("", "priv_ring", "", 2, |run| {
        let worker = run.start("1");
        run.cables.wait_for(1);
        (worker, ())
    });
    let run = ended.unwrap();
    let idle = share_idle(&run, 0);
    assert!(idle >= 0.9, "{idle}");
    let of_both = run.metrics.idle_fraction.unwrap();
    assert!(of_both >= 0.45, "{of_both}");
}

/// Whoever is of another build would find other words than the run means.
#[test]
fn a_program_that_lays_memory_out_otherwise_does_not_attach() {
    let ended = running_with("", "priv_ring", "", 1, |run| {
        let mut other = run.start(OTHER_BUILD);
        assert!(other.0.wait().unwrap().success());
        let worker = run.start("0");
        run.cables.wait_for(0);
        (other, worker)
    });
    ended.unwrap();
}
