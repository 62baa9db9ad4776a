//! What the short walk over plain frames says is what the general functions say.

use nicforge_wire::rss::Toeplitz;
use nicforge_wire::{FrameError, Plain, checksum, parse_plain, walk_headers};
use proptest::collection::vec;
use proptest::prelude::*;

/// What the general functions say.
fn in_general(bytes: &[u8], frame_len: usize, rss: &Toeplitz) -> Result<Plain, FrameError> {
    let summary = walk_headers(bytes, frame_len)?;
    Ok(Plain {
        headers_end: summary.headers_end(bytes),
        verdict: checksum::verify(bytes, &summary),
        rss_hash: rss.hash(&summary),
        summary,
    })
}

/// A frame with the beginning that is asked for, and random bytes behind it; right except what `spoils`
/// says: places, and what comes there.
fn frame(random: &[u8], tcp: bool, padding: usize, spoils: &[(usize, u8)]) -> Vec<u8> {
    let mut bytes = random.to_vec();
    let whole = (bytes.len() - padding) as u16;
    bytes[12..15].copy_from_slice(&[8, 0, 0x45]);
    bytes[16..18].copy_from_slice(&(whole - 14).to_be_bytes());
    bytes[20..22].fill(0);
    bytes[23] = if tcp { 6 } else { 17 };
    if tcp {
        bytes[46] = 0x50
    } else {
        bytes[38..40].copy_from_slice(&(whole - 34).to_be_bytes())
    }
    let summary = walk_headers(&bytes, bytes.len()).expect("a good frame");
    checksum::fill(&mut bytes, &summary, true, true);
    for &(at, value) in spoils {
        let at = at % bytes.len();
        bytes[at] = value;
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn right_frames_are_plain_and_found_right(
        random in vec(any::<u8>(), 54..300), tcp: bool, padding in 0usize..20,
    ) {
        let rss = Toeplitz::default();
        let padding = padding.min(random.len() - 54);
        let bytes = frame(&random, tcp, padding, &[]);
        let plain = parse_plain(&bytes, bytes.len(), &rss);
        prop_assert_eq!(plain, Some(in_general(&bytes, bytes.len(), &rss).unwrap()));
        let verdict = plain.unwrap().verdict;
        prop_assert_eq!((verdict.l3, verdict.l4), (Some(true), Some(true)));
    }

    /// Each byte of the headers may be another, so that lengths, fragments, versions, protocols and
    /// checksums are wrong.
    #[test]
    fn whatever_it_says_of_spoilt_frames_is_right(
        random in vec(any::<u8>(), 54..160), tcp: bool,
        spoils in vec((prop_oneof![0usize..60, any::<usize>()], any::<u8>()), 1..4),
        cut in prop_oneof![Just(0usize), 0usize..120], zeros in 0usize..64,
    ) {
        let rss = Toeplitz::default();
        let bytes = frame(&random, tcp, 0, &spoils);
        // Only its beginning is there, or more follows.
        let bytes = &bytes[..bytes.len().saturating_sub(cut)];
        let frame_len = bytes.len() + cut + zeros;
        if let Some(plain) = parse_plain(bytes, frame_len, &rss) {
            prop_assert_eq!(Ok(plain), in_general(bytes, frame_len, &rss));
        }
    }

    #[test]
    fn whatever_it_says_of_any_bytes_is_right(bytes in vec(any::<u8>(), 0..100)) {
        let rss = Toeplitz::default();
        let found = parse_plain(&bytes, bytes.len(), &rss);
        prop_assert!(found.is_none_or(|plain| in_general(&bytes, bytes.len(), &rss) == Ok(plain)));
    }
}

#[test]
fn a_udp_frame_without_checksum_and_one_cut_behind_its_headers_are_plain() {
    let rss = Toeplitz::default();
    let mut bytes = frame(&[0; 60], false, 0, &[]);
    for len in [60, 42] {
        let found = parse_plain(&bytes[..len], 60, &rss).expect("plain");
        assert_eq!(Ok(found), in_general(&bytes[..len], 60, &rss));
    }
    bytes[40..42].fill(0);
    let found = parse_plain(&bytes, 60, &rss).expect("plain");
    assert_eq!(found.verdict.l4, None);
    assert_eq!(Ok(found), in_general(&bytes, 60, &rss));
}
