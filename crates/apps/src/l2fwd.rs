//! `l2fwd`: exchanges the Ethernet addresses and sends out of the port's peer.

use nicforge_nic::{Packet, Verdict};
use nicforge_platform::{AddressSpace, Cpu};
use nicforge_wire::FrameError;
use nicforge_wire::headers::{ETHERNET_HEADER_LEN, EthernetView};

use crate::headers::cause_of;
use crate::{AppConfig, AppError, AppKind, AppShape, Application, Place, PortMap, Reads, SharedTables};

/// The layer-2 forwarder; it has no tables.
#[derive(Clone, Debug)]
pub struct L2Fwd {
    pub(crate) ports: PortMap,
}

impl<C: Cpu> Application<C> for L2Fwd {
    /// Forwards one packet.
    fn packet(&mut self, cpu: &mut C, packet: &mut Packet) -> Verdict {
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

impl AppKind for L2Fwd {
    const NAME: &'static str = "l2fwd";
    const ABOUT: &'static str = "forwards by port, and changes hardware addresses only";
    type Options = ();

    fn shape(_options: &()) -> AppShape {
        AppShape { reads: Reads::Ethernet, ..AppShape::default() }
    }

    fn build<C: Cpu>(
        config: &AppConfig,
        _place: Place,
        _space: &mut AddressSpace,
        _shared: &SharedTables,
    ) -> Result<Box<dyn Application<C>>, AppError> {
        Ok(Box::new(L2Fwd { ports: config.ports.clone() }))
    }
}
