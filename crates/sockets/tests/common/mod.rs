//! A service for a test, and steps of its low-level interface.
#![allow(dead_code, reason = "each test file uses its part")]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

use nicforge_sockets::direct::{Direct, FlowId, Happening};
use nicforge_sockets::observe;
use nicforge_sockets::service::{Config, Service, Stopper};

pub struct Running {
    pub path: PathBuf,
    stopper: Stopper,
    thread: Option<JoinHandle<()>>,
    thread_id: rustix::process::Pid,
    _folder: tempfile::TempDir,
}

impl Running {
    pub fn with(change: impl FnOnce(&mut Config)) -> Running {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("service");
        let mut config = Config::at(&path);
        change(&mut config);
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut service = Service::new(config, None).unwrap();
            tell.send((rustix::thread::gettid(), service.stopper())).unwrap();
            service.run().unwrap();
        });
        let (thread_id, stopper) = told.recv().unwrap();
        Running { path, stopper, thread: Some(thread), thread_id, _folder: folder }
    }

    pub fn new() -> Running {
        Running::with(|_| {})
    }

    /// Nanoseconds that the service's thread has run.
    pub fn cpu_ns(&self) -> u64 {
        let path = format!("/proc/self/task/{}/schedstat", self.thread_id.as_raw_nonzero());
        std::fs::read_to_string(path).unwrap().split(' ').next().unwrap().parse().unwrap()
    }

    pub fn refused(&self) -> u64 {
        observe::list(&self.path).unwrap().applications.iter().map(|application| application.refused).sum()
    }

    pub fn sockets(&self) -> usize {
        observe::list(&self.path).unwrap().sockets.len()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopper.stop();
        self.thread.take().unwrap().join().unwrap();
    }
}

const LOCAL: &str = "127.0.0.1:0";

pub fn anywhere() -> SocketAddr {
    LOCAL.parse().unwrap()
}

/// The next thing that happens.
pub fn next(direct: &mut Direct) -> Happening {
    for _ in 0..500 {
        if let Some(happening) = direct.poll() {
            return happening;
        }
        direct.wait(Some(Duration::from_millis(20))).unwrap();
    }
    panic!("nothing happened for ten seconds");
}

pub fn until(direct: &mut Direct, wanted: impl Fn(&Happening) -> bool) -> Happening {
    loop {
        let happening = next(direct);
        if wanted(&happening) {
            return happening;
        }
    }
}

/// A connected pair within one application: client, server.
pub fn pair(direct: &mut Direct) -> (FlowId, FlowId) {
    let listener = direct.listen(anywhere(), 4).unwrap();
    let client = direct.connect(direct.local(listener).unwrap()).unwrap();
    let (mut open, mut server) = (false, None);
    while !open || server.is_none() {
        match next(direct) {
            Happening::Connected(flow) => open = flow == client,
            Happening::Incoming(at) => server = direct.accept(at).unwrap(),
            other => panic!("unexpected {other:?}"),
        }
    }
    direct.close(listener).unwrap();
    (client, server.unwrap())
}

pub fn send_all(direct: &mut Direct, flow: FlowId, bytes: &[u8]) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let (_, space) = direct.slices(flow).unwrap();
        let len = rest.len().min(space.len());
        space[..len].copy_from_slice(&rest[..len]);
        direct.produce(flow, len).unwrap();
        rest = &rest[len..];
        if len == 0 {
            next(direct);
        }
    }
}

pub fn receive_all(direct: &mut Direct, flow: FlowId, len: usize) -> Vec<u8> {
    let mut got = Vec::new();
    while got.len() < len {
        let (received, _) = direct.slices(flow).unwrap();
        got.extend_from_slice(received);
        let taken = received.len();
        direct.consume(flow, taken).unwrap();
        if taken == 0 {
            next(direct);
        }
    }
    got
}
