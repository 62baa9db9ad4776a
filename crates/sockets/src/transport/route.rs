//! Two transports as one: the loopback, and a network behind it.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;

use nicforge_units::Time;
use rustix::io::Errno;

use super::loopback::Loopback;
use super::secure::Way;
use super::{Accepted, Event, Host, Id, Info, Setting, Transport};
use crate::tls::CryptoInfo;
use crate::watch::Watch;

/// Names of the network's connections have this bit.
const NETWORK: u64 = 1 << 63;

/// Sends what is for own addresses through memory, the rest to the network.
pub struct Route {
    loopback: Loopback,
    network: Option<Box<dyn Transport>>,
    scratch: Vec<Event>,
}

impl Route {
    /// Loopback with an optional network.
    pub fn new(network: Option<Box<dyn Transport>>) -> Route {
        Route { loopback: Loopback::default(), network, scratch: Vec::new() }
    }

    fn at(&mut self, id: Id) -> (&mut dyn Transport, Id) {
        match &mut self.network {
            Some(network) if id.0 & NETWORK != 0 => (network.as_mut(), Id(id.0 & !NETWORK)),
            _ => (&mut self.loopback, id),
        }
    }

    fn view(&self, id: Id) -> (&dyn Transport, Id) {
        match &self.network {
            Some(network) if id.0 & NETWORK != 0 => (network.as_ref(), Id(id.0 & !NETWORK)),
            _ => (&self.loopback, id),
        }
    }

    /// Listens at one place in the loopback and, unless the address is a loopback one, in the network.
    pub fn listen_all(&mut self, at: SocketAddr, backlog: usize, max_segment: u16) -> Result<Vec<Id>, Errno> {
        let mut ids = vec![self.loopback.listen(at, backlog, max_segment)?];
        if let Some(network) = &mut self.network
            && !at.ip().is_loopback()
        {
            match network.listen(at, backlog, max_segment) {
                Ok(id) => ids.push(Id(id.0 | NETWORK)),
                Err(error) => {
                    self.loopback.unlisten(ids[0]);
                    return Err(error);
                }
            }
        }
        Ok(ids)
    }
}

/// An event of the network under its name here.
fn named(event: Event) -> Event {
    let name = |id: Id| Id(id.0 | NETWORK);
    match event {
        Event::Incoming(id) => Event::Incoming(name(id)),
        Event::Connected(id) => Event::Connected(name(id)),
        Event::Readable(id) => Event::Readable(name(id)),
        Event::Writable(id) => Event::Writable(name(id)),
        Event::Failed(id, cause) => Event::Failed(name(id), cause),
        Event::Closed(id) => Event::Closed(name(id)),
    }
}

impl Transport for Route {
    fn owns(&self, address: IpAddr) -> bool {
        self.loopback.owns(address) || self.network.as_ref().is_some_and(|network| network.owns(address))
    }

    fn source_for(&self, to: IpAddr) -> Option<IpAddr> {
        if self.owns(to) { self.loopback.source_for(to) } else { self.network.as_ref()?.source_for(to) }
    }

    fn listen(&mut self, at: SocketAddr, backlog: usize, max_segment: u16) -> Result<Id, Errno> {
        self.loopback.listen(at, backlog, max_segment)
    }

    fn accept(&mut self, listener: Id) -> Option<Accepted> {
        let (transport, id) = self.at(listener);
        let accepted = transport.accept(id)?;
        Some(Accepted { id: Id(accepted.id.0 | (listener.0 & NETWORK)), ..accepted })
    }

    fn unlisten(&mut self, listener: Id) {
        let (transport, id) = self.at(listener);
        transport.unlisten(id);
    }

    fn connect(&mut self, from: SocketAddr, to: SocketAddr, max_segment: u16) -> Result<Id, Errno> {
        if self.owns(to.ip()) {
            return self.loopback.connect(from, to, max_segment);
        }
        let network = self.network.as_mut().ok_or(Errno::NETUNREACH)?;
        network.connect(from, to, max_segment).map(|id| Id(id.0 | NETWORK))
    }

    fn send(&mut self, id: Id, bytes: &[u8], more: bool) -> usize {
        let (transport, id) = self.at(id);
        transport.send(id, bytes, more)
    }

    fn receive(&mut self, id: Id, bytes: &mut [u8]) -> usize {
        let (transport, id) = self.at(id);
        transport.receive(id, bytes)
    }

    fn finished(&self, id: Id) -> bool {
        let (transport, id) = self.view(id);
        transport.finished(id)
    }

    fn finish(&mut self, id: Id) {
        let (transport, id) = self.at(id);
        transport.finish(id);
    }

    fn abort(&mut self, id: Id) {
        let (transport, id) = self.at(id);
        transport.abort(id);
    }

    fn release(&mut self, id: Id) {
        let (transport, id) = self.at(id);
        transport.release(id);
    }

    fn set(&mut self, id: Id, setting: Setting) {
        let (transport, id) = self.at(id);
        transport.set(id, setting);
    }

    fn secure(&mut self, id: Id, way: Way, info: &CryptoInfo, raw: &[u8]) -> Result<(), Errno> {
        let (transport, id) = self.at(id);
        transport.secure(id, way, info, raw)
    }

    fn info(&self, id: Id) -> Info {
        let (transport, id) = self.view(id);
        transport.info(id)
    }

    fn poll(&mut self, now: Time, events: &mut Vec<Event>) -> bool {
        let mut any = self.loopback.poll(now, events);
        if let Some(network) = &mut self.network {
            any |= network.poll(now, &mut self.scratch);
            events.extend(self.scratch.drain(..).map(named));
        }
        any
    }

    fn set_time(&mut self, now: Time) {
        if let Some(network) = &mut self.network {
            network.set_time(now);
        }
    }

    fn flush(&mut self) {
        if let Some(network) = &mut self.network {
            network.flush();
        }
    }

    fn expects_more(&self) -> bool {
        self.network.as_ref().is_some_and(|network| network.expects_more())
    }

    fn expect_none(&mut self) {
        if let Some(network) = &mut self.network {
            network.expect_none();
        }
    }

    fn arm(&mut self) -> bool {
        self.network.as_mut().is_none_or(|network| network.arm())
    }

    fn watch(&mut self, add: &mut dyn FnMut(&mut Watch)) -> bool {
        self.network.as_mut().is_some_and(|network| network.watch(add))
    }

    fn host(&self) -> Option<Host> {
        self.network.as_ref()?.host()
    }

    fn deadline(&self) -> Option<Time> {
        let network = self.network.as_ref().and_then(|network| network.deadline());
        [self.loopback.deadline(), network].into_iter().flatten().min()
    }

    fn waker(&self) -> Option<BorrowedFd<'_>> {
        self.network.as_ref()?.waker()
    }
}
