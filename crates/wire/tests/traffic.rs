//! Traffic sources: frames are valid to an independent decoder, times and shares are as asked for.

mod common;

use common::shared_data;
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use nicforge_units::{BitRate, Time};
use nicforge_wire::capture::{CaptureFormat, CaptureReader, CaptureWriter};
use nicforge_wire::headers::MacAddress;
use nicforge_wire::rss::{IndirectionTable, Toeplitz};
use nicforge_wire::traffic::{
    ArrivalModel, FlowChoice, FlowSpace, FlowTuple, Line, QueueShares, Replay, ReplayTiming, Shares, SizeModel,
    Synthetic, SyntheticConfig, Target, TrafficSource,
};
use nicforge_wire::{checksum, parse_frame};

fn config(sizes: SizeModel, choice: FlowChoice) -> SyntheticConfig {
    SyntheticConfig {
        seed: 1,
        line: Line::ethernet(BitRate::from_gbps(100.0)),
        arrival: ArrivalModel::Constant { rate: BitRate::from_gbps(80.0) },
        sizes,
        flows: FlowSpace::new(1, 1000).unwrap(),
        choice,
        shares: None,
        source: MacAddress([2, 0, 0, 0, 0, 1]),
        destination: MacAddress([2, 0, 0, 0, 0, 2]),
        zero_payload: false,
    }
}

fn source(config: SyntheticConfig) -> TrafficSource {
    TrafficSource::Synthetic(Box::new(Synthetic::new(config).unwrap()))
}

/// Decodes a frame with another implementation and checks both checksums with it.
fn decode(frame: &[u8]) -> FlowTuple {
    let packet = SlicedPacket::from_ethernet(frame).unwrap();
    let Some(NetSlice::Ipv4(ip)) = &packet.net else {
        panic!("not IPv4");
    };
    let Some(TransportSlice::Udp(udp)) = &packet.transport else {
        panic!("not UDP");
    };
    let header = ip.header().to_header();
    assert_eq!(header.calc_header_checksum(), header.header_checksum);
    let udp_header = udp.to_header();
    let checksum = udp_header.calc_checksum_ipv4(&header, udp.payload()).unwrap();
    assert_eq!(checksum, udp_header.checksum);
    FlowTuple {
        source: header.source.into(),
        destination: header.destination.into(),
        source_port: udp.source_port(),
        destination_port: udp.destination_port(),
    }
}

#[test]
fn synthetic_frames_are_valid_to_an_independent_decoder() {
    for sizes in [SizeModel::Fixed(1500), SizeModel::Fixed(60), SizeModel::Imix] {
        let config = config(sizes, FlowChoice::Zipf { s: 0.99 });
        let flows = config.flows;
        let mut source = source(config);
        for _ in 0..2_000 {
            let arrival = source.next().unwrap();
            assert_eq!(decode(arrival.bytes), flows.tuple(arrival.flow.unwrap()));
            let summary = parse_frame(arrival.bytes).unwrap();
            let verdict = checksum::verify(arrival.bytes, &summary);
            assert_eq!((verdict.l3, verdict.l4), (Some(true), Some(true)));
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_frames_at_the_same_times() {
    let run = |seed| {
        let mut config = config(SizeModel::Imix, FlowChoice::Uniform);
        config.seed = seed;
        config.arrival = ArrivalModel::Poisson { rate: BitRate::from_gbps(50.0) };
        let mut source = source(config);
        let next = |_| {
            let arrival = source.next().unwrap();
            (arrival.time, arrival.bytes.to_vec())
        };
        (0..500).map(next).collect::<Vec<_>>()
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}

#[test]
fn the_rate_is_of_frame_bytes_and_the_next_time_is_known_before() {
    let mut source = source(config(SizeModel::Fixed(1500), FlowChoice::RoundRobin));
    for frame in 0..100 {
        let announced = source.next_time();
        let arrival = source.next().unwrap();
        assert_eq!(arrival.flow, Some(frame));
        assert_eq!(arrival.time, announced);
        // 12 000 bits at 80 Gbit/s take 150 ns.
        assert_eq!(arrival.time, Time::from_ns(150) * frame);
    }
}

/// Where a NIC of eight queues steers a flow.
fn queue_of_flow(flow: &FlowTuple) -> u16 {
    let hash =
        Toeplitz::default().hash_ipv4_ports(flow.source, flow.destination, flow.source_port, flow.destination_port);
    IndirectionTable::spread_over(8).queue(hash)
}

/// Where it steers a frame.
fn queue_of_frame(frame: &[u8]) -> u16 {
    let hash = Toeplitz::default().hash(&parse_frame(frame).unwrap());
    IndirectionTable::spread_over(8).queue(hash)
}

#[test]
fn a_target_queue_gets_its_share_with_its_own_size() {
    let mut config = config(SizeModel::Fixed(1500), FlowChoice::Uniform);
    let to_queue_3 = |flow: &FlowTuple| queue_of_flow(flow) == 3;
    let target = Target::new(&config.flows, 0.31, Some(64), to_queue_3).unwrap();
    config.shares = Some(Shares::Target(target));
    let mut source = source(config);
    let mut hits = 0;
    for _ in 0..20_000 {
        let arrival = source.next().unwrap();
        let is_target = queue_of_frame(arrival.bytes) == 3;
        assert_eq!(arrival.bytes.len(), if is_target { 64 } else { 1500 });
        hits += u32::from(is_target);
    }
    assert!((6_000..6_400).contains(&hits), "{hits}");
}

/// The queues that 20 000 frames are steered to, of which the first gets 4.33 times as many as the last.
fn queues_of_falling_shares(seed: u64, choice: FlowChoice) -> Vec<u16> {
    let mut config = config(SizeModel::Fixed(64), choice);
    config.seed = seed;
    let shares = QueueShares::falling(&config.flows, 8, 4.33, queue_of_flow).unwrap();
    config.shares = Some(Shares::Queues(shares));
    let mut source = source(config);
    let queue = |_| queue_of_frame(source.next().unwrap().bytes);
    (0..20_000).map(queue).collect()
}

#[test]
fn queues_get_shares_that_fall_evenly() {
    for choice in [FlowChoice::Uniform, FlowChoice::RoundRobin, FlowChoice::Zipf { s: 0.99 }] {
        let queues = queues_of_falling_shares(1, choice);
        for queue in 0..8u16 {
            // 4.33 down to 1 in seven steps, of 8 times their mean.
            let share = (4.33 - 3.33 / 7.0 * f64::from(queue)) / (4.0 * 5.33);
            let expected = 20_000.0 * share;
            let count = queues.iter().filter(|&&of| of == queue).count() as f64;
            // Four standard deviations.
            let most = 4.0 * (expected * (1.0 - share)).sqrt();
            assert!((count - expected).abs() < most, "{queue}: {count}");
        }
        assert_eq!(queues, queues_of_falling_shares(1, choice));
        assert_ne!(queues, queues_of_falling_shares(2, choice));
    }
}

/// Three frames, 1, 2 and 3 us after each other.
fn small_capture() -> Vec<u8> {
    let mut writer = CaptureWriter::new(Vec::new(), CaptureFormat::Pcap).unwrap();
    for (us, len) in [(10, 100), (11, 200), (13, 300)] {
        writer.write(Time::from_us(us), &vec![7; len]).unwrap();
    }
    writer.finish().unwrap()
}

fn replay_times(timing: ReplayTiming, loops: u32) -> Vec<f64> {
    let capture = small_capture();
    let reader = CaptureReader::new(&capture[..]).unwrap();
    let line = Line::ethernet(BitRate::from_gbps(10.0));
    let replay = Replay::load(reader, line, timing, loops).unwrap();
    let mut source = TrafficSource::Replay(Box::new(replay));
    let mut times = Vec::new();
    while let Some(arrival) = source.next() {
        times.push(arrival.time.as_ns());
    }
    assert_eq!(source.next_time(), Time::NEVER);
    times
}

#[test]
fn a_replay_keeps_scales_or_paces_its_times() {
    let recorded = replay_times(ReplayTiming::Recorded, 2);
    // One loop lasts 3 us and a mean gap of 1.5 us.
    assert_eq!(recorded, [0.0, 1000.0, 3000.0, 4500.0, 5500.0, 7500.0]);
    // 600 bytes at 1 Gbit/s last 4.8 us: 16/15 of what was recorded.
    let scaled = replay_times(ReplayTiming::Scaled(BitRate::from_gbps(1.0)), 2);
    for (time, expected) in scaled.into_iter().zip([0.0, 1066.7, 3200.0, 4800.0]) {
        assert!((time - expected).abs() < 1.0);
    }
    let paced = replay_times(ReplayTiming::Paced(BitRate::from_gbps(1.0)), 2);
    assert_eq!(paced, [0.0, 800.0, 2400.0, 4800.0, 5600.0, 7200.0]);
    // Faster than the line: 124, 224 and 324 bytes at 10 Gbit/s.
    let limited = replay_times(ReplayTiming::Paced(BitRate::from_gbps(100.0)), 1);
    assert_eq!(limited, [0.0, 99.2, 278.4]);
}

#[test]
fn a_replay_knows_how_long_it_lasts() {
    let capture = small_capture();
    let reader = CaptureReader::new(&capture[..]).unwrap();
    let line = Line::ethernet(BitRate::from_gbps(10.0));
    let replay = Replay::load(reader, line, ReplayTiming::Recorded, 1).unwrap();
    let rate = |gbps| ReplayTiming::Scaled(BitRate::from_gbps(gbps));
    let lasts = |timing, loops| replay.lasts(timing, loops).as_ns();
    // As above: 3 us, and 4.5 us for each loop before the last.
    assert_eq!(lasts(ReplayTiming::Recorded, 1), 3000.0);
    assert_eq!(lasts(ReplayTiming::Recorded, 3), 12_000.0);
    assert_eq!(lasts(rate(1.0), 2), 9600.0);
    // What the line takes for 124, 224 and 324 bytes.
    assert_eq!(lasts(rate(100.0), 2), 1075.2);
    let slow = ReplayTiming::Scaled(BitRate::from_bits_per_second(1));
    assert_eq!(replay.lasts(slow, u32::MAX), Time::NEVER);
}

#[test]
fn real_captures_replay_or_are_refused() {
    let line = Line::ethernet(BitRate::from_gbps(100.0));
    for (path, frames, over_long, padded) in [
        ("pcap/mixed/snabb-sanitized4k.pcap", 4096, 0, 0),
        ("pcap/mixed/ndpi-gnutella.pcap", 3905, 0, 1),
        ("pcap/bulk/tcpdump-bigtcp-ipv6.pcap", 0, 1, 0),
    ] {
        let Some(path) = shared_data(path) else {
            continue;
        };
        let reader = CaptureReader::open(&path).unwrap();
        let timing = ReplayTiming::Scaled(BitRate::from_gbps(50.0));
        let Ok(replay) = Replay::load(reader, line, timing, 1) else {
            assert_eq!((frames, over_long), (0, 1));
            continue;
        };
        assert_eq!(replay.frames(), frames);
        assert_eq!(replay.counts().over_long, over_long);
        assert_eq!(replay.counts().padded, padded);
    }
}
