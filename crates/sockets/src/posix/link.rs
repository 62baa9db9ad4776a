//! This process's link with the service: control socket, context queue, bell.
//!
//! A forked child makes its own. A page that the kernel wipes on fork tells that it is a child, also
//! after a raw `clone`.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};

use super::table;
use crate::control::{ReplyMessage, Request, RequestMessage, ask, reply, retry, send};
use crate::layout::VERSION;
use crate::queue::{Message, Producer};
use crate::shared::{ContextMemory, Direction, StatusMemory};

/// Environment variable: path of the service's Unix socket.
pub const PATH_VARIABLE: &str = "NICFORGE_SOCKETS";

/// The library's descriptors get numbers from here on where the limit allows, out of programs' way.
const NUMBER_FROM: i32 = 900;

/// The service's path as the environment had it when it was first asked: programs such as nginx clear theirs.
pub fn path() -> Option<&'static Path> {
    PATH.get_or_init(|| std::env::var_os(PATH_VARIABLE).map(PathBuf::from)).as_deref()
}

static PATH: OnceLock<Option<PathBuf>> = OnceLock::new();

/// Names the service in place of the environment, before anything asks for it.
pub fn use_path(path: PathBuf) {
    // Where it was asked for already, that answer stands.
    let _ = PATH.set(Some(path));
}

/// A registered process.
#[derive(Debug)]
pub struct Link {
    /// Tells links apart: a socket is attached once per link.
    pub serial: u64,
    /// Tells services apart: flows of another one mean nothing to this link's.
    pub instance: u64,
    control: Mutex<OwnedFd>,
    producer: Mutex<Producer>,
    context: ContextMemory,
    bell: OwnedFd,
    wake: Option<OwnedFd>,
    status: StatusMemory,
}

static LINK: ArcSwapOption<Link> = ArcSwapOption::const_empty();
static SERIAL: AtomicU64 = AtomicU64::new(0);
/// Points into a page that is zero in a child: 0 no link, 1 link, 2 somebody makes one.
static MARKER: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());

const NONE: u32 = 0;
const MADE: u32 = 1;
const MAKING: u32 = 2;

fn marker() -> Result<&'static AtomicU32, Errno> {
    let mut page = MARKER.load(Ordering::Acquire);
    if page.is_null() {
        // SAFETY: a new private mapping overlaps nothing; it is never unmapped.
        let mapped = unsafe {
            let mapped =
                mmap_anonymous(std::ptr::null_mut(), 4096, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)?;
            madvise(mapped, 4096, Advice::LinuxWipeOnFork)?;
            mapped
        };
        // A second thread's page, if two come at a time, is lost: one page, once.
        let result = MARKER.compare_exchange(std::ptr::null_mut(), mapped.cast(), Ordering::AcqRel, Ordering::Acquire);
        page = result.map_or_else(|current| current, |_| mapped.cast());
    }
    // SAFETY: the page is mapped for good, aligned, and holds an atomic.
    Ok(unsafe { &*page })
}

/// The link of this process, made if there is none.
pub fn link() -> Result<Arc<Link>, Errno> {
    let marker = marker()?;
    loop {
        if marker.load(Ordering::Acquire) == MADE
            && let Some(link) = LINK.load_full()
        {
            return Ok(link);
        }
        if marker.compare_exchange(NONE, MAKING, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            let made = Link::new();
            match made {
                Ok(link) => {
                    let link = Arc::new(link);
                    // A child drops its copies of the parent's descriptors here.
                    LINK.store(Some(link.clone()));
                    marker.store(MADE, Ordering::Release);
                    return Ok(link);
                }
                Err(cause) => {
                    marker.store(NONE, Ordering::Release);
                    return Err(cause);
                }
            }
        }
        rustix::thread::sched_yield();
    }
}

/// Forgets a link whose service has gone; the next call makes another.
pub fn lost() {
    if let Ok(marker) = marker()
        && marker.compare_exchange(MADE, MAKING, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    {
        LINK.store(None);
        marker.store(NONE, Ordering::Release);
    }
}

/// Whether the process had a link when it, or its parent, last looked.
pub fn inherited() -> bool {
    LINK.load().is_some()
}

/// The link, if there is one already; exits need none.
pub fn present() -> Option<Arc<Link>> {
    let marker = marker().ok()?;
    (marker.load(Ordering::Acquire) == MADE).then(|| LINK.load_full()).flatten()
}

/// Moves a descriptor of the library to a high number, and keeps programs from closing it.
fn aside(descriptor: OwnedFd) -> OwnedFd {
    let descriptor = out_of_the_way(descriptor);
    table::protect(descriptor.as_raw_fd());
    descriptor
}

/// Moves a descriptor to a high number.
pub(crate) fn out_of_the_way(descriptor: OwnedFd) -> OwnedFd {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    let from = NUMBER_FROM.min((limit as i64 - 16).max(3) as i32);
    let moved = rustix::io::fcntl_dupfd_cloexec(&descriptor, from);
    moved.unwrap_or(descriptor)
}

impl Link {
    /// Registers with the service that the environment names.
    fn new() -> Result<Link, Errno> {
        Link::to(path().ok_or(Errno::NOENT)?, true)
    }

    /// Registers with the service at a path.
    pub fn to(path: &Path, move_aside: bool) -> Result<Link, Errno> {
        let control = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        rustix::net::connect(&control, &SocketAddrUnix::new(path)?)?;
        let hello = RequestMessage { request: Request::Hello as u32, value: VERSION, ..RequestMessage::default() };
        let (_, descriptors) = ask(&control, &hello, &[])?;
        let mut descriptors = descriptors.into_iter();
        let mut next = || descriptors.next().ok_or(Errno::PROTO);
        let (context, bell, wake, status) = (next()?, next()?, next()?, next()?);
        let place = |descriptor| if move_aside { aside(descriptor) } else { descriptor };
        let status = StatusMemory::for_reading(&status)?;
        Ok(Link {
            instance: status.page().instance.load(Ordering::Acquire),
            serial: SERIAL.fetch_add(1, Ordering::Relaxed) + 1,
            control: Mutex::new(place(control)),
            producer: Mutex::new(Producer::default()),
            context: ContextMemory::new(&context)?,
            bell: place(bell),
            wake: (!move_aside).then_some(wake),
            status,
        })
    }

    /// Asks the service, with bytes that follow the request.
    pub fn ask_with(&self, request: &RequestMessage, bytes: &[u8]) -> Result<ReplyMessage, Errno> {
        let control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        let message = [bytemuck::bytes_of(request), bytes].concat();
        let sent = retry(|| send(control.as_fd(), &message, &[], SendFlags::empty()));
        let answer = sent.and_then(|()| reply(control.as_fd())).map(|(reply, _)| reply);
        if matches!(answer, Err(Errno::CONNRESET | Errno::PIPE)) {
            drop(control);
            lost();
        }
        answer
    }

    /// Asks the service.
    pub fn ask(
        &self,
        request: &RequestMessage,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(ReplyMessage, Vec<OwnedFd>), Errno> {
        let control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = ask(control.as_fd(), request, descriptors);
        if matches!(answer, Err(Errno::CONNRESET | Errno::PIPE)) {
            drop(control);
            lost();
        }
        answer
    }

    /// Adds entries to the context queue, and rings where the service sleeps.
    pub fn push(&self, messages: &[Message]) -> Result<(), Errno> {
        let queue = self.context.queue(Direction::ToService);
        let mut producer = self.producer.lock().unwrap_or_else(PoisonError::into_inner);
        for message in messages {
            let mut tries = 0;
            while producer.push(queue, *message).is_err() {
                // The service takes a whole queue at a time; a full one lasts for microseconds.
                self.ring();
                std::thread::sleep(Duration::from_micros(20));
                tries += 1;
                if tries % 1000 == 0 && !self.alive() {
                    return Err(Errno::CONNRESET);
                }
            }
        }
        drop(producer);
        // The entry must be visible before the flag is read: the service sets the flag, then looks for entries.
        fence(Ordering::SeqCst);
        if self.status.page().asleep.load(Ordering::Relaxed) != 0 {
            self.ring();
        }
        Ok(())
    }

    fn ring(&self) {
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    /// Whether the service still holds its end.
    pub fn alive(&self) -> bool {
        let control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&*control, PollFlags::RDHUP)], Some(&now)) == Ok(0)
    }

    /// Waits until `event` is readable or the service goes; returns whether it is still there.
    pub fn wait(&self, event: BorrowedFd<'_>, most: Option<&Timespec>) -> Result<bool, Errno> {
        let control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        let mut polled = [PollFd::from_borrowed_fd(event, PollFlags::IN), PollFd::new(&*control, PollFlags::RDHUP)];
        match poll(&mut polled, most) {
            Ok(_) | Err(Errno::INTR) => Ok(polled[1].revents().is_empty()),
            Err(cause) => Err(cause),
        }
    }

    /// The ARX queue.
    pub fn context(&self) -> &ContextMemory {
        &self.context
    }

    /// Readable after ARX entries; links of the preloaded library have none.
    pub fn wake(&self) -> Option<BorrowedFd<'_>> {
        self.wake.as_ref().map(AsFd::as_fd)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        table::unprotect(self.bell.as_raw_fd());
        table::unprotect(self.control.lock().unwrap_or_else(PoisonError::into_inner).as_raw_fd());
    }
}

/// Gives a number that the library uses to the program, which wants exactly this one. The library's next call makes a
/// new link.
pub fn evict(number: i32) {
    table::unprotect(number);
    if let Some(link) = present() {
        lost();
        // The link's descriptors close with its last user; the program overwrites the number at once.
        std::mem::forget(link);
    }
}

/// A descriptor that the caller knows to be open.
pub fn borrowed<'a>(number: i32) -> BorrowedFd<'a> {
    // SAFETY: the number is not -1 (callers look it up in the table first); if another thread closes it meanwhile, the
    // kernel answers EBADF or the call reaches another file, as it would without the library.
    unsafe { BorrowedFd::borrow_raw(number) }
}

/// A descriptor that a call has just returned.
pub fn owned(number: i32) -> OwnedFd {
    // SAFETY: the kernel has just given the number to this call; nobody else knows it.
    unsafe { OwnedFd::from_raw_fd(number) }
}
