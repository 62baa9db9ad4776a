//! Segments of a connection that follow one another and that a kernel handles as one (GSO, GRO).

use nicforge_units::Cycles;

/// What segments cost.
#[derive(Clone, Copy, Debug)]
pub struct RunCosts {
    /// The first of a run, and each that belongs to none.
    pub first: Cycles,
    /// Each further one.
    pub further: Cycles,
    /// Payload of a run at most, in bytes.
    pub bytes_max: u32,
}

/// A run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Run {
    connection: Option<usize>,
    bytes: u32,
}

impl Run {
    /// A segment of a connection, by its number, with so many bytes of payload. Tells what it costs.
    pub fn add(&mut self, costs: &RunCosts, connection: Option<usize>, payload: u32) -> Cycles {
        let goes_on = payload > 0 && connection.is_some() && connection == self.connection;
        if goes_on && self.bytes + payload <= costs.bytes_max {
            self.bytes += payload;
            return costs.further;
        }
        *self = Run { connection: connection.filter(|_| payload > 0), bytes: payload };
        costs.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_that_follow_cost_less_until_the_run_is_full() {
        let costs = RunCosts { first: Cycles(10), further: Cycles(1), bytes_max: 3000 };
        let (one, other) = (Some(1), Some(2));
        let mut run = Run::default();
        let mut cost = |connection, payload| run.add(&costs, connection, payload).0;
        assert_eq!([cost(one, 1448), cost(one, 1448), cost(one, 1448)], [10, 1, 10]);
        assert_eq!([cost(other, 1448), cost(one, 1448), cost(one, 0), cost(one, 1448)], [10, 10, 10, 10]);
        assert_eq!([cost(None, 100), cost(None, 100)], [10, 10], "nobody knows the connection");
    }
}
