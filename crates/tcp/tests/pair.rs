//! Two stacks over a clean and over a faulty link: byte streams intact, every run ends.

mod common;

use common::{Faults, World, exchange};
use nicforge_tcp::Config;
use nicforge_units::Time;

fn both(config: Config) -> [Config; 2] {
    [config.clone(), config]
}

#[test]
fn a_clean_link_carries_both_streams() {
    for v6 in [false, true] {
        let mut world = World::new(both(Config::default()), Faults::clean(Time::from_us(500)), 1);
        exchange(&mut world, [1_000_000, 300_000], 65536, Time::from_ms(60_000), v6);
        assert_eq!(world.lost, 0);
    }
}

/// Draws a world from a seed: faults, buffers, window scaling, options of both ends, amounts.
fn draw(seed: u64) -> (World, [u64; 2], usize) {
    use rand_core::{RngCore, SeedableRng};
    let mut rng = rand_pcg::Pcg64::seed_from_u64(seed);
    let mut pick = |most: u32| rng.next_u32() % (most + 1);
    let faults = Faults {
        loss: if pick(2) == 0 { 0 } else { pick(150) },
        duplication: pick(50),
        corruption: pick(30),
        reordering: pick(300),
        delay: Time::from_us(u64::from(10 + pick(40_000))),
        marking: pick(300),
    };
    let algorithms = nicforge_tcp::congestion::Algorithm::ALL;
    let mut config = || {
        let mut config = Config {
            timestamps: pick(1) == 0,
            sack: pick(2) > 0,
            dsack: pick(1) == 0,
            window_scaling: pick(1) == 0,
            tail_loss_probe: pick(1) == 0,
            frto: pick(1) == 0,
            pacing: pick(3) == 0,
            ack_every_segment: pick(3) == 0,
            ecn: [nicforge_tcp::config::EcnMode::Off, nicforge_tcp::config::EcnMode::On][pick(1) as usize],
            algorithm: algorithms[pick(algorithms.len() as u32 - 1) as usize],
            ..Config::default()
        };
        config.receive.default = 4096 << pick(8);
        config.send.default = 4096 << pick(6);
        if pick(3) == 0 {
            let paper = Config::paper();
            config.recovery = paper.recovery;
            config.reassembly = paper.reassembly;
            config.sack = false;
        }
        config
    };
    let configs = [config(), config()];
    let bytes = [u64::from(pick(150_000)), u64::from(pick(150_000))];
    let chunk = 1 + pick(8000) as usize;
    (World::new(configs, faults, seed), bytes, chunk)
}

#[test]
fn a_faulty_link_delays_streams_but_never_changes_them() {
    let first = std::env::var("NICFORGE_TCP_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = first.map_or(0..120, |seed: u64| seed..seed + 1);
    for seed in seeds {
        eprintln!("NICFORGE_TCP_SEED={seed}");
        let (mut world, bytes, chunk) = draw(seed);
        exchange(&mut world, bytes, chunk, Time::from_ms(4_000_000), seed % 3 == 0);
    }
}

/// What an outsider sees of a run.
fn seen(seed: u64, fast_path: bool) -> (Time, u64, u64) {
    let (mut world, bytes, chunk) = draw(seed);
    for stack in &mut world.stacks {
        let config = Config { fast_path, ..stack.config().clone() };
        stack.set_config(config);
    }
    exchange(&mut world, bytes, chunk, Time::from_ms(4_000_000), false);
    (world.now, world.frames, world.predicted)
}

#[test]
fn the_fast_path_changes_nothing_but_speed() {
    let mut predicted = 0;
    for seed in 0..60 {
        let (with, without) = (seen(seed, true), seen(seed, false));
        assert_eq!((with.0, with.1), (without.0, without.1), "seed {seed}");
        assert_eq!(without.2, 0);
        predicted += with.2;
    }
    assert!(predicted > 500, "the fast path took only {predicted} segments");
}
