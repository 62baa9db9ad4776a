//! The stack under test, its clock, and the packets that left it.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use nicforge_tcp::ring::HeapBuffers;
use nicforge_tcp::socket::Sockets;
use nicforge_tcp::stack::{Address, HostConfig, Stack};
use nicforge_units::Time;

use crate::settings::Settings;

/// Descriptors begin here, away from those of the kernel.
const FIRST_FD: i32 = 500;
/// packetdrill's defaults for its two address families.
const LOCAL_V4: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 1);
const LOCAL_V6: Ipv6Addr = Ipv6Addr::new(0xfd3d, 0x0a0b, 0x17d6, 0, 0, 0, 0, 1);
/// The clock starts here, so that clocks of the protocol are not zero.
const START: Time = Time::from_ms(1_000_000);

/// What the lock protects.
pub struct World {
    pub sockets: Sockets<HeapBuffers>,
    pub settings: Settings,
    pub now: Time,
    pub out: VecDeque<(Time, Vec<u8>)>,
    /// Calls that wait, in other threads.
    pub waiting: usize,
    /// Those of them that have not looked again since something changed.
    pub unseen: usize,
    /// Calls that have returned since the first thread slept last.
    pub returned: usize,
    /// Times at which waiting calls give up.
    pub alarms: Vec<Time>,
}

/// The world and who waits for it.
pub struct Shared {
    world: Mutex<World>,
    /// Something changed.
    pub changed: Condvar,
    /// A waiting call has looked.
    pub seen: Condvar,
    /// The thread that runs scripts: it moves the clock.
    pub main: ThreadId,
}

impl Shared {
    pub fn new(flags: String) -> Shared {
        let addresses = vec![Address::new(LOCAL_V4, 16), Address::new(LOCAL_V6, 64)];
        let mut host = HostConfig::ip(addresses);
        host.any_address = true;
        let settings = Settings::new(&flags);
        let stack = Stack::new(host, settings.config(), HeapBuffers, *b"packetdrill seed");
        let world = World {
            sockets: Sockets::new(stack, FIRST_FD),
            settings,
            now: START,
            out: VecDeque::new(),
            waiting: 0,
            unseen: 0,
            returned: 0,
            alarms: Vec::new(),
        };
        Shared {
            world: Mutex::new(world),
            changed: Condvar::new(),
            seen: Condvar::new(),
            main: std::thread::current().id(),
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, World> {
        // A call that panicked has printed why; the script fails by what follows.
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the calls that wait and lets them look, before time goes on.
    pub fn settle<'a>(&'a self, mut world: MutexGuard<'a, World>) -> MutexGuard<'a, World> {
        world.collect();
        if world.waiting == 0 {
            return world;
        }
        world.unseen = world.waiting;
        self.changed.notify_all();
        while world.unseen > 0 {
            world = self.seen.wait(world).unwrap_or_else(PoisonError::into_inner);
        }
        world.collect();
        world
    }

    /// Lets time pass until `until`; stops early, at the packet's time, when `for_packet` and a packet leaves.
    pub fn pass<'a>(
        &'a self,
        mut world: MutexGuard<'a, World>,
        until: Time,
        for_packet: bool,
    ) -> MutexGuard<'a, World> {
        loop {
            world.collect();
            if for_packet && !world.out.is_empty() {
                return world;
            }
            let alarm = world.alarms.iter().copied().min();
            let timer = world.sockets.stack.poll_at();
            let Some(next) = alarm.into_iter().chain(timer).min().filter(|next| *next <= until) else {
                world.now = world.now.max(until);
                return world;
            };
            world.now = world.now.max(next);
            let now = world.now;
            world.alarms.retain(|alarm| *alarm > now);
            world.sockets.stack.on_timer(now);
            world = self.settle(world);
        }
    }
}

impl World {
    /// Takes what the stack sends, and its events to the sockets.
    pub fn collect(&mut self) {
        let mut frame = [0; 65_600];
        while let Some(len) = self.sockets.stack.transmit(self.now, &mut frame) {
            self.out.push_back((self.now, frame[..len].to_vec()));
        }
        self.sockets.dispatch();
    }

    /// Takes a packet.
    pub fn receive(&mut self, packet: &[u8]) {
        self.sockets.stack.receive(packet, self.now);
        self.collect();
    }

    /// Reads the settings again, which scripts change before they make sockets.
    pub fn refresh(&mut self) {
        let config = self.settings.config();
        self.sockets.stack.set_config(config);
        self.sockets.stack.set_mtu(self.settings.mtu());
    }
}
