//! `[tcp]` with `fast_path = "card"`: the device's thread runs TCP, as a NIC does that takes it over (TASNIC). No frame
//! crosses to the host; what crosses are payload and events of sockets.

use std::os::fd::BorrowedFd;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use hdrhistogram::Histogram;
use nicforge_nic::{NicCounters, TxOffload};
use nicforge_platform::live::ports::{Link, Port, PortCounters};
use nicforge_platform::live::{Clock, LiveError};
use nicforge_units::Time;

use super::config::LiveConfig;
use super::device::{DeviceCounts, NicCounts};
use super::outcome::LiveRun;
use super::pin::Places;
use super::software::{Software, WorkerEnd};
use super::{LiveRunError, Shared, Watch, locked, open_ports};

/// What the port counted, for whoever watches the run.
#[derive(Clone, Debug, Default)]
struct Board {
    port: PortCounters,
    frames: u64,
    bytes: u64,
}

/// The port, which tells what it counted.
struct ToldPort {
    port: Box<dyn Port>,
    frames: u64,
    bytes: u64,
    board: Arc<Mutex<Board>>,
}

impl ToldPort {
    fn tell(&self) {
        *locked(&self.board) = Board { port: self.port.counters().clone(), frames: self.frames, bytes: self.bytes };
    }
}

impl Port for ToldPort {
    fn receive(&mut self, budget: usize, each: &mut dyn FnMut(&[u8])) -> Result<usize, LiveError> {
        self.receive_unfinished(budget, 0, &mut |frame, _| each(frame))
    }

    fn receive_unfinished(
        &mut self,
        budget: usize,
        longest: usize,
        each: &mut dyn FnMut(&[u8], TxOffload),
    ) -> Result<usize, LiveError> {
        let (frames, bytes) = (&mut self.frames, &mut self.bytes);
        let mut count = |frame: &[u8], left: TxOffload| {
            (*frames, *bytes) = (*frames + 1, *bytes + frame.len() as u64);
            each(frame, left);
        };
        let received = match longest {
            0 => self.port.receive(budget, &mut |frame| count(frame, TxOffload::default())),
            _ => self.port.receive_unfinished(budget, longest, &mut count),
        };
        self.tell();
        received
    }

    fn takes_segments(&self) -> bool {
        self.port.takes_segments()
    }

    fn send_unfinished(&mut self, frame: &[u8], left: TxOffload, now: Time) -> Result<(), LiveError> {
        self.port.send_unfinished(frame, left, now)
    }

    fn send(&mut self, frame: &[u8], now: Time) -> Result<(), LiveError> {
        self.port.send(frame, now)
    }

    fn flush(&mut self) -> Result<(), LiveError> {
        let flushed = self.port.flush();
        self.tell();
        flushed
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.port.readable()
    }

    fn arm(&mut self) -> bool {
        self.port.arm()
    }

    fn is_patient(&self) -> bool {
        self.port.is_patient()
    }

    fn is_over(&self) -> bool {
        self.port.is_over()
    }

    fn link(&self) -> Option<&Link> {
        self.port.link()
    }

    fn hardware_address(&self) -> Option<[u8; 6]> {
        self.port.hardware_address()
    }

    fn look(&mut self) -> Result<(), LiveError> {
        self.port.look()
    }

    fn take_note(&mut self) -> Option<String> {
        self.port.take_note()
    }

    fn counters(&self) -> &PortCounters {
        self.port.counters()
    }

    fn counters_mut(&mut self) -> &mut PortCounters {
        self.port.counters_mut()
    }

    fn finish(&mut self) -> Result<(), LiveError> {
        let finished = self.port.finish();
        self.tell();
        finished
    }
}

/// Runs `software` on the card until `stop`, or for the configured time.
///
/// # Errors
/// A port that cannot be had, and what the software says.
pub fn run_on_card(
    config: &LiveConfig,
    software: Software<'_>,
    stop: &AtomicBool,
    watch: Watch<'_>,
) -> Result<LiveRun, LiveRunError> {
    let places = Places::new(&config.live, 1)?;
    let board = Arc::new(Mutex::new(Board::default()));
    let ends: Vec<WorkerEnd> = open_ports(config)?
        .into_iter()
        .map(|port| {
            let port = ToldPort { port, frames: 0, bytes: 0, board: Arc::clone(&board) };
            WorkerEnd { port: Box::new(port), core: places.device() }
        })
        .collect();
    let shared = Shared::new(0);
    let mut watched = None;
    std::thread::scope(|scope| {
        let stop_software = &shared.workers_stop;
        let running = scope.spawn(move || software(ends, stop_software));
        let works = || {
            *locked(&shared.device) = counts(&locked(&board));
            !running.is_finished()
        };
        watched = Some(shared.watch(config, Clock::start(), stop, watch, works));
        shared.workers_stop.store(true, Ordering::Release);
        running.join().unwrap_or_else(|panic| resume_unwind(panic)).map_err(LiveRunError::Software)
    })?;
    *locked(&shared.device) = counts(&locked(&board));
    let (seconds, timeline) = watched.map_or((0.0, Vec::new()), |(seconds, line)| (seconds, line.into_entries()));
    let snapshot = shared.snapshot(seconds);
    // No frame is a packet of an application here, so there is no latency of one.
    let metrics = snapshot.metrics(&Histogram::new(1).map_err(|error| LiveRunError::Software(error.to_string()))?);
    Ok(LiveRun { metrics, cores: Vec::new(), timeline, switches: Vec::new(), snapshot, trace: None })
}

fn counts(board: &Board) -> DeviceCounts {
    let nic = NicCounters { frames: board.frames, bytes: board.bytes, delivered: 0, ..NicCounters::default() };
    DeviceCounts {
        nics: vec![NicCounts { nic, port: board.port.clone(), ..NicCounts::default() }],
        ..DeviceCounts::default()
    }
}
