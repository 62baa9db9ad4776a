//! What the drivers of SINIC and V-SINIC share: when the device may interrupt, what its Config asks
//! of a driver, and sending.
//!
//! A SINIC has one set of transmit registers, which several cores take by a lock. A V-SINIC has one
//! for each core, and no core waits for another in software (integrated NIC, section A.2.2).

use nicforge_nic::DriverCosts;
use nicforge_platform::{AddressSpace, Cpu};

use super::registers::{Tag, config, interrupt};
use super::window::{Transmitter, Window};
use crate::kernel::{Advice, KernelPlan, Sending, SharedLock, SlabCache, TransmitBusy};

/// A driver's attention to its device.
#[derive(Debug)]
pub struct Attention {
    /// The device's registers.
    pub window: Window,
    /// What its instructions cost.
    pub costs: DriverCosts,
    /// How it sends: by the set of each core, or by one that all share.
    transmit: Vec<Transmitter>,
    lock: SharedLock,
    /// The core that polls.
    poller: usize,
    advice: Advice,
    /// The device may not interrupt: the driver will look by itself.
    polls: bool,
}

impl Attention {
    /// That of a driver that has not begun, of a device with `sets` register sets.
    pub fn new(plan: &KernelPlan, sets: usize, space: &mut AddressSpace) -> Attention {
        let own = sets >= plan.cores;
        let sets = if own { plan.cores as u16 } else { 1 };
        let sharing = if own { 1 } else { plan.cores };
        let window = Window { device: plan.device, write_wait: plan.write_wait };
        Attention {
            window,
            costs: plan.costs,
            transmit: (0..sets).map(|set| Transmitter::new(window, set)).collect(),
            lock: SharedLock::new(space, sharing),
            poller: plan.owner.0.into(),
            advice: Advice::default(),
            polls: false,
        }
    }

    /// Lets frames and interrupts through; returns Config.
    pub fn start<C: Cpu>(&mut self, cpu: &mut C) -> u64 {
        for transmit in &mut self.transmit {
            transmit.start(cpu);
        }
        let config = self.window.enable(cpu);
        self.advice = Advice {
            polls: config::POLL.is_set(config),
            receive_thread: config::RX_THREAD.is_set(config),
            transmit_thread: config::TX_THREAD.is_set(config),
            delays_copy: config::DELAY_COPY.is_set(config),
            spreads: config::RX_THREAD.is_set(config) && config::RSS.is_set(config),
        };
        config
    }

    /// The set by which `core` sends.
    fn set_of(&self, core: usize) -> usize {
        core % self.transmit.len()
    }

    /// Frees what the core that polls has sent, if it was read.
    pub fn reclaim<C: Cpu>(&mut self, cpu: &mut C, pool: &mut SlabCache) {
        let (lock, set) = (self.lock, self.set_of(self.poller));
        lock.hold(cpu, |cpu| self.transmit[set].reclaim(cpu, pool, false));
    }

    /// Buffers that wait for their last part to be read.
    pub fn buffers_held(&self) -> u64 {
        self.transmit.iter().map(Transmitter::buffers_held).sum()
    }

    /// What Config asks of the driver and the kernel around it.
    pub fn advice(&self) -> Advice {
        self.advice
    }

    /// What interrupts: `received`, and room for frames where the stack waits for it.
    fn wanted(&self, received: u64) -> u64 {
        if self.transmit.iter().any(Transmitter::waits) { received | interrupt::TX_DMA.mask() } else { received }
    }

    /// The driver looks no more, and wants to hear of `received`. Returns whether it is to be polled
    /// nevertheless, as Config.Poll asks.
    pub fn rest<C: Cpu>(&mut self, cpu: &mut C, received: u64) -> bool {
        if self.advice.polls {
            return true;
        }
        let mask = self.wanted(received);
        self.window.write(cpu, Tag::IntrMask, 0, mask);
        self.polls = false;
        false
    }

    /// The device interrupted. Returns whether that is for a driver that wants to hear of
    /// `received`, which then looks by itself.
    pub fn interrupt<C: Cpu>(&mut self, cpu: &mut C, received: u64) -> bool {
        let status = self.window.read(cpu, Tag::IntrStatus, 0);
        let mine = status & self.wanted(received) != 0;
        if mine {
            self.window.write(cpu, Tag::IntrMask, 0, 0);
            self.polls = true;
        }
        mine
    }

    /// Sends a frame on core `core`; a driver that rests hears when there is room.
    ///
    /// # Errors
    /// When the copy of the frame before has no room yet.
    pub fn send<C: Cpu>(
        &mut self,
        cpu: &mut C,
        pool: &mut SlabCache,
        frame: &Sending,
        core: usize,
        received: u64,
    ) -> Result<(), TransmitBusy> {
        let (lock, set) = (self.lock, self.set_of(core));
        let sent = lock.hold(cpu, |cpu| self.transmit[set].transmit(cpu, pool, frame));
        match sent {
            Ok(()) => cpu.work(self.costs.tx_packet),
            Err(TransmitBusy) if self.polls => {}
            Err(TransmitBusy) => {
                self.rest(cpu, received);
            }
        }
        sent
    }
}
