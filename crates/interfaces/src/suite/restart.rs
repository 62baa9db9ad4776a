//! Software dies at any moment, and its queue restarts: the others go on, the new driver gets a
//! working queue.

use std::collections::BTreeSet;

use nicforge_units::Time;

use super::{Bench, Ground, Setup, for_all};

for_all! {
    a_queue_restarts,
}

/// Queue 0's core dies with packets in its ring and in its hands; all that share a ring with it
/// restart with it. Afterwards every frame for them arrives, around the ring several times.
fn a_queue_restarts<G: Ground>(interface: &'static str) {
    let setup = Setup { queues: 3, rx_entries: 16, cache: 4, ..Setup::default() };
    let mut bench: Bench<G> = Bench::new(interface, &setup);
    if bench.restart(0..0).is_none() {
        return;
    }
    for round in 0..40 {
        bench.switch(round as u16 / 8);
        for flow in 0..3 {
            bench.send_unchecked(flow, 60 + round);
        }
        // Later the others alone, so that what they share with it is in disorder.
        let first = if round < 30 { 0 } else { 1 };
        if round % 3 == 0 {
            (first..3).for_each(|queue| bench.poll_unchecked(queue));
        }
    }
    // A descriptor that has room for more.
    bench.send_unchecked(1, 60);
    bench.pass(Time::from_us(100));
    let cores = 3;
    for set in 0..bench.nic.sets().len() as u16 {
        let group = bench.recovery().together(set * cores);
        assert!(group.contains(&(set * cores)), "{interface}");
    }
    // All of them, which is a whole group whatever the interface. What their drivers rang restarts too.
    let mut registers = BTreeSet::new();
    for set in 0..bench.nic.sets().len() as u16 {
        let queues = set * cores..(set + 1) * cores;
        let of_set = bench.restart(queues);
        registers.extend(of_set.expect("it did before"));
    }
    let rung: BTreeSet<u32> = bench.rung.iter().map(|&(index, _)| index).collect();
    assert!(rung.is_subset(&registers), "{interface}: {registers:?}, {rung:?}");
    // Other software of the same layout, with a full pool.
    let fresh: Bench<G> = Bench::down(interface, &setup);
    for queue in 0..bench.nic.queues() {
        let [anew, new] = [&bench, &fresh].map(|bench| bench.nic.waiting(queue));
        let (anew, new) = ((anew.entries, anew.of), (new.entries, new.of));
        assert_eq!(anew, new, "{interface}: entries in use of queue {queue}");
    }
    (bench.drivers, bench.caches) = (fresh.drivers, fresh.caches);
    let pools = std::iter::once(bench.pool).chain(bench.near);
    pools.for_each(|pool| pool.start(&mut *bench.ground.core(0)));
    bench.hands.clear();
    bench.start();
    for round in 0..60 {
        for flow in 0..3 {
            bench.send(flow, 60 + round).unwrap();
        }
        bench.pass(Time::from_us(10));
        for queue in 0..3 {
            assert_eq!(bench.poll(queue, 8), 1, "{interface}, round {round}");
        }
        bench.release_all();
    }
}
