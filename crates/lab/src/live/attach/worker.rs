//! The other side: a worker's process.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nicforge_options::{ConfigError, Place};
use nicforge_platform::Ground;
use nicforge_platform::live::handover::receive_files;
use nicforge_platform::live::{Bell, Control, LiveCpu, LiveError};

use super::message::{Invitation, LINE_MAX, Reply, Said, Told, VERSION};
use super::place::line;
use crate::live::LiveRunError;
use crate::live::layout::{Blueprint, Layout};
use crate::live::locked;
use crate::live::pin::go_to;
use crate::live::worker::{Ended, Worker, WorkerCounts, WorkerParts};
use crate::settings::Catalogue;

#[cfg(test)]
mod tests;

/// Why a worker ends that nobody dismissed.
const GONE: &str = "the device's process has ended without a word; start the run again, then attach";
/// How long the device may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a worker that halts looks whether it may go on.
const HALT: Duration = Duration::from_micros(200);

/// What a worker's process did.
#[derive(Clone, Debug)]
pub struct Attached {
    /// Its place.
    pub worker: usize,
    /// What it counted since its queues last began.
    pub counts: WorkerCounts,
}

/// Attaches to the run that listens at `socket`, at place `worker` or any, and works until the run
/// ends or `stop`. `told` hears of the place.
///
/// # Errors
/// Nobody listens, there is no place, or the run wants it to go.
pub fn attach(
    socket: &Path,
    worker: Option<usize>,
    catalogue: &Arc<Catalogue>,
    stop: &AtomicBool,
    told: &mut dyn FnMut(usize),
) -> Result<Attached, LiveRunError> {
    let failed = || LiveError::of(format!("socket {}", socket.display()));
    let mut stream = UnixStream::connect(socket).map_err(|cause| nobody(socket, &cause))?;
    let times = stream.set_read_timeout(Some(PATIENCE));
    let times = times.and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
    times.map_err(failed())?;
    let hello = Said::Hello { version: VERSION.to_owned(), worker };
    stream.write_all(&line(&hello)).map_err(failed())?;
    let (invitation, files) = receive_invitation(&stream)?;
    let blueprint = invitation.blueprint(catalogue)?;
    told(invitation.worker);
    let mut member = Member::new(blueprint, &invitation, files)?;
    let mut replies = BufReader::new(stream.try_clone().map_err(failed())?);
    let Some(order) = told_to_begin(&mut stream, &mut replies)? else {
        return Ok(Attached { worker: invitation.worker, counts: WorkerCounts::default() });
    };
    stream.set_read_timeout(None).map_err(failed())?;
    member.begin(order);
    let dismissed = Mutex::new(None);
    let mut counts = WorkerCounts::default();
    std::thread::scope(|scope| {
        scope.spawn(|| listen(replies, stop, &dismissed));
        go_to(invitation.core);
        let ended = member.work(&mut stream, stop);
        counts = member.worker.counts().clone();
        // Ends the other thread.
        let _ = stream.shutdown(std::net::Shutdown::Both);
        ended
    })?;
    match dismissed.into_inner() {
        Ok(Some(why)) => Err(LiveRunError::Attach(why)),
        _ => Ok(Attached { worker: invitation.worker, counts }),
    }
}

/// Why there is no run at `socket`, and what helps.
fn nobody(socket: &Path, cause: &std::io::Error) -> ConfigError {
    let right = match cause.kind() {
        ErrorKind::PermissionDenied => "attach as the user who started the run: only its socket's owner may",
        _ => "start the run first: `nicforge live FILE --attach SOCKET`",
    };
    let place = Place::argument(&format!("attach {}", socket.display()));
    ConfigError::new(&place, cause.to_string(), right)
}

/// Hears what the device's process says, until it ends.
fn listen(replies: BufReader<UnixStream>, stop: &AtomicBool, dismissed: &Mutex<Option<String>>) {
    let mut is_told = false;
    for text in replies.lines().map_while(Result::ok) {
        match serde_json::from_str(&text) {
            Ok(Reply::Stop) => is_told = true,
            Ok(Reply::Refused(why)) => {
                *locked(dismissed) = Some(why);
                is_told = true;
            }
            Ok(Reply::Welcome(_) | Reply::Begin(_)) | Err(_) => {}
        }
        if is_told {
            break;
        }
    }
    // Nobody takes what this process would send.
    let stops_itself = stop.swap(true, Ordering::AcqRel);
    if !is_told && !stops_itself {
        *locked(dismissed) = Some(GONE.into());
    }
}

fn receive_invitation(stream: &UnixStream) -> Result<(Box<Invitation>, Vec<OwnedFd>), LiveRunError> {
    let (mut text, mut files) = (Vec::new(), Vec::new());
    let mut bytes = vec![0; LINE_MAX];
    while !text.ends_with(b"\n") {
        let (count, came) = receive_files(stream, &mut bytes)?;
        files.extend(came);
        text.extend_from_slice(&bytes[..count]);
        if count == 0 || text.len() > LINE_MAX {
            let wrong = "whoever listens there hung up; is it `nicforge live`?";
            return Err(LiveRunError::Attach(wrong.into()));
        }
    }
    match serde_json::from_slice(&text) {
        Ok(Reply::Welcome(invitation)) => Ok((invitation, files)),
        Ok(Reply::Refused(why)) => Err(LiveRunError::Attach(why)),
        _ => Err(LiveRunError::Attach("whoever listens there speaks otherwise".into())),
    }
}

/// Says that this worker is prepared, and waits for the order that it begins with; none if the run ends first.
fn told_to_begin(stream: &mut UnixStream, replies: &mut BufReader<UnixStream>) -> Result<Option<u64>, LiveRunError> {
    // Whoever is not there any more does not answer either.
    let _ = stream.write_all(&line(&Said::Prepared));
    let mut text = String::new();
    let heard = replies.read_line(&mut text);
    heard.map_err(|_| LiveRunError::Attach(GONE.into()))?;
    match serde_json::from_str(&text) {
        Ok(Reply::Begin(order)) => Ok(Some(order)),
        Ok(Reply::Stop) => Ok(None),
        Ok(Reply::Refused(why)) => Err(LiveRunError::Attach(why)),
        _ => Err(LiveRunError::Attach(GONE.into())),
    }
}

/// A worker in its own process.
struct Member {
    worker: Worker,
    blueprint: Blueprint,
    control: Control,
    place: usize,
    order: u64,
}

impl Member {
    /// Takes place in the region, with empty tables; it touches no ring.
    fn new(blueprint: Blueprint, invitation: &Invitation, files: Vec<OwnedFd>) -> Result<Member, LiveRunError> {
        if blueprint.fingerprint()? != invitation.layout {
            let wrong = "this program lays the run's memory out or writes it otherwise; attach with the build that the run is of";
            return Err(LiveRunError::Attach(wrong.into()));
        }
        let files: [OwnedFd; 2] = files
            .try_into()
            .map_err(|files: Vec<OwnedFd>| LiveRunError::Attach(format!("{} files came and not 2", files.len())))?;
        let [region, event] = files;
        let layout = blueprint.lay_out()?;
        let control = Control::attach(region, &layout.space, &layout.shape)?;
        let place = invitation.worker;
        let mut parts = parts_of(layout, place)?;
        let mut cpu = LiveCpu::new(control.clone(), Bell::of(event), place);
        if invitation.wipes {
            // What whoever worked here before left in its tables is not for this one.
            control.region().clear(parts.tables.clone())?;
        }
        parts.software.app.start_own(&mut cpu);
        Ok(Member { worker: Worker::new(cpu, parts, None), blueprint, control, place, order: 0 })
    }

    /// Brings its queues up, by `order`.
    fn begin(&mut self, order: u64) {
        self.order = order;
        self.worker.start();
    }

    fn work(&mut self, stream: &mut UnixStream, stop: &AtomicBool) -> Result<(), LiveRunError> {
        self.control.follow(self.place, self.order);
        let mut say = |said: &Said| {
            // Whoever is not there any more is noticed by the thread that listens.
            let _ = stream.write_all(&line(said));
        };
        say(&Said::Ready);
        loop {
            let period = self.order;
            let mut tell = |counts: &WorkerCounts| {
                let counts = Told::of(counts);
                say(&Said::Counts { period, counts });
            };
            match self.worker.run(stop, &mut tell) {
                Ended::Stopped => break,
                Ended::Halted(order) => self.halt(order, stop)?,
            }
        }
        let buffers = self.worker.buffers().0;
        let counts = Told::of(self.worker.counts());
        let period = self.order;
        say(&Said::Ended { period, counts, buffers });
        Ok(())
    }

    /// Touches nothing until the device lets it go on, with other queues.
    fn halt(&mut self, order: u64, stop: &AtomicBool) -> Result<(), LiveRunError> {
        let parts = parts_of(self.blueprint.lay_out()?, self.place)?;
        self.control.follow(self.place, order);
        while self.control.order_of(self.place) == order && !stop.load(Ordering::Acquire) {
            std::thread::sleep(HALT);
        }
        self.order = self.control.order_of(self.place);
        self.worker.restart(parts);
        self.control.follow(self.place, self.order);
        Ok(())
    }
}

fn parts_of<G: Ground>(layout: Layout<G>, place: usize) -> Result<WorkerParts<G::Cpu>, LiveRunError> {
    let parts = layout.workers.into_iter().nth(place);
    parts.ok_or_else(|| LiveRunError::Attach(format!("there is no worker {place}")))
}
