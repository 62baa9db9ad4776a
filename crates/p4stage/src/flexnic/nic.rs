//! The NIC's half: the program's DMA pipeline, and what it has of each queue.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use nicforge_flexnic::p4::entries;
use nicforge_flexnic::p4::{BufferState, DmaOutcome, NicFields, ObjectState, Pipeline, Shared, Transfer};
use nicforge_interfaces::priv_ring::{Fetcher, Ring, RxDescriptor};
use nicforge_nic::stage::Stage;
use nicforge_nic::{Arriving, DropCause, Fit, Pool, Queues, ReceiveHalf, Recoverable, Waiting, data_of};
use nicforge_platform::{Addr, Dma, Run};
use nicforge_units::{Bytes, Time};

use super::engine::{Engine, EngineCounters, Reach};
use super::layout::{ENTRY_BYTES, Entry, HOST_REGISTERS, RULE_NUMBER};
use super::stage::FlexStage;
use crate::stage::cause_of;

/// The program dropped the packet, or asked for nothing that tells the host of it.
const DROPPED: DropCause = DropCause("p4_drop");

/// A frame that the DMA pipeline sends: the port, its bytes, when the first bit of the packet behind it came in.
pub(super) type Reply = (u32, Vec<u8>, Time);
/// Frames that wait for the stage that sends them.
pub(super) type Replies = Arc<Mutex<Vec<Reply>>>;
/// Frames that wait at most; there is one for each packet that came in, and the stage takes them at every step.
const REPLIES_MAX: usize = 4096;
/// So many waited.
const TOO_MANY_REPLIES: DropCause = DropCause("too_many_replies");

/// One queue, as the NIC sees it.
#[derive(Debug)]
pub struct Queue {
    ring: Ring<Entry>,
    buffers: Ring<RxDescriptor>,
    /// The empty buffers of free entries, read ahead of need.
    entries: Fetcher<RxDescriptor>,
    head: u64,
}

impl Queue {
    /// An empty queue, whose buffers are fetched `read` bytes at a time.
    pub fn new(ring: Ring<Entry>, buffers: Ring<RxDescriptor>, read: Bytes) -> Queue {
        Queue { ring, buffers, entries: Fetcher::new(buffers, read), head: ring.first }
    }
}

/// The program's registers that the NIC knows, by number of the object.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Head and tail of each queue.
    pub head: usize,
    /// Tail.
    pub tail: usize,
    /// Those that software writes.
    pub host: [Option<usize>; HOST_REGISTERS],
}

impl Known {
    /// Sets a queue's elements of the program's registers to zero: those as long as `head` have one for each queue.
    fn forget(&self, pipeline: &mut Pipeline, queue: usize) {
        let length = |pipeline: &mut Pipeline, number| match pipeline.object(number) {
            Some(ObjectState::Register { stride: 1, words }) => words.len(),
            _ => 0,
        };
        let queues = length(pipeline, self.head);
        for number in 0..pipeline.ir().objects.len() {
            if length(pipeline, number) == queues {
                set(pipeline, number, queue, 0);
            }
        }
    }
}

/// All queues of one NIC, and the program.
pub struct NicHalf {
    pub(super) shared: Shared,
    pub(super) known: Known,
    pub(super) queues: Vec<Queue>,
    pub(super) pool: Pool,
    pub(super) engine: Engine,
    pub(super) replies: Replies,
    /// Taken by the device.
    pub(super) stage: Option<FlexStage>,
    pub(super) packet: Vec<u8>,
    pub(super) transfers: Vec<Transfer>,
}

/// Writes element `index` of the register that is object `number`; false if it has no such element.
pub(super) fn set(pipeline: &mut Pipeline, number: usize, index: usize, value: u64) -> bool {
    match pipeline.object(number) {
        Some(ObjectState::Register { stride: 1, words }) => match words.get_mut(index) {
            Some(word) => {
                *word = value;
                true
            }
            None => false,
        },
        _ => false,
    }
}

impl Queues for NicHalf {
    fn queues(&self) -> u16 {
        self.queues.len() as u16
    }

    fn waiting(&self, queue: u16) -> Waiting {
        let entries = &self.queues[usize::from(queue)].entries;
        Waiting { entries: entries.used_up(), of: entries.entries() }
    }
}

/// The end that a packet came to in the pipeline.
enum End {
    Host,
    Reply(u32),
    Refused(DropCause),
}

impl<D: Dma> ReceiveHalf<D> for NicHalf {
    fn receive(&mut self, dma: &mut D, frame: &Arriving<'_>) -> Result<(), DropCause> {
        let queue = &mut self.queues[usize::from(frame.queue)];
        let entry = queue.ring.descriptor(queue.ring.index(queue.head));
        let at_head = queue.entries.peek(dma);
        let (mut reach, mut fields) = (Reach::default(), fields_of(frame));
        if let Some((here, free)) = at_head {
            dma.wait_until(here);
            let fit = self.pool.fit(dma, &frame.own(), free.mbuf, free.room.into(), frame.bytes.len());
            (reach.entry, fields.entry) = (Some(entry), entry.0);
            fields.state = match fit {
                Fit::Good => {
                    reach.buffer = Run { at: data_of(free.mbuf), len: free.room.min(self.pool.room()) as usize };
                    fields.buffer = reach.buffer.at.0;
                    BufferState::Fits
                }
                Fit::TooLong => BufferState::TooShort,
                Fit::NoBuffer => BufferState::Invalid,
            };
        }
        let end = self.run(dma.now(), frame, &fields);
        let checked = self.engine.check(self.packet.len(), &self.transfers, &reach);
        let made = checked.map(|()| self.engine.make(dma, &mut self.packet, &self.transfers, &reach));
        let queue = &mut self.queues[usize::from(frame.queue)];
        if made.is_ok_and(|made| made.announced) {
            queue.entries.pop();
            queue.head += 1;
        }
        // The head in NIC memory is what the queue's is, whatever the program wrote there.
        set(&mut self.shared.lock(), self.known.head, frame.queue.into(), queue.head);
        let announced = made?.announced;
        match end {
            End::Refused(cause) => Err(cause),
            End::Reply(port) => self.reply(port, frame.stamp, announced),
            End::Host if announced => Ok(()),
            End::Host => Err(DROPPED),
        }
    }

    fn write_register(&mut self, dma: &mut D, index: u32, value: u64) -> bool {
        let (queue, which) = (index as usize % self.queues.len(), index as usize / self.queues.len());
        if which == 0 {
            let known = self.queues[queue].entries.doorbell(dma, value);
            return known && set(&mut self.shared.lock(), self.known.tail, queue, value);
        }
        if index as usize == (1 + HOST_REGISTERS) * self.queues.len() {
            self.add_rule(dma, Addr(value & !RULE_NUMBER));
            return true;
        }
        let register = self.known.host.get(which - 1).copied().flatten();
        register.is_some_and(|register| set(&mut self.shared.lock(), register, queue, value))
    }

    fn stage(&mut self) -> Option<Box<dyn Stage<D>>> {
        self.stage.take().map(|stage| -> Box<dyn Stage<D>> { Box::new(stage) })
    }

    fn recovery(&self) -> Option<&dyn Recoverable> {
        Some(self)
    }

    fn recoverable(&mut self) -> Option<&mut dyn Recoverable> {
        Some(self)
    }
}

fn fields_of(frame: &Arriving<'_>) -> NicFields {
    NicFields {
        port: frame.port.0.into(),
        stamp: frame.stamp.as_ps(),
        hash: frame.rss_hash,
        flags: frame.flags.0,
        queue: frame.queue,
        segment: frame.segment,
        mark: frame.mark,
        ..NicFields::default()
    }
}

impl NicHalf {
    /// The program, for controllers in the same process.
    pub fn program(&self) -> &Shared {
        &self.shared
    }

    /// The rule at `at` comes into its table, between two packets; one that cannot is counted.
    fn add_rule<D: Dma>(&mut self, dma: &mut D, at: Addr) {
        let text = self.engine.rule(dma, at);
        let added = text.is_some_and(|text| entries::load(&mut self.shared.lock(), &text).is_ok());
        let EngineCounters { rules, bad_rules, .. } = &*self.engine.counters;
        if added { rules } else { bad_rules }.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes a frame through the DMA pipeline; what it asks for is in `packet` and `transfers`.
    fn run(&mut self, now: Time, frame: &Arriving<'_>, fields: &NicFields) -> End {
        self.packet.clear();
        self.transfers.clear();
        let mut pipeline = self.shared.lock();
        pipeline.set_time(now.as_us() as u64);
        let (bytes, transfers, end) = match pipeline.dma(frame.bytes, fields) {
            DmaOutcome::Transfers(bytes, transfers) => (bytes, transfers, End::Host),
            DmaOutcome::Reply(bytes, transfers, port) => (bytes, transfers, End::Reply(port)),
            DmaOutcome::Refused(why, bytes, transfers) => (bytes, transfers, End::Refused(cause_of(why))),
            DmaOutcome::Gone => return End::Refused(DROPPED),
        };
        self.packet.extend_from_slice(bytes);
        self.transfers.extend_from_slice(transfers);
        end
    }

    /// The packet leaves by `port`; where the host hears of it too, it counts as delivered.
    fn reply(&mut self, port: u32, stamp: Time, announced: bool) -> Result<(), DropCause> {
        let mut replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = replies.len() < REPLIES_MAX;
        if fits {
            replies.push((port, std::mem::take(&mut self.packet), stamp));
        }
        match announced {
            true => Ok(()),
            false if fits => Err(DropCause::ANSWERED),
            false => Err(TOO_MANY_REPLIES),
        }
    }
}

impl Recoverable for NicHalf {
    fn restart(&mut self, dma: &mut dyn Dma, queues: Range<u16>) -> Option<Vec<u32>> {
        let count = self.queues.len() as u32;
        let mut pipeline = self.shared.lock();
        for number in queues.clone().map(usize::from) {
            let queue = &mut self.queues[number];
            queue.entries.restart();
            queue.head = queue.ring.first;
            for index in 0..queue.ring.entries {
                dma.write(queue.ring.descriptor(index), &[0; ENTRY_BYTES as usize]);
                dma.write(queue.buffers.descriptor(index), &[0; size_of::<RxDescriptor>()]);
            }
            self.known.forget(&mut pipeline, number);
            set(&mut pipeline, self.known.head, number, queue.head);
            set(&mut pipeline, self.known.tail, number, queue.head);
        }
        let registers = queues
            .clone()
            .flat_map(|queue| (0..=HOST_REGISTERS as u32).map(move |which| which * count + u32::from(queue)));
        let rules = queues.contains(&0).then_some((1 + HOST_REGISTERS as u32) * count);
        Some(registers.chain(rules).collect())
    }

    fn rung_by(&self, index: u32) -> Range<u16> {
        let count = self.queues.len() as u32;
        if index == count * (1 + HOST_REGISTERS as u32) {
            return 0..1;
        }
        if index < count * (1 + HOST_REGISTERS as u32) {
            let queue = (index % count) as u16;
            return queue..queue + 1;
        }
        0..0
    }
}
