//! `l2fwd`: exchanges the Ethernet addresses and sends out of the port's peer.

use nicforge_nic::{Packet, Verdict};
use nicforge_platform::Cpu;
use nicforge_wire::FrameError;
use nicforge_wire::headers::{ETHERNET_HEADER_LEN, EthernetView};

use crate::PortMap;
use crate::headers::cause_of;

/// The layer-2 forwarder; it has no tables.
#[derive(Clone, Debug)]
pub struct L2Fwd {
    pub(crate) ports: PortMap,
}

impl L2Fwd {
    /// Forwards one packet.
    pub fn packet<C: Cpu>(&mut self, cpu: &mut C, packet: &mut Packet) -> Verdict {
        let Some(port) = self.ports.get(packet.port) else {
            return Verdict::Drop(crate::NO_SUCH_PORT);
        };
        let held = ETHERNET_HEADER_LEN.min(packet.head.len as usize);
        match EthernetView::new(cpu.bytes_mut(packet.head.at, held)) {
            Ok(mut ethernet) => {
                ethernet.swap_addresses();
                Verdict::Transmit(port.peer)
            }
            Err(_) => Verdict::Drop(cause_of(FrameError::EthernetTruncated, packet)),
        }
    }
}
