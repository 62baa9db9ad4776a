//! Blocks of pcapng captures, made by hand: both byte orders, offsets of time, simple packets and those of early files.

#[path = "common/captures.rs"]
mod captures;

use captures::{lengths, problem, times};
use nicforge_wire::capture::{CaptureProblem, CaptureReader};

/// A block of a big-endian pcapng, or of a little-endian one.
fn block(big: bool, kind: u32, contents: &[u8]) -> Vec<u8> {
    let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let length = word(contents.len() as u32 + 12);
    [&word(kind)[..], &length, contents, &length].concat()
}

/// Packets of two interfaces: the second one's time stamps count from `offset` seconds, in `unit` (`if_tsresol`).
fn with_offset(big: bool, unit: u8, offset: i64, stamps: [u64; 2]) -> Vec<u8> {
    let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let half = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let words = |values: &[u32]| values.iter().copied().flat_map(word).collect::<Vec<u8>>();
    let halves = |values: &[u16]| values.iter().copied().flat_map(half).collect::<Vec<u8>>();
    let section = [words(&[0x1a2b_3c4d]), halves(&[1, 0]), vec![0xff; 8]].concat();
    let plain = [halves(&[1, 0]), words(&[0])].concat();
    let offset = if big { offset.to_be_bytes() } else { offset.to_le_bytes() };
    let options = [halves(&[9, 1]), vec![unit, 0, 0, 0], halves(&[14, 8])].concat();
    let other = [&plain[..], &options, &offset].concat();
    let mut file = block(big, 0x0a0d_0d0a, &section);
    file.extend(block(big, 1, &plain));
    file.extend(block(big, 1, &other));
    for (interface, stamp) in stamps.into_iter().enumerate() {
        let (high, low) = ((stamp >> 32) as u32, stamp as u32);
        let head = words(&[interface as u32, high, low, 4, 4]);
        file.extend(block(big, 6, &[&head[..], &[1; 4]].concat()));
    }
    file
}

#[test]
fn offsets_and_units_of_pcapng_in_both_byte_orders() {
    for big in [false, true] {
        // 3 s in millionths; 3 s and 1536/1024 s.
        let stamps = [3_000_000, 1 << 10 | 512];
        let binary = 0x80 | 10;
        assert_eq!(times(&with_offset(big, binary, 3, stamps)), [0, 1_500_000_000]);
        // 10⁻²⁰ s: finer than 64 bits hold in a second.
        assert_eq!(times(&with_offset(big, 20, 4, stamps)), [0, 1_000_000_000]);
        let absurd = with_offset(big, 100, 0, stamps);
        assert_eq!(problem(&absurd), CaptureProblem::TimeUnit);
    }
}

/// Packets that claim more than their block has are no end of the file.
#[test]
fn a_packet_longer_than_its_block_is_malformed() {
    for big in [false, true] {
        let whole = with_offset(big, 6, 0, [0, 0]);
        // Two blocks of 36 bytes, with the bytes captured after type, length, interface and time.
        let first = whole.len() - 72;
        let captured = first + 20;
        let mut file = whole;
        let length = if big { 5_000u32.to_be_bytes() } else { 5_000u32.to_le_bytes() };
        file[captured..captured + 4].copy_from_slice(&length);
        assert_eq!(problem(&file), CaptureProblem::Malformed);
        // The same at the very end of the file, and one that is cut.
        file.truncate(first + 36);
        assert_eq!(problem(&file), CaptureProblem::Malformed);
        file.truncate(first + 35);
        assert_eq!(problem(&file), CaptureProblem::Truncated);
    }
}

/// A simple packet block says how long the packet was, not how much of it there is: its interface does.
#[test]
fn simple_packets_end_where_their_interface_cuts() {
    let section = [&0x1a2b_3c4du32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]];
    let mut file = block(false, 0x0a0d_0d0a, &section.concat());
    file.extend(block(false, 1, &[1, 0, 0, 0, 61, 0, 0, 0]));
    for (original, captured) in [(100u32, 64), (60, 60)] {
        let contents = [&original.to_le_bytes()[..], &vec![1; captured]].concat();
        file.extend(block(false, 3, &contents));
    }
    assert_eq!(lengths(&file), [(61, 100), (60, 60)]);
    let mut reader = CaptureReader::new(&file[..]).unwrap();
    while reader.next_record().unwrap().is_some() {}
    assert_eq!(reader.counts().without_time, 2);
}

/// Packet blocks of early files: interface and drops in a word, and one that claims more than it has.
#[test]
fn packet_blocks_of_early_files_are_read() {
    for big in [false, true] {
        let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
        let half = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
        // Its two packets are of interfaces 0 and 1; these come a second and two after the first.
        let whole = with_offset(big, 6, 0, [0, 0]);
        let early = |number: u16, time: u32, captured: u32| {
            let head = [half(number), half(7)].concat();
            let words = [0, time, captured, 60].into_iter().flat_map(word);
            let contents: Vec<u8> = head.into_iter().chain(words).chain([1; 20]).collect();
            block(big, 2, &contents)
        };
        let file = [whole.clone(), early(1, 1_000_000, 20), early(0, 2_000_000, 18)].concat();
        assert_eq!(lengths(&file), [(4, 4), (4, 4), (20, 60), (18, 60)]);
        assert_eq!(times(&file), [0, 0, 1_000_000_000, 2_000_000_000]);
        let longer = [whole.clone(), early(0, 0, 21)].concat();
        assert_eq!(problem(&longer), CaptureProblem::Malformed);
        let nowhere = [whole.clone(), early(9, 0, 20)].concat();
        assert_eq!(problem(&nowhere), CaptureProblem::UnknownInterface(9));
        let empty = [whole, block(big, 2, &[])].concat();
        assert_eq!(problem(&empty), CaptureProblem::Malformed);
    }
}
