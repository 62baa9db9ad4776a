//! The hardware address of a port's next hop, which may change while a run goes on, or may not be known yet.
//!
//! Applications know the one that was found when the run began, or a placeholder. The port replaces it on the way out
//! by the one that the next hop has now, so no worker has to be told.
//!
//! Everybody on a link can claim the next hop's IP address. Where its hardware address is known already, a claim is
//! followed only after the next hop has been asked and has kept silent there for [`SILENCE`]: the host that a
//! replacement took over from is gone, while one that is being impersonated answers.

use std::net::IpAddr;

use nicforge_units::Time;
use nicforge_wire::headers::MacAddress;

/// How long a next hop may take to answer when somebody else claims its address.
pub const SILENCE: Time = Time::from_ms(500);
/// How often a next hop is asked for that nobody has heard of.
const UNKNOWN_EVERY: Time = Time::from_ms(1_000);

/// A next hop that was asked for.
#[derive(Clone, Debug)]
pub struct NextHop {
    port: usize,
    address: IpAddr,
    /// As applications have it.
    known: MacAddress,
    /// As it is; `None` before anybody has answered.
    mac: Option<MacAddress>,
    every: Time,
    ask_at: Time,
    /// Who claims to be it, and until when it may contradict.
    claim: Option<(MacAddress, Time)>,
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
            mac: Some(mac),
            every,
            ask_at: every,
            claim: None,
            heard: true,
            is_silent: false,
        }
    }

    /// The same, where nobody has answered yet. Applications send to `placeholder`.
    pub fn unknown(port: usize, address: IpAddr, placeholder: MacAddress, every: Time) -> NextHop {
        let found = NextHop::new(port, address, placeholder, every);
        NextHop { mac: None, ask_at: Time::ZERO, heard: false, ..found }
    }

    /// Where frames go, if not where applications think.
    pub fn moved(&self) -> Option<Moved> {
        let to = self.mac.filter(|mac| *mac != self.known)?;
        Some(Moved { from: self.known, to })
    }

    /// Whether a frame that leaves goes to a next hop that nobody has heard of.
    pub fn is_missed_by(&self, frame: &[u8]) -> bool {
        self.mac.is_none() && frame.first_chunk() == Some(&self.known.0)
    }

    /// Whether nobody has heard of it.
    pub fn is_unknown(&self) -> bool {
        self.mac.is_none()
    }

    /// `address` is at `mac` at `now`, as somebody there says: whether it has moved, and what people want to
    /// know.
    pub fn hear(&mut self, address: IpAddr, mac: MacAddress, now: Time) -> (bool, Option<String>) {
        if address != self.address || mac.is_multicast() || mac == MacAddress::default() {
            return (false, None);
        }
        let port = self.port;
        match self.mac {
            Some(was) if was == mac => {
                self.heard = true;
                let spoke = std::mem::replace(&mut self.is_silent, false);
                let refused = self.claim.take().map(|(other, _)| other);
                let refused = refused.map(|other| {
                    format!("port {port}: {other} claims to be {address}, which answers at {mac}: not followed")
                });
                (false, refused.or_else(|| spoke.then(|| format!("port {port}: {address} answers again"))))
            }
            Some(_) if !self.is_silent => {
                if self.claim.is_none() {
                    self.claim = Some((mac, now + SILENCE));
                    self.ask_at = now;
                }
                (false, None)
            }
            _ => (self.mac.is_some(), Some(self.move_to(mac))),
        }
    }

    /// It is at `mac` from now on; what people want to know.
    fn move_to(&mut self, mac: MacAddress) -> String {
        (self.heard, self.is_silent, self.claim) = (true, false, None);
        let (port, address) = (self.port, self.address);
        match self.mac.replace(mac) {
            Some(was) => format!("port {port}: {address} is at {mac} now, it was at {was}"),
            None => format!("port {port}: {address} is at {mac}"),
        }
    }

    /// A claim that was not contradicted in time is followed; what people want to know of it.
    pub fn settle(&mut self, now: Time) -> Option<String> {
        let (mac, _) = self.claim.filter(|(_, until)| *until <= now)?;
        Some(self.move_to(mac))
    }

    /// When it is time to ask.
    pub fn due(&self) -> Time {
        self.ask_at
    }

    /// When a claim is settled.
    pub fn settled_at(&self) -> Time {
        self.claim.map_or(Time::NEVER, |(_, until)| until)
    }

    /// It is asked for at `now`.
    pub fn ask(&mut self, now: Time) -> Question {
        self.ask_at = now + if self.mac.is_none() { self.every.min(UNKNOWN_EVERY) } else { self.every };
        let (port, address) = (self.port, self.address);
        let unanswered = !std::mem::replace(&mut self.heard, false);
        let was_silent = self.is_silent;
        self.is_silent |= unanswered;
        let event = (self.is_silent && !was_silent).then(|| format!("port {port}: {address} does not answer"));
        Question { address, unanswered, event }
    }
}
