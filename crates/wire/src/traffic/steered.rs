//! How a client makes RSS bring a request to the queue of its choice: by its source port.

use super::TrafficError;
use super::flows::FlowTuple;
use crate::rss::{INDIRECTION_ENTRIES, IndirectionTable, RssKey, Toeplitz};

/// First of the ports that clients may use as they like (RFC 6335, section 6).
const DYNAMIC_PORTS: u16 = 49_152;

/// Finds source ports. Toeplitz is linear over xor: what a port adds to the hash does not depend
/// on the rest of the packet, so one port for each value of the bits that select an entry will do.
#[derive(Clone, Debug)]
pub(super) struct SteeredPorts {
    rss: Toeplitz,
    /// By what the port adds to the entry's number.
    ports: [u16; INDIRECTION_ENTRIES],
    /// Entries of each queue.
    entries: Vec<Vec<u8>>,
}

impl SteeredPorts {
    /// For a NIC that hashes by `key` and spreads its entries over `queues` queues.
    pub(super) fn new(queues: u16, key: &RssKey) -> Result<SteeredPorts, TrafficError> {
        if !(1..=INDIRECTION_ENTRIES as u16).contains(&queues) {
            return Err(TrafficError::SteeredQueues(queues));
        }
        let rss = Toeplitz::new(key);
        let nobody = std::net::Ipv4Addr::UNSPECIFIED;
        let mut ports = [0; INDIRECTION_ENTRIES];
        for port in DYNAMIC_PORTS..=u16::MAX {
            let adds = rss.hash_ipv4_ports(nobody, nobody, port, 0);
            ports[IndirectionTable::entry(adds)] = port;
        }
        let table = IndirectionTable::spread_over(queues);
        let mut entries = vec![Vec::new(); usize::from(queues)];
        for entry in 0..INDIRECTION_ENTRIES as u8 {
            entries[usize::from(table.queue(u32::from(entry)))].push(entry);
        }
        Ok(SteeredPorts { rss, ports, entries })
    }

    /// The source port with which `flow` is received by `queue` (below the number of queues).
    pub(super) fn port(&self, flow: &FlowTuple, queue: u16) -> u16 {
        let rest = self.rss.hash_ipv4_ports(flow.source, flow.destination, 0, flow.destination_port);
        let entries = &self.entries[usize::from(queue)];
        // Any entry of the queue; clients are spread over them by their hash.
        let entry = entries[(rest >> 16) as usize % entries.len()];
        self.ports[IndirectionTable::entry(rest ^ u32::from(entry))]
    }
}

#[cfg(test)]
mod tests {
    use super::super::flows::FlowSpace;
    use super::*;

    #[test]
    fn every_client_reaches_every_queue() {
        let rss = Toeplitz::default();
        let clients = FlowSpace::new(1, 300).unwrap();
        for queues in [1, 3, 8, 128] {
            let table = IndirectionTable::spread_over(queues);
            let steered = SteeredPorts::new(queues, &RssKey::MICROSOFT).unwrap();
            for (client, queue) in (0..300).flat_map(|c| (0..queues).map(move |q| (c, q))) {
                let flow = clients.tuple(client);
                let port = steered.port(&flow, queue);
                let (from, to) = (flow.source, flow.destination);
                let hash = rss.hash_ipv4_ports(from, to, port, flow.destination_port);
                assert_eq!(table.queue(hash), queue);
                assert!(port >= DYNAMIC_PORTS);
            }
        }
        assert!([0, 129].map(|queues| SteeredPorts::new(queues, &RssKey::MICROSOFT)).iter().all(Result::is_err));
    }
}
