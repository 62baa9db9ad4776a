//! Other stacks as peers of the live card: lwIP and gVisor's netstack, as servers and as clients, IPv4 and IPv6. They
//! stand on the client's link by a packet socket. Needs root, ethtool, and what live_card needs; netstack is built with
//! NICFORGE_TCP_PEERS=1.
#[path = "../../../tcp/tests/peers/mod.rs"]
mod stacks;

use std::path::Path;

use crate::skip;
use crate::support::netns::{Hosts, example_file, has};
use crate::support::over::{Over, text};

const ECHO: &str = include_str!("../../../preload/tests/common/echo.py");

/// Connects to a peer and sends back what comes, until it has no more.
const ECHOING_CLIENT: &str = "
import socket, sys, time
for attempt in range(300):
    try: c = socket.create_connection((sys.argv[1], 7000), timeout=20); break
    except OSError: time.sleep(0.1)
while d := c.recv(50_000): c.sendall(d)
c.close()
";

/// Starts a program whose descriptor 3 is the link of an interface.
const ON_LINK: &str = "
import os, socket, sys
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
link.bind((sys.argv[1], 3))
link.setsockopt(263, 23, 1)
os.dup2(link.fileno(), 3)
os.set_inheritable(3, True)
os.execv(sys.argv[2], sys.argv[2:])
";

fn exchange(name: &str, peer: &Path, bytes: &str) {
    if !has("ethtool") {
        return skip::skipped("stacks on a packet socket need ethtool, which ends their link's offloads");
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(programs) = Over::at(folder.path()) else { return };
    let Some(hosts) = Hosts::up(name) else { return };
    let example = std::fs::read_to_string(example_file("tasnic-netns.toml")).unwrap();
    let own = "address = [\"10.99.1.1/24\", \"10.9.0.1/24\", \"fd09::1/64\"]";
    let service = format!("[tcp]\nservice = {:?}", programs.service().display());
    let card = example.replace("address = [\"10.99.1.1/24\"]", own).replace("[tcp]", &service);
    let file = folder.path().join("card.toml");
    std::fs::write(&file, card).unwrap();
    // What a peer reads from its link has to be whole on the wire: cut into frames, with checksums.
    for (host, device) in [("gateway", "nf-inside"), ("client", "eth0")] {
        text(hosts.on(host, "ethtool").args(["-K", device, "tx", "off", "tso", "off", "gso", "off", "gro", "off"]));
    }
    let mut gateway = hosts.start(&file, &[]);
    hosts.wait_for(&mut gateway, "10.99.1.1");
    for version in ["4", "6"] {
        let on_link = |mode: &str| {
            let mut command = hosts.on("client", "timeout");
            command.args(["60", "python3", "-c", ON_LINK, "eth0"]).arg(peer).args([mode, version, bytes]);
            command
        };
        let server = programs.serve(7000, &["python3", "-c", ECHO, "7000", "dual"]);
        text(&mut on_link("connect"));
        drop(server);
        let mut listening = on_link("listen").spawn().unwrap();
        let address = if version == "6" { "fd09::2" } else { "10.9.0.2" };
        text(&mut programs.command(&["python3", "-c", ECHOING_CLIENT, address]));
        assert!(listening.wait().unwrap().success(), "the peer that listens, IPv{version}");
    }
    gateway.stop();
}

#[test]
fn lwip_exchanges_streams_with_the_card() {
    if let Some(peer) = stacks::build_lwip() {
        exchange("lwip", &peer, "300000");
    }
}

#[test]
fn netstack_exchanges_streams_with_the_card() {
    if let Some(peer) = stacks::build_netstack() {
        exchange("netstack", &peer, "2000000");
    }
}
