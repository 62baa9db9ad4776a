//! Packets that a router cannot send on: their senders are told (RFC 1812, sections 5.2.7.1 and 5.3.1; RFC 4443, section 3),
//! where ports have addresses to tell it from. Else such packets are dropped only.

use std::net::IpAddr;

use nicforge_nic::{Packet, TxOffload, Verdict, data_of, mbuf_room};
use nicforge_platform::Cpu;
use nicforge_units::Time;
use nicforge_wire::icmp_error::{Sender, Undelivered, icmp_error};

use crate::{PortMap, TTL_EXPIRED};

/// Answers of a core in the long run, and how many it may give at once: a loop full of packets shall
/// not become one full of answers (RFC 4443, section 2.4 f). Both as Linux has them for all of a host.
const EVERY: Time = Time::from_ms(1);
const AT_ONCE: u64 = 50;

/// The cause of the drop of a packet to which no route leads.
pub const NO_ROUTE: &str = "no_route";

/// What answers for one core.
#[derive(Clone, Copy, Debug, Default)]
pub struct Refusals {
    /// When all answers so far would have been given at the pace of the long run.
    paid_until: Time,
}

impl Refusals {
    /// What becomes of a packet without a hop left, which nobody has changed: the answer goes back out of
    /// the port that it came from, in its own buffer.
    #[cold]
    pub fn expired<C: Cpu>(&mut self, cpu: &mut C, packet: &mut Packet, ports: &PortMap) -> Verdict {
        let answer = self.answer(cpu, packet, ports, Undelivered::NoHopLeft);
        answer.unwrap_or(Verdict::Drop(TTL_EXPIRED))
    }

    /// The same of a packet to which no route leads.
    #[cold]
    pub fn no_route<C: Cpu>(&mut self, cpu: &mut C, packet: &mut Packet, ports: &PortMap) -> Verdict {
        self.answer(cpu, packet, ports, Undelivered::NoRoute).unwrap_or(Verdict::Drop(NO_ROUTE))
    }

    fn answer<C: Cpu>(
        &mut self,
        cpu: &mut C,
        packet: &mut Packet,
        ports: &PortMap,
        why: Undelivered,
    ) -> Option<Verdict> {
        let port = ports.get(packet.port)?;
        // A port without any address of its own says nothing.
        let link_local = port.address.map(|_| port.mac.link_local());
        let of_v6 = port.address6.or(link_local)?;
        let now = cpu.now();
        let paid_until = self.paid_until.max(now);
        if paid_until > now + EVERY * (AT_ONCE - 1) {
            return None;
        }
        let (head, data) = (packet.head.at, data_of(packet.mbuf));
        let room = match head {
            _ if head == data => mbuf_room(),
            // A header that the NIC put before the buffer's data.
            _ if packet.mbuf < head && head < data => (data.0 - head.0) as u32,
            // In memory that is not the buffer's own nothing may grow.
            _ => packet.head.len,
        };
        let frame_len = packet.len() as usize;
        let about = cpu.bytes(packet.head.at, packet.head.len as usize);
        let error = |ip: IpAddr| {
            let from = Sender { mac: port.mac, ip };
            icmp_error(about, frame_len, why, from, room as usize)
        };
        let frame = port.address.and_then(|own| error(own.into())).or_else(|| error(of_v6.into()))?;
        self.paid_until = paid_until + EVERY;
        cpu.bytes_mut(packet.head.at, frame.len()).copy_from_slice(&frame);
        packet.head.len = frame.len() as u32;
        packet.rest.len = 0;
        packet.offload = TxOffload::default();
        Some(Verdict::Transmit(packet.port))
    }
}
