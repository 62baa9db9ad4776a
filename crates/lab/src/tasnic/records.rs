//! Records on a NIC that runs TCP (dependent offload): it encrypts what it sends and decrypts what comes in order, as it
//! moves payload between host memory and the wire at line rate.
//!
//! What is not in order costs the bus. A segment that is sent again in the middle of a record needs the record's first
//! part, and bytes that came before a missing segment were stored as they came: once it is there, the NIC reads them,
//! decrypts them and writes them again.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use nicforge_l5p::context::FlowKey;
use nicforge_l5p::sequence::Seq;
use nicforge_nic::Segment;
use nicforge_platform::Dma;
use nicforge_platform::sim::SimDma;
use nicforge_tcp::conn::Connection;
use nicforge_tcp::fast::{Received, Transmitted};
use nicforge_tcp::stack::FourTuple;

use super::flow::NicFlow;
use crate::tas::records::{RecordPlan, SharedRecords};

/// The records of a connection that the slow path hands over.
pub fn begin(plan: RecordPlan, flow: usize, tuple: &FourTuple, connection: &Connection) -> SharedRecords {
    let local = SocketAddr::new(tuple.local, tuple.local_port);
    let remote = SocketAddr::new(tuple.remote, tuple.remote_port);
    // Bytes that have come wait in the ring.
    let receive = connection.expected().0.wrapping_sub(connection.readable());
    let starts = [Seq(connection.next().0), Seq(receive)];
    Rc::new(RefCell::new(plan.begin(flow, FlowKey::between(local, remote), starts)))
}

/// The records of a connection whose NIC works on them.
fn offloaded(flow: &NicFlow) -> Option<&SharedRecords> {
    flow.records.as_ref().filter(|records| records.borrow().by().is_nic())
}

/// A segment came. Returns the bytes behind it that were stored before and are in order now.
pub fn came(flow: &NicFlow, done: &Received) -> u32 {
    let Some(records) = offloaded(flow) else { return 0 };
    if done.tx_bump > 0 {
        records.borrow_mut().acknowledge(Seq(flow.state.unacknowledged().0));
    }
    done.rx_bump.saturating_sub(done.store.map_or(done.rx_bump, |store| store.len))
}

/// A segment leaves. Returns the bytes before it that the NIC needs of its record.
pub fn leaves(flow: &mut NicFlow, sent: &Transmitted) -> u32 {
    let goes_on = std::mem::replace(&mut flow.sealed_to, sent.seq.wrapping_add(sent.len)) == sent.seq;
    if goes_on || sent.len == 0 {
        return 0;
    }
    offloaded(flow).map_or(0, |records| records.borrow().prefix_bytes(Seq(sent.seq)))
}

/// Reads what lies in `pieces`, and writes it again.
pub fn rewrite(pieces: [Segment; 2], dma: &mut SimDma) {
    for piece in pieces.into_iter().filter(|piece| piece.len > 0) {
        let mut bytes = vec![0; piece.len as usize];
        let came = dma.read_ahead(piece.at, &mut bytes);
        dma.restart(came.max(dma.now()));
        dma.write(piece.at, &bytes);
    }
}
