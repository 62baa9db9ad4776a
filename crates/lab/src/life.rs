//! The lives of packets, from what the tracer saw: each time between two moments is a step, with the numbers that say
//! why it took that long.

use nicforge_platform::tracer::{Event, Followed, Here, What};
use nicforge_platform::{BurstMoment, Moment, Part};
use nicforge_record::{LifeEnd, LifeStep, PacketLife, Reason};
use nicforge_units::Time;

/// Which ground a packet was followed on: on the live one cores are workers, and a port stands for the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowedOn {
    /// The sim ground.
    Sim,
    /// The live ground.
    #[cfg(target_os = "linux")]
    Live,
}

/// The life of `packet`.
pub fn life_of(packet: &Followed, ground: FollowedOn) -> PacketLife {
    let arrived = packet.key.stamp;
    let mut life = Life { ground, steps: Vec::new(), until: arrived, fifo: 0, ring: (0, 0), before: 0, burst: 0 };
    let mut before: Option<&Event> = None;
    for event in &packet.events {
        life.pass(before, event);
        before = Some(event);
    }
    PacketLife {
        number: packet.number,
        port: usize::from(packet.key.port),
        arrived_ps: arrived.as_ps(),
        steps: life.steps,
        end: end_of(packet.events.last()),
    }
}

fn end_of(last: Option<&Event>) -> LifeEnd {
    match last.map(|event| (event.what, event.here)) {
        Some((What::Packet(Moment::Sent { .. }), Here::Device { .. })) => LifeEnd::Sent,
        Some((What::Packet(Moment::Dropped(cause)), _)) => LifeEnd::Dropped(cause.to_owned()),
        Some((What::Packet(Moment::Kept), _)) => LifeEnd::Kept,
        Some((What::Packet(Moment::Diverted), _)) => LifeEnd::Diverted,
        _ => LifeEnd::Inside,
    }
}

/// A life as far as it is known, and what later steps say of it.
struct Life {
    ground: FollowedOn,
    steps: Vec<LifeStep>,
    until: Time,
    /// Frames that waited before it in the FIFO.
    fifo: u64,
    /// Packets that waited in its ring, and its entries.
    ring: (u64, u64),
    /// Packets before it in its burst, and in all.
    before: usize,
    burst: usize,
}

impl Life {
    /// A step up to `time`, if that takes any.
    fn step(&mut self, place: String, name: &str, time: Time, why: Vec<Reason>) {
        if time <= self.until {
            return;
        }
        let (from_ps, until_ps) = (self.until.as_ps(), time.as_ps());
        self.until = time;
        match self.steps.last_mut() {
            // A core that tries again comes to the same moment again.
            Some(last) if last.name == name && last.place == place => last.until_ps = until_ps,
            _ => self.steps.push(LifeStep { place, name: name.to_owned(), from_ps, until_ps, why }),
        }
    }

    fn place_of(&self, here: Here) -> String {
        match (here, self.ground) {
            (Here::Device { number, .. }, _) => format!("NIC {number}"),
            (Here::Core(number), FollowedOn::Sim) => format!("core {number}"),
            #[cfg(target_os = "linux")]
            (Here::Core(number), FollowedOn::Live) => format!("worker {number}"),
        }
    }

    /// From the event `before` on until `event`.
    fn pass(&mut self, before: Option<&Event>, event: &Event) {
        let place = self.place_of(event.here);
        let plays = matches!(event.here, Here::Core(_));
        let at = event.at;
        match event.what {
            What::Landed => self.step("bus".to_owned(), "until all is in memory", at, Vec::new()),
            What::Bell => self.step("bus".to_owned(), "doorbell", at, Vec::new()),
            What::Burst(moment) => self.pass_burst(moment, before, event),
            What::Packet(moment) if plays && is_of_nic(moment) => {
                let why = before.map_or_else(Vec::new, |before| of_core(before, event));
                self.step(place, name_of_played(moment), at, why);
            }
            What::Packet(moment) => self.pass_packet(moment, before, event),
        }
    }

    fn pass_burst(&mut self, moment: BurstMoment, before: Option<&Event>, event: &Event) {
        let (place, at) = (self.place_of(event.here), event.at);
        match moment {
            BurstMoment::Poll => {
                let (waiting, of) = self.ring;
                let why = vec![reason("packets in the ring as it came", waiting), reason("entries of the ring", of)];
                self.step("ring".to_owned(), "until the core polls", at, why);
            }
            BurstMoment::Polled { packets } => {
                self.burst = packets;
                let mut why = vec![reason("packets", packets as u64)];
                why.extend(before.into_iter().flat_map(|before| of_core(before, event)));
                self.step(place, "receive call", at, why);
            }
            BurstMoment::Flush => {
                let behind = self.burst.saturating_sub(self.before + 1);
                self.step(place, "packets behind it in the burst", at, vec![reason("packets", behind as u64)]);
            }
            BurstMoment::Rung => self.step(place, "descriptors behind it, and the doorbell", at, Vec::new()),
        }
    }

    fn pass_packet(&mut self, moment: Moment, before: Option<&Event>, event: &Event) {
        let (place, at) = (self.place_of(event.here), event.at);
        let since = |of: fn(&Event, &Event) -> Vec<Reason>| before.map_or_else(Vec::new, |before| of(before, event));
        match moment {
            Moment::Came { fifo } => {
                self.fifo = fifo;
                match self.ground {
                    FollowedOn::Sim => self.step("wire".to_owned(), "first bit in to last bit", at, Vec::new()),
                    #[cfg(target_os = "linux")]
                    FollowedOn::Live => self.step(place, "takes it from its port", at, Vec::new()),
                }
            }
            Moment::Steered { waiting, of, .. } => self.ring = (waiting, of),
            Moment::Turn => {
                let why = vec![reason("frames before it", self.fifo)];
                self.step(place, "parser, and waiting in the FIFO", at, why);
            }
            Moment::Delivery | Moment::Diverted => self.step(place, "stages", at, Vec::new()),
            Moment::Delivered => self.step(place, "writes it to the host", at, since(of_device)),
            Moment::Handling { index } => {
                self.before = index;
                self.step(place, "packets before it in the burst", at, vec![reason("packets", index as u64)]);
            }
            Moment::Handled => self.step(place, "application", at, since(of_core)),
            Moment::Kept => self.step(place, "frees it", at, Vec::new()),
            Moment::Pushed { .. } => {
                self.step(place, "buffers back, and descriptors up to its own", at, since(of_core))
            }
            Moment::Gathering { descriptor, .. } => {
                self.step(place.clone(), "reads its descriptor", descriptor.min(at), Vec::new());
                self.step(place, "waits for its turn to be sent", at, Vec::new());
            }
            #[cfg(target_os = "linux")]
            Moment::Sent { .. } if self.ground == FollowedOn::Live => {
                self.step(place, "sends it by its port", at, Vec::new());
            }
            Moment::Sent { gathered, first_bit, last_bit } => {
                self.step(place.clone(), "reads it from the host", gathered, since(of_device));
                self.step(place, "pipeline, and frames before it on the wire", first_bit, Vec::new());
                self.step("wire".to_owned(), "first bit out to last bit", last_bit, Vec::new());
            }
            Moment::Dropped(_) => self.step(place, "until it is dropped", at, Vec::new()),
        }
    }
}

/// Moments that are a NIC's, also where a core plays it.
fn is_of_nic(moment: Moment) -> bool {
    use Moment::{Came, Delivered, Delivery, Diverted, Gathering, Sent, Steered, Turn};
    matches!(
        moment,
        Came { .. } | Steered { .. } | Turn | Delivery | Delivered | Diverted | Gathering { .. } | Sent { .. }
    )
}

/// What a core that plays a NIC does up to `moment`.
fn name_of_played(moment: Moment) -> &'static str {
    match moment {
        Moment::Came { .. } | Moment::Steered { .. } | Moment::Turn => "plays the NIC: until it has taken it",
        Moment::Delivery => "plays the NIC: until it gives it on",
        Moment::Delivered => "plays the NIC: gives it to the driver",
        Moment::Gathering { .. } => "plays the NIC: until its turn to be sent",
        _ => "plays the NIC: sends it",
    }
}

fn reason(what: &str, count: u64) -> Reason {
    Reason { what: what.to_owned(), count: count as f64 }
}

fn without_zeros(reasons: impl IntoIterator<Item = (&'static str, u64)>) -> Vec<Reason> {
    reasons.into_iter().filter(|(_, count)| *count > 0).map(|(what, count)| reason(what, count)).collect()
}

/// What a device and the memory system did between two events.
fn of_device(before: &Event, event: &Event) -> Vec<Reason> {
    let memory = event.counts.memory.since(&before.counts.memory);
    let (dma, earlier) = (&event.counts.dma, &before.counts.dma);
    without_zeros([
        ("DMA reads", dma.reads - earlier.reads),
        ("lines written to the LLC, in place", memory.device_write_hits),
        ("lines that the LLC had to allocate", memory.device_write_lines - memory.device_write_hits),
        ("unread lines of other frames driven out", memory.fresh_lost),
        ("lines written back to DRAM", memory.llc_write_backs),
        ("lines read from caches", memory.device_read_hits),
        ("lines read from DRAM", memory.device_read_lines - memory.device_read_hits),
        ("bytes of NIC memory", dma.nicmem_bytes - earlier.nicmem_bytes),
    ])
}

/// Where a core's time went between two events, and where its lines came from.
fn of_core(before: &Event, event: &Event) -> Vec<Reason> {
    let memory = event.counts.memory.since(&before.counts.memory);
    let spent = event.counts.core.since(&before.counts.core);
    let look_ups = memory.app_look_ups + memory.driver_look_ups;
    let hits = memory.app_hits + memory.driver_hits;
    let mut why = Vec::new();
    for part in Part::ALL {
        for (times, does) in [(&spent.work_ps, "work"), (&spent.stall_ps, "waiting for memory")] {
            if times[part as usize] > 0 {
                let what = format!("ns {} {does}", name_of_part(part));
                why.push(Reason { what, count: times[part as usize] as f64 / 1e3 });
            }
        }
    }
    why.extend(without_zeros([("lines from the LLC or another L2", hits), ("lines from DRAM", look_ups - hits)]));
    why
}

fn name_of_part(part: Part) -> &'static str {
    match part {
        Part::Driver => "driver",
        Part::App => "application",
        Part::Sync => "locks",
        Part::Alloc => "buffers",
        Part::Interrupt => "interrupt",
        Part::Stack => "stack",
        Part::Copy => "copies",
    }
}
