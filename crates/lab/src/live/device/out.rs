//! The way out of a NIC, through its port.

use hdrhistogram::Histogram;
use nicforge_nic::TxOffload;
use nicforge_nic::transmit::{Departure, Egress};
use nicforge_platform::live::LiveError;
use nicforge_platform::live::ports::Port;
use nicforge_units::Time;
use nicforge_wire::headers::ETHERNET_HEADER_LEN;

use super::{Moved, Station};

/// The way out of one NIC.
pub(super) struct Out<'a> {
    port: &'a mut dyn Port,
    station: &'a mut Station,
    /// What the port's link carries behind the Ethernet header; frames of no more are sent without a look.
    mtu: usize,
    latency: &'a mut Histogram<u64>,
    moved: Option<Moved>,
    now: Time,
    /// The first failure of the port.
    pub failed: Option<LiveError>,
}

impl<'a> Out<'a> {
    /// That by `port`, of frames that leave at `now`.
    pub fn new(
        port: &'a mut dyn Port,
        station: &'a mut Station,
        latency: &'a mut Histogram<u64>,
        now: Time,
    ) -> Out<'a> {
        Out {
            mtu: port.link().map_or(usize::MAX, |link| link.mtu),
            moved: station.moved(),
            port,
            station,
            latency,
            now,
            failed: None,
        }
    }

    #[inline]
    fn send(&mut self, frame: &[u8], left: TxOffload) -> Result<(), LiveError> {
        let may_be_too_long = frame.len() > self.mtu.saturating_add(ETHERNET_HEADER_LEN);
        let before = may_be_too_long.then(|| self.port.counters().above_mtu);
        match left == TxOffload::default() {
            true => self.port.send(frame, self.now)?,
            false => self.port.send_unfinished(frame, left, self.now)?,
        }
        if before.is_some_and(|before| self.port.counters().above_mtu > before) {
            self.station.is_too_long(frame, self.mtu, self.now);
        }
        Ok(())
    }
}

impl Egress for Out<'_> {
    fn depart(&mut self, departure: Departure<'_>) {
        let latency = self.now.saturating_sub(departure.stamp);
        self.latency.saturating_record(latency.as_ps() / 1_000);
        let left = departure.left;
        let sent = match (*departure.pieces, self.moved) {
            ([bytes, [], []], None) => self.send(bytes, left),
            (pieces, moved) => {
                let mut frame = pieces.concat();
                if let Some(moved) = moved {
                    moved.redirect(&mut frame);
                }
                self.send(&frame, left)
            }
        };
        if let Err(error) = sent {
            self.failed.get_or_insert(error);
        }
    }
}
