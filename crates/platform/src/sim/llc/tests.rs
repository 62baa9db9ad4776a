use super::write::WriteRun;
use super::*;
use nicforge_units::{Bytes, Time};

fn llc(sets: u64, ways: usize, io_ways: usize) -> Llc {
    with_ages(sets, ways, io_ways, 0)
}

fn with_ages(sets: u64, ways: usize, io_ways: usize, one_young_in: u32) -> Llc {
    let config = CacheConfig { size: Bytes(sets * ways as u64 * CACHE_LINE_BYTES), ways, hit: Time::ZERO };
    Llc::new(&config, io_ways, one_young_in, 1 << 16)
}

/// A device writes lines of which anything may be here.
fn write(llc: &mut Llc, first: u64, count: u64) -> WriteRun {
    let any = lines::any(&llc.lines[first as usize..][..count as usize]);
    llc.write_run(first, count, any)
}

fn holds(llc: &Llc, line: u64) -> bool {
    llc.lines[line as usize].way().is_some()
}

#[test]
fn the_least_recently_used_line_makes_room() {
    let mut llc = llc(1, 4, 1);
    for line in 0..4 {
        assert!(!llc.fill(line, false, 0));
    }
    llc.update(0);
    llc.fill(4, false, 0);
    assert!(holds(&llc, 0) && !holds(&llc, 1));
}

#[test]
fn device_writes_stay_within_the_io_ways() {
    let mut llc = llc(1, 11, 2);
    for line in 0..11 {
        llc.fill(line, false, 0);
    }
    for line in 100..110 {
        write(&mut llc, line, 1);
    }
    assert_eq!((0..11).filter(|&line| holds(&llc, line)).count(), 9);
    assert_eq!((100..110).filter(|&line| holds(&llc, line)).count(), 2);
}

#[test]
fn a_cyclic_walk_over_capacity_never_hits_and_within_always_does() {
    for (lines, expected) in [(64u64, 64), (80, 0)] {
        let mut llc = llc(16, 4, 4);
        let mut walk = || -> u64 {
            let runs = (0..lines).step_by(16);
            runs.map(|first| 16 - write(&mut llc, first, 16).allocated).sum()
        };
        walk();
        assert_eq!(walk(), expected, "{lines} lines over 64");
    }
}

#[test]
fn an_eviction_says_whether_the_line_that_left_was_dirty() {
    let mut llc = llc(64, 2, 1);
    let is_dirty = |line: u64| line.is_multiple_of(2);
    let mut inside = std::collections::BTreeSet::new();
    for line in (0..4096).step_by(3) {
        let dirty_left = llc.fill(line, is_dirty(line), 0);
        inside.insert(line);
        let left: Vec<u64> = inside.iter().copied().filter(|&line| !holds(&llc, line)).collect();
        assert!(left.len() <= 1);
        assert_eq!(left.iter().any(|&line| is_dirty(line)), dirty_left);
        left.iter().for_each(|line| {
            inside.remove(line);
        });
    }
    assert_eq!(inside.len(), 128);
}

#[test]
fn a_run_says_what_it_met() {
    let mut llc = llc(8, 4, 1);
    let run = write(&mut llc, 4, 8);
    assert_eq!((run.allocated, run.written_back), (8, 0));
    assert_eq!(write(&mut llc, 4, 8).allocated, 0);
    let run = write(&mut llc, 12, 4);
    assert_eq!((run.written_back, llc.fresh_lost()), (4, 4));
    // What is read before it makes room is not lost, nor is what is written once more.
    assert_eq!(llc.read_run(4, 4).fresh, 0);
    assert_eq!(llc.read_run(8, 4).fresh, 4);
    write(&mut llc, 16, 8);
    assert_eq!(llc.fresh_lost(), 8);
}

#[test]
fn removal_frees_the_way_first() {
    let mut llc = llc(1, 2, 0);
    llc.fill(1, false, 0);
    llc.fill(2, true, 0);
    let state = llc.remove(2).unwrap();
    assert!(state.dirty && !state.fresh);
    assert!(!llc.fill(3, false, 0));
    assert!(holds(&llc, 1) && holds(&llc, 3));
}

/// The LLC keeps a line that one of several L2s writes, and may get it once more from there.
#[test]
fn a_line_that_has_two_ways_is_written_back_once() {
    for comes_back in [false, true] {
        let mut llc = llc(1, 4, 1);
        assert!(!llc.fill(1, false, 5));
        llc.make_stale(1);
        assert!(!llc.fill(1, true, 0));
        assert!(!llc.fill(2, false, 0) && !llc.fill(3, false, 0));
        // The way that it had first makes room, and what it had is dirty.
        assert!(llc.fill(4, false, 0) && !holds(&llc, 1));
        // The way that it had second makes room, if it comes back for itself, and nothing is dirty.
        let next = if comes_back { 1 } else { 5 };
        assert!(!llc.fill(next, false, 0));
        assert!([next, 2, 3, 4].iter().all(|&line| holds(&llc, line)));
    }
}

#[test]
fn no_two_lines_have_the_same_way_of_a_set() {
    for io_ways in [1, 2, 4] {
        for sets in [4, 32, 64] {
            let mut llc = llc(sets, 4, io_ways);
            // Many of these runs lie in two blocks.
            for step in 0..500 {
                write(&mut llc, step * 37 % 900, 1 + step % 40);
            }
            let mut taken = std::collections::BTreeSet::new();
            for (line, word) in llc.lines.iter().enumerate() {
                let set = llc.ways.set(line as u64);
                let is_first = word.way().is_none_or(|way| taken.insert((set, way)));
                assert!(is_first, "line {line}, {sets} sets, {io_ways} ways");
            }
            assert!(taken.len() as u64 >= sets, "{}", taken.len());
        }
    }
}

#[test]
fn a_run_that_is_written_is_what_its_lines_are_one_by_one() {
    for (io_ways, one_young_in) in (0..10).map(|case| (case / 2, case % 2 * 3)) {
        let [mut runs, mut lines] = [0; 2].map(|_| with_ages(64, 4, io_ways, one_young_in as u32));
        let mut state = 7u32;
        let mut draw = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            u64::from((state >> 16) % below)
        };
        for step in 0..3000 {
            // In between a core takes a line out, brings one in, or writes one that is here.
            let line = draw(600);
            match draw(3) {
                0 => assert_eq!(runs.remove(line), lines.remove(line)),
                1 if !holds(&runs, line) => {
                    let dirty = draw(2) == 0;
                    assert_eq!(runs.fill(line, dirty, 0), lines.fill(line, dirty, 0));
                }
                _ => [&mut runs, &mut lines].into_iter().for_each(|llc| llc.update(line)),
            }
            // Within a block no two lines meet in a set; those that do count as used at the same time.
            let (first, most) = (draw(600), 1 + draw(40));
            let count = most.min(64 - first % 64);
            let together = write(&mut runs, first, count);
            let mut each = WriteRun::default();
            for line in first..first + count {
                lines.ways.order.tick();
                let one = lines.update_or_allocate(line..line + 1);
                each.allocated += one.allocated;
                each.written_back += one.written_back;
            }
            assert_eq!(together, each, "{io_ways} I/O ways, step {step}");
            assert!(runs.lines == lines.lines, "{io_ways} I/O ways, step {step}");
            assert_eq!(runs.fresh_lost(), lines.fresh_lost());
        }
    }
}

#[test]
fn a_device_write_to_a_resident_line_marks_it_as_recently_used() {
    for io_ways in [0, 1, 2, 4] {
        let mut llc = llc(1, 4, io_ways);
        (0..4).for_each(|line| assert!(!llc.fill(line, false, 0)));
        assert_eq!(write(&mut llc, 2, 1).allocated, 0);
        // These make the other three leave.
        (4..7).for_each(|line| assert!(!llc.fill(line, false, 0)));
        let inside = [2, 4, 5, 6].map(|line| holds(&llc, line));
        assert_eq!(inside, [true; 4], "{io_ways} I/O ways");
    }
}

/// The share of lines that a device finds, which walks over `lines` of them again and again.
fn found_by_a_walk(llc: &mut Llc, lines: u64) -> f64 {
    let mut found = 0;
    for round in 0..200 {
        for first in (0..lines).step_by(16) {
            let allocated = write(llc, first, 16).allocated;
            found += if round < 100 { 0 } else { 16 - allocated };
        }
    }
    found as f64 / (100 * lines) as f64
}

#[test]
fn with_ages_a_walk_over_more_than_fits_finds_part_of_it() {
    // 128 sets of two I/O ways: 256 lines fit.
    let found = |lines| found_by_a_walk(&mut with_ages(128, 8, 2, 16), lines);
    assert_eq!(found(256), 1.0);
    for lines in [512, 1024, 1792] {
        let (found, most) = (found(lines), 256.0 / lines as f64);
        assert!(found > 0.25 * most && found <= most, "{found} of {lines} lines, at most {most}");
    }
    assert_eq!(found_by_a_walk(&mut llc(128, 8, 2), 512), 0.0);
}

#[test]
fn with_ages_sets_do_what_loses_less() {
    let mut llc = with_ages(256, 4, 4, 16);
    let kept = |llc: &mut Llc, set: usize| (0..64).filter(|_| llc.ways.order.new_line(set) != 1).count();
    // A walk over more than fits: those that insert all lines young find nothing.
    found_by_a_walk(&mut llc, 2048);
    assert!(kept(&mut llc, 5) > 48);
    assert_eq!(kept(&mut llc, 64), 0);
    assert!(kept(&mut llc, 33) > 48);
}
