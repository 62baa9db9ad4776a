//! Stage `tcpdump`: copies the beginnings of frames that a filter wants, both ways, into a ring in host memory.

use nicforge_nic::stage::{Frame, Services, Stage, Verdict};
use nicforge_options::{Allowed, Form, options};
use nicforge_platform::{Addr, AddressSpace, Dma, Ground};
use nicforge_tcp::watch::filter::Filter;
use nicforge_tcp::watch::frame::Seen;
use nicforge_units::Cycles;

use crate::{BuiltStage, StageError, StageKind, StagePlan};

/// Records in the ring; the oldest are overwritten.
const RECORDS: u64 = 4096;
/// Before a record's bytes: time in nanoseconds, way, bytes of the frame, bytes here.
const HEADER_BYTES: u64 = 24;
/// Instructions for a frame: headers found, verdict.
const FRAME_CYCLES: u64 = 40;
/// For each question of the filter: a field compared.
const QUESTION_CYCLES: u64 = 12;
/// For a record, beside its DMA.
const RECORD_CYCLES: u64 = 60;

options! {
    /// NICs that copy frames for an observer.
    pub struct TcpdumpOptions {
        /// Which frames, as `nicforge tcpdump` takes it; all where empty.
        tcpdump_filter: Option<String> = None, "", Allowed::Form(&FILTER), default "all";
        /// Bytes of each frame at most.
        tcpdump_bytes: u64 = 96, "bytes", Allowed::Whole(14, 2048);
    }
}

static FILTER: Form = Form {
    says: "a filter, such as \"tcp port 80 and not host 10.0.0.1\"",
    parse: |text| Filter::parse(text).ok().map(|_| text.to_owned()),
};

/// Stage `tcpdump`.
#[derive(Clone, Copy, Debug)]
pub struct TcpdumpKind;

impl StageKind for TcpdumpKind {
    const NAME: &'static str = "tcpdump";
    const ABOUT: &'static str = "copies frames that a filter wants into host memory";
    type Options = TcpdumpOptions;

    fn build<G: Ground>(
        options: &TcpdumpOptions,
        _plan: &StagePlan,
        space: &mut AddressSpace,
    ) -> Result<BuiltStage<G>, StageError> {
        let text = options.tcpdump_filter.as_deref().unwrap_or_default();
        let filter = Filter::parse(text).map_err(|error| StageError::Own(Box::new(error)))?;
        let record = (HEADER_BYTES + options.tcpdump_bytes).next_multiple_of(64);
        Ok(BuiltStage::new(Tcpdump {
            questions: filter.questions(),
            filter,
            most: options.tcpdump_bytes as usize,
            at: space.data(RECORDS * record, 4096),
            record,
            seen: 0,
            copied: 0,
            buffer: Vec::new(),
        }))
    }
}

/// Copies frames.
struct Tcpdump {
    filter: Filter,
    questions: u64,
    most: usize,
    at: Addr,
    /// Bytes from one record to the next.
    record: u64,
    seen: u64,
    copied: u64,
    buffer: Vec<u8>,
}

impl Tcpdump {
    fn look<D: Dma>(&mut self, nic: &mut Services<'_, D>, frame: &Frame<'_>, way: u32) -> Verdict {
        self.seen += 1;
        nic.work(Cycles(FRAME_CYCLES + QUESTION_CYCLES * self.questions));
        if self.filter.matches(&Seen::parse(frame.bytes())) {
            nic.work(Cycles(RECORD_CYCLES));
            let part = &frame.bytes()[..frame.bytes().len().min(self.most)];
            self.buffer.clear();
            self.buffer.extend_from_slice(&(nic.now().as_ps() / 1000).to_le_bytes());
            self.buffer.extend_from_slice(&u64::from(way).to_le_bytes());
            self.buffer.extend_from_slice(&(frame.bytes().len() as u32).to_le_bytes());
            self.buffer.extend_from_slice(&(part.len() as u32).to_le_bytes());
            self.buffer.extend_from_slice(part);
            nic.dma.write(self.at + self.copied % RECORDS * self.record, &self.buffer);
            self.copied += 1;
        }
        Verdict::Pass
    }
}

impl<D: Dma> Stage<D> for Tcpdump {
    fn ingress(&mut self, nic: &mut Services<'_, D>, frame: &mut Frame<'_>) -> Verdict {
        self.look(nic, frame, 0)
    }

    fn egress(&mut self, nic: &mut Services<'_, D>, frame: &mut Frame<'_>) -> Verdict {
        self.look(nic, frame, 1)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("tcpdump_frames", self.seen), ("tcpdump_copied", self.copied)]
    }
}

#[cfg(test)]
mod tests {
    use nicforge_options::{Options, Values};

    use super::*;

    #[test]
    fn frames_whole_and_damaged_pass() {
        crate::suite::check::<TcpdumpKind>();
        let mut options = TcpdumpOptions::of(&Values::default());
        (options.tcpdump_filter, options.tcpdump_bytes) = (Some("udp and not port 1".into()), 14);
        crate::suite::check_with::<TcpdumpKind>(&options);
    }
}
