//! Which flows end to make room for others.

use nicforge_platform::Cpu;
use nicforge_wire::headers::ip_protocol;

use super::super::entry::{NatEntry, OF_ALL, OF_HOST, WAITS};
use super::super::mapping::{HOST_SHARE, NO_PORT};
use super::super::waiting::{Kind, Waiting};
use super::{Flows, Ports};
use crate::tables::Side;

impl Flows {
    /// Puts the flow of entry `number`, of either direction, where its state asks for.
    pub(super) fn settle<C: Cpu>(&mut self, cpu: &mut C, number: u32) {
        // Where each flow has its own port none gives way, and none of this costs anything.
        if !self.has_mappings() {
            return;
        }
        let entry = self.table.load(cpu, number);
        if entry.key.protocol() != ip_protocol::TCP {
            return;
        }
        let peer = self.table.load(cpu, entry.peer);
        let kind = Kind::of(&entry, &peer);
        let (flow, from_inside) = match entry.key.side() {
            Side::Inside => (number, entry),
            Side::Outside => (entry.peer, peer),
        };
        if from_inside.waits() != kind {
            self.put(cpu, flow, &from_inside, kind);
        }
    }

    /// Takes the flow, whose entry from inside this is, out of its lists and puts it into those of `kind`.
    pub(super) fn put<C: Cpu>(&mut self, cpu: &mut C, flow: u32, entry: &NatEntry, kind: Option<Kind>) {
        let Ports::ByEndpoint(mappings, all) = &mut self.ports else {
            return;
        };
        // A host that has a flow has a number of flows.
        let Some(at) = mappings.waiting_of(cpu, entry.key.source().0) else {
            return;
        };
        let mut of_host: Waiting = cpu.load(at);
        if let Some(kind) = entry.waits() {
            all.unlink(cpu, &self.table, OF_ALL, kind, flow);
            of_host.unlink(cpu, &self.table, OF_HOST, kind, flow);
        }
        if let Some(kind) = kind {
            all.append(cpu, &self.table, OF_ALL, kind, flow);
            of_host.append(cpu, &self.table, OF_HOST, kind, flow);
        }
        cpu.store(at, of_host);
        cpu.store(self.table.at(flow) + WAITS, kind.map_or(0, |kind| kind as u8));
    }

    /// Ends a flow for a new one of inside host `host` that met `cause`; whether there was any. A host that has its share
    /// takes nothing from others, and a port that another flow needs is not to be had by ending a third one.
    pub(super) fn make_room<C: Cpu>(&mut self, cpu: &mut C, cause: &'static str, host: u32) -> bool {
        let Ports::ByEndpoint(mappings, all) = &self.ports else {
            return false;
        };
        let first = match cause {
            HOST_SHARE => mappings.waiting_of(cpu, host).and_then(|at| cpu.load::<Waiting>(at).first()),
            NO_PORT | crate::TABLE_FULL => all.first(),
            _ => None,
        };
        let Some(flow) = first else {
            return false;
        };
        let entry = self.table.load(cpu, flow);
        self.close(cpu, flow, &entry);
        self.reclaimed += 1;
        true
    }
}
