//! The service against applications that write what they like.

mod common;

use std::os::fd::AsFd;
use std::time::Duration;

use common::{Running, pair, receive_all, send_all};
use nicforge_sockets::control::{Request, RequestMessage, ask};
use nicforge_sockets::direct::Direct;
use nicforge_sockets::layout::{Kind, VERSION};
use nicforge_sockets::queue::{Message, Producer};
use nicforge_sockets::shared::{ContextMemory, Direction};
use proptest::prelude::*;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

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
