//! A TAP device: what the system's stack sends into it comes in here, and the reverse.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use nicforge_units::Time;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::{Link, Port, PortCounters, system};
use crate::live::LiveError;

/// No frame is longer: the stack cuts and finishes frames itself, as nothing else was agreed.
const FRAME_MAX: usize = 65_550;

/// A TAP device, which is there as long as the value.
pub struct TapPort {
    link: Link,
    /// To ask about the device.
    asks: OwnedFd,
    file: File,
    frame: Box<[u8]>,
    counters: PortCounters,
}

impl TapPort {
    /// Makes or takes the device `name`. The system's administrator gives it an address and brings it up.
    ///
    /// # Errors
    /// Another program has its file, or the system refuses.
    pub fn open(name: &str) -> Result<TapPort, LiveError> {
        let failed = |cause| LiveError::of(format!("TAP device {name}"))(cause);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open("/dev/net/tun")
            .map_err(failed)?;
        system::become_tap(file.as_fd(), name).map_err(|cause| match cause.raw_os_error() {
            Some(libc::EBUSY) => LiveError::Interface {
                name: name.to_owned(),
                problem: "another program has the file of this TAP device".into(),
                remedy: "if that is QEMU, plug the guest in with `vhost_user`, or open the device from the kernel's \
                         side with `interface`"
                    .into(),
            },
            _ => failed(cause),
        })?;
        let flags = SocketFlags::CLOEXEC;
        let asks =
            socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None).map_err(|cause| failed(cause.into()))?;
        Ok(TapPort {
            link: Link::of(asks.as_fd(), name).map_err(failed)?,
            asks,
            file,
            frame: vec![0; FRAME_MAX].into(),
            counters: PortCounters::default(),
        })
    }
}

impl TapPort {
    /// Gives the system's end this hardware address, in place of one that is new each time.
    ///
    /// # Errors
    /// The system refuses.
    pub fn with_hardware_address(self, mac: [u8; 6]) -> Result<TapPort, LiveError> {
        let set = system::set_hardware_address(self.asks.as_fd(), self.link.name(), mac);
        set.map_err(LiveError::of(format!("hardware address of {}", self.link.name())))?;
        Ok(self)
    }
}

impl Port for TapPort {
    fn receive(&mut self, budget: usize, each: &mut dyn FnMut(&[u8])) -> Result<usize, LiveError> {
        let mut frames = 0;
        while frames < budget {
            match self.file.read(&mut self.frame) {
                Ok(0) => break,
                Ok(len) => each(&self.frame[..len]),
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => break,
                Err(cause) if cause.kind() == ErrorKind::Interrupted => continue,
                // EIO: the device is down.
                Err(cause) if cause.raw_os_error() == Some(libc::EIO) => break,
                Err(cause) => {
                    return Err(LiveError::of(format!("TAP device {}", self.link.name()))(cause));
                }
            }
            frames += 1;
        }
        self.counters.received += frames as u64;
        Ok(frames)
    }

    fn send(&mut self, frame: &[u8], _now: Time) -> Result<(), LiveError> {
        if !self.link.carries(frame) {
            self.counters.above_mtu += 1;
            return Ok(());
        }
        match self.file.write(frame) {
            Ok(_) => self.counters.went_out(frame.len() as u64),
            // No room, down, or nothing that the stack takes for a frame.
            Err(cause)
                if cause.kind() == ErrorKind::WouldBlock
                    || matches!(cause.raw_os_error(), Some(libc::EIO | libc::EINVAL | libc::ENOBUFS)) =>
            {
                self.counters.refused += 1;
            }
            Err(cause) => {
                return Err(LiveError::of(format!("TAP device {}", self.link.name()))(cause));
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), LiveError> {
        Ok(())
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        // While the device is down the file is always readable, with nothing to read.
        self.link.is_up.then(|| self.file.as_fd())
    }

    fn link(&self) -> Option<&Link> {
        Some(&self.link)
    }

    fn look(&mut self) -> Result<(), LiveError> {
        let failed = LiveError::of(format!("TAP device {}", self.link.name()));
        self.link.look(self.asks.as_fd()).map_err(failed)
    }

    fn counters(&self) -> &PortCounters {
        &self.counters
    }

    fn counters_mut(&mut self) -> &mut PortCounters {
        &mut self.counters
    }
}
