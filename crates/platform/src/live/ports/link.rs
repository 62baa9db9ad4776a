//! The interface behind a port: whether it is up, and what it carries.

use std::io;
use std::os::fd::BorrowedFd;

use nicforge_wire::headers::{ETHERNET_HEADER_LEN, VLAN_TAG_LEN, ethertype};

use super::system;

/// What is known of an interface, and what happened to it since the run began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    name: String,
    /// Whether frames can pass: it was brought up, and there is a carrier.
    pub is_up: bool,
    /// What it carries behind the Ethernet header, in bytes.
    pub mtu: usize,
    /// How often it went down.
    pub downs: u64,
    /// How often its MTU changed.
    pub mtu_changes: u64,
}

impl Link {
    /// The interface `name` as it is now; `socket` is any one in its network namespace.
    pub fn of(socket: BorrowedFd<'_>, name: &str) -> io::Result<Link> {
        Ok(Link {
            name: name.to_owned(),
            is_up: system::is_up(socket, name)?,
            mtu: system::mtu(socket, name)?,
            downs: 0,
            mtu_changes: 0,
        })
    }

    /// A link without an interface of the system, whose other end is not connected yet.
    pub fn made(name: String, mtu: usize) -> Link {
        Link { name, is_up: false, mtu, downs: 0, mtu_changes: 0 }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Looks how it is now. An interface that is not there any more is one that is down.
    pub fn look(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        match Link::of(socket, &self.name) {
            Ok(now) => {
                self.mtu_changes += u64::from(now.mtu != self.mtu);
                self.mtu = now.mtu;
                if !now.is_up {
                    self.went_down();
                }
                self.is_up = now.is_up;
                Ok(())
            }
            Err(cause) if matches!(cause.raw_os_error(), Some(libc::ENODEV | libc::ENXIO)) => {
                self.went_down();
                Ok(())
            }
            Err(cause) => Err(cause),
        }
    }

    /// The link was seen to go down.
    pub fn went_down(&mut self) {
        self.downs += u64::from(self.is_up);
        self.is_up = false;
    }

    /// Whether `frame` is short enough for it. Tags do not count, as on a wire.
    pub fn carries(&self, frame: &[u8]) -> bool {
        frame.len() <= self.mtu + ETHERNET_HEADER_LEN
            || frame.len() <= self.mtu + ETHERNET_HEADER_LEN + tags(frame) * VLAN_TAG_LEN
    }

    /// Bytes of the longest frame that it carries, two tags among them.
    pub fn frame_bytes_max(&self) -> usize {
        self.mtu + ETHERNET_HEADER_LEN + 2 * VLAN_TAG_LEN
    }
}

/// Tags of a frame, of which two are allowed for.
fn tags(frame: &[u8]) -> usize {
    const ADDRESSES: usize = 12;
    let tags = frame[ADDRESSES.min(frame.len())..].chunks_exact(VLAN_TAG_LEN);
    let is_tag = |tag: &&[u8]| {
        let kind = u16::from_be_bytes([tag[0], tag[1]]);
        kind == ethertype::VLAN || kind == ethertype::SERVICE_VLAN
    };
    tags.take(2).take_while(is_tag).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_does_not_count_as_payload() {
        let link = Link { name: String::new(), is_up: true, mtu: 1500, downs: 0, mtu_changes: 0 };
        let mut frame = vec![0; 1514];
        assert!(link.carries(&frame));
        frame.extend([0; 4]);
        assert!(!link.carries(&frame), "no tag in it");
        frame[12..14].copy_from_slice(&[0x81, 0]);
        assert!(link.carries(&frame));
        frame.extend([0; 4]);
        assert!(!link.carries(&frame), "one tag only");
        frame[16..18].copy_from_slice(&[0x88, 0xa8]);
        assert!(link.carries(&frame));
        assert!(link.carries(&[0; 3]));
    }
}
