//! Workers that are processes of their own, between captures: they attach, die at any moment, and
//! others take their places. Needs no privilege.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::support::crew::{Crew, shares_rings};
use crate::support::interfaces::interfaces;
use crate::support::program::Program;
use nicforge_interfaces::emulated::played_by_cores;
use nicforge_platform::Addr;
use nicforge_platform::live::handover::receive_files;
use nicforge_platform::live::{Bell, Region};
use nicforge_wire::capture::CaptureReader;
use nicforge_wire::parse_frame;
use nicforge_wire::rss::{IndirectionTable, Toeplitz};

const FRAMES: usize = 40_000;
const PATIENCE: Duration = Duration::from_secs(60);
const MAD: &str = "NICFORGE_TEST_MAD_SOCKET";

/// Every interface; `emulated/X` is `emulated` with X inside, by itself rxBisect.
fn everywhere() -> Vec<String> {
    let others = played_by_cores().into_iter().filter(|name| *name != "rx_bisect");
    let played = others.map(|name| format!("emulated/{name}"));
    let plain = interfaces().into_iter().map(str::to_owned);
    plain.chain(played).collect()
}

/// `count` frames of 64 flows, the same for all tests.
fn capture(count: usize) -> PathBuf {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    static MADE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let folder = FOLDER.get_or_init(|| tempfile::tempdir().unwrap());
    let file = folder.path().join(format!("{count}.pcap"));
    let mut made = MADE.lock().unwrap();
    if !made.contains(&count) {
        let mut make = Command::new(env!("CARGO_BIN_EXE_nicforge"));
        make.arg("capture").arg("--out").arg(&file);
        make.args(["--packets", &count.to_string(), "--set", "flows=64"]);
        make.args(["--set", "packet_bytes=100"]);
        assert!(make.stdout(Stdio::null()).status().unwrap().success());
        made.push(count);
    }
    file
}

fn frames(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = CaptureReader::open(path).unwrap();
    let mut frames = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        frames.push(record.bytes.to_vec());
    }
    frames
}

/// Frames by worker and flow, in order, without their Ethernet addresses.
fn by_flow(frames: &[Vec<u8>]) -> BTreeMap<(u16, Vec<u8>), Vec<Vec<u8>>> {
    let (rss, steering) = (Toeplitz::default(), IndirectionTable::spread_over(2));
    let mut flows: BTreeMap<_, Vec<Vec<u8>>> = BTreeMap::new();
    for frame in frames {
        let hash = rss.hash(&parse_frame(frame).unwrap());
        let flow = (steering.queue(hash), frame[26..38].to_vec());
        flows.entry(flow).or_default().push(frame[12..].to_vec());
    }
    flows
}

/// A run of two worker processes from one capture to another.
struct Run {
    program: Program,
    crew: Crew,
    folder: tempfile::TempDir,
}

impl Run {
    fn new(interface: &str, count: usize) -> Run {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (capture(count), folder.path().join("out.pcap"));
        let text = format!(
            "[live]\nname = \"attach\"\nattach = {:?}\n[settings]\n{}\
             app = \"l2fwd\"\ncores = 2\nrx_entries = 64\n{}[[port]]\n\
             read = {from:?}\n[[port]]\nwrite = {to:?}\n",
            folder.path().join("socket"),
            match interface.split_once('/') {
                Some((interface, emulates)) => {
                    format!("interface = {interface:?}\nemulates = {emulates:?}\n")
                }
                None => format!("interface = {interface:?}\n"),
            },
            match interface {
                "rx_bisect" | "emulated" => "ax_entries = 32\nbx_entries = 64\n",
                _ => "",
            }
        );
        let file = folder.path().join("run.toml");
        std::fs::write(&file, text).unwrap();
        let mut live = Command::new(env!("CARGO_BIN_EXE_nicforge"));
        live.arg("live").arg(&file).args(["--json", "--out"]);
        live.arg(folder.path().join("out"));
        let program = Program::start(live.stdout(Stdio::null()).stderr(Stdio::piped()));
        let crew = Crew::new(&folder.path().join("socket"), 2);
        crew.wait_for_socket();
        Run { program, crew, folder }
    }

    /// Waits until all frames are through; what it said, its report and the frames that came.
    fn end(mut self) -> (String, serde_json::Value, Vec<Vec<u8>>) {
        let until = Instant::now() + PATIENCE;
        while self.program.is_running() {
            if Instant::now() > until {
                let folder = self.folder.path().display().to_string();
                let ended = self.program.killed();
                let said = String::from_utf8_lossy(&ended.stderr);
                panic!("the run in {folder} does not end: {said}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let ended = self.program.ends_with_output();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.success(), "{}: {said}", ended.status);
        self.crew.all_ended();
        let report = std::fs::read(self.folder.path().join("out/report.json")).unwrap();
        let came = frames(&self.folder.path().join("out.pcap"));
        (said, serde_json::from_slice(&report).unwrap(), came)
    }
}

fn drops(report: &serde_json::Value) -> BTreeMap<String, u64> {
    serde_json::from_value(report["points"][0]["metrics"]["drops"].clone()).unwrap()
}

#[test]
fn worker_processes_forward_every_frame_on_every_interface() {
    for interface in everywhere() {
        let mut run = Run::new(&interface, FRAMES);
        (0..2).for_each(|worker| run.crew.attach(worker));
        let sent = by_flow(&frames(&capture(FRAMES)));
        let (_, report, came) = run.end();
        assert!(drops(&report).is_empty(), "{interface}: {:?}", drops(&report));
        assert!(by_flow(&came) == sent, "{interface}: {} came", came.len());
    }
}

/// The run itself checks at its end that every frame and every buffer is accounted for.
#[test]
fn a_worker_killed_at_any_moment_costs_only_its_own_frames() {
    for (seed, interface) in (1..).zip(everywhere()) {
        let sent = by_flow(&frames(&capture(3 * FRAMES)));
        let mut run = Run::new(&interface, 3 * FRAMES);
        (0..2).for_each(|worker| run.crew.attach(worker));
        let mut kills = 0u64;
        while run.program.is_running() && kills < 12 {
            // Anywhere in what a worker does, which takes microseconds.
            let pause = (seed * 7_919 + kills * 104_729) % 9_000;
            std::thread::sleep(Duration::from_micros(500 + pause));
            run.crew.kill(0);
            kills += 1;
            if run.program.is_running() {
                run.crew.attach(0);
            }
        }
        let (said, report, came) = run.end();
        let lost: u64 = drops(&report).values().sum();
        assert_eq!(came.len() as u64 + lost, 3 * FRAMES as u64, "{interface}: {said}");
        assert!(kills >= 2, "{interface}: {kills} kills, the run was too short");
        let came = by_flow(&came);
        let others = sent.iter().filter(|((worker, _), _)| *worker == 1);
        for (flow, frames) in others.filter(|_| !shares_rings(&interface)) {
            assert!(came.get(flow) == Some(frames), "{interface}: another's frame is lost: {said}");
        }
        // Worker 0's flows go on to their last frames.
        let own = sent.iter().filter(|((worker, _), _)| *worker == 0);
        let last = |flows: &BTreeMap<_, Vec<Vec<u8>>>, flow| flows.get(flow).and_then(|frames| frames.last().cloned());
        let mut ends = own.map(|(flow, _)| last(&came, flow) == last(&sent, flow));
        assert!(ends.any(|arrived| arrived), "{interface}: its queue never worked again: {said}");
    }
}

/// Says hello as worker 0 and that its queues are up; the region and the device's bell.
fn join_as_worker_0(socket: &std::ffi::OsStr) -> (UnixStream, Region, Bell) {
    let mut stream = UnixStream::connect(socket).unwrap();
    let hello = format!("{{\"hello\":{{\"version\":\"{}\",\"worker\":0}}}}\n", env!("CARGO_PKG_VERSION"));
    stream.write_all(hello.as_bytes()).unwrap();
    let (_, mut files) = receive_files(&stream, &mut [0; 65_536]).unwrap();
    let bell = Bell::of(files.remove(1));
    let region = Region::attach(files.remove(0), 0).unwrap();
    stream.write_all(b"\"prepared\"\n").unwrap();
    let mut said = [0; 64];
    let len = stream.read(&mut said).unwrap();
    assert!(said[..len].starts_with(b"{\"begin\":"), "{}", String::from_utf8_lossy(&said[..len]));
    stream.write_all(b"\"ready\"\n").unwrap();
    (stream, region, bell)
}

/// Not a test by itself: the worker that writes anything anywhere, in a process of its own.
#[test]
#[ignore = "started by another test"]
fn a_mad_worker() {
    let Some(socket) = std::env::var_os(MAD) else {
        return;
    };
    let (_stream, region, _) = join_as_worker_0(&socket);
    let words = region.len() / 8;
    let mut state = 88_172_645_463_325_252u64;
    loop {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // Half of it where rings, tables and control words lie, behind the pool or at the end.
        let at = match state % 4 {
            0 => state >> 3,
            1 => words - 1 - (state >> 8) % 4_096,
            _ => (state >> 8) % (1 << 15),
        };
        region.store(Addr(at % words * 8), state >> (state % 60));
    }
}

/// Not a test by itself: the worker whose transmit descriptors were never written.
#[test]
#[ignore = "started by another test"]
fn a_wrong_worker() {
    let Some(socket) = std::env::var_os(MAD) else {
        return;
    };
    let (_stream, region, bell) = join_as_worker_0(&socket);
    // Behind host memory: a line of its own, the device's, two workers', and then the registers,
    // of each device 12 for receiving, 1 for steering, 2 doorbells for sending.
    let magic = u64::from_le_bytes(*b"nicforge");
    let mut lines = (0..region.len() / 64).map(|line| line * 64);
    let begin = lines.find(|&line| region.load::<u64>(Addr(line)) == magic);
    let begin = begin.unwrap() + 64 * 4;
    loop {
        region.word(Addr(begin + 64 * 13)).store(100, Ordering::Release);
        bell.ring_now();
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Starts a worker 0 that is wrong, and waits until it is ended.
fn ends_a_wrong_worker(run: &Run) {
    let mut wrong = Command::new(std::env::current_exe().unwrap());
    wrong.args(["--ignored", "--exact", "attach::a_wrong_worker"]);
    wrong.env(MAD, &run.crew.socket);
    let mut wrong = wrong.stdout(Stdio::null()).spawn().unwrap();
    let until = Instant::now() + PATIENCE;
    while wrong.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            wrong.kill().unwrap();
            panic!("it was not ended");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A queue whose descriptors name nothing is closed, and the run says why; whoever takes the place
/// finds a queue that works.
#[test]
fn a_bad_queue_is_closed_with_its_reason() {
    for interface in everywhere() {
        let mut run = Run::new(&interface, FRAMES);
        ends_a_wrong_worker(&run);
        (0..2).for_each(|worker| run.crew.attach(worker));
        let sent = by_flow(&frames(&capture(FRAMES)));
        let (said, report, came) = run.end();
        let reason = "worker 0 is lost: 100 of its descriptors name no buffer";
        assert!(said.contains(reason), "{interface}: {said}");
        assert!(by_flow(&came) == sent, "{interface}: {} came", came.len());
        let (causes, made) = (drops(&report), drops(&report).values().sum::<u64>());
        assert_eq!(made, 100, "{interface}: {causes:?}");
    }
}

/// Whether the last frames of every flow of `count` came, byte by byte.
fn ends_as_sent(came: &[Vec<u8>], count: usize) -> bool {
    const LAST: usize = 20;
    // Before them, a worker that went mad may have sent anything.
    let readable = |frame: &&Vec<u8>| frame.len() >= 38 && parse_frame(frame).is_ok();
    let came: Vec<Vec<u8>> = came.iter().filter(readable).cloned().collect();
    let came = by_flow(&came);
    by_flow(&frames(&capture(count))).iter().all(|(flow, sent)| {
        let last = &sent[sent.len().saturating_sub(LAST)..];
        came.get(flow).is_some_and(|came| came.ends_with(last))
    })
}

/// A run in which worker 0 goes mad and is then ended, and a fresh pair forwards what is left; whether that
/// came.
fn goes_on_after_a_mad_worker(interface: &str) -> bool {
    let mut run = Run::new(interface, 10 * FRAMES);
    run.crew.attach(1);
    let mut mad = Command::new(std::env::current_exe().unwrap());
    mad.args(["--ignored", "--exact", "attach::a_mad_worker"]);
    mad.env(MAD, &run.crew.socket);
    let mut mad = mad.stdout(Stdio::null()).spawn().unwrap();
    let until = Instant::now() + Duration::from_millis(150);
    while mad.try_wait().unwrap().is_none() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(run.program.is_running(), "{interface}: the device went with it");
    // It may have been ended already.
    let _ = mad.kill();
    mad.wait().unwrap();
    run.crew.kill(1);
    (0..2).for_each(|worker| run.crew.attach(worker));
    let (said, _, came) = run.end();
    let noticed = ["worker 0 is lost", "worker 0 was ended"];
    let noticed = noticed.iter().any(|event| said.contains(event));
    assert!(noticed, "{interface}: {said}");
    ends_as_sent(&came, 10 * FRAMES)
}

/// The device goes on, whatever stands in the region; with other workers traffic goes on too.
#[test]
fn a_mad_worker_ends_nobody_but_itself() {
    /// Frames of a worker that was ended wait for nobody, so the file may end before the fresh pair is there,
    /// which then has nothing to forward: on a fast machine in every second run.
    const TRIES: usize = 12;
    for interface in everywhere() {
        let ends = (0..TRIES).any(|_| goes_on_after_a_mad_worker(&interface));
        assert!(ends, "{interface}: the last frames never came");
    }
}
