//! Stages before and behind the TCP pipeline, on FPCs that it leaves free: the scenario's `stages`, such as a P4 program,
//! copies of frames, traces, limits. Frames enter and leave the pipeline in the order in which they came to the stages.

use nicforge_nic::TxOffload;
use nicforge_nic::stage::{Alone, Passed};
use nicforge_platform::sim::npu::Reorder;
use nicforge_platform::sim::{DmaPort, Host as SimHost, Lent, SimDma};
use nicforge_units::{Cycles, Frequency, Time};

use super::nic::{Event, Job, Nic};
use super::work::{Kind, Slab, Work};

/// Which way a frame goes.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// From the wire, with its number there.
    In(u64),
    /// To the wire, with its number on the way out, and the event whose buffer it is in.
    Out(u64, Option<Kind>),
}

/// A frame at the stages.
#[derive(Debug)]
struct Passing {
    way: Way,
    /// The frame itself at first, then what became of it.
    passed: Passed,
    /// It waits so long beside the FPCs.
    waits: Time,
}

/// Stages, and the FPCs that they run on.
pub struct Extensions {
    stages: Alone<SimDma>,
    clock: Frequency,
    passing: Slab<Passing>,
    /// Frames from the wire among them.
    coming: u64,
    out: Reorder<u32>,
}

impl Extensions {
    /// `stages` on FPCs of this clock.
    pub fn new(stages: Alone<SimDma>, clock: Frequency) -> Extensions {
        Extensions { stages, clock, passing: Slab::default(), coming: 0, out: Reorder::default() }
    }

    /// Frames from the wire that are at the stages.
    pub fn coming(&self) -> u64 {
        self.coming
    }

    /// Frames at the stages.
    pub fn inside(&self) -> usize {
        self.passing.len()
    }

    /// The stages' counters.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        self.stages.counters()
    }

    /// Frame `number` waits so long beside the FPCs.
    pub fn waits(&mut self, number: u32) -> Time {
        self.passing.get(number).map_or(Time::ZERO, |passing| passing.waits)
    }
}

impl Nic {
    /// A frame from the wire, number `arrival`, meets the stages. Gives it back where there are none.
    pub(super) fn stages_take(&mut self, frame: Vec<u8>, arrival: u64) -> Option<Vec<u8>> {
        if let Some(extensions) = &mut self.extensions {
            extensions.coming += 1;
        }
        self.pass(frame, |_| Way::In(arrival))
    }

    /// A frame to the wire, likewise.
    pub(super) fn stages_send(&mut self, frame: Vec<u8>, buffer: Option<Kind>) -> Option<Vec<u8>> {
        self.pass(frame, |out| Way::Out(out.number(), buffer))
    }

    fn pass(&mut self, frame: Vec<u8>, way: impl FnOnce(&mut Reorder<u32>) -> Way) -> Option<Vec<u8>> {
        let Some(extensions) = &mut self.extensions else { return Some(frame) };
        let passing = Passing { way: way(&mut extensions.out), passed: Passed::On(frame), waits: Time::ZERO };
        let number = extensions.passing.put(passing);
        self.npu.at(Time::ZERO, Event::Stages(number));
        None
    }

    /// The stages see frame `number`; then FPCs are busy with it for as long as that takes.
    pub(super) fn run_stages(&mut self, number: u32, host: &mut Lent<SimHost>, port: &mut Lent<DmaPort>) {
        let now = self.npu.now();
        let Some(extensions) = &mut self.extensions else { return };
        let Some(passing) = extensions.passing.get(number) else { return };
        let Passed::On(frame) = std::mem::replace(&mut passing.passed, Passed::Gone) else { return };
        let mut dma = SimDma::on(host, port, now);
        let left = TxOffload { l3_checksum: true, l4_checksum: true, ..TxOffload::default() };
        let (passed, took) = match passing.way {
            Way::In(_) => extensions.stages.ingress(&mut *dma, frame),
            Way::Out(..) => extensions.stages.egress(&mut *dma, frame, left),
        };
        (passing.passed, passing.waits) = (passed, took.waits);
        let cycles = Cycles(extensions.clock.cycles_in(took.work).round() as u64);
        let mut own = Vec::new();
        while let Some(frame) = extensions.stages.next_sent(&mut *dma) {
            own.push((frame, true));
        }
        while let Some(frame) = extensions.stages.next_delivered(&mut *dma) {
            own.push((frame, false));
        }
        drop(dma);
        let script = self.scripts.stages(cycles);
        if let Some(pool) = self.pools.stages {
            self.npu.put(pool, 0, Job::Stages(number), script);
        }
        for (frame, leaves) in own {
            if leaves {
                self.put_on_wire(frame, None);
            } else {
                self.counters.again += 1;
                self.mac_takes_again(frame);
            }
        }
    }

    /// Frame `number` has passed the stages.
    pub(super) fn passed(&mut self, number: u32) {
        let Some(extensions) = &mut self.extensions else { return };
        match extensions.passing.get(number).map(|passing| passing.way) {
            Some(Way::In(arrival)) => {
                extensions.coming -= 1;
                if let Some(passing) = extensions.passing.take(number) {
                    self.enter_behind_stages(passing.passed, arrival);
                }
            }
            Some(Way::Out(order, _)) => {
                extensions.out.put(order, number);
                self.let_out();
            }
            None => {}
        }
    }

    fn enter_behind_stages(&mut self, passed: Passed, arrival: u64) {
        match passed {
            Passed::On(frame) => return self.begin(Work { kind: Kind::Rx, frame, arrival, ..Work::default() }),
            Passed::Dropped(cause) => self.drops.count(cause.0),
            Passed::Gone => {}
        }
        self.arrival_drops += 1;
        self.never_comes(arrival);
    }

    fn let_out(&mut self) {
        while let Some(extensions) = &mut self.extensions
            && let Some(number) = extensions.out.take()
        {
            let Some(Passing { way: Way::Out(_, buffer), passed, .. }) = extensions.passing.take(number) else {
                return;
            };
            match passed {
                Passed::On(frame) => {
                    self.put_on_wire(frame, buffer);
                    continue;
                }
                Passed::Dropped(cause) => self.drops.count(cause.0),
                Passed::Gone => {}
            }
            buffer.into_iter().for_each(|kind| self.buffer_is_free(kind));
        }
    }
}
