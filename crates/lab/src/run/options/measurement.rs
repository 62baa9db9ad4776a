//! Options of what is measured, and when.

use nicforge_options::{Allowed, choice, options};

choice! {
    /// What is measured.
    pub enum Measure {
        /// One window.
        Window = "window",
        /// The highest rate without loss (RFC 2544).
        NoDropRate = "no_drop_rate",
    }
}

options! {
    /// What is measured, and from when on cores poll.
    pub struct Measurement {
        /// What is measured: one window, or a search for the highest rate without loss (RFC 2544).
        measure: Measure = Measure::Window, "", Measure::ALLOWED;
        /// Cores begin to poll this long after traffic begins, so that they meet full rings, as
        /// a server does whose flow tables and caches are cold when traffic begins.
        polling_starts_ms: f64 = 0.0, "ms", Allowed::Number(0.0, 60_000.0);
    }
}

options! {
    /// The time before the window.
    pub struct Warmup {
        /// Simulated time before the window.
        warmup_ms: f64 = 5.0, "ms", Allowed::Number(0.0, 60_000.0);
    }
}

options! {
    /// The time line.
    pub struct TimelineOptions {
        /// Time from one entry of the report's time line to the next, from the beginning of traffic
        /// on; there is none when unset.
        timeline_ms: Option<f64> = None, "ms", Allowed::Number(0.001, 60_000.0), default "no time line";
    }
}

options! {
    /// The window.
    pub struct WindowOptions {
        /// Simulated time of the window.
        window_ms: f64 = 10.0, "ms", Allowed::Number(0.001, 60_000.0);
    }
}

options! {
    /// How sure the values of a window are to be.
    pub struct PrecisionOptions {
        /// The window lasts until the 95 % confidence intervals of the metric that leads the table and of mean latency are this share of their
        /// values wide on each side (`--precision 1%`), and begins behind what drifts; `max_window_ms` at most. It is
        /// `window_ms` long when unset.
        precision: Option<f64> = None, "share", Allowed::Number(0.000_1, 0.5), default "window_ms decides";
        /// The time behind `warmup_ms` that `precision` may take.
        max_window_ms: f64 = 100.0, "ms", Allowed::Number(0.001, 60_000.0);
    }
}
