//! What the registers do.

use super::*;
use crate::sinic::registers::{command, tx_done};

const TO: u64 = 64 << 10;
/// Where the checksum is in an IPv4 header.
const IPV4_CHECKSUM: usize = 10;

#[test]
fn a_packet_is_copied_to_where_rx_data_says() {
    let mut bench = Bench::on(&sinic());
    bench.arrive(&frame(1, 1000)).unwrap();
    assert_eq!(rx_done::PACKETS.get(bench.read(Tag::RxDone, 0)), 1);
    bench.write(Tag::RxData, 0, post_receive(TO, 1514));
    assert_eq!(bench.read(Tag::RxDone, 0), rx_done::BUSY.mask());
    bench.pass(transfer(1000) - Time::from_ps(1));
    assert!(!is_complete(bench.read(Tag::RxDone, 0)));
    bench.pass(Time::from_ps(1));
    let done = bench.read(Tag::RxDone, 0);
    // The length given is that of the buffer; what came is one packet.
    assert_eq!(done, rx_done::COMPLETE.mask() | 1000);
    assert_eq!(bench.bytes(TO, 1000), frame(1, 1000));
    assert_eq!(bench.nic.frames_inside(), 0);
}

#[test]
fn a_buffer_may_be_posted_before_its_packet_comes() {
    let mut bench = Bench::on(&sinic());
    bench.write(Tag::RxData, 0, post_receive(TO, 1514));
    bench.pass(Time::from_us(5));
    assert!(rx_done::BUSY.is_set(bench.read(Tag::RxDone, 0)));
    bench.arrive(&frame(1, 60)).unwrap();
    bench.pass(transfer(60));
    assert!(is_complete(bench.read(Tag::RxDone, 0)));
}

#[test]
fn bytes_that_do_not_fit_come_with_the_next_copies() {
    let mut bench = Bench::on(&sinic());
    for (number, len) in [(1, 250), (2, 60)] {
        bench.arrive(&frame(number, len)).unwrap();
    }
    let mut place = TO;
    for (copied, left) in [(100, 150), (100, 50), (50, 0)] {
        bench.write(Tag::RxData, 0, post_receive(place, 100));
        let done = bench.read(Tag::RxWait, 0);
        assert_eq!(rx_done::MORE.is_set(done), left > 0);
        let len = if left > 0 { left } else { copied };
        assert_eq!(rx_done::COPY_LEN.get(done), len);
        assert_eq!(rx_done::PACKETS.get(done), 1, "the next one is untouched");
        place += copied;
    }
    assert_eq!(bench.bytes(TO, 250), frame(1, 250));
}

#[test]
fn waiting_registers_give_their_answer_when_the_copy_is_done_or_at_the_time_out() {
    let mut bench = Bench::on(&sinic());
    let begin = bench.now;
    bench.read(Tag::RxWait, 0);
    assert_eq!(bench.now, begin, "nothing is posted, nothing to wait for");
    bench.write(Tag::RxData, 0, post_receive(TO, 1514));
    assert!(rx_done::BUSY.is_set(bench.read(Tag::RxWait, 0)));
    assert_eq!(bench.now, begin + Time::from_us(1));
    bench.arrive(&frame(1, 500)).unwrap();
    assert!(is_complete(bench.read(Tag::RxWait, 0)));
    assert_eq!(bench.now, begin + Time::from_us(1) + transfer(500));

    let begin = bench.now;
    bench.write(Tag::TxData, 0, post_transmit(TO, 500, true));
    let done = bench.read(Tag::TxWait, 0);
    assert!(is_complete(done) && tx_done::COPY_LEN.get(done) == 500);
    assert_eq!(bench.now, begin + Time::from_ns(20) + transfer(500));
}

#[test]
fn parts_make_a_packet_and_packets_leave_in_order() {
    let mut bench = Bench::on(&sinic());
    let first = frame(1, 700);
    bench.memory.bytes[TO as usize..][..700].copy_from_slice(&first);
    bench.write(Tag::TxData, 0, post_transmit(TO, 60, true));
    bench.read(Tag::TxWait, 0);
    bench.pass(Time::from_us(50));
    assert!(bench.sent().is_empty());
    for (from, len, more) in [(60, 600, true), (660, 40, false), (0, 100, false)] {
        bench.write(Tag::TxData, 0, post_transmit(TO + from, len, more));
        bench.read(Tag::TxWait, 0);
    }
    let done = bench.read(Tag::TxDone, 0);
    assert_eq!(tx_done::PACKETS.get(done), 2);
    bench.pass(Time::from_us(50));
    assert_eq!(tx_done::PACKETS.get(bench.read(Tag::TxDone, 0)), 0);
    assert_eq!(bench.sent(), [&first[..], &first[..100]]);
}

#[test]
fn both_engines_share_one_cache_port() {
    let mut bench = Bench::on(&sinic());
    bench.arrive(&frame(1, 1000)).unwrap();
    bench.write(Tag::RxData, 0, post_receive(TO, 1514));
    bench.write(Tag::TxData, 0, post_transmit(TO, 1000, false));
    let begin = bench.now;
    bench.read(Tag::TxWait, 0);
    assert_eq!(bench.now, begin + transfer(1000) + Time::from_ns(20) + transfer(1000));
}

#[test]
fn conditions_come_up_and_interrupt_as_the_mask_says() {
    let mut bench = Bench::on(&sinic());
    bench.write(Tag::IntrMask, 0, RX_DMA);
    bench.arrive(&frame(1, 60)).unwrap();
    bench.pass(Time::from_us(50));
    assert!(bench.memory.interrupts.is_empty(), "RxPacket is masked");
    bench.write(Tag::RxData, 0, post_receive(TO, 1514));
    let begin = bench.now;
    bench.pass(Time::from_us(50));
    assert_eq!(bench.memory.interrupts, [begin + transfer(60) + DELAY]);
    let status = bench.read(Tag::IntrStatus, 0);
    let empty = interrupt::RX_EMPTY.mask();
    assert_eq!(status, RX_DMA | empty | interrupt::RX_PACKET.mask());
    assert_eq!(bench.read(Tag::IntrStatus, 0), 0, "reading clears");

    bench.write(Tag::TxData, 0, post_transmit(TO, 60, false));
    bench.pass(Time::from_us(50));
    let sent = interrupt::TX_DMA.mask() | interrupt::TX_PACKET.mask();
    bench.write(Tag::IntrStatus, 0, interrupt::TX_DMA.mask());
    assert_eq!(bench.read(Tag::IntrStatus, 0), sent & !interrupt::TX_DMA.mask());

    bench.write(Tag::IntrMask, 0, interrupt::SOFT.mask());
    bench.write(Tag::Command, 0, command::INTR.mask());
    let begin = bench.now;
    bench.pass(Time::from_us(1));
    assert_eq!(bench.memory.interrupts[1..], [begin], "Soft is not delayed");
    assert_eq!(bench.read(Tag::IntrStatus, 0), interrupt::SOFT.mask());
}

#[test]
fn nothing_interrupts_while_interrupts_are_off() {
    let mut bench = Bench::on(&sinic());
    bench.write(Tag::Config, 0, 3);
    bench.write(Tag::IntrMask, 0, 0x1ff);
    bench.arrive(&frame(1, 60)).unwrap();
    bench.pass(Time::from_us(50));
    assert!(bench.memory.interrupts.is_empty());
    bench.write(Tag::Config, 0, 7);
    bench.pass(Time::from_us(50));
    assert_eq!(bench.memory.interrupts.len(), 1);
}

#[test]
fn the_receive_watermark_speaks_once_until_the_fifo_was_empty() {
    let mut bench = Bench::on(&sinic());
    let high = interrupt::RX_HIGH.mask();
    let mut rises = Vec::new();
    for number in 0..10 {
        bench.arrive(&frame(number, 1500)).unwrap();
        if bench.read(Tag::IntrStatus, 0) & high != 0 {
            rises.push(number);
        }
    }
    // 8192 bytes: above with the sixth.
    assert_eq!(rises, [5]);
    for number in 0..10 {
        bench.write(Tag::RxData, 0, post_receive(TO, 1514));
        bench.read(Tag::RxWait, 0);
        let empty = bench.read(Tag::IntrStatus, 0) & interrupt::RX_EMPTY.mask();
        assert_eq!(empty != 0, number == 9);
    }
    for number in 0..6 {
        bench.arrive(&frame(number, 1500)).unwrap();
    }
    assert_eq!(bench.read(Tag::IntrStatus, 0) & high, high);
}

#[test]
fn a_full_transmit_fifo_stalls_copies_and_speaks_when_it_is_low_again() {
    let mut bench = Bench::on(&sinic());
    let (full, low) = (interrupt::TX_FULL.mask(), interrupt::TX_LOW.mask());
    for _ in 0..4 {
        assert_eq!(bench.read(Tag::IntrStatus, 0) & full, 0);
        bench.write(Tag::TxData, 0, post_transmit(TO, 4096, false));
        bench.read(Tag::TxWait, 0);
    }
    bench.write(Tag::TxData, 0, post_transmit(TO, 4096, false));
    let done = bench.read(Tag::TxDone, 0);
    assert!(tx_done::FULL.is_set(done) && tx_done::BUSY.is_set(done));
    assert!(!tx_done::LOW.is_set(done));
    assert_eq!(bench.read(Tag::IntrStatus, 0) & full, full);
    // The first leaves after 3.28 us and makes room.
    let mut waits = 0;
    while !is_complete(bench.read(Tag::TxWait, 0)) {
        waits += 1;
        assert!(waits < 10);
    }
    assert!(!tx_done::FULL.is_set(bench.read(Tag::TxDone, 0)));
    assert_eq!(bench.read(Tag::IntrStatus, 0) & low, 0);
    bench.pass(Time::from_us(50));
    assert_eq!(bench.read(Tag::IntrStatus, 0) & low, low);
    assert!(tx_done::LOW.is_set(bench.read(Tag::TxDone, 0)));
    assert_eq!(bench.sent().len(), 5);
    // It rises above the watermark and falls again, without having been full.
    for _ in 0..2 {
        bench.write(Tag::TxData, 0, post_transmit(TO, 4096, false));
        bench.read(Tag::TxWait, 0);
    }
    assert!(!tx_done::LOW.is_set(bench.read(Tag::TxDone, 0)));
    bench.pass(Time::from_us(50));
    assert!(tx_done::LOW.is_set(bench.read(Tag::TxDone, 0)));
    assert_eq!(bench.read(Tag::IntrStatus, 0) & (full | low), 0);
}

#[test]
fn nothing_leaves_while_transmission_is_off() {
    let mut bench = Bench::on(&sinic());
    bench.write(Tag::Config, 0, config::RX_EN.mask());
    bench.write(Tag::TxData, 0, post_transmit(TO, 60, false));
    bench.pass(Time::from_us(5));
    assert_eq!(tx_done::PACKETS.get(bench.read(Tag::TxDone, 0)), 1);
    assert!(bench.sent().is_empty());
    bench.write(Tag::Config, 0, 3);
    assert_eq!(bench.sent().len(), 1);
}

/// A short packet of this protocol.
fn packet(protocol: u8, l3_wrong: bool, l4_wrong: bool) -> Vec<u8> {
    ip_packet(1, protocol, 64, l3_wrong, l4_wrong)
}

#[test]
fn checksums_are_verified_on_receive() {
    let (ip, udp, tcp) = (1 << 20, 1 << 21, 1 << 22);
    let (ip_error, udp_error, tcp_error) = (1 << 23, 1 << 24, 1 << 25);
    for (bytes, flags) in [
        (packet(6, false, false), ip | tcp),
        (packet(6, true, false), ip | tcp | ip_error),
        (packet(6, false, true), ip | tcp | tcp_error),
        (packet(17, false, false), ip | udp),
        (packet(17, false, true), ip | udp | udp_error),
        (packet(17, true, true), ip | udp | udp_error | ip_error),
        (vec![0; 60], 0),
        (vec![1; 5], 0),
    ] {
        let mut bench = Bench::on(&sinic());
        bench.arrive(&bytes).unwrap();
        bench.write(Tag::RxData, 0, post_receive(TO, 1514));
        let done = bench.read(Tag::RxWait, 0);
        assert_eq!(done & 0x3ff0_0000, flags, "{bytes:?}");
    }
}

#[test]
fn checksums_are_generated_where_the_last_part_asks_for_it() {
    for (first, last, filled) in [(0, 1, true), (1, 0, false), (1, 1, true)] {
        for protocol in [6, 17] {
            let right = packet(protocol, false, false);
            let mut wrong = right.clone();
            wrong[14 + IPV4_CHECKSUM] ^= 0xff;
            let mut bench = Bench::on(&sinic());
            bench.memory.bytes[TO as usize..][..wrong.len()].copy_from_slice(&wrong);
            let check = |bit| tx_data::CHECKSUM.of(bit);
            bench.write(Tag::TxData, 0, post_transmit(TO, 40, true) | check(first));
            bench.read(Tag::TxWait, 0);
            let rest = wrong.len() as u64 - 40;
            bench.write(Tag::TxData, 0, post_transmit(TO + 40, rest, false) | check(last));
            bench.read(Tag::TxWait, 0);
            let expected = if filled { right } else { wrong };
            assert_eq!(bench.sent(), [expected]);
        }
    }
}

#[test]
fn a_reset_brings_back_the_state_after_power_on() {
    let options = Options { interrupt_mask: 1, ..sinic() };
    let mut bench = Bench::on(&options);
    bench.arrive(&frame(1, 600)).unwrap();
    bench.arrive(&frame(2, 600)).unwrap();
    bench.write(Tag::RxData, 0, post_receive(TO, 100));
    bench.write(Tag::TxData, 0, post_transmit(TO, 100, true));
    bench.write(Tag::IntrMask, 0, 0x1ff);
    bench.write(Tag::Command, 0, command::RESET.mask());
    for (tag, value) in [
        (Tag::Config, 0),
        (Tag::IntrStatus, 0),
        (Tag::IntrMask, 1),
        (Tag::RxData, 0),
        (Tag::RxDone, 0),
        (Tag::TxData, 0),
        (Tag::TxDone, tx_done::LOW.mask()),
    ] {
        assert_eq!(bench.read(tag, 0), value, "{tag:?}");
    }
    assert_eq!(bench.nic.frames_inside(), 0);
    assert!(bench.nic.counters().contains(&("reset_packets", 3)));
    // And it works again.
    bench.write(Tag::Config, 0, 7);
    bench.arrive(&frame(3, 60)).unwrap();
    bench.write(Tag::RxData, 0, post_receive(TO, 1514));
    assert!(is_complete(bench.read(Tag::RxWait, 0)));
    assert_eq!(bench.bytes(TO, 60), frame(3, 60));
}
