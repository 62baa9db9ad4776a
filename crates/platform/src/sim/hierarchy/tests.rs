use super::*;
use crate::sim::test_hardware;

/// A machine with a 64-line, 4-way LLC with 1 I/O way, and 8-line L2s.
fn small() -> Hierarchy {
    let mut hardware = test_hardware();
    hardware.llc.size = nicforge_units::Lines(64).bytes();
    hardware.llc.ways = 4;
    hardware.io_ways = 1;
    hardware.l2.size = nicforge_units::Lines(8).bytes();
    hardware.l2.ways = 2;
    hardware.cores = 2;
    Hierarchy::new(&hardware, 1 << 20)
}

fn ns(hierarchy: &mut Hierarchy, core: usize, line: u64) -> f64 {
    hierarchy.core_access(core, line, false, true, Time::ZERO).latency.as_ns()
}

#[test]
fn latencies_add_up_level_by_level() {
    let hardware = test_hardware();
    let (l2, llc) = (hardware.l2.hit.as_ns(), hardware.llc.hit.as_ns());
    let dram = hardware.dram.idle_latency.as_ns();
    let mut h = small();
    assert_eq!(ns(&mut h, 0, 5), llc + dram);
    assert_eq!(ns(&mut h, 0, 5), l2);
    assert_eq!(ns(&mut h, 1, 5), hardware.other_l2.as_ns(), "from the other L2");
    h.device_write(9, 1, Time::ZERO);
    assert_eq!(ns(&mut h, 0, 9), llc, "where DDIO put it");
}

/// However many L2s have a line and the LLC has not, nobody reads it from memory.
#[test]
fn a_line_that_several_l2s_have_comes_from_one_of_them() {
    let mut hardware = test_hardware();
    hardware.cores = 4;
    let mut h = Hierarchy::new(&hardware, 1 << 20);
    let (llc, dram) = (hardware.llc.hit.as_ns(), hardware.dram.idle_latency.as_ns());
    let other = hardware.other_l2.as_ns();
    assert_eq!(ns(&mut h, 0, 5), llc + dram);
    for core in 1..4 {
        assert_eq!(ns(&mut h, core, 5), other, "core {core}");
    }
    assert_eq!(h.dram_lines(), 1);
    let written = h.core_access(3, 5, true, true, Time::ZERO);
    assert_eq!(written, Served { latency: hardware.other_l2, l2_miss: false }, "the others' copies go first");
    let again = h.core_access(3, 5, true, true, Time::ZERO);
    assert_eq!(again.latency, hardware.l2.hit);
    assert_eq!(ns(&mut h, 0, 5), other, "the writer has it alone");
    assert_eq!(h.dram_lines(), 1);
}

/// With more L2s than there are bits for sharers: no copy outlives a write, by a core or a device.
#[test]
fn a_write_takes_a_line_from_all_of_many_l2s() {
    let mut hardware = test_hardware();
    hardware.cores = 40;
    let mut h = Hierarchy::new(&hardware, 1 << 20);
    let holders = |h: &Hierarchy| (0..h.l2.count()).filter(|&core| h.l2.holds(core, 5)).count();
    for round in 0..2 {
        for core in 0..40 {
            ns(&mut h, core, 5);
        }
        assert_eq!(holders(&h), 40);
        match round {
            0 => h.core_access(17, 5, true, true, Time::ZERO).latency,
            _ => h.device_write(5, 1, Time::ZERO),
        };
        assert_eq!(holders(&h), 1 - round);
    }
}

#[test]
fn a_line_moves_from_llc_to_l2_and_back() {
    let mut h = small();
    h.device_write(0, 1, Time::ZERO);
    ns(&mut h, 0, 0);
    assert!(h.shared.llc.lines[0].way().is_none() && h.l2.holds(0, 0));
    // Two more lines of the same L2 set (4 sets) push it out.
    ns(&mut h, 0, 4);
    ns(&mut h, 0, 8);
    let before = h.dram_lines();
    assert!(h.shared.llc.lines[0].way().is_some() && !h.l2.holds(0, 0));
    assert_eq!(h.device_read(0, 1, Time::ZERO), h.shared.llc_hit);
    assert_eq!(h.dram_lines(), before);
}

#[test]
fn it_shows_nowhere_that_what_leaves_an_l2_is_on_its_way_for_a_while() {
    let [mut late, mut at_once] = [0; 2].map(|_| small());
    let mut state = 7u32;
    let mut draw = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        u64::from((state >> 16) % below)
    };
    for step in 0..5000 {
        let (line, count, kind) = (draw(200), 1 + draw(8), draw(5));
        let (core, write, now) = (draw(2) as usize, draw(2) == 0, Time::from_ns(30 * step));
        let times = [&mut late, &mut at_once].map(|h| match kind {
            0 => h.device_write(line, count, now),
            1 => h.device_read(line, count, now),
            2 => h.remote_access(line, write, now),
            _ => h.core_access(core, line, write, true, now).latency,
        });
        assert_eq!(times[0], times[1], "step {step}");
        at_once.shared.arrive();
    }
    assert_eq!(late.counters(), at_once.counters());
    assert_eq!(late.dram_lines(), at_once.dram_lines());
    assert!(late.counters().llc_write_backs > 100);
}

#[test]
fn device_writes_leak_once_they_exceed_the_io_ways() {
    let mut h = small();
    // 16 sets x 1 I/O way: 16 consecutive lines fit, whatever the hash.
    h.device_write(0, 16, Time::ZERO);
    h.device_read(0, 16, Time::ZERO);
    assert_eq!((h.counters().fresh_read, h.counters().fresh_lost), (16, 0));
    h.device_write(0, 16, Time::ZERO);
    assert_eq!(h.counters().device_write_hits, 16);
    h.device_write(1024, 16, Time::ZERO);
    assert_eq!(h.counters().fresh_lost, 16);
    assert_eq!(h.counters().llc_write_backs, 16);
    assert_eq!(h.dram_lines(), 16);
    h.device_read(0, 16, Time::ZERO);
    assert_eq!(h.counters().device_read_hits, 16, "only the first reading hit");
}

#[test]
fn without_io_ways_device_writes_go_to_memory() {
    let mut hardware = test_hardware();
    hardware.io_ways = 0;
    let mut h = Hierarchy::new(&hardware, 1 << 20);
    h.device_write(0, 24, Time::ZERO);
    assert_eq!(h.dram_lines(), 24);
    assert!(h.device_read(0, 1, Time::ZERO) > h.shared.llc_hit);
}

#[test]
fn a_device_write_past_the_caches_goes_to_memory_whatever_ddio_does() {
    let mut h = small();
    h.device_write(3, 1, Time::ZERO);
    ns(&mut h, 0, 3);
    let before = h.dram_lines();
    h.device_write_past(3, 1, Time::ZERO);
    assert_eq!(h.dram_lines(), before + 1);
    assert!(!h.l2.holds(0, 3));
    assert!(ns(&mut h, 0, 3) > h.shared.llc_hit.as_ns());
}

#[test]
fn a_device_write_invalidates_every_copy() {
    let mut h = small();
    ns(&mut h, 0, 3);
    ns(&mut h, 1, 3);
    h.device_write(3, 1, Time::ZERO);
    assert!(!h.l2.holds(0, 3) && !h.l2.holds(1, 3));
    assert_eq!(ns(&mut h, 0, 3), h.shared.llc_hit.as_ns());
}

#[test]
fn a_core_write_takes_the_line_from_other_cores() {
    let mut h = small();
    ns(&mut h, 0, 3);
    ns(&mut h, 1, 3);
    h.core_access(1, 3, true, true, Time::ZERO);
    assert!(!h.l2.holds(0, 3) && h.l2.holds(1, 3));
    let dirty = h.take_from_other_l2s(0, 3);
    assert_eq!(dirty, Some(true));
}

#[test]
fn counts_of_a_known_pattern() {
    let mut h = small();
    for round in 0..2 {
        for line in 0..8 {
            h.core_access(0, line, false, true, Time::ZERO);
        }
        let _ = round;
    }
    assert_eq!(h.counters().app_look_ups, 8, "the second round hits the L2");
    assert_eq!(h.counters().app_hits, 0);
    assert_eq!(h.counters().llc_misses(), 8);
}

#[test]
fn another_sockets_core_allocates_in_no_cache_here() {
    let mut h = small();
    let idle = test_hardware().dram.idle_latency;
    for write in [false, true, false] {
        assert_eq!(h.remote_access(7, write, Time::ZERO), idle);
    }
    assert_eq!(h.dram_lines(), 4, "each read, one written back");
    assert_eq!(h.counters(), MemoryCounters::default());
}

#[test]
fn another_sockets_core_reads_what_caches_here_have_and_its_writes_take_it_out() {
    let mut h = small();
    let (llc_hit, idle) = (test_hardware().llc.hit, test_hardware().dram.idle_latency);
    h.device_write(7, 1, Time::ZERO);
    h.core_access(1, 8, true, false, Time::ZERO);
    let before = h.dram_lines();
    for line in [7, 8] {
        assert_eq!(h.remote_access(line, false, Time::ZERO), llc_hit);
    }
    assert_eq!(h.counters().fresh_read, 1, "what the device wrote");
    assert_eq!(h.dram_lines(), before);
    for line in [7, 8] {
        assert_eq!(h.remote_access(line, true, Time::ZERO), llc_hit);
        assert_eq!(h.remote_access(line, false, Time::ZERO), idle, "gone");
        assert!(h.core_access(1, line, false, false, Time::ZERO).l2_miss);
    }
}
