//! What TLS on the connections of a network counted.

use nicforge_l5p::tls::reader::ReaderCounters;
use nicforge_units::Time;

use super::Secure;

impl Secure {
    /// Counters by name: the protocol's, the port's, how records came, and where the time went.
    pub fn counters(&self) -> Vec<(String, u64)> {
        let mut records = self.past.records;
        let readers = self.flows.values().filter_map(|flow| flow.inward.as_ref());
        readers.for_each(|inward| add(&mut records, &inward.reader.counters()));
        let port = self.port.port_counters();
        let mut named = self.port.named_counters();
        if named.is_empty() {
            return named;
        }
        let us = |time: Time| time.as_us() as u64;
        let more = [
            ("tls_records_offloaded", records.offloaded),
            ("tls_records_partly_offloaded", records.partly_offloaded),
            ("tls_records_not_offloaded", records.not_offloaded),
            ("tls_encrypted_again_bytes", records.encrypted_again_bytes),
            ("tls_in_software_packets", port.in_software_packets),
            ("tls_no_room", port.no_room),
            ("tls_damaged", port.damaged),
            ("tls_returns", port.returns),
            ("tls_away_us", us(port.away)),
            ("tls_away_most_us", us(port.away_most)),
            ("tls_nic_cpu_us", us(self.past.nic)),
            ("tls_software_cpu_us", us(self.past.software)),
        ];
        named.retain(|(name, _)| name.contains("tls"));
        named.extend(more.map(|(name, count)| (name.to_string(), count)));
        named
    }
}

/// Adds what a reader counted.
pub(super) fn add(sum: &mut ReaderCounters, more: &ReaderCounters) {
    sum.offloaded += more.offloaded;
    sum.partly_offloaded += more.partly_offloaded;
    sum.not_offloaded += more.not_offloaded;
    sum.encrypted_again_bytes += more.encrypted_again_bytes;
}
