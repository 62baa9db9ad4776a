//! A stage of another crate in front of every interface, on every ground.

use nicforge_nic::stage::{Processor, Stage};
use nicforge_nic::{Packet, PortId, RxFlags};
use nicforge_platform as platform;
use nicforge_units::Frequency;

use super::stages::{OWN, Staged};
use super::{Flat, Ground, Sim, interfaces};

/// Builds the stage that a test is about.
pub trait InFront {
    /// The stage of one NIC on ground `G`, whose port is number [`PORT`].
    fn stage<G: platform::Ground>(&self) -> Box<dyn Stage<G::Dma>>;
}

/// The port of the NIC.
pub const PORT: PortId = OWN;

/// A packet that came out of a receive queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The queue, 0 or 1.
    pub queue: usize,
    /// Word of a stage to the host.
    pub mark: u64,
    /// Verdicts of the NIC and of stages.
    pub flags: RxFlags,
    /// The frame.
    pub bytes: Vec<u8>,
}

/// What came of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Packets that software received, in order of the frames, then of queues.
    pub received: Vec<Received>,
    /// Frames that left by the NIC's own port.
    pub left: Vec<Vec<u8>>,
    /// Frames that left by other ports.
    pub bridged: Vec<Vec<u8>>,
    /// Drops by cause.
    pub drops: Vec<(&'static str, u64)>,
    /// The stage's counters.
    pub counters: Vec<(&'static str, u64)>,
}

/// Builds the stage in front of every interface on every ground, lets `arriving` come in and software send `leaving`,
/// and gives what came of it to `judge`, with the interface's name and the ground's.
///
/// # Panics
/// A frame or a buffer is lost.
pub fn in_front(
    stage: &impl InFront,
    arriving: &[Vec<u8>],
    leaving: &[Vec<u8>],
    judge: impl Fn(&str, &str, &Exchange),
) {
    for interface in interfaces() {
        judge(interface, "sim", &exchange::<Sim>(stage, interface, arriving, leaving));
        judge(interface, "plain memory", &exchange::<Flat>(stage, interface, arriving, leaving));
        #[cfg(target_os = "linux")]
        judge(interface, "live", &exchange::<super::Live>(stage, interface, arriving, leaving));
    }
}

fn exchange<G: Ground>(
    stage: &impl InFront,
    interface: &'static str,
    arriving: &[Vec<u8>],
    leaving: &[Vec<u8>],
) -> Exchange {
    let mut bench: Staged<G> = Staged::with(interface, stage.stage::<G::On>());
    bench.nic.stages.set_processor(Processor::new(Frequency::from_ghz(1.0), 2));
    let mut received = Vec::new();
    for frame in arriving {
        bench.comes_in(frame);
        take(&mut bench, &mut received);
    }
    let mut left = std::mem::take(&mut bench.wire.left);
    for frame in leaving {
        left.extend(bench.sends_frame(frame, 0));
        take(&mut bench, &mut received);
    }
    let drops = bench.nic.drops().causes().to_vec();
    let bridged = std::mem::take(&mut bench.wire.bridged);
    Exchange { received, left, bridged, drops, counters: bench.nic.stages.counters() }
}

/// Polls both queues.
fn take<G: Ground>(bench: &mut Staged<G>, received: &mut Vec<Received>) {
    for queue in 0..2 {
        let packets = bench.polls(queue).into_iter();
        let of = |(packet, bytes): (Packet, Vec<u8>)| Received { queue, mark: packet.mark, flags: packet.flags, bytes };
        received.extend(packets.map(of));
    }
}
