//! The way out of a NIC, through its port.

use hdrhistogram::Histogram;
use nicforge_nic::TxOffload;
use nicforge_nic::transmit::{Departure, Egress};
use nicforge_platform::live::LiveError;
use nicforge_platform::live::ports::Port;
use nicforge_units::Time;

use super::Moved;

/// The way out of one NIC.
pub(super) struct Out<'a> {
    pub port: &'a mut dyn Port,
    pub latency: &'a mut Histogram<u64>,
    pub moved: Option<Moved>,
    pub now: Time,
    pub failed: Option<LiveError>,
}

impl Egress for Out<'_> {
    fn depart(&mut self, departure: Departure<'_>) {
        let latency = self.now.saturating_sub(departure.stamp);
        self.latency.saturating_record(latency.as_ps() / 1_000);
        let left = departure.left;
        let mut send = |frame: &[u8]| match left == TxOffload::default() {
            true => self.port.send(frame, self.now),
            false => self.port.send_unfinished(frame, left, self.now),
        };
        let sent = match (departure.pieces, self.moved) {
            ([bytes, [], []], None) => send(bytes),
            (pieces, moved) => {
                let mut frame = pieces.concat();
                if let Some(moved) = moved {
                    moved.redirect(&mut frame);
                }
                send(&frame)
            }
        };
        if let Err(error) = sent {
            self.failed.get_or_insert(error);
        }
    }
}
