//! The service and applications as programs of cores.

use std::cell::RefCell;
use std::rc::Rc;

use nicforge_nic::DropCounters;
use nicforge_platform::Cpu;
use nicforge_platform::sim::{CoreCycles, SimCpu};
use nicforge_units::Time;

use super::app::RpcApp;
use super::service::Service;
use crate::world::device::Device;
use crate::world::program::{Account, Here, Next, Notice, Program};

/// A service that its core runs, and whose connections applications map.
pub type SharedService = Rc<RefCell<Service<SimCpu>>>;
/// An application that its core runs, and whose results are read at the end.
pub type SharedApp = Rc<RefCell<RpcApp>>;

/// What the service's core does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Poll,
    Packet(usize),
    Queues,
}

/// The fast-path core: a step is one poll, one segment, or one look at queues and timers with what follows.
pub struct ServiceProgram {
    service: SharedService,
    does: Does,
    polled: usize,
    /// What the core had spent when this round began, as long as it found nothing.
    idle_since: Option<CoreCycles>,
    bursts: u64,
}

impl ServiceProgram {
    /// A core that runs `service`.
    pub fn new(service: SharedService) -> ServiceProgram {
        ServiceProgram { service, does: Does::Poll, polled: 0, idle_since: None, bursts: 0 }
    }

    fn waiting(&self) -> usize {
        match self.does {
            Does::Packet(index) => self.polled - index,
            Does::Poll | Does::Queues => 0,
        }
    }

    fn poll(&mut self, here: &mut Here<'_>) {
        begin_round(here);
        self.idle_since = Some(here.core.spent().clone());
        self.polled = self.service.borrow_mut().poll(&mut here.cpu());
        self.does = Does::Queues;
        if self.polled > 0 {
            self.idle_since = None;
            self.bursts += 1;
            self.does = Does::Packet(0);
        }
    }

    fn queues(&mut self, here: &mut Here<'_>) -> Next {
        let mut service = self.service.borrow_mut();
        let mut cpu = here.cpu();
        let busy = service.take_entries(&mut *cpu) | (service.transmit(&mut *cpu) > 0) | service.announce(&mut *cpu);
        let now = cpu.now();
        drop(cpu);
        self.does = Does::Poll;
        match self.idle_since.take() {
            Some(before) if !busy => {
                here.core.count_as_idle(&before);
                sleep(here, service.due(now))
            }
            _ => Next::Again,
        }
    }
}

/// What a round begins with: time comes to now, and what was published until then is seen.
fn begin_round(here: &mut Here<'_>) {
    here.core.idle_until(here.now);
    while here.published.front().is_some_and(|&time| time <= here.core.now()) {
        here.published.pop_front();
    }
    here.core.begin_burst();
}

/// Sleeps until `due`, or until something is published.
fn sleep(here: &Here<'_>, due: Time) -> Next {
    let published = here.published.front().copied().unwrap_or(Time::NEVER);
    Next::At(due.min(published))
}

impl Program for ServiceProgram {
    fn step(&mut self, here: &mut Here<'_>) -> Next {
        match self.does {
            Does::Poll => self.poll(here),
            Does::Packet(index) => {
                self.service.borrow_mut().segment(&mut here.cpu(), index);
                self.does = if index + 1 < self.polled { Does::Packet(index + 1) } else { Does::Queues };
            }
            Does::Queues => return self.queues(here),
        }
        Next::Again
    }

    fn notice(&mut self, _devices: &mut [Box<dyn Device>], notice: Notice) -> Option<Time> {
        Some(notice.at.max(notice.now))
    }

    fn account(&self) -> Account {
        let service = self.service.borrow();
        Account {
            taken: service.taken(),
            pushed: service.pushed(),
            in_hand: self.waiting() as u64,
            buffers: service.buffers(self.waiting()),
            bursts: self.bursts,
            ..Account::default()
        }
    }

    fn drops(&self) -> DropCounters {
        self.service.borrow().drops.clone()
    }

    fn describe(&self) -> Option<String> {
        let service = self.service.borrow();
        Some(format!("service: next {:?}, {} connections open, {:?}", self.does, service.open(), service.counters))
    }
}

/// An application core: a step takes what its queue has.
pub struct AppProgram {
    app: SharedApp,
    service: SharedService,
}

impl AppProgram {
    /// A core that runs `app` over `service`.
    pub fn new(app: SharedApp, service: SharedService) -> AppProgram {
        AppProgram { app, service }
    }
}

impl Program for AppProgram {
    fn step(&mut self, here: &mut Here<'_>) -> Next {
        begin_round(here);
        let before = here.core.spent().clone();
        let mut app = self.app.borrow_mut();
        let service = self.service.borrow();
        if app.step(&mut *here.cpu(), |flow| service.shared(flow)) {
            return Next::Again;
        }
        here.core.count_as_idle(&before);
        if app.has_untold() { Next::Again } else { sleep(here, Time::NEVER) }
    }

    fn notice(&mut self, _devices: &mut [Box<dyn Device>], notice: Notice) -> Option<Time> {
        Some(notice.at.max(notice.now))
    }

    fn describe(&self) -> Option<String> {
        let app = self.app.borrow();
        Some(format!("application: {} answers, {} bad entries", app.results.answered, app.bad_entries))
    }
}
