//! Flows that share an external port with flows to other destinations, where all ports are in use and that is allowed.
//!
//! Answers are told apart by where they come from. No other host can reach the inside endpoint by such a port, as it has no
//! mapping.

use nicforge_platform::Cpu;

use super::super::entry::{IN_USE, NatEntry, SHARED};
use super::super::mapping::{Endpoint, NO_PORT};
use super::{Flows, Ports};
use crate::tables::{External, FlowKey, Side};

/// External ports that are tried for a flow.
const TRIES: usize = 32;

/// The name of a drop: a flow of another host to the same destination has the external port.
pub(super) const PORT_SHARED: &str = "external_port_shared";

impl Flows {
    /// Opens a flow from the inside whose external port other flows have, to other destinations.
    pub(super) fn open_shared<C: Cpu>(&mut self, cpu: &mut C, key: FlowKey) -> Result<(u32, NatEntry), &'static str> {
        let inside = Endpoint::of(&key);
        for _ in 0..TRIES {
            let Ports::ByEndpoint(mappings, _) = &mut self.ports else { break };
            let Some(external) = mappings.any_port(cpu, inside) else { break };
            if self.is_taken(cpu, &key, external) {
                continue;
            }
            if let Ports::ByEndpoint(mappings, _) = &mut self.ports {
                mappings.hold_host(cpu, inside.address)?;
            }
            return self.enter(cpu, key, external, Side::Inside, IN_USE | SHARED);
        }
        Err(NO_PORT)
    }

    /// Whether answers to the flow with this key from inside would be those of another flow.
    pub(super) fn is_taken<C: Cpu>(&mut self, cpu: &mut C, key: &FlowKey, external: External) -> bool {
        let outer = (external.address, external.port);
        let answers = FlowKey::new(key.destination(), outer, key.protocol(), Side::Outside);
        self.find(cpu, &answers).is_some()
    }
}
