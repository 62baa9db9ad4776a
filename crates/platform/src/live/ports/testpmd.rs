//! DPDK's testpmd as a peer of tests that sends every frame back, without huge pages and devices.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nicforge_units::Time;

use super::Port;

/// A running testpmd; it goes with the value.
pub struct Testpmd {
    child: Child,
    said: Arc<Mutex<String>>,
    /// One at a time: each polls a core of its own.
    _turn: MutexGuard<'static, ()>,
}

impl Testpmd {
    /// Starts it with virtual device `device`; `None` where it is not installed, or there is one core only.
    pub fn start(device: &str, queues: u16) -> Option<Testpmd> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let prefix = format!("nicforge-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut command = Command::new("dpdk-testpmd");
        command.args(["-l", "0,1", "-m", "128", "--no-huge", "--no-pci", "--no-telemetry", "--file-prefix", &prefix]);
        command.args(["--vdev", device, "--"]);
        command.args(["--no-mlockall", "--total-num-mbufs=8192", "--forward-mode=io", "--port-topology=loop"]);
        command.args(["--auto-start", "--stats-period=1", "--no-lsc-interrupt", "--no-flush-rx"]);
        command.args([format!("--rxq={queues}"), format!("--txq={queues}")]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let started = if cores < 2 { Err(std::io::ErrorKind::Unsupported.into()) } else { command.spawn() };
        let Ok(mut child) = started else {
            eprintln!("skipped: dpdk-testpmd cannot be run (Debian: apt install dpdk-dev; it takes two cores)");
            return None;
        };
        let said = Arc::new(Mutex::new(String::new()));
        if let Some(mut out) = child.stdout.take() {
            let said = said.clone();
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(len @ 1..) = out.read(&mut bytes) {
                    said.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..len]));
                }
            });
        }
        Some(Testpmd { child, said, _turn: turn })
    }

    /// What it said so far.
    pub fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Frames that wait at the peer at once.
const WINDOW: u64 = 256;

/// Sends frames of several lengths until `count` of them are back, unchanged and in order.
pub fn echo(port: &mut dyn Port, peer: &Testpmd, count: u64, lengths: &[usize]) {
    let frame = |number: u64| {
        let mut frame = vec![number as u8; lengths[number as usize % lengths.len()]];
        frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5]);
        frame[14..22].copy_from_slice(&number.to_be_bytes());
        frame
    };
    let (mut sent, mut back) = (0, 0);
    let begin = Instant::now();
    while back < count {
        assert!(
            begin.elapsed() < Duration::from_secs(10),
            "{back} of {count} frames are back, {:?}\n{}",
            port.counters(),
            peer.said()
        );
        while sent < count && sent - back < WINDOW {
            port.send(&frame(sent), Time::ZERO).unwrap();
            if port.counters().sent == sent {
                // No room: the peer may not have begun yet.
                break;
            }
            sent += 1;
        }
        port.flush().unwrap();
        let mut each = |bytes: &[u8]| {
            assert!(bytes == frame(back), "frame {back} of {} bytes", bytes.len());
            back += 1;
        };
        if port.receive(64, &mut each).unwrap() == 0 {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
    assert_eq!((port.counters().received, port.counters().sent), (count, count));
    assert_eq!(port.counters().unreadable, []);
}

/// Waits until frames can pass.
pub fn until_up(port: &mut dyn Port, peer: &Testpmd) {
    let begin = Instant::now();
    // It sets its queues up twice before it begins to forward.
    while !port.link().unwrap().is_up || !peer.said().contains("Port statistics") {
        assert!(begin.elapsed() < Duration::from_secs(30), "{:?}\n{}", port.take_note(), peer.said());
        std::thread::sleep(Duration::from_millis(10));
        port.look().unwrap();
    }
}

/// Waits until the peer is gone.
pub fn until_down(port: &mut dyn Port) {
    let begin = Instant::now();
    while port.link().unwrap().is_up {
        assert!(begin.elapsed() < Duration::from_secs(10), "the peer is gone");
        port.look().unwrap();
    }
}
