use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::*;
use crate::{Addr, AddressSpace, Atomic, Cpu, Dma, Hint, Owner, Register, Run, entry, publish_entry, write_entry};

fn shape() -> Shape {
    Shape { devices: 2, workers: 2, banks: vec![(0, 4), (0x8000, 4)] }
}

fn control(space: &AddressSpace) -> Control {
    Control::new(space, &shape()).unwrap()
}

#[test]
fn both_contracts_see_the_same_bytes() {
    let mut space = AddressSpace::default();
    let at = space.data(4096, 64);
    let control = control(&space);
    let mut cpu = LiveCpu::new(control.clone(), Bell::new().unwrap(), 0);
    let mut dma = LiveDma::new(control, &space);
    cpu.store(at + 3, 0x1122_3344_u32);
    let mut read = [0; 4];
    dma.read(at + 3, &mut read);
    assert_eq!(u32::from_le_bytes(read), 0x1122_3344);
    dma.write(at + 70, &[1, 2, 3]);
    assert_eq!(cpu.bytes(at + 70, 3), [1, 2, 3]);
    cpu.bytes_mut(at + 70, 3)[1] = 9;
    assert_eq!(cpu.load::<[u8; 3]>(at + 70), [1, 9, 3]);
    assert_eq!(cpu.atomic(at + 128, Atomic::Or(6)), 0);
    assert_eq!(cpu.atomic(at + 128, Atomic::And(3)), 6);
    assert_eq!(cpu.atomic(at + 128, Atomic::Add(5)), 2);
    assert_eq!(cpu.acquire(at + 128), 7);
}

#[test]
#[cfg_attr(miri, ignore = "Miri knows no file of shared memory")]
fn memory_is_cleared_where_asked_and_nowhere_else() {
    let mut space = AddressSpace::default();
    let at = space.data(1 << 20, 64);
    let control = control(&space);
    let region = control.region();
    region.write(at, &[7; 1 << 20]);
    // In the middle of pages.
    let (begin, end) = (5_001, 1_000_003);
    region.clear(at.0 + begin..at.0 + end).unwrap();
    let mut bytes = vec![0; 1 << 20];
    region.read(at, &mut bytes);
    for (place, byte) in (0..).zip(bytes) {
        assert_eq!(byte, if (begin..end).contains(&place) { 0 } else { 7 }, "at {place}");
    }
}

#[test]
fn a_core_that_the_device_plays_announces_as_the_device_does() {
    let mut space = AddressSpace::default();
    let at = space.control(64, Owner(0)).unwrap();
    let control = control(&space);
    let worker = LiveCpu::new(control.clone(), Bell::new().unwrap(), 0);
    let cpu = LiveCpu::new(control.clone(), Bell::new().unwrap(), 2);
    let dma = LiveDma::new(control.clone(), &space);
    worker.announce_sleep();
    let register = Register { device: 0, index: 1 };
    let mut core = DeviceCpu::new(cpu, dma);
    write_entry(&mut core, at, std::array::from_fn(|word| 10 + word as u64));
    core.mmio_write(register, 7);
    assert_eq!(entry(&mut core, at, 1), Some([10, 11, 12, 13, 14, 15, 16]));
    assert_eq!(core.take_rung(), [(register, 7)]);
    assert_eq!(control.register_value(register), 0, "nobody else's");
    let asleep = control.worker_asleep(0).unwrap();
    assert_eq!(asleep.load(Ordering::Relaxed), 1);
    core.dma.wake();
    assert_eq!(asleep.load(Ordering::Relaxed), 0);
}

#[test]
fn a_contiguous_frame_is_sent_without_a_copy() {
    let mut space = AddressSpace::default();
    let at = space.data(8192, 64);
    let control = control(&space);
    let mut cpu = LiveCpu::new(control.clone(), Bell::new().unwrap(), 0);
    let mut dma = LiveDma::new(control, &space);
    cpu.bytes_mut(at, 8192).fill(7);
    cpu.bytes_mut(at + 5000, 3).copy_from_slice(b"end");
    let run = |at, len| Run { at, len };
    let mut scratch = vec![1];
    let [frame, rest @ ..] = dma.gather(&[], [run(at + 10, 4993), Run::default()], &mut scratch).pieces;
    assert_eq!((frame.len(), &frame[4990..]), (4993, &b"end"[..]));
    assert_eq!(rest.concat(), []);
    // Several pieces come as one copy.
    let runs = [run(at + 5000, 2), run(at + 5002, 1)];
    let pieces = dma.gather(b"the ", runs, &mut scratch).pieces;
    assert_eq!(pieces.concat(), b"the end");
    assert_eq!(scratch, b"the end");
}

#[test]
fn a_burst_is_published_in_order_at_its_end_or_before_control_memory_is_used() {
    // To workers that have to be woken, and to others.
    published_in_order(|dma| dma);
    published_in_order(LiveDma::workers_poll);
}

fn published_in_order(device: impl Fn(LiveDma) -> LiveDma) {
    let mut space = AddressSpace::default();
    let at = space.control(100 * 64, Owner(0)).unwrap();
    let control = control(&space);
    let mut cpu = LiveCpu::new(control.clone(), Bell::new().unwrap(), 0);
    let mut dma = device(LiveDma::new(control, &space));
    let line = |first: u64| -> [u64; 8] { std::array::from_fn(|word| first + word as u64) };
    let publish = |dma: &mut LiveDma, number: u64, words: &[u64]| {
        dma.publish(at + number * 64, bytemuck::cast_slice(words));
    };
    // A whole line, and two by one call.
    publish(&mut dma, 0, &line(10));
    publish(&mut dma, 2, &[line(30), line(40)].concat());
    assert_eq!(cpu.acquire(at + 56), 0, "held back");
    dma.flush();
    assert_eq!(cpu.load::<[u64; 8]>(at), line(10));
    assert_eq!(entry(&mut cpu, at, 1), Some([10, 11, 12, 13, 14, 15, 16]));
    assert_eq!(entry(&mut cpu, at, 0), None);
    assert_eq!(cpu.load::<[u64; 8]>(at + 128), line(30));
    assert_eq!(cpu.load::<[u64; 8]>(at + 192), line(40));
    // Part of a line, which does not overtake whole ones.
    publish(&mut dma, 4, &line(70));
    publish(&mut dma, 1, &[20, 21]);
    assert_eq!(cpu.load::<[u64; 3]>(at + 64), [20, 21, 0]);
    assert_eq!(cpu.acquire(at + 4 * 64 + 56), 77);
    // The device sees its own, and what it writes later stands.
    publish(&mut dma, 0, &line(50));
    let mut own = [0; 8];
    dma.read(at, &mut own);
    assert_eq!(own, 50u64.to_ne_bytes());
    publish(&mut dma, 0, &line(60));
    dma.write(at, &[0; 64]);
    dma.flush();
    assert_eq!(cpu.load::<[u64; 8]>(at), [0; 8]);
    // Entries of other lengths, each after those that were published before, and none longer than it is.
    publish_entry(&mut dma, at, line(80));
    publish_entry(&mut dma, at + 64, [90, 91]);
    assert_eq!(cpu.load::<[u64; 8]>(at), line(80));
    publish_entry(&mut dma, at, [95]);
    assert_eq!(cpu.load::<[u64; 3]>(at + 64), [90, 91, 0]);
    dma.flush();
    assert_eq!(cpu.load::<[u64; 2]>(at), [95, 81]);
    // More than are held back: the first ones come out.
    for number in 0..100 {
        publish(&mut dma, number, &line(100));
    }
    assert_eq!(cpu.acquire(at + 56), 107);
    assert_eq!(cpu.acquire(at + 99 * 64 + 56), 0);
    dma.wake();
    assert_eq!(cpu.acquire(at + 99 * 64 + 56), 107);
}

#[test]
fn hints_change_nothing_whatever_the_address() {
    let mut space = AddressSpace::default();
    let at = space.control(4 * 64, Owner(0)).unwrap();
    let control = control(&space);
    let mut cpu = LiveCpu::new(control.clone(), Bell::new().unwrap(), 0).device_polls();
    let mut dma = LiveDma::new(control, &space).workers_poll();
    cpu.store(at + 56, 1u64);
    let words = |from, until, stride| Hint::Words { from, until, stride, bit: 1 };
    cpu.hint(words(at + 56, at + 256, 64));
    cpu.hint(words(Addr(1 << 63), Addr(u64::MAX), 64));
    cpu.hint(words(at + 56, Addr(u64::MAX), u64::MAX - 7));
    for far in [at + 64, Addr(1 << 63), Addr(u64::MAX)] {
        cpu.hint(Hint::Write(far));
        dma.hint(Hint::Write(far));
        for len in [1, 1500] {
            cpu.hint(Hint::Fetch { at: far, len });
            dma.hint(Hint::Frame { at: far, len });
            dma.hint(Hint::Read { at: far, len });
        }
    }
    assert_eq!(cpu.load::<[u64; 16]>(at).iter().sum::<u64>(), 1);
}

#[test]
fn frames_of_all_short_lengths_are_written_whole_and_no_further() {
    let mut space = AddressSpace::default();
    let at = space.data(256, 64);
    let control = control(&space);
    let mut cpu = LiveCpu::new(control.clone(), Bell::new().unwrap(), 0);
    let mut dma = LiveDma::new(control, &space);
    let frame: [u8; 200] = std::array::from_fn(|byte| byte as u8 + 1);
    for len in 0..=frame.len() {
        dma.write(at, &[0; 256]);
        dma.write(at + 1, &frame[..len]);
        let mut expected = [0; 256];
        expected[1..=len].copy_from_slice(&frame[..len]);
        assert_eq!(cpu.bytes(at, 256), expected, "{len} bytes");
    }
}

#[test]
fn nothing_beyond_the_end_is_touched() {
    let region = Region::new(1 << 20).unwrap();
    let last = region.len() - 8;
    region.store(Addr(last), 1u64);
    // The longest short access that begins inside reaches the end of the mapping, no farther.
    region.write(Addr(region.len() - 1), &[1; 128 << 10]);
    for at in [last + 8, u64::MAX - 3, 1 << 63] {
        let outside = catch_unwind(AssertUnwindSafe(|| region.store(Addr(at), [0u8; 8])));
        assert!(outside.is_err(), "{at:#x}");
    }
    let mut bytes = vec![0; region.len() as usize + 1];
    region.read(Addr(0), &mut bytes[1..]);
    for (from, len) in [(0, bytes.len()), (last, (128 << 10) + 1)] {
        let outside = || region.read(Addr(from), &mut bytes[..len]);
        assert!(catch_unwind(AssertUnwindSafe(outside)).is_err(), "{len}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri knows no shared memory")]
fn another_process_gets_the_same_memory_and_cannot_cut_it_off() {
    let mut space = AddressSpace::default();
    let at = space.data(64, 64);
    let first = control(&space);
    let file = first.region().file().try_clone_to_owned().unwrap();
    assert!(rustix::fs::ftruncate(&file, 0).is_err(), "sealed");
    let second = Control::attach(file, &space, &shape()).unwrap();
    first.region().store(at, 77u64);
    assert_eq!(second.region().load::<u64>(at), 77);
    assert_eq!(first.clock(), second.clock());
    let mut other = AddressSpace::default();
    other.data(128, 64);
    let file = first.region().file().try_clone_to_owned().unwrap();
    let refused = Control::attach(file, &other, &shape());
    assert!(matches!(refused, Err(LiveError::Region(_))));
}

#[test]
fn registers_are_apart_and_unknown_ones_go_nowhere() {
    let space = AddressSpace::default();
    let control = control(&space);
    let mut cpu = LiveCpu::new(control.clone(), Bell::new().unwrap(), 0);
    let all = || (0..2).flat_map(|device| control.registers(device));
    assert_eq!(all().count(), 16);
    for (number, register) in all().enumerate() {
        cpu.mmio_write(register, number as u64 + 1);
    }
    for index in [4, 0x7fff, 0x8004, u32::MAX] {
        cpu.mmio_write(Register { device: 0, index }, 99);
    }
    let values: Vec<u64> = all().map(|register| cpu.mmio_read(register)).collect();
    assert_eq!(values, (1..=16).collect::<Vec<u64>>());
}

/// A device and a worker on threads of their own pass a count to and fro; each sleeps until the
/// other has answered. A wake-up that is lost costs the time-out, of which there are none.
#[test]
#[cfg_attr(miri, ignore = "Miri knows no poll")]
fn a_sleeping_thread_is_woken() {
    const TURNS: u64 = 2_000;
    let mut space = AddressSpace::default();
    let entry = space.control(64, Owner(1)).unwrap();
    let control = control(&space);
    let bell = Bell::new().unwrap();
    let late = AtomicBool::new(false);
    let patience = Duration::from_secs(5);
    let register = Register { device: 1, index: 0x8000 };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut cpu = LiveCpu::new(control.clone(), bell.clone(), 1);
            for turn in 1..=TURNS {
                while cpu.acquire(entry + 56) != turn {
                    let began = cpu.tick();
                    cpu.announce_sleep();
                    if cpu.acquire(entry + 56) == turn {
                        cpu.stay_awake()
                    } else {
                        cpu.sleep(patience)
                    }
                    let slept = cpu.tick() - began;
                    late.fetch_or(slept.as_seconds() >= 5.0, Ordering::Relaxed);
                }
                let words = cpu.load::<[u64; 7]>(entry);
                assert_eq!(words, [turn; 7], "all that a publish announces is there");
                cpu.mmio_write(register, turn);
            }
        });
        let mut dma = LiveDma::new(control.clone(), &space);
        for turn in 1..=TURNS {
            dma.publish(entry, bytemuck::bytes_of(&[turn; 8]));
            dma.wake();
            while control.register_value(register) != turn {
                let began = dma.tick();
                let idle = || control.register_value(register) != turn;
                bell.sleep(&control, &[], patience, idle).unwrap();
                let slept = dma.tick() - began;
                late.fetch_or(slept.as_seconds() >= 5.0, Ordering::Relaxed);
            }
        }
    });
    assert!(!late.into_inner(), "somebody was not woken");
}

#[test]
fn a_lock_lets_one_in_at_a_time() {
    const TURNS: u64 = if cfg!(miri) { 100 } else { 20_000 };
    let mut space = AddressSpace::default();
    let (lock, count) = (space.data(64, 64), space.data(64, 64));
    let control = control(&space);
    let bell = Bell::new().unwrap();
    std::thread::scope(|scope| {
        for number in 0..2 {
            let (control, bell) = (control.clone(), bell.clone());
            scope.spawn(move || {
                let mut cpu = LiveCpu::new(control, bell, number);
                for _ in 0..TURNS {
                    cpu.lock(lock);
                    let before: u64 = cpu.load(count);
                    cpu.store(count, before + 1);
                    cpu.unlock(lock);
                }
            });
        }
    });
    assert_eq!(control.region().load::<u64>(count), 2 * TURNS);
}
