//! A TAP device: what the system's stack sends into it comes in here, and the reverse. The stack leaves checksums and the
//! cutting of segments to the device, as to a NIC, and takes segments whole.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use nicforge_units::Time;
use nicforge_wire::offload::{OFFLOAD_HEADER_LEN, Offload};
use nicforge_wire::unfinished::TxOffload;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::{BegunFrame, HEADERS_MAX, Link, Port, PortCounters, finish_and_send, hand_over, system};
use crate::live::LiveError;

/// No frame is longer, with its offload header.
const FRAME_MAX: usize = OFFLOAD_HEADER_LEN + 65_550;

/// A TAP device, which is there as long as the value.
pub struct TapPort {
    link: Link,
    /// To ask about the device.
    asks: OwnedFd,
    file: File,
    /// Offload header and frame.
    frame: Box<[u8]>,
    scratch: Vec<u8>,
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
            scratch: Vec::new(),
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

    /// A frame of which `parts` are the pieces, behind its offload header.
    fn write(&mut self, header: &[u8; OFFLOAD_HEADER_LEN], parts: [&[u8]; 2]) -> Result<(), LiveError> {
        let [headers, rest] = parts;
        match self.file.write_vectored(&[header, headers, rest].map(IoSlice::new)) {
            Ok(_) => self.counters.went_out((headers.len() + rest.len()) as u64),
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
}

impl Port for TapPort {
    fn receive(&mut self, budget: usize, each: &mut dyn FnMut(&[u8])) -> Result<usize, LiveError> {
        self.receive_unfinished(budget, 0, &mut |frame, _| each(frame))
    }

    fn receive_unfinished(
        &mut self,
        budget: usize,
        longest: usize,
        each: &mut dyn FnMut(&[u8], TxOffload),
    ) -> Result<usize, LiveError> {
        let mut frames = 0;
        while frames < budget {
            let len = match self.file.read(&mut self.frame) {
                Ok(0) => break,
                Ok(len) => len,
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => break,
                Err(cause) if cause.kind() == ErrorKind::Interrupted => continue,
                // EIO: the device is down.
                Err(cause) if cause.raw_os_error() == Some(libc::EIO) => break,
                Err(cause) => {
                    return Err(LiveError::of(format!("TAP device {}", self.link.name()))(cause));
                }
            };
            let Some((header, frame)) = self.frame[..len].split_first_chunk_mut::<OFFLOAD_HEADER_LEN>() else {
                self.counters.lost("offload_header_missing", 1);
                continue;
            };
            match hand_over(&Offload::decode(header), frame, longest, &mut self.scratch, each) {
                Ok(more) => frames += more,
                Err(error) => self.counters.lost(error.name(), 1),
            }
        }
        self.counters.received += frames as u64;
        Ok(frames)
    }

    fn takes_segments(&self) -> bool {
        true
    }

    fn send_unfinished(&mut self, frame: &[u8], left: TxOffload, now: Time) -> Result<(), LiveError> {
        let mut room = [0; HEADERS_MAX];
        let Some(BegunFrame { begun, headers, rest }) = BegunFrame::of(frame, left, &mut room) else {
            return finish_and_send(self, frame, left, now);
        };
        if begun.l3_len > self.link.mtu {
            self.counters.above_mtu += 1;
            return Ok(());
        }
        self.write(&begun.header, [headers, rest])
    }

    fn send(&mut self, frame: &[u8], _now: Time) -> Result<(), LiveError> {
        if !self.link.carries(frame) {
            self.counters.above_mtu += 1;
            return Ok(());
        }
        self.write(&[0; OFFLOAD_HEADER_LEN], [frame, &[]])
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
