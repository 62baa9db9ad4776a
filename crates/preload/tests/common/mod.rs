//! A service for a test, and programs over it.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod servers;

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread::JoinHandle;
use std::time::Duration;

use nicforge_sockets::attach::NetworkConfig;
use nicforge_sockets::observe::{Seen, list};
use nicforge_sockets::posix::link::PATH_VARIABLE;
use nicforge_sockets::service::{Config, Service, Stopper};
use nicforge_sockets::transport::Transport;
use nicforge_sockets::transport::loss::Loss;

/// Folder of built things: this test lies in `deps` below it.
pub fn built() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().to_path_buf()
}

/// The library. Cargo does not build it for tests, which cannot link it.
fn library() -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package", "nicforge-preload"]).current_dir(env!("CARGO_MANIFEST_DIR"));
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        assert!(build.status().unwrap().success(), "the library builds");
    });
    built().join(nicforge_sockets::launch::LIBRARY)
}

/// A service in a thread, with a folder of its own.
pub struct Running {
    pub folder: tempfile::TempDir,
    stopper: Stopper,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    pub fn new() -> Running {
        Running::on(None)
    }

    /// A service with a network.
    pub fn on(network: Option<NetworkConfig>) -> Running {
        Running::losing(network, 0.0)
    }

    /// A service with a network that loses a share of its frames.
    pub fn losing(network: Option<NetworkConfig>, loss: f64) -> Running {
        let folder = tempfile::tempdir().unwrap();
        let (stopper, thread) = Running::serve(folder.path(), network, loss);
        Running { folder, stopper, thread: Some(thread) }
    }

    fn serve(folder: &Path, network: Option<NetworkConfig>, loss: f64) -> (Stopper, JoinHandle<()>) {
        let config = Config::at(folder.join("service"));
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let network = network.map(|network| network.open().unwrap().with_loss(Loss::new(loss, 1)));
            let network = network.map(|network| Box::new(network) as Box<dyn Transport>);
            let mut service = Service::new(config, network).unwrap();
            tell.send(service.stopper()).unwrap();
            service.run().unwrap();
        });
        (told.recv().unwrap(), thread)
    }

    /// Ends the service; what it held closes as if it had been killed.
    pub fn go(&mut self) {
        self.stopper.stop();
        self.thread.take().unwrap().join().unwrap();
    }

    /// Another service at the same path.
    pub fn come_back(&mut self) {
        let (stopper, thread) = Running::serve(self.folder.path(), None, 0.0);
        (self.stopper, self.thread) = (stopper, Some(thread));
    }

    pub fn service(&self) -> PathBuf {
        self.folder.path().join("service")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn seen(&self) -> Seen {
        list(&self.service()).unwrap()
    }

    /// A command over the service.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("LD_PRELOAD", library()).env(PATH_VARIABLE, self.service()).current_dir(self.folder.path());
        command
    }

    /// Runs a program to its end, at most half a minute.
    pub fn run(&self, program: impl AsRef<OsStr>, arguments: &[&str]) -> Output {
        output(self.command(program).args(arguments))
    }

    /// Starts a server, whose output goes to a file of its name.
    pub fn start(&self, program: &str, arguments: &[&str]) -> Server {
        let name = Path::new(program).file_name().unwrap().to_string_lossy().into_owned();
        let log = std::fs::File::create(self.path(&format!("{name}.log"))).unwrap();
        let child = self
            .command(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Server(child)
    }

    /// Waits until somebody listens at a port.
    pub fn listening(&self, port: u16) {
        for _ in 0..600 {
            let ending = format!(":{port}");
            if self.seen().sockets.iter().any(|socket| socket.state == "LISTEN" && socket.local.ends_with(&ending)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let logs = std::fs::read_dir(self.folder.path()).unwrap().flatten().map(|entry| entry.path());
        let logs = logs.filter(|path| path.extension().is_some_and(|e| e == "log"));
        let logs: Vec<String> = logs.map(|path| std::fs::read_to_string(path).unwrap_or_default()).collect();
        panic!("nobody listens at {port}: {logs:?}");
    }

    /// Waits until only `sockets` are left.
    pub fn settled(&self, sockets: usize) {
        for _ in 0..200 {
            if self.seen().sockets.len() <= sockets {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("more than {sockets} sockets are left: {:?}", self.seen().sockets);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopper.stop();
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.transpose().unwrap();
        }
    }
}

/// A child that dies with the test.
pub struct Server(pub Child);

impl Server {
    pub fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Ends it as a user would, and returns whether it ended well.
    pub fn end(&mut self) -> bool {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        for _ in 0..200 {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.success();
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        self.kill();
        false
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A master that is killed leaves its workers behind.
        if matches!(self.0.try_wait(), Ok(None)) {
            self.end();
        }
    }
}

/// A command's output; killed after half a minute.
pub fn output(command: &mut Command) -> Output {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let read = |from: &mut dyn Read| {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
        bytes
    };
    let out = std::thread::spawn(move || read(&mut out));
    let err = std::thread::spawn(move || read(&mut err));
    for _ in 0..600 {
        if let Some(status) = child.try_wait().unwrap() {
            return Output { status, stdout: out.join().unwrap(), stderr: err.join().unwrap() };
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().unwrap();
    let _ = child.wait();
    let (out, err) = (out.join().unwrap(), err.join().unwrap());
    panic!("{command:?} hangs: {} {}", String::from_utf8_lossy(&out), String::from_utf8_lossy(&err));
}

/// Standard output of a command that must succeed.
pub fn text(output: Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}: {errors}{}", output.status, String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stdout).unwrap()
}

/// Whether real programs are to run; says so where they are not. They take minutes and a quiet machine.
pub fn wants_programs() -> bool {
    let wanted = std::env::var_os("NICFORGE_PROGRAMS").is_some();
    if !wanted {
        eprintln!("skipped: real programs run with NICFORGE_PROGRAMS=1");
    }
    wanted
}

/// Whether real programs are to run and this one is installed; says so where not.
pub fn has(program: &str) -> bool {
    if !wants_programs() {
        return false;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).chain(["/usr/sbin".into()]).any(|folder| folder.join(program).exists());
    if !found {
        eprintln!("skipped: {program} is not installed");
    }
    found
}
