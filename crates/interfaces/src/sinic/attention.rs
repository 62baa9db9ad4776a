//! What the drivers of SINIC and V-SINIC share: when the device may interrupt, what its Config asks
//! of a driver, and sending.

use nicforge_nic::{DriverCosts, PoolCache};
use nicforge_platform::Cpu;

use super::registers::{Tag, config, interrupt};
use super::window::{Transmitter, Window};
use crate::kernel::{Advice, KernelPlan, Sending, TransmitBusy};

/// A driver's attention to its device.
#[derive(Debug)]
pub struct Attention {
    /// The device's registers.
    pub window: Window,
    /// What its instructions cost.
    pub costs: DriverCosts,
    /// How it sends.
    pub transmit: Transmitter,
    advice: Advice,
    /// The device may not interrupt: the driver will look by itself.
    polls: bool,
}

impl Attention {
    /// That of a driver that has not begun.
    pub fn new(plan: &KernelPlan) -> Attention {
        let window = Window {
            device: plan.device,
        };
        Attention {
            window,
            costs: plan.costs,
            // With several cores each has its own set; this one has the first.
            transmit: Transmitter::new(window, 0),
            advice: Advice::default(),
            polls: false,
        }
    }

    /// Lets frames and interrupts through; returns Config.
    pub fn start<C: Cpu>(&mut self, cpu: &mut C) -> u64 {
        self.transmit.start(cpu);
        let config = self.window.enable(cpu);
        self.advice = Advice {
            polls: config::POLL.is_set(config),
            receive_thread: config::RX_THREAD.is_set(config),
            transmit_thread: config::TX_THREAD.is_set(config),
            delays_copy: config::DELAY_COPY.is_set(config),
        };
        config
    }

    /// What Config asks of the driver and the kernel around it.
    pub fn advice(&self) -> Advice {
        self.advice
    }

    /// What interrupts: `received`, and room for frames where the stack waits for it.
    fn wanted(&self, received: u64) -> u64 {
        match self.transmit.waits() {
            true => received | interrupt::TX_DMA.mask(),
            false => received,
        }
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

    /// Sends a frame; a driver that rests hears when there is room.
    ///
    /// # Errors
    /// When the copy of the frame before has no room yet.
    pub fn send<C: Cpu>(
        &mut self,
        cpu: &mut C,
        pool: &mut PoolCache,
        frame: &Sending,
        received: u64,
    ) -> Result<(), TransmitBusy> {
        let sent = self.transmit.transmit(cpu, pool, frame);
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
