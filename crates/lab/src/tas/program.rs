//! The service and applications as programs of cores.

use std::cell::RefCell;
use std::rc::Rc;

use nicforge_nic::DropCounters;
use nicforge_platform::Cpu;
use nicforge_platform::sim::CoreCycles;
use nicforge_units::Time;

use super::app::{FlowName, RpcApp};
use super::crew::SharedCrew;
use super::rings::Mapped;
use super::service::Service;
use crate::world::device::Device;
use crate::world::program::{Account, Here, Next, Notice, Program, Wake};

/// A flow-group of the service, which one core serves at a time, and whose connections applications map.
pub type SharedService = Rc<RefCell<Service>>;
/// An application that its core runs, and whose results are read at the end.
pub type SharedApp = Rc<RefCell<RpcApp>>;

/// How an application maps a connection's rings.
pub type Map = Rc<dyn Fn(FlowName) -> Option<Mapped>>;

/// What a fast-path core does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Poll,
    Packet,
    Queues,
}

/// A fast-path core: a step is one poll, one segment, or one look at queues and timers of a flow-group with what follows.
/// A round takes the flow-groups that it serves in turn.
pub struct ServiceProgram {
    number: usize,
    crew: SharedCrew,
    /// Of all flow-groups; one is its own, for which it answers in sums.
    groups: Vec<SharedService>,
    serves: Vec<usize>,
    /// Which of those it serves it is at.
    at: usize,
    does: Does,
    began: Time,
    /// What the core had spent when this round began, as long as it found nothing.
    idle_since: Option<CoreCycles>,
    bursts: u64,
    /// The least time from one round to the next that something wakes it for.
    moderation: Time,
}

impl ServiceProgram {
    /// Core `number` of a crew.
    pub fn new(number: usize, crew: SharedCrew, groups: Vec<SharedService>) -> ServiceProgram {
        ServiceProgram {
            number,
            crew,
            groups,
            serves: Vec::new(),
            at: 0,
            does: Does::Poll,
            began: Time::ZERO,
            idle_since: None,
            bursts: 0,
            moderation: Time::ZERO,
        }
    }

    /// The same, woken at most once in so much time.
    pub fn moderated(self, moderation: Time) -> ServiceProgram {
        ServiceProgram { moderation, ..self }
    }

    fn own(&self) -> &SharedService {
        &self.groups[self.number]
    }

    fn served(&self) -> &SharedService {
        &self.groups[self.serves[self.at]]
    }

    fn poll(&mut self, here: &mut Here<'_>) -> Next {
        if self.at == 0 {
            here.begin_round();
            self.began = here.core.now();
            self.idle_since = Some(here.core.spent().clone());
            self.serves = self.crew.borrow_mut().begin_round(self.number, self.began);
            if self.serves.is_empty() {
                self.crew.borrow_mut().pass_on(self.number, self.began);
                return Next::Event;
            }
        } else {
            here.core.begin_burst();
        }
        let polled = self.served().borrow_mut().poll(&mut here.cpu());
        self.does = Does::Queues;
        if polled > 0 {
            self.idle_since = None;
            self.bursts += 1;
            self.crew.borrow_mut().received[self.number] += polled as u64;
            self.does = Does::Packet;
        }
        Next::Again
    }

    fn packet(&mut self, here: &mut Here<'_>) {
        let mut service = self.served().borrow_mut();
        service.segment(&mut here.cpu());
        let more = service.waiting() > 0;
        drop(service);
        self.does = if more { Does::Packet } else { Does::Queues };
    }

    fn queues(&mut self, here: &mut Here<'_>) -> Next {
        let mut service = self.served().borrow_mut();
        let mut cpu = here.cpu();
        let busy = service.take_entries(&mut cpu) | (service.transmit(&mut cpu) > 0) | service.announce(&mut cpu);
        let now = cpu.now();
        drop((service, cpu));
        if busy {
            self.idle_since = None;
        }
        (self.does, self.at) = (Does::Poll, self.at + 1);
        if self.at < self.serves.len() {
            return Next::Again;
        }
        self.at = 0;
        self.end_round(here, now)
    }

    fn end_round(&mut self, here: &mut Here<'_>, now: Time) -> Next {
        let mut crew = self.crew.borrow_mut();
        let idle = self.idle_since.take();
        if idle.is_none() {
            crew.was_busy(self.number, self.began, now);
        }
        crew.look(self.number, now);
        let Some(before) = idle else { return Next::Again };
        here.core.count_as_idle(&before);
        let groups = self.serves.iter().map(|&group| self.groups[group].borrow().due(now));
        here.sleep(groups.fold(crew.wakes_at(), Time::min))
    }
}

impl Program for ServiceProgram {
    fn step(&mut self, here: &mut Here<'_>) -> Next {
        match self.does {
            Does::Poll => return self.poll(here),
            Does::Packet => self.packet(here),
            Does::Queues => return self.queues(here),
        }
        Next::Again
    }

    fn notice(&mut self, _devices: &mut [Box<dyn Device>], notice: Notice) -> Option<Time> {
        Some(notice.at.max(notice.now).max(self.began + self.moderation))
    }

    fn take_wakes(&mut self, into: &mut Vec<Wake>) {
        self.crew.borrow_mut().take_wakes(self.number, into);
    }

    fn account(&self) -> Account {
        let service = self.own().borrow();
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
        self.own().borrow().drops.clone()
    }

    fn describe(&self) -> Option<String> {
        let service = self.own().borrow();
        let (open, counters) = (service.open(), &service.counters);
        Some(format!("service: next {:?}, serves {:?}, {open} connections open, {counters:?}", self.does, self.serves))
    }
}

/// An application core: a step takes what its queue has.
pub struct AppProgram {
    app: SharedApp,
    map: Map,
}

impl AppProgram {
    /// A core that runs `app`, which maps connections' rings by `map`.
    pub fn new(app: SharedApp, map: Map) -> AppProgram {
        AppProgram { app, map }
    }
}

impl Program for AppProgram {
    fn step(&mut self, here: &mut Here<'_>) -> Next {
        here.begin_round();
        let before = here.core.spent().clone();
        let mut app = self.app.borrow_mut();
        if app.step(&mut here.cpu(), &*self.map) {
            return Next::Again;
        }
        here.core.count_as_idle(&before);
        if app.has_untold() { Next::Again } else { here.sleep(app.due()) }
    }

    fn notice(&mut self, _devices: &mut [Box<dyn Device>], notice: Notice) -> Option<Time> {
        Some(notice.at.max(notice.now))
    }

    fn describe(&self) -> Option<String> {
        let app = self.app.borrow();
        Some(format!("application: {} answers, {} bad entries", app.results.answered, app.bad_entries))
    }
}
