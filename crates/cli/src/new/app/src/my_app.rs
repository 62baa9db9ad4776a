//! Application `my_app`: counts packets by destination port, and drops those to low ports. Change it into yours.

use nicforge::apps::{AppConfig, AppError, AppKind, Application, Place, PortMap, SharedTables, headers};
use nicforge::nic::{Packet, Verdict};
use nicforge::options::{Allowed, options};
use nicforge::platform::{Addr, AddressSpace, Cpu, Cycles};

options! {
    /// Which packets pass.
    pub struct MyAppOptions {
        /// Packets to TCP and UDP ports below this one are dropped, as `low_port`.
        my_app_lowest_port: u32 = 0, "", Allowed::Whole(0, 65_535);
    }
}

/// The application on one core.
pub struct MyApp {
    ports: PortMap,
    lowest_port: u16,
    /// A counter of 8 bytes for each destination port, in modelled memory: it takes room in the caches.
    counters: Addr,
    packets: u64,
}

impl<C: Cpu> Application<C> for MyApp {
    fn packet(&mut self, cpu: &mut C, packet: &mut Packet) -> Verdict {
        let Some(port) = self.ports.get(packet.port) else {
            return Verdict::Drop("no_such_port");
        };
        let summary = match headers::read(cpu, packet) {
            Ok(headers) => headers.summary,
            Err(cause) => return Verdict::Drop(cause),
        };
        if summary.has_l4_header && summary.destination_port < self.lowest_port {
            return Verdict::Drop("low_port");
        }
        let counter = self.counters + u64::from(summary.destination_port) * 8;
        let count: u64 = cpu.load(counter);
        cpu.store(counter, count + 1);
        self.packets += 1;
        Verdict::Transmit(port.peer)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("packets", self.packets)]
    }
}

impl AppKind for MyApp {
    const NAME: &'static str = "my_app";
    const ABOUT: &'static str = "counts packets by destination port, and drops those to low ports";
    /// An estimate: measure yours.
    const WORK: Option<Cycles> = Some(Cycles(60));
    type Options = MyAppOptions;

    fn build<C: Cpu>(
        config: &AppConfig,
        _place: Place,
        space: &mut AddressSpace,
        _shared: &SharedTables,
    ) -> Result<Box<dyn Application<C>>, AppError> {
        let options: MyAppOptions = config.values.read();
        Ok(Box::new(MyApp {
            ports: config.ports.clone(),
            lowest_port: options.my_app_lowest_port as u16,
            counters: space.data(8 << 16, 64),
            packets: 0,
        }))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_passes_the_shared_suite() {
        nicforge::apps::suite::check::<super::MyApp>();
    }
}
