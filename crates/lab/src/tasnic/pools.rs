//! Which FPCs do what: figure 3.2 of the thesis, for as many flow-groups as there are.

use nicforge_platform::sim::npu::PoolPlan;

use super::options::{Layout, TasnicOptions};

/// The queues that each thread of the pre-processing stage serves: of eight, three take frames, three
/// departures, two applications' events.
const PRE_THREADS: [u8; 8] = [0b001, 0b010, 0b100, 0b001, 0b010, 0b001, 0b010, 0b100];
const ALL: u8 = 0b111;

/// The numbers of pools.
#[derive(Clone, Debug)]
pub struct Pools {
    /// Pre-processing, of all flow-groups; all of the work where one FPC does it.
    pub pre: usize,
    /// By flow-group.
    pub protocol: Vec<usize>,
    pub post: Vec<usize>,
    pub dma_rx: usize,
    pub dma_tx: usize,
    pub dma_arx: usize,
    pub dma_atx: usize,
    pub arx: usize,
    pub atx: usize,
    pub queue: usize,
    pub slow: usize,
    /// Stages before and behind the pipeline, if there are any.
    pub stages: Option<usize>,
}

impl Pools {
    /// The pools of a layout, and their plans. The service island comes behind those of the flow-groups. Where there are
    /// stages beside the pipeline, islands have so many FPCs.
    pub fn new(options: &TasnicOptions, beside: Option<usize>) -> (Pools, Vec<PoolPlan>) {
        let threads = options.tasnic_threads;
        let groups = options.tasnic_flow_groups;
        let mut plans = Vec::new();
        let mut add = |name, islands: Vec<usize>, threads: Vec<u8>| {
            plans.push(PoolPlan { name, islands, threads });
            plans.len() - 1
        };
        let islands = |of_each: usize| (0..groups).flat_map(|group| vec![group; of_each]).collect::<Vec<_>>();
        let (pre, protocol, post) = match options.tasnic_layout {
            Layout::RunToCompletion => (add("whole", vec![0], vec![ALL; threads]), Vec::new(), Vec::new()),
            Layout::Pipeline => {
                let serves: Vec<u8> = if threads < 3 { vec![ALL; threads] } else { PRE_THREADS[..threads].to_vec() };
                let pre = add("pre", islands(options.tasnic_pre_fpcs), serves);
                let protocol = (0..groups).map(|group| add("protocol", vec![group], vec![1; threads])).collect();
                let each = options.tasnic_post_fpcs;
                let post = (0..groups).map(|group| add("post", vec![group; each], vec![1; threads])).collect();
                (pre, protocol, post)
            }
        };
        // Those of each flow-group's island that the pipeline leaves.
        let stages = beside.map(|fpcs| {
            let taken = match options.tasnic_layout {
                Layout::RunToCompletion => 1,
                Layout::Pipeline => options.tasnic_pre_fpcs + options.tasnic_post_fpcs + 1,
            };
            add("stages", islands(fpcs.saturating_sub(taken).max(1)), vec![1; threads])
        });
        let mut service = |name, fpcs| add(name, vec![groups; fpcs], vec![0b11; threads]);
        let pools = Pools {
            pre,
            protocol,
            post,
            dma_rx: service("dma-rx", 2),
            dma_tx: service("dma-tx", 2),
            dma_arx: service("dma-arx", 2),
            dma_atx: service("dma-atx", 1),
            arx: service("arx", 1),
            atx: service("atx", 1),
            queue: service("queue-manager", 1),
            slow: service("slow-path", 1),
            stages,
        };
        (pools, plans)
    }
}
