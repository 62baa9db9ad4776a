//! A Linux-like kernel stack: each core runs its share of TCP and its application, with the costs of system calls,
//! interrupts and wake-ups between them.
//!
//! It is the same service with the same TCP; what differs is where it runs and what it costs. A core takes frames and
//! runs its application in turn. Queues between both stand for the socket layer, and cost nothing themselves.

use std::rc::Rc;

use nicforge_nic::DropCounters;
use nicforge_options::{Allowed, options};
use nicforge_platform::{Cpu, Part};
use nicforge_units::{Cycles, Time};

use super::program::{Map, SharedApp, SharedService};
use crate::world::device::Device;
use crate::world::program::{Account, Here, Next, Notice, Program};

options! {
    /// A Linux-like kernel stack.
    pub struct LinuxOptions {
        /// Instructions of driver, IP and TCP for a segment, in or out.
        linux_segment_cycles: u32 = 2000, "cycles", Allowed::Whole(0, 100_000),
            source "estimate: about 6000 cycles a request in driver, IP and TCP, with two data segments and an acknowledgment; after TAS (EuroSys 2019), whose table was not at hand";
        /// Instructions of a system call of a socket, with the share of `epoll_wait` that goes with it.
        linux_call_cycles: u32 = 4000, "cycles", Allowed::Whole(0, 100_000),
            source "estimate: as above, about 8000 cycles a request in sockets and epoll, with two calls";
        /// Payload of a connection's segments that the kernel handles as one: it hands them to the NIC as one, and merges those that come.
        linux_merge_kib: u32 = 0, "KiB", Allowed::Whole(0, 64), source "Linux: GSO and GRO, 64 KiB at most; 0 is none";
        /// Instructions for each further segment of those that comes.
        linux_merged_cycles: u32 = 750, "cycles", Allowed::Whole(0, 100_000), source "estimate: the driver's packet, GRO's look-up, a page fragment; fitted to o-c2";
        /// Instructions for each further segment of those that leaves.
        linux_cut_cycles: u32 = 200, "cycles", Allowed::Whole(0, 100_000), source "estimate: its share of page fragments and descriptors; fitted to o-c4";
        /// Frames that the kernel takes from the NIC at once, and segments that it hands over.
        linux_burst: usize = 16, "frames", Allowed::Whole(1, 64), source "Linux: NAPI takes 64 at most";
        /// The NIC reads payload where the socket has it; otherwise a core copies it behind the headers.
        linux_gathers: bool = false, "", Allowed::Flag;
        /// Instructions of an interrupt and of waking a sleeping process.
        linux_wake_cycles: u32 = 6000, "cycles", Allowed::Whole(0, 1_000_000),
            source "estimate: interrupt and soft interrupt 2000, scheduler and switch 4000";
    }
}

/// A core of a host with such a kernel.
pub struct LinuxProgram {
    service: SharedService,
    app: SharedApp,
    map: Map,
    wake: Cycles,
    /// It sleeps, and pays for being woken.
    asleep: bool,
    bursts: u64,
}

impl LinuxProgram {
    /// A core that runs `service` and `app`, which maps connections' rings by `map`.
    pub fn new(service: SharedService, app: SharedApp, map: Map, wake: Cycles) -> LinuxProgram {
        LinuxProgram { service, app, map, wake, asleep: false, bursts: 0 }
    }

    /// A round: frames, timers, the application, what it wrote. Returns whether there was anything to do.
    fn round(&mut self, here: &mut Here<'_>) -> bool {
        let mut service = self.service.borrow_mut();
        let mut cpu = here.cpu();
        let polled = service.poll(&mut cpu);
        self.bursts += u64::from(polled > 0);
        if polled > 0 && std::mem::take(&mut self.asleep) {
            cpu.enter(Part::Interrupt);
            cpu.work(self.wake);
        }
        for _ in 0..polled {
            service.segment(&mut cpu);
        }
        let mut any = polled > 0;
        any |= service.announce(&mut cpu);
        drop(service);
        any |= self.app.borrow_mut().step(&mut cpu, &*self.map);
        let mut service = self.service.borrow_mut();
        any |= service.take_entries(&mut cpu);
        any | (service.transmit(&mut cpu) > 0)
    }
}

impl Program for LinuxProgram {
    fn step(&mut self, here: &mut Here<'_>) -> Next {
        here.begin_round();
        let before = here.core.spent().clone();
        if self.round(here) {
            return Next::Again;
        }
        here.core.count_as_idle(&before);
        self.asleep = true;
        let due = self.service.borrow().due(here.core.now()).min(self.app.borrow().due());
        if self.app.borrow().has_untold() { Next::Again } else { here.sleep(due.max(here.core.now())) }
    }

    fn notice(&mut self, _devices: &mut [Box<dyn Device>], notice: Notice) -> Option<Time> {
        Some(notice.at.max(notice.now))
    }

    fn account(&self) -> Account {
        let service = self.service.borrow();
        Account {
            taken: service.taken(),
            pushed: service.pushed(),
            in_hand: service.waiting() as u64,
            buffers: service.buffers(),
            bursts: self.bursts,
            ..Account::default()
        }
    }

    fn drops(&self) -> DropCounters {
        self.service.borrow().drops.clone()
    }

    fn describe(&self) -> Option<String> {
        let (service, app) = (self.service.borrow(), self.app.borrow());
        let (open, counters) = (service.open(), &service.counters);
        Some(format!("kernel: {open} connections open, {counters:?}, {} answers", app.results.answered))
    }
}

/// How core `number` maps its connections' rings: they are its own.
pub fn map_of(service: &SharedService) -> Map {
    let service = Rc::clone(service);
    Rc::new(move |name| service.borrow().shared(name.flow()))
}
