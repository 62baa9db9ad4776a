//! The register table against the data sheet, typed off from appendix A.3 once more.

use super::*;
use crate::register_map::{Access, RegisterMap, Reset};
use crate::sinic::registers::{ROWS, at};
use Access::{ReadClears, ReadOnly, ReadWrite, WriteOnly};

/// Bits of a field: highest, lowest, tag.
type SheetField = (u32, u32, &'static str);

/// Tag, offset, bits, virtual, access, reset (`None`: by configuration, or none), fields.
type SheetRow = (&'static str, u32, u32, bool, Access, Option<u64>, &'static [SheetField]);

const CONFIG: &[SheetField] = &[
    (13, 13, "ZeroCopy"),
    (12, 12, "DelayCopy"),
    (11, 11, "RSS"),
    (10, 10, "Vnic"),
    (9, 9, "RxThread"),
    (8, 8, "TxThread"),
    (7, 7, "Filter"),
    (6, 6, "Vlan"),
    (5, 5, "Vaddr"),
    (4, 4, "Desc"),
    (3, 3, "Poll"),
    (2, 2, "IntEn"),
    (1, 1, "TxEEn"),
    (0, 0, "RxEEn"),
];
const COMMAND: &[SheetField] = &[(1, 1, "Intr"), (0, 0, "Reset")];
const INTERRUPTS: &[SheetField] = &[
    (8, 8, "Soft"),
    (7, 7, "TxLow"),
    (6, 6, "TxFull"),
    (5, 5, "TxDMA"),
    (4, 4, "TxPacket"),
    (3, 3, "RxHigh"),
    (2, 2, "RxEmpty"),
    (1, 1, "RxDMA"),
    (0, 0, "RxPacket"),
];
const RX_DATA: &[SheetField] = &[(60, 60, "Vaddr"), (59, 40, "Len"), (39, 0, "Addr")];
const RX_DONE: &[SheetField] = &[
    (47, 32, "Packets"),
    (31, 31, "Busy"),
    (30, 30, "Complete"),
    (29, 29, "More"),
    (25, 25, "TcpError"),
    (24, 24, "UdpError"),
    (23, 23, "IpError"),
    (22, 22, "TcpPacket"),
    (21, 21, "UdpPacket"),
    (20, 20, "IpPacket"),
    (19, 0, "CopyLen"),
];
const TX_DATA: &[SheetField] =
    &[(63, 63, "More"), (62, 62, "Checksum"), (60, 60, "Vaddr"), (59, 40, "Len"), (39, 0, "Addr")];
const TX_DONE: &[SheetField] = &[
    (47, 32, "Packets"),
    (31, 31, "Busy"),
    (30, 30, "Complete"),
    (29, 29, "Full"),
    (28, 28, "Low"),
    (19, 0, "CopyLen"),
];
const HW_ADDR: &[SheetField] = &[
    (47, 40, "HwAddr[0]"),
    (39, 32, "HwAddr[1]"),
    (31, 24, "HwAddr[2]"),
    (23, 16, "HwAddr[3]"),
    (15, 8, "HwAddr[4]"),
    (7, 0, "HwAddr[5]"),
];

const SHEET: &[SheetRow] = &[
    ("Config", 0x00, 32, false, ReadWrite, None, CONFIG),
    ("Command", 0x04, 32, false, WriteOnly, None, COMMAND),
    ("IntrStatus", 0x08, 32, false, ReadClears, Some(0), INTERRUPTS),
    ("IntrMask", 0x0c, 32, false, ReadWrite, None, INTERRUPTS),
    ("RxMaxCopy", 0x10, 32, false, ReadOnly, None, &[]),
    ("TxMaxCopy", 0x14, 32, false, ReadOnly, None, &[]),
    ("RxMaxIntr", 0x18, 32, false, ReadOnly, None, &[]),
    ("RxFifoSize", 0x20, 32, false, ReadOnly, None, &[]),
    ("TxFifoSize", 0x24, 32, false, ReadOnly, None, &[]),
    ("RxFifoMark", 0x28, 32, false, ReadOnly, None, &[]),
    ("TxFifoMark", 0x2c, 32, false, ReadOnly, None, &[]),
    ("RxData", 0x30, 64, true, ReadWrite, Some(0), RX_DATA),
    ("RxDone", 0x38, 64, true, ReadOnly, Some(0), RX_DONE),
    ("RxWait", 0x40, 64, true, ReadOnly, Some(0), RX_DONE),
    ("TxData", 0x48, 64, true, ReadWrite, Some(0), TX_DATA),
    ("TxDone", 0x50, 64, true, ReadOnly, Some(0), TX_DONE),
    ("TxWait", 0x58, 64, true, ReadOnly, Some(0), TX_DONE),
    ("HwAddr", 0x60, 64, false, ReadOnly, None, HW_ADDR),
];

#[test]
fn the_table_has_every_row_and_field_of_the_sheet() {
    assert_eq!(ROWS.len(), SHEET.len());
    for (row, &(tag, offset, bits, per_virtual, access, reset, fields)) in ROWS.iter().zip(SHEET) {
        assert_eq!(row.tag, tag);
        assert_eq!(row.offset, offset, "{tag}");
        assert_eq!(8 * row.width.bytes(), bits, "{tag}");
        assert_eq!(row.per_virtual, per_virtual, "{tag}");
        assert_eq!(row.access, access, "{tag}");
        match row.reset {
            Reset::Value(value) => assert_eq!(Some(value), reset, "{tag}"),
            Reset::Configured | Reset::Nothing => assert_eq!(reset, None, "{tag}"),
        }
        let own: Vec<SheetField> = row.fields.iter().map(|field| (field.high, field.low, field.tag)).collect();
        assert_eq!(own, fields, "{tag}");
        let (found, _) = at(offset).unwrap();
        assert_eq!(format!("{found:?}"), tag);
        assert_eq!(found.row().tag, tag);
    }
}

#[test]
fn every_register_takes_its_own_width_and_mode_only() {
    for &(tag, offset, bits, _, access, reset, _) in SHEET {
        let mut bench = Bench::off(&sinic());
        let bytes = bits / 8;
        let value = bench.read_at(offset, bytes);
        let readable = access != WriteOnly;
        assert_eq!(bench.misuses().is_empty(), readable, "{tag}");
        if let Some(reset) = reset {
            // Nothing is in the transmit FIFO: it is below its watermark.
            let low = u64::from(tag.starts_with("TxDone") || tag.starts_with("TxWait")) << 28;
            assert_eq!(value, reset | low, "{tag}");
        }
        for wrong in [0, 1, 2, 3, 12 - bytes, 16, 255] {
            let before = bench.nic.misuses(Misuse::BadWidth);
            assert_eq!(bench.read_at(offset, wrong), u64::MAX, "{tag}");
            bench.write_at(offset, wrong, 0);
            assert_eq!(bench.nic.misuses(Misuse::BadWidth), before + 2, "{tag}");
        }
        let before = bench.nic.misuses(Misuse::WroteReadOnly);
        bench.write_at(offset, bytes, 0);
        let refused = bench.nic.misuses(Misuse::WroteReadOnly) - before;
        assert_eq!(refused, u64::from(access == ReadOnly), "{tag}");
        for inside in 1..bytes {
            let before = bench.nic.misuses(Misuse::Misaligned);
            bench.read_at(offset + inside, bytes);
            assert_eq!(bench.nic.misuses(Misuse::Misaligned), before + 1, "{tag}");
        }
    }
}

#[test]
fn reserved_offsets_are_no_registers() {
    let mut bench = Bench::off(&v_sinic(2));
    let mut count = 0;
    for offset in (0x68..0x100).step_by(4).chain([0x1c, 0x200, 0x230, 0xff_fffc]) {
        assert_eq!(bench.read_at(offset, 4), u64::MAX);
        bench.write_at(offset, 8, 0);
        count += 2;
    }
    assert_eq!(bench.misuses(), [(Misuse::NoRegister, count)]);
}

#[test]
fn reserved_bits_of_what_software_writes_must_be_zero() {
    for &(tag, offset, bits, _, access, _, fields) in SHEET {
        if access == ReadOnly || tag == "Config" {
            continue;
        }
        let named = |bit| fields.iter().any(|&(high, low, _)| (low..=high).contains(&bit));
        for bit in (0..bits).filter(|&bit| !named(bit)) {
            let mut bench = Bench::off(&sinic());
            bench.write_at(offset, bits / 8, 1 << bit);
            assert_eq!(bench.misuses(), [(Misuse::ReservedBits, 1)], "{tag} {bit}");
        }
    }
}

#[test]
fn configuration_registers_read_back() {
    let options = Options {
        advice: config::ZERO_COPY.mask() | config::RX_THREAD.mask() | config::POLL.mask(),
        interrupt_mask: 0x1ff,
        ..v_sinic(7)
    };
    let mut bench = Bench::off(&options);
    for (tag, expected) in [
        (Tag::Config, 1 << 13 | 1 << 10 | 1 << 9 | 1 << 3),
        (Tag::IntrMask, 0x1ff),
        (Tag::RxMaxCopy, 1514),
        (Tag::TxMaxCopy, 4096),
        (Tag::RxMaxIntr, 10),
        (Tag::RxFifoSize, 16384),
        (Tag::TxFifoSize, 16384),
        (Tag::RxFifoMark, 8192),
        (Tag::TxFifoMark, 4096),
        (Tag::HwAddr, 0x0200_0012_3456),
    ] {
        assert_eq!(bench.read(tag, 0), expected, "{tag:?}");
        // A virtual NIC's set shows the same device.
        let access = BusAccess::from_index(tag.of(0, 0).index);
        let again = bench.read_at(0x600 + access.offset, access.bytes);
        assert_eq!(again, expected, "{tag:?}");
    }
    assert!(bench.misuses().is_empty());
}

#[test]
fn the_maps_are_listed_by_their_names() {
    let sinic = RegisterMap::find("sinic").unwrap();
    let v_sinic = RegisterMap::find("v_sinic").unwrap();
    assert!(RegisterMap::find("ne2000").is_none());
    for &(tag, offset, _, per_virtual, _, _, fields) in SHEET {
        let own = format!("| {offset:02X}h | {tag} |");
        assert!(sinic.markdown().contains(&own), "{own}");
        let row = if per_virtual { format!("| 100h * n + {offset:02X}h | {tag} |") } else { own };
        assert!(v_sinic.markdown().contains(&row), "{row}");
        for (_, _, field) in fields {
            assert!(sinic.text().contains(&format!("{tag}.{field} ")), "{field}");
        }
    }
}
