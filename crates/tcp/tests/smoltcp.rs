//! smoltcp as a peer, both directions, in virtual time, over a clean and a lossy link.

mod common;

use std::collections::VecDeque;

use common::byte;
use nicforge_tcp::Config;
use nicforge_tcp::conn::Tuning;
use nicforge_tcp::ring::HeapBuffers;
use nicforge_tcp::stack::{Address, ConnectionId, HostConfig, ListenerId, Stack};
use nicforge_units::Time;
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;
use smoltcp::iface::{Config as IfaceConfig, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

#[derive(Default)]
struct Queues {
    rx: VecDeque<Vec<u8>>,
    tx: VecDeque<Vec<u8>>,
}

struct Received(Vec<u8>);

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

struct Sending<'a>(&'a mut VecDeque<Vec<u8>>);

impl TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut packet = vec![0; len];
        let result = f(&mut packet);
        self.0.push_back(packet);
        result
    }
}

impl Device for Queues {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sending<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Received, Sending<'_>)> {
        self.rx.pop_front().map(|packet| (Received(packet), Sending(&mut self.tx)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sending<'_>> {
        Some(Sending(&mut self.tx))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = 1500;
        capabilities
    }
}

struct Peers {
    ours: Stack<HeapBuffers>,
    device: Queues,
    theirs: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    rng: Pcg64,
    loss: u32,
    now: Time,
    /// Packets on their way: when, whether to us.
    wire: VecDeque<(Time, bool, Vec<u8>)>,
}

const OURS: [u8; 4] = [10, 0, 0, 1];
const THEIRS: [u8; 4] = [10, 0, 0, 2];
const DELAY: Time = Time::from_us(2_000);

fn instant(now: Time) -> Instant {
    Instant::from_micros((now.as_ps() / 1_000_000) as i64)
}

impl Peers {
    fn new(config: Config, loss: u32, seed: u64) -> Peers {
        let mut device = Queues::default();
        let mut theirs = Interface::new(IfaceConfig::new(HardwareAddress::Ip), &mut device, Instant::ZERO);
        theirs.update_ip_addrs(|addresses| {
            let _ = addresses.push(IpCidr::new(IpAddress::v4(10, 0, 0, 2), 24));
        });
        let mut sockets = SocketSet::new(Vec::new());
        let buffer = || tcp::SocketBuffer::new(vec![0; 65535]);
        let socket = sockets.add(tcp::Socket::new(buffer(), buffer()));
        let host = HostConfig::ip(vec![Address::new(OURS, 24)]);
        Peers {
            ours: Stack::new(host, config, HeapBuffers, [3; 16]),
            device,
            theirs,
            sockets,
            socket,
            rng: Pcg64::seed_from_u64(seed),
            loss,
            now: Time::from_ms(1),
            wire: VecDeque::new(),
        }
    }

    /// A millisecond passes.
    fn step(&mut self) {
        self.now += Time::from_ms(1);
        while let Some((at, _, _)) = self.wire.front()
            && *at <= self.now
        {
            let Some((_, to_us, packet)) = self.wire.pop_front() else { break };
            if self.rng.next_u32() % 1000 < self.loss {
                continue;
            }
            if to_us {
                self.ours.receive(&packet, self.now);
                self.flush();
            } else {
                self.device.rx.push_back(packet);
            }
        }
        self.ours.on_timer(self.now);
        self.theirs.poll(instant(self.now), &mut self.device, &mut self.sockets);
        self.flush();
    }

    fn flush(&mut self) {
        let mut out = [0; 2048];
        while let Some(len) = self.ours.transmit(self.now, &mut out) {
            self.wire.push_back((self.now + DELAY, false, out[..len].to_vec()));
        }
        while let Some(packet) = self.device.tx.pop_front() {
            self.wire.push_back((self.now + DELAY, true, packet));
        }
    }

    /// Exchanges `total` bytes each way and closes; both streams are checked.
    fn exchange(&mut self, connect: bool, total: u64) {
        let tuning = Tuning::new(self.ours.config());
        let mut ours: Option<ConnectionId> = None;
        let mut listener: Option<ListenerId> = None;
        if connect {
            self.sockets.get_mut::<tcp::Socket>(self.socket).listen(80).unwrap();
            ours = Some(self.ours.connect((None, 0), (THEIRS.into(), 80), tuning, self.now).unwrap());
        } else {
            listener = Some(self.ours.listen(None, 80, 4, tuning, false).unwrap());
            let socket = self.sockets.get_mut::<tcp::Socket>(self.socket);
            socket.connect(self.theirs.context(), (IpAddress::v4(10, 0, 0, 1), 80), 50_000).unwrap();
        }
        let (mut wrote, mut read) = ([0u64; 2], [0u64; 2]);
        let mut shut = false;
        for _ in 0..600_000 {
            self.step();
            ours = ours.or_else(|| listener.and_then(|listener| self.ours.accept(listener)));
            if let Some(id) = ours {
                let bytes: Vec<u8> = (wrote[0]..total.min(wrote[0] + 4000)).map(|at| byte(0, at)).collect();
                wrote[0] += self.ours.send(id, &bytes, false, self.now).unwrap() as u64;
                if wrote[0] == total && !std::mem::replace(&mut shut, true) {
                    self.ours.shut_write(id, self.now);
                }
                let mut out = [0; 8000];
                let len = self.ours.recv(id, &mut out, self.now).unwrap();
                check(&out[..len], 1, &mut read[0]);
            }
            let socket = self.sockets.get_mut::<tcp::Socket>(self.socket);
            if socket.can_send() && wrote[1] < total {
                let bytes: Vec<u8> = (wrote[1]..total.min(wrote[1] + 4000)).map(|at| byte(1, at)).collect();
                wrote[1] += socket.send_slice(&bytes).unwrap() as u64;
                if wrote[1] == total {
                    socket.close();
                }
            }
            while socket.can_recv() {
                let mut out = [0; 4000];
                let len = socket.recv_slice(&mut out).unwrap();
                check(&out[..len], 0, &mut read[1]);
            }
            let closed = ours.is_some_and(|id| self.ours.connection(id).is_none_or(|c| c.is_read_closed()));
            if read == [total; 2] && closed {
                return;
            }
        }
        panic!("not done: wrote {wrote:?}, read {read:?}");
    }
}

fn check(bytes: &[u8], stream: u64, read: &mut u64) {
    for have in bytes {
        assert_eq!(*have, byte(stream, *read));
        *read += 1;
    }
}

#[test]
fn streams_to_and_from_smoltcp_are_intact() {
    for (config, name) in [(Config::default(), "default"), (Config::paper(), "paper")] {
        for loss in [0, 20, 80] {
            for connect in [false, true] {
                eprintln!("{name}, loss {loss}, we connect: {connect}");
                let mut peers = Peers::new(config.clone(), loss, 5);
                peers.exchange(connect, if loss == 0 { 1_000_000 } else { 100_000 });
            }
        }
    }
}
