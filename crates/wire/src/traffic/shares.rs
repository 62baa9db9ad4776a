//! Shares of a NIC's packets for its queues, whatever RSS would make of the flows.

use rand_pcg::Pcg64;

use super::TrafficError;
use super::alias::AliasTable;
use super::flows::{FlowChoice, FlowSpace, FlowTuple, Target};
use super::random::below;
use super::zipf::Zipf;

/// Who gets which share of the packets, where the choice of flows does not decide alone.
#[derive(Clone, Debug)]
pub enum Shares {
    /// Some of the flows have a share of their own.
    Target(Target),
    /// Every queue has one.
    Queues(QueueShares),
}

/// A share of packets for each queue of a NIC, and the flows that are steered there.
#[derive(Clone, Debug)]
pub struct QueueShares {
    space: FlowSpace,
    queues: AliasTable,
    /// By queue, in order.
    flows: Vec<Vec<u64>>,
}

impl QueueShares {
    /// Shares of `queues` queues that fall evenly from queue 0, which gets `busiest_to_idlest` (1 or
    /// more) times the packets of the last one. `queue_of` says where a flow is steered to; each queue
    /// needs a flow.
    pub fn falling(
        space: &FlowSpace,
        queues: u16,
        busiest_to_idlest: f64,
        mut queue_of: impl FnMut(&FlowTuple) -> u16,
    ) -> Result<QueueShares, TrafficError> {
        let possible = busiest_to_idlest >= 1.0;
        let weights = possible.then(|| falling_weights(queues, busiest_to_idlest));
        let table = weights.and_then(|weights| AliasTable::new(&weights));
        let table = table.ok_or(TrafficError::QueueRatio { queues, ratio: busiest_to_idlest })?;
        let mut flows = vec![Vec::new(); usize::from(queues)];
        for flow in 0..space.count() {
            if let Some(flows) = flows.get_mut(usize::from(queue_of(&space.tuple(flow)))) {
                flows.push(flow);
            }
        }
        if let Some(queue) = flows.iter().position(Vec::is_empty) {
            return Err(TrafficError::QueueFlows { queue: queue as u16, flows: space.count() });
        }
        Ok(QueueShares { space: *space, queues: table, flows })
    }
}

/// Weights that fall evenly from `ratio` of the first queue to 1 of the last.
fn falling_weights(queues: u16, ratio: f64) -> Vec<f64> {
    let steps = f64::from(queues.max(2) - 1);
    let above_last = |queue: u16| f64::from(queues - 1 - queue) / steps;
    (0..queues).map(|queue| 1.0 + (ratio - 1.0) * above_last(queue)).collect()
}

/// Draws a queue, then one of its flows.
#[derive(Clone, Debug)]
pub(super) struct QueuePicker {
    queues: AliasTable,
    flows: Vec<QueueFlows>,
}

/// The flows of a queue, of which there is at least one, and which of them is next.
#[derive(Clone, Debug)]
struct QueueFlows {
    flows: Vec<u64>,
    order: Order,
}

#[derive(Clone, Debug)]
enum Order {
    Uniform,
    Weighted(AliasTable),
    /// The index of the next one.
    InTurn(usize),
}

impl QueuePicker {
    /// The flows of each queue are chosen by `choice` as if there were no others. `zipf` has its exponent.
    pub(super) fn new(
        shares: QueueShares,
        space: &FlowSpace,
        choice: FlowChoice,
        zipf: &Zipf,
    ) -> Result<QueuePicker, TrafficError> {
        if shares.space != *space {
            return Err(TrafficError::QueueChoice);
        }
        let ordered = |flows: Vec<u64>| {
            let order = match choice {
                FlowChoice::Uniform => Order::Uniform,
                FlowChoice::RoundRobin => Order::InTurn(0),
                FlowChoice::Zipf { .. } => {
                    let weight = |&flow: &u64| zipf.hat((flow + 1) as f64);
                    let weights: Vec<f64> = flows.iter().map(weight).collect();
                    Order::Weighted(AliasTable::new(&weights).ok_or(TrafficError::QueueChoice)?)
                }
                FlowChoice::Hot { .. } | FlowChoice::Single => {
                    return Err(TrafficError::QueueChoice);
                }
            };
            Ok(QueueFlows { flows, order })
        };
        let flows: Result<_, TrafficError> = shares.flows.into_iter().map(ordered).collect();
        Ok(QueuePicker { queues: shares.queues, flows: flows? })
    }

    pub(super) fn draw(&mut self, random: &mut Pcg64) -> u64 {
        let QueueFlows { flows, order } = &mut self.flows[self.queues.draw(random)];
        let index = match order {
            Order::Uniform => below(random, flows.len() as u64) as usize,
            Order::Weighted(table) => table.draw(random),
            Order::InTurn(next) => {
                let index = *next;
                *next = (index + 1) % flows.len();
                index
            }
        };
        flows[index]
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::generator;
    use super::*;

    const QUEUES: u16 = 8;

    fn queue_of(tuple: &FlowTuple) -> u16 {
        tuple.source_port % QUEUES
    }

    fn picker(space: &FlowSpace, choice: FlowChoice, ratio: f64) -> QueuePicker {
        let shares = QueueShares::falling(space, QUEUES, ratio, queue_of).unwrap();
        let exponent = match choice {
            FlowChoice::Zipf { s } => s,
            _ => 0.0,
        };
        let zipf = Zipf::new(space.count(), exponent);
        QueuePicker::new(shares, space, choice, &zipf).unwrap()
    }

    /// Whether `count` of `draws` is what `share` makes likely.
    #[track_caller]
    fn assert_share(count: u32, draws: u32, share: f64) {
        let expected = f64::from(draws) * share;
        let off = (f64::from(count) - expected).abs();
        assert!(off < 5.0 * expected.sqrt() + 5.0, "{count} for {expected}");
    }

    #[test]
    fn shares_fall_evenly_from_the_first_queue_to_the_last() {
        let space = FlowSpace::new(1, 1000).unwrap();
        for choice in [FlowChoice::Uniform, FlowChoice::RoundRobin, FlowChoice::Zipf { s: 0.99 }] {
            for ratio in [1.0, 3.25, 4.33, 1000.0] {
                let mut picker = picker(&space, choice, ratio);
                let mut random = generator(1, 2);
                let mut counts = [0u32; QUEUES as usize];
                for _ in 0..100_000 {
                    let tuple = space.tuple(picker.draw(&mut random));
                    counts[usize::from(queue_of(&tuple))] += 1;
                }
                // The mean of eight is half of the first and the last together.
                let last = 1.0 / (8.0 * (ratio + 1.0) / 2.0);
                for (queue, &count) in counts.iter().enumerate() {
                    let share = last * (ratio - (ratio - 1.0) * queue as f64 / 7.0);
                    assert_share(count, 100_000, share);
                }
            }
        }
    }

    #[test]
    fn a_queues_flows_are_as_likely_as_the_choice_has_them() {
        let space = FlowSpace::new(3, 100).unwrap();
        let hat = |flow: u64, s: f64| ((flow + 1) as f64).powf(-s);
        for (choice, s) in [(FlowChoice::Uniform, 0.0), (FlowChoice::Zipf { s: 1.2 }, 1.2)] {
            let mut picker = picker(&space, choice, 1.0);
            let mut random = generator(1, 2);
            let mut counts = [0u32; 100];
            for _ in 0..400_000 {
                counts[picker.draw(&mut random) as usize] += 1;
            }
            let of = |flow: u64| queue_of(&space.tuple(flow));
            for flow in 0..100 {
                let same = (0..100).filter(|&other| of(other) == of(flow));
                let all: f64 = same.map(|other| hat(other, s)).sum();
                assert_share(counts[flow as usize], 400_000, hat(flow, s) / all / 8.0);
            }
        }
    }

    #[test]
    fn a_queues_flows_take_turns() {
        let space = FlowSpace::new(1, 100).unwrap();
        let mut picker = picker(&space, FlowChoice::RoundRobin, 3.0);
        let mut random = generator(1, 2);
        let drawn: Vec<u64> = (0..2_000).map(|_| picker.draw(&mut random)).collect();
        for queue in 0..QUEUES {
            let is_of = |flow: &u64| queue_of(&space.tuple(*flow)) == queue;
            let turns = (0..100).filter(is_of).collect::<Vec<_>>();
            let drawn = drawn.iter().copied().filter(is_of);
            let expected = turns.iter().copied().cycle();
            assert!(drawn.zip(expected).all(|(drawn, turn)| drawn == turn));
        }
    }

    #[test]
    fn what_cannot_be_shared_out_is_refused() {
        let space = FlowSpace::new(1, 1000).unwrap();
        let falling = |queues, ratio| QueueShares::falling(&space, queues, ratio, queue_of);
        for ratio in [0.0, 0.99, -1.0, f64::NAN, f64::INFINITY, f64::MAX] {
            let refused = falling(QUEUES, ratio);
            assert!(matches!(refused, Err(TrafficError::QueueRatio { .. })), "{ratio}");
        }
        assert!(matches!(falling(0, 2.0), Err(TrafficError::QueueRatio { .. })));
        // No port leaves a rest of 8.
        let refused = falling(QUEUES + 1, 2.0);
        assert!(matches!(refused, Err(TrafficError::QueueFlows { queue: 8, flows: 1000 })));
        let zipf = Zipf::new(1000, 0.0);
        let other = FlowSpace::new(2, 1000).unwrap();
        let hot = FlowChoice::Hot { flows: 1, share: 0.5 };
        for (space, choice) in [(&space, FlowChoice::Single), (&space, hot), (&other, FlowChoice::Uniform)] {
            let shares = falling(QUEUES, 2.0).unwrap();
            let refused = QueuePicker::new(shares, space, choice, &zipf);
            assert!(matches!(refused, Err(TrafficError::QueueChoice)));
        }
    }
}
