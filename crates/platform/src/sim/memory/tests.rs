use super::*;

#[test]
fn zeroed_memory_is_zero_wherever_it_begins_and_ends() {
    let mut space = AddressSpace::default();
    let data = space.data(8192, 4096);
    let places = [(0, 4096), (10, 20), (50, 100), (64, 128), (63, 2), (100, 0), (1, 1500), (4000, 200), (4096, 64)];
    for watched in [0, 8192] {
        let mut memory = SimMemory::new(&space);
        memory.unwritten(data, watched);
        for (round, (at, len)) in (0..2).flat_map(|round| places.map(|place| (round, place))) {
            memory.slice_mut(data, 8192).fill(7);
            memory.write_padded(data, &[0; 8192], 0);
            memory.slice_mut(data + 70, 3).fill(9);
            memory.slice_mut(data + 640, 64 * round).fill(9);
            memory.write_padded(data + at, &[0; 8192][..len], 0);
            let mut expected = [0u8; 8192];
            expected[70..73].fill(9);
            expected[640..640 + 64 * round].fill(9);
            expected[at as usize..at as usize + len].fill(0);
            assert!(memory.slice(data, 8192) == expected, "{len} bytes at {at}");
        }
    }
}

#[test]
fn a_header_and_zeros_are_written_wherever_they_begin_and_end() {
    let mut space = AddressSpace::default();
    let data = space.data(8192, 4096);
    let mut memory = SimMemory::new(&space);
    memory.unwritten(data, 8192);
    for (at, head, len) in [(0, 50, 1500), (10, 54, 1500), (74, 54, 60), (4090, 6, 70)] {
        memory.slice_mut(data, 8192).fill(7);
        let frame = [&[5; 60][..head], &[0; 8192][..len - head]].concat();
        for _ in 0..2 {
            memory.write_padded(data + at, &frame, head);
            assert_eq!(memory.slice(data + at, len), frame, "{len} bytes at {at}");
            let behind = memory.slice(data + at + len as u64, 64);
            assert!(behind.iter().all(|&byte| byte == 7), "behind {len} at {at}");
        }
    }
}

#[test]
fn a_publish_is_invisible_before_its_landing_time() {
    let mut space = AddressSpace::default();
    let ring = space.control(64, Owner(3)).unwrap();
    let mut memory = SimMemory::new(&space);
    let mut entry = [0u8; 64];
    entry[56] = 1;
    let word = ring + 56;
    memory.publish(ring, &entry, Time::from_ns(500));
    for agent_time in [Time::ZERO, Time::from_ps(499_999)] {
        assert_eq!(memory.word_at(word, agent_time), 0);
    }
    assert_eq!(memory.word_at(word, Time::from_ns(500)), 1);
    let wakes: Vec<_> = memory.take_wakes().collect();
    assert_eq!(wakes, [(Owner(3), Time::from_ns(500))]);
    assert_eq!(memory.take_wakes().count(), 0);
}

#[test]
fn words_are_published_as_their_bytes_are() {
    let mut space = AddressSpace::default();
    let at = space.control(256, Owner(3)).unwrap();
    let [mut words, mut bytes] = [0; 2].map(|_| SimMemory::new(&space));
    // An entry twice, of which the first is not visible yet, and a counter.
    for (pass, time) in [(1, 100), (2, 300)] {
        let (entry, counter) = ([pass, 5, 6, 7 + pass], [40 + pass]);
        let time = Time::from_ns(time);
        words.publish_words(at + 64, entry, time);
        words.publish_words(at + 128, counter, time);
        bytes.publish(at + 64, bytemuck::cast_slice(&entry), time);
        bytes.publish(at + 128, bytemuck::cast_slice(&counter), time);
    }
    assert!(words.slice(at, 256) == bytes.slice(at, 256));
    for (place, expected) in [(88, [8, 8, 9]), (128, [0, 41, 42])] {
        for (time, expected) in [50, 200, 300].into_iter().zip(expected) {
            let seen = [&words, &bytes].map(|m| m.word_at(at + place, Time::from_ns(time)));
            assert_eq!(seen, [expected; 2], "at {place}, {time} ns");
        }
    }
    assert_eq!(words.take_wakes().as_slice(), bytes.take_wakes().as_slice());
}

#[test]
fn a_counter_published_twice_shows_each_value_in_its_time() {
    let mut space = AddressSpace::default();
    let word = space.control(8, Owner::NOBODY).unwrap();
    let mut memory = SimMemory::new(&space);
    for (value, at) in [(1u64, 500), (2, 800), (3, 900)] {
        memory.publish(word, &value.to_ne_bytes(), Time::from_ns(at));
    }
    let seen = [400, 500, 799, 800, 899, 900].map(|at| memory.word_at(word, Time::from_ns(at)));
    assert_eq!(seen, [0, 1, 1, 2, 2, 3]);
}
