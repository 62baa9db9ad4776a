//! What happens when processes begin and end.

use std::ffi::{CStr, CString, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

use super::socket::Socket;
use super::{data, link, lock, policy, socket, table};
use crate::layout::Kind;
use crate::queue::Message;

/// Points into a page that a fork wipes and a vfork shares; holds the process that owns the tables.
static OWNER: AtomicPtr<AtomicI32> = AtomicPtr::new(std::ptr::null_mut());

/// Sets the library up, when a program begins.
pub fn begin() {
    // SAFETY: a new private mapping overlaps nothing, and stays for good.
    let page = unsafe {
        mmap_anonymous(std::ptr::null_mut(), 4096, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
            .and_then(|page| madvise(page, 4096, Advice::LinuxWipeOnFork).map(|()| page))
    };
    if let Ok(page) = page {
        OWNER.store(page.cast(), Ordering::Release);
        // Before a vfork, whose child would take them otherwise.
        own_tables();
    }
    // SAFETY: the handler runs in the only thread of a child, whose memory is a copy.
    unsafe { libc::pthread_atfork(None, None, Some(after_fork)) };
    policy::read();
    PRELOADED.get_or_init(|| std::env::var_os(PRELOAD));
    if link::path().is_some() {
        adopt_inherited();
    }
}

/// The child registers at once: sshd's, for one, forbids itself new sockets before it uses those it has.
extern "C" fn after_fork() {
    lock::forget_thread();
    own_tables();
    if link::inherited() && table::numbers().next().is_some() {
        let _ = link::link();
    }
}

/// Whether this process's tables are its own. The child of a vfork runs in its parent's memory: what it does to its
/// descriptors must not change the tables.
pub fn own_tables() -> bool {
    let page = OWNER.load(Ordering::Acquire);
    if page.is_null() {
        return true;
    }
    // SAFETY: the page is mapped for good.
    let owner = unsafe { &*page };
    let process = rustix::process::getpid().as_raw_nonzero().get();
    owner.compare_exchange(0, process, Ordering::AcqRel, Ordering::Acquire).is_ok()
        || owner.load(Ordering::Acquire) == process
}

/// Sockets survive an exec in their descriptors.
fn adopt_inherited() {
    let Ok(directory) = rustix::fs::open(
        "/proc/self/fd",
        rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    ) else {
        return;
    };
    let Ok(entries) = rustix::fs::Dir::read_from(&directory) else { return };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str().ok()?.parse().ok());
    let numbers: Vec<i32> = numbers.collect();
    for number in numbers {
        socket::adopt(number);
    }
}

/// What an environment lacks for a program to find the sockets that it inherits; sshd, for one, clears its own.
/// Nothing where no socket is open. `has` tells whether the environment has a name.
pub fn lacking(has: impl Fn(&[u8]) -> bool) -> impl Iterator<Item = &'static CStr> {
    let wanted = if table::numbers().next().is_some() { own_environment() } else { &[] };
    wanted.iter().filter(move |setting| !has(setting.name.as_bytes())).map(|setting| setting.entry.as_c_str())
}

/// An entry of the environment that the library needs.
struct Setting {
    name: &'static str,
    entry: CString,
}

/// Made once: what the child of a vfork allocates stays in its parent for good.
fn own_environment() -> &'static [Setting] {
    static OWN: OnceLock<Vec<Setting>> = OnceLock::new();
    OWN.get_or_init(|| {
        let path = link::path().map(|path| path.as_os_str().to_owned());
        let wanted = [(PRELOAD, PRELOADED.get().cloned().flatten()), (link::PATH_VARIABLE, path)];
        let settings = wanted.into_iter().filter_map(|(name, value)| {
            let entry = CString::new([name.as_bytes(), b"=", value?.as_bytes()].concat()).ok()?;
            Some(Setting { name, entry })
        });
        settings.collect()
    })
}

const PRELOAD: &str = "LD_PRELOAD";
static PRELOADED: OnceLock<Option<OsString>> = OnceLock::new();

/// Another program follows: connections that it does not inherit end in order.
pub fn execute() {
    if !own_tables() || link::present().is_none() {
        return;
    }
    for number in table::numbers() {
        let closes = rustix::io::fcntl_getfd(link::borrowed(number));
        if closes.is_ok_and(|flags| flags.contains(rustix::io::FdFlags::CLOEXEC))
            && let Some(socket) = table::get(number)
        {
            let _ = say_closing(&socket);
        }
    }
}

/// Says that this process closes a socket in order. Said for each copy: how many there are is the kernel's to know.
pub fn announce(socket: &Socket) {
    // A service that has gone has reset the connection already.
    let _ = say_closing(socket);
}

fn say_closing(socket: &Socket) -> Result<(), Errno> {
    let own = &socket.page().application;
    let held = lock::lock(&own.rx_lock);
    let bump = data::due_bump(socket, own.rx_tail.load(Ordering::Relaxed), true);
    drop(held);
    socket.push(Message { rx_bump: bump, ..Message::new(Kind::Close, socket.flow) })
}

/// The program ends in order: so do its connections.
pub fn end() {
    if !own_tables() || link::present().is_none() {
        return;
    }
    for number in table::numbers() {
        if let Some(socket) = table::get(number) {
            let _ = say_closing(&socket);
        }
    }
}
