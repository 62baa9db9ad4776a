//! A target that serves a file to any number of hosts.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use nicforge_l5p::nvme::connection::{Connection, ConnectionError, NicAction};
use nicforge_l5p::nvme::pdu::Digests;
use nicforge_l5p::nvme::subsystem::{Queue, Subsystem, SubsystemConfig};
use nicforge_l5p::nvme::target::{Target, TargetConfig};
use nicforge_l5p::port::StreamMemory;
use nicforge_platform::live::Clock;
use nicforge_sockets::attach::Attached;
use nicforge_sockets::transport::loss::Loss;
use nicforge_tcp::conn::Tuning;
use nicforge_tcp::stack::{ListenerId, StackError};

use crate::flow::Role;
use crate::image::Image;
use crate::link::{Link, WaitError};

/// Connections that wait to be accepted, at most.
const BACKLOG: usize = 64;

/// What every connection agrees to.
const OFFERED: TargetConfig = TargetConfig {
    digests: Digests { header: true, data: true },
    data_bytes_max: 128 << 10,
    sends_success: true,
    transfer_bytes_max: 128 << 10,
    depth: 128,
    offloads: true,
};

/// A target cannot start.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The stack refuses to listen.
    #[error("listening at port {port}: {cause:?}")]
    Listen {
        /// The port.
        port: u16,
        /// Why.
        cause: StackError,
    },
    /// Waiting for frames.
    #[error(transparent)]
    Wait(#[from] WaitError),
}

impl Role for Target<Queue<Image>> {
    fn connection(&self) -> &Connection {
        &self.connection
    }

    fn connection_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }

    fn work(&mut self, memory: &mut StreamMemory) -> Result<(), ConnectionError> {
        Target::work(self, memory)
    }

    fn next_action(&mut self) -> Option<NicAction> {
        Target::next_action(self)
    }

    fn oldest_buffer(&self) -> Option<u64> {
        Target::oldest_buffer(self)
    }
}

/// A target behind a port.
pub struct Server {
    link: Link<Target<Queue<Image>>>,
    listener: ListenerId,
    subsystem: Rc<RefCell<Subsystem<Image>>>,
    offloads: bool,
    clock: Clock,
    /// Connections that layer 5 ended, and the last reason.
    failures: u64,
    last_failure: Option<ConnectionError>,
    served: u64,
}

impl Server {
    /// Serves `image` as `config` says. Without `offloads` software makes and checks all digests, and copies.
    ///
    /// # Errors
    ///
    /// [`TargetError`].
    pub fn new(
        attached: Attached,
        loss: Loss,
        config: SubsystemConfig,
        image: Image,
        offloads: bool,
    ) -> Result<Server, TargetError> {
        let port = config.at.port();
        let tuning = Tuning::new(&attached.config);
        let mut link = Link::new(attached, loss);
        let listener = link.stack.listen(None, port, BACKLOG, tuning, false);
        let listener = listener.map_err(|cause| TargetError::Listen { port, cause })?;
        Ok(Server {
            link,
            listener,
            subsystem: Subsystem::new(config, image),
            offloads,
            clock: Clock::start(),
            failures: 0,
            last_failure: None,
            served: 0,
        })
    }

    /// Serves until `stop` is set.
    ///
    /// # Errors
    ///
    /// [`TargetError`].
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), TargetError> {
        while !stop.load(Ordering::Relaxed) {
            if !self.turn() {
                self.link.sleep(self.clock.now())?;
            }
        }
        Ok(())
    }

    /// Whether there was anything to do.
    fn turn(&mut self) -> bool {
        let mut busy = self.link.turn(self.clock.now());
        while let Some(at) = self.link.stack.accept(self.listener) {
            let offered = TargetConfig { offloads: self.offloads, ..OFFERED };
            let queue = Queue::new(&self.subsystem);
            self.link
                .add(at, |outward, inward| (Target::new(offered, queue, outward, inward), StreamMemory::default()));
            self.served += 1;
            // Its first bytes may be there.
            busy = true;
        }
        for flow in self.link.flows.values_mut() {
            if let Some(error) = flow.take_failure() {
                self.failures += 1;
                self.last_failure = Some(error);
            }
        }
        busy
    }

    /// Counters by name, those of the NIC included.
    pub fn counters(&self) -> Vec<(String, u64)> {
        let own = [
            ("connections_served", self.served),
            ("connections_failed", self.failures),
            ("store_errors", self.subsystem.borrow().store().errors),
        ];
        let own = own.into_iter().map(|(name, count)| (name.to_owned(), count));
        own.chain(self.link.counters()).collect()
    }

    /// Why layer 5 ended a connection last.
    pub fn last_failure(&self) -> Option<ConnectionError> {
        self.last_failure
    }
}
