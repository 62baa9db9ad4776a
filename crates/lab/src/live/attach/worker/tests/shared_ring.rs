//! Workers that share a ring: what others notice when one comes or goes.

use std::time::Duration;

use nicforge_platform::live::ports::Port;
use nicforge_units::Time;

use super::{Cables, HALF_OPEN, PATIENCE, Running, running, running_with};

/// Tables take long to wipe, and nobody waits for that.
#[test]
fn others_lose_nothing_while_a_worker_prepares() {
    let ended = running_with("attach_within_s = 1000\n", "sh_ring", "rx_entries = 64\n", 2, |run| {
        let one = run.start("1");
        run.cables.wait_for(1);
        let caller = run.start(HALF_OPEN);
        run.wait_for_event("worker 0 attaches");
        // More than the ring has room for.
        for _ in 0..200 {
            let number = run.cables.send(1);
            assert!(run.cables.comes(number, PATIENCE), "{number} is lost: {}", run.said());
        }
        (one, caller)
    });
    ended.unwrap();
}

#[test]
fn an_application_counts_once_although_its_ring_begins_anew() {
    const FRAMES: u32 = 3;
    let ended = running("sh_ring", "app = \"counter\"\n", 2, |run| {
        let (zero, one) = (run.start("0"), run.start("1"));
        (0..2).for_each(|worker| run.cables.wait_for(worker));
        for number in 1..=FRAMES {
            // A type for experiments; such frames are worker 0's.
            let mut frame = [2; 64];
            frame[12..14].copy_from_slice(&0x88b5_u16.to_be_bytes());
            frame[42..46].copy_from_slice(&(u32::MAX - number).to_ne_bytes());
            run.cables.to.send(&frame, Time::ZERO).unwrap();
            assert!(run.cables.comes(u32::MAX - number, PATIENCE), "{}", run.said());
        }
        drop(one);
        run.wait_for_event("worker 1 is lost");
        let other = run.start("1");
        (0..2).for_each(|worker| run.cables.wait_for(worker));
        (zero, other)
    });
    let workers = ended.unwrap().snapshot.workers;
    let (name, count) = workers[0].app[0];
    assert_eq!((name, count), ("not_ip", FRAMES.into()));
}

#[test]
fn others_lose_only_what_lay_in_the_ring_that_begins_anew() {
    let mut lost = 0;
    let ended = running("sh_ring", "", 2, |run| {
        let (zero, one) = (run.start("0"), run.start("1"));
        (0..2).for_each(|worker| run.cables.wait_for(worker));
        let first = run.cables.sent.len();
        let beside = |run: &mut Running<'_>, what: &str, count: usize| {
            while run.events(what) < count {
                run.cables.send(1);
                std::thread::sleep(Duration::from_micros(100));
                run.cables.receive();
            }
        };
        drop(zero);
        beside(run, "worker 0 is lost", 1);
        let other = run.start("0");
        beside(run, "worker 0 attaches", 2);
        run.cables.wait_for(0);
        // Whatever was sent before this one has come or is lost.
        run.cables.wait_for(1);
        let Cables { sent, came, .. } = &run.cables;
        let numbers = (0..).zip(sent).skip(first);
        lost = numbers.filter(|(number, worker)| **worker == 1 && !came.contains(number)).count() as u64;
        (one, other)
    });
    let snapshot = ended.unwrap().snapshot;
    let of_one = snapshot.workers[1].drops.causes();
    let in_ring = of_one.iter().find(|(cause, _)| *cause == "worker_lost").map_or(0, |(_, count)| *count);
    assert!(lost <= in_ring, "{lost} lost, {in_ring} of them in the ring: {:?}", snapshot.drops());
}
