//! Multicast groups and mirroring sessions.

use std::collections::BTreeMap;

/// Where a mirroring session sends its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// A port.
    pub port: Option<u64>,
    /// A multicast group.
    pub group: Option<u64>,
}

/// Multicast groups and mirroring sessions.
#[derive(Clone, Debug, Default)]
pub struct Switch {
    /// Nodes: replica number and ports.
    nodes: Vec<(u64, Vec<u64>)>,
    groups: BTreeMap<u64, Vec<usize>>,
    /// Groups whose copies are set as a whole, beside those of nodes.
    copies: BTreeMap<u64, Vec<(u64, u64)>>,
    sessions: BTreeMap<u64, Session>,
}

impl Switch {
    /// Makes a node and returns its handle.
    pub fn add_node(&mut self, rid: u64, ports: Vec<u64>) -> usize {
        self.nodes.push((rid, ports));
        self.nodes.len() - 1
    }

    /// Makes a group, empty at first.
    pub fn add_group(&mut self, group: u64) {
        self.groups.entry(group).or_default();
    }

    /// Sets the copies of a group (replica number, port), or removes it.
    pub fn set_group(&mut self, group: u64, copies: Option<Vec<(u64, u64)>>) {
        let Some(copies) = copies else {
            self.copies.remove(&group);
            return;
        };
        self.copies.insert(group, copies);
    }

    /// Puts a node into a group; false where one of them does not exist.
    pub fn associate(&mut self, group: u64, node: usize) -> bool {
        let known = node < self.nodes.len();
        self.groups.get_mut(&group).filter(|_| known).map(|nodes| nodes.push(node)).is_some()
    }

    /// Sets a mirroring session.
    pub fn set_session(&mut self, session: u64, to: Session) {
        self.sessions.insert(session, to);
    }

    /// Removes a mirroring session.
    pub fn remove_session(&mut self, session: u64) {
        self.sessions.remove(&session);
    }

    pub(crate) fn session(&self, session: u64) -> Option<Session> {
        self.sessions.get(&session).copied()
    }

    /// Ports and replica numbers of a group.
    pub(crate) fn replicas(&self, group: u64) -> Vec<(u64, u64)> {
        let nodes = self.groups.get(&group).into_iter().flatten();
        let of_nodes = nodes.flat_map(|node| self.nodes[*node].1.iter().map(|port| (*port, self.nodes[*node].0)));
        let copies = self.copies.get(&group).into_iter().flatten().map(|(rid, port)| (*port, *rid));
        of_nodes.chain(copies).collect()
    }
}
