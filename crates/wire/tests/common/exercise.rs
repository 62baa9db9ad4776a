//! What fuzzing does with an input: shared by the fuzz targets, the seeds test and the properties.
#![allow(dead_code)]

use std::sync::LazyLock;

use nicforge_wire::capture::{CaptureReader, RECORD_BYTES_MAX};
use nicforge_wire::headers::{ArpView, EthernetView, IcmpView, Ipv4View, Ipv6View, TcpView, UdpView, VlanView};
use nicforge_wire::rss::Toeplitz;
use nicforge_wire::{checksum, parse_frame, parse_headers};

/// Made once: its tables take longer than everything else.
static TOEPLITZ: LazyLock<Toeplitz> = LazyLock::new(Toeplitz::default);

/// Takes `data` for a frame, and for every header by itself.
pub fn headers(data: &[u8]) {
    views(data);
    let Ok(summary) = parse_frame(data) else {
        return;
    };
    assert!(summary.l3_end <= summary.frame_len);
    assert!(u32::from(summary.l4_offset) + summary.l4_len <= summary.l3_end);
    // The payload may lie elsewhere: the headers alone say the same.
    let header_end = usize::from(summary.l4_offset.max(summary.l3_offset)) + 60;
    let head = &data[..header_end.min(data.len())];
    assert_eq!(parse_headers(head, data.len()), Ok(summary));
    TOEPLITZ.hash(&summary);
    checksum::verify(data, &summary);
    let mut frame = data.to_vec();
    checksum::fill(&mut frame, &summary, true, true);
    let verdict = checksum::verify(&frame, &summary);
    assert_ne!(verdict.l3, Some(false));
    assert_ne!(verdict.l4, Some(false));
    // A summary of one frame must not hurt another, shorter one.
    let half = data.len() / 2;
    checksum::fill(&mut frame[..half], &summary, true, true);
    checksum::verify(&frame[..half], &summary);
}

fn views(data: &[u8]) {
    if let Ok(view) = EthernetView::new(data) {
        let _ = (view.destination(), view.source(), view.ethertype());
        let _ = view.payload();
    }
    if let Ok(view) = VlanView::new(data) {
        let _ = (view.vlan_id(), view.priority(), view.ethertype());
        let _ = view.payload();
    }
    if let Ok(view) = ArpView::new(data) {
        let _ = (view.operation(), view.sender_mac(), view.sender_ip());
        let _ = (view.target_mac(), view.target_ip());
    }
    if let Ok(view) = Ipv4View::new(data) {
        let _ = (view.source(), view.destination(), view.fragment_offset());
        let _ = (view.header(), view.payload(), view.options().count());
    }
    if let Ok(view) = Ipv6View::new(data) {
        let _ = (view.source(), view.destination(), view.payload());
        for header in view.extension_headers() {
            let _ = header.fragment();
        }
    }
    if let Ok(view) = UdpView::new(data) {
        let _ = (view.source_port(), view.checksum(), view.payload());
    }
    if let Ok(view) = TcpView::new(data) {
        let _ = (view.sequence(), view.acknowledgment(), view.urgent());
        let _ = (view.payload(), view.options().count());
    }
    if let Ok(view) = IcmpView::new(data) {
        let _ = (view.message_type(), view.identifier(), view.payload());
    }
}

/// Takes `data` for a capture file.
pub fn captures(data: &[u8]) {
    let Ok(mut reader) = CaptureReader::new(data) else {
        return;
    };
    let mut last = None;
    while let Ok(Some(record)) = reader.next_record() {
        assert!(Some(record.time) >= last);
        assert!(record.bytes.len() <= RECORD_BYTES_MAX + 14);
        assert!(record.bytes.len() <= record.original_len as usize);
        last = Some(record.time);
    }
    // Every record has a header of 16 bytes at least.
    assert!(reader.records() <= data.len() as u64 / 16);
    // A record that the end cuts off was not read.
    assert!(reader.counts().skipped() <= reader.records() + reader.counts().cut_off);
    assert!(matches!(reader.next_record(), Ok(None)));
}
