//! V-SINIC: what several register sets are for.

use super::*;
use crate::sinic::registers::tx_done;

/// Each virtual NIC's own place in memory.
fn place(vnic: u16) -> u64 {
    (64 << 10) + u64::from(vnic) * 2048
}

#[test]
fn packets_are_bound_in_the_order_of_posting() {
    let mut bench = Bench::on(&v_sinic(256));
    for vnic in [200, 3, 77] {
        bench.write(Tag::RxData, vnic, post_receive(place(vnic), 1514));
    }
    for number in 0..4 {
        bench.arrive(&frame(number, 300)).unwrap();
    }
    bench.pass(Time::from_us(1));
    for (number, vnic) in [(0, 200), (1, 3), (2, 77)] {
        assert!(is_complete(bench.read(Tag::RxDone, vnic)));
        assert_eq!(bench.bytes(place(vnic), 300), frame(number, 300));
    }
    let untouched = bench.read(Tag::RxDone, 0);
    assert_eq!(untouched, rx_done::PACKETS.of(1));
}

#[test]
fn payload_waits_in_its_virtual_nic_while_others_go_on() {
    let mut bench = Bench::on(&v_sinic(3));
    for vnic in 0..3 {
        bench.write(Tag::RxData, vnic, post_receive(place(vnic), 64));
    }
    for number in 0..3 {
        bench.arrive(&frame(number, 1000)).unwrap();
    }
    bench.pass(Time::from_us(1));
    // Headers of all three; payloads in any order, from any core, much later.
    for vnic in 0..3 {
        let done = bench.read(Tag::RxDone, vnic);
        assert!(is_complete(done) && rx_done::MORE.is_set(done));
        assert_eq!(rx_done::COPY_LEN.get(done), 1000 - 64);
    }
    bench.pass(Time::from_ms(1));
    for vnic in [2, 0, 1] {
        assert_eq!(bench.bytes(place(vnic), 64), &frame(vnic.into(), 1000)[..64]);
        bench.write(Tag::RxData, vnic, post_receive(place(vnic) + 64, 1514));
        let done = bench.read(Tag::RxWait, vnic);
        assert_eq!(rx_done::COPY_LEN.get(done), 1000 - 64);
        assert_eq!(bench.bytes(place(vnic), 1000), frame(vnic.into(), 1000));
    }
    assert_eq!(bench.nic.frames_inside(), 0);
}

#[test]
fn deferred_payload_keeps_its_room_in_the_fifo() {
    let mut bench = Bench::on(&v_sinic(16));
    for vnic in 0..16 {
        bench.write(Tag::RxData, vnic, post_receive(place(vnic), 64));
    }
    for number in 0..10 {
        bench.arrive(&frame(number, 1500)).unwrap();
    }
    bench.pass(Time::from_us(10));
    assert!(bench.arrive(&frame(10, 1500)).is_err());
    let status = bench.read(Tag::IntrStatus, 0);
    assert!(interrupt::RX_HIGH.is_set(status) && !interrupt::RX_EMPTY.is_set(status));
    bench.write(Tag::RxData, 0, post_receive(place(0), 1514));
    bench.read(Tag::RxWait, 0);
    bench.arrive(&frame(11, 1500)).unwrap();
}

#[test]
fn a_virtual_nic_keeps_the_engine_until_its_packet_is_whole() {
    let mut bench = Bench::on(&v_sinic(4));
    for vnic in 0..4 {
        let at = place(vnic) as usize;
        bench.memory.bytes[at..at + 600].copy_from_slice(&frame(vnic.into(), 600));
    }
    // Four cores at once, without a lock: header first, then payload.
    for vnic in [2, 0, 3, 1] {
        bench.write(Tag::TxData, vnic, post_transmit(place(vnic), 54, true));
    }
    bench.pass(Time::from_us(5));
    // Only the first one's header is in.
    for (vnic, complete) in [(2, true), (0, false), (3, false), (1, false)] {
        assert_eq!(is_complete(bench.read(Tag::TxDone, vnic)), complete);
    }
    let mut rests = vec![2, 0, 3, 1];
    while !rests.is_empty() {
        let before = rests.len();
        rests.retain(|&vnic| {
            if !is_complete(bench.read(Tag::TxDone, vnic)) {
                return true;
            }
            let rest = post_transmit(place(vnic) + 54, 546, false);
            bench.write(Tag::TxData, vnic, rest);
            bench.pass(Time::from_us(1));
            false
        });
        assert!(rests.len() < before, "somebody gets on");
    }
    let order: Vec<Vec<u8>> = [2, 0, 3, 1].map(|number| frame(number, 600)).into();
    assert_eq!(bench.sent(), order);
}

/// Neither direction waits for all that the other has to copy.
#[test]
fn copies_of_both_directions_take_turns_at_the_cache_port() {
    let mut bench = Bench::on(&v_sinic(8));
    for number in 0..4 {
        bench.arrive(&frame(number, 1000)).unwrap();
    }
    for vnic in 0..4 {
        bench.write(Tag::RxData, vnic, post_receive(place(vnic), 1514));
    }
    for vnic in 4..8 {
        bench.write(Tag::TxData, vnic, post_transmit(place(vnic), 1000, false));
    }
    let turn = transfer(1000) + Time::from_ns(20) + transfer(1000);
    for turns in 1..=4 {
        bench.pass(turn);
        let received = (0..4).filter(|&vnic| is_complete(bench.read(Tag::RxDone, vnic)));
        assert_eq!(received.count(), turns);
        let sent = (4..8).filter(|&vnic| is_complete(bench.read(Tag::TxDone, vnic)));
        assert_eq!(sent.count(), turns);
    }
}

#[test]
fn every_virtual_nic_sees_that_the_transmit_fifo_is_full_and_can_still_queue() {
    let mut bench = Bench::on(&v_sinic(8));
    for vnic in 0..8 {
        bench.write(Tag::TxData, vnic, post_transmit(place(0), 4096, false));
    }
    bench.pass(Time::from_us(2));
    for vnic in 0..8 {
        let done = bench.read(Tag::TxDone, vnic);
        assert!(tx_done::FULL.is_set(done));
        assert_eq!(is_complete(done), vnic < 4);
    }
    bench.pass(Time::from_us(50));
    assert!(bench.misuses().is_empty());
    assert_eq!(bench.sent().len(), 8);
    for vnic in 0..8 {
        let done = bench.read(Tag::TxDone, vnic);
        assert!(is_complete(done) && !tx_done::FULL.is_set(done));
    }
}
