use std::collections::VecDeque;

use nicforge_units::Time;
use proptest::prelude::*;

use super::*;
use crate::fast::{Flow, FlowFlags, Outcome, Summary, receive, retransmit, transmit};
use crate::segment::Flags;

proptest! {
    /// No flow leaves before its time, nor later than a slot after it, and none is lost.
    #[test]
    fn flows_leave_when_they_are_due(deadlines in prop::collection::vec(0u64..150_000, 1..200), step in 1u64..5000) {
        let mut wheel = Wheel::new(512, Time::from_ns(320));
        for (flow, at) in (0u32..).zip(&deadlines) {
            wheel.put(flow, Time::from_ns(*at));
        }
        let mut left = 0;
        for now in (0..200_000).step_by(step as usize) {
            let now = Time::from_ns(now);
            while let Some(flow) = wheel.take(now) {
                let at = Time::from_ns(deadlines[flow as usize]);
                prop_assert!(at <= now);
                prop_assert!(now.saturating_sub(at) < Time::from_ns(320 + step));
                left += 1;
            }
            prop_assert!(wheel.is_empty() || wheel.due() > now);
        }
        prop_assert_eq!(left, deadlines.len());
    }
}

#[test]
fn a_deadline_beyond_the_horizon_goes_into_the_last_slot() {
    let mut wheel = Wheel::new(512, Time::from_ns(320));
    wheel.put(1, Time::from_ms(10));
    assert_eq!(wheel.due(), Time::from_ns(511 * 320));
    assert_eq!(wheel.take(Time::from_ns(510 * 320)), None);
    assert_eq!(wheel.take(Time::from_ns(511 * 320)), Some(1));
}

#[test]
fn a_flow_keeps_its_rate() {
    let mut carousel = Carousel::new(2);
    let mut sent = [0u64; 2];
    let mut now = Time::ZERO;
    while now < Time::from_ms(10) {
        for flow in 0..2 {
            carousel.offer(flow, now);
        }
        while let Some(flow) = carousel.take(now) {
            // 1.25 and 0.625 Gbit/s.
            let rate = 156_250_000 >> flow;
            carousel.sent(flow, 1448, rate, now);
            sent[flow as usize] += 1448;
            carousel.offer(flow, now);
        }
        now = carousel.due().max(now + Time::from_ps(1));
    }
    for (flow, sent) in sent.into_iter().enumerate() {
        let wanted = 1_562_500.0 / f64::from(1 << flow);
        assert!((sent as f64 / wanted - 1.0).abs() < 0.02, "flow {flow}: {sent} of {wanted}");
    }
    // Numbers that do not exist are ignored.
    carousel.offer(7, now);
    carousel.sent(7, 1, 1, now);
    assert_eq!(carousel.due(), Time::NEVER.min(carousel.due()));
}

/// Bulk flows of the four events over one bottleneck that marks, paced by the wheel and controlled by the loop.
struct Bench {
    flows: Vec<Flow>,
    acked: Vec<u64>,
    control: RateControl,
    carousel: Carousel,
    /// Segments on their way to the receivers, and acknowledgments on their way back.
    data: VecDeque<(Time, usize, u32, u32, bool)>,
    acks: VecDeque<(Time, usize, u32, bool, Time)>,
    expected: Vec<u32>,
    busy_until: Time,
    queue_most: Time,
    now: Time,
}

const DELAY: Time = Time::from_us(10);
const BYTES_PER_SECOND: u64 = 1_250_000_000;
const MARK_ABOVE: Time = Time::from_us(52);

impl Bench {
    fn new(law: RateLaw, count: usize) -> Bench {
        let mut bench = Bench {
            flows: vec![Flow::default(); count],
            acked: vec![0; count],
            control: RateControl::new(law, count),
            carousel: Carousel::new(count),
            data: VecDeque::new(),
            acks: VecDeque::new(),
            expected: vec![0; count],
            busy_until: Time::ZERO,
            queue_most: Time::ZERO,
            now: Time::ZERO,
        };
        for (number, flow) in bench.flows.iter_mut().enumerate() {
            (flow.post.tx_size, flow.protocol.tx_avail, flow.protocol.remote_win) = (1 << 20, 1 << 20, 1 << 20);
            flow.post.rtt_est = 30;
            flow.set(FlowFlags::FAST, true);
            flow.set(FlowFlags::GO_BACK_N, true);
            bench.control.begin(number as u32, flow, Time::ZERO);
            bench.carousel.offer(number as u32, Time::ZERO);
        }
        bench
    }

    fn send(&mut self, number: usize) {
        let Some(sent) = transmit(&mut self.flows[number], 1448) else { return };
        let takes = Time::from_ps((u64::from(sent.len) + 78) * 1_000_000_000_000 / BYTES_PER_SECOND);
        let waits = self.busy_until.saturating_sub(self.now);
        self.queue_most = self.queue_most.max(waits);
        self.busy_until = self.busy_until.max(self.now) + takes;
        self.data.push_back((self.busy_until + DELAY, number, sent.seq, sent.len, waits > MARK_ABOVE));
        self.carousel.sent(number as u32, sent.len, self.flows[number].post.rate, self.now);
        self.carousel.offer(number as u32, self.now);
    }

    fn acknowledge(&mut self, number: usize, ack: u32, marked: bool, sent_at: Time) {
        let flow = &mut self.flows[number];
        let rtt = ((self.now.saturating_sub(sent_at)).as_ps() / 1_000_000) as u32;
        flow.post.rtt_est = flow.post.rtt_est - flow.post.rtt_est / 8 + rtt / 8;
        let flags = Flags::ACK.with_if(marked, Flags::ECE);
        let summary = Summary { ack, window: u16::MAX, flags, ..Summary::default() };
        flow.set_shifts(0, 4);
        if let Outcome::Done(done) = receive(flow, &summary) {
            self.acked[number] += u64::from(done.tx_bump);
            flow.protocol.tx_avail += done.tx_bump;
        }
        self.carousel.offer(number as u32, self.now);
    }

    fn run(&mut self, until: Time) {
        while self.now < until {
            while let Some(number) = self.control.next(self.now) {
                if self.control.update(number, &mut self.flows[number as usize], self.now) {
                    retransmit(&mut self.flows[number as usize]);
                    self.carousel.offer(number, self.now);
                }
            }
            while let Some(&(at, number, seq, len, marked)) = self.data.front().filter(|first| first.0 <= self.now) {
                self.data.pop_front();
                if seq == self.expected[number] {
                    self.expected[number] = seq.wrapping_add(len);
                }
                // A sample without the time that an acknowledgment takes from end to end would not be one.
                let waited = at.saturating_sub(Time::from_us(22));
                self.acks.push_back((at + DELAY, number, self.expected[number], marked, waited));
            }
            while let Some(&(_, number, ack, marked, sent)) = self.acks.front().filter(|first| first.0 <= self.now) {
                self.acks.pop_front();
                self.acknowledge(number, ack, marked, sent);
            }
            while let Some(number) = self.carousel.take(self.now) {
                self.send(number as usize);
            }
            let first = |at: Option<Time>| at.unwrap_or(Time::NEVER);
            let next = first(self.data.front().map(|data| data.0)).min(first(self.acks.front().map(|ack| ack.0)));
            self.now = next.min(self.control.due()).min(self.carousel.due()).max(self.now + Time::from_ns(1));
        }
    }
}

#[test]
fn dctcp_rates_share_a_bottleneck_and_keep_its_queue_short() {
    let mut bench = Bench::new(RateLaw::Dctcp, 4);
    bench.run(Time::from_ms(60));
    let before = bench.acked.clone();
    bench.queue_most = Time::ZERO;
    bench.run(Time::from_ms(160));
    let rates: Vec<f64> = bench.acked.iter().zip(before).map(|(after, before)| (after - before) as f64 / 0.1).collect();
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    let jain = sum * sum / (4.0 * squares);
    assert!(sum > 0.8 * BYTES_PER_SECOND as f64, "{rates:?}");
    assert!(jain > 0.9, "{jain} {rates:?}");
    assert!(bench.queue_most < Time::from_ms(2), "{}", bench.queue_most);
}

#[test]
fn a_flow_without_congestion_has_no_rate_where_the_limiter_is_bypassed() {
    let mut flow = Flow::default();
    flow.post.rtt_est = 20;
    let mut control = RateControl::new(RateLaw::Dctcp, 1).bypassing();
    control.begin(0, &mut flow, Time::ZERO);
    for look in 1..=100u64 {
        flow.post.cnt_ackb = 50_000;
        assert!(!control.update(0, &mut flow, Time::from_us(50 * look)));
        assert_eq!(flow.post.rate, 0);
    }
    (flow.post.cnt_ackb, flow.post.cnt_ecnb) = (50_000, 10_000);
    control.update(0, &mut flow, Time::from_us(5050));
    // 8 Gbit/s were measured; the first mark halves them, as the fraction of marks begins at one.
    assert!((400_000_000..600_000_000).contains(&flow.post.rate), "{}", flow.post.rate);
}

#[test]
fn without_an_acknowledgment_a_flow_times_out_and_halves_its_rate() {
    for law in [RateLaw::Dctcp, RateLaw::Timely, RateLaw::None] {
        let mut flow = Flow::default();
        flow.post.rtt_est = 50;
        let mut control = RateControl::new(law, 1);
        control.begin(0, &mut flow, Time::ZERO);
        flow.protocol.tx_sent = 1000;
        let mut timeouts = Vec::new();
        let mut now = Time::ZERO;
        while now < Time::from_ms(2) {
            now = control.due();
            assert_eq!(control.next(now), Some(0));
            if control.update(0, &mut flow, now) {
                timeouts.push(now);
            }
        }
        assert!((3..=5).contains(&timeouts.len()), "{law:?}: {timeouts:?}");
        assert!(timeouts[0] >= Time::from_us(400), "{law:?}: four intervals of two round trips: {timeouts:?}");
        control.end(0);
        assert_eq!(control.due(), Time::NEVER);
    }
}

#[test]
fn a_window_that_stays_closed_wants_probes_and_is_no_congestion() {
    let mut control = RateControl::new(RateLaw::Dctcp, 1).bypassing();
    let mut flow = Flow::default();
    (flow.post.tx_size, flow.protocol.tx_avail, flow.post.rtt_est) = (1000, 1000, 10);
    control.begin(0, &mut flow, Time::ZERO);
    let mut asked = 0;
    for _ in 0..20 {
        let now = control.due();
        asked += u32::from(control.update(0, &mut flow, now));
    }
    assert!((3..=6).contains(&asked), "{asked} of 20 intervals");
    assert_eq!(flow.post.rate, 0, "no rate without congestion");
    flow.protocol.remote_win = 1000;
    let now = control.due();
    assert!(!control.update(0, &mut flow, now), "nothing is out, and it may send");
}
