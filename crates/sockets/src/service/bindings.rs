//! Who has which port: the rules of `bind`, `SO_REUSEADDR` and `SO_REUSEPORT`.

use std::collections::{BTreeMap, HashSet};
use std::net::{IpAddr, SocketAddr};

use rustix::io::Errno;

/// Linux's default range of ephemeral ports.
const EPHEMERAL: std::ops::Range<u16> = 32768..61000;

/// One socket's claim to an address.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// The socket.
    pub flow: u32,
    /// Its address, without IPv4 in IPv6.
    pub at: SocketAddr,
    /// `SO_REUSEADDR`.
    pub reuse_address: bool,
    /// `SO_REUSEPORT`.
    pub reuse_port: bool,
    /// An unspecified IPv6 address leaves IPv4 to others.
    pub v6_only: bool,
    /// Owner's user: ports are shared within one user only.
    pub user: u32,
    /// It listens.
    pub listening: bool,
}

impl Claim {
    fn covers(&self, other: &Claim) -> bool {
        let (a, b) = (self.at.ip(), other.at.ip());
        if a == b {
            return true;
        }
        match (a, b) {
            (IpAddr::V4(a), IpAddr::V4(b)) => a.is_unspecified() || b.is_unspecified(),
            (IpAddr::V6(a), IpAddr::V6(b)) => a.is_unspecified() || b.is_unspecified(),
            (IpAddr::V6(a), IpAddr::V4(_)) => a.is_unspecified() && !self.v6_only,
            (IpAddr::V4(_), IpAddr::V6(b)) => b.is_unspecified() && !other.v6_only,
        }
    }

    fn conflicts(&self, other: &Claim) -> bool {
        if !self.covers(other) {
            return false;
        }
        let share_address = self.reuse_address && other.reuse_address && !self.listening && !other.listening;
        let share_port = self.reuse_port && other.reuse_port && self.user == other.user;
        !(share_address || share_port)
    }
}

/// All claims, and all pairs of addresses that connections use.
#[derive(Debug, Default)]
pub struct Bindings {
    by_port: BTreeMap<u16, Vec<Claim>>,
    pairs: HashSet<(SocketAddr, SocketAddr)>,
    next: u16,
}

impl Bindings {
    /// Ephemeral ports begin at a place that `seed` chooses (RFC 6056).
    pub fn new(seed: u64) -> Bindings {
        let next = (seed % u64::from(EPHEMERAL.end - EPHEMERAL.start)) as u16;
        Bindings { next, ..Bindings::default() }
    }

    fn ephemeral(&mut self) -> u16 {
        self.next = (self.next + 1) % (EPHEMERAL.end - EPHEMERAL.start);
        EPHEMERAL.start + self.next
    }

    fn free(&self, claim: &Claim) -> bool {
        let at_port = self.by_port.get(&claim.at.port());
        at_port.is_none_or(|claims| claims.iter().all(|other| other.flow == claim.flow || !claim.conflicts(other)))
    }

    /// Binds; port 0 chooses one. Returns the port.
    pub fn bind(&mut self, mut claim: Claim) -> Result<u16, Errno> {
        if claim.at.port() == 0 {
            let any = (0..EPHEMERAL.len()).any(|_| {
                let port = self.ephemeral();
                claim.at.set_port(port);
                !self.by_port.contains_key(&port)
            });
            if !any {
                return Err(Errno::ADDRINUSE);
            }
        } else if !self.free(&claim) {
            return Err(Errno::ADDRINUSE);
        }
        self.by_port.entry(claim.at.port()).or_default().push(claim);
        Ok(claim.at.port())
    }

    /// Marks a claim as listening.
    pub fn listen(&mut self, flow: u32, port: u16) -> Result<(), Errno> {
        let find = |claims: &Vec<Claim>| claims.iter().find(|claim| claim.flow == flow).copied();
        let mut claim = self.by_port.get(&port).and_then(find).ok_or(Errno::INVAL)?;
        claim.listening = true;
        if !self.free(&claim) {
            return Err(Errno::ADDRINUSE);
        }
        for own in self.by_port.entry(port).or_default().iter_mut().filter(|own| own.flow == flow) {
            own.listening = true;
        }
        Ok(())
    }

    /// Gives up a claim.
    pub fn unbind(&mut self, flow: u32, port: u16) {
        if let Some(claims) = self.by_port.get_mut(&port) {
            claims.retain(|claim| claim.flow != flow);
            if claims.is_empty() {
                self.by_port.remove(&port);
            }
        }
    }

    /// A local port for a connection to `to`, which no other connection to it uses.
    pub fn port_for(&mut self, from: IpAddr, to: SocketAddr) -> Result<u16, Errno> {
        for _ in 0..EPHEMERAL.len() {
            let port = self.ephemeral();
            if !self.by_port.contains_key(&port) && !self.pairs.contains(&(SocketAddr::new(from, port), to)) {
                return Ok(port);
            }
        }
        Err(Errno::ADDRNOTAVAIL)
    }

    /// Notes a connection's addresses; fails when they are in use.
    pub fn pair(&mut self, local: SocketAddr, remote: SocketAddr) -> Result<(), Errno> {
        if self.pairs.insert((local, remote)) { Ok(()) } else { Err(Errno::ADDRNOTAVAIL) }
    }

    /// Forgets them.
    pub fn unpair(&mut self, local: SocketAddr, remote: SocketAddr) {
        self.pairs.remove(&(local, remote));
    }
}

impl Bindings {
    /// Whether an unspecified IPv6 claim includes IPv4.
    pub fn takes_v4(&self, flow: u32, port: u16) -> bool {
        let claims = self.by_port.get(&port);
        claims.is_some_and(|claims| claims.iter().any(|claim| claim.flow == flow && !claim.v6_only))
    }
}
