//! Other stacks as peers, both directions, IPv4 and IPv6: lwIP (Debian's liblwip-dev, built here with cc) and gVisor's
//! netstack (a Go program, built here where Go and its module proxy are). Each says that it skips without its tools.
//! Set NICFORGE_TCP_PEERS=1 to build netstack: it takes minutes the first time.

mod common;
mod tap;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Mutex;

use nicforge_tcp::Config;
use tap::{Faulty, Harness, Role, give_descriptor_3};

fn source(peer: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers").join(peer)
}

fn folder(peer: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(peer);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn ran(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

fn build_lwip() -> Option<PathBuf> {
    if !Path::new("/usr/include/lwip/lwip/tcpip.h").exists() {
        println!("skipped: lwIP is not here (Debian: liblwip-dev)");
        return None;
    }
    let program = folder("lwip").join("peer");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-I/usr/include/lwip", "-o"]).arg(&program).arg(source("lwip").join("main.c"));
    cc.args(["-llwip", "-lpthread"]);
    if !ran(&mut cc) {
        println!("skipped: the C compiler does not build lwIP's peer");
        return None;
    }
    Some(program)
}

fn build_netstack() -> Option<PathBuf> {
    let folder = folder("netstack");
    let program = folder.join("peer");
    if program.exists() {
        return Some(program);
    }
    if std::env::var_os("NICFORGE_TCP_PEERS").is_none() {
        println!("skipped: NICFORGE_TCP_PEERS is not set, so netstack's peer is not built");
        return None;
    }
    std::fs::copy(source("netstack").join("main.go"), folder.join("main.go")).ok()?;
    let go = |arguments: &[&str]| ran(Command::new("go").args(arguments).current_dir(&folder));
    let built = (folder.join("go.mod").exists() || go(&["mod", "init", "peer"]))
        && go(&["get", "gvisor.dev/gvisor@v0.0.0-20250205023644-9414b50a5633"])
        && go(&["mod", "tidy"])
        && go(&["build", "-o", "peer", "."]);
    if !built {
        println!("skipped: Go or its module proxy is not here");
        return None;
    }
    Some(program)
}

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
