//! Nicforge: the device in this process, one worker in another.

use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nicforge_platform::live::handover::{receive_files, send_files};
use nicforge_platform::live::{Bell, Control};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::WINDOW;
use super::halves::{Device, Worker, lay_out};

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

/// Stops a process, or lets it go on. One that is gone stays so.
pub fn signal(child: &Child, signal: Signal) {
    let _ = kill_process(Pid::from_child(child), signal);
}

/// The device with a worker process, which stands still between its turns.
pub struct Running {
    device: Device,
    control: Control,
    worker: Child,
    _folder: TempDir,
}

impl Running {
    /// Frames of `len` bytes on `interface`.
    pub fn start(interface: &str, len: usize) -> Running {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let layout = lay_out(interface);
        let control = Control::new(&layout.space, &layout.shape).unwrap();
        let bell = Bell::new().unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg("worker").arg(&socket).arg(interface);
        let mut device = Device::new(layout, control.clone(), bell.clone(), len);
        let worker = command.stdin(Stdio::null()).spawn().unwrap();
        let (stream, _) = listener.accept().unwrap();
        send_files(&stream, b"x", &[control.region().file(), bell.event()]).unwrap();
        let began = Instant::now();
        while device.round() < WARM {
            assert!(began.elapsed() < PATIENCE, "{interface}: the worker takes nothing");
        }
        signal(&worker, Signal::STOP);
        Running { device, control, worker, _folder: folder }
    }

    /// Million packets per second that the worker took in one window.
    pub fn rate(&mut self) -> f64 {
        signal(&self.worker, Signal::CONT);
        let (began, before) = (Instant::now(), self.device.round());
        let (elapsed, taken) = loop {
            let taken = self.device.round();
            let elapsed = began.elapsed();
            if elapsed >= WINDOW {
                break (elapsed, taken);
            }
        };
        signal(&self.worker, Signal::STOP);
        (taken - before) as f64 / elapsed.as_secs_f64() / 1e6
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.control.order(0, 1);
        signal(&self.worker, Signal::CONT);
        let _ = self.worker.wait();
    }
}
