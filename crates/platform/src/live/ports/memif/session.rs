//! From a new channel to rings that frames pass: who says what, and what is believed.
//!
//! ```text
//!   client                                   server
//!                         ◄── hello ──       what it can do
//!   init ──►                                 is it meant? does the secret fit?
//!   add region (file) ──►                    is it memory, as long as it says?
//!   add ring (interrupt) ──►  each once      each answered by ack
//!   connect ──►                              are the rings in the regions?
//!                         ◄── connected ──
//! ```

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

use super::super::foreign::ForeignMemory;
use super::channel::{Channel, Incoming};
use super::message::{Direction, MODE_ETHERNET, Message, RingPlace, VERSION};
use super::ring::{LOG2_ENTRIES_MAX, Ring, Side, ring_bytes};

/// Bytes of a buffer of ours.
pub const BUFFER_BYTES: u32 = 2048;
/// Log2 of the entries of a ring of ours.
const LOG2_ENTRIES: u8 = 10;
/// Regions that a client may share.
const REGIONS_MAX: usize = 64;

/// What both sides agree on beforehand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The interface's number.
    pub id: u32,
    /// Rings each way, at most.
    pub queues: u16,
    /// What the client says and the server wants to hear; empty: nothing.
    pub secret: String,
}

/// Why a session is over, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended(pub String);

fn ended<T>(why: impl Into<String>) -> Result<T, Ended> {
    Err(Ended(why.into()))
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Client: the server's greeting. Server: the client's.
    Greeting,
    /// Regions and rings.
    Layout,
    /// Frames.
    Up,
}

/// A session with one peer.
#[derive(Debug)]
pub struct Session {
    side: Side,
    terms: Terms,
    channel: Channel,
    stage: Stage,
    /// As client: what is still to be said, one by one as the server nods.
    to_say: VecDeque<(Message, Option<OwnedFd>)>,
    /// As server: rings that were described.
    described: Vec<(RingPlace, OwnedFd)>,
    /// Memory of the client.
    pub regions: Vec<ForeignMemory>,
    /// Rings that frames come in by, and rings that they leave by.
    pub receive: Vec<Ring>,
    /// As above.
    pub transmit: Vec<Ring>,
}

impl Session {
    /// Begins as `side`.
    pub fn new(side: Side, terms: Terms, channel: Channel) -> Session {
        let session = Session {
            side,
            terms,
            channel,
            stage: Stage::Greeting,
            to_say: VecDeque::new(),
            described: Vec::new(),
            regions: Vec::new(),
            receive: Vec::new(),
            transmit: Vec::new(),
        };
        if side == Side::Server {
            let last = session.terms.queues - 1;
            session.say(
                &Message::Hello {
                    versions: (VERSION, VERSION),
                    last_region: REGIONS_MAX as u16 - 1,
                    last_to_client: last,
                    last_to_server: last,
                    log2_entries: LOG2_ENTRIES_MAX,
                },
                None,
            );
        }
        session
    }

    /// Whether frames can pass.
    pub fn is_up(&self) -> bool {
        self.stage == Stage::Up
    }

    /// Takes what the peer said.
    ///
    /// # Errors
    /// It is over.
    pub fn listen(&mut self) -> Result<(), Ended> {
        loop {
            let (message, file) = match self.channel.receive() {
                Incoming::Nothing => return Ok(()),
                Incoming::Message(message, file) => (message, file),
                Incoming::Nonsense => return ended("it sent what is no message"),
                Incoming::End => return ended("it is gone"),
            };
            if let Message::Disconnect { reason } = message {
                return ended(format!("it says: {}", reason.escape_default()));
            }
            match self.side {
                Side::Server => self.serve(message, file)?,
                Side::Client => self.follow(message)?,
            }
        }
    }

    /// Tells the peer that it is over.
    pub fn say_goodbye(&self, why: &str) {
        self.say(&Message::Disconnect { reason: why.to_owned() }, None);
    }

    fn serve(&mut self, message: Message, file: Option<OwnedFd>) -> Result<(), Ended> {
        match (self.stage, message) {
            (Stage::Greeting, Message::Init { version, id, mode, secret }) => {
                if version != VERSION {
                    return ended("incompatible memif version");
                }
                if id != self.terms.id {
                    return ended(format!("it wants interface {id}, and this is {}", self.terms.id));
                }
                if mode != MODE_ETHERNET {
                    return ended("only Ethernet mode is supported");
                }
                if !self.terms.secret.is_empty() && secret != self.terms.secret {
                    return ended("incorrect secret");
                }
                self.stage = Stage::Layout;
            }
            (Stage::Layout, Message::AddRegion { index, bytes }) => {
                if usize::from(index) != self.regions.len() || self.regions.len() == REGIONS_MAX {
                    return ended("invalid region index");
                }
                let Some(file) = file else {
                    return ended("missing region file");
                };
                match ForeignMemory::map(file.as_fd(), bytes) {
                    Ok(memory) => self.regions.push(memory),
                    Err(error) => return ended(error.to_string()),
                }
            }
            (Stage::Layout, Message::AddRing(place)) => {
                let same = |(other, _): &(RingPlace, OwnedFd)| {
                    (other.direction, other.index) == (place.direction, place.index)
                };
                if place.index >= self.terms.queues || self.described.iter().any(same) {
                    return ended("invalid ring index");
                }
                let Some(file) = file else {
                    return ended("missing interrupt");
                };
                self.described.push((place, file));
            }
            (Stage::Layout, Message::Connect) => {
                self.take_rings()?;
                self.say(&Message::Connected, None);
                return Ok(());
            }
            _ => return ended("it sent a message out of turn"),
        }
        self.say(&Message::Ack, None);
        Ok(())
    }

    /// A channel that takes nothing shows when the next message is awaited: the peer may have said why.
    fn say(&self, message: &Message, file: Option<&OwnedFd>) {
        self.channel.send(message, file.map(AsFd::as_fd));
    }

    /// All rings that were described.
    fn take_rings(&mut self) -> Result<(), Ended> {
        self.described.sort_by_key(|(place, _)| place.index);
        for (place, interrupt) in self.described.drain(..) {
            let Some(ring) = Ring::new(self.side, place, interrupt, &self.regions) else {
                return ended("a ring does not lie in its region, or does not begin with a cookie");
            };
            let inwards = (place.direction == Direction::ToServer) == (self.side == Side::Server);
            let rings = if inwards { &mut self.receive } else { &mut self.transmit };
            if rings.len() != usize::from(place.index) {
                return ended("a ring is missing");
            }
            rings.push(ring);
        }
        if self.receive.is_empty() || self.transmit.is_empty() {
            return ended("a direction has no ring");
        }
        self.stage = Stage::Up;
        Ok(())
    }

    fn follow(&mut self, message: Message) -> Result<(), Ended> {
        match (self.stage, message) {
            (Stage::Greeting, Message::Hello { versions, last_to_client, last_to_server, log2_entries, .. }) => {
                if !(versions.0..=versions.1).contains(&VERSION) {
                    return ended("incompatible memif version");
                }
                let rings = |last: u16| last.saturating_add(1).min(self.terms.queues);
                let (to_server, to_client) = (rings(last_to_server), rings(last_to_client));
                self.lay_out(to_server, to_client, log2_entries.min(LOG2_ENTRIES))
                    .map_err(|cause| Ended(format!("no memory for it: {cause}")))?;
                self.stage = Stage::Layout;
                self.say_next()
            }
            (Stage::Layout, Message::Ack) => self.say_next(),
            (Stage::Layout, Message::Connected) if self.to_say.is_empty() => {
                self.stage = Stage::Up;
                let regions = &self.regions;
                for ring in &mut self.receive {
                    ring.offer(regions, BUFFER_BYTES);
                    ring.publish(regions);
                }
                Ok(())
            }
            _ => ended("it sent a message out of turn"),
        }
    }

    fn say_next(&mut self) -> Result<(), Ended> {
        let Some((message, file)) = self.to_say.pop_front() else {
            return ended("it acknowledges what nobody said");
        };
        self.say(&message, file.as_ref());
        Ok(())
    }

    /// As client: makes memory with rings and buffers, and what is to be said of it.
    fn lay_out(&mut self, to_server: u16, to_client: u16, log2_entries: u8) -> io::Result<()> {
        let rings = usize::from(to_server) + usize::from(to_client);
        let of_rings = rings * ring_bytes(log2_entries);
        let of_buffers = (BUFFER_BYTES as usize) << log2_entries;
        let bytes = (of_rings + rings * of_buffers) as u64;
        let file = memfd_create("nicforge-memif", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, bytes)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;
        let memory = ForeignMemory::map(file.as_fd(), bytes).map_err(io::Error::other)?;
        self.to_say.push_back((
            Message::Init {
                version: VERSION,
                id: self.terms.id,
                mode: MODE_ETHERNET,
                secret: self.terms.secret.clone(),
            },
            None,
        ));
        self.to_say.push_back((Message::AddRegion { index: 0, bytes }, Some(file)));
        let directions = [(Direction::ToServer, to_server), (Direction::ToClient, to_client)];
        let all = directions.into_iter().flat_map(|(direction, count)| (0..count).map(move |index| (direction, index)));
        for (number, (direction, index)) in all.enumerate() {
            let offset = (number * ring_bytes(log2_entries)) as u32;
            let place = RingPlace { direction, index, region: 0, offset, log2_entries };
            Ring::lay_out(&place, &memory, of_rings + number * of_buffers, BUFFER_BYTES)
                .ok_or_else(|| io::Error::other("a ring does not fit"))?;
            let interrupt = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            self.to_say.push_back((Message::AddRing(place), Some(interrupt.try_clone()?)));
            self.described.push((place, interrupt));
        }
        self.to_say.push_back((Message::Connect, None));
        self.regions.push(memory);
        // They are right, as they were just laid out; frames pass when the server is ready.
        let taken = self.take_rings();
        self.stage = Stage::Greeting;
        taken.map_err(|ended| io::Error::other(ended.0))
    }
}
