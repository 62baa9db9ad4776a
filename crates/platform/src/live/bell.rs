//! How the device sleeps when there is nothing to do, and how workers wake it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use super::{Control, LiveError};

/// An event that interrupts the device's sleep; clones ring the same device.
#[derive(Clone, Debug)]
pub struct Bell {
    event: Arc<OwnedFd>,
}

impl Bell {
    /// A bell that has not rung.
    pub fn new() -> Result<Bell, LiveError> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let event = eventfd(0, flags).map_err(LiveError::of("creating an eventfd"))?;
        Ok(Bell::of(event))
    }

    /// The bell that another process made.
    pub fn of(event: OwnedFd) -> Bell {
        Bell { event: Arc::new(event) }
    }

    /// The event, to hand over to another process.
    pub fn event(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    /// Rings, if the device sleeps. What was stored before is seen by the device either way.
    #[inline]
    pub fn ring(&self, control: &Control) {
        // The store before and the look at the flag must not change places: the device sets the
        // flag, then looks at what was stored (Dekker's pattern).
        fence(Ordering::SeqCst);
        let asleep = control.device_asleep();
        if asleep.load(Ordering::Relaxed) != 0 && asleep.swap(0, Ordering::Relaxed) != 0 {
            self.ring_now();
        }
    }

    /// Rings in any case.
    pub fn ring_now(&self) {
        // A full counter (which 2^64 - 2 rings would take) has rung already.
        let _ = rustix::io::write(&*self.event, &1u64.to_ne_bytes());
    }

    /// The device sleeps until the bell rings, one of `files` can be read, or `timeout` is over.
    /// `still_idle` looks once more whether there is nothing to do, after the flag is up.
    pub fn sleep(
        &self,
        control: &Control,
        files: &[BorrowedFd<'_>],
        timeout: Duration,
        still_idle: impl FnOnce() -> bool,
    ) -> Result<(), LiveError> {
        let asleep = control.device_asleep();
        asleep.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if still_idle() {
            let mut polled = vec![PollFd::new(&*self.event, PollFlags::IN)];
            polled.extend(files.iter().map(|file| PollFd::new(file, PollFlags::IN)));
            let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
            match poll(&mut polled, Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(cause) => return Err(LiveError::of("waiting for ports")(cause)),
            }
            // Empties the counter; that it is empty already is fine.
            let _ = rustix::io::read(&*self.event, &mut [0u8; 8]);
        }
        asleep.store(0, Ordering::Relaxed);
        Ok(())
    }
}
