//! Byte orders, time resolutions and what is odd, in captures made by hand.

#[path = "common/captures.rs"]
mod captures;

use std::time::Duration;

use captures::{lengths, problem, times};
use nicforge_units::Time;
use nicforge_wire::capture::{CaptureProblem, CaptureReader};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::{DataLink, Endianness};

/// A pcap of records (seconds, fraction, original length, bytes).
fn pcap(magic: u32, link: u32, big: bool, records: &[(u32, u32, u32, &[u8])]) -> Vec<u8> {
    let word = |value: u32| {
        if big { value.to_be_bytes() } else { value.to_le_bytes() }
    };
    let version = if big { 0x0002_0004 } else { 0x0004_0002 };
    let header = [magic, version, 0, 0, 65_535, link];
    let mut file: Vec<u8> = header.into_iter().flat_map(word).collect();
    for &(seconds, fraction, original, bytes) in records {
        for value in [seconds, fraction, bytes.len() as u32, original] {
            file.extend_from_slice(&word(value));
        }
        file.extend_from_slice(bytes);
    }
    file
}

#[test]
fn both_byte_orders_and_both_resolutions_of_pcap() {
    let records: &[(u32, u32, u32, &[u8])] = &[(7, 999_999, 1, &[1]), (8, 1, 1, &[1])];
    for big in [false, true] {
        assert_eq!(times(&pcap(0xa1b2_c3d4, 1, big, records)), [0, 2_000]);
        assert_eq!(times(&pcap(0xa1b2_3c4d, 1, big, records)), [0, 999_000_002]);
    }
}

#[test]
fn both_byte_orders_and_any_resolution_of_pcapng() {
    for order in [Endianness::Little, Endianness::Big] {
        for (resolution, expected_ns) in [(None, 5_000), (Some(9), 5), (Some(3), 5_000_000)] {
            let mut writer = PcapNgWriter::with_endianness(Vec::new(), order).unwrap();
            let option = resolution.map(InterfaceDescriptionOption::IfTsResol);
            writer
                .write_pcapng_block(InterfaceDescriptionBlock {
                    linktype: DataLink::ETHERNET,
                    snaplen: 0,
                    options: option.into_iter().collect(),
                })
                .unwrap();
            for units in [1_000, 1_005] {
                writer
                    .write_pcapng_block(EnhancedPacketBlock {
                        interface_id: 0,
                        timestamp: Duration::from_nanos(units),
                        original_len: 3,
                        data: vec![1, 2, 3].into(),
                        options: Vec::new(),
                    })
                    .unwrap();
            }
            assert_eq!(times(&writer.into_inner()), [0, expected_ns]);
        }
    }
}

#[test]
fn odd_records_are_counted() {
    let records: &[(u32, u32, u32, &[u8])] = &[
        (10, 0, 4, &[1; 4]),
        (10, 5, 0, &[]),
        (10, 5, 2, &[1; 4]),
        (9, 0, 100, &[1; 4]),
        (10, 2_000_000, 4, &[1; 4]),
        (u32::MAX, 0, 4, &[1; 4]),
    ];
    let file = pcap(0xa1b2_c3d4, 1, false, records);
    let mut reader = CaptureReader::new(&file[..]).unwrap();
    let mut times = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        times.push(record.time);
    }
    let last = Time::from_ps(u64::MAX / 2);
    let end_of_second = Time::from_us(999_999);
    assert_eq!(times, [Time::ZERO, Time::ZERO, end_of_second, last]);
    let counts = reader.counts();
    assert_eq!((counts.zero_length, counts.longer_than_original), (1, 1));
    assert_eq!((counts.captured_short, counts.time_went_back), (1, 1));
    assert_eq!((counts.fraction_out_of_range, counts.time_out_of_range), (1, 1));
    assert_eq!((counts.skipped(), reader.records()), (2, 6));
}

/// The upper half of the link type: the length of the FCS in words of 16 bits, where a flag says so.
#[test]
fn the_fcs_is_taken_off_frames() {
    // Whole, captured without the FCS, with a part of it, cut in the frame, and nothing but FCS.
    let records: &[(u32, u32, u32, &[u8])] =
        &[(0, 0, 24, &[1; 24]), (0, 0, 24, &[1; 20]), (0, 0, 24, &[1; 22]), (0, 0, 24, &[1; 15]), (0, 0, 4, &[1; 4])];
    let lengths = |link: u32, big: bool| {
        let file = pcap(0xa1b2_c3d4, link, big, records);
        let mut reader = CaptureReader::new(&file[..]).unwrap();
        let mut lengths = Vec::new();
        while let Some(record) = reader.next_record().unwrap() {
            lengths.push((record.bytes.len(), record.original_len));
        }
        (lengths, reader.counts())
    };
    for big in [false, true] {
        let (seen, counts) = lengths(2 << 28 | 1 << 26 | 1, big);
        assert_eq!(seen, [(20, 20), (20, 20), (20, 20), (15, 20)]);
        assert_eq!((counts.zero_length, counts.captured_short), (1, 1));
        // Raw IP has none of what stands before: 14 bytes of Ethernet come to it.
        let ip = pcap(0xa1b2_c3d4, 2 << 28 | 1 << 26 | 101, big, &[(0, 0, 24, &[0x45; 24])]);
        let mut reader = CaptureReader::new(&ip[..]).unwrap();
        let record = reader.next_record().unwrap().unwrap();
        assert_eq!((record.bytes.len(), record.original_len), (34, 34));
    }
    // Without the flag nothing is known.
    let (plain, _) = lengths(1, false);
    assert_eq!(plain[0], (24, 24));
    for link in [2 << 28 | 1, 1 << 27 | 1] {
        assert_eq!(lengths(link, false).0, plain);
    }
    let unknown = pcap(0xa1b2_c3d4, 2 << 28 | 1 << 26 | 147, false, &[]);
    assert_eq!(problem(&unknown), CaptureProblem::UnsupportedLinkType(147));
    let reserved = pcap(0xa1b2_c3d4, 1 << 16 | 1, false, &[]);
    let whole = CaptureProblem::UnsupportedLinkType(65_537);
    assert_eq!(problem(&reserved), whole);
}

/// A pcapng of one interface with these options, and packets (length, bytes, flags).
fn pcapng(
    order: Endianness,
    options: &[InterfaceDescriptionOption<'static>],
    packets: &[(u32, Vec<u8>, Option<u32>)],
) -> Vec<u8> {
    let mut writer = PcapNgWriter::with_endianness(Vec::new(), order).unwrap();
    let mut interface = InterfaceDescriptionBlock::new(DataLink::ETHERNET, 0);
    interface.options = options.to_vec();
    writer.write_pcapng_block(interface).unwrap();
    for (original_len, bytes, flags) in packets {
        let packet = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::ZERO,
            original_len: *original_len,
            data: bytes.clone().into(),
            options: flags.map(EnhancedPacketOption::Flags).into_iter().collect(),
        };
        writer.write_pcapng_block(packet).unwrap();
    }
    writer.into_inner()
}

/// What each frame has of how many bytes.
#[test]
fn the_fcs_is_taken_off_frames_of_pcapng() {
    let frames: Vec<_> = [24, 20, 22, 15].map(|len| (24, vec![1; len], None)).to_vec();
    for order in [Endianness::Little, Endianness::Big] {
        // Bits as the draft says, and bytes as some write.
        for length in [32, 4] {
            let option = InterfaceDescriptionOption::IfFcsLen(length);
            let seen = lengths(&pcapng(order, &[option], &frames));
            assert_eq!(seen, [(20, 20), (20, 20), (20, 20), (15, 20)], "{length}");
        }
        assert_eq!(lengths(&pcapng(order, &[], &frames))[0], (24, 24));
        // A packet's own flags, in bytes, come before what is said of its interface.
        let flagged: Vec<_> = [None, Some(1), Some(2 << 5 | 1)].map(|flags| (24, vec![1; 24], flags)).to_vec();
        let option = InterfaceDescriptionOption::IfFcsLen(32);
        let seen = lengths(&pcapng(order, &[option], &flagged));
        assert_eq!(seen, [(20, 20), (20, 20), (22, 22)]);
    }
}

#[test]
fn an_fcs_longer_than_any_is_an_error() {
    let of = |length: u8| {
        let mut writer = PcapNgWriter::with_endianness(Vec::new(), Endianness::Little).unwrap();
        let mut interface = InterfaceDescriptionBlock::new(DataLink::ETHERNET, 0);
        let option = InterfaceDescriptionOption::IfFcsLen(length);
        interface.options.push(option);
        writer.write_pcapng_block(interface).unwrap();
        let packet = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::ZERO,
            original_len: 64,
            data: vec![1; 64].into(),
            options: Vec::new(),
        };
        writer.write_pcapng_block(packet).unwrap();
        writer.into_inner()
    };
    assert_eq!(lengths(&of(64)), [(56, 56)]);
    assert_eq!(problem(&of(72)), CaptureProblem::FcsLength(9));
    assert_eq!(problem(&of(255)), CaptureProblem::FcsLength(31));
    // A pcap's header says it in words of 16 bits.
    let header = pcap(0xa1b2_c3d4, 0xf400_0001, false, &[(0, 0, 64, &[1; 64])]);
    assert_eq!(problem(&header), CaptureProblem::FcsLength(30));
}

#[test]
fn what_cannot_be_read_is_named() {
    assert_eq!(problem(b""), CaptureProblem::NotACapture);
    assert_eq!(problem(b"GIF89a, surely not a capture"), CaptureProblem::NotACapture);
    let unknown = pcap(0xa1b2_c3d4, 147, false, &[]);
    assert_eq!(problem(&unknown), CaptureProblem::UnsupportedLinkType(147));
    let mut long = pcap(0xa1b2_c3d4, 1, false, &[(0, 0, 1, &[1])]);
    long[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(problem(&long), CaptureProblem::RecordTooLong);
    let mut writer = PcapNgWriter::with_endianness(Vec::new(), Endianness::Little).unwrap();
    let interface = InterfaceDescriptionBlock::new(DataLink::from(147), 0);
    writer.write_pcapng_block(interface).unwrap();
    writer
        .write_pcapng_block(EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::ZERO,
            original_len: 1,
            data: vec![1].into(),
            options: Vec::new(),
        })
        .unwrap();
    let mut file = writer.into_inner();
    assert_eq!(problem(&file), CaptureProblem::UnsupportedLinkType(147));
    // The packet block is the last 36 bytes; its interface stands after type and length.
    let at = file.len() - 36 + 8;
    file[at] = 9;
    assert_eq!(problem(&file), CaptureProblem::UnknownInterface(9));
}
