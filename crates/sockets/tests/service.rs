//! The service against applications that live, die and misbehave, by its low-level interface and by hand.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

use nicforge_sockets::control::{Request, RequestMessage, ask};
use nicforge_sockets::direct::{Direct, DirectError, FlowId, Happening};
use nicforge_sockets::layout::{Kind, VERSION};
use nicforge_sockets::observe;
use nicforge_sockets::queue::{Message, Producer};
use nicforge_sockets::service::{Config, Limits, Service, Stopper};
use nicforge_sockets::shared::{ContextMemory, Direction};
use proptest::prelude::*;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

struct Running {
    path: PathBuf,
    stopper: Stopper,
    thread: Option<JoinHandle<()>>,
    thread_id: rustix::process::Pid,
    _folder: tempfile::TempDir,
}

impl Running {
    fn with(change: impl FnOnce(&mut Config)) -> Running {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("service");
        let mut config = Config::at(&path);
        change(&mut config);
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut service = Service::new(config, None).unwrap();
            tell.send((rustix::thread::gettid(), service.stopper())).unwrap();
            service.run().unwrap();
        });
        let (thread_id, stopper) = told.recv().unwrap();
        Running { path, stopper, thread: Some(thread), thread_id, _folder: folder }
    }

    fn new() -> Running {
        Running::with(|_| {})
    }

    /// Nanoseconds that the service's thread has run.
    fn cpu_ns(&self) -> u64 {
        let path = format!("/proc/self/task/{}/schedstat", self.thread_id.as_raw_nonzero());
        std::fs::read_to_string(path).unwrap().split(' ').next().unwrap().parse().unwrap()
    }

    fn refused(&self) -> u64 {
        observe::list(&self.path).unwrap().applications.iter().map(|application| application.refused).sum()
    }

    fn sockets(&self) -> usize {
        observe::list(&self.path).unwrap().sockets.len()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopper.stop();
        self.thread.take().unwrap().join().unwrap();
    }
}

const LOCAL: &str = "127.0.0.1:0";

fn anywhere() -> SocketAddr {
    LOCAL.parse().unwrap()
}

/// The next thing that happens.
fn next(direct: &mut Direct) -> Happening {
    for _ in 0..500 {
        if let Some(happening) = direct.poll() {
            return happening;
        }
        direct.wait(Some(Duration::from_millis(20))).unwrap();
    }
    panic!("nothing happened for ten seconds");
}

fn until(direct: &mut Direct, wanted: impl Fn(&Happening) -> bool) -> Happening {
    loop {
        let happening = next(direct);
        if wanted(&happening) {
            return happening;
        }
    }
}

/// A connected pair within one application: client, server.
fn pair(direct: &mut Direct) -> (FlowId, FlowId) {
    let listener = direct.listen(anywhere(), 4).unwrap();
    let client = direct.connect(direct.local(listener).unwrap()).unwrap();
    let (mut open, mut server) = (false, None);
    while !open || server.is_none() {
        match next(direct) {
            Happening::Connected(flow) => open = flow == client,
            Happening::Incoming(at) => server = direct.accept(at).unwrap(),
            other => panic!("unexpected {other:?}"),
        }
    }
    direct.close(listener).unwrap();
    (client, server.unwrap())
}

fn send_all(direct: &mut Direct, flow: FlowId, bytes: &[u8]) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let (_, space) = direct.slices(flow).unwrap();
        let len = rest.len().min(space.len());
        space[..len].copy_from_slice(&rest[..len]);
        direct.produce(flow, len).unwrap();
        rest = &rest[len..];
        if len == 0 {
            next(direct);
        }
    }
}

fn receive_all(direct: &mut Direct, flow: FlowId, len: usize) -> Vec<u8> {
    let mut got = Vec::new();
    while got.len() < len {
        let (received, _) = direct.slices(flow).unwrap();
        got.extend_from_slice(received);
        let taken = received.len();
        direct.consume(flow, taken).unwrap();
        if taken == 0 {
            next(direct);
        }
    }
    got
}

#[test]
fn bytes_arrive_in_place_and_the_end_follows_them() {
    let service = Running::new();
    let mut direct = Direct::register(&service.path).unwrap();
    let (client, server) = pair(&mut direct);
    let sent: Vec<u8> = (0..100_000u32).map(|n| n as u8).collect();
    send_all(&mut direct, client, &sent);
    direct.finish(client).unwrap();
    assert_eq!(receive_all(&mut direct, server, sent.len()), sent);
    while !direct.is_finished(server).unwrap() {
        next(&mut direct);
    }
    assert_eq!(direct.consume(server, 1), Err(DirectError::TooMany { asked: 1, there: 0 }));
}

#[test]
fn a_refused_connection_fails_with_its_cause() {
    let service = Running::new();
    let mut direct = Direct::register(&service.path).unwrap();
    let flow = direct.connect("127.0.0.1:9".parse().unwrap()).unwrap();
    assert_eq!(next(&mut direct), Happening::Failed(flow, Errno::CONNREFUSED));
}

#[test]
fn an_application_that_goes_frees_all_and_its_peers_are_reset() {
    let service = Running::new();
    let mut server = Direct::register(&service.path).unwrap();
    let listener = server.listen(anywhere(), 64).unwrap();
    let at = server.local(listener).unwrap();
    let mut client = Direct::register(&service.path).unwrap();
    for _ in 0..20 {
        client.connect(at).unwrap();
    }
    let mut accepted = Vec::new();
    while accepted.len() < 20 {
        if let Happening::Incoming(listener) = next(&mut server) {
            while let Some(flow) = server.accept(listener).unwrap() {
                accepted.push(flow);
            }
        }
    }
    // No close was announced: as when a process is killed.
    drop(client);
    for _ in 0..20 {
        until(&mut server, |happening| matches!(happening, Happening::Failed(_, Errno::CONNRESET)));
    }
    assert_eq!(service.sockets(), 1, "the listener alone is left");
    let port_is_free = Direct::register(&service.path).unwrap().listen(at, 1);
    assert_eq!(port_is_free.unwrap_err(), DirectError::Refused(Errno::ADDRINUSE));
    drop(server);
    let mut again = Direct::register(&service.path).unwrap();
    let freed = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        again.listen(at, 1).is_ok()
    });
    assert!(freed, "the port is free once its owner has gone");
}

/// A process that registers and then writes what it likes.
struct Hostile {
    control: std::os::fd::OwnedFd,
    context: ContextMemory,
    bell: std::os::fd::OwnedFd,
    producer: Producer,
}

impl Hostile {
    fn new(path: &std::path::Path) -> Hostile {
        let control =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        rustix::net::connect(&control, &SocketAddrUnix::new(path).unwrap()).unwrap();
        let hello = RequestMessage { request: Request::Hello as u32, value: VERSION, ..RequestMessage::default() };
        let (_, mut descriptors) = ask(&control, &hello, &[]).unwrap();
        let context = ContextMemory::new(&descriptors[0]).unwrap();
        let bell = descriptors.remove(1);
        Hostile { control, context, bell, producer: Producer::default() }
    }

    fn push(&mut self, message: Message) {
        while self.producer.push(self.context.queue(Direction::ToService), message).is_err() {
            self.ring();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn ring(&self) {
        rustix::io::write(&self.bell, &1u64.to_ne_bytes()).unwrap();
    }
}

#[test]
fn entries_about_others_flows_are_refused_and_counted() {
    let service = Running::new();
    let mut victim = Direct::register(&service.path).unwrap();
    let (client, server) = pair(&mut victim);
    send_all(&mut victim, client, b"before");
    assert_eq!(receive_all(&mut victim, server, 6), b"before");
    let mut hostile = Hostile::new(&service.path);
    let mut pushed = 0;
    for index in 0..8 {
        for generation in 0..16 {
            let flow = index | generation << 20;
            for kind in [Kind::Bump, Kind::Close, Kind::Finish, Kind::Rearm, Kind::Deaf, Kind::Incoming] {
                hostile.push(Message { rx_bump: 1, tx_bump: 1, ..Message::new(kind, flow) });
                pushed += 1;
            }
            // Guesses the key.
            hostile.push(Message { word: 0x1234, ..Message::new(Kind::Attach, flow) });
            hostile.push(Message { word: 0, ..Message::new(Kind::Accepted, flow) });
        }
    }
    hostile.ring();
    send_all(&mut victim, client, b"after");
    assert_eq!(receive_all(&mut victim, server, 5), b"after");
    let refused = service.refused();
    assert!(refused > 0 && refused <= pushed + 256, "{refused} refusals");
    for flow in 0..64 {
        let stolen = RequestMessage { request: Request::Connect as u32, flow, ..RequestMessage::default() };
        assert_eq!(ask(&hostile.control, &stolen, &[]).unwrap_err(), Errno::BADF);
    }
}

#[test]
fn a_descriptor_that_is_no_socket_of_the_service_is_not_adopted() {
    let service = Running::new();
    let hostile = Hostile::new(&service.path);
    let adopt = RequestMessage { request: Request::Adopt as u32, ..RequestMessage::default() };
    let (own, _other) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    assert_eq!(ask(&hostile.control, &adopt, &[own.as_fd()]).unwrap_err(), Errno::NOTSOCK);
    assert_eq!(ask(&hostile.control, &adopt, &[hostile.bell.as_fd()]).unwrap_err(), Errno::NOTSOCK);
    assert_eq!(ask(&hostile.control, &adopt, &[]).unwrap_err(), Errno::BADF);
}

#[test]
fn messages_of_wrong_length_or_kind_get_an_error() {
    use rustix::net::{RecvFlags, SendFlags, recv, send};
    let service = Running::new();
    let hostile = Hostile::new(&service.path);
    send(&hostile.control, b"nonsense", SendFlags::empty()).unwrap();
    let mut reply = [0; 64];
    let (len, _) = recv(&hostile.control, &mut reply[..], RecvFlags::empty()).unwrap();
    assert_eq!(len, 8);
    let unknown = RequestMessage { request: 99, ..RequestMessage::default() };
    assert_eq!(ask(&hostile.control, &unknown, &[]).unwrap_err(), Errno::OPNOTSUPP);
    let old = RequestMessage { request: Request::Hello as u32, value: VERSION + 1, ..RequestMessage::default() };
    let control =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    rustix::net::connect(&control, &SocketAddrUnix::new(&service.path).unwrap()).unwrap();
    assert_eq!(ask(&control, &old, &[]).unwrap_err(), Errno::PROTONOSUPPORT);
    assert_eq!(service.refused(), 2);
}

#[test]
fn limits_bound_connections_and_rate_of_an_application() {
    let service = Running::with(|config| {
        config.limits = Limits { connections: 5, bytes_per_second: None };
    });
    let mut direct = Direct::register(&service.path).unwrap();
    let (client, server) = pair(&mut direct);
    for _ in 0..3 {
        direct.listen(anywhere(), 1).unwrap();
    }
    assert_eq!(direct.listen(anywhere(), 1).unwrap_err(), DirectError::Refused(Errno::MFILE));
    let rate = 1 << 20;
    let limits = Limits { connections: 100, bytes_per_second: Some(rate) };
    observe::limit(&service.path, std::process::id(), limits).unwrap();
    direct.listen(anywhere(), 1).unwrap();
    let begun = nicforge_sockets::service::now();
    let bytes = vec![7; 512 << 10];
    let mut rest = bytes.as_slice();
    let mut received = 0;
    while received < bytes.len() {
        let (_, space) = direct.slices(client).unwrap();
        let len = rest.len().min(space.len());
        space[..len].copy_from_slice(&rest[..len]);
        direct.produce(client, len).unwrap();
        rest = &rest[len..];
        let taken = direct.slices(server).unwrap().0.len();
        direct.consume(server, taken).unwrap();
        received += taken;
        if len == 0 && taken == 0 {
            next(&mut direct);
        }
    }
    let took = (nicforge_sockets::service::now().saturating_sub(begun)).as_seconds();
    // A tenth of a second's worth may be saved up.
    assert!(took > 0.35, "half a rate's worth took {took} s");
    let nobody = observe::limit(&service.path, u32::MAX - 1, Limits::default());
    assert!(nobody.is_err());
}

#[test]
fn a_thousand_idle_connections_cost_the_service_nothing() {
    let service = Running::with(|config| config.ring_bytes = 4096);
    let mut direct = Direct::register(&service.path).unwrap();
    let listener = direct.listen(anywhere(), 2000).unwrap();
    let at = direct.local(listener).unwrap();
    let mut accepted = 0;
    for _ in 0..1000 {
        direct.connect(at).unwrap();
        while direct.accept(listener).unwrap().is_some() {
            accepted += 1;
        }
    }
    while accepted < 1000 {
        next(&mut direct);
        while direct.accept(listener).unwrap().is_some() {
            accepted += 1;
        }
    }
    std::thread::sleep(Duration::from_millis(200));
    let before = service.cpu_ns();
    std::thread::sleep(Duration::from_secs(1));
    let used = service.cpu_ns() - before;
    assert!(used < 20_000_000, "{used} ns of a second: 2 % of a core is the limit");
    assert_eq!(service.sockets(), 2001);
}

#[test]
fn what_runs_is_listed_with_its_figures() {
    let service = Running::new();
    let mut direct = Direct::register(&service.path).unwrap();
    let (client, server) = pair(&mut direct);
    send_all(&mut direct, client, &[1; 1000]);
    receive_all(&mut direct, server, 1000);
    let seen = observe::list(&service.path).unwrap();
    assert_eq!(seen.applications.len(), 1);
    assert_eq!(seen.applications[0].pid, std::process::id());
    let established: Vec<_> = seen.sockets.iter().filter(|socket| socket.state == "ESTABLISHED").collect();
    assert_eq!(established.len(), 2);
    assert_eq!(established.iter().map(|socket| socket.sent_bytes).sum::<u64>(), 1000);
    assert_eq!(established.iter().map(|socket| socket.received_bytes).sum::<u64>(), 1000);
    assert!(established.iter().all(|socket| socket.pid == std::process::id()));
}

#[test]
fn a_second_service_at_the_same_path_is_refused() {
    let service = Running::new();
    assert!(Service::new(Config::at(&service.path), None).is_err());
    let mut small = Config::at(service.path.with_extension("other"));
    small.ring_bytes = 5000;
    assert!(Service::new(small, None).is_err(), "rings are powers of two");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever one application writes into its queue, another's stream arrives whole.
    #[test]
    fn random_entries_harm_only_their_author(
        entries in proptest::collection::vec((0u32..12, any::<u32>(), 0u32..40, any::<u32>(), any::<u32>(), any::<u64>()), 1..300),
    ) {
        let service = Running::new();
        let mut victim = Direct::register(&service.path).unwrap();
        let (client, server) = pair(&mut victim);
        let mut hostile = Hostile::new(&service.path);
        let request = RequestMessage { request: Request::Socket as u32, value: 2, ..RequestMessage::default() };
        let (own, _descriptors) = ask(&hostile.control, &request, &[]).unwrap();
        for (number, (kind, flow, low, rx_bump, tx_bump, word)) in entries.into_iter().enumerate() {
            // Half of them about a socket that it has.
            let flow = if number % 2 == 0 { own.value } else { flow << 20 | low };
            let message = Message { rx_bump, tx_bump, word, ..Message::new(Kind::of(kind).unwrap_or(Kind::Bump), flow) };
            hostile.push(message);
            if Kind::of(kind).is_none() {
                // A kind that does not exist, in the slot that was just written.
                hostile.context.queue(Direction::ToService)[number].kind.store(kind + 50, std::sync::atomic::Ordering::Release);
            }
        }
        hostile.ring();
        let bytes: Vec<u8> = (0..20_000u32).map(|n| (n * 7) as u8).collect();
        send_all(&mut victim, client, &bytes);
        prop_assert_eq!(receive_all(&mut victim, server, bytes.len()), bytes);
        prop_assert!(service.refused() > 0);
    }
}
