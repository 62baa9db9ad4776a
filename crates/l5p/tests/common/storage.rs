//! Digests on the wire, by code that has nothing in common with the library.

use nicforge_l5p::nvme::pdu::{CommonHeader, Digests};

/// CRC-32C bit by bit: nothing in common with the library.
pub fn crc32c(bytes: &[u8]) -> [u8; 4] {
    let step = |crc: u32| if crc & 1 == 0 { crc >> 1 } else { crc >> 1 ^ 0x82f6_3b78 };
    let crc = bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)));
    (!crc).to_le_bytes()
}

/// Every digest on the wire is right; tells how many PDUs there are.
pub fn check_wire(mut wire: &[u8], digests: Digests) -> usize {
    let mut pdus = 0;
    let mut agreed = Digests::default();
    while !wire.is_empty() {
        let header = CommonHeader::parse(agreed, wire).expect("a PDU");
        agreed = digests;
        let head = header.header_bytes();
        let digest = head + header.header_digest_bytes();
        assert!(digest == head || wire[head..digest] == crc32c(&wire[..head]), "header digest of {header:?}");
        let data = header.data();
        let pdu = header.length as usize;
        assert!(data.end == pdu || wire[data.end..pdu] == crc32c(&wire[data]), "data digest of {header:?}");
        wire = &wire[pdu..];
        pdus += 1;
    }
    pdus
}
