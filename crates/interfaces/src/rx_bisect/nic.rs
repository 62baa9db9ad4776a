//! The NIC's half.

use std::ops::Range;

use nicforge_nic::{
    Arriving, Completion, CompletionWriter, DropCause, Fit, Lending, Pool, Queues, ReceiveHalf, Recoverable, Waiting,
};
use nicforge_platform::Dma;
use nicforge_units::{Bytes, Time};

use super::layout::{AxEntry, notice, packet, returned};
use super::policy::Chooser;
use super::{BxRing, Consumption, Options};
use crate::priv_ring::fetch::Fetcher;

/// The Bx ring has no entry for the packet.
pub const BX_FULL: DropCause = DropCause("bx_full");

/// An allocation ring, and the Bx ring that reports what was consumed from it.
#[derive(Debug)]
struct Ax {
    buffers: Fetcher,
    linked: usize,
}

/// A reception ring.
#[derive(Debug)]
pub struct Bx {
    completions: CompletionWriter,
    entries: u64,
    /// Entries that are written or promised, counted as positions; and those that software has
    /// consumed, as its doorbell tells.
    promised: u64,
    consumed: u64,
    first: u64,
    /// The associated Ax rings that are linked to this ring, and those that are not.
    own: Vec<u16>,
    others: Vec<u16>,
    /// Notices that wait for a packet, how many may, and until when. Their entries are promised.
    held_back: Vec<Completion>,
    held_back_max: usize,
    due: Time,
}

impl Bx {
    /// Ring `number`, described by `ring`, whose positions count from `first`. Of notices it holds back as many
    /// entries as fit into `batch` bytes, and no more than a quarter of it: until software sees them, packets
    /// cannot have their entries.
    pub fn new(
        completions: CompletionWriter,
        number: usize,
        ring: &BxRing,
        first: u64,
        linked: &[usize],
        batch: Bytes,
    ) -> Bx {
        let batch = (batch.0 / nicforge_nic::COMPLETION_BYTES) as usize;
        let associated = ring.associated.iter().map(|&ax| ax as u16);
        let (own, others) = associated.partition(|&ax| linked[usize::from(ax)] == number);
        Bx {
            completions,
            entries: ring.entries as u64,
            promised: first,
            consumed: first,
            first,
            own,
            others,
            held_back: Vec::new(),
            held_back_max: batch.min(ring.entries / 4).max(1),
            due: Time::NEVER,
        }
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.promised - self.consumed == self.entries
    }

    /// Writes `entry`, and what was held back in front of it.
    #[inline(always)]
    fn write<D: Dma>(&mut self, dma: &mut D, entry: Completion) {
        self.promised += 1;
        if self.held_back.is_empty() {
            self.completions.publish(dma, &entry);
            return;
        }
        self.write_behind(dma, entry);
    }

    /// Writes `entry` behind what was held back.
    #[inline(never)]
    fn write_behind<D: Dma>(&mut self, dma: &mut D, entry: Completion) {
        self.held_back.push(entry);
        self.write_held_back(dma);
    }

    fn restart<D: Dma + ?Sized>(&mut self, dma: &mut D) {
        self.completions.restart(dma);
        (self.promised, self.consumed) = (self.first, self.first);
        self.held_back.clear();
        self.due = Time::NEVER;
    }

    fn write_held_back<D: Dma>(&mut self, dma: &mut D) {
        self.completions.publish_all(dma, &self.held_back);
        self.held_back.clear();
        self.due = Time::NEVER;
    }

    /// Writes `entry` when a packet comes, or at `due`.
    fn hold_back(&mut self, entry: Completion, due: Time) {
        self.promised += 1;
        self.held_back.push(entry);
        self.due = self.due.min(due);
    }
}

/// All rings of one NIC.
#[derive(Debug)]
pub struct NicHalf {
    ax: Vec<Ax>,
    bx: Vec<Bx>,
    /// For each Bx ring.
    choosers: Vec<Chooser>,
    pool: Pool,
    /// Whether an own descriptor on its way is taken before another's at hand.
    own_first: bool,
    consumption: Consumption,
    /// The Bx ring linked to the Ax ring that last named no buffer.
    blamed: usize,
    /// Packets for Bx ring `b` in buffers of an Ax ring linked to Bx ring `a`: `lent[a][b]`, since
    /// either began.
    lent: Vec<Vec<u64>>,
    /// What each Bx ring borrowed, and the Ax rings linked to it lent.
    lending: Vec<Lending>,
    /// No Bx ring has to be written earlier.
    due: Time,
}

impl NicHalf {
    /// Ax rings each with the Bx ring it is linked to, and Bx rings. Buffers must be `pool`'s.
    pub fn new(ax: Vec<(Fetcher, usize)>, bx: Vec<Bx>, pool: Pool, options: &Options) -> NicHalf {
        let ring = |(buffers, linked)| Ax { buffers, linked };
        let chooser = |number| Chooser::new(options.choice, options.seed.wrapping_add(number));
        NicHalf {
            ax: ax.into_iter().map(ring).collect(),
            lent: vec![vec![0; bx.len()]; bx.len()],
            lending: vec![Lending::default(); bx.len()],
            choosers: (0..bx.len() as u64).map(chooser).collect(),
            bx,
            pool,
            own_first: options.own_first,
            consumption: options.consumption,
            blamed: 0,
            due: Time::NEVER,
        }
    }

    /// The Ax ring whose buffer a packet for Bx ring `target` goes into: an own one first. A
    /// descriptor that is here is better than one that the packet would wait for, unless own ones are
    /// first in any case.
    #[inline]
    fn choose(&mut self, target: usize, now: Time) -> Result<u16, DropCause> {
        let ready = |ring: &Fetcher| ring.is_ready(now);
        let own_first = self.own_first;
        let chosen = self
            .own(target, ready)
            .or_else(|| self.own(target, |ring| own_first && ring.available() > 0))
            .or_else(|| self.borrow(target, ready))
            .or_else(|| self.own(target, |ring| ring.available() > 0))
            .or_else(|| self.borrow(target, |_| true));
        match chosen {
            None => Err(DropCause::NO_DESCRIPTOR),
            Some(_) if self.bx[target].is_full() => Err(BX_FULL),
            Some(ring) => Ok(ring),
        }
    }

    /// The first of the own Ax rings that `fits`.
    #[inline]
    fn own(&self, target: usize, fits: impl Fn(&Fetcher) -> bool) -> Option<u16> {
        let mut own = self.bx[target].own.iter().copied();
        own.find(|&ring| fits(&self.ax[usize::from(ring)].buffers))
    }

    /// One of the others' Ax rings, of those that `fits` says. One that is linked to a full Bx
    /// ring does not count, as its consumption could not be told.
    fn borrow(&mut self, target: usize, fits: impl Fn(&Fetcher) -> bool) -> Option<u16> {
        let available = |ring: u16| {
            let ax = &self.ax[usize::from(ring)];
            if fits(&ax.buffers) && !self.bx[ax.linked].is_full() { ax.buffers.available() } else { 0 }
        };
        self.choosers[target].choose(&self.bx[target].others, available)
    }

    /// Tells the Bx ring that `used` is linked to.
    // Never inlined: only borrowed buffers need it, and it has `write` in it once more.
    #[inline(never)]
    fn tell<D: Dma>(&mut self, dma: &mut D, linked: usize, used: AxEntry) {
        let bx = &mut self.bx[linked];
        match self.consumption {
            Consumption::Parallel => bx.write(dma, notice(used)),
            Consumption::Batched(time) => {
                bx.hold_back(notice(used), dma.now() + time);
                // Without a descriptor, or without an entry, no packet comes that would bring the notices to a
                // core that is waiting to put in more.
                let dry = self.ax[usize::from(used.ring)].buffers.available() == 0;
                if dry || bx.is_full() || bx.held_back.len() >= bx.held_back_max {
                    bx.write_held_back(dma);
                }
                self.due = self.due.min(bx.due);
            }
        }
    }
}

impl Queues for NicHalf {
    fn queues(&self) -> u16 {
        self.bx.len() as u16
    }

    fn waiting(&self, queue: u16) -> Waiting {
        let bx = &self.bx[usize::from(queue)];
        Waiting { entries: bx.promised - bx.consumed, of: bx.entries }
    }

    fn lending(&self, queue: u16) -> Option<Lending> {
        Some(self.lending[usize::from(queue)])
    }
}

impl<D: Dma> ReceiveHalf<D> for NicHalf {
    #[inline(always)]
    fn receive(&mut self, dma: &mut D, frame: &Arriving<'_>) -> Result<(), DropCause> {
        let target = usize::from(frame.queue);
        let chosen = self.choose(target, dma.now())?;
        let ax = &mut self.ax[usize::from(chosen)];
        let Some((here, descriptor)) = ax.buffers.peek(dma) else {
            return Err(DropCause::NO_DESCRIPTOR);
        };
        let linked = ax.linked as u16;
        let fit = self.pool.fit(dma, &(linked..linked + 1), descriptor.mbuf, descriptor.room.into(), frame.bytes.len());
        if fit == Fit::TooLong {
            return Err(DropCause::OVERSIZED);
        }
        dma.wait_until(here);
        let linked = usize::from(linked);
        let used = AxEntry { ring: chosen, entry: ax.buffers.pop() };
        let later = ax.buffers.later(frame, |later| later.mbuf);
        if fit == Fit::NoBuffer {
            self.blamed = linked;
            self.bx[linked].write(dma, returned(used, descriptor.mbuf));
            return Err(DropCause::BAD_DESCRIPTOR);
        }
        frame.write_to(dma, descriptor.mbuf, later);
        ax.buffers.expect_next(dma, frame, |next| next.mbuf);
        self.bx[target].write(dma, packet(frame, used, descriptor.mbuf));
        if linked != target {
            self.lent[linked][target] += 1;
            self.lending[linked].lent += 1;
            self.lending[target].borrowed += 1;
            self.tell(dma, linked, used);
        }
        Ok(())
    }

    fn write_register(&mut self, dma: &mut D, index: u32, value: u64) -> bool {
        let index = index as usize;
        if let Some(ax) = self.ax.get_mut(index) {
            return ax.buffers.doorbell(dma, value);
        }
        match self.bx.get_mut(index - self.ax.len()) {
            Some(bx) => {
                let written = bx.promised - bx.held_back.len() as u64;
                let possible = (bx.consumed..=written).contains(&value);
                if possible {
                    bx.consumed = value;
                }
                possible
            }
            None => false,
        }
    }

    fn due(&self) -> Time {
        self.due
    }

    fn advance(&mut self, dma: &mut D) {
        let now = dma.now();
        for bx in self.bx.iter_mut().filter(|bx| bx.due <= now) {
            bx.write_held_back(dma);
        }
        self.due = self.bx.iter().map(|bx| bx.due).fold(Time::NEVER, Time::min);
    }

    fn recovery(&self) -> Option<&dyn Recoverable> {
        Some(self)
    }

    fn recoverable(&mut self) -> Option<&mut dyn Recoverable> {
        Some(self)
    }
}

impl Recoverable for NicHalf {
    /// Buffers of others that hold packets for these queues are not given back here: who knows
    /// which buffers a core had takes them back.
    fn restart(&mut self, dma: &mut dyn Dma, queues: Range<u16>) -> Option<Vec<u32>> {
        let mut registers = Vec::new();
        for (number, ax) in self.ax.iter_mut().enumerate() {
            if queues.contains(&(ax.linked as u16)) {
                ax.buffers.restart();
                registers.push(number as u32);
            }
        }
        for queue in queues {
            self.bx[usize::from(queue)].restart(dma);
            self.lent[usize::from(queue)].fill(0);
            for lent in &mut self.lent {
                lent[usize::from(queue)] = 0;
            }
            registers.push(self.ax.len() as u32 + u32::from(queue));
        }
        Some(registers)
    }

    fn lent(&self, from: u16, to: u16) -> i64 {
        let (from, to) = (usize::from(from), usize::from(to));
        self.lent[from][to] as i64 - self.lent[to][from] as i64
    }

    fn blamed(&self, _queue: u16) -> Range<u16> {
        let blamed = self.blamed as u16;
        blamed..blamed + 1
    }

    fn rung_by(&self, index: u32) -> Range<u16> {
        let index = index as usize;
        let queue = match self.ax.get(index) {
            Some(ax) => ax.linked,
            None => index - self.ax.len(),
        };
        if queue < self.bx.len() { queue as u16..queue as u16 + 1 } else { 0..0 }
    }
}
