use super::*;
use crate::{AddressSpace, Owner, sim::Devices, sim::test_hardware};

fn bench() -> (Lent<Host>, Vec<Lent<SimCore>>, Addr, Addr) {
    let mut space = AddressSpace::default();
    let data = space.data(1 << 20, 4096);
    let ring = space.control(64, Owner(0)).unwrap();
    let hardware = test_hardware();
    let cores =
        (0..2).map(|n| Lent::new(SimCore::new(n, &hardware.core, Time::from_ns(300), Time::from_ns(900)))).collect();
    (Lent::new(Host::new(&hardware, &space)), cores, data, ring)
}

#[test]
fn work_and_stalls_add_up() {
    let (mut host, mut cores, data, _) = bench();
    let mut cpu = SimCpu::on(&mut host, &mut cores[0]);
    cpu.work(Cycles(200));
    cpu.load::<u64>(data);
    cpu.load::<u64>(data + 8);
    // 200 cycles at 2 GHz; LLC 20 ns + DRAM 80 ns; the second load is in the same line.
    assert_eq!(cpu.now(), Time::from_ns(100 + 100));
    drop(cpu);
    assert_eq!(cores[0].spent().stall_ps.iter().sum::<u64>(), 100_000);
}

#[test]
fn stores_do_not_wait_and_streams_overlap() {
    let (mut host, mut cores, data, _) = bench();
    let mut cpu = SimCpu::on(&mut host, &mut cores[0]);
    cpu.store(data, 7u64);
    assert_eq!(cpu.now(), Time::from_ns(25));
    cpu.bytes(data + 4096, 64 * 9);
    // One dependent miss and eight that overlap eightfold, and the first queueing in DRAM.
    let queued = cpu.now() - Time::from_ns(25 + 100 + 100);
    assert!(queued < Time::from_ps(100), "{queued}");
}

/// Stores past the caches read nothing and wait for nothing while memory keeps up, and no cache has the line then.
#[test]
fn a_copy_past_the_caches_writes_to_memory_alone() {
    let (mut host, mut cores, data, _) = bench();
    let mut cpu = SimCpu::on(&mut host, &mut cores[0]);
    let (from, to, len) = (data, data + 8192, 64 * 4);
    cpu.bytes(to, len);
    cpu.bytes_mut(from, len).fill(7);
    cpu.core.begin_burst();
    let (before, read) = (cpu.now(), cpu.host.hierarchy.dram_lines());
    cpu.copy_loop(from, to, len, CopyLoop { line: Cycles(2), past_caches: true });
    // Four lines that the L2 has, of which three stream, and 8 cycles at 2 GHz.
    assert_eq!(cpu.now() - before, Time::from_ps(7_000 + 3 * 7_000 / 8 + 4_000));
    assert_eq!(cpu.host.hierarchy.dram_lines(), read + 4);
    cpu.core.begin_burst();
    let before = cpu.now();
    assert_eq!(cpu.load::<u64>(to), u64::from_ne_bytes([7; 8]));
    assert!(cpu.now() - before >= Time::from_ns(100), "the L2 had it, and lost it");
}

/// A locked instruction goes on when earlier stores are done, and so does a store fence.
#[test]
fn atomics_and_fences_wait_for_the_stores_before_them() {
    for fenced in [false, true] {
        let (mut host, mut cores, data, _) = bench();
        let mut cpu = SimCpu::on(&mut host, &mut cores[0]);
        cpu.load::<u64>(data);
        cpu.store(data + 4096, 7u64);
        // A load of 100 ns, and a quarter of a store's.
        assert_eq!(cpu.now(), Time::from_ns(125));
        if fenced {
            cpu.hint(Hint::StoreFence);
            assert_eq!(cpu.now(), Time::from_ns(200));
        }
        // The L2 has the line; 20 cycles at 2 GHz.
        cpu.atomic(data, Atomic::Or(1));
        assert_eq!(cpu.now(), Time::from_ns(200 + 7 + 10));
        cpu.hint(Hint::StoreFence);
        assert_eq!(cpu.now(), Time::from_ns(217), "nothing is on its way");
    }
}

/// Others see that a lock is free when they see what was stored under it; who held it does not wait for that.
#[test]
fn a_lock_is_free_when_the_stores_under_it_are_done() {
    let (mut host, mut cores, data, _) = bench();
    let (first, second) = cores.split_at_mut(1);
    let mut cpu = SimCpu::on(&mut host, &mut first[0]);
    cpu.lock(data);
    let held = cpu.now();
    cpu.store(data + 4096, 7u64);
    cpu.unlock(data);
    assert_eq!(cpu.now(), held + Time::from_ns(25));
    drop(cpu);
    second[0].idle_until(held);
    let mut cpu = SimCpu::on(&mut host, &mut second[0]);
    cpu.lock(data);
    assert_eq!(cpu.now(), held + Time::from_ns(100));
}

#[test]
fn a_poll_sees_a_publish_exactly_from_its_time() {
    let (mut host, mut cores, _, ring) = bench();
    let mut entry = [0u8; 64];
    entry[56] = 1;
    host.memory.publish(ring, &entry, Time::from_ns(250));
    let mut cpu = SimCpu::on(&mut host, &mut cores[0]);
    assert_eq!(cpu.acquire(ring + 56), 0);
    cpu.work(Cycles(300));
    assert_eq!(cpu.now(), Time::from_ns(250));
    assert_eq!(cpu.acquire(ring + 56), 1);
}

#[test]
fn idle_time_is_whole_polls() {
    let (_, mut cores, _, _) = bench();
    cores[0].idle_until(Time::from_ns(110));
    // An empty poll takes 50 cycles, 25 ns: five of them.
    assert_eq!(cores[0].now(), Time::from_ns(125));
    assert_eq!(cores[0].spent().idle_ps, 125_000);
}

#[test]
fn a_held_lock_makes_the_other_core_wait() {
    let (mut host, mut cores, data, _) = bench();
    let (first, second) = cores.split_at_mut(1);
    let mut cpu = SimCpu::on(&mut host, &mut first[0]);
    cpu.lock(data);
    cpu.work(Cycles(2_000));
    cpu.unlock(data);
    let released = cpu.now();
    second[0].idle_until(Time::from_ns(500));
    drop(cpu);
    let mut cpu = SimCpu::on(&mut host, &mut second[0]);
    cpu.lock(data);
    assert_eq!(cpu.now(), released);
    drop(cpu);
    assert!(cores[1].spent().work_ps[Part::Sync as usize] > 0);
}

#[test]
fn register_writes_arrive_later() {
    let (mut host, mut cores, _, _) = bench();
    let register = Register { device: 0, index: 3 };
    SimCpu::on(&mut host, &mut cores[0]).mmio_write(register, 9);
    let writes: Vec<_> = cores[0].take_mmio().collect();
    assert_eq!(writes[0].arrives, Time::from_ns(300));
}

/// One register, which gives what was written to it last, and no sooner than at `busy_until`.
struct OneRegister {
    writes: Vec<MmioWrite>,
    busy_until: Time,
}

impl Devices for OneRegister {
    fn write(&mut self, _host: &mut Lent<Host>, write: &MmioWrite) {
        self.writes.push(*write);
    }

    fn read(&mut self, _host: &mut Lent<Host>, _register: Register, at: Time) -> (u64, Time) {
        let last = self.writes.iter().rfind(|write| write.arrives <= at);
        (last.map_or(0, |write| write.value), at.max(self.busy_until))
    }
}

#[test]
fn a_register_read_is_a_round_trip_behind_the_writes_before_it() {
    let (mut host, mut cores, _, _) = bench();
    let register = Register { device: 0, index: 3 };
    let mut device = OneRegister { writes: Vec::new(), busy_until: Time::ZERO };
    let mut cpu = DeviceReader::on(&mut host, &mut cores[0], &mut device);
    cpu.mmio_write(register, 9);
    assert_eq!(cpu.mmio_read(register), 9);
    assert_eq!(cpu.now(), Time::from_ns(900));
    drop(cpu);
    assert_eq!(cores[0].take_mmio().count(), 0);

    device.busy_until = Time::from_us(5);
    let mut cpu = DeviceReader::on(&mut host, &mut cores[0], &mut device);
    cpu.mmio_read(register);
    assert_eq!(cpu.now(), Time::from_ns(5_450));
    drop(cpu);
    assert_eq!(cores[0].spent().stall_ps.iter().sum::<u64>(), 5_450_000);
}

/// A core, and memory of its NIC.
fn with_nicmem() -> (Lent<Host>, Lent<SimCore>, Addr) {
    let mut space = AddressSpace::default();
    let nicmem = space.nicmem(0, 1 << 20);
    let hardware = test_hardware();
    let core = SimCore::new(0, &hardware.core, Time::from_ns(300), Time::from_ns(900));
    (Lent::new(Host::new(&hardware, &space)), Lent::new(core), nicmem)
}

#[test]
fn reads_of_a_nics_memory_are_round_trips_one_after_the_other() {
    let (mut host, mut core, nicmem) = with_nicmem();
    let mut cpu = SimCpu::on(&mut host, &mut core);
    // A header there; 900 ns; a header and 64 bytes back; 64 ps a byte.
    let one = Time::from_ps(24 * 64) + Time::from_ns(900) + Time::from_ps(88 * 64);
    cpu.load::<u64>(nicmem);
    assert_eq!(cpu.now(), one);
    // The same line again: nothing keeps it.
    cpu.load::<u64>(nicmem);
    cpu.hint(Hint::Fetch { at: nicmem + 64, len: 64 });
    cpu.bytes(nicmem + 64, 128);
    assert_eq!(cpu.now(), Time::from_ps(4 * one.as_ps()));
    drop(cpu);
    assert_eq!(host.hierarchy.dram_lines(), 0);
}

#[test]
fn writes_to_a_nics_memory_gather_into_lines() {
    let (mut host, mut core, nicmem) = with_nicmem();
    let mut cpu = SimCpu::on(&mut host, &mut core);
    for word in 0..8 {
        cpu.store(nicmem + word * 8, word);
    }
    assert_eq!(cpu.now(), Time::ZERO, "nobody waits");
    assert_eq!(cpu.bytes_mut(nicmem, 64)[8], 1);
    // Two lines, each with one header.
    drop(cpu);
    assert_eq!(host.links[0].inward.bytes(), 2 * (24 + 64));
}

#[test]
fn a_partly_written_line_leaves_before_a_doorbell() {
    let (mut host, mut core, nicmem) = with_nicmem();
    let mut cpu = SimCpu::on(&mut host, &mut core);
    cpu.store(nicmem, 1u64);
    cpu.store(nicmem + 32, 1u64);
    assert_eq!(cpu.host.links[0].inward.bytes(), 0);
    let register = Register { device: 0, index: 0 };
    cpu.mmio_write(register, 1);
    // Two runs of 8 bytes, each with a header; then the doorbell.
    let sent = Time::from_ps(2 * (24 + 8) * 64);
    drop(cpu);
    assert_eq!(host.links[0].inward.bytes(), 2 * (24 + 8));
    let arrives: Vec<_> = core.take_mmio().map(|write| write.arrives).collect();
    assert_eq!(arrives, [sent + Time::from_ns(300)]);
}

#[test]
fn long_writes_go_at_the_pace_of_the_link() {
    let (mut host, mut core, nicmem) = with_nicmem();
    let mut cpu = SimCpu::on(&mut host, &mut core);
    cpu.bytes_mut(nicmem, 64 << 10);
    // All but what the four buffers hold has left.
    let lines = 1024 - 4;
    assert_eq!(cpu.now(), Time::from_ps(lines * 88 * 64));
}

/// Loads and stores of a copy alternate, so lines of the next part are loaded while the link carries those before.
#[test]
fn a_copy_to_the_nic_loads_while_the_link_is_busy() {
    let copied = |alternates: bool| {
        let mut space = AddressSpace::default();
        let (nicmem, data) = (space.nicmem(0, 1 << 20), space.data(1 << 20, 4096));
        let hardware = test_hardware();
        let core = SimCore::new(0, &hardware.core, Time::from_ns(300), Time::from_ns(900));
        let (mut host, mut core) = (Lent::new(Host::new(&hardware, &space)), Lent::new(core));
        let mut cpu = SimCpu::on(&mut host, &mut core);
        let len = 64 * 64;
        if alternates {
            cpu.copy_loop(data, nicmem, len, CopyLoop { line: Cycles(0), past_caches: false });
        } else {
            cpu.bytes(data, len);
            cpu.bytes_mut(nicmem, len).fill(0);
        }
        cpu.now()
    };
    // The link takes the same for 64 lines less those that wait in buffers; what is loaded meanwhile costs nothing more.
    let on_the_link = Time::from_ps((64 - 4) * 88 * 64);
    let half = Time::from_ps(on_the_link.as_ps() / 2);
    let [alternating, one_by_one] = [true, false].map(copied);
    assert!(one_by_one > on_the_link + Time::from_ns(500), "{one_by_one}");
    assert!(alternating < one_by_one - half, "{alternating} instead of {one_by_one}");
}

/// A core of its own over 1 MiB of small pages and as much of large ones.
fn with_core(change: impl FnOnce(&mut crate::sim::CoreConfig)) -> (Lent<Host>, Lent<SimCore>, Addr, Addr) {
    let mut space = AddressSpace::default();
    let (small, large) = (space.paged(1 << 20), space.data(1 << 20, 4096));
    let mut hardware = test_hardware();
    change(&mut hardware.core);
    let core = SimCore::new(0, &hardware.core, Time::from_ns(300), Time::from_ns(900));
    (Lent::new(Host::new(&hardware, &space)), Lent::new(core), small, large)
}

/// How long a burst of its own takes to load the word at `at`.
fn load_ns(host: &mut Lent<Host>, core: &mut Lent<SimCore>, at: Addr) -> f64 {
    core.begin_burst();
    let began = core.now();
    SimCpu::on(host, core).load::<u64>(at);
    (core.now() - began).as_ns()
}

#[test]
fn what_the_first_level_has_costs_nothing_from_burst_to_burst() {
    let (mut host, mut core, _, data) = with_core(|core| core.l1 = nicforge_units::Bytes(32 << 10));
    let lines = |lines: std::ops::Range<u64>| lines.map(|line| data + line * 64);
    lines(0..512).for_each(|at| assert!(load_ns(&mut host, &mut core, at) >= 100.0));
    assert!(lines(0..512).all(|at| load_ns(&mut host, &mut core, at) == 0.0));
    // Sixteen KiB more push some of them out, to where the L2 has them.
    lines(512..768).for_each(|at| assert!(load_ns(&mut host, &mut core, at) >= 100.0));
    assert_eq!(load_ns(&mut host, &mut core, data), 7.0);
}

#[test]
fn a_miss_brings_the_pair_line_along() {
    let (mut host, mut core, _, data) = with_core(|core| core.l2_pair_line = true);
    assert_eq!(load_ns(&mut host, &mut core, data + 64), 100.0);
    assert_eq!(load_ns(&mut host, &mut core, data), 7.0, "the line before it, of the same 128 bytes");
    assert!(load_ns(&mut host, &mut core, data + 128) >= 100.0);
    assert_eq!(host.hierarchy.dram_lines(), 4);
}

#[test]
fn a_page_that_the_tlb_does_not_know_costs_a_look_at_its_entry() {
    let (mut host, mut core, small, large) = with_core(|core| core.tlb_pages = 12);
    let page = |at: Addr, number: u64| at + number * 4096;
    // The entry of the page and the word, both from memory; then entries of seven more pages are in the L2.
    assert!(load_ns(&mut host, &mut core, small) >= 200.0);
    assert!((107.0..108.0).contains(&load_ns(&mut host, &mut core, page(small, 1))));
    assert_eq!(load_ns(&mut host, &mut core, page(small, 1) + 8), 7.0);
    assert!((100.0..101.0).contains(&load_ns(&mut host, &mut core, large)), "large pages need no walk");
    (2..14).for_each(|number| assert!(load_ns(&mut host, &mut core, page(small, number)) >= 107.0));
    assert_eq!(load_ns(&mut host, &mut core, page(small, 1)), 14.0, "no longer known");
}

#[test]
fn the_system_takes_a_core_away_now_and_then() {
    let (mut host, mut core, ..) = with_core(|core| {
        core.pause = Time::from_ns(1400);
        core.pause_every = Time::from_ps(16_000_000);
    });
    let work = |host: &mut Lent<Host>, core: &mut Lent<SimCore>| {
        core.begin_burst();
        SimCpu::on(host, core).work(Cycles(1000));
    };
    for _ in 0..100 {
        work(&mut host, &mut core);
    }
    // 50 us of work, away from 1 us on and every 16 us.
    assert_eq!(core.spent().idle_ps, 4 * 1_400_000);
    assert_eq!(core.now(), Time::from_ns(50_000 + 4 * 1400));
    // It sleeps through many pauses, and is woken within one.
    core.idle_until(Time::from_ns(1_000 + 16_000 * 20 + 400));
    core.begin_burst();
    assert_eq!(core.now(), Time::from_ns(1_000 + 16_000 * 20 + 1400));
}
