//! Builds the peers: lwIP (Debian's liblwip-dev) with cc, gVisor's netstack with Go. Each says that it skips without its
//! tools. Each peer is a program that speaks Ethernet frames on descriptor 3: `peer connect|listen 4|6 BYTES`.

use std::path::{Path, PathBuf};
use std::process::Command;

fn source(peer: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tcp/tests/peers").join(peer)
}

fn folder(peer: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(peer);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn ran(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// lwIP's peer.
pub fn build_lwip() -> Option<PathBuf> {
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

/// netstack's peer.
pub fn build_netstack() -> Option<PathBuf> {
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
