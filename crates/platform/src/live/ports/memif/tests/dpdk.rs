//! A real peer of memif: DPDK's own (net_memif), which sends every frame back. Where DPDK is not
//! installed (Debian: `apt install dpdk-dev`) the tests say so and pass.

use crate::live::ports::testpmd::{Testpmd, echo, until_down, until_up};
use crate::live::ports::{MemifPort, MemifRole, MemifTerms};

/// `role` is ours.
fn with_dpdk(role: MemifRole, queues: u16) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memif.sock");
    let theirs = if role == MemifRole::Server { "client" } else { "server" };
    let terms = MemifTerms { id: 3, queues, secret: "sesame".into() };
    let mut port = MemifPort::open(&path, role, terms, 9000).unwrap();
    let device = format!("net_memif0,role={theirs},id=3,secret=sesame,socket-abstract=no,socket={}", path.display());
    let Some(peer) = Testpmd::start(&device, queues) else {
        return;
    };
    until_up(&mut port, &peer);
    // One flow, so one ring: order holds.
    echo(&mut port, &peer, 20_000, &[60, 1514, 64, 2000, 9000]);
    drop(peer);
    until_down(&mut port);
}

#[test]
fn dpdk_sends_frames_back_as_client_and_as_server_over_two_rings() {
    with_dpdk(MemifRole::Server, 1);
    with_dpdk(MemifRole::Client, 2);
}
