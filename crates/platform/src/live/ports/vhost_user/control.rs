//! The control channel: a thread that waits for a hypervisor and does what it asks for, one at a time.
//! A hypervisor that talks nonsense, or stops in the middle of a message, keeps only this thread.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::net::{RecvFlags, recv};
use vhost::vhost_user::{BackendReqHandler, Error, VhostUserBackendReqHandlerMut};

use super::guest::Guest;

/// What the thread and the port share.
#[derive(Debug)]
struct Shared {
    guest: Arc<Mutex<Guest>>,
    /// Why the last hypervisor was left; a read clears it.
    note: Mutex<Option<String>>,
    /// The hypervisor that is there.
    stream: Mutex<Option<UnixStream>>,
    stops: AtomicBool,
}

/// The thread; it ends with the value.
#[derive(Debug)]
pub struct Control {
    shared: Arc<Shared>,
    listener: UnixListener,
    path: PathBuf,
    thread: Option<JoinHandle<()>>,
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // What is behind the locks is whole after each step.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Listens at `path`, which no other program uses.
fn listen(path: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(cause) if cause.kind() == ErrorKind::AddrInUse => match UnixStream::connect(path) {
            // A socket that nobody listens at is what is left of a program that was killed.
            Err(left) if left.kind() == ErrorKind::ConnectionRefused => {
                fs::remove_file(path)?;
                UnixListener::bind(path)
            }
            _ => Err(cause),
        },
        done => done,
    }
}

impl Control {
    /// Waits at `path` for a hypervisor that has `guest`.
    ///
    /// # Errors
    /// Another program listens there, or the path cannot be used.
    pub fn new(path: &Path, guest: Arc<Mutex<Guest>>) -> io::Result<Control> {
        let listener = listen(path)?;
        let shared =
            Arc::new(Shared { guest, note: Mutex::new(None), stream: Mutex::new(None), stops: AtomicBool::new(false) });
        let (theirs, socket) = (shared.clone(), listener.try_clone()?);
        let thread = std::thread::Builder::new().name("vhost-user".into()).spawn(move || serve(&theirs, &socket))?;
        Ok(Control { shared, listener, path: path.to_owned(), thread: Some(thread) })
    }

    /// Why the last hypervisor was left, once.
    pub fn take_note(&self) -> Option<String> {
        locked(&self.shared.note).take()
    }

    /// Leaves the hypervisor that is there.
    pub fn hang_up(&self, why: &str) {
        if let Some(stream) = &*locked(&self.shared.stream) {
            *locked(&self.shared.note) = Some(why.to_owned());
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.shared.stops.store(true, Ordering::Relaxed);
        // Both end what the thread waits for.
        let _ = rustix::net::shutdown(self.listener.as_fd(), rustix::net::Shutdown::Both);
        self.hang_up("the run is over");
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = fs::remove_file(&self.path);
    }
}

/// A request to use a queue, or not to.
struct Enable {
    queue: u32,
    on: bool,
}

/// The next request, if it is one of those, which stays where it is. QEMU enables queues before it has agreed
/// on the feature that says that they can be, and never again; the vhost crate refuses that.
fn enable_request(stream: &UnixStream) -> Option<Enable> {
    const SET_VRING_ENABLE: u32 = 18;
    let mut message = [0; 20];
    let (len, _) = recv(stream, &mut message[..], RecvFlags::PEEK).ok()?;
    let word = |number: usize| u32::from_le_bytes(std::array::from_fn(|at| message[4 * number + at]));
    (len == message.len() && word(0) == SET_VRING_ENABLE).then(|| Enable { queue: word(3), on: word(4) == 1 })
}

fn serve(shared: &Shared, listener: &UnixListener) {
    while !shared.stops.load(Ordering::Relaxed) {
        let Ok((stream, _)) = listener.accept() else {
            // Only a listener that is shut down fails for good.
            std::thread::yield_now();
            continue;
        };
        *locked(&shared.stream) = stream.try_clone().ok();
        let other = stream.try_clone().ok();
        let mut handler = BackendReqHandler::from_stream(stream, shared.guest.clone());
        let error = loop {
            let early = other.as_ref().and_then(enable_request);
            match (handler.handle_request(), early) {
                (Ok(()) | Err(Error::SocketRetry(_)), _) => {}
                // An index that is none changes nothing.
                (Err(Error::InactiveFeature(_)), Some(Enable { queue, on })) => {
                    let _ = locked(&shared.guest).set_vring_enable(queue, on);
                }
                (Err(error), _) => break error,
            }
        };
        *locked(&shared.stream) = None;
        locked(&shared.guest).leave();
        let mut note = locked(&shared.note);
        if !matches!(error, Error::Disconnected | Error::PartialMessage) && note.is_none() {
            *note = Some(error.to_string());
        }
    }
}
