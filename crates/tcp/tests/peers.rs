//! Other stacks as peers, both directions, IPv4 and IPv6: lwIP (Debian's liblwip-dev, built here with cc) and gVisor's
//! netstack (a Go program, built here where Go and its module proxy are). Each says that it skips without its tools.
//! Set NICFORGE_TCP_PEERS=1 to build netstack: it takes minutes the first time.

mod common;
#[path = "peers/mod.rs"]
mod programs;
mod tap;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Mutex;

use nicforge_tcp::Config;
use programs::{build_lwip, build_netstack};
use tap::{Faulty, Harness, Role, give_descriptor_3};

fn start(program: &Path, port: UnixDatagram, arguments: [&str; 3]) -> Child {
    let mut command = Command::new(program);
    command.args(arguments);
    give_descriptor_3(&mut command, OwnedFd::from(port));
    command.spawn().unwrap()
}

/// A peer that ends with its test.
struct Peer(Child);

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn exchange(program: &Path, faults: Faulty, total: &str, versions: &[&str]) {
    for version in versions {
        for we_connect in [false, true] {
            eprintln!("{} {version}, we connect: {we_connect}", program.display());
            let (ours, theirs) = UnixDatagram::pair().unwrap();
            let mode = if we_connect { "listen" } else { "connect" };
            let child = Mutex::new(Peer(start(program, theirs, [mode, version, total])));
            let mut harness = Harness::over(File::from(OwnedFd::from(ours)), Config::default(), faults);
            let peer = if *version == "4" {
                [10, 9, 0, 2].into()
            } else {
                std::net::Ipv6Addr::new(0xfd09, 0, 0, 0, 0, 0, 0, 2).into()
            };
            let role = if we_connect { Role::Connect(peer, 7000) } else { Role::Listen(7000) };
            harness.run(role, || child.lock().unwrap().0.try_wait().unwrap().is_some());
            assert!(child.lock().unwrap().0.wait().unwrap().success());
        }
    }
}

#[test]
fn lwip_exchanges_streams_with_us() {
    if let Some(program) = build_lwip() {
        exchange(&program, Faulty::default(), "300000", &["4", "6"]);
        exchange(&program, Faulty { loss: 10, twice: 20, seed: 3, ..Faulty::default() }, "50000", &["4"]);
    }
}

#[test]
fn netstack_exchanges_streams_with_us() {
    if let Some(program) = build_netstack() {
        exchange(&program, Faulty::default(), "2000000", &["4", "6"]);
        exchange(&program, Faulty { loss: 20, swap: 30, twice: 20, seed: 3 }, "200000", &["4", "6"]);
    }
}
