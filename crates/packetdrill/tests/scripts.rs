//! Runs packetdrill's scripts against the library.
//!
//! `NICFORGE_PACKETDRILL` names a checkout of google/packetdrill in which `gtests/net/packetdrill/packetdrill` has been
//! built. The scripts that must pass are listed in `../shared/data/packetdrill/scripts.txt`, beside the project. Without
//! either, or without root (each script gets a network namespace for its sysctl values), the tests say that they skip.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Scripts of `optional.txt` that pass; docs/tcp.md has the reason for each other one.
const OPTIONAL: [&str; 22] = [
    "cubic/cubic-hystart-delay-min-rtt-jumps-downward.pkt",
    "cubic/cubic-hystart-delay-rtt-jumps-upward.pkt",
    "cwnd_moderation/cwnd-moderation-disorder-no-moderation.pkt",
    "fast_recovery/prr-ss-10pkt-lost-1.pkt",
    "fast_recovery/prr-ss-30pkt-lost-1_4-11_16.pkt",
    "fast_recovery/prr-ss-30pkt-lost1_4.pkt",
    "fast_recovery/prr-ss-ack-below-snd_una-cubic.pkt",
    "fast_retransmit/fr-4pkt-fack-last-byte.pkt",
    "fast_retransmit/fr-4pkt-sack.pkt",
    "fastopen/client/sendto-af-unspec.pkt",
    "fastopen/server/opt34/basic-non-tfo-listener.pkt",
    "fastopen/server/opt34/pure-syn-data.pkt",
    "fastopen/server/pure-syn-data.pkt",
    "limited_transmit/limited-transmit-sack.pkt",
    "sack/sack-route-refresh-ip-tos.pkt",
    "sack/sack-shift-sacked-2-6-8-3-9-nofack.pkt",
    "sack/sack-shift-sacked-7-3-4-8-9-fack.pkt",
    "sack/sack-shift-sacked-7-5-6-8-9-fack.pkt",
    "slow_start/slow-start-after-idle.pkt",
    "slow_start/slow-start-app-limited-9-packets-out.pkt",
    "slow_start/slow-start-app-limited.pkt",
    "tcp_info/tcp-info-last_data_recv.pkt",
];

const V4: &[&str] = &[
    "--ip_version=ipv4",
    "--local_ip=192.168.0.1",
    "--gateway_ip=192.168.0.1",
    "--netmask_ip=255.255.0.0",
    "--remote_ip=192.0.2.1",
];
const V6: &[&str] = &[
    "--ip_version=ipv6",
    "--mtu=1520",
    "--local_ip=fd3d:0a0b:17d6::1",
    "--gateway_ip=fd3d:0a0b:17d6:8888::1",
    "--remote_ip=fd3d:fa7b:d17d::1",
];
const MAPPED: &[&str] = &[
    "--ip_version=ipv4-mapped-ipv6",
    "--local_ip=192.168.0.1",
    "--gateway_ip=192.168.0.1",
    "--netmask_ip=255.255.0.0",
    "--remote_ip=192.0.2.1",
];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The library beside this test.
fn library() -> Option<PathBuf> {
    let this = std::env::current_exe().ok()?;
    let folders = this.ancestors().skip(1).take(2);
    folders.map(|folder| folder.join("libnicforge_packetdrill.so")).find(|path| path.exists())
}

fn checkout() -> Option<PathBuf> {
    let checkout = PathBuf::from(std::env::var_os("NICFORGE_PACKETDRILL")?);
    checkout.join("gtests/net/packetdrill/packetdrill").exists().then_some(checkout)
}

/// Runs a script in a namespace with the device that preambles configure; returns what it printed if it failed.
fn run(checkout: &Path, library: &Path, script: &Path, version: &[&str]) -> Result<(), String> {
    let program = checkout.join("gtests/net/packetdrill/packetdrill");
    let setup = "ip tuntap add dev tun0 mode tun && ip link set tun0 up; exec timeout 30 \"$@\"";
    let output = Command::new("unshare")
        .args(["-n", "--", "sh", "-c", setup, "sh"])
        .arg(program)
        .args(version)
        .args(["--send_omit_free", &format!("--so_filename={}", library.display())])
        .arg(script.file_name().unwrap_or_default())
        .current_dir(script.parent().unwrap_or(checkout))
        .output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn run_all(scripts: &[PathBuf], versions: &[&[&str]]) {
    let (Some(checkout), Some(library)) = (checkout(), library()) else {
        println!("skipped: NICFORGE_PACKETDRILL names no built checkout of packetdrill");
        return;
    };
    let root = Command::new("unshare").args(["-n", "true"]).status();
    if !root.is_ok_and(|status| status.success()) {
        println!("skipped: no network namespace here (needs root and unshare)");
        return;
    }
    let mut failures = Vec::new();
    for script in scripts {
        for version in versions {
            if let Err(error) = run(&checkout, &library, &checkout.join(script), version) {
                failures.push(format!("{} {}: {error}", script.display(), version[0]));
            }
        }
    }
    assert!(failures.is_empty(), "{} scripts fail:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn the_scripts_that_must_pass_pass() {
    let list = workspace().join("../shared/data/packetdrill/scripts.txt");
    let Ok(text) = std::fs::read_to_string(&list) else {
        println!("skipped: no list of scripts beside the project");
        return;
    };
    let scripts: Vec<PathBuf> =
        text.lines().filter_map(|line| line.strip_prefix("google/packetdrill ")).map(PathBuf::from).collect();
    assert!(!scripts.is_empty());
    run_all(&scripts, &[V4, V6, MAPPED]);
}

#[test]
fn optional_scripts_that_passed_still_pass() {
    let scripts: Vec<PathBuf> = OPTIONAL.iter().map(|script| Path::new("gtests/net/tcp").join(script)).collect();
    run_all(&scripts, &[V4]);
}
