//! The way out of a NIC, through its port.

use hdrhistogram::Histogram;
use nicforge_nic::TxOffload;
use nicforge_nic::transmit::{Bridged, Departure, Egress};
use nicforge_platform::live::LiveError;
use nicforge_platform::live::ports::Port;
use nicforge_units::Time;
use nicforge_wire::headers::ETHERNET_HEADER_LEN;

use super::too_long::TooLong;

/// The way out of one NIC.
pub(super) struct Out<'a> {
    port: &'a mut dyn Port,
    too_long: &'a mut TooLong,
    /// What the port's link carries behind the Ethernet header; frames of no more are sent without a look.
    mtu: usize,
    latency: &'a mut Histogram<u64>,
    /// Frames that stages send by other ports.
    bridged: &'a mut Vec<Bridged>,
    now: Time,
    /// The first failure of the port.
    pub failed: Option<LiveError>,
}

impl<'a> Out<'a> {
    /// That by `port`, of frames that leave at `now`.
    pub fn new(
        port: &'a mut dyn Port,
        too_long: &'a mut TooLong,
        latency: &'a mut Histogram<u64>,
        bridged: &'a mut Vec<Bridged>,
        now: Time,
    ) -> Out<'a> {
        Out {
            mtu: port.link().map_or(usize::MAX, |link| link.mtu),
            port,
            too_long,
            latency,
            bridged,
            now,
            failed: None,
        }
    }

    #[inline]
    fn send(&mut self, frame: &[u8], left: TxOffload) -> Result<(), LiveError> {
        let may_be_too_long = frame.len() > self.mtu.saturating_add(ETHERNET_HEADER_LEN);
        let before = may_be_too_long.then(|| self.port.counters().above_mtu);
        if left == TxOffload::default() {
            self.port.send(frame, self.now)?
        } else {
            self.port.send_unfinished(frame, left, self.now)?
        }
        if before.is_some_and(|before| self.port.counters().above_mtu > before) {
            self.too_long.is_too_long(frame, self.mtu, self.now);
        }
        Ok(())
    }
}

impl Egress for Out<'_> {
    fn depart(&mut self, departure: Departure<'_>) {
        let latency = self.now.saturating_sub(departure.stamp);
        self.latency.saturating_record(latency.as_ps() / 1_000);
        let left = departure.left;
        let sent = match *departure.pieces {
            [bytes, [], []] => self.send(bytes, left),
            pieces => self.send(&pieces.concat(), left),
        };
        if let Err(error) = sent {
            self.failed.get_or_insert(error);
        }
    }

    fn bridge(&mut self, frame: Bridged) {
        self.bridged.push(frame);
    }
}
