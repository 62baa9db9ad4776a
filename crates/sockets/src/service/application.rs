//! One registered process.

use std::os::fd::{AsFd, OwnedFd};

use nicforge_units::Time;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use super::limits::{Limits, Rate};
use crate::layout::CONTEXT_BYTES;
use crate::queue::{Consumer, Message, Producer};
use crate::shared::{ContextMemory, Direction, memory_file};

/// A process's queues and events.
#[derive(Debug)]
pub struct Context {
    /// The memory's file, until the process has it.
    pub file: OwnedFd,
    /// Both queues.
    pub memory: ContextMemory,
    /// Rung by the process when the service sleeps.
    pub bell: OwnedFd,
    /// Rung by the service after ARX entries.
    pub wake: OwnedFd,
    /// Takes ATX entries.
    pub consumer: Consumer,
    /// Writes ARX entries.
    pub producer: Producer,
}

impl Context {
    fn new() -> Result<Context, Errno> {
        let file = memory_file("nicforge-context", CONTEXT_BYTES)?;
        let memory = ContextMemory::new(&file)?;
        let event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        Ok(Context {
            file,
            memory,
            bell: event()?,
            wake: event()?,
            consumer: Consumer::default(),
            producer: Producer::default(),
        })
    }

    /// Whether an ATX entry waits.
    pub fn ready(&self) -> bool {
        self.consumer.ready(self.memory.queue(Direction::ToService))
    }
}

/// A process as the service knows it.
#[derive(Debug)]
pub struct Application {
    /// Never used twice.
    pub serial: u64,
    /// The control connection.
    pub control: OwnedFd,
    /// Process, as the kernel says.
    pub pid: u32,
    /// User, as the kernel says.
    pub user: u32,
    /// The program's name.
    pub name: String,
    /// Queues, once it has registered.
    pub context: Option<Context>,
    /// Connections that it has.
    pub connections: usize,
    /// What it may use.
    pub limits: Limits,
    /// What it has used of its rate.
    pub rate: Rate,
    /// Entries and requests that made no sense.
    pub refused: u64,
    /// ARX entries that found no room: the process reads its page instead.
    pub missed: u64,
}

impl Application {
    /// An application at the other end of a control connection.
    pub fn new(serial: u64, control: OwnedFd, limits: Limits) -> Result<Application, Errno> {
        let credentials = rustix::net::sockopt::socket_peercred(control.as_fd())?;
        let pid = credentials.pid.as_raw_nonzero().get() as u32;
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_string();
        let user = credentials.uid.as_raw();
        Ok(Application {
            serial,
            control,
            pid,
            user,
            name,
            context: None,
            connections: 0,
            limits,
            rate: Rate::new(Time::ZERO),
            refused: 0,
            missed: 0,
        })
    }

    /// Gives the process its queues.
    pub fn register(&mut self) -> Result<&Context, Errno> {
        Ok(self.context.insert(Context::new()?))
    }

    /// Writes an ARX entry and wakes the process.
    pub fn notify(&mut self, message: Message) {
        let Some(context) = &mut self.context else { return };
        if context.producer.push(context.memory.queue(Direction::ToApplication), message).is_err() {
            self.missed += 1;
        }
        let _ = rustix::io::write(&context.wake, &1u64.to_ne_bytes());
    }
}
