//! Which server a new flow gets.

use nicforge_platform::Cpu;

use super::Lb;
use crate::tables::{FlowKey, Maglev};

/// The cause of the drop of a flow's first packet while no server takes new flows.
const NO_SERVER: &str = "no_server";

/// How the next new flow finds its server.
#[derive(Clone, Debug)]
pub(super) enum Choice {
    /// The next server in turn, and how many flows it has had in this turn.
    RoundRobin(u32, u32),
    Consistent(Maglev),
}

impl Lb {
    /// The server of a new flow with this key.
    pub(super) fn choose<C: Cpu>(&self, cpu: &mut C, key: &FlowKey) -> Result<u32, &'static str> {
        if !self.states.is_empty() && self.states.iter().all(|state| state.weight == 0) {
            return Err(NO_SERVER);
        }
        match &self.choice {
            Choice::RoundRobin(next, _) if self.states.is_empty() => Ok(*next),
            Choice::RoundRobin(next, _) => {
                let mut turns = (*next..self.server_count).chain(0..*next);
                turns.find(|server| self.states[*server as usize].weight > 0).ok_or(NO_SERVER)
            }
            Choice::Consistent(table) => Ok(table.find(cpu, key.hash())),
        }
    }

    /// Whether flows of this server go to others.
    #[inline]
    pub(super) fn is_down(&self, server: u32) -> bool {
        self.states.get(server as usize).is_some_and(|state| state.down)
    }

    /// Takes over what the servers' file says by now.
    #[cold]
    pub(super) fn look_at_servers<C: Cpu>(&mut self, cpu: &mut C) {
        (self.version, self.states) = (self.watched.version(), self.watched.states());
        if let Choice::Consistent(table) = &self.choice {
            let weights: Vec<u32> = self.states.iter().map(|state| state.weight).collect();
            table.fill(cpu, &weights);
        }
    }

    /// `server` got a flow more.
    pub(super) fn count(&mut self, server: u32) {
        let weight = self.states.get(server as usize).map_or(1, |state| state.weight);
        if let Choice::RoundRobin(next, had) = &mut self.choice {
            (*next, *had) = if *had + 1 < weight { (server, *had + 1) } else { ((server + 1) % self.server_count, 0) };
        }
    }
}
