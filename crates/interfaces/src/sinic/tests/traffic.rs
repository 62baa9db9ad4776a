//! Traffic in any order through a whole [`System`].

use std::collections::VecDeque;
use std::fmt::Debug;

use nicforge_platform::sim::{DeviceReader, SimDma};
use nicforge_units::Time;

use super::system::{Build, System, packet};
use crate::kernel::{KernelDriver, KernelNic};
use crate::sinic::Options;

/// Frames that come while the stack holds all buffers wait in the FIFO until it gives some back.
pub fn starve<D: for<'a> KernelDriver<DeviceReader<'a>>, N: KernelNic<SimDma> + Debug>(
    options: &Options,
    build: Build<D, N>,
) {
    let mut system = System::with_buffers(options, build, 8);
    for number in 0..20 {
        assert!(system.arrive(&packet(number, 1000)));
        system.pass(Time::from_us(20));
    }
    let mut next = 0;
    while next < 20 {
        assert!(!system.hands.is_empty(), "{next}: stuck without buffers");
        assert_eq!(system.take(0, 1), packet(next, 1000));
        next += 1;
        system.pass(Time::from_us(50));
    }
    system.check_quiet();
}

/// However many packets the stack would take, a poll brings RxMaxIntr of them, and the next one the
/// rest.
pub fn limit_polls<D: for<'a> KernelDriver<DeviceReader<'a>>, N: KernelNic<SimDma> + Debug>(
    options: &Options,
    build: Build<D, N>,
) {
    let mut system = System::new(options, build);
    for number in 0..16 {
        assert!(system.arrive(&packet(number, 100)));
    }
    // All are here before the NIC may interrupt.
    system.pass(Time::from_us(5));
    for hands in [10, 16] {
        assert_eq!(options.rx_max_intr, 10);
        system.poll(64);
        assert_eq!(system.hands.len(), hands);
    }
    for number in 0..16 {
        assert_eq!(system.take(0, 1), packet(number, 100));
    }
    system.check_quiet();
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum Step {
    Arrive(usize),
    /// The stack takes its oldest packet, or some other; payload in so many pieces.
    Take(usize, u32),
    Drop(usize),
    Send([u32; 3]),
    Pass(u64),
}

/// Steps of all kinds.
pub fn step() -> impl proptest::strategy::Strategy<Value = Step> {
    use proptest::prelude::*;
    let len = prop_oneof![4usize..200, 1400usize..1515];
    prop_oneof![
        5 => len.prop_map(Step::Arrive),
        4 => (any::<usize>(), 1u32..4).prop_map(|(index, pieces)| Step::Take(index, pieces)),
        1 => any::<usize>().prop_map(Step::Drop),
        3 => [4u32..100, 0u32..700, 0u32..700].prop_map(Step::Send),
        3 => (0u64..20_000).prop_map(Step::Pass),
    ]
}

/// Runs `steps`: every frame that the FIFO took comes to the stack once, whole and in order, and
/// every frame that was sent leaves once, whole and in order.
pub fn run<D: for<'a> KernelDriver<DeviceReader<'a>>, N: KernelNic<SimDma> + Debug>(
    options: &Options,
    build: Build<D, N>,
    steps: &[Step],
) {
    let mut system = System::new(options, build);
    let (mut arrived, mut sent) = (0, 0);
    let mut inside: VecDeque<Vec<u8>> = VecDeque::new();
    // What each packet in the stack's hands must be.
    let mut expected: Vec<Vec<u8>> = Vec::new();
    let mut sending: VecDeque<Vec<u8>> = VecDeque::new();
    for number in 0..steps.len() + 1_000 {
        match steps.get(number) {
            Some(&Step::Arrive(len)) => {
                let frame = packet(arrived, len);
                arrived += 1;
                if system.arrive(&frame) {
                    inside.push_back(frame);
                }
            }
            Some(&Step::Take(index, pieces)) if !system.hands.is_empty() => {
                let index = index % system.hands.len();
                assert_eq!(system.take(index, pieces), expected.remove(index));
            }
            Some(&Step::Drop(index)) if !system.hands.is_empty() => {
                let index = index % system.hands.len();
                system.drop(index);
                expected.remove(index);
            }
            Some(&Step::Send(lens)) => {
                if system.send(sent, lens) {
                    sending.push_back(packet(sent, lens.iter().sum::<u32>() as usize));
                }
                sent += 1;
            }
            Some(&Step::Pass(ns)) => system.pass(Time::from_ns(ns)),
            Some(_) => {}
            None if system.hands.is_empty() => system.pass(Time::from_us(20)),
            None => assert_eq!(system.take(0, 1), expected.remove(0)),
        }
        while expected.len() < system.hands.len() {
            let next = inside.pop_front().expect("no more came out than went in");
            let head = system.head(expected.len());
            assert_eq!(head, next[..head.len()], "in the order of arrival");
            expected.push(next);
        }
        if number > steps.len() && inside.is_empty() && system.hands.is_empty() {
            break;
        }
    }
    assert!(inside.is_empty(), "{} never came out", inside.len());
    system.check_quiet();
    let left: VecDeque<Vec<u8>> = system.sent().into();
    assert_eq!(left, sending);
}
