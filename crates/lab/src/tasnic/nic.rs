//! The NIC: its processor, the events in its pipeline, and what each of them does next.

use std::collections::{BTreeMap, VecDeque};

use nicforge_interfaces::kernel::Frame;
use nicforge_nic::DropCounters;
use nicforge_nic::stage::Alone;
use nicforge_platform::sim::npu::{
    Cam, Direct, DmaEngine, Happened, NpuConfig, Processor, Reorder, StateCache, ThreadId,
};
use nicforge_platform::sim::{DmaPort, Host as SimHost, Lent, NicConfig, SimDma};
use nicforge_units::Time;
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

use super::contexts::Contexts;
use super::extensions::Extensions;
use super::flow::NicFlow;
use super::mac::Mac;
use super::options::{Layout, TasnicOptions};
use super::pools::Pools;
use super::queue_manager::{QueueManager, Update};
use super::scripts::{self, Scripts};
use super::slow_queues::SlowQueues;
use super::transfer::Operation;
use super::witness::Witness;
use super::work::{Kind, Slab, Work};
use crate::tas::pages::SharedPages;

/// Queues of the pre-processing pool.
pub const FROM_WIRE: usize = 0;
pub const TO_SEND: usize = 1;
pub const FROM_APPLICATION: usize = 2;

/// A piece of work of a pool's thread.
#[derive(Clone, Copy, Debug)]
pub enum Job {
    /// An event, in one of the stages.
    Work(u32),
    /// The queue manager hears of a flow.
    Update(Update),
    /// The queue manager lets a flow send a segment.
    Depart(u32),
    /// A DMA manager begins an operation.
    Issue(u32),
    /// An operation is complete.
    Finished(u32),
    /// An entry for an application.
    Entry(u32),
    /// A context's doorbell.
    Doorbell(usize),
    /// A frame for the slow path.
    Exception(u32),
    /// A frame at the stages before and behind the pipeline.
    Stages(u32),
}

/// Events of the NIC beside its threads.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A register write arrives.
    Register(u32, u64),
    /// The reordering block lets events go.
    Reordered,
    /// A frame comes to the stages before and behind the pipeline.
    Stages(u32),
    /// A DMA operation begins on the bus.
    Transfer(u32),
    /// One is complete.
    Complete(u32),
    /// The wheel turns.
    Wheel,
    /// A frame has left, and its buffer is free.
    Left(Kind),
    /// A frame has passed the MAC.
    Arrived,
    /// Idle contexts' queues are looked at.
    Idle,
}

/// A flow-group: what an island keeps.
pub struct Group {
    /// State before external memory.
    pub cache: StateCache,
    /// Post-processing's part in CLS.
    pub post: Direct,
    /// Events on their way out, in the protocol stage's order.
    pub out: Reorder<u32>,
}

/// Counts of the NIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NicCounters {
    /// Events by kind: RX, AC, TX, RETX.
    pub events: [u64; 4],
    /// Frames and bytes received.
    pub arrived: (u64, u64),
    /// Frames and bytes sent.
    pub sent: (u64, u64),
    /// TX events that found nothing to send.
    pub idle_departures: u64,
    /// Fast retransmissions.
    pub went_back: u64,
    /// Entries of applications that name what is not theirs or more than there is.
    pub bad_entries: u64,
    /// Frames given to the slow path, and frames that came back from there.
    pub exceptions: u64,
    pub again: u64,
    /// Connections that came, and that were taken away.
    pub opened: u64,
    pub closed: u64,
    /// Probes of closed windows.
    pub probes: u64,
    /// Bytes of records that the NIC read again.
    pub read_again: u64,
}

/// The parts of a NIC.
pub struct NicPlan<'a> {
    pub npu: &'a NpuConfig,
    pub nic: &'a NicConfig,
    pub options: TasnicOptions,
    /// Before and behind the pipeline.
    pub stages: Option<Alone<SimDma>>,
    /// Where received payload lies, if connections share its memory.
    pub pages: Option<SharedPages>,
    pub seed: u64,
}

/// A NIC that runs TCP's fast path on its processor.
pub struct Nic {
    pub npu: Processor<Job, Event>,
    pub(super) pools: Pools,
    pub(super) scripts: Scripts,
    pub(super) options: TasnicOptions,
    pub(super) works: Slab<Work>,
    pub(super) operations: Slab<Operation>,
    pub flows: Vec<NicFlow>,
    pub(super) table: BTreeMap<u64, u32>,
    pub groups: Vec<Group>,
    /// Local memory of pre- and post-processing, by group: look-ups and states that the group's FPCs keep.
    pub(super) look_ups: Vec<Direct>,
    pub(super) post_local: Vec<Cam>,
    pub(super) emem: Direct,
    pub(super) arrivals: Reorder<u32>,
    pub(super) reordered: Time,
    pub(super) reorder_every: Time,
    pub(super) dma: DmaEngine<u32>,
    pub(super) queue: QueueManager,
    pub contexts: Contexts,
    pub(super) mac: Mac,
    pub slow: SlowQueues,
    pub counters: NicCounters,
    pub drops: DropCounters,
    /// Of them frames that never became events.
    pub(super) arrival_drops: u64,
    /// Frames that left, with the time of their last bit.
    pub sent: VecDeque<(Time, Frame)>,
    pub(super) random: Pcg64,
    /// Looks at the order of what leaves.
    pub(super) witness: Witness,
    pub(super) extensions: Option<Extensions>,
    pub pages: Option<SharedPages>,
}

impl Nic {
    /// An idle NIC without connections.
    pub fn new(plan: NicPlan<'_>, contexts: Contexts, slow: SlowQueues) -> Nic {
        let (npu, options) = (plan.npu, plan.options);
        let groups = options.tasnic_flow_groups;
        let (pools, plans) = Pools::new(&options, plan.stages.is_some().then_some(npu.core.fpcs));
        let group = |_| Group {
            cache: StateCache::new(&npu.memory),
            post: Direct::new(npu.memory.cls_flows),
            out: Reorder::default(),
        };
        let (pre, post) = (options.tasnic_pre_fpcs, options.tasnic_post_fpcs);
        let mut processor = Processor::new(npu, &plans);
        processor.at(contexts.idle_every, Event::Idle);
        Nic {
            npu: processor,
            pools,
            scripts: Scripts(npu.firmware.clone()),
            works: Slab::default(),
            operations: Slab::default(),
            flows: Vec::new(),
            table: BTreeMap::new(),
            groups: (0..groups).map(group).collect(),
            look_ups: vec![Direct::new(npu.memory.lookup_entries); groups * pre],
            post_local: vec![Cam::new(npu.memory.cam_entries); groups * post],
            emem: Direct::new(npu.memory.emem_flows),
            arrivals: Reorder::default(),
            reordered: Time::ZERO,
            reorder_every: npu.dma.reorder,
            dma: DmaEngine::new(&npu.dma),
            queue: QueueManager::new(npu.memory.tx_credits),
            contexts,
            mac: Mac::new(plan.nic, npu.memory.ctm_buffers / 2 * groups),
            slow,
            counters: NicCounters::default(),
            drops: DropCounters::default(),
            arrival_drops: 0,
            sent: VecDeque::new(),
            random: Pcg64::seed_from_u64(plan.seed),
            witness: Witness::default(),
            pages: plan.pages,
            extensions: plan.stages.map(|stages| Extensions::new(stages, npu.core.clock)),
            options,
        }
    }

    /// Does everything that is due by `until`.
    pub fn run(&mut self, host: &mut Lent<SimHost>, port: &mut Lent<DmaPort>, until: Time) {
        while let Some(happened) = self.npu.next(until) {
            match happened {
                Happened::Mark { thread, job: Job::Work(work), mark } => self.step(thread, work, mark),
                Happened::Mark { thread, job: Job::Stages(frame), .. } => {
                    let waits = self.extensions.as_mut().map_or(Time::ZERO, |extensions| extensions.waits(frame));
                    self.npu.proceed(thread, waits);
                }
                Happened::Mark { thread, .. } => self.npu.proceed(thread, Time::ZERO),
                Happened::Done { pool, job } => self.done(pool, job),
                Happened::Event(event) => self.take_event(event, host, port),
            }
        }
    }

    fn take_event(&mut self, event: Event, host: &mut Lent<SimHost>, port: &mut Lent<DmaPort>) {
        match event {
            Event::Register(index, value) => self.write_register(index, value),
            Event::Stages(frame) => self.run_stages(frame, host, port),
            Event::Reordered => self.release_arrivals(),
            Event::Transfer(operation) => self.transfer(operation, host, port),
            Event::Complete(operation) => self.complete(operation),
            Event::Wheel => {
                self.queue.wheel_turned();
                self.let_depart();
            }
            Event::Left(kind) => self.buffer_is_free(kind),
            Event::Arrived => self.admit(),
            Event::Idle => self.look_at_idle_contexts(),
        }
    }

    /// A thread has computed a marked step of event `work`.
    fn step(&mut self, thread: ThreadId, work: u32, mark: u8) {
        let jitter = self.jitter();
        match mark {
            scripts::PRE => {
                let longer = self.pre(work, thread);
                self.npu.proceed(thread, longer + jitter);
            }
            scripts::LOCK => self.lock(thread, work),
            scripts::PROCESS => {
                self.process(work);
                self.npu.proceed(thread, Time::ZERO);
            }
            scripts::LOOK_UP => {
                let longer = self.look_up_post(work, thread);
                self.npu.proceed(thread, longer + jitter);
            }
            scripts::POST => {
                self.post(work);
                self.npu.proceed(thread, jitter);
            }
            _ => self.move_and_wait(thread, work),
        }
    }

    /// A random delay of a stage, for tests of the order.
    pub(super) fn jitter(&mut self) -> Time {
        let most = Time::from_seconds(self.options.tasnic_jitter_us * 1e-6).as_ps();
        if most == 0 { Time::ZERO } else { Time::from_ps(self.random.next_u64() % most) }
    }

    /// Whether something with this probability happens.
    pub(super) fn happens(&mut self, share: f64) -> bool {
        share > 0.0 && (self.random.next_u32() as f64) < share * f64::from(u32::MAX)
    }

    /// A thread of `pool` has done its work.
    fn done(&mut self, pool: usize, job: Job) {
        match job {
            Job::Work(work) if pool == self.pools.pre => self.pre_done(work),
            Job::Work(work) if self.pools.protocol.contains(&pool) => self.enter_post(work),
            Job::Work(work) if self.pools.post.contains(&pool) => self.post_done(work),
            // One FPC has done all of it.
            Job::Work(work) => self.is_complete(work),
            Job::Update(update) => {
                self.queue.update(&update, self.npu.now());
                self.release(update.flow);
                self.let_depart();
            }
            Job::Depart(flow) => {
                self.begin(Work { kind: Kind::Tx, flow, ..Work::default() });
                self.release(flow);
            }
            Job::Issue(operation) => self.request(operation),
            Job::Finished(operation) => self.finished(operation),
            Job::Entry(entry) => self.place_entry(entry),
            Job::Doorbell(context) => self.take_entries(context),
            Job::Exception(exception) => self.pass_to_host(exception),
            Job::Stages(frame) => self.passed(frame),
        }
    }

    /// A new event enters the pipeline.
    pub(super) fn begin(&mut self, work: Work) {
        let kind = work.kind;
        self.counters.events[kind as usize] += 1;
        let evict = self.options.tasnic_evict_every;
        if evict > 0 && self.counters.events.iter().sum::<u64>().is_multiple_of(evict) {
            self.evict_all();
        }
        let queue = match kind {
            Kind::Rx => FROM_WIRE,
            Kind::Tx => TO_SEND,
            Kind::Ac | Kind::Retx => FROM_APPLICATION,
        };
        // Whose a frame is, pre-processing finds out.
        if kind != Kind::Rx {
            self.hold(work.flow);
        }
        let job = Job::Work(self.works.put(work));
        let script = match self.options.tasnic_layout {
            Layout::Pipeline => self.scripts.pre(kind),
            Layout::RunToCompletion => self.scripts.whole(kind),
        };
        self.npu.put(self.pools.pre, queue, job, script);
    }

    /// All state in caches goes back to external memory.
    fn evict_all(&mut self) {
        for group in &mut self.groups {
            group.cache.evict_all();
            group.post.clear();
        }
        self.look_ups.iter_mut().for_each(Direct::clear);
        self.post_local.iter_mut().for_each(Cam::clear);
    }

    /// DMA operations so far.
    pub(super) fn dma_operations(&self) -> u64 {
        self.dma.operations
    }

    /// Frames that came and are no events yet.
    pub(super) fn waiting_frames(&self) -> u64 {
        self.mac.waiting() as u64 + self.extensions.as_ref().map_or(0, Extensions::coming)
    }

    /// Events, operations and frames inside.
    pub fn inside(&self) -> usize {
        let at_stages = self.extensions.as_ref().map_or(0, Extensions::inside);
        self.works.len() + self.operations.len() + self.mac.waiting() + at_stages
    }
}
