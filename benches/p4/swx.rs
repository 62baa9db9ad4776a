//! DPDK's SWX pipeline: its example `pipeline` with a router like examples/p4/router.p4, in memory.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nicforge_units::Time;
use nicforge_wire::capture::write_file;

use crate::{frame, row};

/// Names the example, built from DPDK's source; `RTE_INSTALL_DIR` names the source.
const VARIABLE: &str = "NICFORGE_SWX_PIPELINE";
const ADDRESS: &str = "127.0.0.1:18086";
/// How long it forwards.
const SECONDS: u64 = 3;

/// Kills the peer, whatever happens.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Forwards with the peer; `ours` is what the router forwards in a second.
pub fn compare(ours: f64) {
    let Some(peer) = std::env::var_os(VARIABLE) else {
        println!("SWX: missing, {VARIABLE} names no `pipeline` of DPDK's examples (docs/p4.md says how to build it)");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let script = prepare(folder.path());
    let mut command = Command::new(peer);
    command.args("-l 0-1 --no-huge -m 512 --no-pci --no-shconf --no-telemetry -- -h 127.0.0.1 -p 18086 -s".split(' '));
    command.arg(script).stdout(Stdio::null()).stderr(Stdio::null());
    let running = Running(command.spawn().expect("the peer runs"));
    let id = running.0.id();
    let Some(mut console) = connect() else {
        println!("SWX: nobody answers at {ADDRESS}; does RTE_INSTALL_DIR name DPDK's source?");
        return;
    };
    let first = (forwarded(&mut console), worker_time(id));
    std::thread::sleep(Duration::from_secs(SECONDS));
    let second = (forwarded(&mut console), worker_time(id));
    let time = (second.1 - first.1).as_secs_f64();
    if time == 0.0 || second.0 == first.0 {
        println!("SWX: forwards nothing; does RTE_INSTALL_DIR name DPDK's source?");
        return;
    }
    let peers = (second.0 - first.0) as f64 / time;
    row("SWX: router, 64 B", peers);
    println!("  {:.2} x SWX", ours / peers);
}

/// Writes program, packets, entries and script; returns the script.
fn prepare(folder: &Path) -> std::path::PathBuf {
    let at = |name: &str| folder.join(name).display().to_string();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("the folder is ours");
    write("router.spec", include_str!("router.spec"));
    write("routes.txt", "match 0x0a000000/0xff000000 action set_next_hop next_hop 0x1\n");
    write("hops.txt", "match 0x1 action send src_addr 0x020000000001 dst_addr 0x020000000101 port 0x1\n");
    let (packets, mut io) = (at("in.pcap"), String::new());
    for port in 0..2 {
        io += &format!(
            "port in {port} source mempool M file {packets} loop 0 packets 0\nport out {port} sink file none\n"
        );
    }
    write("router.io", &io);
    let frames = || (0..256u32).map(|number| frame([10, 1, (number / 16) as u8, number as u8]));
    write_file(&folder.join("in.pcap"), |writer| frames().try_for_each(|frame| writer.write(Time::ZERO, &frame)))
        .expect("the folder is ours");
    let script = [
        format!("pipeline codegen {} {}", at("router.spec"), at("router.c")),
        format!("pipeline libbuild {} {}", at("router.c"), at("router.so")),
        "mempool M buffer 2304 pool 32K cache 256 cpu 0".to_owned(),
        format!("pipeline P build lib {} io {} numa 0", at("router.so"), at("router.io")),
        format!("pipeline P table routes add {}", at("routes.txt")),
        format!("pipeline P table next_hops add {}", at("hops.txt")),
        "pipeline P commit".to_owned(),
        "thread 1 pipeline P enable".to_owned(),
    ];
    write("router.cli", &(script.join("\n") + "\n"));
    folder.join("router.cli")
}

/// The console, once the script is done.
fn connect() -> Option<TcpStream> {
    let until = Instant::now() + Duration::from_secs(30);
    while Instant::now() < until {
        if let Ok(mut stream) = TcpStream::connect(ADDRESS) {
            stream.set_read_timeout(Some(Duration::from_millis(500))).expect("a socket of ours");
            if forwarded(&mut stream) > 0 {
                return Some(stream);
            }
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    None
}

/// Packets that came in so far.
fn forwarded(console: &mut TcpStream) -> u64 {
    if console.write_all(b"pipeline P stats\n").is_err() {
        return 0;
    }
    let (mut text, mut bytes) = (String::new(), [0; 4096]);
    // It says nothing more for a while when it is done.
    while let Ok(count @ 1..) = console.read(&mut bytes) {
        text.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    let inputs = text.split("Output ports").next().unwrap_or("");
    let counts =
        inputs.lines().filter_map(|line| line.split(" packets ").nth(1)?.split(' ').next()?.parse::<u64>().ok());
    counts.sum()
}

/// Processor time of the peer's worker.
fn worker_time(id: u32) -> Duration {
    let tasks = std::fs::read_dir(format!("/proc/{id}/task")).expect("the peer runs");
    for task in tasks.flatten() {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        let Some((name, fields)) = stat.rsplit_once(')') else { continue };
        if name.contains("worker") {
            // Fields 14 and 15 of proc(5), in ticks of 10 ms; the state is field 3.
            let ticks = fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok());
            return Duration::from_millis(ticks.sum::<u64>() * 10);
        }
    }
    Duration::ZERO
}
