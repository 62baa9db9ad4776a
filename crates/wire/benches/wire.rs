//! What every simulated packet costs at the wire: nanoseconds per call, the best of ten rounds.
//!
//!     cargo bench -p nicforge-wire

use std::hint::black_box;
use std::time::Instant;

use nicforge_units::BitRate;
use nicforge_wire::headers::MacAddress;
use nicforge_wire::rss::Toeplitz;
use nicforge_wire::traffic::{
    ArrivalModel, FlowChoice, FlowSpace, Line, SizeModel, Synthetic, SyntheticConfig, TrafficSource,
};
use nicforge_wire::{checksum, parse_frame};

const ROUNDS: u32 = 10;
const CALLS: u32 = 200_000;

fn measure(name: &str, mut call: impl FnMut()) {
    let round = |_| {
        let begin = Instant::now();
        for _ in 0..CALLS {
            call();
        }
        begin.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    let best = (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min);
    println!("{name:40} {best:8.1} ns");
}

fn source(bytes: u32, arrival: ArrivalModel, choice: FlowChoice) -> TrafficSource {
    let config = SyntheticConfig {
        seed: 1,
        line: Line::ethernet(BitRate::from_gbps(100.0)),
        arrival,
        sizes: SizeModel::Fixed(bytes),
        flows: FlowSpace::new(1, 1_000_000).expect("some flows"),
        choice,
        shares: None,
        source: MacAddress([2, 0, 0, 0, 0, 1]),
        destination: MacAddress([2, 0, 0, 0, 0, 2]),
        zero_payload: false,
    };
    TrafficSource::Synthetic(Box::new(Synthetic::new(config).expect("a valid source")))
}

fn main() {
    let rate = BitRate::from_gbps(90.0);
    let constant = ArrivalModel::Constant { rate };
    let mut one = source(1500, constant, FlowChoice::Uniform);
    let mut frame = one.next().expect("a frame").bytes.to_vec();
    let summary = parse_frame(&frame).expect("a valid frame");
    let toeplitz = Toeplitz::default();
    measure("parse, 1500 B UDP", || {
        black_box(parse_frame(black_box(&frame))).expect("a valid frame");
    });
    measure("Toeplitz, IPv4 addresses and ports", || {
        black_box(toeplitz.hash(black_box(&summary)));
    });
    measure("checksum, 1500 B", || {
        black_box(checksum::checksum(black_box(&frame)));
    });
    measure("verify both checksums, 1500 B", || {
        black_box(checksum::verify(black_box(&frame), &summary));
    });
    measure("fill both checksums, 1500 B", || {
        checksum::fill(black_box(&mut frame), &summary, true, true);
    });
    for bytes in [60, 1500] {
        for (name, arrival, choice) in [
            ("constant, uniform", constant, FlowChoice::Uniform),
            ("Poisson, uniform", ArrivalModel::Poisson { rate }, FlowChoice::Uniform),
            ("constant, Zipf 0.99", constant, FlowChoice::Zipf { s: 0.99 }),
        ] {
            let mut source = source(bytes, arrival, choice);
            measure(&format!("next frame, {bytes} B, {name}"), || {
                black_box(source.next());
            });
        }
    }
}
