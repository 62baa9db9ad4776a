//! The TCP stack as a live run's worker, with unmodified programs over it. Needs root, and NICFORGE_PROGRAMS=1 for the
//! programs; skipped with a line elsewhere.
#![cfg(target_os = "linux")]

mod netns;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use netns::{Hosts, example_file, has, skip};

/// A program that ends with the value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // The command passes this on to the program that it runs; a kill would leave that behind.
        let pid = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

/// Builds the library that is preloaded, which Cargo does not build for tests.
fn build_library() {
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--package", "nicforge-preload"]);
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    assert!(build.status().unwrap().success());
}

fn nicforge(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nicforge"));
    command.args(arguments);
    command
}

/// Standard output of a command that succeeds in the end.
fn text(mut command: impl FnMut() -> Command) -> String {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let output = command().output().unwrap();
        if output.status.success() {
            return String::from_utf8(output.stdout).unwrap();
        }
        assert!(Instant::now() < until, "{}", String::from_utf8_lossy(&output.stderr));
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_server_behind_the_nic_answers_a_client_of_the_kernel() {
    if std::env::var_os("NICFORGE_PROGRAMS").is_none() || !has("python3") || !has("curl") {
        return skip::skipped("programs over the live stack run with NICFORGE_PROGRAMS=1");
    }
    let Some(hosts) = Hosts::up("tcp") else { return };
    build_library();
    let folder = tempfile::tempdir().unwrap();
    let service = folder.path().join("service").display().to_string();
    let example = std::fs::read_to_string(example_file("tcp-netns.toml")).unwrap();
    let file = folder.path().join("tcp.toml");
    let page: Vec<u8> = (0..300_000u32).map(|n| (n >> 3) as u8).collect();
    std::fs::write(folder.path().join("page"), &page).unwrap();
    let runs = [
        ("rx_bisect", "cubic", 1, "host"),
        ("sh_ring", "timely", 1, "host"),
        ("nm_nfv", "dctcp", 1, "host"),
        ("priv_ring", "cubic", 3, "host"),
        ("priv_ring", "cubic", 1, "card"),
    ];
    for (interface, congestion, cores, place) in runs {
        let tcp = format!("[tcp]\nservice = {service:?}\ncongestion = {congestion:?}\nfast_path = {place:?}");
        std::fs::write(&file, example.replace("[tcp]", &tcp)).unwrap();
        let mut gateway = hosts.start(&file, &[&format!("interface={interface}"), &format!("cores={cores}")]);
        hosts.wait_for(&mut gateway, "10.99.1.1");
        let server = nicforge(&["sockets", "--service", &service, "--", "python3", "-m", "http.server", "8000"])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let server = Running(server.unwrap());
        let fetched = folder.path().join("fetched");
        text(|| {
            let mut curl = hosts.on("client", "curl");
            curl.args(["-sS", "--fail", "--max-time", "20", "-o"]).arg(&fetched).arg("http://10.99.1.1:8000/page");
            curl
        });
        assert!(std::fs::read(&fetched).unwrap() == page, "{interface}");
        let seen = text(|| nicforge(&["ss", "--service", &service]));
        assert!(seen.contains("LISTEN") && seen.contains("python3"), "{seen}");
        drop(server);
        let report = gateway.stop();
        let metrics = &report["points"][0]["metrics"];
        assert!(metrics["throughput_gbps"].as_f64().unwrap() > 0.0, "{interface}");
    }
    assert!(!Path::new(&service).exists(), "the service's socket goes with it");
}
