//! Frames in and out of the program.

use std::sync::{Arc, OnceLock};

use nicforge_flexnic::p4::{NicFields, Output, OwnedOutput, Refusal, Shared};
use nicforge_nic::stage::{Frame, Services, Stage, Verdict};
use nicforge_nic::{DropCause, PortId, RxFlags};
use nicforge_p4runtime::Running;
use nicforge_platform::Dma;
use nicforge_units::Time;

use crate::counts;

/// The program dropped the frame, or nothing of it was left.
const DROPPED: DropCause = DropCause("p4_drop");
/// The program made something of the frame that the NIC's parser cannot read.
const UNREADABLE: DropCause = DropCause("p4_unreadable");

/// The name of the drop that a program's refusal is.
pub(crate) fn cause_of(why: Refusal) -> DropCause {
    match why {
        Refusal::QueueFull => DropCause::NO_DESCRIPTOR,
        Refusal::TooLong => DropCause::OVERSIZED,
        Refusal::BadBuffer => DropCause::BAD_DESCRIPTOR,
        Refusal::NoWindow => DropCause("no_window"),
        Refusal::Duplicate => DropCause("duplicate"),
    }
}

/// How a program sees the NIC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    /// The host's number.
    pub host_port: u32,
    /// The controllers' number.
    pub cpu_port: u32,
    /// Clock of the target, in MHz.
    pub clock_mhz: u64,
    /// The program's architecture knows directions: packets of the host come with the port that they leave by.
    pub is_directed: bool,
}

/// A P4 program on the path of one NIC.
pub struct P4Stage {
    port: PortId,
    shared: Shared,
    setup: Setup,
    outputs: Vec<OwnedOutput>,
    /// Ends with the stage; empty without controllers.
    _server: Arc<OnceLock<Running>>,
}

impl P4Stage {
    pub(crate) fn new(port: PortId, shared: Shared, setup: Setup, server: Arc<OnceLock<Running>>) -> P4Stage {
        P4Stage { port, shared, setup, outputs: Vec::new(), _server: server }
    }

    /// The program, for controllers in the same process.
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Takes a frame through the program and says what becomes of it.
    pub(crate) fn run<D: Dma>(&mut self, nic: &mut Services<'_, D>, frame: &mut Frame<'_>, from_host: bool) -> Verdict {
        let own = u32::from(self.port.0);
        let fields = NicFields {
            port: if from_host && !self.setup.is_directed { self.setup.host_port } else { own },
            stamp: frame.arrival.as_ps(),
            hash: frame.hash,
            flags: frame.flags.0,
            queue: frame.queue(),
            segment: frame.segment,
            mark: frame.mark,
            ..NicFields::default()
        };
        let (outputs, microseconds) = (&mut self.outputs, nic.now().as_us() as u64);
        outputs.clear();
        let mut keep = |output: Output<'_>| outputs.push(output.to_owned());
        let (to_controller, ended) =
            self.shared.process_nic(frame.bytes(), &fields, from_host, microseconds, &mut keep);
        // Cycles over MHz are microseconds.
        nic.delay(Time::from_ps(self.shared.cycles().saturating_mul(1_000_000) / self.setup.clock_mhz.max(1)));
        let mut outputs = std::mem::take(&mut self.outputs);
        let first = outputs.iter().position(|output| {
            let to = self.wire(output);
            if from_host { to == Some(own) } else { to.is_none() }
        });
        let kept = first.map(|first| outputs.remove(first));
        let gone = to_controller || !outputs.is_empty();
        for output in outputs.drain(..) {
            self.send(nic, frame.arrival, output);
        }
        self.outputs = outputs;
        let Some(output) = kept else {
            let is_gone = gone || ended.is_consumed;
            let cause = ended.refusal.map_or(DROPPED, cause_of);
            return if is_gone { Verdict::Consume } else { Verdict::Drop(cause) };
        };
        if output.packet != frame.bytes() && frame.edit(|bytes| *bytes = output.packet).is_err() {
            return Verdict::Drop(UNREADABLE);
        }
        if output.mark != 0 {
            frame.mark = output.mark;
        }
        frame.flags = frame.flags.with(RxFlags(output.flags << 8));
        if let Some(queue) = output.queue {
            frame.steer(queue);
        }
        Verdict::Pass
    }

    /// The wire that an output leaves by; none for the host.
    fn wire(&self, output: &OwnedOutput) -> Option<u32> {
        output.port.filter(|port| *port != self.setup.host_port)
    }

    /// A frame that does not go on along the path.
    fn send<D: Dma>(&self, nic: &mut Services<'_, D>, stamp: Time, output: OwnedOutput) {
        let ready = nic.ready();
        match self.wire(&output) {
            None => nic.injector.deliver(output.packet, stamp, ready),
            Some(port) => nic.injector.send_by(port_id(port), output.packet, stamp, ready),
        }
    }
}

/// A port that the NIC may not have: then the device drops the frame as `no_such_port`.
fn port_id(port: u32) -> PortId {
    PortId(u8::try_from(port).unwrap_or(u8::MAX))
}

impl<D: Dma> Stage<D> for P4Stage {
    fn ingress(&mut self, nic: &mut Services<'_, D>, frame: &mut Frame<'_>) -> Verdict {
        self.run(nic, frame, false)
    }

    fn egress(&mut self, nic: &mut Services<'_, D>, frame: &mut Frame<'_>) -> Verdict {
        self.run(nic, frame, true)
    }

    fn due(&self) -> Time {
        // Packets of controllers leave as soon as the device looks.
        if self.shared.has_later() { Time::ZERO } else { Time::NEVER }
    }

    fn advance(&mut self, nic: &mut Services<'_, D>) {
        for packet in self.shared.take_later() {
            let (mut outputs, microseconds) = (Vec::new(), nic.now().as_us() as u64);
            let mut keep = |output: Output<'_>| outputs.push(output.to_owned());
            self.shared.process(&packet, self.setup.cpu_port, false, microseconds, &mut keep);
            let now = nic.now();
            outputs.into_iter().for_each(|output| self.send(nic, now, output));
        }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        counts::counters(&self.shared)
    }

    fn gauges(&self) -> Vec<(&'static str, u64)> {
        counts::gauges(&self.shared)
    }

    fn take_events(&mut self) -> Vec<String> {
        self.shared.lock().take_log()
    }
}
