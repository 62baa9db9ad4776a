//! The hardware address of a port's next hop, which may change while a run goes on.
//!
//! Applications know the one that was found when the run began. Where the neighbour has moved since, the
//! port replaces it on the way out, so no worker has to be told.

use std::net::IpAddr;

use nicforge_units::Time;
use nicforge_wire::headers::MacAddress;

/// How long it is where it was found: of two that say they are it, neither can make frames go to and fro
/// faster than that. Linux has the same (`locktime`).
const STAYS: Time = Time::from_ms(1_000);

/// A next hop that was asked for.
#[derive(Clone, Debug)]
pub struct NextHop {
    port: usize,
    address: IpAddr,
    /// As applications have it.
    known: MacAddress,
    /// As it is.
    mac: MacAddress,
    every: Time,
    ask_at: Time,
    /// From when on it may have moved again.
    may_move_at: Time,
    /// Whether it was heard of since it was asked for.
    heard: bool,
    /// Whether people know that it is silent.
    is_silent: bool,
}

/// What stands in frames to the next hop, and what shall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    from: MacAddress,
    to: MacAddress,
}

/// A question for the next hop.
#[derive(Clone, Debug)]
pub struct Question {
    /// Whose hardware address is asked for.
    pub address: IpAddr,
    /// Whether nobody answered the one before.
    pub unanswered: bool,
    /// What people do not know yet.
    pub event: Option<String>,
}

impl Moved {
    /// Sends `frame` after the next hop, if it is for that.
    pub fn redirect(&self, frame: &mut [u8]) {
        if let Some(to) = frame.first_chunk_mut::<6>()
            && *to == self.from.0
        {
            *to = self.to.0;
        }
    }
}

impl NextHop {
    /// That of port number `port`: `address` was found at `mac`, and is asked for again `every` so long.
    pub fn new(port: usize, address: IpAddr, mac: MacAddress, every: Time) -> NextHop {
        NextHop {
            port,
            address,
            known: mac,
            mac,
            every,
            ask_at: every,
            may_move_at: Time::ZERO,
            heard: true,
            is_silent: false,
        }
    }

    /// Where frames go, if not where applications think.
    pub fn moved(&self) -> Option<Moved> {
        (self.mac != self.known).then_some(Moved { from: self.known, to: self.mac })
    }

    /// `address` is at `mac` at `now`, as somebody there says: whether it has moved, and what people want to
    /// know.
    pub fn hear(&mut self, address: IpAddr, mac: MacAddress, now: Time) -> (bool, Option<String>) {
        if address != self.address || mac.is_multicast() || mac == MacAddress::default() {
            return (false, None);
        }
        let moves = mac != self.mac;
        if moves && now < self.may_move_at {
            return (false, None);
        }
        if moves {
            self.may_move_at = now + STAYS;
        }
        self.heard = true;
        let (port, was) = (self.port, std::mem::replace(&mut self.mac, mac));
        let spoke = std::mem::replace(&mut self.is_silent, false);
        if was != mac {
            let event = format!("port {port}: {address} is at {mac} now, it was at {was}");
            return (true, Some(event));
        }
        let event = spoke.then(|| format!("port {port}: {address} answers again"));
        (false, event)
    }

    /// When it is time to ask.
    pub fn due(&self) -> Time {
        self.ask_at
    }

    /// It is asked for at `now`.
    pub fn ask(&mut self, now: Time) -> Question {
        self.ask_at = now + self.every;
        let (port, address) = (self.port, self.address);
        let unanswered = !std::mem::replace(&mut self.heard, false);
        let was_silent = self.is_silent;
        self.is_silent |= unanswered;
        let event = (self.is_silent && !was_silent).then(|| format!("port {port}: {address} does not answer"));
        Question { address, unanswered, event }
    }
}
