//! How a live run behaves beside its packets: it makes the folders that it writes to, sleeps when
//! there is nothing to do, and tells what it counted. Needs no privilege.
#![cfg(target_os = "linux")]

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A run that waits for workers, and so has nothing to do; it is killed with the value.
struct Idle {
    child: Child,
    _folder: tempfile::TempDir,
}

impl Idle {
    fn new(more: &[&str]) -> Idle {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("idle.toml");
        let sample = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../scenarios/captures/sample.pcap"
        );
        let text = format!(
            "[live]\nname = \"idle\"\n[settings]\ninterface = \"priv_ring\"\napp = \"l2fwd\"\n\
             [[port]]\nread = {sample:?}\n"
        );
        std::fs::write(&file, text).unwrap();
        let mut live = Command::new(env!("CARGO_BIN_EXE_nicforge"));
        live.arg("live").arg(&file).arg("--quiet");
        live.arg("--out").arg(folder.path().join("out"));
        live.arg("--attach").arg(folder.path().join("socket"));
        let child = live.args(more).stdout(Stdio::null()).spawn().unwrap();
        Idle {
            child,
            _folder: folder,
        }
    }

    /// Clock ticks (1/100 s) that the process used so far (proc(5): fields 14 and 15).
    fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat
            .rsplit(')')
            .next()
            .unwrap()
            .split_whitespace()
            .collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_run_with_nothing_to_do_sleeps() {
    let idle = Idle::new(&[]);
    std::thread::sleep(Duration::from_millis(700));
    let before = idle.ticks();
    std::thread::sleep(Duration::from_millis(2_000));
    let used = idle.ticks() - before;
    // Polling would take all 200 of a core.
    assert!(used < 40, "{used} ticks of 200");
}

#[test]
fn prometheus_gets_its_page() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let _idle = Idle::new(&["--metrics", &address.to_string()]);
    let fetch = || {
        let mut stream = TcpStream::connect(address).ok()?;
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            .ok()?;
        let mut page = String::new();
        stream.read_to_string(&mut page).ok()?;
        page.contains("_total").then_some(page)
    };
    let page = (0..100).find_map(|_| {
        std::thread::sleep(Duration::from_millis(100));
        fetch()
    });
    let page = page.expect("a page with counters within 10 s");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    for line in [
        "# TYPE nicforge_received_frames_total counter",
        "nicforge_received_frames_total{port=\"0\"} 0",
        "nicforge_worker_packets_total{worker=\"0\"} 0",
    ] {
        assert!(page.lines().any(|found| found == line), "{line}\n{page}");
    }
}

#[test]
fn metrics_stay_on_this_machine() {
    let mut live = Command::new(env!("CARGO_BIN_EXE_nicforge"));
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/capture.toml");
    live.args(["live", sample, "--metrics", "0.0.0.0:9477"]);
    let refused = live.output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("loopback"));
}

/// As after `git clone`: nothing was written yet.
#[test]
fn every_example_of_captures_runs_on_a_fresh_clone() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut ran = 0;
    for entry in std::fs::read_dir(examples).unwrap() {
        let file = entry.unwrap().path();
        let text = std::fs::read_to_string(&file).unwrap();
        let is_run = file.extension().is_some_and(|kind| kind == "toml");
        let needs_an_interface = ["\ninterface = \"nf-", "\nxdp = ", "\ntap = "];
        if !is_run || needs_an_interface.iter().any(|key| text.contains(key)) {
            continue;
        }
        let folder = common::folder();
        let ended = common::nicforge(&folder, &["live", file.to_str().unwrap()]);
        let said = common::stderr(&ended);
        assert!(ended.status.success(), "{}: {said}", file.display());
        for name in text
            .lines()
            .filter_map(|line| line.strip_prefix("write = "))
        {
            let written = folder.path().join(name.trim_matches('"'));
            assert!(written.is_file(), "{}", written.display());
        }
        ran += 1;
    }
    assert!(ran >= 2, "{ran} examples");
}
