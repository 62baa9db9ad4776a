//! What fuzz targets do with their bytes, so that tests can run it, too: one service in a thread, an application that
//! behaves, and one that does what the bytes say. Whatever that is, the first one's stream arrives whole.
#![allow(dead_code)]

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use nicforge_sockets::control::{Request, RequestMessage, ask};
use nicforge_sockets::direct::{Direct, FlowId, Happening};
use nicforge_sockets::layout::{Kind, QUEUE_ENTRIES, VERSION};
use nicforge_sockets::posix::{accept, bytes, gone, link, process, socket, table};
use nicforge_sockets::queue::{Message, Producer};
use nicforge_sockets::service::{Config, Service};
use nicforge_sockets::shared::{ContextMemory, Direction};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};

/// Bytes as choices; zero when they are used up.
struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().map_or((0, &[][..]), |(first, rest)| (*first, rest));
        self.0 = rest;
        first
    }

    fn word(&mut self) -> u32 {
        u32::from_le_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    fn long(&mut self) -> u64 {
        u64::from(self.word()) | u64::from(self.word()) << 32
    }

    fn some(&mut self, most: usize) -> &'a [u8] {
        let (some, rest) = self.0.split_at(self.0.len().min(most));
        self.0 = rest;
        some
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A service that runs as long as the process.
fn service() -> &'static PathBuf {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let path = std::env::temp_dir().join(format!("nicforge-exercise-{}", std::process::id()));
        let mut config = Config::at(&path);
        config.ring_bytes = 4096;
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut service = Service::new(config, None).expect("a service");
            tell.send(()).expect("somebody waits");
            service.run().expect("a service that goes on");
        });
        told.recv().expect("a service");
        path
    })
}

/// A connected pair of an application that behaves.
struct Victim {
    direct: Direct,
    client: FlowId,
    server: FlowId,
    next: u8,
}

fn happens(direct: &mut Direct) -> Happening {
    for _ in 0..500 {
        if let Some(happening) = direct.poll() {
            return happening;
        }
        direct.wait(Some(Duration::from_millis(20))).expect("a service");
    }
    panic!("nothing happened for ten seconds");
}

impl Victim {
    fn new() -> Victim {
        let mut direct = Direct::register(service()).expect("a service");
        let listener = direct.listen(SocketAddr::from(([127, 0, 0, 1], 0)), 4).expect("a listener");
        let client = direct.connect(direct.local(listener).expect("its address")).expect("a connection");
        let (mut open, mut server) = (false, None);
        while !open || server.is_none() {
            match happens(&mut direct) {
                Happening::Connected(flow) => open = flow == client,
                Happening::Incoming(at) => server = direct.accept(at).expect("an accepted connection"),
                other => panic!("unexpected {other:?}"),
            }
        }
        Victim { direct, client, server: server.expect("accepted"), next: 0 }
    }

    /// Sends some bytes and receives them.
    fn works(&mut self) {
        let bytes: Vec<u8> = (0..100u8).map(|n| n.wrapping_add(self.next)).collect();
        self.next = self.next.wrapping_add(1);
        let (_, space) = self.direct.slices(self.client).expect("a connection");
        // What wraps around goes the next time.
        let len = bytes.len().min(space.len());
        space[..len].copy_from_slice(&bytes[..len]);
        self.direct.produce(self.client, len).expect("room");
        let mut got = Vec::new();
        while got.len() < len {
            let (received, _) = self.direct.slices(self.server).expect("a connection");
            got.extend_from_slice(received);
            let taken = received.len();
            self.direct.consume(self.server, taken).expect("received");
            if taken == 0 {
                happens(&mut self.direct);
            }
        }
        assert!(got == bytes[..len], "another application's stream was touched");
    }
}

fn with_victim(act: impl FnOnce()) {
    static VICTIM: OnceLock<Mutex<Victim>> = OnceLock::new();
    let victim = VICTIM.get_or_init(|| Mutex::new(Victim::new()));
    let mut victim = victim.lock().expect("a victim that was never touched");
    act();
    victim.works();
}

fn control() -> OwnedFd {
    let control = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
    let control = control.expect("a socket");
    rustix::net::connect(&control, &SocketAddrUnix::new(service()).expect("a path")).expect("a service");
    control
}

const KINDS: [Kind; 9] = [
    Kind::Bump,
    Kind::Attach,
    Kind::Accepted,
    Kind::Close,
    Kind::Rearm,
    Kind::Finish,
    Kind::Deaf,
    Kind::Incoming,
    Kind::Option,
];

/// Entries of a context queue as the bytes say: own flows, others' flows, kinds and keys of any value, straight into
/// the queue's memory.
pub fn entries(bytes: &[u8]) {
    with_victim(|| {
        let control = control();
        let hello = RequestMessage { request: Request::Hello as u32, value: VERSION, ..RequestMessage::default() };
        let (_, descriptors) = ask(&control, &hello, &[]).expect("queues");
        let context = ContextMemory::new(&descriptors[0]).expect("queues");
        let mut producer = Producer::default();
        let make = RequestMessage { request: Request::Socket as u32, value: 2, ..RequestMessage::default() };
        let own = ask(&control, &make, &[]).expect("a socket");
        let mut choices = Choices(bytes);
        let queue = context.queue(Direction::ToService);
        for number in 0..QUEUE_ENTRIES - 1 {
            if choices.is_empty() {
                break;
            }
            let choice = choices.byte();
            let flow = if choice & 8 == 0 { own.0.value } else { choices.word() };
            let message = Message {
                rx_bump: choices.word(),
                tx_bump: if choice & 16 == 0 { u32::from(choices.byte()) } else { choices.word() },
                word: if choice & 32 == 0 { 0 } else { choices.long() },
                ..Message::new(KINDS[usize::from(choice & 7)], flow)
            };
            if producer.push(queue, message).is_err() {
                break;
            }
            if choice & 192 == 192 {
                // Any kind, under the service's eyes.
                queue[number].kind.store(choices.word(), std::sync::atomic::Ordering::Release);
            }
        }
        let _ = rustix::io::write(&descriptors[1], &1u64.to_ne_bytes());
        // A request is served after all entries.
        let _ = ask(&control, &make, &[]);
    });
}

/// Control messages as the bytes say: of any length, with any fields, with descriptors that are none of the service's.
pub fn requests(bytes: &[u8]) {
    with_victim(|| {
        let control = control();
        let mut choices = Choices(bytes);
        let (stray, _peer) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                .expect("a pair");
        while !choices.is_empty() {
            let choice = choices.byte();
            let message = RequestMessage {
                request: u32::from(choice & 15),
                flow: if choice & 16 == 0 { u32::from(choices.byte()) << 20 } else { choices.word() },
                key: choices.long(),
                value: if choice & 32 == 0 { u32::from(choices.byte()) } else { choices.word() },
                extra: u64::from(choices.byte()),
                address: SocketAddr::from(([127, 0, 0, choices.byte()], u16::from(choices.byte()))).into(),
                ..RequestMessage::default()
            };
            let mut whole = bytemuck::bytes_of(&message).to_vec();
            if choice & 192 == 192 {
                whole.truncate(usize::from(choices.byte()));
            } else {
                whole.extend_from_slice(choices.some(usize::from(choice & 3)));
            }
            let with: &[BorrowedFd<'_>] = if choice & 64 == 0 { &[] } else { &[stray.as_fd()] };
            if whole.is_empty()
                || nicforge_sockets::control::send(control.as_fd(), &whole, with, SendFlags::DONTWAIT).is_err()
            {
                continue;
            }
            // Answers are read, or the service drops what does not fit.
            let mut answer = [0; 4096];
            let _ = rustix::net::recv(&control, &mut answer[..], RecvFlags::DONTWAIT);
        }
    });
}

/// A socket of the model.
struct Model {
    number: i32,
    v6: bool,
    /// The flow that the counts are about: a socket that connects again has another one.
    flow: u32,
    sent: usize,
    received: usize,
}

impl Model {
    fn new(number: i32, v6: bool) -> Model {
        Model { number, v6, flow: 0, sent: 0, received: 0 }
    }
}

/// Byte `at` of every stream.
fn pattern(at: usize) -> u8 {
    (at.wrapping_mul(31) ^ (at >> 8)) as u8
}

/// POSIX calls in the order that the bytes say, all without waiting. Errors are such as POSIX knows for the call, and
/// bytes arrive in order, each once.
pub fn calls(bytes: &[u8]) {
    with_victim(|| {
        static LINKED: OnceLock<()> = OnceLock::new();
        LINKED.get_or_init(|| link::use_path(service().clone()));
        let mut world = World { sockets: Vec::new() };
        let mut choices = Choices(bytes);
        for _ in 0..200 {
            if choices.is_empty() {
                break;
            }
            world.call(&mut choices);
        }
        for socket in std::mem::take(&mut world.sockets) {
            close(socket.number);
        }
    });
}

struct World {
    sockets: Vec<Model>,
}

fn close(number: i32) {
    if let Some(socket) = table::take(number) {
        process::announce(&socket);
        drop(link::owned(number));
    }
}

/// A result of a call must be one of these errors, where it is one.
fn expect<T>(call: &str, result: Result<T, Errno>, errors: &[Errno]) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(cause) => {
            assert!(errors.contains(&cause), "{call} gives {cause:?}");
            None
        }
    }
}

impl World {
    fn call(&mut self, choices: &mut Choices<'_>) {
        let choice = choices.byte();
        if self.sockets.is_empty() || (choice & 15 == 0 && self.sockets.len() < 16) {
            let v6 = choices.byte() & 7 == 0;
            let made = expect("socket", socket::create(v6, true, true), &[Errno::MFILE, Errno::NFILE]);
            self.sockets.extend(made.map(|number| Model::new(number, v6)));
            return;
        }
        let at = usize::from(choices.byte()) % self.sockets.len();
        let (number, v6) = (self.sockets[at].number, self.sockets[at].v6);
        let Some(socket) = table::get(number) else { return };
        // As the preloaded library does before these calls.
        let moved = if matches!(choice & 15, 1 | 2 | 5 | 6) { gone::moved(number, &socket) } else { Ok(socket) };
        let Some(socket) = expect("a shut listener's call", moved, &[Errno::ADDRINUSE]) else { return };
        let port = 7000 + u16::from(choices.byte() & 3);
        let any: SocketAddr = if v6 { ([0; 16], port).into() } else { ([127, 0, 0, 1], port).into() };
        let to: SocketAddr = if v6 { (std::net::Ipv6Addr::LOCALHOST, port).into() } else { any };
        match choice & 15 {
            1 => {
                let errors = [Errno::ADDRINUSE, Errno::INVAL, Errno::ADDRNOTAVAIL];
                expect("bind", socket::bind(&socket, any), &errors);
            }
            2 => {
                expect("listen", socket::listen(number, &socket, 4), &[Errno::ADDRINUSE, Errno::INVAL]);
            }
            3 | 4 => {
                let errors = [Errno::AGAIN, Errno::INVAL, Errno::MFILE];
                if let Some((new, _)) = expect("accept", accept::accept(number, &socket, true, true), &errors) {
                    self.sockets.push(Model::new(new, v6));
                }
            }
            5 | 6 => {
                let errors = [
                    Errno::INPROGRESS,
                    Errno::ALREADY,
                    Errno::ISCONN,
                    Errno::CONNREFUSED,
                    Errno::CONNRESET,
                    Errno::CONNABORTED,
                    Errno::ADDRINUSE,
                    Errno::ADDRNOTAVAIL,
                    Errno::INVAL,
                    Errno::TIMEDOUT,
                    Errno::PIPE,
                ];
                expect("connect", socket::connect(number, &socket, to), &errors);
            }
            7..=9 => self.send(at, usize::from(choices.byte()) * 16),
            10..=12 => self.receive(at, usize::from(choices.byte()) * 16),
            13 => {
                let how = i32::from(choices.byte() % 4);
                expect("shutdown", socket::shutdown(number, &socket, how), &[Errno::NOTCONN, Errno::INVAL]);
            }
            14 => {
                self.sockets.swap_remove(at);
                close(number);
            }
            _ => {
                socket::local(&socket);
                expect("getpeername", socket::remote(&socket), &[Errno::NOTCONN]);
            }
        }
    }

    /// The socket at a place, with counts that are its connection's.
    fn at(&mut self, at: usize) -> Option<(table::Held, &mut Model)> {
        let model = &mut self.sockets[at];
        let socket = table::get(model.number)?;
        if socket.flow != model.flow {
            (model.flow, model.sent, model.received) = (socket.flow, 0, 0);
        }
        Some((socket, model))
    }

    fn send(&mut self, at: usize, len: usize) {
        let Some((socket, model)) = self.at(at) else { return };
        let sent: Vec<u8> = (model.sent..model.sent + len).map(pattern).collect();
        let errors = [Errno::AGAIN, Errno::PIPE, Errno::CONNRESET, Errno::CONNREFUSED, Errno::NOTCONN, Errno::TIMEDOUT];
        let done = bytes::send_slice(model.number, &socket, &sent, libc::MSG_DONTWAIT);
        model.sent += expect("send", done, &errors).unwrap_or(0);
    }

    fn receive(&mut self, at: usize, len: usize) {
        let Some((socket, model)) = self.at(at) else { return };
        let mut bytes = vec![0u8; len];
        let errors = [Errno::AGAIN, Errno::NOTCONN, Errno::CONNRESET, Errno::CONNREFUSED, Errno::PIPE, Errno::TIMEDOUT];
        let got = bytes::receive_slice(model.number, &socket, &mut bytes, libc::MSG_DONTWAIT);
        let got = expect("recv", got, &errors).unwrap_or(0);
        let expected = (model.received..model.received + got).map(pattern);
        assert!(bytes[..got].iter().copied().eq(expected), "bytes in order, each once");
        model.received += got;
    }
}
