//! The service by its low-level interface: data, ends, limits, what it shows.

mod common;

use std::time::Duration;

use common::{Running, anywhere, next, pair, receive_all, send_all, until};
use nicforge_sockets::direct::{Direct, DirectError, Happening};
use nicforge_sockets::observe;
use nicforge_sockets::service::{Config, Limits, Service};
use rustix::io::Errno;

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
fn a_waiting_application_learns_that_the_service_has_gone() {
    let service = Running::new();
    let mut direct = Direct::register(&service.path).unwrap();
    let listener = direct.listen(anywhere(), 4).unwrap();
    drop(service);
    assert_eq!(direct.wait(Some(Duration::from_secs(10))), Err(DirectError::Refused(Errno::NETDOWN)));
    assert_eq!(direct.accept(listener), Err(DirectError::Refused(Errno::NETDOWN)));
}

#[test]
fn a_second_service_at_the_same_path_is_refused() {
    let service = Running::new();
    assert!(Service::new(Config::at(&service.path), None).is_err());
    let mut small = Config::at(service.path.with_extension("other"));
    small.ring_bytes = 5000;
    assert!(Service::new(small, None).is_err(), "rings are powers of two");
}
