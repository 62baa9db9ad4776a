use crate::checksum;
use crate::parse_frame;

use super::*;

fn number_of(frame: &[u8]) -> u32 {
    u32::from_le_bytes(frame.try_into().unwrap())
}

#[test]
fn shares_are_met_and_late_frames_are_overtaken() {
    let plan = LinkPlan {
        delay: Time::from_us(1),
        loss: 0.1,
        duplicates: 0.2,
        reordered: 0.05,
        reordered_by: Time::from_us(10),
        ..LinkPlan::default()
    };
    let mut link = Link::new(&plan, 7);
    for number in 0..10_000u32 {
        link.send(Time::from_us(u64::from(number)), number.to_le_bytes().to_vec());
    }
    let sent = link.counters();
    assert!((sent.lost as f64 / 1e4 - 0.1).abs() < 0.01, "{sent:?}");
    let (mut last, mut overtaken, mut doubled, mut arrived) = (None, 0, 0, 0.0);
    while let Some(frame) = link.take() {
        let number = number_of(&frame);
        doubled += u64::from(last == Some(number));
        overtaken += u32::from(last > Some(number));
        last = Some(number);
        arrived += 1.0;
    }
    assert_eq!(doubled, sent.doubled);
    assert!((doubled as f64 / 9e3 - 0.2).abs() < 0.02, "{doubled}");
    assert!((f64::from(overtaken) / arrived - 0.05).abs() < 0.01, "{overtaken}");
}

#[test]
fn a_corrupted_frame_differs_in_one_bit() {
    let mut link = Link::new(&LinkPlan { corrupted: 1.0, ..LinkPlan::default() }, 1);
    for _ in 0..100 {
        link.send(Time::ZERO, vec![0; 64]);
        let frame = link.take().unwrap();
        assert_eq!(frame.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
    }
    link.send(Time::ZERO, Vec::new());
    assert_eq!((link.take(), link.counters().corrupted), (Some(Vec::new()), 100));
}

/// A UDP datagram over IPv4 whose ECN bits are `ecn`.
fn datagram(ecn: u8) -> Vec<u8> {
    let mut frame = vec![0; ETHERNET_HEADER_LEN + 28];
    EthernetView::new(&mut frame[..]).unwrap().set_ethertype(ethertype::IPV4);
    let mut header = Ipv4View::init(&mut frame[ETHERNET_HEADER_LEN..], 20).unwrap();
    header.set_type_of_service(0xb8 | ecn);
    header.set_total_len(28);
    header.set_time_to_live(9);
    header.set_protocol(17);
    let sum = checksum::checksum(header.header());
    header.set_checksum(sum);
    crate::rewrite::put16(&mut frame, ETHERNET_HEADER_LEN + 24, 8);
    frame
}

fn bottleneck(queue: u64, mark_above: Option<u64>) -> LinkPlan {
    let rate = BitRate::from_gbps(8.0);
    let bottleneck = Bottleneck { rate, queue: Bytes(queue), mark_above: mark_above.map(Bytes) };
    LinkPlan { bottleneck: Some(bottleneck), delay: Time::from_us(1), ..LinkPlan::default() }
}

/// At 8 Gbit/s a byte takes a nanosecond.
#[test]
fn a_bottleneck_sends_at_its_rate_and_drops_tails() {
    let mut link = Link::new(&bottleneck(250, None), 1);
    for number in 0..4u8 {
        link.send(Time::ZERO, vec![number; 100]);
    }
    assert_eq!((link.len(), link.counters().overflowed), (2, 2));
    link.send(Time::from_ns(100), vec![9; 100]);
    let mut arrivals = Vec::new();
    while !link.is_empty() {
        let due = link.due();
        arrivals.push((link.take().unwrap()[0], due));
    }
    let us = |ns: u64| Time::from_ns(1_000 + ns);
    assert_eq!(arrivals, [(0, us(100)), (1, us(200)), (9, us(300))]);
    assert_eq!(link.due(), Time::NEVER);
}

#[test]
fn a_long_queue_marks_packets_of_ecn_capable_transports() {
    let mut link = Link::new(&bottleneck(10_000, Some(100)), 1);
    let len = datagram(0).len();
    // The first three find at most 84 bytes; ECT(0), ECT(1), no ECT and CE follow.
    for ecn in [2, 2, 2, 2, 1, 0, 3] {
        link.send(Time::ZERO, datagram(ecn));
    }
    let ecn: Vec<u8> = std::iter::from_fn(|| link.take())
        .map(|frame| {
            let summary = parse_frame(&frame).unwrap();
            assert_eq!(checksum::verify_l3(&frame, &summary), Some(true));
            assert_eq!(frame[ETHERNET_HEADER_LEN + 1] >> 2, 0xb8 >> 2, "the code point stays");
            frame[ETHERNET_HEADER_LEN + 1] & 3
        })
        .collect();
    assert_eq!((len, ecn), (42, vec![2, 2, 2, 3, 3, 0, 3]));
    assert_eq!(link.counters().marked, 3);
}

#[test]
fn a_mark_leaves_a_wrong_checksum_wrong() {
    let mut link = Link::new(&bottleneck(10_000, Some(0)), 1);
    let mut spoilt = datagram(2);
    spoilt[ETHERNET_HEADER_LEN + 8] ^= 1;
    link.send(Time::ZERO, datagram(2));
    link.send(Time::ZERO, spoilt);
    link.take();
    let frame = link.take().unwrap();
    let summary = parse_frame(&frame).unwrap();
    assert_eq!(frame[ETHERNET_HEADER_LEN + 1] & 3, 3);
    assert_eq!(checksum::verify_l3(&frame, &summary), Some(false));
}
