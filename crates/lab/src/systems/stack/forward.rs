//! A gateway's way: what comes in by one NIC is translated and leaves by the other.

use nicforge_apps::Application;
use nicforge_interfaces::kernel::{Received, Sending};
use nicforge_nic::{Packet, PortId, Segment, TxOffload, Verdict};
use nicforge_platform::sim::DeviceReader;
use nicforge_platform::{Addr, Cpu, Part};
use nicforge_units::Time;

use super::{Gateway, Kernel};

/// Ethernet, IPv4 and TCP headers without options: what of a forwarded packet is not payload.
const HEADERS_BYTES: u64 = 54;

impl Kernel {
    /// Translates a packet of NIC `nic` and sends it on, on core `core`.
    ///
    /// # Errors
    /// The cause by which the packet is dropped; it is the caller's still.
    pub(super) fn forward(
        &mut self,
        core: usize,
        nic: usize,
        cpu: &mut DeviceReader<'_>,
        packet: &mut Received,
        gateway: &mut Gateway,
    ) -> Result<(), &'static str> {
        self.fetch_all(cpu, nic, packet);
        cpu.work(self.costs.forward);
        let mut translated = Packet {
            mark: 0,
            mbuf: packet.mbuf,
            head: packet.head,
            rest: Segment::default(),
            tail: Addr(0),
            references: Addr(0),
            port: PortId(nic as u8),
            rss_hash: 0,
            flags: packet.flags,
            offload: TxOffload::default(),
            stamp: Time::ZERO,
        };
        cpu.enter(Part::App);
        cpu.work(gateway.work);
        let verdict = gateway.nat.packet(cpu, &mut translated);
        cpu.enter(Part::Stack);
        let out = match verdict {
            Verdict::Transmit(port) if usize::from(port.0) < self.drivers.len() => port,
            Verdict::Transmit(_) => return Err("no_such_port"),
            Verdict::Drop(cause) => return Err(cause),
            Verdict::Keep | Verdict::Take => return Err("kept"),
        };
        self.counters.forwarded_bytes += u64::from(translated.head.len).saturating_sub(HEADERS_BYTES);
        self.counters.packets_out += 1;
        let sending = Sending {
            mbuf: packet.mbuf,
            pieces: [translated.head, Segment::default(), Segment::default()],
            offload: translated.offload,
        };
        self.transmit(core, cpu, out.0.into(), sending);
        Ok(())
    }
}
