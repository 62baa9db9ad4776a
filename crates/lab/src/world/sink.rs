//! The other end of the wires: counts what leaves, takes its latency, keeps it for a capture.

use hdrhistogram::Histogram;
use nicforge_nic::PortId;
use nicforge_nic::transmit::Departure;
use nicforge_record::Latency;
use nicforge_units::Time;

use super::generator::Returned;

/// Latencies are kept to a nanosecond up to a minute, with three significant digits.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// A frame that left, kept for a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// When its last bit left.
    pub time: Time,
    /// Out of which port.
    pub port: PortId,
    /// The frame.
    pub bytes: Vec<u8>,
}

/// Receives what all NICs send.
pub struct Sink {
    /// Frames whose last bit left within `[from, until)` count for the window.
    from: Time,
    until: Time,
    /// Frames and bytes of each core, and behind them of those that no core sent.
    sent: Vec<(u64, u64)>,
    latency: Histogram<u64>,
    /// Part of every latency.
    added: Time,
    total: u64,
    /// Bytes of all, and the sum of their latencies in picoseconds.
    total_bytes: u64,
    total_latency_ps: u64,
    last: Time,
    capture: Option<Vec<Captured>>,
    /// Frames that left and whose source waits for that.
    returned: Vec<Returned>,
    tells_sources: bool,
}

impl Sink {
    /// A sink of what `cores` send; `captures` keeps every frame, `tells_sources` reports each to its source.
    pub fn new(cores: usize, captures: bool, tells_sources: bool) -> Sink {
        Sink {
            from: Time::NEVER,
            until: Time::NEVER,
            sent: vec![(0, 0); cores + 1],
            // The arguments are within the range that the histogram documents.
            latency: Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3)
                .expect("bounds and digits are constants that the histogram accepts"),
            added: Time::ZERO,
            total: 0,
            total_bytes: 0,
            total_latency_ps: 0,
            last: Time::ZERO,
            capture: captures.then(Vec::new),
            returned: Vec::new(),
            tells_sources,
        }
    }

    /// The same, with `added` to every latency: what the traffic source takes that measures it.
    pub fn behind(self, added: Time) -> Sink {
        Sink { added, ..self }
    }

    /// The window begins at `from` and lasts until `until`; an earlier one is forgotten.
    pub fn open_window(&mut self, from: Time, until: Time) {
        (self.from, self.until) = (from, until);
        self.sent.fill((0, 0));
        self.latency.reset();
    }

    /// The window lasts until `until` instead, which is later.
    pub fn extend_window(&mut self, until: Time) {
        self.until = until;
    }

    /// Latencies of the window's frames so far, in nanoseconds.
    pub fn latencies(&self) -> &Histogram<u64> {
        &self.latency
    }

    /// Frames and bytes in the window.
    pub fn in_window(&self) -> (u64, u64) {
        let sum = |(frames, bytes), sent: &(u64, u64)| (frames + sent.0, bytes + sent.1);
        self.sent.iter().fold((0, 0), sum)
    }

    /// Those of them that `core` sent.
    pub fn sent_by(&self, core: usize) -> (u64, u64) {
        self.sent[core]
    }

    /// Frames that left since the run began.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Bytes of all frames that left since the run began, and the sum of their latencies in
    /// picoseconds.
    pub fn sums(&self) -> (u64, u64) {
        (self.total_bytes, self.total_latency_ps)
    }

    /// When the last bit of all left.
    pub fn last(&self) -> Time {
        self.last
    }

    /// The latency of the window's frames; `None` when there were none.
    pub fn latency(&self) -> Option<Latency> {
        latency_of(&self.latency)
    }

    /// The frames kept, if they were.
    pub fn take_capture(&mut self) -> Vec<Captured> {
        self.capture.take().unwrap_or_default()
    }

    /// Frames that left since the last call, for sources that wait for that.
    pub fn take_returned(&mut self) -> std::vec::Drain<'_, Returned> {
        self.returned.drain(..)
    }
}

/// What nanoseconds in `histogram` say; `None` when there are none.
pub fn latency_of(histogram: &Histogram<u64>) -> Option<Latency> {
    let us = |ns: u64| ns as f64 / 1e3;
    if histogram.is_empty() {
        return None;
    }
    let at = |quantile: f64| us(histogram.value_at_quantile(quantile));
    let curve = CURVE.iter().map(|&percentile| (percentile, at(percentile / 100.0)));
    Some(Latency {
        mean: histogram.mean() / 1e3,
        p50: at(0.5),
        p99: at(0.99),
        p999: at(0.999),
        max: us(histogram.max()),
        curve: curve.collect(),
    })
}

/// Percentiles of the latency plot.
const CURVE: [f64; 19] =
    [0.0, 1.0, 5.0, 10.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 70.0, 75.0, 80.0, 90.0, 95.0, 99.0, 99.9, 99.99, 100.0];

impl Sink {
    /// A frame leaves.
    #[inline(always)]
    pub fn depart(&mut self, departure: Departure<'_>) {
        self.total += 1;
        let latency = departure.last_bit.saturating_sub(departure.stamp) + self.added;
        self.total_bytes += departure.frame_bytes() as u64;
        self.total_latency_ps += latency.as_ps();
        self.last = self.last.max(departure.last_bit);
        if departure.last_bit >= self.from && departure.last_bit < self.until {
            // A core's queue has its number on every NIC.
            let by = departure.queue.map_or(self.sent.len() - 1, usize::from);
            self.sent[by].0 += 1;
            self.sent[by].1 += departure.frame_bytes() as u64;
            self.latency.saturating_record(latency.as_ps().div_ceil(1_000));
        }
        if self.tells_sources {
            self.returned.push(Returned { port: departure.port, sent: departure.stamp, at: departure.last_bit });
        }
        if let Some(capture) = &mut self.capture {
            capture.push(Captured { time: departure.last_bit, port: departure.port, bytes: departure.pieces.concat() });
        }
    }
}
