use super::*;
use crate::sim::{MemoryCounters, test_hardware};
use crate::{AddressSpace, Owner};

struct Bench {
    host: Lent<Host>,
    port: Lent<DmaPort>,
    nicmem: Addr,
    data: Addr,
    ring: Addr,
}

fn bench() -> Bench {
    let mut space = AddressSpace::default();
    let nicmem = space.nicmem(0, 1 << 20);
    let data = space.data(1 << 20, 64);
    let ring = space.control(4096, Owner(0)).unwrap();
    let hardware = test_hardware();
    Bench {
        host: Lent::new(Host::new(&hardware, &space)),
        port: Lent::new(DmaPort::new(&hardware.pcie, 0)),
        nicmem,
        data,
        ring,
    }
}

#[test]
fn the_devices_own_memory_needs_no_bus_and_no_memory_of_the_host() {
    let mut b = bench();
    let mut dma = SimDma::on(&mut b.host, &mut b.port, Time::ZERO);
    dma.write(b.nicmem, &[7; 1500]);
    let mut back = [0u8; 1500];
    let here = dma.read_ahead(b.nicmem, &mut back);
    assert_eq!(dma.now(), Time::ZERO);
    assert_eq!(here, test_hardware().nic.nicmem_access);
    assert_eq!(back, [7; 1500]);
    drop(dma);
    let counters = b.port.counters(&b.host);
    assert_eq!((counters.out_bytes, counters.in_bytes), (0, 0));
    assert_eq!((counters.reads, counters.nicmem_bytes), (0, 3000));
    assert_eq!(b.host.hierarchy.counters(), MemoryCounters::default());
    assert_eq!(b.host.hierarchy.dram_lines(), 0);
}

#[test]
fn a_read_costs_request_round_trip_memory_and_data() {
    let mut b = bench();
    let mut dma = SimDma::on(&mut b.host, &mut b.port, Time::ZERO);
    let mut word = [0u8; 64];
    dma.read(b.data, &mut word);
    // Header 24 B and data 88 B at 64 ps each, 900 ns there and back, LLC 20 + DRAM 80 ns.
    let expected = Time::from_ps((24 + 88) * 64) + Time::from_ns(900 + 20 + 80);
    assert_eq!(dma.now(), expected);
}

#[test]
fn reads_ahead_overlap_and_dependent_reads_do_not() {
    let mut b = bench();
    let mut word = [0u8; 64];
    let mut dma = SimDma::on(&mut b.host, &mut b.port, Time::ZERO);
    let ahead: Vec<Time> = (0..4).map(|i| dma.read_ahead(b.data + i * 64, &mut word)).collect();
    assert_eq!(dma.now(), Time::ZERO);
    assert!(*ahead.last().unwrap() < Time::from_ns(1_100));
    for i in 4..8 {
        dma.read(b.data + i * 64, &mut word);
    }
    assert!(dma.now() > Time::from_ns(4_000));
}

#[test]
fn tags_limit_what_is_in_flight() {
    for (tags, waits) in [(1, [0, 1, 2]), (2, [0, 0, 1]), (3, [0, 0, 0])] {
        let mut b = bench();
        let mut link = test_hardware().pcie;
        link.tags = tags;
        b.port = Lent::new(DmaPort::new(&link, 0));
        let mut word = [0u8; 64];
        let mut dma = SimDma::on(&mut b.host, &mut b.port, Time::ZERO);
        for (line, waits) in (0..).zip(waits) {
            // A read takes 1007 ns and a bit for each that goes at the same time.
            let here = dma.read_ahead(b.data + line * 64, &mut word);
            assert_eq!(here.as_ps() / 1_000_000, 1 + waits, "{tags} tags, read {line}");
        }
    }
}

#[test]
fn a_publish_follows_the_data_it_announces() {
    let mut b = bench();
    let mut dma = SimDma::on(&mut b.host, &mut b.port, Time::ZERO);
    dma.write(b.data, &[7; 1500]);
    let mut entry = [0u8; 64];
    entry[56] = 1;
    dma.publish(b.ring, &entry);
    // 1500 B in six packets, then 64 B: (1644 + 88) x 64 ps, and the way to memory.
    let visible = Time::from_ps((1644 + 88) * 64) + Time::from_ns(300);
    let word = b.ring + 56;
    drop(dma);
    assert_eq!(b.host.memory.word_at(word, visible - Time::from_ps(1)), 0);
    assert_eq!(b.host.memory.word_at(word, visible), 1);
    assert_eq!(b.host.memory.slice(b.data, 1500), [7; 1500]);
}

#[test]
fn settling_waits_for_the_answer_to_the_last_write() {
    let mut b = bench();
    let mut dma = SimDma::on(&mut b.host, &mut b.port, Time::ZERO);
    dma.write(b.data, &[7; 1500]);
    // The link has taken it; memory has not.
    assert_eq!(dma.now(), Time::from_ps(1644 * 64));
    dma.settle();
    assert_eq!(dma.now(), Time::from_ps(1644 * 64) + Time::from_ns(600));
    dma.settle();
    assert_eq!(dma.now(), Time::from_ps(1644 * 64) + Time::from_ns(600));
}

#[test]
fn adjacent_entries_go_by_one_write_and_are_announced_each() {
    let mut b = bench();
    let mut dma = SimDma::on(&mut b.host, &mut b.port, Time::ZERO);
    let mut entries = [0u8; 192];
    for entry in entries.chunks_mut(64) {
        entry[56] = 1;
    }
    dma.publish(b.ring, &entries);
    // One header for 192 bytes.
    let visible = Time::from_ps((24 + 192) * 64) + Time::from_ns(300);
    drop(dma);
    for word in (0..3).map(|entry| b.ring + entry * 64 + 56) {
        assert_eq!(b.host.memory.word_at(word, visible - Time::from_ps(1)), 0);
        assert_eq!(b.host.memory.word_at(word, visible), 1);
    }
}

#[test]
fn any_address_may_be_expected_and_nothing_changes() {
    let mut b = bench();
    let end = b.host.hierarchy.lines() * CACHE_LINE_BYTES;
    let mut dma = SimDma::on(&mut b.host, &mut b.port, Time::ZERO);
    dma.write(b.data, &[7; 1500]);
    let now = dma.now();
    drop(dma);
    let before = b.host.hierarchy.counters();
    let mut dma = SimDma::on(&mut b.host, &mut b.port, now);
    for at in [0, b.data.0, end - 1, end, end + 4096, u64::MAX - 1499, u64::MAX] {
        for len in [0, 1, 64, 1500, 65_535] {
            dma.hint(Hint::Frame { at: Addr(at), len });
            dma.hint(Hint::NextFrame { at: Addr(at), len });
            dma.hint(Hint::Read { at: Addr(at), len });
        }
    }
    assert_eq!(dma.now(), now);
    drop(dma);
    assert_eq!(b.host.hierarchy.counters(), before);
}

/// The end of a frame of 1500 bytes fills a part of its line, and the rest of that comes from memory first.
#[test]
fn a_partly_written_line_that_no_cache_has_is_read_first() {
    let written = |at: u64, len: usize, twice: bool| {
        let mut b = bench();
        let mut dma = SimDma::on(&mut b.host, &mut b.port, Time::ZERO);
        if twice {
            dma.write(b.data + at, &vec![1; len]);
        }
        let before = dma.host.hierarchy.dram_lines();
        dma.write(b.data + at, &vec![1; len]);
        dma.host.hierarchy.dram_lines() - before
    };
    assert_eq!(written(0, 1536, false), 0, "whole lines");
    assert_eq!(written(0, 1500, false), 1, "the last one");
    assert_eq!(written(4, 1500, false), 2, "the first one, too");
    assert_eq!(written(4, 16, false), 1, "both ends lie in one line");
    assert_eq!(written(4, 1500, true), 0, "the LLC has them");
}
