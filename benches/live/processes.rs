//! Nicforge: the device in this process, one worker in another.

use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nicforge_platform::live::handover::{receive_files, send_files};
use nicforge_platform::live::{Bell, Control};

use super::halves::{Device, Parses, Worker, lay_out};
use super::{WINDOW, WINDOWS, median};

/// Packets before anything is counted: warm caches first.
const WARM: u64 = 200_000;
/// How long the worker may take to come.
const PATIENCE: Duration = Duration::from_secs(20);

/// The worker's process: takes what comes and frees it, until the device orders it to stop.
pub fn worker(socket: &str, interface: &str) {
    let stream = UnixStream::connect(socket).unwrap();
    let (_, files) = receive_files(&stream, &mut [0; 1]).unwrap();
    let [region, event] = <[_; 2]>::try_from(files).unwrap();
    let layout = lay_out(interface);
    let control = Control::attach(region, &layout.space, &layout.shape).unwrap();
    let mut worker = Worker::new(layout, control.clone(), Bell::of(event));
    while control.order_of(0) == 0 {
        worker.turn();
    }
}

/// Million packets of `len` bytes per second that a worker process took; median of the windows.
pub fn measure(interface: &str, len: usize, parses: Parses) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let layout = lay_out(interface);
    let control = Control::new(&layout.space, &layout.shape).unwrap();
    let bell = Bell::new().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.arg("worker").arg(&socket).arg(interface);
    let mut device = Device::new(layout, control.clone(), bell.clone(), len, parses);
    let mut child = child.stdin(Stdio::null()).spawn().unwrap();
    let (stream, _) = listener.accept().unwrap();
    send_files(&stream, b"x", &[control.region().file(), bell.event()]).unwrap();
    let began = Instant::now();
    while device.round() < WARM {
        assert!(
            began.elapsed() < PATIENCE,
            "{interface}: the worker takes nothing"
        );
    }
    let mut rates = Vec::new();
    let mut before = (Instant::now(), device.round());
    while rates.len() < WINDOWS {
        let taken = device.round();
        let elapsed = before.0.elapsed();
        if elapsed >= WINDOW {
            rates.push((taken - before.1) as f64 / elapsed.as_secs_f64() / 1e6);
            before = (Instant::now(), taken);
        }
    }
    control.order(0, 1);
    child.wait().unwrap();
    median(&mut rates)
}
