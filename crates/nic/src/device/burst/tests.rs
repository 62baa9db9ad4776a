//! A burst is the same as its frames one by one.

use nicforge_platform::{Addr, Dma, Vector};
use nicforge_units::{Bytes, Time};

use crate::device::tests::Remembers;
use crate::mock::{MockHost, spec, udp_frame};
use crate::transmit::TxRing;
use crate::{DropCause, Nic, NicSpec, Parsed};

/// The mock, where nothing takes time.
struct Timeless(MockHost);

impl Dma for Timeless {
    const INSTANT: bool = true;

    fn read(&mut self, from: Addr, into: &mut [u8]) {
        self.0.read(from, into);
    }

    fn read_ahead(&mut self, from: Addr, into: &mut [u8]) -> Time {
        self.0.read_ahead(from, into)
    }

    fn write(&mut self, to: Addr, bytes: &[u8]) {
        self.0.write(to, bytes);
    }

    fn publish(&mut self, to: Addr, bytes: &[u8]) {
        self.0.publish(to, bytes);
    }

    fn interrupt(&mut self, vector: Vector) {
        self.0.interrupt(vector);
    }

    fn wait_until(&mut self, _time: Time) {}

    fn now(&self) -> Time {
        self.0.now
    }
}

/// A NIC with a small FIFO and a closed queue, on memory of which no time passes.
fn bench(refuses: Option<DropCause>) -> (Nic<Remembers>, Timeless) {
    let mut space = nicforge_platform::AddressSpace::default();
    let ring = TxRing::new(&mut space, 8).unwrap();
    let spec = NicSpec { rx_fifo: Bytes(1_000), rx_pipeline: Time::ZERO, ..spec() };
    let half = Remembers::refusing(refuses);
    let mut nic = Nic::new(&spec, half, &[ring], Addr(space.end()));
    nic.set_closed(1, true);
    (nic, Timeless(MockHost::new(&space)))
}

/// Good frames of several flows, one too long for the FIFO, and one that is no frame.
fn frames() -> Vec<Vec<u8>> {
    let mut frames: Vec<Vec<u8>> = (0..40).map(|flow| udp_frame(100, 1_000 + flow)).collect();
    frames.insert(7, udp_frame(1_200, 5));
    frames.insert(9, vec![2; 10]);
    frames
}

#[test]
fn a_burst_is_the_same_as_its_frames_one_by_one() {
    for refuses in [None, Some(DropCause::BAD_DESCRIPTOR)] {
        let (mut alone, mut host) = bench(refuses);
        let frames = frames();
        for frame in &frames {
            alone.receive(&mut host, frame, Time::from_us(3));
        }
        let (mut together, mut host) = bench(refuses);
        let parsed: Vec<Option<Parsed>> = (0..)
            .zip(&frames)
            .map(|(number, frame)| (number % 2 == 0).then(|| alone.parse(frame, frame.len()).ok())?)
            .collect();
        let burst = frames.iter().zip(&parsed);
        let burst = burst.map(|(frame, parsed)| (&frame[..], parsed.as_ref()));
        together.receive_burst(&mut host, burst, Time::from_us(3));

        assert_eq!(together.counters, alone.counters);
        assert_eq!(together.drops(), alone.drops());
        assert_eq!(together.receive.seen(), alone.receive.seen());
        for queue in 0..4 {
            assert_eq!(together.delivered_to(queue), alone.delivered_to(queue));
            let bad = [&together, &alone].map(|nic| nic.bad_descriptors_of(queue));
            assert_eq!(bad[0], bad[1]);
        }
        let drops = together.drops();
        let causes = drops.causes();
        assert!(causes.contains(&("longer_than_fifo", 1)), "{causes:?}");
        assert!(causes.iter().any(|&(cause, _)| cause == "queue_closed"));
        assert_eq!(together.counters.delivered > 0, refuses.is_none());
    }
}
