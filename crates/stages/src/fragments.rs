//! Stage `fragments`: fragments that come before the first one of their packet wait for it (RFC 4787, REQ-14).
//!
//! Only the first fragment has ports, by which steering finds the queue and an application the flow. The stage lets a
//! later fragment pass once the first one has come, and holds it until then. One that waits too long, or finds no room,
//! goes on as it is; software that needs the flow drops it by name.

use std::collections::BTreeMap;

use nicforge_nic::stage::{Frame, Services, Stage, Verdict};
use nicforge_options::{Allowed, options};
use nicforge_platform::{AddressSpace, Dma, Ground};
use nicforge_units::{Cycles, Time};
use nicforge_wire::{Fragment, PacketId};

use crate::{BuiltStage, StageError, StageKind, StagePlan};

/// Instructions for a fragment: its packet looked up in the table.
const FRAGMENT_CYCLES: Cycles = Cycles(40);
/// Packets whose first fragment is known to have come; a newer one takes the place of an older one.
const LINES: usize = 1024;
/// For how long that is known (RFC 1122, section 3.3.2: 60 to 120 s).
const KNOWN: Time = Time::from_ms(60_000);

options! {
    /// NICs that hold fragments.
    pub struct HoldOptions {
        /// Memory for fragments that wait for the first one of their packet; what finds none goes on.
        fragments_kib: u64 = 1024, "KiB", Allowed::Whole(1, 1 << 20);
        /// How long a fragment waits for the first one of its packet.
        fragments_wait_ms: u64 = 2000, "ms", Allowed::Whole(1, 60_000);
    }
}

/// Stage `fragments`.
#[derive(Clone, Copy, Debug)]
pub struct FragmentsKind;

impl StageKind for FragmentsKind {
    const NAME: &'static str = "fragments";
    const ABOUT: &'static str = "holds fragments until the first one of their packet has come";
    type Options = HoldOptions;

    fn build<G: Ground>(
        options: &HoldOptions,
        _plan: &StagePlan,
        _space: &mut AddressSpace,
    ) -> Result<BuiltStage<G>, StageError> {
        Ok(BuiltStage::new(Fragments::new(options)))
    }
}

/// A packet whose first fragment has not come.
struct Waiting {
    /// Its key in [`Fragments::ends`].
    end: (Time, u64),
    /// Its fragments, in the order in which they came, and when their first bits did.
    fragments: Vec<(Vec<u8>, Time)>,
}

/// Holds fragments.
struct Fragments {
    room: usize,
    wait: Time,
    /// Packets whose first fragment came, and when, by [`line`].
    known: Vec<Option<(PacketId, Time)>>,
    waiting: BTreeMap<PacketId, Waiting>,
    /// When a packet waits no longer, with a number that no other has.
    ends: BTreeMap<(Time, u64), PacketId>,
    packets: u64,
    held_bytes: usize,
    late: u64,
    without_room: u64,
}

/// Identifications count up: packets that follow each other get lines of their own.
fn line(id: PacketId) -> usize {
    let addresses = (id.addresses ^ id.addresses >> 32) as u32;
    addresses.wrapping_mul(31).wrapping_add(u32::from(id.identification) + u32::from(id.protocol)) as usize % LINES
}

impl Fragments {
    fn new(options: &HoldOptions) -> Fragments {
        Fragments {
            room: (options.fragments_kib as usize) << 10,
            wait: Time::from_ms(options.fragments_wait_ms),
            known: vec![None; LINES],
            waiting: BTreeMap::new(),
            ends: BTreeMap::new(),
            packets: 0,
            held_bytes: 0,
            late: 0,
            without_room: 0,
        }
    }

    /// The fragments of packet `id` that wait go on behind the frame at hand; how many they are.
    fn release<D: Dma>(&mut self, nic: &mut Services<'_, D>, id: PacketId) -> u64 {
        let Some(Waiting { end, fragments }) = self.waiting.remove(&id) else { return 0 };
        self.ends.remove(&end);
        let (count, ready) = (fragments.len() as u64, nic.ready());
        for (bytes, stamp) in fragments {
            self.held_bytes -= bytes.len();
            nic.injector.deliver(bytes, stamp, ready);
        }
        count
    }

    fn hold(&mut self, frame: &Frame<'_>, id: PacketId, now: Time) -> Verdict {
        let bytes = frame.bytes();
        if self.held_bytes + bytes.len() > self.room {
            self.without_room += 1;
            return Verdict::Pass;
        }
        self.held_bytes += bytes.len();
        let waiting = self.waiting.entry(id).or_insert_with(|| {
            self.packets += 1;
            let end = (now + self.wait, self.packets);
            self.ends.insert(end, id);
            Waiting { end, fragments: Vec::new() }
        });
        waiting.fragments.push((bytes.to_vec(), frame.arrival));
        Verdict::Consume
    }
}

impl<D: Dma> Stage<D> for Fragments {
    fn ingress(&mut self, nic: &mut Services<'_, D>, frame: &mut Frame<'_>) -> Verdict {
        let kind = frame.summary().fragment;
        if kind == Fragment::Whole {
            return Verdict::Pass;
        }
        // IPv6 has no application that needs the flow of fragments.
        let Some(id) = PacketId::of(frame.bytes(), frame.summary()) else { return Verdict::Pass };
        nic.work(FRAGMENT_CYCLES);
        if kind == Fragment::First {
            self.known[line(id)] = Some((id, nic.now()));
            self.release(nic, id);
            return Verdict::Pass;
        }
        let now = nic.now();
        match self.known[line(id)] {
            Some((known, at)) if known == id && now.saturating_sub(at) < KNOWN => Verdict::Pass,
            _ => self.hold(frame, id, now),
        }
    }

    fn sees_egress(&self) -> bool {
        false
    }

    fn due(&self) -> Time {
        self.ends.first_key_value().map_or(Time::NEVER, |((until, _), _)| *until)
    }

    fn advance(&mut self, nic: &mut Services<'_, D>) {
        let now = nic.now();
        while let Some((&(until, _), &id)) = self.ends.first_key_value()
            && until <= now
        {
            self.late += self.release(nic, id);
        }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("fragments_given_up", self.late), ("fragments_without_room", self.without_room)]
    }

    fn gauges(&self) -> Vec<(&'static str, u64)> {
        let held = self.waiting.values().map(|packet| packet.fragments.len() as u64);
        vec![("fragments_held", held.sum())]
    }
}

#[cfg(test)]
mod tests {
    use nicforge_nic::mock::{CountingHalf, MockHost, spec, udp_frame};
    use nicforge_nic::stage::{Alone, Chain, Passed};
    use nicforge_nic::transmit::{Bridged, Departure, Egress};
    use nicforge_nic::{Nic, PortId};
    use nicforge_platform::{Addr, FlatCpu, FlatDma};

    use super::*;

    /// The fragments of a packet with identification `id`, of 40, 40 and 20 bytes.
    fn fragments(id: u8) -> [Vec<u8>; 3] {
        let whole = udp_frame(92, 7);
        let payload = &whole[34..];
        let cut = |from: usize, to: usize| {
            let mut frame = [&whole[..34], &payload[from..to]].concat();
            let more = u8::from(to < payload.len()) << 5;
            frame[16..18].copy_from_slice(&(20 + (to - from) as u16).to_be_bytes());
            frame[18..22].copy_from_slice(&[0, id, more, (from / 8) as u8]);
            frame
        };
        [cut(0, 40), cut(40, 80), cut(80, 100)]
    }

    struct Bench {
        stages: Alone<MockHost>,
        host: MockHost,
    }

    impl Bench {
        fn new(fragments_kib: u64) -> Bench {
            let mut chain = Chain::new(PortId(0));
            chain.push(Box::new(Fragments::new(&HoldOptions { fragments_kib, ..HoldOptions::default() })));
            Bench { stages: Alone::new(chain), host: MockHost::new(&AddressSpace::default()) }
        }

        /// Frames that go on when `frame` has come.
        fn after(&mut self, frame: &[u8]) -> Vec<Vec<u8>> {
            let (passed, _) = self.stages.ingress(&mut self.host, frame.to_vec());
            let mut out: Vec<Vec<u8>> = match passed {
                Passed::On(bytes) => vec![bytes],
                Passed::Gone => Vec::new(),
                Passed::Dropped(cause) => panic!("{cause:?}"),
            };
            out.extend(std::iter::from_fn(|| self.stages.next_delivered(&mut self.host)));
            out
        }

        fn count(&self, name: &str) -> u64 {
            self.stages.counters().iter().find(|(known, _)| *known == name).unwrap().1
        }
    }

    #[test]
    fn frames_whole_and_damaged_pass() {
        crate::suite::check::<FragmentsKind>();
    }

    #[test]
    fn fragments_of_every_order_leave_behind_the_first_one() {
        let [first, second, third] = fragments(1);
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        for order in orders {
            let mut bench = Bench::new(64);
            let came: Vec<&Vec<u8>> = order.iter().map(|&number| [&first, &second, &third][number]).collect();
            let out: Vec<Vec<u8>> = came.iter().flat_map(|frame| bench.after(frame)).collect();
            let later = came.iter().filter(|frame| **frame != &first).map(|frame| (*frame).clone());
            let expected: Vec<Vec<u8>> = std::iter::once(first.clone()).chain(later).collect();
            assert!(out == expected, "{order:?}");
        }
    }

    #[test]
    fn packets_wait_for_their_own_first_fragment() {
        let ([first, second, _], [other_first, other, _]) = (fragments(1), fragments(2));
        let mut bench = Bench::new(64);
        assert!(bench.after(&second).is_empty() && bench.after(&other).is_empty());
        assert_eq!(bench.after(&first), [first, second]);
        assert_eq!(bench.after(&other_first), [other_first, other]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut bench = Bench::new(1);
        let (mut held, mut passed) = (0, 0);
        for id in 0..50 {
            match bench.after(&fragments(id)[1]).len() {
                0 => held += 1,
                _ => passed += 1,
            }
        }
        assert_eq!((held, passed), (1024 / 74, 50 - 1024 / 74));
        assert_eq!(bench.count("fragments_without_room"), passed);
    }

    /// Sends nothing.
    struct NoWire;

    impl Egress for NoWire {
        fn depart(&mut self, _departure: Departure<'_>) {}
        fn bridge(&mut self, _frame: Bridged) {}
    }

    #[test]
    fn a_fragment_without_a_first_one_goes_on_after_its_time() {
        let end = AddressSpace::default().end();
        let mut dma = FlatDma::new(FlatCpu::new(end));
        let mut nic: Nic<FlatDma> = Nic::new(&spec(), Box::new(CountingHalf::default()), &[], Addr(end));
        nic.stages.push(Box::new(Fragments::new(&HoldOptions::default())));
        nic.receive(&mut dma, &fragments(1)[1], Time::ZERO);
        for (now, delivered) in [(1_999, 0), (2_001, 1)] {
            dma.set_now(Time::from_ms(now));
            nic.advance(&mut dma, &mut NoWire);
            assert_eq!(nic.counters.delivered, delivered, "{now}");
        }
        assert_eq!(nic.stages.counters()[0], ("fragments_given_up", 1));
    }
}
