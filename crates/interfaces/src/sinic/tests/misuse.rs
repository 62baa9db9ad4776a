//! What the data sheet calls undefined.

use super::*;

/// What is written where, and how it is counted.
fn refused(bench: &mut Bench, tag: Tag, value: u64, misuse: Misuse) {
    let before = bench.nic.misuses(misuse);
    let register = bench.read(tag, 0);
    bench.write(tag, 0, value);
    assert_eq!(bench.nic.misuses(misuse), before + 1, "{tag:?} {value:#x}");
    assert_eq!(bench.read(tag, 0), register, "it keeps its value");
}

#[test]
fn copies_that_cannot_be_are_counted_and_not_begun() {
    let mut bench = Bench::on(&sinic());
    let end = MEMORY as u64;
    for (tag, max) in [(Tag::RxData, 1514), (Tag::TxData, 4096)] {
        for (len, at, misuse) in [
            (0, 4096, Misuse::NoLength),
            (max + 1, 4096, Misuse::TooLong),
            ((1 << 20) - 1, 4096, Misuse::TooLong),
            (64, 0, Misuse::NoMemory),
            (64, end - 63, Misuse::NoMemory),
            (1, end, Misuse::NoMemory),
            (64, (1 << 40) - 1, Misuse::NoMemory),
        ] {
            refused(&mut bench, tag, len << 40 | at, misuse);
        }
        refused(&mut bench, tag, 1 << 60 | 64 << 40 | 4096, Misuse::VirtualAddress);
    }
    assert!(!rx_done::BUSY.is_set(bench.read(Tag::RxDone, 0)));
    // The largest that may be, up to the very end of memory.
    bench.write(Tag::RxData, 0, 1514 << 40 | (end - 1514));
    bench.write(Tag::TxData, 0, 4096 << 40 | (end - 4096));
    assert!(rx_done::BUSY.is_set(bench.read(Tag::RxDone, 0)));
    assert!(rx_done::BUSY.is_set(bench.read(Tag::TxDone, 0)));
}

#[test]
fn virtual_addresses_are_taken_where_the_device_is_configured_so() {
    let options = Options { advice: config::VADDR.mask(), ..sinic() };
    let mut bench = Bench::on(&options);
    bench.write(Tag::RxData, 0, 1 << 60 | 64 << 40 | 4096);
    bench.arrive(&frame(3, 64)).unwrap();
    bench.pass(Time::from_us(1));
    assert_eq!(bench.bytes(4096, 64), frame(3, 64));
    assert!(bench.misuses().is_empty());
}

#[test]
fn a_second_copy_while_the_first_is_not_complete_is_counted() {
    let mut bench = Bench::on(&sinic());
    bench.write(Tag::RxData, 0, post_receive(4096, 64));
    refused(&mut bench, Tag::RxData, post_receive(8192, 64), Misuse::Busy);
    bench.write(Tag::TxData, 0, post_transmit(4096, 64, false));
    refused(&mut bench, Tag::TxData, post_transmit(8192, 64, false), Misuse::Busy);
    bench.arrive(&frame(1, 60)).unwrap();
    bench.pass(Time::from_us(1));
    assert_eq!(bench.bytes(4096, 60), frame(1, 60));
    assert!(bench.bytes(8192, 64).iter().all(|&byte| byte == 0));
    assert_eq!(bench.sent().len(), 1);
}

#[test]
fn options_and_unknown_commands_are_refused() {
    let mut bench = Bench::on(&sinic());
    for bit in 3..32 {
        refused(&mut bench, Tag::Config, 7 | 1 << bit, Misuse::ReadOnlyBits);
    }
    refused(&mut bench, Tag::IntrMask, 0x200, Misuse::ReservedBits);
    bench.write(Tag::IntrMask, 0, 1 << 32 | 1);
    assert_eq!(bench.nic.misuses(Misuse::BadWidth), 1);
    assert_eq!(bench.read(Tag::IntrMask, 0), 0);
}

#[test]
fn a_packet_longer_than_the_fifo_is_dropped_whole() {
    let mut bench = Bench::on(&sinic());
    for part in 0..6 {
        bench.write(Tag::TxData, 0, post_transmit(4096, 4096, part < 5));
        let done = bench.read(Tag::TxWait, 0);
        assert!(is_complete(done));
        // The fifth does not fit any more.
        assert_eq!(done & 0xfffff, if part < 4 { 4096 } else { 0 });
    }
    bench.write(Tag::TxData, 0, post_transmit(4096, 100, false));
    bench.pass(Time::from_us(100));
    let lengths: Vec<usize> = bench.sent().iter().map(Vec::len).collect();
    assert_eq!(lengths, [100]);
    assert!(bench.nic.counters().contains(&("tx_oversized", 1)));
}

/// Whoever waits for TxLow hears it, also where what falls out was never sent.
#[test]
fn a_full_fifo_that_a_packet_too_long_is_thrown_out_of_is_low_again() {
    let mut bench = Bench::on(&sinic());
    bench.write(Tag::TxData, 0, post_transmit(4096, 3072, false));
    bench.read(Tag::TxWait, 0);
    // The fourth part waits until the packet before is out: the FIFO is full.
    for _ in 0..4 {
        bench.write(Tag::TxData, 0, post_transmit(4096, 4096, true));
        bench.read(Tag::TxWait, 0);
    }
    bench.pass(Time::from_us(5));
    let status = bench.read(Tag::IntrStatus, 0);
    assert!(interrupt::TX_FULL.is_set(status) && !interrupt::TX_LOW.is_set(status));
    bench.write(Tag::TxData, 0, post_transmit(4096, 4096, true));
    assert!(interrupt::TX_LOW.is_set(bench.read(Tag::IntrStatus, 0)));
    bench.write(Tag::TxData, 0, post_transmit(4096, 4096, false));
    assert!(!interrupt::TX_LOW.is_set(bench.read(Tag::IntrStatus, 0)));
    assert!(bench.nic.counters().contains(&("tx_oversized", 1)));
}

#[test]
fn frames_that_have_no_place_are_dropped_by_their_cause() {
    let mut bench = Bench::off(&sinic());
    assert_eq!(bench.arrive(&frame(0, 60)), Err(crate::sinic::RX_DISABLED));
    let mut bench = Bench::on(&sinic());
    assert_eq!(bench.arrive(&[]), Err(DropCause::OVERSIZED));
    assert_eq!(bench.arrive(&vec![0; 1 << 20]), Err(DropCause::OVERSIZED));
    let fitting = RX_FIFO.0 as usize / 1500;
    for number in 0..fitting {
        bench.arrive(&frame(number as u32, 1500)).unwrap();
    }
    assert_eq!(bench.arrive(&frame(99, 1500)), Err(DropCause::FIFO_FULL));
    assert_eq!(bench.nic.frames_inside(), fitting as u64);
}

#[test]
fn devices_that_cannot_be_are_not_made() {
    let around = Surroundings { rx_fifo: RX_FIFO, tx_fifo: TX_FIFO, interrupt_delay: DELAY, vector: Vector(0) };
    let sizes = |change: fn(&mut Options)| {
        let mut options = v_sinic(4);
        change(&mut options);
        let port = Port::new(BitRate::from_gbps(10.0), Bytes(24));
        Nic::new(&options, &around, port).map(|_| ())
    };
    assert!(sizes(|_| ()).is_ok());
    assert!(sizes(|options| options.vnics = Some(0)).is_err());
    assert!(sizes(|options| options.vnics = Some(257)).is_err());
    assert!(sizes(|options| options.rx_max_copy = Bytes(0)).is_err());
    assert!(sizes(|options| options.tx_max_copy = Bytes(TX_FIFO.0 + 1)).is_err());
    assert!(sizes(|options| options.rx_fifo_mark = Bytes(RX_FIFO.0 + 1)).is_err());
    assert!(sizes(|options| options.interrupt_mask = 0x200).is_err());
    assert!(sizes(|options| options.advice = config::FILTER.mask()).is_err());
    let both = config::ZERO_COPY.mask() | config::DELAY_COPY.mask();
    assert_eq!(both, 3 << 12);
    assert!(sizes(|options| options.advice = 3 << 12).is_err());
    assert!(
        sizes(|options| {
            options.advice = config::ZERO_COPY.mask();
            options.vnics = None;
        })
        .is_err()
    );
}
