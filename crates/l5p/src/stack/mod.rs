//! NVMe/TCP over TLS: two contexts of one flow, each recovering by itself (section 3.4.3 of the paper).
//!
//! On receive TLS comes first, and the inner protocol sees its plaintext; on transmit the inner protocol comes first.
//! The inner protocol has a sequence space of its own, which goes on while TLS is in sequence. A gap of TLS is a gap
//! of unknown length within, so the inner context then searches; it names a header to software by the TCP sequence
//! number of the header's first byte.
//!
//! The inner protocol is fed before the end of a record tells what the record carries. When it turns out that a record
//! was padded or carried something else, the inner context searches anew.

pub mod driver;

use crate::context::Context;
use crate::engine::{Descriptor, Engine, Executed, InnerReport, Outcome, Received, Refusal};
use crate::host::HostMemory;
use crate::sequence::Seq;
use crate::tls::inner;

/// A place in both sequence spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked {
    outer: Seq,
    inner: Seq,
}

/// The contexts of a flow's direction: 208 bytes each, and 16 bytes that tie them together.
#[derive(Clone, Copy, Debug)]
pub struct Stacked {
    /// The context of TLS.
    pub outer: Context,
    /// The context of the protocol inside.
    pub inner: Context,
    /// Where the inner stream goes on.
    next: Seq,
    /// The header that software was asked about.
    asked: Option<Asked>,
}

/// What ties a flow's two contexts together where a device keeps them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tie {
    next: Seq,
    asked: Option<Asked>,
}

impl Tie {
    /// For an inner context that begins at a message.
    pub fn new(inner: &Context) -> Self {
        Self { next: inner.tcpsn, asked: None }
    }
}

/// A descriptor for one of the two contexts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StackedDescriptor {
    /// For the inner context alone: parameters, fence, dumps of an inner message's prefix.
    Inner(Descriptor),
    /// For TLS. Dumps and packets go through both.
    Outer(Descriptor),
}

impl Stacked {
    /// Ties two contexts that both begin at a message: the outer at its `tcpsn`, the inner at its own.
    pub fn new(outer: Context, inner: Context) -> Self {
        Self::resume(outer, inner, Tie::new(&inner))
    }

    /// The same contexts again, as they and their tie were kept.
    pub fn resume(outer: Context, inner: Context, tie: Tie) -> Self {
        Self { outer, inner, next: tie.next, asked: tie.asked }
    }

    /// What is to be kept beside the contexts.
    pub fn tie(&self) -> Tie {
        Tie { next: self.next, asked: self.asked }
    }

    /// Processes a received packet.
    pub fn receive(
        &mut self,
        engine: &mut Engine,
        host: &mut dyn HostMemory,
        seq: Seq,
        payload: &mut [u8],
    ) -> Received {
        let before = self.outer;
        let mut received = engine.receive(&mut self.outer, host, seq, payload);
        if received.outcome != Outcome::Offloaded {
            // A packet of the past, or one behind a gap within the record, leaves TLS where it is.
            if self.outer != before {
                self.lose_inner(engine);
            }
            return received;
        }
        let bytes = inner::find(&before, payload);
        if !bytes.is_certain {
            self.lose_inner(engine);
            return received;
        }
        let mut report = InnerReport { is_processed: true, ..InnerReport::default() };
        let mut unplaced_bytes = 0;
        for range in bytes.ranges {
            let place = Asked { outer: seq.plus(range.start), inner: self.next };
            self.next = self.next.plus(range.len());
            let inner = engine.receive(&mut self.inner, host, place.inner, &mut payload[range]);
            report.is_processed &= inner.outcome == Outcome::Offloaded;
            received.placed_bytes += inner.placed_bytes;
            unplaced_bytes += inner.unplaced_bytes;
            if let Some(header) = inner.resync {
                report.resync = self.ask(engine, place, header);
            }
        }
        report.is_placed = report.is_processed && received.placed_bytes > 0 && unplaced_bytes == 0;
        received.inner = report;
        received
    }

    /// Translates a guess. One that began in an earlier packet has no place in this one, and is given up.
    fn ask(&mut self, engine: &mut Engine, place: Asked, header: Seq) -> Option<Seq> {
        let within = header.since(place.inner);
        if within < 0 {
            self.lose_inner(engine);
            return None;
        }
        let outer = place.outer.plus(within as usize);
        self.asked = Some(Asked { outer, inner: header });
        Some(outer)
    }

    fn lose_inner(&mut self, engine: &mut Engine) {
        self.asked = None;
        engine.lose_place(&mut self.inner);
    }

    /// Software's answer about an inner header, which it names as the NIC did.
    pub fn inner_resync_response(&mut self, engine: &mut Engine, outer: Seq, number: Option<u64>) {
        let inner = self.asked.filter(|asked| asked.outer == outer).map(|asked| asked.inner);
        // A place that nobody asked about is counted as such.
        let inner = inner.unwrap_or(Seq(self.inner.resync.0.wrapping_add(1)));
        engine.resync_response(&mut self.inner, inner, number);
    }

    /// Executes a descriptor.
    ///
    /// # Errors
    ///
    /// [`Refusal`]; then nothing leaves.
    pub fn execute(
        &mut self,
        engine: &mut Engine,
        host: &mut dyn HostMemory,
        descriptor: StackedDescriptor,
    ) -> Result<Executed, Refusal> {
        let inner = &mut self.inner;
        match descriptor {
            StackedDescriptor::Inner(descriptor) => engine.execute(inner, host, descriptor),
            StackedDescriptor::Outer(Descriptor::Dump(piece)) => {
                engine.with_prefix(&mut self.outer, host, piece, |engine, outer, host, bytes| {
                    fill_inner(engine, outer, inner, host, bytes)?;
                    engine.advance(outer, host, bytes)
                })?;
                Ok(Executed::Done)
            }
            StackedDescriptor::Outer(Descriptor::Packet { seq, mut payload }) => {
                if seq == self.outer.tcpsn {
                    fill_inner(engine, &self.outer, inner, host, &mut payload)?;
                }
                engine.execute(&mut self.outer, host, Descriptor::Packet { seq, payload })
            }
            StackedDescriptor::Outer(descriptor) => engine.execute(&mut self.outer, host, descriptor),
        }
    }
}

/// Processes the inner bytes of plaintext that TLS will encrypt.
fn fill_inner(
    engine: &mut Engine,
    outer: &Context,
    inner: &mut Context,
    host: &mut dyn HostMemory,
    payload: &mut [u8],
) -> Result<(), Refusal> {
    for range in inner::find(outer, payload).ranges {
        engine.advance(inner, host, &mut payload[range])?;
    }
    Ok(())
}
