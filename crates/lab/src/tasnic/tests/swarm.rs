//! Seeds through the pipeline.

use nicforge_record::Metrics;
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

use super::{machine, settings};
use crate::run::{RunIo, run_point};
use crate::settings::Settings;

/// Seeds of a test that runs with all others; NICFORGE_SOAK_ROUNDS has it run more.
const ROUNDS: u64 = 24;

/// A pipeline and a link of seed `seed`.
fn drawn(seed: u64) -> Settings {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut pick = |of: usize| random.next_u32() as usize % of;
    let mut settings = settings()
        .with("rpc_connections", 1 + pick(20))
        .with("rpc_in_flight", 1 + pick(6))
        .with("rpc_bytes", 16 + pick(9000))
        .with("rpc_app_cores", 1 + pick(3))
        .with("rpc_work_cycles", [0, 0, 0, 30_000][pick(4)])
        .with("tas_buffer_kib", 4 << pick(4))
        .with("tas_queue_entries", 2 << pick(6))
        .with("congestion_control", ["none", "dctcp", "timely"][pick(3)])
        .with("tcp_ecn", pick(2) == 0)
        .with("tasnic_jitter_us", pick(12) as f64)
        .with("tasnic_evict_every", [0, 1, 3, 10][pick(4)])
        .with("tasnic_doorbell_loss", pick(3) as f64 * 0.02)
        .with("tasnic_doorbell_twice", pick(3) as f64 * 0.2)
        .with("tasnic_threads", 1 + pick(8))
        .with("tasnic_pre_fpcs", 1 + pick(4))
        .with("tasnic_post_fpcs", 1 + pick(4))
        .with("tasnic_flow_groups", 1 + pick(4))
        .with("link_loss", pick(4) as f64 * 0.005)
        .with("link_reordered", pick(4) as f64 * 0.01)
        .with("link_duplicates", pick(3) as f64 * 0.01)
        .with("link_corrupted", pick(3) as f64 * 0.005)
        .with("window_ms", 8.0);
    if pick(3) == 0 {
        // Several, as a lost SYN takes longer than the window to be sent again.
        let (connections, linger) = (6 + pick(10), 0.01 + pick(4) as f64 * 0.2);
        settings = settings.with("rpc_requests", 1 + pick(20)).with("rpc_connections", connections);
        settings = settings.with("tasnic_linger_ms", linger);
    }
    if pick(6) == 0 {
        settings = settings.with("tasnic_layout", "run_to_completion");
    }
    settings
}

fn answers(seed: u64, settings: &Settings) -> Metrics {
    let point = run_point(&machine(), settings, seed, &RunIo::default(), &mut |_, _| {});
    point.unwrap_or_else(|error| panic!("seed {seed}: {error}")).metrics
}

/// Stages of random delay, state evicted over and over, doorbells lost and doubled, queues of few entries, connections that
/// come and go, a bad link: streams intact, and nothing stands still. Inside, each answer's bytes are compared, and no
/// acknowledgment or notification leaves before the DMA of its payload ([`super::super::witness`]).
#[test]
fn streams_are_intact_whatever_the_order_in_which_stages_end() {
    let rounds = std::env::var("NICFORGE_SOAK_ROUNDS").map_or(ROUNDS, |text| text.parse().expect("a number of rounds"));
    let first = std::env::var("NICFORGE_SEED").map_or(1, |text| text.parse().expect("a seed"));
    for seed in first..first + rounds {
        let settings = drawn(seed);
        settings.check(&machine()).unwrap();
        let metrics = answers(seed, &settings);
        // A bad link may hold the largest messages up for long.
        let rate = |metrics: &Metrics| metrics.rpc_mps.unwrap_or(0.0);
        let moves = rate(&metrics) > 0.0 || rate(&answers(seed, &settings.with("window_ms", 80.0))) > 0.0;
        assert!(moves, "seed {seed} stands still: {metrics:?}");
        assert_eq!(metrics.stages["bad_entries"], 0, "seed {seed}");
    }
}
