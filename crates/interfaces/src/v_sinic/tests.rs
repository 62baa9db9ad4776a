//! The driver against the device; the device's own tests are SINIC's.

use nicforge_platform::AddressSpace;
use nicforge_units::Time;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::whole::build;
use super::{Driver, delayed_copy, zero_copy};
use crate::sinic::tests::system::{System, packet, plan};
use crate::sinic::tests::traffic::{Step, limit_polls, run, starve, step};
use crate::sinic::tests::v_sinic;

#[test]
fn with_zero_copy_payload_stays_in_the_nic_until_it_is_asked_for() {
    let mut system: System<Driver> = System::new(&v_sinic(8), zero_copy::build);
    for number in 0..3 {
        assert!(system.arrive(&packet(number, 1000)));
    }
    system.pass(Time::from_us(100));
    let lengths: Vec<_> =
        system.hands.iter().map(|packet| (packet.head.len, packet.deferred.map(|deferred| deferred.len))).collect();
    assert_eq!(lengths, [(64, Some(936)); 3]);
    // In any order, in several pieces.
    assert_eq!(system.take(1, 3), packet(1, 1000));
    system.drop(0);
    assert_eq!(system.take(0, 1), packet(2, 1000));
    system.check_quiet();
}

#[test]
fn all_headers_come_at_once_and_what_is_no_tcp_or_udp_comes_whole() {
    // A TCP header with 20 bytes of options, beyond the 64 bytes of the first copy.
    let mut tcp = packet(0, 1000);
    tcp[23] = 6;
    tcp[46] = 10 << 4;
    let mut syn = tcp[..74].to_vec();
    syn[16..18].copy_from_slice(&60u16.to_be_bytes());
    let mut other = packet(0, 1000);
    other[12..14].copy_from_slice(&[0x88, 0xb5]);
    for (bytes, head, left) in [(tcp, 74, Some(926)), (syn, 74, None), (other, 1000, None)] {
        let mut system: System<Driver> = System::new(&v_sinic(8), zero_copy::build);
        assert!(system.arrive(&bytes));
        system.pass(Time::from_us(100));
        let came = system.hands[0];
        assert_eq!(came.head.len, head);
        assert_eq!(came.deferred.map(|deferred| deferred.len), left);
        assert_eq!(system.take(0, 2), bytes);
        system.check_quiet();
    }
}

#[test]
fn without_zero_copy_packets_come_whole() {
    let mut system: System<Driver> = System::new(&v_sinic(8), build);
    for number in 0..20 {
        assert!(system.arrive(&packet(number, 1000)));
    }
    system.pass(Time::from_us(200));
    assert_eq!(system.hands.len(), 20);
    for number in 0..20 {
        assert!(system.hands[0].deferred.is_none());
        assert_eq!(system.take(0, 1), packet(number, 1000));
    }
    system.check_quiet();
}

#[test]
fn the_driver_backs_off_while_the_fifo_is_full_and_then_leaves_payload_again() {
    let mut system: System<Driver> = System::new(&v_sinic(64), zero_copy::build);
    let deferred = |system: &System<Driver>, index: usize| system.hands[index].deferred.is_some();
    for number in 0..5 {
        assert!(system.arrive(&packet(number, 1500)));
        system.pass(Time::from_us(30));
        assert!(deferred(&system, number as usize));
    }
    // The watermark is at 8 KiB: the sixth rises above it, and the stack fetches all.
    assert!(system.arrive(&packet(5, 1500)));
    system.pass(Time::from_us(30));
    for number in 0..6 {
        assert!(!deferred(&system, 0), "backed off");
        assert_eq!(system.take(0, 1), packet(number, 1500));
    }
    // What was posted whole meanwhile is used up first.
    for number in 6..140 {
        assert!(system.arrive(&packet(number, 1500)));
        system.pass(Time::from_us(30));
        let again = deferred(&system, 0);
        assert_eq!(system.take(0, 1), packet(number, 1500));
        if again {
            system.check_quiet();
            return;
        }
    }
    panic!("it never leaves payload in the NIC again");
}

#[test]
fn without_buffers_frames_wait_in_the_fifo() {
    for vnics in [1, 2, 16] {
        starve::<Driver, _>(&v_sinic(vnics), build);
        starve::<Driver, _>(&v_sinic(vnics), zero_copy::build);
        starve::<Driver, _>(&v_sinic(vnics), delayed_copy::build);
    }
}

#[test]
fn a_poll_brings_no_more_packets_than_the_device_says() {
    limit_polls::<Driver, _>(&v_sinic(32), build);
    limit_polls::<Driver, _>(&v_sinic(32), zero_copy::build);
}

#[test]
fn a_device_without_virtual_nics_is_refused() {
    for vnics in [0, 257] {
        let mut space = AddressSpace::default();
        let refused = build(&plan(&v_sinic(vnics)), &mut space);
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("1 to 256"), "{error}");
    }
}

#[test]
fn a_stack_slower_than_the_link_gets_all_that_the_fifo_takes() {
    for vnics in [1, 4, 64] {
        let mut system: System<Driver> = System::new(&v_sinic(vnics), zero_copy::build);
        let (mut arrived, mut taken) = (Vec::new(), 0);
        for number in 0..400 {
            let bytes = packet(number, 1500);
            if system.arrive(&bytes) {
                arrived.push(bytes);
            }
            system.pass(Time::from_ns(300));
            if number % 2 == 0 && !system.hands.is_empty() {
                assert_eq!(system.take(0, 1), arrived[taken]);
                taken += 1;
            }
        }
        system.pass(Time::from_ms(1));
        while taken < arrived.len() {
            assert!(!system.hands.is_empty(), "{vnics}: stuck after {taken}");
            assert_eq!(system.take(0, 1), arrived[taken]);
            taken += 1;
            system.pass(Time::from_us(20));
        }
        system.check_quiet();
    }
}

fn vnics() -> impl Strategy<Value = usize> {
    prop_oneof![Just(1usize), Just(2), Just(256), 1usize..20, 1usize..257]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        // A failure is the same on every machine.
        rng_seed: RngSeed::Fixed(71),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_packet_is_lost_between_wire_and_stack(
        vnics in vnics(),
        way in 0usize..3,
        steps in prop::collection::vec(step(), 0..150),
    ) {
        let steps: Vec<Step> = steps;
        let build = [build, zero_copy::build, delayed_copy::build][way];
        run::<Driver, _>(&v_sinic(vnics), build, &steps);
    }
}
