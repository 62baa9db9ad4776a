//! Frames for other flow-groups than the one by whose queue they came: answers of neighbours and errors of routers
//! are for all, and an interface may steer otherwise than RSS does.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nicforge_wire::headers::ip_protocol;
use nicforge_wire::parse_frame;
use nicforge_wire::rss::{IndirectionTable, Toeplitz};

/// Frames that wait for a group, at most; more are lost, as in a full ring.
const LETTERS: usize = 1024;
/// Type of Ethernet frames with ARP, and where they say what they are.
const ARP: u16 = 0x0806;
const ARP_OPERATION: usize = 6;
const ARP_REPLY: [u8; 2] = [0, 2];
/// ICMP: destination unreachable, time exceeded, parameter problem.
const ERRORS: [u8; 3] = [3, 11, 12];
/// ICMPv6: all errors and the advertisement of a neighbour.
const ERRORS_V6: std::ops::RangeInclusive<u8> = 1..=4;
const ADVERTISEMENT: u8 = 136;

/// Whose a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    /// Of the group that has it.
    Here,
    /// Of this one.
    Group(usize),
    /// Of all.
    All,
}

/// A frame that another group got.
#[derive(Debug)]
pub struct Letter {
    /// The frame.
    pub frame: Box<[u8]>,
    /// Others have it, too.
    pub is_copy: bool,
}

/// Where every group finds its letters.
#[derive(Debug)]
pub struct Post {
    rss: Toeplitz,
    table: IndirectionTable,
    boxes: Vec<Mutex<Vec<Letter>>>,
    waits: Vec<AtomicBool>,
}

impl Post {
    /// For so many groups.
    pub fn new(groups: usize) -> Arc<Post> {
        Arc::new(Post {
            rss: Toeplitz::default(),
            table: IndirectionTable::spread_over(groups as u16),
            boxes: (0..groups).map(|_| Mutex::default()).collect(),
            waits: (0..groups).map(|_| AtomicBool::new(false)).collect(),
        })
    }

    /// The group of a connection: that to which RSS steers what comes from the peer.
    pub fn group_of(&self, local: SocketAddr, remote: SocketAddr) -> usize {
        let (from, to) = (remote.port(), local.port());
        let hash = match (remote.ip(), local.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => self.rss.hash_ipv4_ports(source, destination, from, to),
            (IpAddr::V6(source), IpAddr::V6(destination)) => self.rss.hash_ipv6_ports(source, destination, from, to),
            // No connection has two families.
            _ => 0,
        };
        usize::from(self.table.queue(hash))
    }

    fn home(&self, frame: &[u8]) -> Home {
        let Ok(seen) = parse_frame(frame) else { return Home::Here };
        let byte = |at: usize| frame.get(at).copied().unwrap_or(0);
        let kind = byte(usize::from(seen.l4_offset));
        match seen.protocol {
            _ if seen.ethertype == ARP => {
                let at = usize::from(seen.l3_offset) + ARP_OPERATION;
                if frame.get(at..at + 2) == Some(&ARP_REPLY[..]) { Home::All } else { Home::Here }
            }
            _ if !seen.is_ip() || seen.is_fragment() => Home::Here,
            ip_protocol::TCP if seen.has_ports() => Home::Group(usize::from(self.table.queue(self.rss.hash(&seen)))),
            ip_protocol::ICMP if ERRORS.contains(&kind) => Home::All,
            ip_protocol::ICMPV6 if ERRORS_V6.contains(&kind) || kind == ADVERTISEMENT => Home::All,
            _ => Home::Here,
        }
    }

    /// Whether letters wait for `group`.
    pub fn waits(&self, group: usize) -> bool {
        self.waits[group].load(Ordering::SeqCst)
    }

    fn letters(&self, group: usize) -> MutexGuard<'_, Vec<Letter>> {
        // Nobody panics between two whole states.
        self.boxes[group].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a copy of `frame` into the box of `group`; false where it is full.
    fn put(&self, group: usize, frame: &[u8], is_copy: bool) -> bool {
        let mut letters = self.letters(group);
        if letters.len() >= LETTERS {
            return false;
        }
        letters.push(Letter { frame: frame.into(), is_copy });
        drop(letters);
        self.waits[group].store(true, Ordering::SeqCst);
        true
    }
}

/// One group's way to the others.
#[derive(Debug)]
pub struct Mail {
    post: Arc<Post>,
    own: usize,
    /// Frames that found a full box.
    pub lost: u64,
}

impl Mail {
    /// That of group `own`.
    pub fn new(post: Arc<Post>, own: usize) -> Mail {
        Mail { post, own, lost: 0 }
    }

    /// Sends `frame` to the groups that it is for. Whether it is for this one, too.
    pub fn keeps(&mut self, frame: &[u8]) -> bool {
        match self.post.home(frame) {
            Home::Here => true,
            Home::Group(group) if group == self.own => true,
            Home::Group(group) => {
                self.lost += u64::from(!self.post.put(group, frame, false));
                false
            }
            Home::All => {
                for group in (0..self.post.boxes.len()).filter(|group| *group != self.own) {
                    self.lost += u64::from(!self.post.put(group, frame, true));
                }
                true
            }
        }
    }

    /// What came for this group.
    pub fn take(&self) -> Vec<Letter> {
        if !self.post.waits[self.own].swap(false, Ordering::SeqCst) {
            return Vec::new();
        }
        std::mem::take(&mut *self.post.letters(self.own))
    }
}
