//! What a host counts.

use std::ops::AddAssign;

/// Counters of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackCounters {
    /// Frames received.
    pub frames_in: u64,
    /// Frames sent.
    pub frames_out: u64,
    /// Frames that are too short, not IP or not for us.
    pub not_ours: u64,
    /// Frames with a wrong header or checksum.
    pub malformed: u64,
    /// Fragments, which this stack does not reassemble.
    pub fragments: u64,
    /// Segments for no connection and no listener.
    pub no_port: u64,
    /// RSTs sent for them.
    pub resets_out: u64,
    /// SYNs dropped because the accept queue was full.
    pub accept_queue_full: u64,
    /// SYNs dropped because the backlog was full and cookies are off.
    pub backlog_full: u64,
    /// SYN cookies sent.
    pub cookies_out: u64,
    /// Connections that a cookie opened.
    pub cookies_in: u64,
    /// Acknowledgments whose cookie was wrong or old.
    pub cookies_bad: u64,
    /// Answers dropped because too many waited.
    pub answers_dropped: u64,
    /// ICMP errors ignored because they name nothing of ours.
    pub icmp_ignored: u64,
    /// Connections dropped for want of buffers.
    pub no_buffer: u64,
}

impl AddAssign for StackCounters {
    fn add_assign(&mut self, other: StackCounters) {
        self.frames_in += other.frames_in;
        self.frames_out += other.frames_out;
        self.not_ours += other.not_ours;
        self.malformed += other.malformed;
        self.fragments += other.fragments;
        self.no_port += other.no_port;
        self.resets_out += other.resets_out;
        self.accept_queue_full += other.accept_queue_full;
        self.backlog_full += other.backlog_full;
        self.cookies_out += other.cookies_out;
        self.cookies_in += other.cookies_in;
        self.cookies_bad += other.cookies_bad;
        self.answers_dropped += other.answers_dropped;
        self.icmp_ignored += other.icmp_ignored;
        self.no_buffer += other.no_buffer;
    }
}
