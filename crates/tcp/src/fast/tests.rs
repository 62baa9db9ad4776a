//! The fast path alone: what each event does, and streams between two flows over a bad link.

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

use super::*;
use crate::segment::Flags;

/// Information of the state in bits, as the paper counts its 862: of the flow-group 2, of the duplicates 4, of the marks
/// 1, of two reserved bytes none.
const INFORMATION_BITS: usize = 8 * size_of::<Flow>() - 6 - 4 - 7 - 2 * 8;

fn flow(rx: u32, tx: u32, paper: bool) -> Flow {
    let mut flow = Flow::default();
    (flow.post.rx_size, flow.post.tx_size) = (rx, tx);
    flow.protocol.rx_avail = rx;
    flow.protocol.remote_win = rx;
    flow.set(FlowFlags::FAST, true);
    flow.set(FlowFlags::GO_BACK_N, paper);
    flow
}

fn data(seq: u32, len: u32, ack: u32) -> Summary {
    Summary { seq, len, ack, window: 4096, flags: Flags::ACK, ..Summary::default() }
}

fn done(outcome: Outcome) -> Received {
    match outcome {
        Outcome::Done(done) => done,
        Outcome::Slow(reason) => panic!("{reason:?}"),
    }
}

#[test]
fn the_state_fits_two_cache_lines_and_is_about_the_papers() {
    println!(
        "state per connection: {} bytes ({INFORMATION_BITS} bits of information): pre {}, protocol {}, post {}",
        size_of::<Flow>(),
        size_of::<Pre>(),
        size_of::<Protocol>(),
        size_of::<Post>()
    );
    // A congestion window, 16 bits of the peer's window, flags, shifts of windows, the mark.
    let ours = 32 + 16 + 8 + 8 + 1;
    assert!(size_of::<Flow>() <= 128);
    assert_eq!(INFORMATION_BITS, 862 + ours);
}

#[test]
fn in_order_data_is_placed_and_acknowledged() {
    for paper in [false, true] {
        let mut flow = flow(4096, 4096, paper);
        let received = done(receive(&mut flow, &data(0, 1000, 0)));
        assert_eq!((received.rx_bump, received.acknowledge), (1000, true));
        assert_eq!(received.store.map(|store| (store.at, store.len)), Some((0, 1000)));
        assert_eq!((flow.protocol.ack, flow.protocol.rx_avail, flow.rx_waiting()), (1000, 3096, 1000));
        assert!(application(&mut flow, Bump { rx: 1001, ..Bump::default() }).is_err());
        application(&mut flow, Bump { rx: 1000, ..Bump::default() }).unwrap();
        assert_eq!(flow.protocol.rx_avail, 4096);
    }
}

#[test]
fn what_is_rare_goes_to_the_slow_path_and_changes_nothing() {
    let start = flow(4096, 4096, false);
    let mut cases = vec![data(500, 100, 0), data(0, 0, 0), data(0, 5000, 0), data(0, 100, 7)];
    for flags in [Flags::SYN, Flags::RST, Flags::URG, Flags::FIN] {
        cases.push(Summary { flags: Flags::ACK.with(flags), ..data(0, 100, 0) });
    }
    cases.push(Summary { flags: Flags::PSH, ..data(0, 100, 0) });
    cases.push(Summary { has_rare_options: true, ..data(0, 100, 0) });
    cases.push(Summary { has_clock: true, ..data(0, 100, 0) });
    for case in cases {
        let mut flow = start;
        assert!(matches!(receive(&mut flow, &case), Outcome::Slow(_)), "{case:?}");
        assert_eq!(flow, start, "{case:?}");
    }
}

#[test]
fn one_interval_grows_at_its_ends_and_joins_when_the_gap_fills() {
    let mut flow = flow(4096, 4096, true);
    assert_eq!(done(receive(&mut flow, &data(2000, 100, 0))).store.map(|s| s.at), Some(2000));
    assert!(done(receive(&mut flow, &data(2100, 100, 0))).store.is_some());
    assert!(done(receive(&mut flow, &data(1900, 100, 0))).store.is_some());
    assert!(done(receive(&mut flow, &data(2500, 100, 0))).store.is_none(), "a second interval");
    assert_eq!((flow.protocol.ooo_start, flow.protocol.ooo_len), (1900, 300));
    assert_eq!(done(receive(&mut flow, &data(0, 1900, 0))).rx_bump, 2200);
    assert_eq!((flow.protocol.ack, flow.protocol.ooo_len), (2200, 0));
}

#[test]
fn the_third_duplicate_goes_back_and_later_acknowledgments_still_count() {
    let mut flow = flow(4096, 8192, true);
    application(&mut flow, Bump { tx: 5000, ..Bump::default() }).unwrap();
    let sent: Vec<_> = std::iter::from_fn(|| transmit(&mut flow, 1000)).collect();
    assert_eq!(sent.len(), 5, "the last one fills the window");
    assert_eq!((sent[4].len, flow.protocol.tx_avail), (96, 904));
    let again = data(0, 0, 0);
    for _ in 0..2 {
        assert!(!done(receive(&mut flow, &again)).went_back);
    }
    assert!(done(receive(&mut flow, &again)).went_back);
    assert_eq!((flow.protocol.seq, flow.protocol.tx_pos, flow.protocol.tx_avail), (0, 0, 5000));
    assert_eq!(flow.post.cnt_fretx, 1);
    let late = done(receive(&mut flow, &data(0, 0, 2000)));
    assert_eq!((late.tx_bump, flow.protocol.seq, flow.protocol.tx_avail), (2000, 2000, 3000));
}

#[test]
fn a_window_that_opens_from_zero_is_told_once() {
    let mut flow = flow(1000, 1000, true);
    done(receive(&mut flow, &data(0, 1000, 0)));
    assert_eq!(flow.window_field(), 0);
    let bump = Bump { rx: 600, ..Bump::default() };
    assert!(application(&mut flow, bump).unwrap().window_update);
    assert!(!application(&mut flow, Bump { rx: 400, ..Bump::default() }).unwrap().window_update);
}

#[test]
fn a_probe_passes_a_closed_window_and_its_answer_opens_it() {
    let (mut sender, mut receiver) = (flow(4096, 4096, true), flow(1000, 4096, true));
    sender.protocol.remote_win = 1000;
    application(&mut sender, Bump { tx: 2000, close: true, ..Bump::default() }).unwrap();
    let first = transmit(&mut sender, 1448).unwrap();
    assert!(!probe(&mut sender), "the window is open");
    done(receive(&mut receiver, &data(first.seq, first.len, 0)));
    let closed = Summary { window: receiver.window_field(), ..data(0, 0, receiver.protocol.ack) };
    done(receive(&mut sender, &closed));
    assert_eq!((sender.sendable(), sender.is_stalled()), (0, true));
    // The application reads, and the update is lost.
    application(&mut receiver, Bump { rx: 1000, ..Bump::default() }).unwrap();
    assert!(probe(&mut sender));
    let probed = transmit(&mut sender, 1448).unwrap();
    assert_eq!((probed.len, transmit(&mut sender, 1448)), (1, None));
    assert!(done(receive(&mut receiver, &data(probed.seq, 1, 0))).acknowledge);
    let open = Summary { window: receiver.window_field(), ..data(0, 0, receiver.protocol.ack) };
    done(receive(&mut sender, &open));
    assert_eq!((sender.is_stalled(), sender.sendable()), (false, 999));
    // A window that stays closed costs no byte: the probe goes back, and is sent again.
    let (mut sender, mut receiver) = (flow(4096, 4096, true), flow(1000, 4096, true));
    (sender.protocol.remote_win, receiver.protocol.rx_avail) = (0, 0);
    application(&mut sender, Bump { tx: 10, ..Bump::default() }).unwrap();
    for _ in 0..5 {
        retransmit(&mut sender);
        assert!(probe(&mut sender));
        let probed = transmit(&mut sender, 1448).unwrap();
        let received = done(receive(&mut receiver, &data(probed.seq, probed.len, 0)));
        assert_eq!((received.acknowledge, received.store), (true, None));
        let closed = Summary { window: receiver.window_field(), ..data(0, 0, receiver.protocol.ack) };
        done(receive(&mut sender, &closed));
        assert!(sender.is_stalled());
    }
}

/// One end of a paper flow with its rings and its stream.
struct End {
    flow: Flow,
    rx: Vec<u8>,
    tx: Vec<u8>,
    wrote: u64,
    read: u64,
    total: u64,
}

impl End {
    fn new(seed: u32, total: u64, rx: u32, tx: u32) -> End {
        let mut flow = flow(rx, tx, true);
        (flow.protocol.seq, flow.protocol.ack) = (seed, seed);
        End { flow, rx: vec![0; rx as usize], tx: vec![0; tx as usize], wrote: 0, read: 0, total }
    }

    fn byte(at: u64) -> u8 {
        (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
    }

    fn write(&mut self) {
        let room = u64::from(self.flow.tx_free()).min(self.total - self.wrote) as u32;
        let size = self.flow.post.tx_size;
        let start = crate::ring::advance(self.flow.protocol.tx_pos, self.flow.protocol.tx_avail, size);
        for offset in 0..room {
            self.tx[((start + offset) % size) as usize] = End::byte(self.wrote + u64::from(offset));
        }
        self.wrote += u64::from(room);
        let close = self.wrote == self.total;
        let _ = application(&mut self.flow, Bump { tx: room, close, ..Bump::default() });
    }

    fn read(&mut self) {
        let waiting = self.flow.rx_waiting();
        let size = self.flow.post.rx_size;
        let start = crate::ring::advance(self.flow.protocol.rx_pos, size - waiting, size);
        for offset in 0..waiting {
            let have = self.rx[((start + offset) % size) as usize];
            assert_eq!(have, End::byte(self.read + u64::from(offset)));
        }
        self.read += u64::from(waiting);
        let _ = application(&mut self.flow, Bump { rx: waiting, ..Bump::default() });
    }

    fn segment(&mut self, sent: Option<Transmitted>) -> (Summary, Vec<u8>) {
        let (seq, len, flags, at) = match sent {
            Some(sent) => (sent.seq, sent.len, sent.flags, sent.at),
            None => (self.flow.protocol.seq, 0, Flags::ACK, 0),
        };
        let payload = (0..len).map(|offset| self.tx[((at + offset) % self.flow.post.tx_size) as usize]).collect();
        let window = self.flow.window_field();
        (Summary { seq, len, ack: self.flow.protocol.ack, window, flags, ..Summary::default() }, payload)
    }

    fn take(&mut self, summary: &Summary, payload: &[u8]) -> bool {
        let Outcome::Done(done) = receive(&mut self.flow, summary) else { return false };
        if let Some(store) = done.store {
            for offset in 0..store.len {
                let at = (store.at + offset) % self.flow.post.rx_size;
                self.rx[at as usize] = payload[(store.skip + offset) as usize];
            }
        }
        done.acknowledge
    }

    fn is_done(&self, other_total: u64) -> bool {
        let flow = &self.flow;
        self.read == other_total && flow.has(FlowFlags::PEER_CLOSED | FlowFlags::FIN_SENT) && flow.protocol.tx_sent == 0
    }
}

#[test]
fn two_flows_exchange_streams_over_a_bad_link_by_the_four_events_alone() {
    for seed in 0..200u64 {
        let mut rng = Pcg64::seed_from_u64(seed);
        let mut pick = move |most: u32| rng.next_u32() % (most + 1);
        let (loss, twice, swap) = (pick(200), pick(100), pick(200));
        let start = u32::MAX - pick(30_000);
        let mut ends =
            [0, 1].map(|_| End::new(start, u64::from(pick(60_000)), 1000 + pick(20_000), 1000 + pick(20_000)));
        let mut wire: [Vec<(Summary, Vec<u8>)>; 2] = Default::default();
        let totals = [ends[1].total, ends[0].total];
        let mut quiet = 0;
        for step in 0.. {
            assert!(step < 200_000, "seed {seed} does not end");
            for at in 0..2 {
                ends[at].write();
                ends[at].read();
                if let Some(sent) = transmit(&mut ends[at].flow, 1448) {
                    let segment = ends[at].segment(Some(sent));
                    wire[1 - at].push(segment);
                }
                if wire[at].is_empty() {
                    continue;
                }
                let last = wire[at].len() - 1;
                if last > 0 && pick(999) < swap {
                    wire[at].swap(0, last);
                }
                let (summary, payload) = wire[at].remove(0);
                if pick(999) < twice {
                    wire[at].push((summary, payload.clone()));
                }
                if pick(999) < loss {
                    continue;
                }
                if ends[at].take(&summary, &payload) {
                    let answer = ends[at].segment(None);
                    wire[1 - at].push(answer);
                }
            }
            if wire.iter().all(Vec::is_empty) {
                quiet += 1;
            }
            if ends[0].is_done(totals[0]) && ends[1].is_done(totals[1]) {
                break;
            }
            if quiet > 3 {
                // The slow path's timeout; a closed window is probed by what is sent again.
                quiet = 0;
                for at in 0..2 {
                    retransmit(&mut ends[at].flow);
                    let probe = ends[at].segment(None);
                    wire[1 - at].push(probe);
                }
            }
        }
    }
}
