//! Tests of what is special to this interface; the shared suite covers the rest.

use crate::suite::{Bench, Calls, Flat, Setup};

#[test]
fn a_frame_is_two_writes_and_the_sixteenth_part_of_a_read() {
    let setup = Setup { queues: 1, rx_entries: 1024, ..Setup::default() };
    let mut bench: Bench<Flat> = Bench::new("in_place", &setup);
    for _ in 0..512 {
        bench.send(0, 60).unwrap();
    }
    // 16 descriptors of 32 bytes by a read of 512, a batch ahead of need.
    let calls = Calls { reads: 0, reads_ahead: 512 / 16 + 1, writes: 512, publishes: 512 };
    assert_eq!(bench.ground.device.calls, calls);
}
