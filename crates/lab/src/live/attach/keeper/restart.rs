//! Queues restart: who works on them halts, the device empties them, and all go on.

use std::time::Duration;

use nicforge_platform::live::LiveCpu;

use super::{Keeper, PATIENCE, State};
use crate::live::device::{Done, Order};
use crate::live::worker::Worker;
use crate::live::{Shared, locked};

/// How often it looks whether a worker has halted, or goes on: frames for all that share its rings wait meanwhile.
const LOOK_AGAIN: Duration = Duration::from_micros(100);

impl Keeper {
    /// The queues of worker `number`, where nobody is, and of all that share rings with it begin
    /// anew. Somebody is about to `join` there, or nobody is.
    pub(super) fn restart(&mut self, shared: &Shared, number: usize, joins: bool) {
        let mut group = self.places[self.groups[number].clone()].iter();
        // Workers that live take waiting frames after the restart; nobody takes those of a dead worker.
        let waits = group.any(|place| matches!(place.state, State::Joining(_) | State::Working(_)));
        if waits {
            self.order(Order::Wait(true));
        }
        self.begin_anew(shared, number, joins);
        // Whoever joins fills its share of a ring first.
        if waits && !joins {
            self.order(Order::Wait(false));
        }
    }

    fn begin_anew(&mut self, shared: &Shared, number: usize, joins: bool) {
        let group = self.groups[number].clone();
        for peer in group.clone() {
            self.let_join(shared, peer);
        }
        self.order(Order::Close(group.clone()));
        for peer in group.clone() {
            self.halt(shared, peer);
        }
        let mut others = Vec::new();
        let served = loop {
            let place = |number: usize| &self.places[number].state;
            let absent =
                |number: &usize| matches!(place(*number), State::Free | State::Preparing(_) | State::Ended(..));
            let absent: Vec<usize> = (0..self.places.len()).filter(absent).collect();
            match self.order(Order::BeginAnew(group.clone(), absent)) {
                Done::Anew(served) => break served,
                // It may be stopped by somebody, or mad; without the lock nothing goes on.
                Done::Held(holder) if holder < self.places.len() && !others.contains(&holder) => {
                    self.end(shared, holder);
                    others.push(holder);
                }
                _ => break Vec::new(),
            }
        };
        for (peer, served) in group.clone().zip(served) {
            self.places[peer].restart(served);
            if let State::Ended(_, buffers) = &mut self.places[peer].state {
                *buffers = 0;
            }
            self.stand_ins[peer] = None;
            // The device counts it from zero again, and will say so with its next counts.
            let mut device = locked(&shared.device);
            if let Some(count) = device.nonsense.get_mut(peer) {
                *count = 0;
            }
            if let Some(impossible) = device.impossible.get_mut(peer) {
                *impossible = false;
            }
        }
        let mut late = false;
        for peer in group.clone() {
            let place = &mut self.places[peer];
            place.order += 2;
            self.control.order(peer, place.order);
            let somebody_comes = joins && peer == number;
            match &place.state {
                State::Working(_) => late |= !self.go_on(shared, peer),
                State::Free | State::Preparing(_) if group.len() > 1 && !somebody_comes => self.stand_in(peer),
                _ => {}
            }
        }
        // One less each time.
        if late {
            self.restart(shared, number, joins);
        }
        for other in others.into_iter().filter(|other| !group.contains(other)) {
            self.restart(shared, other, false);
        }
    }

    /// Who is about to bring up queues cannot halt before it has.
    fn let_join(&mut self, shared: &Shared, number: usize) {
        let until = self.time_in(PATIENCE);
        while matches!(self.places[number].state, State::Joining(_)) && self.now() < until {
            std::thread::sleep(Duration::from_micros(500));
            self.hear(shared, number);
        }
    }

    /// Asks worker `number` to halt, and waits until it has; who does not is ended.
    fn halt(&mut self, shared: &Shared, number: usize) {
        let place = &self.places[number];
        let order = place.order + 1;
        match &place.state {
            State::Working(_) => {}
            State::Joining(_) => return self.end(shared, number),
            State::Free | State::Preparing(_) | State::Ended(..) => return,
        }
        self.control.order(number, order);
        let until = self.time_in(PATIENCE);
        while self.control.followed(number) != order {
            let gone = match self.places[number].state.member() {
                Some(member) => member.peer.is_gone_within(LOOK_AGAIN),
                None => true,
            };
            if gone || self.now() >= until {
                return self.end(shared, number);
            }
        }
        // Its last counts are on the line.
        self.hear(shared, number);
    }

    /// Ends whoever has place `number`.
    fn end(&mut self, shared: &Shared, number: usize) {
        let state = std::mem::replace(&mut self.places[number].state, State::Free);
        if let State::Joining(member) | State::Working(member) = state {
            member.peer.end(PATIENCE);
            self.control.set_gone(number, true);
            shared.tell(format!("worker {number} was ended: it did not halt in time"));
        }
    }

    /// Worker `number` has its order to go on; its queues are opened when they are up. Who does not
    /// go on is ended; then it returns `false`.
    fn go_on(&mut self, shared: &Shared, number: usize) -> bool {
        let order = self.places[number].order;
        let until = self.time_in(PATIENCE);
        while self.control.followed(number) != order {
            if self.now() >= until {
                self.end(shared, number);
                return false;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        self.order(Order::Open(number));
        true
    }

    /// Fills the share of a ring that nobody else would fill.
    fn stand_in(&mut self, number: usize) {
        // It was laid out before, so it can be now.
        let Ok(layout) = self.blueprint.lay_out() else {
            return;
        };
        if let Some(parts) = layout.workers.into_iter().nth(number) {
            let cpu = LiveCpu::new(self.control.clone(), self.bell.clone(), number);
            let mut worker = Worker::new(cpu, parts, None);
            worker.start();
            self.stand_ins[number] = Some(worker);
        }
    }
}
