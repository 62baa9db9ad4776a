//! Workers that are processes beside others: what one does, and what the others notice of it.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use etherparse::PacketBuilder;
use nicforge_platform::live::Clock;
use nicforge_platform::live::ports::{PairPort, Port, pair};
use nicforge_units::Time;
use nicforge_wire::parse_frame;
use nicforge_wire::rss::{IndirectionTable, Toeplitz};

use super::*;
use crate::live::LiveRunError;
use crate::live::scenario::SetAtEnd;
use crate::live::{LiveRun, locked, parse_live, run_live_over};
use crate::settings::Catalogue;
use liar::{Liar, Lie, Lying};

mod callers;
mod liar;
mod shared_ring;
mod stopped;
mod wrong_rings;

const SOCKET: &str = "NICFORGE_TEST_LIAR_SOCKET";
const LIE: &str = "NICFORGE_TEST_LIE";
/// Says hello and nothing more.
const HALF_OPEN: &str = "half open";
/// Finds that the region has another layout than its own.
const OTHER_BUILD: &str = "other build";
const PATIENCE: Time = Time::from_ms(30_000);

/// Not a test by itself: a worker's process, place 1, or place 0 with a lie.
#[test]
#[ignore = "started by another test"]
fn a_worker_process() {
    let Some(socket) = std::env::var_os(SOCKET) else {
        return;
    };
    let socket = Path::new(&socket);
    let lie = std::env::var(LIE).unwrap();
    if lie == HALF_OPEN {
        let mut stream = UnixStream::connect(socket).unwrap();
        let (version, worker) = (VERSION.to_owned(), Some(0));
        stream.write_all(&line(&Said::Hello { version, worker })).unwrap();
        std::thread::sleep(Duration::from_secs(3600));
    }
    if lie == OTHER_BUILD {
        // The device ends a process that hangs up, so this one ends first.
        std::process::exit(if is_refused_as_other_build(socket) { 0 } else { 1 });
    }
    match Lie::ALL.into_iter().find(|known| format!("{known:?}") == lie) {
        None => {
            let worker = lie.parse().unwrap();
            let stop = AtomicBool::new(false);
            attach(socket, Some(worker), &Catalogue::shipped(), &stop, &mut |_| {}).unwrap();
        }
        Some(lie) => work_wrongly(socket, lie),
    }
}

/// Whether a program whose layout has another hash than the run's is refused.
fn is_refused_as_other_build(socket: &Path) -> bool {
    let mut stream = UnixStream::connect(socket).unwrap();
    let (version, worker) = (VERSION.to_owned(), Some(0));
    stream.write_all(&line(&Said::Hello { version, worker })).unwrap();
    let (mut invitation, files) = receive_invitation(&stream).unwrap();
    invitation.layout ^= 1;
    let blueprint = invitation.blueprint(&Catalogue::shipped()).unwrap();
    let refused = Member::new(blueprint, &invitation, files).err().map(|error| error.to_string());
    // It stays open until the process ends.
    std::mem::forget(stream);
    refused.is_some_and(|why| why.contains("attach with the build that the run is of"))
}

/// Works at place 0 until it is ended.
fn work_wrongly(socket: &Path, lie: Lie) {
    let mut stream = UnixStream::connect(socket).unwrap();
    let (version, worker) = (VERSION.to_owned(), Some(0));
    stream.write_all(&line(&Said::Hello { version, worker })).unwrap();
    let (invitation, files) = receive_invitation(&stream).unwrap();
    let layout: Layout<Lying> = invitation.blueprint(&Catalogue::shipped()).unwrap().lay_out_on().unwrap();
    let [region, event]: [OwnedFd; 2] = files.try_into().unwrap();
    let control = Control::attach(region, &layout.space, &layout.shape).unwrap();
    let ledger = layout.ledgers[0];
    let WorkerParts { mut software, .. } = parts_of(layout, 0).unwrap();
    let cpu = LiveCpu::new(control, Bell::of(event), 0);
    let mut core = Liar { cpu, lie, ledger };
    let mut replies = BufReader::new(stream.try_clone().unwrap());
    told_to_begin(&mut stream, &mut replies).unwrap();
    software.start(&mut core);
    stream.write_all(&line(&Said::Ready)).unwrap();
    loop {
        for queue in 0..software.queues() {
            let polled = software.poll(&mut core, queue);
            (0..polled).for_each(|index| software.packet(&mut core, index));
            software.flush(&mut core);
        }
        software.reclaim(&mut core);
        core.cpu.tell_taken(software.taken());
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// A process at work, killed with the value.
struct Process(Child);

impl Process {
    fn start(socket: &Path, what: &str) -> Process {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let name = concat!(module_path!(), "::a_worker_process");
        let (_, name) = name.split_once("::").unwrap();
        command.args(["--ignored", "--exact", name]);
        command.env(SOCKET, socket).env(LIE, what);
        Process(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.0.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// Stops it, as a debugger would. Linux wakes one thread for that; the others work on until it has run.
    fn stop(&self) {
        self.signal("-STOP");
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.0.id())).unwrap();
        for thread in threads {
            let status = thread.unwrap().path().join("status");
            let stopped = (0..10_000).any(|_| {
                std::thread::sleep(Duration::from_millis(1));
                std::fs::read_to_string(&status).unwrap().contains("State:\tT")
            });
            assert!(stopped, "a thread of a worker does not stop");
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Both cables of a run between two ports: frames go in by the first and come out of the second.
struct Cables {
    to: PairPort,
    from: PairPort,
    workers: usize,
    clock: Clock,
    /// Whom each frame was for, by its number.
    sent: Vec<u16>,
    /// The number of each frame that came.
    came: Vec<u32>,
}

impl Cables {
    /// Sends a frame to `worker`; its number.
    fn send(&mut self, worker: u16) -> u32 {
        let (rss, steering) = (Toeplitz::default(), IndirectionTable::spread_over(self.workers as u16));
        let number = self.sent.len() as u32;
        let frame = |port| {
            let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
            let mut frame = Vec::new();
            let number = number.to_ne_bytes();
            builder.udp(port, 9).write(&mut frame, &number).unwrap();
            frame
        };
        let mut frames = (1000..).map(frame);
        let of_worker = |frame: &Vec<u8>| steering.queue(rss.hash(&parse_frame(frame).unwrap())) == worker;
        let frame = frames.find(of_worker).unwrap();
        self.to.send(&frame, Time::ZERO).unwrap();
        self.sent.push(worker);
        number
    }

    fn receive(&mut self) {
        let came = &mut self.came;
        let mut each = |frame: &[u8]| {
            let number = frame[42..46].try_into().unwrap();
            came.push(u32::from_ne_bytes(number));
        };
        self.from.receive(64, &mut each).unwrap();
    }

    /// Whether frame `number` comes within `patience`.
    fn comes(&mut self, number: u32, patience: Time) -> bool {
        let until = self.clock.now() + patience;
        while !self.came.iter().rev().any(|came| *came == number) {
            if self.clock.now() > until {
                return false;
            }
            std::thread::sleep(Duration::from_micros(200));
            self.receive();
        }
        true
    }

    /// Frames for `worker` come back, after others may have been dropped.
    fn wait_for(&mut self, worker: u16) {
        let until = self.clock.now() + PATIENCE;
        loop {
            let number = self.send(worker);
            if self.comes(number, Time::from_ms(20)) {
                return;
            }
            assert!(self.clock.now() < until, "nothing comes for worker {worker}");
        }
    }
}

type Events = Mutex<crate::live::Events>;

/// A run that goes on, with workers that are processes.
struct Running<'a> {
    interface: &'a str,
    socket: &'a Path,
    cables: Cables,
    events: &'a Events,
    /// Frames that each worker took so far.
    taken: &'a Mutex<Vec<u64>>,
}

impl Running<'_> {
    /// Somebody at work: at a place, or with a lie.
    fn start(&self, what: &str) -> Process {
        Process::start(self.socket, what)
    }

    /// How many events say `what`.
    fn events(&self, what: &str) -> usize {
        let events = locked(self.events);
        events.iter().filter(|event| event.contains(what)).count()
    }

    /// Waits until an event says `what`.
    fn wait_for_event(&self, what: &str) {
        let until = self.cables.clock.now() + PATIENCE;
        while self.events(what) == 0 {
            assert!(self.cables.clock.now() < until, "nobody says `{what}`: {}", self.said());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// All events, for who does not know what went wrong.
    fn said(&self) -> String {
        format!("{}: {}", self.interface, locked(self.events).iter().collect::<Vec<_>>().join("\n"))
    }
}

/// A run of `interface` with `settings` and so many workers, none there yet, while `job` lasts. Workers may be silent.
fn running<T>(
    interface: &str,
    settings: &str,
    workers: usize,
    job: impl FnOnce(&mut Running<'_>) -> T,
) -> Result<LiveRun, LiveRunError> {
    running_with("worker_silence_s = 1000\n", interface, settings, workers, job)
}

/// The same with these lines of `[live]`.
fn running_with<T>(
    live: &str,
    interface: &str,
    settings: &str,
    workers: usize,
    job: impl FnOnce(&mut Running<'_>) -> T,
) -> Result<LiveRun, LiveRunError> {
    let folder = tempfile::tempdir().unwrap();
    let socket = &folder.path().join("socket");
    let app = if settings.contains("app = ") { "" } else { "app = \"l2fwd\"\n" };
    let text = format!(
        "[live]\nname = \"workers\"\nattach = {socket:?}\n{live}[settings]\ninterface = \"{interface}\"\n\
         {app}cores = {workers}\n{settings}[[port]]\nread = \"a\"\n[[port]]\nread = \"b\"\n"
    );
    let config = parse_live(&text, Path::new("workers.toml"), &Catalogue::shipped()).unwrap();
    let ((to, first), (from, second)) = (pair(), pair());
    let ports: Vec<Box<dyn Port>> = vec![Box::new(first), Box::new(second)];
    let (stop, events, taken) = (AtomicBool::new(false), &Events::default(), &Mutex::default());
    std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            run_live_over(&config, ports, &stop, &mut |snapshot| {
                *locked(events) = snapshot.events.clone();
                *locked(taken) = snapshot.workers.iter().map(|worker| worker.taken).collect();
            })
        });
        let (sent, came, clock) = (Vec::new(), Vec::new(), Clock::start());
        let cables = Cables { to, from, workers, clock, sent, came };
        while UnixStream::connect(socket).is_err() {
            assert!(!run.is_finished(), "{interface}: the run is over");
            std::thread::sleep(Duration::from_millis(2));
        }
        // Also when the job fails.
        let ends = SetAtEnd(&stop);
        // Whoever works goes on until the run ends.
        let _kept = job(&mut Running { interface, socket, cables, events, taken });
        drop(ends);
        run.join().unwrap()
    })
}
