//! A real peer of vhost-user: DPDK's virtio-net driver (net_virtio_user), which sends every frame back.
//! Where DPDK is not installed (Debian: `apt install dpdk-dev`) the tests say so and pass.

use crate::live::ports::testpmd::{Testpmd, echo, until_down, until_up};
use crate::live::ports::{Port, PortCounters, VhostUserPort};

fn with_dpdk(queues: u16, options: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vhost.sock");
    let mut port = VhostUserPort::open(&path, queues, 9000).unwrap();
    // Twice: what one guest left must not be in the way of the next.
    for _ in 0..2 {
        let device = format!("net_virtio_user0,path={},queues={queues},{options}", path.display());
        let Some(peer) = Testpmd::start(&device, queues) else {
            return;
        };
        until_up(&mut port, &peer);
        *port.counters_mut() = PortCounters::default();
        echo(&mut port, &peer, 20_000, &[60, 1514, 64, 1000]);
        drop(peer);
        until_down(&mut port);
    }
}

#[test]
fn dpdk_sends_frames_back_by_one_pair_and_by_two() {
    with_dpdk(1, "mrg_rxbuf=1,in_order=0");
    with_dpdk(2, "mrg_rxbuf=0,in_order=0,cq=1");
}
