//! The way in: a frame comes from the wire, is parsed, finds its queue, and goes to the host or waits.

use nicforge_platform::{Dma, Moment};
use nicforge_units::{Bytes, Time};
use nicforge_wire::checksum::ChecksumVerdict;
use nicforge_wire::rss::Toeplitz;
use nicforge_wire::{FrameError, FrameSummary, checksum, parse_headers, parse_plain, walk_headers};

use super::{Nic, RUN_AHEAD};
use crate::stage::Frame;
use crate::{Arriving, DropCause, PortId, RxFlags, TxOffload, Waiting};

/// What the parser finds out about a frame.
#[derive(Clone, Copy, Debug)]
struct Parsed {
    summary: FrameSummary,
    /// Where the headers end.
    headers: usize,
    rss_hash: u32,
    flags: RxFlags,
    /// As [`Arriving`] has it.
    segment: u16,
}

/// Parses a frame that is all zeros from `head` on, and verifies its checksums. All headers lie before.
#[inline]
fn parse(rss: &Toeplitz, frame: &[u8], head: usize) -> Result<Parsed, FrameError> {
    let Some(plain) = parse_plain(&frame[..head], frame.len(), rss) else {
        return parse_any(rss, frame, head);
    };
    Ok(Parsed {
        summary: plain.summary,
        headers: plain.headers_end,
        rss_hash: plain.rss_hash,
        flags: RxFlags::of(plain.verdict),
        segment: 0,
    })
}

#[inline(never)]
fn parse_any(rss: &Toeplitz, frame: &[u8], head: usize) -> Result<Parsed, FrameError> {
    let summary = walk_headers(&frame[..head], frame.len())?;
    Ok(Parsed {
        headers: summary.headers_end(&frame[..head]),
        rss_hash: rss.hash(&summary),
        flags: RxFlags::of(checksum::verify(&frame[..head], &summary)),
        segment: 0,
        summary,
    })
}

impl Parsed {
    /// The frame with these parts on its way to the host: `from` says when its first bit came in, and on
    /// which port.
    #[inline(always)]
    fn arriving<'a>(&self, bytes: &'a [u8], head: usize, stamp: Time, port: PortId, queue: u16) -> Arriving<'a> {
        Arriving {
            mark: 0,
            bytes,
            head,
            headers: self.headers,
            stamp,
            rss_hash: self.rss_hash,
            flags: self.flags,
            segment: self.segment,
            port,
            queue,
        }
    }
}

impl<D: Dma> Nic<D> {
    /// Parses a frame that is all zeros from `head` on, and verifies its checksums. All headers
    /// lie before.
    #[inline]
    fn parse(&self, frame: &[u8], head: usize) -> Result<Parsed, FrameError> {
        parse(&self.rss, frame, head)
    }

    /// Parses a frame of which `left` was left to do when it came.
    fn parse_unfinished(&self, frame: &[u8], left: TxOffload) -> Result<Parsed, FrameError> {
        if !left.l4_checksum {
            return self.parse(frame, frame.len());
        }
        let summary = parse_headers(frame, frame.len())?;
        let verdict = ChecksumVerdict { l3: checksum::verify_l3(frame, &summary), l4: Some(true) };
        Ok(Parsed {
            headers: summary.headers_end(frame),
            rss_hash: self.rss.hash(&summary),
            flags: RxFlags::of(verdict).with(RxFlags::L4_BEGUN),
            segment: left.segment,
            summary,
        })
    }

    /// A frame that a stage sends to the host, steered.
    pub(super) fn frame_of<'a>(&mut self, dma: &mut D, bytes: &'a [u8], stamp: Time) -> Result<Frame<'a>, FrameError> {
        let parsed = self.parse(bytes, bytes.len())?;
        let queue = self.steering.queue_of(dma, bytes, &parsed.summary, &self.rss, parsed.rss_hash);
        let arriving = parsed.arriving(bytes, bytes.len(), stamp, self.spec.port, queue);
        Ok(Frame::arrived(&arriving, parsed.summary))
    }

    /// A frame came in from the wire, first bit at `stamp`, last bit at the cursor of `dma`.
    /// Whatever happens to it is counted.
    pub fn receive(&mut self, dma: &mut D, frame: &[u8], stamp: Time) {
        self.receive_padded(dma, frame, frame.len(), stamp);
    }

    /// As [`receive`](Self::receive), for a frame that is all zeros from `head` on. All headers
    /// lie before.
    pub fn receive_padded(&mut self, dma: &mut D, frame: &[u8], head: usize, stamp: Time) {
        if !self.admit(dma, frame, stamp) {
            return;
        }
        // By reference, as it is long and read where it was stored.
        match &self.parse(frame, head) {
            Ok(parsed) => self.take(dma, frame, head, parsed, stamp),
            Err(error) => self.drop_unsteered(dma, stamp, error.name()),
        }
    }

    /// As [`receive`](Self::receive), for a frame that was on no wire: its sender left to its NIC what
    /// `left` says, and the NIC that sends it will do it ([`Packet::offload`](crate::Packet::offload)).
    pub fn receive_unfinished(&mut self, dma: &mut D, frame: &[u8], left: TxOffload, stamp: Time) {
        if !self.admit(dma, frame, stamp) {
            return;
        }
        match self.parse_unfinished(frame, left) {
            Ok(parsed) => self.take(dma, frame, frame.len(), &parsed, stamp),
            Err(error) => self.drop_unsteered(dma, stamp, error.name()),
        }
    }

    fn drop_unsteered(&mut self, dma: &mut D, stamp: Time, cause: &'static str) {
        self.unsteered.count(cause);
        self.note(dma, stamp, Moment::Dropped(cause));
    }

    /// Whether the FIFO has room.
    #[inline]
    fn admit(&mut self, dma: &mut D, frame: &[u8], stamp: Time) -> bool {
        self.note(dma, stamp, Moment::Came { fifo: self.held() });
        self.counters.frames += 1;
        self.counters.bytes += frame.len() as u64;
        let len = Bytes(frame.len() as u64);
        let accepted = self.fifo.accepts(dma.now(), len);
        if !accepted {
            self.drop_unsteered(dma, stamp, DropCause::of_fifo(len, self.spec.rx_fifo).0);
        }
        accepted
    }

    #[inline]
    fn take(&mut self, dma: &mut D, frame: &[u8], head: usize, parsed: &Parsed, stamp: Time) {
        let queue = self.steering.queue_of(dma, frame, &parsed.summary, &self.rss, parsed.rss_hash);
        let arriving = parsed.arriving(frame, head, stamp, self.spec.port, queue);
        let state = &mut self.queues[usize::from(arriving.queue)];
        // Stages hear of frames whose queue is closed, too.
        if state.closed && self.stages.is_empty() {
            state.drops.count("queue_closed");
            self.note(dma, stamp, Moment::Dropped("queue_closed"));
            return;
        }
        let waiting = self.receive.waiting(arriving.queue);
        state.see(waiting);
        let (queue, Waiting { entries: waiting, of }) = (arriving.queue, waiting);
        self.note(dma, stamp, Moment::Steered { queue, waiting, of });
        let came = dma.now();
        let until = (came + self.spec.rx_pipeline).max(self.steering.known_at());
        let later = self.receive_free > until + RUN_AHEAD;
        if self.held.len() == 0 && !later {
            self.deliver(dma, &arriving, Some(&parsed.summary), until);
            // Where delivery takes no time nothing waits, and the next frame need not find it gone.
            if dma.now() > came {
                self.fifo.hold(Bytes(frame.len() as u64), dma.now());
            }
        } else {
            self.wait(&arriving, &parsed.summary, until);
        }
    }

    /// The frame waits in the FIFO until its turn comes; the parser is done with it at `parsed`.
    fn wait(&mut self, arriving: &Arriving<'_>, summary: &FrameSummary, parsed: Time) {
        self.fifo.hold(Bytes(arriving.bytes.len() as u64), Time::NEVER);
        self.held.push(arriving, Some(summary).filter(|_| !self.stages.is_empty()), parsed);
    }
}
