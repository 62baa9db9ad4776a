//! Config bit by bit, and each interrupt condition: when it comes up, and when it interrupts
//! (appendix A.3.1 and A.3.3).

use super::*;
use crate::register_map::Field;
use crate::sinic::registers::command;

/// Bits of Config: whether the simulator sets it up for the driver to read, software sets it, or
/// nobody does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Setter {
    Simulator,
    /// As `Simulator`, on a device with virtual NICs only.
    SimulatorOfVnics,
    /// It follows from there being virtual NICs.
    Vnics,
    Software,
    Nobody,
}
use Setter::{Nobody, Simulator, SimulatorOfVnics, Software, Vnics};

const CONFIG: [(u32, Setter); 15] = [
    (14, Nobody),
    (13, SimulatorOfVnics),
    (12, SimulatorOfVnics),
    (11, Simulator),
    (10, Vnics),
    (9, Simulator),
    (8, Simulator),
    (7, Nobody),
    (6, Nobody),
    (5, Simulator),
    (4, Nobody),
    (3, Simulator),
    (2, Software),
    (1, Software),
    (0, Software),
];

#[test]
fn each_bit_of_config_is_set_by_whom_the_sheet_says() {
    for (bit, setter) in CONFIG {
        for vnics in [None, Some(4)] {
            let options = Options { vnics, advice: 1 << bit, ..sinic() };
            let allowed = match setter {
                Simulator => true,
                SimulatorOfVnics => vnics.is_some(),
                Vnics | Software | Nobody => false,
            };
            assert_eq!(options.check(RX_FIFO, TX_FIFO).is_ok(), allowed, "{bit}");
            let plain = Options { vnics, ..sinic() };
            let mut bench = Bench::off(if allowed { &options } else { &plain });
            let vnic = u64::from(vnics.is_some()) << 10;
            let before = vnic | u64::from(allowed) << bit;
            assert_eq!(bench.read(Tag::Config, 0), before, "{bit}");
            // Software cannot take back what the simulator set, nor set what it did not.
            bench.write(Tag::Config, 0, before ^ 1 << bit);
            let after = match setter {
                Software => before ^ 1 << bit,
                _ => before,
            };
            assert_eq!(bench.read(Tag::Config, 0), after, "{bit}");
            let refused = bench.nic.misuses(Misuse::ReadOnlyBits);
            assert_eq!(refused, u64::from(setter != Software), "{bit}");
        }
    }
}

const TO: u64 = 0x1000;
/// How finely the status is looked at.
const STEP: Time = Time::from_ns(50);

fn receive(bench: &mut Bench) {
    bench.write(Tag::RxData, 0, post_receive(TO, 1514));
    bench.arrive(&frame(1, 1000)).unwrap();
}

fn transmit(bench: &mut Bench) {
    bench.write(Tag::TxData, 0, post_transmit(TO, 1000, false));
}

/// More than fits.
fn fill(bench: &mut Bench) {
    for _ in 0..4 {
        bench.write(Tag::TxData, 0, post_transmit(TO, 4096, false));
        bench.read(Tag::TxWait, 0);
    }
    bench.write(Tag::TxData, 0, post_transmit(TO, 4096, false));
}

/// Condition, what brings it up, and whether it "may be coalesced".
type Condition = (Field, fn(&mut Bench), bool);

const CONDITIONS: [Condition; 9] = [
    (interrupt::SOFT, |bench| bench.write(Tag::Command, 0, command::INTR.mask()), false),
    (interrupt::TX_LOW, fill, false),
    (interrupt::TX_FULL, fill, false),
    (interrupt::TX_DMA, transmit, true),
    (interrupt::TX_PACKET, transmit, true),
    (
        interrupt::RX_HIGH,
        |bench| {
            for number in 0..6 {
                bench.arrive(&frame(number, 1500)).unwrap();
            }
        },
        false,
    ),
    (interrupt::RX_EMPTY, receive, false),
    (interrupt::RX_DMA, receive, true),
    (interrupt::RX_PACKET, |bench| bench.arrive(&frame(1, 60)).unwrap(), true),
];

/// A device on which `bring_up` has been done, with this IntrMask, from 1 us on.
fn provoked(mask: u64, bring_up: fn(&mut Bench)) -> Bench {
    let mut bench = Bench::on(&sinic());
    bench.write(Tag::IntrMask, 0, mask);
    bench.pass(Time::from_us(1));
    bench_is_quiet(&mut bench);
    bring_up(&mut bench);
    bench
}

fn bench_is_quiet(bench: &mut Bench) {
    assert_eq!(bench.read(Tag::IntrStatus, 0), 0);
    assert!(bench.memory.interrupts.is_empty());
}

#[test]
fn each_condition_comes_up_and_interrupts_at_once_or_after_the_delay() {
    for (condition, bring_up, coalesced) in CONDITIONS {
        let (tag, bit) = (condition.tag, condition.mask());
        // Masked: it is in the status, and nothing interrupts.
        let mut looked_at = provoked(0, bring_up);
        while looked_at.read(Tag::IntrStatus, 0) & bit == 0 {
            looked_at.pass(STEP);
            assert!(looked_at.now < Time::from_us(30), "{tag} does not come up");
        }
        let up = looked_at.now;
        assert!(looked_at.memory.interrupts.is_empty(), "{tag}");
        let mut heard = provoked(bit, bring_up);
        heard.pass(Time::from_us(50));
        let [at] = heard.memory.interrupts[..] else {
            panic!("{tag}: {:?}", heard.memory.interrupts);
        };
        let due = if coalesced { up + DELAY } else { up };
        assert!(at <= due && due - at < STEP, "{tag}: {at}, up by {up}");
        // A write takes back what it has as 1, and nothing else.
        heard.write(Tag::IntrStatus, 0, !bit & 0x1ff);
        assert_eq!(heard.read(Tag::IntrStatus, 0), bit, "{tag}");
        assert_eq!(heard.read(Tag::IntrStatus, 0), 0, "{tag}: reading clears");
    }
}
