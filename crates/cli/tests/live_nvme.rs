//! Disks over NVMe/TCP, digests and placement on the NIC: between a host and a target of ours over a veth pair that loses
//! frames, and with Linux's own host and target in a guest (where NICFORGE_GUEST names a folder that `examples/guest.sh
//! prepare` made).

#![cfg(target_os = "linux")]

mod netns;

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use netns::{Hosts, example_file, has, skip};
use rustix::process::{Pid, Signal, kill_process};

const NICFORGE: &str = env!("CARGO_BIN_EXE_nicforge");
/// Bytes of the disks.
const DISK_BYTES: usize = 16 << 20;

/// Bytes that compression or a shift would show in.
fn content(seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut word = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..DISK_BYTES / 8).flat_map(|_| word()).collect()
}

/// `nicforge nvme serve` on a host; it is killed with the value.
struct Served {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Served {
    fn start(hosts: &Hosts, image: &Path, interface: &str, more: &[&str]) -> Served {
        let mut command = hosts.on("gateway", NICFORGE);
        command.args(["nvme", "serve"]).arg(image).args(["--interface", interface, "--address", "10.99.1.1/24"]);
        let mut child = command.args(more).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        lines.read_line(&mut first).unwrap();
        assert!(first.contains("10.99.1.1:4420"), "{first}");
        Served { child, lines }
    }

    /// Ends it; what it counted.
    fn stop(mut self) -> String {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        let mut text = String::new();
        self.lines.read_to_string(&mut text).unwrap();
        assert!(self.child.wait().unwrap().success());
        text
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn count(text: &str, name: &str) -> u64 {
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(name));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or_else(|| panic!("no {name}: {text}"))
}

/// Copies between a disk and a file, from host `host`.
fn copy(hosts: &Hosts, host: &str, interface: &str, what: &str, file: &Path, more: &[&str]) -> String {
    let mut command = hosts.on(host, NICFORGE);
    command.args(["nvme", what]).arg(file).args(["--interface", interface]);
    let output = command.args(more).output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{text}");
    text
}

#[test]
fn blocks_survive_a_network_that_loses_frames() {
    let Some(hosts) = Hosts::up("nvme") else { return };
    let place = tempfile::tempdir().unwrap();
    let [image, source, back] = ["disk.img", "source.img", "back.img"].map(|name| place.path().join(name));
    let host = ["--target", "10.99.1.1:4420", "--address", "10.99.1.9/24"];
    for (loss, software) in [("0", false), ("0.02", false), ("0.02", true)] {
        std::fs::write(&image, vec![0; DISK_BYTES]).unwrap();
        let bytes = content(7 + u64::from(software));
        std::fs::write(&source, &bytes).unwrap();
        let more = [&["--loss", loss][..], if software { &["--software"] } else { &[] }].concat();
        let server = Served::start(&hosts, &image, "nf-inside", &more);
        let more = [&host[..], if software { &["--software"] } else { &[] }].concat();
        let wrote = copy(&hosts, "client", "eth0", "write", &source, &more);
        let read = copy(&hosts, "client", "eth0", "read", &back, &more);
        let served = server.stop();
        assert!(std::fs::read(&image).unwrap() == bytes, "what was written is in the image");
        assert!(std::fs::read(&back).unwrap() == bytes, "and comes back");
        assert_eq!(count(&served, "connections_failed"), 0, "{served}");
        let offloaded = count(&read, "digests_offloaded") + count(&served, "digests_offloaded");
        match (loss, software) {
            ("0", _) => {
                assert_eq!((count(&wrote, "digests_in_software"), count(&read, "digests_in_software")), (0, 0));
                assert_eq!((count(&served, "copied_bytes"), count(&read, "copied_bytes")), (0, 0));
            }
            (_, true) => assert_eq!(offloaded, 0, "{served}{read}"),
            (_, false) => assert!(offloaded > 0 && count(&served, "frames_lost_by_intent") > 0, "{served}{read}"),
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |arguments: &[&str]| {
        let output = Command::new(NICFORGE).arg("nvme").args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let place = tempfile::tempdir().unwrap();
    let odd: PathBuf = place.path().join("odd.img");
    std::fs::write(&odd, [0; 700]).unwrap();
    let odd = odd.to_str().unwrap();
    let network = ["--interface", "lo", "--address", "10.99.1.1/24"];
    assert!(refused(&[&["serve", odd][..], &network].concat()).contains("700"));
    assert!(refused(&[&["serve", "/no/such/image"][..], &network].concat()).contains("/no/such/image"));
    assert!(refused(&["serve", odd]).contains("--interface"));
    assert!(refused(&[&["serve", odd, "--nqn", "disk"][..], &network].concat()).contains("disk"));
}

/// Runs `command` in a guest whose adapter is a TAP device on the gateway's host.
fn guest(hosts: &Hosts, folder: &Path, command: &str) -> Command {
    let script = example_file("guest.sh");
    let mut guest = hosts.on("gateway", script.to_str().unwrap());
    guest.arg("run").arg(folder).arg("tap:nf-guest").arg(command).args(["10.99.1.2/24", "10.99.1.1"]);
    guest.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    guest
}

/// Hosts with a TAP device for a guest, if there is a guest.
fn guest_hosts(name: &str) -> Option<(Hosts, PathBuf)> {
    let Some(folder) = std::env::var_os("NICFORGE_GUEST") else {
        skip::skipped("a guest needs NICFORGE_GUEST, a folder that `examples/guest.sh prepare` made");
        return None;
    };
    if !has("qemu-system-x86_64") {
        skip::skipped("a guest needs qemu-system-x86_64");
        return None;
    }
    let hosts = Hosts::up(name)?;
    for arguments in ["tuntap add nf-guest mode tap", "link set nf-guest up"] {
        let mut ip = hosts.on("gateway", "ip");
        assert!(ip.args(arguments.split(' ')).status().unwrap().success());
    }
    Some((hosts, folder.into()))
}

#[test]
fn linux_as_a_host_writes_and_reads_our_disk() {
    let Some((hosts, folder)) = guest_hosts("nvme-host") else { return };
    let place = tempfile::tempdir().unwrap();
    let image = place.path().join("disk.img");
    std::fs::write(&image, vec![0; DISK_BYTES]).unwrap();
    let server = Served::start(&hosts, &image, "nf-guest", &[]);
    let command = "to='-t tcp -a 10.99.1.1 -s 4420 --hostnqn=nqn.2026-01.org.example:guest'\n\
                   nvme discover $to\n\
                   nvme connect $to -n nqn.2026-01.org.nicforge:disk --hdr-digest --data-digest\n\
                   sleep 2; nvme list; cat /sys/class/nvme/nvme0/state\n\
                   head -c 16777216 /dev/urandom > /file; cat /file > /dev/nvme0n1; sync\n\
                   echo 3 > /proc/sys/vm/drop_caches; md5sum < /file; md5sum < /dev/nvme0n1";
    let said = guest(&hosts, &folder, command).output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let served = server.stop();
    let mut sum = Command::new("md5sum");
    let sum = String::from_utf8(sum.arg(&image).output().unwrap().stdout).unwrap();
    assert_eq!(said.matches(&sum[..32]).count(), 2, "{said}\n{served}");
    let listed = said.lines().find(|line| line.starts_with("/dev/nvme0n1")).unwrap_or_default();
    eprintln!("{listed}");
    assert!(listed.contains("Nicforge") && said.contains("live"), "{said}");
    assert!(said.contains("subnqn:  nqn.2026-01.org.nicforge:disk"), "discovery names the subsystem: {said}");
    assert_eq!((count(&served, "digests_in_software"), count(&served, "copied_bytes")), (0, 0), "{served}");
}

#[test]
fn linux_as_a_target_holds_our_blocks() {
    let Some((hosts, folder)) = guest_hosts("nvme-target") else { return };
    let place = tempfile::tempdir().unwrap();
    let [source, back] = ["source.img", "back.img"].map(|name| place.path().join(name));
    let bytes = content(11);
    std::fs::write(&source, &bytes).unwrap();
    let command = "head -c 16777216 /dev/zero > /disk.img; cd /sys/kernel/config/nvmet\n\
                   mkdir subsystems/nqn.2026-01.org.nicforge:disk; cd subsystems/nqn.2026-01.org.nicforge:disk\n\
                   echo 1 > attr_allow_any_host; mkdir namespaces/1; echo 1 > namespaces/1/buffered_io\n\
                   echo -n /disk.img > namespaces/1/device_path; echo 1 > namespaces/1/enable\n\
                   cd ../..; mkdir ports/1; cd ports/1; echo ipv4 > addr_adrfam; echo tcp > addr_trtype\n\
                   echo 4420 > addr_trsvcid; echo 10.99.1.2 > addr_traddr\n\
                   ln -s /sys/kernel/config/nvmet/subsystems/nqn.2026-01.org.nicforge:disk subsystems/; sleep 600";
    let mut target = guest(&hosts, &folder, command).spawn().unwrap();
    let host = ["--target", "10.99.1.2:4420", "--address", "10.99.1.1/24"];
    let begin = Instant::now();
    let wrote = loop {
        let mut command = hosts.on("gateway", NICFORGE);
        command.args(["nvme", "write"]).arg(&source).args(["--interface", "nf-guest"]).args(host);
        let output = command.output().unwrap();
        if output.status.success() {
            break String::from_utf8(output.stdout).unwrap();
        }
        // The guest boots.
        assert!(begin.elapsed() < Duration::from_secs(120), "{}", String::from_utf8_lossy(&output.stderr));
        std::thread::sleep(Duration::from_secs(1));
    };
    assert_eq!((count(&wrote, "digests_in_software"), count(&wrote, "copied_bytes")), (0, 0), "{wrote}");
    let more = [&host[..], &["--loss", "0.01"]].concat();
    copy(&hosts, "gateway", "nf-guest", "read", &back, &more);
    let _ = target.kill();
    let _ = target.wait();
    assert!(std::fs::read(&back).unwrap() == bytes);
}
