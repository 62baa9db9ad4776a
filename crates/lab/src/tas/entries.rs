//! Entries of context queues: what applications read and wrote, and what they are told.

use nicforge_platform::sim::SimCpu;
use nicforge_platform::{Cpu, Part};
use nicforge_tcp::queue::{FromApplication, ToApplication};

use super::app::FlowName;
use super::service::{BURST, Service, touch};

impl Service {
    /// Takes entries of applications, up to a burst of each. Returns whether there were any.
    pub fn take_entries(&mut self, cpu: &mut SimCpu) -> bool {
        cpu.enter(Part::Stack);
        let mut any = false;
        for context in 0..self.contexts.len() {
            for _ in 0..BURST {
                match self.contexts[context].back.pop(cpu) {
                    Ok(None) => break,
                    Ok(Some(entry)) => {
                        cpu.work(self.costs.entry);
                        if self.apply(cpu, context, &entry).is_none() {
                            self.counters.bad_entries += 1;
                        }
                    }
                    Err(_) => self.counters.bad_entries += 1,
                }
                any = true;
            }
        }
        any
    }

    /// What an application read and wrote; nothing where it cannot have.
    fn apply(&mut self, cpu: &mut SimCpu, context: usize, entry: &FromApplication) -> Option<()> {
        let flow = self.flows.get_mut(entry.flow as usize)?.as_mut()?;
        let writable = self.stack.connection(flow.connection)?.writable();
        let own = flow.context == context && usize::from(entry.group) == self.group;
        if !own || entry.rx_bump > flow.held || entry.tx_bump > flow.free.min(writable) {
            return None;
        }
        flow.held -= entry.rx_bump;
        flow.free -= entry.tx_bump;
        let (id, state) = (flow.connection, flow.state);
        touch(cpu, state);
        self.answer(cpu, id.number());
        let now = cpu.now();
        self.stack.discard(id, entry.rx_bump, now);
        self.stack.with(id, |connection| {
            connection.wrote(entry.tx_bump, false, now);
            if entry.no_more_data {
                connection.shut_write(now);
            }
        });
        Some(())
    }

    /// Tells applications what changed, as far as their queues have room. Returns whether any was told.
    pub fn announce(&mut self, cpu: &mut SimCpu) -> bool {
        cpu.enter(Part::Stack);
        let mut any = false;
        let mut waiting = std::mem::take(&mut self.dirty);
        waiting.retain(|&flow| {
            let Some(Some(entry)) = self.flows.get_mut(flow) else { return false };
            let Some(connection) = self.stack.connection(entry.connection) else { return false };
            let told = ToApplication {
                opaque: FlowName::new(self.group, flow).0,
                rx_bump: connection.readable().saturating_sub(entry.held),
                tx_bump: connection.writable().saturating_sub(entry.free),
                peer_closed: connection.is_read_closed(),
            };
            let news = told.rx_bump > 0 || told.tx_bump > 0 || told.peer_closed != entry.closed_told || !entry.told;
            if news {
                cpu.work(self.costs.entry);
                if !self.contexts[entry.context].out.push(cpu, &told) {
                    return true;
                }
                entry.held += told.rx_bump;
                entry.free += told.tx_bump;
                (entry.closed_told, entry.told) = (told.peer_closed, true);
                any = true;
            }
            entry.dirty = false;
            false
        });
        waiting.append(&mut self.dirty);
        self.dirty = waiting;
        any
    }
}
