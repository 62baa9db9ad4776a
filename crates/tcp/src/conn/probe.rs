//! Segments that timers ask for: tail loss probes, window probes, keep-alives.

use nicforge_units::Time;

use super::Connection;
use super::emit::Emission;
use super::output::Probe;

impl Connection {
    pub(crate) fn send_probe(&mut self, probe: Probe, now: Time) -> Option<Emission> {
        match probe {
            Probe::Alive => Some(self.emit_probe(self.una() - 1, now)),
            Probe::Tail => self.send_tail_probe(now),
            Probe::Window => self.send_window_probe(now),
        }
    }

    fn send_tail_probe(&mut self, now: Time) -> Option<Emission> {
        let mss = self.payload_most();
        let unsent = self.flow.protocol.tx_avail;
        if unsent > 0 && self.first_fits(unsent, mss, false) {
            self.begin_new(unsent.min(mss), mss, now);
            self.probe_went_out(false, now);
            return self.next_of_burst(now);
        }
        let last = self.tx.sent.len().checked_sub(1)?;
        let sent = self.tx.sent.get(last).copied()?;
        let mut index = last;
        if sent.segments > 1 {
            self.tx.sent.split(last, sent.span.start + sent.mss * (sent.segments - 1));
            index = last + 1;
        }
        self.begin_again(index, 1, now);
        self.probe_went_out(true, now);
        self.next_of_burst(now)
    }

    fn send_window_probe(&mut self, now: Time) -> Option<Emission> {
        let unsent = self.flow.protocol.tx_avail;
        let left = self.window_left();
        let emission = if (unsent > 0 || self.fin_waits()) && left > 0 {
            let mss = self.payload_most();
            let bytes = unsent.min(left).min(mss);
            if bytes == 0 && unsent > 0 {
                return None;
            }
            self.tx.push = true;
            self.begin_new(bytes, mss, now);
            if let Some(burst) = &mut self.tx.burst {
                burst.push = bytes > 0;
            }
            self.next_of_burst(now)
        } else {
            Some(self.emit_probe(self.una() - 1, now))
        };
        self.window_probe_went_out(now);
        emission
    }
}
