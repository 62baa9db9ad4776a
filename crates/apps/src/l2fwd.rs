//! `l2fwd`: a bridge between a port and its peer, or a reflector on a port that is its own peer.
//!
//! A bridge forwards frames as they are. It learns on which side hardware addresses are, forgets them after a silence
//! ([`AGE`]), and drops frames between two hosts of one side (`same_side`), if the port hears all
//! frames of a link. A reflector exchanges the Ethernet addresses, as
//! benchmarks expect it; a group address becomes no source (IEEE 802.3, 3.2.3), the port's own address does instead.
//! Neither forwards frames of link protocols, such as PAUSE (`link_protocol`; IEEE 802.1Q, table 8-1).

use bytemuck::{Pod, Zeroable};
use nicforge_nic::{Packet, PortId, Verdict};
use nicforge_platform::{Addr, AddressSpace, Cpu};
use nicforge_units::Time;
use nicforge_wire::FrameError;
use nicforge_wire::headers::{ETHERNET_HEADER_LEN, EthernetView, MacAddress};

use crate::headers::cause_of;
use crate::tables::hash2;
use crate::{AppConfig, AppError, AppKind, AppShape, Application, Place, Port, PortMap, Reads, SharedTables};

/// How long a bridge knows the side of an address that sends nothing (IEEE 802.1Q, table 8-6).
pub const AGE: Time = Time::from_ms(300_000);
/// Addresses whose side a core can know; a newer one takes the place of an older one.
const PLACES: u64 = 4096;

/// A hardware address that a bridge has seen.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Learnt {
    /// The address, and above it the number of the port plus one.
    host: u64,
    seen: u64,
}

/// The layer-2 forwarder.
#[derive(Clone, Debug)]
pub struct L2Fwd {
    pub(crate) ports: PortMap,
    /// The addresses of a bridge; a reflector keeps none.
    learnt: Option<Addr>,
}

impl L2Fwd {
    fn forward<C: Cpu>(&self, cpu: &mut C, packet: &Packet) -> Result<PortId, &'static str> {
        let port = self.ports.get(packet.port).ok_or(crate::NO_SUCH_PORT)?;
        let held = ETHERNET_HEADER_LEN.min(packet.head.len as usize);
        let mut ethernet = EthernetView::new(cpu.bytes_mut(packet.head.at, held))
            .map_err(|_| cause_of(FrameError::EthernetTruncated, packet))?;
        let (to, from) = (ethernet.destination(), ethernet.source());
        if is_of_link(to) {
            return Err("link_protocol");
        }
        match self.learnt.filter(|_| port.peer != packet.port) {
            Some(learnt) => bridge(cpu, learnt, packet.port, from, to, port),
            None => {
                // A reflector.
                ethernet.set_destination(from);
                ethernet.set_source(if to.is_multicast() { port.mac } else { to });
                Ok(port.peer)
            }
        }
    }
}

/// Learns where `from` is, and says where a frame to `to` goes.
fn bridge<C: Cpu>(
    cpu: &mut C,
    learnt: Addr,
    arrival: PortId,
    from: MacAddress,
    to: MacAddress,
    port: &Port,
) -> Result<PortId, &'static str> {
    if from.is_multicast() {
        return Err("group_source");
    }
    if !port.hears_all {
        return Ok(port.peer);
    }
    let now = cpu.now();
    let place = |host: u64| learnt + hash2(host, 0) % PLACES * size_of::<Learnt>() as u64;
    let (source, destination) = (number(from), number(to));
    let side = u64::from(arrival.0) + 1;
    cpu.store(place(source), Learnt { host: source | side << 48, seen: now.as_ps() });
    let known: Learnt = cpu.load(place(destination));
    let is_here = known.host == destination | side << 48 && now.saturating_sub(Time::from_ps(known.seen)) < AGE;
    if is_here { Err("same_side") } else { Ok(port.peer) }
}

fn number(address: MacAddress) -> u64 {
    let [a, b, c, d, e, f] = address.0;
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

/// Whether frames to `address` stay on their link.
fn is_of_link(address: MacAddress) -> bool {
    matches!(address.0, [0x01, 0x80, 0xc2, 0, 0, 0..=0x0f])
}

impl<C: Cpu> Application<C> for L2Fwd {
    /// Forwards one packet.
    fn packet(&mut self, cpu: &mut C, packet: &mut Packet) -> Verdict {
        match self.forward(cpu, packet) {
            Ok(out) => Verdict::Transmit(out),
            Err(cause) => Verdict::Drop(cause),
        }
    }
}

impl AppKind for L2Fwd {
    const NAME: &'static str = "l2fwd";
    const ABOUT: &'static str = "bridges a port and its peer, or reflects frames on a port without one";
    type Options = ();

    fn shape(_options: &()) -> AppShape {
        AppShape { reads: Reads::Ethernet, bridges: true, ..AppShape::default() }
    }

    fn build<C: Cpu>(
        config: &AppConfig,
        _place: Place,
        space: &mut AddressSpace,
        _shared: &SharedTables,
    ) -> Result<Box<dyn Application<C>>, AppError> {
        let ports = config.ports.clone();
        let bridges = ports.0.iter().enumerate().any(|(number, port)| usize::from(port.peer.0) != number);
        let learnt = bridges.then(|| space.data(PLACES * size_of::<Learnt>() as u64, 64));
        Ok(Box::new(L2Fwd { ports, learnt }))
    }
}
