//! The thread that has the socket, and the places of workers.

use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use nicforge_nic::Pool;
use nicforge_platform::live::handover::{send_files, wait_for};
use nicforge_platform::live::{Bell, Control, LiveCpu};
use nicforge_units::Time;

use super::AttachOptions;
use super::message::{Invitation, Reply, Said, VERSION};
use super::place::{Heard, Member, Place, State, line};
use super::socket::Socket;
use crate::live::device::{Done, Order, Ordered};
use crate::live::layout::Blueprint;
use crate::live::pin::Places;
use crate::live::worker::Worker;
use crate::live::{LiveRunError, Region};
use crate::live::{Shared, locked};

mod restart;

/// How often it looks after its workers when nobody calls.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long a worker may take to halt, to go on, or to go.
const PATIENCE: Duration = Duration::from_millis(1_000);
/// How long workers may take to end at the end.
const END: Duration = Duration::from_secs(5);
/// Descriptors that meant nothing until a worker's queue is closed.
const NONSENSE_MAX: u64 = 64;
/// Callers that have not said yet what they want, at most; the next one takes the place of the first.
const CALLERS_MAX: usize = 16;
/// How long a caller may take to say what it wants.
const HELLO: Time = Time::from_ms(2_000);
/// How long a worker that shares rings may say nothing, if the file does not say.
const SILENCE: Time = Time::from_ms(3_000);

/// Keeps the workers of a run.
pub struct Keeper {
    socket: Socket,
    /// With the time at which each called, oldest first.
    callers: Vec<(Member, Time)>,
    /// How long a worker may take to bring its queues up.
    within: Time,
    /// How long a worker may say nothing, if there is a bound.
    silence: Option<Time>,
    places: Vec<Place>,
    /// For each worker, those that can only restart together with it.
    groups: Vec<Range<usize>>,
    /// Fills a shared ring for workers that are not there.
    stand_ins: Vec<Option<Worker>>,
    blueprint: Blueprint,
    /// The fingerprint of what the blueprint lays out, and of how this program writes it.
    layout: u64,
    cores: Places,
    control: Control,
    bell: Bell,
    orders: Sender<Ordered>,
    /// The run ends.
    stopping: bool,
}

impl Keeper {
    /// Listens where the run's file says; all places are free.
    ///
    /// # Errors
    /// Somebody listens there already, something else is there, or the system does not let us.
    pub fn new(
        groups: Vec<Range<usize>>,
        blueprint: Blueprint,
        cores: Places,
        region: Region,
        orders: Sender<Ordered>,
    ) -> Result<Keeper, LiveRunError> {
        let options: AttachOptions = blueprint.config.live.read();
        let shares = groups.iter().any(|group| group.len() > 1);
        let now = region.control.clock().now();
        Ok(Keeper {
            socket: Socket::open(&blueprint.config.live)?,
            callers: Vec::new(),
            within: Time::from_seconds(options.attach_within_s),
            silence: options.worker_silence_s.map(Time::from_seconds).or(shares.then_some(SILENCE)),
            places: groups.iter().map(|_| Place::new(now)).collect(),
            stand_ins: groups.iter().map(|_| None).collect(),
            groups,
            layout: blueprint.fingerprint()?,
            blueprint,
            cores,
            control: region.control,
            bell: region.bell,
            orders,
            stopping: false,
        })
    }

    /// Looks after the workers until `stop`, then lets them end. Returns the buffers that they and
    /// those who stood in for them answer for.
    pub(in crate::live) fn run(
        &mut self,
        shared: &Shared,
        stop: &AtomicBool,
        pools: &[Pool],
    ) -> Result<i64, LiveRunError> {
        while !stop.load(Ordering::Acquire) {
            self.look(shared, LOOK_EVERY)?;
        }
        self.stopping = true;
        for place in &mut self.places {
            if let Some(member) = place.state.member() {
                member.say(&Reply::Stop);
            }
        }
        let until = self.time_in(END);
        let works = |place: &Place| !matches!(place.state, State::Free | State::Ended(..));
        while self.places.iter().any(works) && self.now() < until {
            self.look(shared, LOOK_EVERY)?;
        }
        for number in 0..self.places.len() {
            if works(&self.places[number]) {
                self.lose(shared, number, "it did not end when it was told to");
            }
        }
        // What went down with those who had to go.
        self.publish(shared);
        let ended = self.places.iter().map(|place| match place.state {
            State::Ended(_, buffers) => buffers,
            _ => 0,
        });
        let ended: i64 = ended.sum();
        let stand_ins = self.stand_ins.iter_mut().flatten();
        let stood_in: i64 = stand_ins.map(|worker| worker.buffers().0).sum();
        let mut cpu = LiveCpu::new(self.control.clone(), self.bell.clone(), self.places.len());
        let available = pools.iter().map(|pool| pool.available(&mut cpu)).sum();
        Ok((ended + stood_in).wrapping_add_unsigned(available))
    }

    /// One round: who calls, what was said, who is gone.
    fn look(&mut self, shared: &Shared, timeout: Duration) -> Result<(), LiveRunError> {
        let mut files = vec![self.socket.listener.as_fd()];
        files.extend(self.callers.iter().map(|(caller, _)| caller.stream.as_fd()));
        for place in &self.places {
            if let State::Preparing(member) | State::Joining(member) | State::Working(member) = &place.state {
                files.extend([member.stream.as_fd(), member.peer.gone()]);
            }
        }
        wait_for(&files, timeout)?;
        while let Ok((stream, _)) = self.socket.listener.accept() {
            if let Ok(caller) = Member::new(stream) {
                if self.callers.len() == CALLERS_MAX {
                    self.callers.remove(0);
                }
                self.callers.push((caller, self.now()));
            }
        }
        for number in 0..self.places.len() {
            self.hear(shared, number);
        }
        self.meet_callers(shared);
        self.look_for_nonsense(shared);
        self.look_for_silence(shared);
        self.publish(shared);
        Ok(())
    }

    /// Tells what all workers counted.
    fn publish(&mut self, shared: &Shared) {
        let now = self.now();
        for (place, board) in self.places.iter_mut().zip(&shared.workers) {
            *locked(board) = place.counts(now);
        }
    }

    /// Ends workers that do not bring their queues up in time, or that have said nothing for too long.
    fn look_for_silence(&mut self, shared: &Shared) {
        let now = self.now();
        for number in 0..self.places.len() {
            let place = &self.places[number];
            let silent = now.saturating_sub(place.heard);
            match &place.state {
                State::Preparing(_) | State::Joining(_) if silent > self.within => {
                    let seconds = self.within.as_seconds();
                    self.lose(shared, number, &format!("its queues were not up within {seconds} s"));
                }
                State::Working(_) if self.silence.is_some_and(|bound| silent > bound) && !self.stopping => {
                    let seconds = silent.as_seconds();
                    self.lose(shared, number, &format!("it has said nothing for {seconds:.1} s"));
                }
                _ => {}
            }
        }
    }

    /// Closes the queues of workers who write what means nothing.
    fn look_for_nonsense(&mut self, shared: &Shared) {
        let (nonsense, impossible) = {
            let device = locked(&shared.device);
            (device.nonsense.clone(), device.impossible.clone())
        };
        let works = |keeper: &Keeper, number: usize| matches!(keeper.places[number].state, State::Working(_));
        for (number, count) in nonsense.into_iter().enumerate() {
            if count > NONSENSE_MAX && works(self, number) {
                let why = format!("{count} of its descriptors name no buffer");
                self.lose(shared, number, &why);
            }
        }
        for (number, _) in impossible.iter().enumerate().filter(|(_, is)| **is) {
            let group = self.groups[number].clone();
            match group.len() {
                1 if works(self, number) => {
                    self.lose(shared, number, "a doorbell of its rings for what cannot be");
                }
                // Who of them rang it nobody knows.
                2.. if number == group.start => {
                    shared.tell(format!(
                        "workers {} to {} restart: a shared doorbell announced descriptors that cannot be",
                        group.start,
                        group.end - 1
                    ));
                    self.restart(shared, number, false);
                }
                _ => {}
            }
        }
    }

    /// Takes what whoever has place `number` said.
    fn hear(&mut self, shared: &Shared, number: usize) {
        let Some(member) = self.places[number].state.member() else {
            return;
        };
        let said = match member.listen() {
            Heard::Said(said) => said,
            Heard::Gone(_) if matches!(self.places[number].state, State::Ended(..)) => return,
            Heard::Gone(why) => return self.lose(shared, number, why),
        };
        if !said.is_empty() {
            self.places[number].heard = self.now();
        }
        for message in said {
            let place = &mut self.places[number];
            match (message, std::mem::replace(&mut place.state, State::Free)) {
                // One that comes while the run ends has been told to stop.
                (Said::Prepared, State::Preparing(member)) if !self.stopping => self.begin(shared, number, member),
                (Said::Ready, State::Joining(member)) => {
                    place.state = State::Working(member);
                    self.order(Order::Open(number));
                    self.order(Order::Wait(false));
                }
                (Said::Counts { period, counts }, state) => {
                    if period == place.order {
                        place.told(&counts);
                    }
                    place.state = state;
                }
                (Said::Ended { counts, buffers, .. }, State::Working(member)) => {
                    place.told(&counts);
                    if self.stopping {
                        place.state = State::Ended(member, buffers);
                    } else {
                        place.state = State::Working(member);
                        return self.lose(shared, number, "it leaves");
                    }
                }
                (_, state) => place.state = state,
            }
        }
    }

    /// Finds places for those who call.
    fn meet_callers(&mut self, shared: &Shared) {
        let now = self.now();
        for (mut caller, since) in std::mem::take(&mut self.callers) {
            let said = match caller.listen() {
                Heard::Said(said) => said,
                Heard::Gone(_) => continue,
            };
            match said.into_iter().next() {
                None if now.saturating_sub(since) > HELLO => caller.say(&Reply::Refused("hello comes first".into())),
                None => self.callers.push((caller, since)),
                Some(Said::Hello { version, worker }) => match self.place_for(&version, worker) {
                    Ok(number) => self.invite(shared, number, caller),
                    Err(why) => caller.say(&Reply::Refused(why)),
                },
                Some(_) => caller.say(&Reply::Refused("hello comes first".into())),
            }
        }
    }

    fn place_for(&self, version: &str, wanted: Option<usize>) -> Result<usize, String> {
        if version != VERSION {
            return Err(format!("the run is of version {VERSION}, use the same"));
        }
        let free = |number: &usize| matches!(self.places[*number].state, State::Free);
        let places = self.places.len();
        match wanted {
            Some(number) if number >= places => Err(format!("there are {places} workers, from 0")),
            Some(number) if !free(&number) => Err(format!("worker {number} is there already")),
            Some(number) => Ok(number),
            None => (0..places).find(free).ok_or_else(|| format!("all {places} workers are there")),
        }
    }

    /// `caller` gets place `number`. The rings go on meanwhile: its tables take longer than its queues.
    fn invite(&mut self, shared: &Shared, number: usize, mut caller: Member) {
        let place = &mut self.places[number];
        let mut invitation = Invitation::new(&self.blueprint, self.layout, number, place.used);
        invitation.core = self.cores.worker(number);
        place.used = true;
        let reply = line(&Reply::Welcome(Box::new(invitation)));
        self.control.introduce();
        let files = [self.control.region().file(), self.bell.event()];
        let event = match send_files(&caller.stream, &reply, &files) {
            Ok(()) => format!("worker {number} attaches, process {}", caller.peer.id()),
            Err(error) => {
                caller.say(&Reply::Refused(error.to_string()));
                return;
            }
        };
        let place = &mut self.places[number];
        (place.state, place.heard) = (State::Preparing(caller), self.control.clock().now());
        shared.tell(event);
    }

    /// The keeper restarts the rings with the queues of `member`, which is prepared for place `number`.
    fn begin(&mut self, shared: &Shared, number: usize, mut member: Member) {
        self.restart(shared, number, true);
        self.control.set_gone(number, false);
        let now = self.now();
        let place = &mut self.places[number];
        member.say(&Reply::Begin(place.order));
        (place.state, place.heard) = (State::Joining(member), now);
    }

    /// Whoever has place `number` is gone, or has to go: what it held is taken back.
    fn lose(&mut self, shared: &Shared, number: usize, why: &str) {
        self.order(Order::Close(number..number + 1));
        let state = std::mem::replace(&mut self.places[number].state, State::Free);
        if let State::Preparing(mut member) | State::Joining(mut member) | State::Working(mut member) = state {
            member.say(&Reply::Refused(why.to_owned()));
            // Only who is gone for certain writes nothing any more.
            if !member.peer.is_gone_within(PATIENCE / 10) && !member.peer.end(PATIENCE) {
                shared.tell(format!("worker {number} cannot be ended"));
            }
            // What it could still say before it went.
            if let Heard::Said(said) = member.listen() {
                for message in said {
                    if let Said::Counts { period, counts } | Said::Ended { period, counts, .. } = message
                        && period == self.places[number].order
                    {
                        self.places[number].told(&counts);
                    }
                }
            }
        }
        self.control.set_gone(number, true);
        shared.tell(format!("worker {number} is lost: {why}"));
        self.restart(shared, number, false);
    }

    fn now(&self) -> Time {
        self.control.clock().now()
    }

    fn time_in(&self, patience: Duration) -> Time {
        self.now() + Time::from_ns(patience.as_nanos() as u64)
    }

    /// Tells the device, and waits until it has done so.
    fn order(&self, order: Order) -> Done {
        let (answer, done) = channel();
        if self.orders.send((order, answer)).is_err() {
            return Done::Yes;
        }
        self.bell.ring_now();
        // The device is gone when the run ends; then there is nothing left to do.
        done.recv().unwrap_or(Done::Yes)
    }
}
