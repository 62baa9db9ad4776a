use nicforge_units::{Cycles, Frequency, Time};

use super::*;

fn config() -> NpuConfig {
    let zero = Cycles(0);
    NpuConfig {
        core: FpcConfig { islands: 2, fpcs: 12, threads: 8, clock: Frequency::from_ghz(1.0), switch: zero },
        memory: NpuMemory {
            cam_entries: 2,
            lookup_entries: 4,
            cls_flows: 4,
            emem_flows: 8,
            local: Cycles(1),
            cls: Cycles(50),
            ctm: Cycles(80),
            imem: Cycles(200),
            emem: Cycles(300),
            dram: Cycles(500),
            command: Cycles(1),
            bulk: 128,
            ctm_buffers: 8,
            tx_credits: 8,
        },
        dma: NpuDma {
            in_flight: 4,
            payload_rx: 3,
            payload_tx: 3,
            arx: 2,
            atx: 1,
            slow: 1,
            read_op: Time::from_ns(16),
            write_op: Time::from_ns(21),
            per_kib: Time::from_ns(100),
            write_signal: Time::from_ns(200),
            reorder: Time::from_ns(25),
            doorbell_poll: Cycles(50),
        },
        firmware: Firmware {
            pre_rx: zero,
            pre_tx: zero,
            pre_ac: zero,
            protocol_rx: zero,
            protocol_tx: zero,
            protocol_ac: zero,
            post_rx: zero,
            post_tx: zero,
            post_ac: zero,
            dma: zero,
            context: zero,
            queue: zero,
        },
    }
}

/// 100 cycles of computing and two commands of 200.
const SCRIPT: Script = Script {
    ops: &[Op { command: Command::Imem, mark: 0 }, Op { command: Command::Imem, mark: 0 }],
    cycles: Cycles(100),
};

/// When the last of `items` is done by `fpcs` cores with `threads` threads.
fn finished(items: u32, fpcs: usize, threads: usize) -> (Time, StageTime) {
    let plan = PoolPlan { name: "stage", islands: vec![0; fpcs], threads: vec![1; threads] };
    let mut processor: Processor<u32, ()> = Processor::new(&config(), &[plan]);
    (0..items).for_each(|item| processor.put(0, 0, item, SCRIPT));
    let mut done = 0;
    while let Some(Happened::Done { .. }) = processor.next(Time::NEVER) {
        done += 1;
    }
    assert_eq!(done, items);
    let (_, _, _, time) = processor.stages().next().unwrap();
    (processor.now(), time)
}

#[test]
fn threads_hide_latency_until_the_core_is_the_limit() {
    let one = finished(80, 1, 1).0;
    assert_eq!(one, Time::from_ns(80 * 500), "a thread waits for each command");
    let eight = finished(80, 1, 8).0;
    assert!(eight >= Time::from_ns(80 * 100) && eight < Time::from_ns(80 * 100 + 500), "{eight}");
    let both = finished(80, 4, 8).0;
    assert!(both < Time::from_ns(80 * 25 + 600), "{both}");
}

#[test]
fn all_time_of_threads_is_charged() {
    let (end, time) = finished(80, 1, 1);
    assert_eq!(time.compute_ps + time.memory_ps, end.as_ps());
    assert_eq!((time.items, time.core_ps, time.blocked_ps), (80, 0, 0));
    let (_, time) = finished(80, 1, 8);
    assert!(time.core_ps > 0 && time.queued_ps > 0, "{time:?}");
}

#[test]
fn threads_take_work_of_their_own_queues_only() {
    let plan = PoolPlan { name: "stage", islands: vec![0], threads: vec![0b01, 0b10] };
    let mut processor: Processor<u32, ()> = Processor::new(&config(), &[plan]);
    for item in 0..4 {
        processor.put(0, 1, item, SCRIPT);
    }
    assert_eq!(processor.waiting(0, 1), 3);
    processor.put(0, 0, 9, SCRIPT);
    let mut order = Vec::new();
    while let Some(Happened::Done { job, .. }) = processor.next(Time::NEVER) {
        order.push(job);
    }
    assert_eq!(order, [0, 9, 1, 2, 3]);
}

#[test]
fn a_state_is_fetched_from_where_it_was_evicted_to() {
    let memory = config().memory;
    let (mut cache, mut emem) = (StateCache::new(&memory), Direct::new(memory.emem_flows));
    let mut look = |flow| cache.look_up(flow, &mut emem);
    assert_eq!([0, 1, 0].map(&mut look), [Command::Dram, Command::Dram, Command::Local]);
    assert_eq!(look(2), Command::Dram, "1 goes to CLS");
    assert_eq!(look(1), Command::Cls, "0 goes to CLS");
    cache.evict_all();
    assert_eq!(cache.look_up(1, &mut emem), Command::Emem);
}

#[test]
fn quotas_and_priorities_bound_what_is_in_flight() {
    let mut engine = DmaEngine::new(&config().dma);
    for number in 0..5 {
        engine.request(DmaKind::PayloadRx, number);
    }
    engine.request(DmaKind::Arx, 10);
    engine.request(DmaKind::Atx, 20);
    let begun: Vec<_> = std::iter::from_fn(|| engine.begin(Time::ZERO)).collect();
    let order: Vec<i32> = begun.iter().map(|(_, number, _)| *number).collect();
    assert_eq!(order, [10, 0, 1, 2, 20]);
    assert_eq!(begun[3].2, Time::from_ns(63), "one write every 21 ns");
    engine.complete(DmaKind::Arx);
    assert!(engine.begin(Time::ZERO).is_none(), "the quota of payload is used up");
    engine.complete(DmaKind::PayloadRx);
    assert_eq!(engine.begin(Time::ZERO).map(|(_, number, _)| number), Some(3));
}

#[test]
fn items_leave_in_the_order_of_their_numbers() {
    let mut order = Reorder::default();
    let numbers: Vec<u64> = (0..3).map(|_| order.number()).collect();
    order.put(numbers[2], 'c');
    assert_eq!((order.take(), order.inside()), (None, 3));
    order.put(numbers[0], 'a');
    assert_eq!(order.take(), Some('a'));
    order.put(numbers[1], 'b');
    assert_eq!(std::iter::from_fn(|| order.take()).collect::<String>(), "bc");
    assert_eq!((order.waited, order.inside()), (1, 0));
}
